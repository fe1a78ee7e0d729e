//! The chain from peers: whose headers are asked for, who is asked for which block, and what becomes of those who send what is
//! wrong (Core `net_processing.cpp`).
//!
//! A peer's messages are handled on the thread that reads from it, in their order. Blocks are archived there and connected by a
//! thread of its own ([`Connector`]), so that the network does not wait for scripts; before anything else of the same peer is
//! answered, its blocks have been judged. After each message, and ten times a second, it is looked at what to ask of the
//! peer next ([`Shared::round`]).

mod behind;
mod blocks;
mod compact;
mod connector;
mod faults;
mod headers;
mod late;
mod pace;
mod presync;
mod under_way;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use std::time::Duration;

use assay_wire::BlockHash;

use self::behind::CatchUp;
pub(super) use self::behind::Extra;
pub(crate) use self::blocks::FetchError;
use self::connector::Connector;
pub(super) use self::connector::run as connect_blocks;
pub(super) use self::faults::log_malformed;
use self::pace::Pace;
use self::presync::Presync;
use self::under_way::UnderWay;
use super::bell::Bell;
use super::peers::{Connection, Peer};
use super::permissions::Permissions;
use super::{NODE_NETWORK, NODE_NETWORK_LIMITED, NODE_WITNESS, Shared};

/// What all peers together are asked for.
#[derive(Default)]
pub(crate) struct Sync {
    table: Mutex<Table>,
    connector: Connector,
    /// Peers that are bringing new headers at this moment.
    bringing: AtomicUsize,
    /// Rung when all peers are to be looked at before it is time.
    round: Bell,
}

/// For as long as it lives, no other peer is asked for the blocks of new headers: near the tip that is for who brought them.
struct Bringing<'a>(&'a AtomicUsize);

impl Drop for Bringing<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[derive(Default)]
struct Table {
    peers: HashMap<u64, PeerSync>,
    /// Blocks that were asked for and have not come.
    under_way: UnderWay,
    /// Peers that may send compact blocks unasked, the latest last.
    high_bandwidth: VecDeque<u64>,
    /// Who brought blocks that are not connected yet.
    sources: Sources,
    /// The block whose announcement made us ask for headers last, while they were not being synced.
    last_announced: Option<BlockHash>,
    /// How long the others wait for one peer, milliseconds; 0 for the least. It grows when peers are left because of it: the
    /// fault may be on our side.
    stall_patience_ms: u64,
}

/// What is known of one peer's chain, and what it was asked for.
#[derive(Default)]
struct PeerSync {
    traits: Traits,
    /// The best header that the peer is known to have, and the work of its branch.
    best: Option<(BlockHash, [u8; 32])>,
    /// The last block that it announced and that we do not know.
    last_unknown: Option<BlockHash>,
    last_common: Option<BlockHash>,
    /// Blocks asked for, in that order.
    under_way: VecDeque<BlockHash>,
    /// The block of it that is being checked and archived: all its bytes have come.
    in_hand: Option<BlockHash>,
    /// When the first of them became the first, milliseconds by the node's clock.
    downloading_since_ms: u64,
    pace: Pace,
    /// The number of its last block among all that were archived.
    kept_last: u64,
    /// Since when it alone keeps others waiting.
    stalling_since_ms: Option<u64>,
    has_started: bool,
    /// When headers were asked for that have not come.
    asked_headers_ms: Option<u64>,
    /// When the first headers should have come.
    headers_due_ms: Option<u64>,
    has_asked_for_announced: bool,
    /// Headers whose work is being added up.
    presync: Option<Presync>,
    has_sent_sendheaders: bool,
    /// Whether it keeps up, where we chose it.
    catch_up: CatchUp,
    /// When it last announced a block with more work than our tip, seconds by the node's clock.
    announced_s: u64,
}

