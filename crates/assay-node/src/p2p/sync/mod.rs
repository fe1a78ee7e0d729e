//! Chain sync: header and block scheduling over all peers, and punishment of misbehaviour (Core
//! `net_processing.cpp`).
//!
//! The reader thread of a peer handles its messages in order. It archives blocks, and the [`Connector`] thread
//! connects them, so that script verification does not block the network. The peer's next message is handled after
//! validation of its blocks. After each message, and ten times a second, [`BlockSync::round`] updates the requests to
//! the peer.

mod blocks;
mod compact;
mod connector;
mod headers;
mod in_flight;
mod pace;
mod presync;
mod slow_peers;
mod stale_tip;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use assay_engine::Engine;
use assay_wire::BlockHash;

use self::connector::Connector;
use self::in_flight::InFlight;
use self::pace::Pace;
use self::presync::Presync;
use self::stale_tip::CatchUp;
pub(super) use self::stale_tip::Extra;
use super::compact::Compact;
use super::peers::{Connection, Peer, Peers};
use super::permissions::Permissions;
use super::wakeup::Wakeup;
use super::{NODE_NETWORK, NODE_NETWORK_LIMITED, NODE_WITNESS};

/// Header and block download from all peers.
pub(crate) struct BlockSync {
    engine: Arc<Engine>,
    peers: Arc<Peers>,
    compact: Arc<Compact>,
    pub(super) extra: Extra,
    table: Mutex<Table>,
    connector: Connector,
    /// Number of threads that are processing new headers.
    bringing: AtomicUsize,
    /// Rung to start a round early.
    round: Wakeup,
}

/// While alive, other peers are not asked for blocks of new headers: near the tip the announcing peer is.
struct Bringing<'a>(&'a AtomicUsize);

impl Drop for Bringing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Table {
    peers: HashMap<u64, PeerSync>,
    in_flight: InFlight,
    /// High-bandwidth compact block peers, latest last.
    high_bandwidth: VecDeque<u64>,
    /// Sources of blocks that are not connected yet.
    sources: Sources,
    /// Announced block that last triggered a header request outside of header sync.
    last_announced: Option<BlockHash>,
    /// Stall timeout, milliseconds; 0 for the minimum. It grows after each disconnection, because the cause may be local.
    stall_patience_ms: u64,
}

/// Chain and requests of one peer.
#[derive(Default)]
struct PeerSync {
    traits: Traits,
    /// Best header that the peer is known to have, and its chainwork.
    best: Option<(BlockHash, [u8; 32])>,
    /// Last announced block that we do not know.
    last_unknown: Option<BlockHash>,
    last_common: Option<BlockHash>,
    /// Blocks in flight, in order of request.
    in_flight: VecDeque<BlockHash>,
    /// Received block that is being checked and archived.
    in_hand: Option<BlockHash>,
    /// Time at which the first became first, milliseconds by the node's clock.
    downloading_since_ms: u64,
    pace: Pace,
    /// Archive count at its last block.
    kept_last: u64,
    /// Time since which this peer stalls the window.
    stalling_since_ms: Option<u64>,
    has_started: bool,
    asked_headers_ms: Option<u64>,
    /// Deadline of the initial headers.
    headers_due_ms: Option<u64>,
    has_asked_for_announced: bool,
    /// Low-work header sync in progress.
    presync: Option<Presync>,
    has_sent_sendheaders: bool,
    /// Chain sync state; outbound peers only.
    catch_up: CatchUp,
    /// Last announcement of a block with more work than our tip, seconds by the node's clock.
    announced_s: u64,
}

/// Role of a peer in block download.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is about something else")]
struct Traits {
    serves_blocks: bool,
    /// Serves only the latest blocks.
    is_limited: bool,
    serves_witnesses: bool,
    /// Preferred source of headers and blocks.
    is_preferred: bool,
    is_for_addresses: bool,
    /// Supports compact blocks of our version.
    gives_compact: bool,
}

impl Traits {
    fn of(peer: &Peer, services: u64) -> Self {
        let serves_blocks = services & (NODE_NETWORK | NODE_NETWORK_LIMITED) != 0;
        let is_limited = services & NODE_NETWORK == 0;
        let is_chosen = !peer.connection.is_inbound() || peer.permissions.has(Permissions::NO_BAN);
        let is_for_addresses = peer.connection == Connection::AddrFetch;
        Self {
            serves_blocks,
            is_limited,
            serves_witnesses: services & NODE_WITNESS != 0,
            is_preferred: is_chosen && serves_blocks && !is_limited && !is_for_addresses,
            is_for_addresses,
            gives_compact: false,
        }
    }
}

#[derive(Clone, Copy)]
struct Source {
    peer: u64,
    /// Reconstructed from a compact block, which may be relayed before validation.
    is_compact: bool,
}

/// Senders of the latest received blocks; bounded.
#[derive(Default)]
struct Sources {
    by_block: HashMap<BlockHash, Source>,
    order: VecDeque<BlockHash>,
}

