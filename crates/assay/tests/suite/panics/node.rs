//! A node process with all services enabled.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use assay_wire::p2p::{Locator, Message, NetAddress, Version};
use assay_wire::{BlockHash, p2p::FrameHeader};
use serde_json::{Value, json};

use super::scenario::{End, Ended};
use crate::{Guard, Rpc, free_addresses};

pub(crate) struct Node {
    child: Guard,
    dir: PathBuf,
    rpc: SocketAddr,
    electrum: SocketAddr,
    p2p: SocketAddr,
    client: Rpc,
    stderr: PathBuf,
    last: String,
}

#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) status: Option<i32>,
    pub(crate) stderr: String,
}

impl Node {
    /// Starts a node in `dir` and waits until it responds; `Err` if it exits before that.
    pub(crate) fn start(dir: &Path, variables: &[(&str, &OsStr)]) -> Result<Self, Exit> {
        let [rpc, electrum, p2p] = free_addresses();
        let stderr = dir.join("stderr");
        let child = Command::new(env!("CARGO_BIN_EXE_assay"))
            .args(["node", "--chain", "bch-regtest", "--db-cache", "1", "--electrum-rate", "0"])
            .args(["--rpc", &rpc.to_string(), "--electrum", &electrum.to_string()])
            .args(["--p2p", &p2p.to_string(), "--index", "--index-memory", "1", "--datadir"])
            .arg(dir)
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&stderr).expect("a file"))
            .spawn()
            .expect("the program starts");
        let (dir, child, last) = (dir.to_owned(), Guard(child), String::new());
        let client = Rpc::new(rpc, "");
        let mut node = Self { child, dir, rpc, electrum, p2p, client, stderr, last };
        let start = Instant::now();
        loop {
            if node.child.0.try_wait().expect("it is our child").is_some() {
                return Err(node.ended(Ended("the start".to_owned())));
            }
            if let Some(cookie) = node.cookie() {
                node.client = Rpc::new(rpc, &cookie);
                if node.call("getblockcount", &json!([])).is_ok_and(|answer| answer.is_ok()) {
                    return Ok(node);
                }
            }
            assert!(start.elapsed() < PATIENCE, "the node does not answer");
            thread::sleep(PAUSE);
        }
    }

    fn cookie(&self) -> Option<String> {
        let pid = fs::read_to_string(self.dir.join("regtest/bitcoind.pid")).ok()?;
        // A stale file of an earlier process otherwise.
        let is_own = pid.trim() == self.child.0.id().to_string();
        is_own.then(|| fs::read_to_string(self.dir.join("regtest/.cookie")).ok()).flatten()
    }

    /// Calls a method and returns its result or error object; `Err` without a response.
    pub(crate) fn call(&self, method: &str, params: &Value) -> Result<Result<Value, Value>, Ended> {
        self.client.try_call(method, params).map_err(Ended)
    }

    /// Calls a method that succeeds on any running node.
    pub(crate) fn get(&self, method: &str, params: &Value) -> Result<Value, Ended> {
        let answer = self.call(method, params)?;
        Ok(answer.unwrap_or_else(|error| panic!("{method} {params}: {error}")))
    }

    /// Stops the node in order; returns its final state.
    pub(crate) fn stop(mut self) -> Result<End, Exit> {
        let end = self.end();
        let asked = end.is_ok() && self.call("stop", &json!([])).is_ok();
        let status = self.wait();
        match end {
            Ok(end) if asked && status == Some(0) => Ok(end),
            _ => Err(Exit { status, stderr: self.stderr() }),
        }
    }

    fn end(&self) -> Result<End, Ended> {
        let set = self.get("gettxoutsetinfo", &json!(["muhash"]))?;
        let tips = self.get("getchaintips", &json!([]))?;
        let index = self.index_answers(set["height"].as_u64().expect("a height"))?;
        Ok(End { set: muhash(&set), tips, index })
    }

    /// Exit of the process, which must be imminent, since `lost` failed.
    pub(crate) fn ended(mut self, Ended(lost): Ended) -> Exit {
        self.last = lost;
        let status = self.wait();
        Exit { status, stderr: self.stderr() }
    }

    fn stderr(&self) -> String {
        fs::read_to_string(&self.stderr).unwrap_or_default()
    }

    fn wait(&mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.0.try_wait().expect("it is our child") {
                return status.code();
            }
            assert!(start.elapsed() < PATIENCE, "the node neither answers nor ends: {}", self.last);
            thread::sleep(PAUSE);
        }
    }

    /// Connects to a service; the node answers RPC before its services start.
    fn connect(&self, address: SocketAddr) -> Result<TcpStream, Ended> {
        let start = Instant::now();
        loop {
            match TcpStream::connect(address) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE)).expect("a socket option");
                    return Ok(stream);
                }
                Err(_) if start.elapsed() < PATIENCE => thread::sleep(PAUSE),
                Err(error) => return Err(lost("connecting")(error)),
            }
            TcpStream::connect(self.rpc).map_err(lost("waiting for a service"))?;
        }
    }

    pub(crate) fn electrum(&self) -> Result<Electrum, Ended> {
        let stream = self.connect(self.electrum)?;
        let mut client = Electrum { stream: BufReader::new(stream) };
        client.call("server.version", &json!(["test", "1.4"]))?;
        Ok(client)
    }

    /// Results of the index for some scripts, once it is at the tip.
    fn index_answers(&self, height: u64) -> Result<Vec<Value>, Ended> {
        let mut client = self.electrum()?;
        let start = Instant::now();
        let tip = self.get("getbestblockhash", &json!([]))?;
        let header = self.get("getblockheader", &json!([tip, false]))?;
        while client.call("blockchain.headers.subscribe", &json!([]))?["hex"] != header {
            assert!(start.elapsed() < PATIENCE, "the index does not come to height {height}");
            thread::sleep(PAUSE);
        }
        let mut answers = Vec::new();
        for script in super::scenario::scripts() {
            for method in ["get_history", "get_balance", "listunspent", "subscribe"] {
                let method = format!("blockchain.scripthash.{method}");
                answers.push(client.call(&method, &json!([script]))?);
            }
        }
        Ok(answers)
    }

    /// Completes a handshake as a peer, and requests headers and a block.
    pub(crate) fn visit(&self, block: BlockHash) -> Result<(), Ended> {
        let mut stream = self.connect(self.p2p)?;
        let version = Message::Version(Version {
            version: 70016,
            services: 0,
            time: 1_700_000_000,
            receiver: NetAddress::default(),
            sender: NetAddress::default(),
            nonce: 1,
            user_agent: b"/test:1/",
            start_height: 0,
            relay: Some(true),
        });
        let locator = Locator { version: 70016, hashes: [][..].into(), stop: block };
        for message in [version, Message::Verack, Message::GetHeaders(locator)] {
            stream.write_all(&message.to_bytes(MAGIC)).map_err(lost("a message of a peer"))?;
        }
        while receive(&mut stream)? != "headers" {}
        Ok(())
    }
}

