//! Nodes of an experiment and requests to them.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use serde::de::DeserializeOwned;

use crate::machine::disk::renew_folder;
use crate::process::rpc::{Client, RpcError};
use crate::process::sample::{Look, look};
use crate::process::{Launch, Ports, Process, ProcessError};
use crate::target::Target;

/// Poll interval.
pub(crate) const ASK_PAUSE: Duration = Duration::from_millis(5);

/// A running node that accepts peers.
pub(crate) struct Node {
    process: Process,
    client: Client,
    pub(crate) p2p: SocketAddr,
}

impl Node {
    /// Starts `target` in a new folder; `launch` makes its command line.
    pub(crate) fn start_new(
        target: &Target,
        datadir: &Path,
        log: &Path,
        launch: impl FnOnce(&Path, &Ports) -> Launch,
    ) -> anyhow::Result<Self> {
        renew_folder(datadir)?;
        // Absolute, because a node may change its working directory.
        let datadir = datadir.canonicalize().unwrap_or_else(|_| datadir.to_owned());
        let ports = Ports::free()?;
        let launch = launch(&datadir, &ports);
        target
            .write_credentials(&launch, &datadir)
            .context("cannot write the credentials of a node")?;
        let (process, client) = Process::start_fresh(launch, ports.rpc, log)?;
        Ok(Self::started(process, client, &ports)?)
    }

    /// Starts a node that listens for peers in a folder that may have data.
    pub(super) fn start(launch: Launch, ports: &Ports, log: &Path) -> Result<Self, ProcessError> {
        let mut process = Process::start(launch, ports.rpc, log)?;
        let (cookie, _) = process.wait_answer(ASK_PAUSE)?;
        let client = process.client(&cookie);
        Self::started(process, client, ports)
    }

    /// Waits until it accepts peers.
    fn started(mut process: Process, client: Client, ports: &Ports) -> Result<Self, ProcessError> {
        let p2p = SocketAddr::from((Ipv4Addr::LOCALHOST, ports.p2p));
        process.wait_peers(ports.p2p, ASK_PAUSE)?;
        Ok(Self { process, client, p2p })
    }

    /// After a failed call: the end of the process, if that is the cause.
    pub(crate) fn death(&mut self, error: &RpcError) -> Option<ProcessError> {
        self.process.death(error)
    }

    /// Log file that the program itself writes, if any.
    pub(crate) fn log(&self) -> Option<&Path> {
        self.process.node_log()
    }

    /// Fails if it has exited.
    pub(crate) fn check_alive(&mut self) -> Result<(), ProcessError> {
        self.process.check_alive()
    }

    pub(crate) fn call<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &str,
    ) -> Result<T, RpcError> {
        self.client.call(method, params)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
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
