//! The node that gives blocks to the one that is killed, over the peer-to-peer protocol. It is never killed itself.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::oracle::{ASK_PAUSE, submit};
use super::round::{Activity, Round, TIP_TIMEOUT};
use super::{CrashError, Setup, renew};
use crate::process::rpc::Client;
use crate::process::{Ports, Process};

/// Longest wait for a connection to be made or to end.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(30);
/// One in this many times the node is given the time to follow.
const FOLLOWED_ONE_IN: u64 = 2;

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

impl Round<'_> {
    /// Has the peer take blocks up to this one; about every other time waits until the node has followed. In between the
    /// node syncs many blocks at once.
    pub(super) fn give_to_peer(
        &mut self,
        client: &Client,
        (rival, height): (usize, u32),
        activity: &mut Activity,
    ) -> Result<(), CrashError> {
        let is_followed = self.random.below(FOLLOWED_ONE_IN) == 0;
        let Some(peer) = &mut self.peer else { return Ok(()) };
        peer.give(self.setup, rival, height)?;
        let leader = peer.tip().0;
        if !is_followed {
            let active = self.note_tip(client)?;
            *activity = activity_of(active, leader);
            return Ok(());
        }
        self.follow_peer(client, activity)
    }

    /// Waits until the node has the peer's tip.
    pub(super) fn follow_peer(
        &mut self,
        client: &Client,
        activity: &mut Activity,
    ) -> Result<(), CrashError> {
        let Some(peer) = &self.peer else { return Ok(()) };
        let (leader, height) = peer.tip();
        let start = Instant::now();
        loop {
            let active = self.note_tip(client)?;
            *activity = activity_of(active, leader);
            if active.is_some_and(|(_, at)| at == height) {
                return Ok(());
            }
            if start.elapsed() > TIP_TIMEOUT {
                let found = client.call("getbestblockhash", "[]")?;
                let expected = self.setup.chains[leader].blocks[height as usize - 1].hash.clone();
                return Err(CrashError::WrongTip { found, expected });
            }
            thread::sleep(ASK_PAUSE);
        }
    }

    /// Asks for the tip: it and all below it are acknowledged. Gives rival and height, `None` for the genesis block.
    fn note_tip(&mut self, client: &Client) -> Result<Option<(usize, u32)>, CrashError> {
        let tip: String = client.call("getbestblockhash", "[]")?;
        let place = self.oracle.place(&tip);
        if let Some((rival, height)) = place {
            let known = &mut self.acknowledged[rival];
            self.tally.acknowledged += u64::from(height.saturating_sub(*known));
            *known = height.max(*known);
        }
        Ok(place)
    }

    /// A node that has no connections yet has the tip that it had, or one that it did not get to report.
    pub(super) fn tip_without_peers(&self, client: &Client) -> Result<String, CrashError> {
        let tip: String = client.call("getbestblockhash", "[]")?;
        let height = self.oracle.place(&tip).map_or(0, |(_, height)| height);
        let highest = self.acknowledged.into_iter().max().unwrap_or(0);
        if height >= highest {
            return Ok(tip);
        }
        Err(CrashError::WrongTip {
            found: tip,
            expected: format!("one at height {highest} or above"),
        })
    }
}

fn activity_of(active: Option<(usize, u32)>, leader: usize) -> Activity {
    match active {
        Some((rival, _)) if rival != leader => Activity::Reorganising,
        _ => Activity::Extending,
    }
}
