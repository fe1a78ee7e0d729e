//! A target as a process: start, readiness, stop, and diagnosis of its end.

pub mod bounded;
pub(crate) mod child;
pub mod cores;
mod descendants;
pub mod interference;
pub mod rpc;
pub(crate) mod sample;
pub(crate) mod stale_processes;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use rustix::process::{Pid, Signal};
use serde::Deserialize;

use self::child::Supervised;
use self::rpc::{Client, RpcError};
use self::stale_processes::Mark;
use crate::electrum;

pub use self::child::Usage;
pub use self::descendants::kill_descendants;

/// Longest wait for the first RPC response.
const READY_TIMEOUT: Duration = Duration::from_mins(2);
/// Longest wait until a node accepts peers.
const PEERS_TIMEOUT: Duration = Duration::from_secs(30);
/// Longest wait for a clean end after `stop`.
const STOP_TIMEOUT: Duration = Duration::from_mins(30);
/// Longest time from a broken connection to the visible end of the process.
const DEATH_NOTICE: Duration = Duration::from_secs(5);
/// JSON-RPC error code of an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;
/// Bytes and lines of a log in an error.
const TAIL_BYTES: u64 = 8192;
const TAIL_LINES: usize = 20;

#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("the target ended by itself ({status}); its last words:\n{log_tail}")]
    Exited {
        /// Exit code or signal.
        status: String,
        /// Exit code, if not ended by a signal.
        code: Option<i32>,
        log_tail: String,
    },
    #[error("the target did not answer within {seconds} s ({last}); its last words:\n{log_tail}")]
    NotReady {
        /// Time limit.
        seconds: u64,
        last: String,
        log_tail: String,
    },
    #[error("the target is on chain {chain:?} at height {blocks}, not at the start of regtest")]
    NotFresh {
        /// Reported chain.
        chain: String,
        blocks: u64,
    },
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Launch {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// Additional environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cookie: PathBuf,
    /// Log file that the node itself writes, if any.
    pub(crate) node_log: Option<PathBuf>,
    /// Cores that the process is bound to; any if empty.
    pub(crate) cores: Vec<usize>,
}

impl Launch {
    /// Command line in shell syntax.
    pub(crate) fn words(&self) -> Vec<String> {
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        let cores: Vec<String> = self.cores.iter().map(usize::to_string).collect();
        let bound = (!cores.is_empty()).then(|| ["taskset".into(), "-c".into(), cores.join(",")]);
        let env = self.env.iter().map(|(name, value)| format!("{}={}", text(name), text(value)));
        let program = std::iter::once(&self.program).chain(&self.args).map(text);
        env.chain(bound.into_iter().flatten()).chain(program).collect()
    }
}

/// A running target. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Supervised,
    log: PathBuf,
    node_log: Option<PathBuf>,
    cookie: PathBuf,
    port: u16,
    command: Vec<String>,
    /// Dropped after the child.
    _mark: Mark,
}

#[derive(Deserialize)]
pub(crate) struct ChainInfo {
    pub(crate) chain: String,
    pub(crate) blocks: u64,
}

/// Loopback ports of one target.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ports {
    /// JSON-RPC of the node.
    pub(crate) rpc: u16,
    /// Electrum protocol of the index.
    pub(crate) electrum: u16,
    /// P2P of the node.
    pub(crate) p2p: u16,
    /// ZMQ notifications of the node.
    pub(crate) zmq: u16,
    /// Metrics of the index, if it cannot disable them.
    pub(crate) metrics: u16,
}

impl Ports {
    /// Free ports; all are held at the same time, so no two are equal.
    pub(crate) fn free() -> Result<Self, ProcessError> {
        let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let held = [bind(), bind(), bind(), bind(), bind()];
        let mut ports = [0; 5];
        for (port, listener) in ports.iter_mut().zip(held) {
            let address = listener.and_then(|listener| listener.local_addr());
            *port = address.context("no free port on 127.0.0.1")?.port();
        }
        let [rpc, electrum, p2p, zmq, metrics] = ports;
        Ok(Self { rpc, electrum, p2p, zmq, metrics })
    }

    /// Address of the index.
    pub(crate) fn electrum_address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.electrum).into()
    }
}

impl Process {
    /// Starts `launch`; its output goes to `log`.
    pub(crate) fn start(launch: Launch, port: u16, log: &Path) -> Result<Self, ProcessError> {
        let command = launch.words();
        let mut program = Command::new(&launch.program);
        program.args(&launch.args).envs(launch.env);
        let child = Supervised::logged(&mut program, &launch.cores, log)?;
        let mark = Mark::write(log, child.id());
        Ok(Self {
            child,
            _mark: mark,
            log: log.to_owned(),
            node_log: launch.node_log,
            cookie: launch.cookie,
            port,
            command,
        })
    }

