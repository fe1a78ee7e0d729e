//! Nodes of an experiment and requests to them.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use serde::de::DeserializeOwned;

use crate::plan::TargetsPlan;
use crate::process::rpc::{Answer, Client, RpcError};
use crate::process::sample::{Look, look};
use crate::process::{Launch, Ports, Process, ProcessError};
use crate::target::{Family, Target};

/// Poll interval.
pub(crate) const ASK_PAUSE: Duration = Duration::from_millis(5);

pub(crate) struct Launcher<'a> {
    pub(crate) plan: &'a TargetsPlan,
    pub(crate) chain: String,
    pub(crate) logs: PathBuf,
}

/// A running node that accepts peers.
pub(crate) struct Node {
    process: Process,
    client: Client,
    pub(crate) p2p: SocketAddr,
}

impl Launcher<'_> {
    /// Starts `target` in `datadir`; `name` is that of its log.
    pub(crate) fn start(
        &self,
        target: &Target,
        datadir: &Path,
        name: &str,
    ) -> Result<Node, ProcessError> {
        self.start_with(target, datadir, name, &[])
    }

    /// The same with additional arguments.
    pub(crate) fn start_with(
        &self,
        target: &Target,
        datadir: &Path,
        name: &str,
        more: &[String],
    ) -> Result<Node, ProcessError> {
        let ports = Ports::free()?;
        let mut launch = target.launch(&self.chain, datadir, &ports, self.plan);
        launch.args.extend(more.iter().map(Into::into));
        let p2p = format!("127.0.0.1:{}", ports.p2p);
        let flags = match target.family {
            Family::Assay => ["--p2p".to_owned(), p2p],
            _ => ["-listen=1".to_owned(), format!("-bind={p2p}")],
        };
        launch.args.extend(flags.map(Into::into));
        Node::start(launch, &ports, &self.logs.join(format!("{name}.log")))
    }
}

impl Node {
    /// Starts it and waits until it responds and accepts peers; its output goes to `log`.
    pub(crate) fn start(launch: Launch, ports: &Ports, log: &Path) -> Result<Self, ProcessError> {
        let mut process = Process::start(launch, ports.rpc, log)?;
        let (cookie, _) = process.wait_answer(ASK_PAUSE)?;
        let client = process.client(&cookie);
        let p2p = SocketAddr::from((Ipv4Addr::LOCALHOST, ports.p2p));
        process.wait_peers(ports.p2p, ASK_PAUSE)?;
        Ok(Self { process, client, p2p })
    }

    /// Fails if it has exited.
    pub(crate) fn check_alive(&mut self) -> Result<(), ProcessError> {
        match self.process.ended() {
            None => Ok(()),
            Some(Err(error)) => Err(error),
            Some(Ok(())) => {
                let (status, log_tail) = ("exit status: 0".to_owned(), self.process.log_tail());
                Err(ProcessError::Exited { status, code: Some(0), log_tail })
            }
        }
    }

    pub(crate) fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &str,
    ) -> Result<T, RpcError> {
        self.client.call(method, params)
    }

    pub(crate) fn batch<'a>(
        &self,
        calls: impl ExactSizeIterator<Item = (&'a str, &'a str)> + Clone,
    ) -> Result<Vec<Answer>, RpcError> {
        self.client.batch(calls)
    }

    pub(crate) fn post(&self, method: &str, body: &[u8]) -> Result<Vec<u8>, RpcError> {
        self.client.post(method, body, None)
    }

    /// Connects to a node and stays connected.
    pub(crate) fn connect(&self, other: SocketAddr) -> Result<(), RpcError> {
        self.call("addnode", &format!(r#"["{other}","add"]"#))
    }

    /// Connects to a node once, as to an automatic outbound peer: nodes tolerate more from manual peers.
    pub(crate) fn choose(&self, other: SocketAddr) -> Result<(), RpcError> {
        let params = format!(r#"["{other}","outbound-full-relay",false]"#);
        self.call::<serde_json::Value>("addconnection", &params).map(drop)
    }

    pub(crate) fn tip(&self) -> Result<String, RpcError> {
        self.call("getbestblockhash", "[]")
    }

    /// Waits until its tip is `tip`; returns the time since `since`.
    pub(crate) fn wait_for_tip(
        &self,
        tip: &str,
        since: Instant,
        patience: Duration,
    ) -> anyhow::Result<Duration> {
        loop {
            let found = self.tip()?;
            if found == tip {
                return Ok(since.elapsed());
            }
            if since.elapsed() > patience {
                bail!("the tip is {found} after {} s, not {tip}", patience.as_secs());
            }
            thread::sleep(ASK_PAUSE);
        }
    }

    /// Waits until its tip is `tip`, by `waitforblock` instead of polling if available; returns the time since `since`.
    pub(crate) fn wait_for_block(
        &self,
        tip: &str,
        since: Instant,
        patience: Duration,
    ) -> anyhow::Result<Duration> {
        let params = format!(r#"["{tip}",{}]"#, patience.as_millis());
        let _: serde_json::Value = self.call("waitforblock", &params)?;
        self.wait_for_tip(tip, since, patience)
    }

    pub(crate) fn height(&self) -> Result<u32, RpcError> {
        self.call("getblockcount", "[]")
    }

    /// Resource usage of the process.
    pub(crate) fn look(&self) -> Look {
        look(self.process.pid())
    }

    pub(crate) fn stop(self) -> Result<(), ProcessError> {
        self.process.stop(&self.client).map(drop)
    }
}