fn receive(stream: &mut TcpStream) -> Result<String, Ended> {
    use std::io::Read as _;
    let mut head = [0; 24];
    stream.read_exact(&mut head).map_err(lost("a message to a peer"))?;
    let header = FrameHeader::parse(&head, MAGIC, 1 << 23).expect("a frame");
    let mut payload = vec![0; header.length as usize];
    stream.read_exact(&mut payload).map_err(lost("a message to a peer"))?;
    Ok(header.command.to_string())
}

pub(crate) struct Electrum {
    stream: BufReader<TcpStream>,
}

impl Electrum {
    /// Calls a method and skips notifications.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Result<Value, Ended> {
        let request = json!({"id": 1, "method": method, "params": params}).to_string() + "\n";
        self.stream.get_mut().write_all(request.as_bytes()).map_err(lost(method))?;
        loop {
            let line = self.line(method)?;
            let mut reply: Value = serde_json::from_str(&line).expect("a line is JSON");
            if reply.get("id").is_some() {
                return Ok(reply["result"].take());
            }
        }
    }

    pub(crate) fn notification(&mut self) -> Result<(), Ended> {
        self.line("a notification").map(|_| ())
    }

    fn line(&mut self, what: &str) -> Result<String, Ended> {
        let mut line = String::new();
        match self.stream.read_line(&mut line).map_err(lost(what))? {
            0 => Err(Ended(format!("{what}: closed"))),
            _ => Ok(line),
        }
    }
}

fn lost(what: &str) -> impl Fn(std::io::Error) -> Ended {
    move |error| Ended(format!("{what}: {error}"))
}

/// Hash of the tip and hash of the coins.
pub(crate) fn muhash(set: &Value) -> (String, String) {
    let text = |field: &str| set[field].as_str().expect("text").to_owned();
    (text("bestblock"), text("muhash"))
}

const MAGIC: [u8; 4] = [0xda, 0xb5, 0xbf, 0xfa];
const PATIENCE: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(5);
