//! The nodes of the experiment, ours and others, and what is asked of them.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::HostileError;
use crate::plan::TargetsPlan;
use crate::process::rpc::Client;
use crate::process::sample::{Look, look};
use crate::process::{Ports, Process};
use crate::target::{Family, Target};

/// Time between two questions.
pub(super) const ASK_PAUSE: Duration = Duration::from_millis(5);
/// Longest wait until a node takes connections of peers.
const PEERS_TIMEOUT: Duration = Duration::from_secs(30);

/// How nodes are started.
pub(super) struct Launcher<'a> {
    pub(super) plan: &'a TargetsPlan,
    pub(super) chain: &'a str,
    pub(super) logs: PathBuf,
}

/// A running node that takes peers.
pub(super) struct Node {
    process: Process,
    client: Client,
    pub(super) p2p: SocketAddr,
}

#[derive(Deserialize)]
pub(super) struct PeerInfo {
    pub(super) subver: String,
}

impl Launcher<'_> {
    /// Starts `target` over `datadir`; `name` is that of its log.
    pub(super) fn start(
        &self,
        target: &Target,
        datadir: &Path,
        name: &str,
    ) -> Result<Node, HostileError> {
        let ports = Ports::free()?;
        let mut launch = target.launch(self.chain, datadir, &ports, self.plan);
        let p2p = format!("127.0.0.1:{}", ports.p2p);
        let flags = match target.family {
            Family::Assay => ["--p2p".to_owned(), p2p],
            _ => ["-listen=1".to_owned(), format!("-bind={p2p}")],
        };
        launch.args.extend(flags.map(Into::into));
        let log = self.logs.join(format!("{name}.log"));
        let mut process = Process::start(launch, ports.rpc, &log)?;
        let (cookie, _) = process.wait_answer(ASK_PAUSE)?;
        let client = process.client(&cookie);
        let p2p = SocketAddr::from((Ipv4Addr::LOCALHOST, ports.p2p));
        let started = Instant::now();
        while TcpStream::connect(p2p).is_err() && started.elapsed() < PEERS_TIMEOUT {
            thread::sleep(ASK_PAUSE);
        }
        Ok(Node { process, client, p2p })
    }
}

impl Node {
    pub(super) fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &str,
    ) -> Result<T, HostileError> {
        Ok(self.client.call(method, params)?)
    }

    pub(super) fn post(&self, method: &str, body: &[u8]) -> Result<Vec<u8>, HostileError> {
        Ok(self.client.post(method, body, None)?)
    }

    /// Connects to `other` and stays connected.
    pub(super) fn connect(&self, other: &Self) -> Result<(), HostileError> {
        self.call("addnode", &format!(r#"["{}","add"]"#, other.p2p))
    }

    pub(super) fn tip(&self) -> Result<String, HostileError> {
        self.call("getbestblockhash", "[]")
    }

    /// Waits until its tip is `tip`; gives how long that took from `since`.
    pub(super) fn wait_for_tip(
        &self,
        tip: &str,
        since: Instant,
        patience: Duration,
    ) -> Result<Duration, HostileError> {
        loop {
            let found = self.tip()?;
            if found == tip {
                return Ok(since.elapsed());
            }
            if since.elapsed() > patience {
                let seconds = patience.as_secs();
                return Err(HostileError::NoTip { expected: tip.to_owned(), found, seconds });
            }
            thread::sleep(ASK_PAUSE);
        }
    }

    /// What the system says about the process.
    pub(super) fn look(&self) -> Look {
        look(self.process.pid())
    }

    pub(super) fn stop(self) -> Result<(), HostileError> {
        self.process.stop(&self.client)?;
        Ok(())
    }
}