    /// Starts a node with a fresh data folder and waits until it responds.
    pub(crate) fn start_fresh(
        launch: Launch,
        port: u16,
        log: &Path,
    ) -> Result<(Self, Client), ProcessError> {
        let mut process = Self::start(launch, port, log)?;
        let client = Client::new(port, &process.wait_ready()?);
        Ok((process, client))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn command(&self) -> &[String] {
        &self.command
    }

    pub(crate) fn node_log(&self) -> Option<&Path> {
        self.node_log.as_deref()
    }

    /// Waits until a node with a fresh data folder responds, and returns its credentials.
    pub(crate) fn wait_ready(&mut self) -> Result<String, ProcessError> {
        let (cookie, info) = self.wait_answer(Duration::from_millis(20))?;
        if info.blocks == 0 && info.chain.ends_with("regtest") {
            return Ok(cookie);
        }
        Err(ProcessError::NotFresh { chain: info.chain, blocks: info.blocks })
    }

    /// Waits until the node responds, polling every `pause`; returns its credentials and first response.
    pub(crate) fn wait_answer(
        &mut self,
        pause: Duration,
    ) -> Result<(String, ChainInfo), ProcessError> {
        let (path, port) = (self.cookie.clone(), self.port);
        // The last error, while a cookie is there.
        let mut last = "no cookie file yet".to_owned();
        self.poll(READY_TIMEOUT, pause, || {
            // After a kill an old cookie may remain: the node rejects it until it has written its own.
            let cookie = fs::read_to_string(&path).ok().filter(|cookie| cookie.contains(':'));
            let Some(cookie) = cookie else { return Err(last.clone()) };
            let cookie = cookie.trim().to_owned();
            match chain_info(&Client::new(port, &cookie)) {
                Ok(info) => Ok((cookie, info)),
                Err(error) => {
                    last = error.to_string();
                    Err(last.clone())
                }
            }
        })
    }

    /// Waits until a node accepts peers on a port of loopback, polling every `pause`.
    pub(crate) fn wait_peers(&mut self, port: u16, pause: Duration) -> Result<(), ProcessError> {
        let connect = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).map(drop);
        self.poll(PEERS_TIMEOUT, pause, || connect().map_err(|error| error.to_string()))
    }

    /// Waits until an index responds on its port and has a tip.
    pub(crate) fn wait_electrum(&mut self, address: SocketAddr) -> Result<(), ProcessError> {
        self.poll(READY_TIMEOUT, Duration::from_millis(20), || {
            electrum::Client::connect(address, Duration::from_secs(5))
                .and_then(|mut client| client.hello().and_then(|_| client.subscribe_headers()))
                .map(drop)
                .map_err(|error| error.to_string())
        })
    }

    /// Polls until `look` succeeds, for a time of `limit`.
    fn poll<T>(
        &mut self,
        limit: Duration,
        pause: Duration,
        mut look: impl FnMut() -> Result<T, String>,
    ) -> Result<T, ProcessError> {
        let start = Instant::now();
        loop {
            self.check_alive()?;
            match look() {
                Ok(found) => return Ok(found),
                Err(last) if start.elapsed() > limit => {
                    let (seconds, log_tail) = (limit.as_secs(), self.log_tail());
                    return Err(ProcessError::NotReady { seconds, last, log_tail });
                }
                Err(_) => thread::sleep(pause),
            }
        }
    }

    /// Stops a program without a `stop` request by signal, and waits; returns the time taken.
    pub(crate) fn stop_by_signal(mut self) -> Result<Duration, ProcessError> {
        let start = Instant::now();
        self.child.terminate();
        // A program without a signal handler is ended by the signal, which is accepted.
        let term = Signal::TERM.as_raw();
        self.wait_end(start, |status| {
            status.success() || status.signal() == Some(term) || status.code() == Some(143)
        })
    }

    /// Waits for the end after a request to stop at `start`; returns the time taken.
    fn wait_end(
        &mut self,
        start: Instant,
        is_good: impl Fn(ExitStatus) -> bool,
    ) -> Result<Duration, ProcessError> {
        while start.elapsed() < STOP_TIMEOUT {
            if let Some(status) = self.exit_status() {
                let took = start.elapsed();
                return if is_good(status) { Ok(took) } else { Err(self.exited(status)) };
            }
            thread::sleep(Duration::from_millis(2));
        }
        let seconds = STOP_TIMEOUT.as_secs();
        Err(anyhow!("the target did not end within {seconds} s after stop and was killed").into())
    }