impl Sources {
    /// Records the sender before a block is submitted. Returns true for the first sender, to which result and
    /// reward apply, even if others send the same block before it is validated (Core's `mapBlockSource`).
    fn note(&mut self, block: BlockHash, source: Source) -> bool {
        if self.by_block.contains_key(&block) {
            return false;
        }
        self.by_block.insert(block, source);
        self.order.push_back(block);
        if self.order.len() > SOURCES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_block.remove(&oldest);
        }
        true
    }

    /// The first sender's block was not stored: the next sender counts.
    fn forget(&mut self, block: &BlockHash) {
        if self.by_block.remove(block).is_some() {
            self.order.retain(|other| other != block);
        }
    }

    fn of(&self, block: &BlockHash) -> Option<Source> {
        self.by_block.get(block).copied()
    }
}

/// Sync state of a peer for RPC.
#[derive(Debug, Default)]
pub(crate) struct SyncFacts {
    pub(crate) synced_headers: Option<u32>,
    pub(crate) presynced_headers: Option<u32>,
    pub(crate) synced_blocks: Option<u32>,
    pub(crate) in_flight: Vec<u32>,
    pub(crate) is_high_bandwidth: bool,
}

impl BlockSync {
    pub(super) fn new(peers: &Arc<Peers>, compact: &Arc<Compact>) -> Self {
        Self {
            engine: Arc::clone(&peers.engine),
            peers: Arc::clone(peers),
            compact: Arc::clone(compact),
            extra: Extra::default(),
            table: Mutex::default(),
            connector: Connector::default(),
            bringing: AtomicUsize::new(0),
            round: Wakeup::default(),
        }
    }

    /// Waits for the next round, at most `at_most`.
    pub(super) fn wait_for_round(&self, at_most: Duration) {
        self.round.wait(at_most);
    }

    fn bring(&self) -> Bringing<'_> {
        // A round in progress misses the new headers.
        let _table = self.lock();
        self.bringing.fetch_add(1, Ordering::SeqCst);
        Bringing(&self.bringing)
    }

    fn is_any_bringing(&self) -> bool {
        self.bringing.load(Ordering::SeqCst) > 0
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn joined(&self, peer: &Peer) {
        let traits = Traits::of(peer, peer.facts().services);
        let state = PeerSync { traits, ..PeerSync::default() };
        self.lock().peers.insert(peer.id, state);
    }

    /// True if a peer is a preferred source of blocks and transactions.
    pub(super) fn is_preferred(&self, id: u64) -> bool {
        self.lock().peers.get(&id).is_some_and(|state| state.traits.is_preferred)
    }

    /// Removes a peer; its requests are reassigned.
    pub(super) fn left(&self, peer: &Peer) {
        self.lock().forget_peer(peer.id);
    }

    /// Sends due requests to a peer; disconnects one that stays behind our chain.
    pub(super) fn round(&self, peer: &Peer) {
        self.start_headers(peer);
        self.disconnect_if_behind(peer);
        self.fetch_blocks(peer);
    }

    pub(crate) fn facts(&self, id: u64) -> SyncFacts {
        let table = self.lock();
        let Some(state) = table.peers.get(&id) else { return SyncFacts::default() };
        let height =
            |hash: BlockHash| self.engine.chain().header_place(&hash).map(|place| place.height);
        SyncFacts {
            presynced_headers: state.presync.as_ref().and_then(Presync::height),
            synced_headers: state.best.and_then(|(hash, _)| height(hash)),
            synced_blocks: state.last_common.and_then(height),
            in_flight: state
                .in_flight
                .iter()
                .filter_map(|hash| table.in_flight.asked(hash).first().map(|block| block.height))
                .collect(),
            is_high_bandwidth: table.high_bandwidth.contains(&id),
        }
    }
}

const SOURCES_MAX: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_is_the_first_peer_with_a_stored_block() {
        let mut sources = Sources::default();
        let (block, other) = (BlockHash([1; 32]), BlockHash([2; 32]));
        let from = |peer| Source { peer, is_compact: false };
        let of = |sources: &Sources, block| sources.of(&block).map(|source| source.peer);
        assert!(sources.note(block, from(5)));
        assert!(!sources.note(block, from(6)), "another peer sends it while it is being judged");
        assert_eq!((of(&sources, block), of(&sources, other)), (Some(5), None));
        sources.forget(&block);
        assert!(
            sources.note(block, from(6)),
            "the first did not send the block that its header names"
        );
        assert_eq!(of(&sources, block), Some(6));
        for number in 0..SOURCES_MAX as u64 {
            let mut hash = [3; 32];
            hash[..8].copy_from_slice(&number.to_le_bytes());
            assert!(sources.note(BlockHash(hash), from(number)));
        }
        assert_eq!(of(&sources, block), None, "the oldest is forgotten");
        assert_eq!((sources.by_block.len(), sources.order.len()), (SOURCES_MAX, SOURCES_MAX));
    }
}
