//! The node that gives blocks to the one that is killed, over the peer-to-peer protocol. It is never killed itself.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::oracle::submit;
use super::{ASK_PAUSE, CrashError, Setup, renew};
use crate::process::rpc::Client;
use crate::process::{Ports, Process};

/// Longest wait for a connection to be made or to end.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// The flags that let a node take peers.
pub(crate) fn flags(ports: &Ports) -> [std::ffi::OsString; 2] {
    ["--p2p".into(), format!("127.0.0.1:{}", ports.p2p).into()]
}

/// A running node whose blocks come by RPC.
pub(crate) struct Peer {
    process: Process,
    client: Client,
    address: String,
    /// Height up to which it has each rival.
    heights: [u32; 2],
    /// The rival that leads; of two equally long ones the first that came.
    leader: usize,
    body: Vec<u8>,
}

impl Peer {
    /// Starts it over a new folder.
    pub(crate) fn start(setup: &Setup<'_>, datadir: &Path) -> Result<Self, CrashError> {
        renew(datadir)?;
        let ports = Ports::free()?;
        let mut launch = setup.launch(datadir, &ports, None);
        launch.args.extend(flags(&ports));
        let log = setup.log.with_file_name("peer.log");
        let mut process = Process::start(launch, ports.rpc, &log)?;
        let cookie = process.wait_ready()?;
        let client = process.client(&cookie);
        let address = format!("127.0.0.1:{}", ports.p2p);
        let mut peer =
            Self { process, client, address, heights: [0; 2], leader: 0, body: Vec::new() };
        peer.give(setup, 0, 1)?;
        peer.end_initial_download(&setup.chains[0].blocks[0].hash)?;
        Ok(peer)
    }

    /// A node that takes its chain for an old one announces nothing; the clock goes back until it has seen a young tip.
    fn end_initial_download(&self, hash: &str) -> Result<(), CrashError> {
        #[derive(Deserialize)]
        struct Header {
            time: u64,
        }
        let header: Header = self.client.call("getblockheader", &format!(r#"["{hash}"]"#))?;
        for time in [header.time, 0] {
            self.client.call::<()>("setmocktime", &format!("[{time}]"))?;
            self.client.call::<serde_json::Value>("getblockchaininfo", "[]")?;
        }
        Ok(())
    }

    /// Takes the blocks of `rival` up to `height`.
    pub(crate) fn give(
        &mut self,
        setup: &Setup<'_>,
        rival: usize,
        height: u32,
    ) -> Result<(), CrashError> {
        let chain = &setup.chains[rival];
        for at in self.heights[rival] + 1..=height {
            let block = &chain.blocks[at as usize - 1];
            let reason = submit(&self.client, chain, block, &mut self.body)
                .map_err(|error| CrashError::Peer(Box::new(error)))?;
            if let Some(reason) = reason {
                return Err(CrashError::Refused { height: at, hash: block.hash.clone(), reason });
            }
            self.heights[rival] = at;
            if at > self.heights[1 - rival] {
                self.leader = rival;
            }
        }
        Ok(())
    }

    /// Rival and height of its tip.
    pub(crate) fn tip(&self) -> (usize, u32) {
        (self.leader, self.heights[self.leader])
    }

    /// Connects the node behind `client` to this one.
    pub(crate) fn connect(&self, client: &Client) -> Result<(), CrashError> {
        // Not "add": such a connection would come back at times of its own.
        client.call::<()>("addnode", &format!(r#"["{}","onetry"]"#, self.address))?;
        wait_for_connections(client, 1)
    }

    /// Ends the connection and makes a new one: what was announced while a block counted as invalid is not announced again.
    pub(crate) fn reconnect(&self, client: &Client) -> Result<(), CrashError> {
        client.call::<()>("disconnectnode", &format!(r#"["{}"]"#, self.address))?;
        wait_for_connections(client, 0)?;
        self.connect(client)
    }

    /// Ends it in good order.
    pub(crate) fn stop(self) -> Result<(), CrashError> {
        self.process.stop(&self.client)?;
        Ok(())
    }
}

fn wait_for_connections(client: &Client, expected: u32) -> Result<(), CrashError> {
    let start = Instant::now();
    loop {
        let found: u32 = client.call("getconnectioncount", "[]")?;
        if found == expected {
            return Ok(());
        }
        if start.elapsed() > CONNECTION_TIMEOUT {
            let seconds = CONNECTION_TIMEOUT.as_secs();
            return Err(CrashError::Connections { found, expected, seconds });
        }
        thread::sleep(ASK_PAUSE);
    }
}