    /// Sends SIGTERM without waiting.
    pub(crate) fn terminate(&self) {
        self.child.terminate();
    }

    /// File with its standard output.
    pub(crate) fn stdout(&self) -> &Path {
        &self.log
    }

    /// Fails if it has ended.
    pub(crate) fn check_alive(&mut self) -> Result<(), ProcessError> {
        self.exit_status().map_or(Ok(()), |status| Err(self.exited(status)))
    }

    /// Result of its end, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<Result<(), ProcessError>> {
        let status = self.exit_status()?;
        Some(if status.success() { Ok(()) } else { Err(self.exited(status)) })
    }

    /// Waits until it ends, up to `at_most`.
    pub(crate) fn wait(&self, at_most: Duration) {
        self.child.wait(at_most);
    }

    /// Resource usage, once its end was observed.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.child.usage()
    }

    pub(crate) fn client(&self, credentials: &str) -> Client {
        Client::new(self.port, credentials)
    }

    /// Stops the node and waits for its end; returns the time taken.
    pub(crate) fn stop(mut self, client: &Client) -> Result<Duration, ProcessError> {
        let start = Instant::now();
        // A node that dies of the request has stopped as well; the wait below decides.
        let answer = client.call::<serde::de::IgnoredAny>("stop", "[]");
        if answer.is_err_and(|error| error.is_answer()) {
            self.child.terminate();
        }
        self.wait_end(start, |status| status.success())
    }

    /// After a failed call: the end of the process, if that is the cause.
    pub(crate) fn death(&mut self, error: &RpcError) -> Option<ProcessError> {
        if error.is_answer() { None } else { self.end_soon() }
    }

    /// After a broken connection: the end of the process, if it has ended.
    pub(crate) fn end_soon(&mut self) -> Option<ProcessError> {
        let start = Instant::now();
        while start.elapsed() < DEATH_NOTICE {
            if let Some(status) = self.exit_status() {
                return Some(self.exited(status));
            }
            thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Last lines of all output of the target.
    pub(crate) fn log_tail(&self) -> String {
        let paths = std::iter::once(&self.log).chain(&self.node_log);
        let tails: Vec<String> = paths.map(|path| tail(path)).filter(|t| !t.is_empty()).collect();
        if tails.is_empty() { "(its logs are empty)".to_owned() } else { tails.join("\n") }
    }

    fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.status()
    }

    fn exited(&self, status: ExitStatus) -> ProcessError {
        let (code, log_tail) = (status.code(), self.log_tail());
        ProcessError::Exited { status: status.to_string(), code, log_tail }
    }
}

/// Number of a process, for signals.
pub(crate) fn pid_of(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

/// Chain and height; nodes older than 0.9.2 only report the height.
fn chain_info(client: &Client) -> Result<ChainInfo, RpcError> {
    match client.call("getblockchaininfo", "[]") {
        Err(RpcError::Node { code: METHOD_NOT_FOUND, .. }) => {
            let blocks = client.call("getblockcount", "[]")?;
            Ok(ChainInfo { chain: "regtest".to_owned(), blocks })
        }
        answer => answer,
    }
}

/// Last lines of a file; empty if it cannot be read.
pub(crate) fn tail(path: &Path) -> String {
    let read = || -> io::Result<String> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("log");
        assert_eq!(tail(&path), "");
        let text: Vec<String> = (0..1000).map(|line| format!("line {line}")).collect();
        fs::write(&path, text.join("\n")).expect("writable");
        let end = tail(&path);
        assert_eq!(end.lines().count(), TAIL_LINES);
        assert!(end.ends_with("line 999"));
    }

    #[test]
    fn missing_program_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let launch = Launch {
            program: "/nonexistent/bitcoind".into(),
            cookie: folder.path().join(".cookie"),
            ..Launch::default()
        };
        let error = Process::start(launch, 1, &folder.path().join("log")).expect_err("no program");
        assert_eq!(error.to_string(), "cannot start /nonexistent/bitcoind");
    }

    #[test]
    fn early_exit_reports_log_tail() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let launch = Launch {
            program: "sh".into(),
            args: ["-c", "echo no space left; exit 3"].map(Into::into).to_vec(),
            cookie: folder.path().join(".cookie"),
            ..Launch::default()
        };
        let mut process =
            Process::start(launch, 1, &folder.path().join("log")).expect("there is a shell");
        let error = process.wait_ready().expect_err("it ends").to_string();
        assert!(error.contains("exit status: 3") && error.contains("no space left"), "{error}");
    }
}