/// What a peer is good for.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is about something else")]
struct Traits {
    /// It has blocks, the latest at least.
    serves_blocks: bool,
    /// It has the latest only.
    is_limited: bool,
    serves_witnesses: bool,
    /// Blocks and headers are best had from it.
    is_preferred: bool,
    is_for_addresses: bool,
    /// It sends compact blocks of our version.
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

/// Who brought a block.
#[derive(Clone, Copy)]
struct Source {
    peer: u64,
    /// Whether it was put together from a compact one: that may be passed on before it is judged.
    is_compact: bool,
}

/// The latest blocks that were taken, with their senders; older ones are forgotten.
#[derive(Default)]
struct Sources {
    by_block: HashMap<BlockHash, Source>,
    order: VecDeque<BlockHash>,
}

impl Sources {
    /// A peer has sent a block, which is about to be taken. Gives whether it is the first to do so: verdict and reward are for
    /// that one, whoever sends the same block before it is judged (Core's `mapBlockSource`).
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

    /// What the first peer sent was not kept: the next one counts.
    fn forget(&mut self, block: &BlockHash) {
        if self.by_block.remove(block).is_some() {
            self.order.retain(|other| other != block);
        }
    }

    fn of(&self, block: &BlockHash) -> Option<Source> {
        self.by_block.get(block).copied()
    }
}

/// What a peer is asked for, as RPC shows it.
#[derive(Debug, Default)]
pub(crate) struct SyncFacts {
    pub(crate) synced_headers: Option<u32>,
    pub(crate) presynced_headers: Option<u32>,
    pub(crate) synced_blocks: Option<u32>,
    pub(crate) in_flight: Vec<u32>,
    /// Whether it may send compact blocks unasked.
    pub(crate) is_high_bandwidth: bool,
}

impl Sync {
    fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Waits until all peers are to be looked at, at the latest after `at_most`.
    pub(super) fn wait_for_round(&self, at_most: Duration) {
        self.round.wait(at_most);
    }

    fn bring(&self) -> Bringing<'_> {
        // Who is being looked at now does not see the new headers any more.
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
}

impl Shared {
    /// A peer has shaken hands.
    pub(super) fn sync_joined(&self, peer: &Peer) {
        let traits = Traits::of(peer, peer.facts().services);
        let state = PeerSync { traits, ..PeerSync::default() };
        self.sync.lock().peers.insert(peer.id, state);
    }

    /// Whether blocks and transactions are best had from a peer.
    pub(super) fn is_preferred(&self, id: u64) -> bool {
        self.sync.lock().peers.get(&id).is_some_and(|state| state.traits.is_preferred)
    }

    /// A peer has gone: others are asked for what it was asked for.
    pub(super) fn sync_left(&self, peer: &Peer) {
        self.sync.lock().forget_peer(peer.id);
    }

    /// Sends a peer the requests and announcements that are due. Those that another thread has begun to send go first, so that
    /// the reply to the peer's next message comes after them.
    pub(super) fn round(&self, peer: &Peer) {
        let _one_at_a_time = peer.round.lock().unwrap_or_else(PoisonError::into_inner);
        if !peer.is_ready() || self.engine.is_shutting_down() {
            return;
        }
        self.ping_if_due(peer);
        self.start_headers(peer);
        self.leave_if_behind(peer);
        self.fetch_blocks(peer);
        self.relay(peer);
        self.announce_itself(peer);
        self.pass_on_addresses(peer);
    }

    /// Asks all peers for what they are to be asked for, and leaves those that keep us waiting.
    pub(super) fn round_of_all(&self) {
        for peer in self.peers.list() {
            self.round(&peer);
            self.leave_if_late(&peer);
        }
    }

    pub(crate) fn sync_facts(&self, id: u64) -> SyncFacts {
        let table = self.sync.lock();
        let Some(state) = table.peers.get(&id) else { return SyncFacts::default() };
        let height = |hash: BlockHash| self.engine.header_place(&hash).map(|place| place.height);
        SyncFacts {
            presynced_headers: state.presync.as_ref().and_then(Presync::height),
            synced_headers: state.best.and_then(|(hash, _)| height(hash)),
            synced_blocks: state.last_common.and_then(height),
            in_flight: state
                .under_way
                .iter()
                .filter_map(|hash| table.under_way.asked(hash).first().map(|block| block.height))
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
    fn the_first_peer_whose_block_is_kept_is_its_source() {
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
