//! Sends transactions and blocks to one node over P2P: one or more peers send, another observes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use assay_wire::{BlockHash, Header};

use super::Sent;
use super::due::Due;
use super::peer::{Habits, Peer, PeerError, Stop};
use super::ready::Ready;
use crate::machine::clock::Clock;
use crate::p2p::{CASH_REGTEST, REGTEST};
use crate::plan::{Compact, Delivery, FeedPlan, Prefill};
use crate::results::BlockRelay;

/// Connections to one node.
pub(crate) struct P2pFeeder {
    peers: Vec<Peer>,
    observer: Peer,
    is_cash: bool,
    clock: Clock,
    patience: Duration,
}

#[derive(Clone, Copy)]
pub(crate) struct SendOptions<'a> {
    pub(crate) plan: &'a FeedPlan,
    /// Seconds until the block is due, over which transactions may be spread.
    pub(crate) interval_s: Option<f64>,
    pub(crate) stop: Stop<'a>,
}

impl P2pFeeder {
    pub(crate) fn connect(
        address: SocketAddr,
        chain: &str,
        plan: &FeedPlan,
        clock: Clock,
    ) -> Result<Self, PeerError> {
        let is_cash = chain.starts_with("bch");
        let magic = if is_cash { CASH_REGTEST } else { REGTEST };
        let compact = (plan.by == Delivery::Compact).then_some(false);
        let habits = Habits { magic, is_cash, compact };
        let connect = |habits| Peer::connect(address, habits, clock);
        let peers = (0..plan.connections).map(|_| connect(habits)).collect::<Result<_, _>>()?;
        // The observer receives blocks at once.
        let observer = connect(Habits { compact: Some(true), ..habits })?;
        let patience = Duration::from_secs(plan.block_timeout_s);
        Ok(Self { peers, observer, is_cash, clock, patience })
    }

    /// Registers headers of the node's blocks, which it may request again.
    pub(crate) fn has_blocks(&self, headers: &[Header]) {
        for peer in self.peers.iter().chain([&self.observer]) {
            let mut talk = peer.link.lock();
            for header in headers {
                talk.add_header(*header);
            }
        }
    }

    /// Hashes of the node's active chain above a block, limited to one message.
    pub(crate) fn headers_above(
        &self,
        before: &BlockHash,
        stop: Stop<'_>,
    ) -> Result<Vec<BlockHash>, PeerError> {
        self.observer.link.headers_above(before, self.patience, stop)
    }

    pub(crate) fn is_cash(&self) -> bool {
        self.is_cash
    }

    /// Announces transactions and serves requests for them; returns after the node has processed all.
    pub(crate) fn send_transactions(
        &self,
        block: &Arc<Ready>,
        places: &[usize],
        options: SendOptions<'_>,
        mut progress: impl FnMut(u64),
    ) -> Result<Sent, PeerError> {
        for peer in &self.peers {
            peer.link.lock().take_up(Arc::clone(block));
        }
        if places.is_empty() {
            return Ok(Sent::default());
        }
        let start_s = self.clock.now_s();
        let FeedPlan { rate, burst, batch, .. } = *options.plan;
        let mut due = Due::new(rate, burst, (start_s, options.interval_s), places.len());
        let (mut rest, mut turn) = (places, 0);
        let mut idle_since = Instant::now();
        let mut asked_before = 0;
        loop {
            let (mut open, mut asked) = (0, 0);
            for peer in &self.peers {
                let talk = peer.link.lock();
                (open, asked) = (open + talk.announced - talk.asked, asked + talk.asked);
            }
            if asked != asked_before {
                (asked_before, idle_since) = (asked, Instant::now());
                progress(asked as u64);
            }
            if rest.is_empty() && (open == 0 || idle_since.elapsed() > UNWANTED_AFTER) {
                break;
            }
            let room = (OPEN_MOST * self.peers.len()).saturating_sub(open).min(batch);
            let lengths = rest.iter().map(|at| block.tx(*at).len() as u64);
            let count = due.ready(self.clock.now_s(), lengths.clone(), room);
            if count == 0 {
                self.wait_a_little(options.stop)?;
                continue;
            }
            let bytes = lengths.take(count).sum();
            let (now, later) = rest.split_at(count);
            self.peers[turn % self.peers.len()].link.announce_txs(block, now)?;
            due.sent(count, bytes);
            (rest, turn, idle_since) = (later, turn + 1, Instant::now());
        }
        let mut given = Sent { count: places.len() as u64, ..Sent::default() };
        for peer in &self.peers {
            let at_s = peer.link.pong(self.patience, options.stop)?;
            let Sent { accepted, bytes, orphans, first_at_s, .. } =
                peer.link.lock().stamps.sent.clone();
            given.accepted += accepted;
            given.bytes += bytes;
            given.orphans += orphans;
            let times = given.first_at_s.into_iter().chain(first_at_s);
            given.first_at_s = times.reduce(f64::min);
            given.last_at_s = Some(given.last_at_s.map_or(at_s, |last: f64| last.max(at_s)));
        }
        Ok(given)
    }

