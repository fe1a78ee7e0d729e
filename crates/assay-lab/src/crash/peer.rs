//! The node that serves blocks to the killed node over P2P. It is never killed itself.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use serde::Deserialize;

use super::oracle::submit;
use super::{ASK_PAUSE, Fault, Setup};
use crate::network::Node;
use crate::process::Ports;
use crate::process::rpc::Client;

/// Longest wait for a connection to open or close.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);

/// Flags that let a node accept peers.
pub(crate) fn flags(ports: &Ports) -> [std::ffi::OsString; 2] {
    ["--p2p".into(), format!("127.0.0.1:{}", ports.p2p).into()]
}

/// A running node that receives blocks by RPC.
pub(crate) struct Peer {
    node: Node,
    /// Height of each chain that it has.
    heights: [u32; 2],
    /// The best chain; of two equally long ones the first received.
    leader: usize,
    body: Vec<u8>,
}

impl Peer {
    /// Starts it in a new folder.
    pub(crate) fn start(setup: &Setup<'_>, datadir: &Path) -> anyhow::Result<Self> {
        let log = setup.log.with_file_name("peer.log");
        let node = Node::start_new(&setup.target, datadir, &log, |datadir, ports| {
            let mut launch = setup.launch(datadir, ports, None);
            launch.args.extend(flags(ports));
            launch
        })?;
        let mut peer = Self { node, heights: [0; 2], leader: 0, body: Vec::new() };
        peer.give(setup, 0, 1)?;
        peer.end_initial_download(&setup.chains[0].blocks[0].hash)?;
        Ok(peer)
    }

    /// A node in IBD announces nothing; mock time goes back until its tip is recent.
    fn end_initial_download(&self, hash: &str) -> anyhow::Result<()> {
        #[derive(Deserialize)]
        struct Header {
            time: u64,
        }
        let header: Header = self.node.call("getblockheader", &format!(r#"["{hash}"]"#))?;
        for time in [header.time, 0] {
            self.node.call::<()>("setmocktime", &format!("[{time}]"))?;
            self.node.call::<serde_json::Value>("getblockchaininfo", "[]")?;
        }
        Ok(())
    }

    /// Submits the blocks of `rival` up to `height`.
    pub(crate) fn give(
        &mut self,
        setup: &Setup<'_>,
        rival: usize,
        height: u32,
    ) -> anyhow::Result<()> {
        let chain = &setup.chains[rival];
        for at in self.heights[rival] + 1..=height {
            let block = &chain.blocks[at as usize - 1];
            // Not the error itself: a loss of this node is none of the killed one.
            let reason = submit(self.node.client(), chain, block, &mut self.body)
                .map_err(|error| anyhow!("the node that gives the blocks: {error:#}"))?;
            if let Some(reason) = reason {
                return Err(Fault::rejected(block, &reason));
            }
            self.heights[rival] = at;
            if at > self.heights[1 - rival] {
                self.leader = rival;
            }
        }
        Ok(())
    }

    /// Chain and height of its tip.
    pub(crate) fn tip(&self) -> (usize, u32) {
        (self.leader, self.heights[self.leader])
    }

    /// Connects the node behind `client` to this one.
    pub(crate) fn connect(&self, client: &Client) -> anyhow::Result<()> {
        // Not "add", which would reconnect by itself.
        client.call::<()>("addnode", &format!(r#"["{}","onetry"]"#, self.node.p2p))?;
        wait_for_connections(client, 1)
    }

    /// Reconnects: a block announced while it counted as invalid is not announced again.
    pub(crate) fn reconnect(&self, client: &Client) -> anyhow::Result<()> {
        client.call::<()>("disconnectnode", &format!(r#"["{}"]"#, self.node.p2p))?;
        wait_for_connections(client, 0)?;
        self.connect(client)
    }

    pub(crate) fn stop(self) -> anyhow::Result<()> {
        Ok(self.node.stop()?)
    }
}

fn wait_for_connections(client: &Client, expected: u32) -> anyhow::Result<()> {
    let start = Instant::now();
    loop {
        let found: u32 = client.call("getconnectioncount", "[]")?;
        if found == expected {
            return Ok(());
        }
        if start.elapsed() > CONNECTION_TIMEOUT {
            let seconds = CONNECTION_TIMEOUT.as_secs();
            let text = format!("{found} connections after {seconds} s, not {expected}");
            return Err(Fault::of_node(text));
        }
        thread::sleep(ASK_PAUSE);
    }
}