    /// Announces the block or sends it as a compact block; returns the time.
    pub(crate) fn send_block(
        &self,
        block: &Arc<Ready>,
        seen: &[usize],
        plan: &FeedPlan,
    ) -> Result<f64, PeerError> {
        {
            let mut talk = self.observer.link.lock();
            (talk.looked_for, talk.sighting) = (Some(block.hash), None);
        }
        let prefilled = match plan.prefill {
            Prefill::Coinbase => vec![0],
            Prefill::Unseen => {
                let mut is_seen = vec![false; block.tx_count()];
                for at in seen {
                    is_seen[*at] = true;
                }
                (0..block.tx_count()).filter(|at| !is_seen[*at]).collect()
            }
        };
        let link = &self.peers[0].link;
        let is_chosen = link.lock().is_chosen;
        match (plan.by, plan.compact) {
            (Delivery::Compact, Compact::High) if is_chosen => link.push_compact(block, &prefilled),
            _ => link.announce_block(block, &prefilled),
        }
    }

    /// Fails if a connection is closed.
    pub(crate) fn check(&self, stop: Stop<'_>) -> Result<(), PeerError> {
        self.peers.iter().chain([&self.observer]).try_for_each(|peer| peer.link.check(stop))
    }

    /// Polls until the block is in the node's active chain; returns the time.
    pub(crate) fn wait_connected(
        &self,
        block: &Ready,
        before: &BlockHash,
        stop: Stop<'_>,
    ) -> Result<f64, PeerError> {
        let started = Instant::now();
        loop {
            let link = &self.peers[0].link;
            let at_s = link.pong(self.patience, stop)?;
            let above = self.observer.link.headers_above(before, self.patience, stop)?;
            if above.first() == Some(&block.hash) {
                return Ok(at_s);
            }
            if started.elapsed() > self.patience {
                let found = match above.len() {
                    0 => "no header".to_owned(),
                    count => format!("{count} other headers"),
                };
                let text = format!("the node has not connected the block: it answers with {found}");
                return Err(PeerError::Other(text));
            }
            self.wait_a_little(stop)?;
        }
    }

    /// Observations of the block by the peers and the observer; the announcement may arrive slightly later than the tip.
    pub(crate) fn relay(&self, announced_at_s: f64, stop: Stop<'_>) -> BlockRelay {
        let started = Instant::now();
        while self.observer.link.lock().sighting.is_none()
            && started.elapsed() < SIGHTING_PATIENCE
            && !stop()
        {
            thread::sleep(PAUSE);
        }
        let (seen_at_s, seen_as) = self.observer.link.lock().sighting.unzip();
        let relay = self.peers[0].link.lock().stamps.relay.clone();
        BlockRelay { announced_at_s, seen_at_s, seen_as, ..relay }
    }

    /// Informs the observer of the block: nodes send compact blocks only to peers that have the previous block.
    pub(crate) fn keep_up(&self, before: &BlockHash, stop: Stop<'_>) -> Result<(), PeerError> {
        self.headers_above(before, stop).map(drop)
    }

    fn wait_a_little(&self, stop: Stop<'_>) -> Result<(), PeerError> {
        thread::sleep(PAUSE);
        self.check(stop)
    }
}

/// Limit of unrequested announcements of one peer: Core remembers 5,000 (`txdownloadman.h`, `MAX_PEER_TX_ANNOUNCEMENTS`).
const OPEN_MOST: usize = 4_000;
/// A node that requests nothing in this time does not want the rest: Core delays requests to an inbound peer by up to six seconds
/// (`txdownloadman.h`, `NONPREF_PEER_TX_DELAY`, `TXID_RELAY_DELAY`, `OVERLOADED_PEER_TX_DELAY`).
const UNWANTED_AFTER: Duration = Duration::from_secs(10);
/// Longest wait for a node to announce its tip.
const SIGHTING_PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_micros(200);
