//! Disconnects outbound peers that fall behind, and allows extra ones while the tip is stale (Core
//! `net_processing.cpp`, `ConsiderEviction`, `EvictExtraOutboundPeers`, `CheckForStaleTipAndEvictPeers`).

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use assay_engine::HeaderPlace;
use assay_wire::BlockHash;
use assay_wire::p2p::NetworkKind;

use super::BlockSync;
use super::headers::ask_headers;
use crate::p2p::peers::{Connection, Peer};

/// A block, and the chainwork of its branch.
type Work = (BlockHash, [u8; 32]);

/// Chain sync state of an outbound peer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CatchUp {
    /// Exempt from disconnection: it once had a chain as good as ours.
    is_protected: bool,
    /// Deadline for the chain of `target`, seconds by the node's clock.
    due_s: Option<u64>,
    /// Our tip when the deadline was set.
    target: Option<Work>,
    was_asked: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Wait,
    /// Request headers from this block on, once before disconnection.
    Ask(BlockHash),
    Leave,
}

impl CatchUp {
    fn step(&mut self, now_s: u64, best: Option<[u8; 32]>, tip: Work) -> Step {
        let has_reached = |work: [u8; 32]| best.is_some_and(|best| best >= work);
        if self.is_protected {
            return Step::Wait;
        }
        if has_reached(tip.1) {
            *self = Self::default();
            return Step::Wait;
        }
        let has_moved = self.target.is_some_and(|(_, work)| has_reached(work));
        match (self.due_s, self.target) {
            (Some(due_s), Some((hash, _))) if !has_moved => {
                if now_s <= due_s {
                    return Step::Wait;
                }
                if self.was_asked {
                    return Step::Leave;
                }
                self.was_asked = true;
                self.due_s = Some(now_s + ANSWER_S);
                Step::Ask(hash)
            }
            _ => {
                *self =
                    Self { due_s: Some(now_s + CATCH_UP_S), target: Some(tip), ..Self::default() };
                Step::Wait
            }
        }
    }
}

#[derive(Default)]
pub(in crate::p2p) struct Extra {
    /// One extra full-relay peer: the tip is stale.
    full_relay: AtomicBool,
    /// Periodically one extra block-relay-only peer, to compare tips.
    block_relay: AtomicBool,
    /// Last connected block, seconds by the node's clock; 0 before the first check.
    tip_moved_s: AtomicU64,
    checks: Mutex<Checks>,
}

struct Checks {
    /// Next count of peers.
    next: Instant,
    /// Next check of the tip, seconds by the node's clock.
    tip_next_s: u64,
}

impl Default for Checks {
    fn default() -> Self {
        Self { next: Instant::now() + CHECK, tip_next_s: 0 }
    }
}

impl Extra {
    pub(in crate::p2p) fn wants_full_relay(&self) -> bool {
        self.full_relay.load(Relaxed)
    }

    pub(in crate::p2p) fn wants_block_relay(&self) -> bool {
        self.block_relay.load(Relaxed)
    }
}

/// Outbound peer, for the selection.
#[derive(Clone, Copy, Debug)]
struct Kept {
    id: u64,
    network: NetworkKind,
    is_protected: bool,
    /// Last announcement of a block with more work than our tip.
    announced_s: u64,
    block_at_s: u64,
}

/// Selects the surplus block-relay-only peer: the youngest, or the second youngest if its last block is older.
fn extra_block_relay(peers: &[Kept]) -> Option<u64> {
    let mut ids: Vec<&Kept> = peers.iter().collect();
    ids.sort_by_key(|peer| std::cmp::Reverse(peer.id));
    match ids.as_slice() {
        [] => None,
        [youngest, next, ..] if youngest.block_at_s > next.block_at_s => Some(next.id),
        [youngest, ..] => Some(youngest.id),
    }
}

/// Selects the surplus full-relay peer: the one whose last announcement is oldest, except sole peers of a network.
/// `on_network` includes manual peers.
fn extra_full_relay(peers: &[Kept], on_network: &BTreeMap<NetworkKind, usize>) -> Option<u64> {
    let has_others = |peer: &&Kept| on_network.get(&peer.network).is_some_and(|count| *count > 1);
    let candidates = peers.iter().filter(|peer| !peer.is_protected).filter(has_others);
    candidates.min_by_key(|peer| (peer.announced_s, std::cmp::Reverse(peer.id))).map(|peer| peer.id)
}

impl BlockSync {
    fn tip(&self) -> Option<HeaderPlace> {
        self.engine.chain().header_place(&self.engine.chain().tip().hash)
    }

    /// Disconnects an outbound peer that stays behind our chain.
    pub(super) fn disconnect_if_behind(&self, peer: &Peer) {
        if !matches!(peer.connection, Connection::FullRelay | Connection::BlockRelayOnly) {
            return;
        }
        let Some(tip) = self.tip() else { return };
        let now_s = self.engine.clock().now_s();
        let step = self.with_state(peer, |state| {
            let best = state.best.map(|(_, work)| work);
            let step = if state.has_started {
                state.catch_up.step(now_s, best, (tip.hash, tip.chain_work))
            } else {
                Step::Wait
            };
            (step, state.best.map_or_else(|| "<none>".to_owned(), |(hash, _)| hash.to_string()))
        });
        match step {
            Some((Step::Leave, best)) => {
                tracing::info!(
                    "Outbound peer has old chain, best known block = {best}, disconnecting peer={}",
                    peer.id
                );
                peer.close();
            }
            Some((Step::Ask(target), best)) => {
                let parent = self.engine.chain().header_place(&target).map(|place| place.parent);
                let locator = self.engine.chain().locator(parent.as_ref());
                self.with_state(peer, |state| ask_headers(peer, state, &locator, self.now_ms()));
                net!(
                    "sending getheaders to outbound peer={} to verify chain work (current best known block:{best}, benchmark blockhash: {target})",
                    peer.id
                );
            }
            Some((Step::Wait, _)) | None => {}
        }
    }

    /// Protects up to four full-relay peers that have sent headers up to our tip, in case our chain is the wrong one.
    pub(super) fn protect_if_good(&self, peer: &Peer) {
        if peer.connection != Connection::FullRelay || peer.outbox.is_closed() {
            return;
        }
        let Some(tip) = self.tip() else { return };
        let mut table = self.lock();
        let count = table.peers.values().filter(|state| state.catch_up.is_protected).count();
        let Some(state) = table.peers.get_mut(&peer.id) else { return };
        let has_our_chain = state.best.is_some_and(|(_, work)| work >= tip.chain_work);
        if count < PROTECTED_MAX && has_our_chain && !state.catch_up.is_protected {
            net!("Protecting outbound peer={} from eviction", peer.id);
            state.catch_up.is_protected = true;
        }
    }

    /// Records that a peer announced an unknown header, whose branch may be better than ours.
    pub(super) fn note_announcement(&self, peer: &Peer) {
        let Some(tip) = self.tip() else { return };
        let now_s = self.engine.clock().now_s();
        self.with_state(peer, |state| {
            if state.best.is_some_and(|(_, work)| work > tip.chain_work) {
                state.announced_s = now_s;
            }
        });
    }

    pub(in crate::p2p) fn tip_has_moved(&self) {
        self.extra.tip_moved_s.store(self.engine.clock().now_s(), Relaxed);
    }

    /// Disconnects surplus peers and updates the demand for extra ones; every 45 s.
    pub(in crate::p2p) fn check_tip_if_due(&self) {
        {
            let mut checks = self.extra.checks.lock().unwrap_or_else(PoisonError::into_inner);
            if Instant::now() < checks.next {
                return;
            }
            checks.next = Instant::now() + CHECK;
        }
        self.disconnect_extra_peers();
        let now_s = self.engine.clock().now_s();
        let mut checks = self.extra.checks.lock().unwrap_or_else(PoisonError::into_inner);
        if now_s > checks.tip_next_s {
            let is_looking = self.peers.config.opens && self.peers.is_active();
            let is_stale = is_looking && self.tip_may_be_stale(now_s);
            if is_stale {
                let age_s = now_s.saturating_sub(self.extra.tip_moved_s.load(Relaxed));
                tracing::info!(
                    "Potential stale tip detected, will try using extra outbound peer (last tip update: {age_s} seconds ago)"
                );
            }
            self.extra.full_relay.store(is_stale, Relaxed);
            checks.tip_next_s = now_s + STALE_CHECK_S;
        }
        if self.engine.blocks().has_young_tip() {
            self.extra.block_relay.store(true, Relaxed);
        }
    }

    /// True if the tip is three block intervals old and no block is in flight.
    fn tip_may_be_stale(&self, now_s: u64) -> bool {
        let moved = &self.extra.tip_moved_s;
        let _ = moved.compare_exchange(0, now_s, Relaxed, Relaxed);
        let patience_s = 3 * u64::from(self.engine.params().pow.target_spacing_s);
        moved.load(Relaxed) < now_s.saturating_sub(patience_s) && self.lock().in_flight.is_empty()
    }

    fn disconnect_extra_peers(&self) {
        let limits = self.peers.config.outbound_limits();
        let peers = self.peers.list();
        let of_kind = |kind| peers.iter().filter(move |peer: &&Arc<Peer>| peer.connection == kind);
        let ready = |kind| of_kind(kind).filter(|peer| peer.is_ready()).count();
        let kept = |kind| of_kind(kind).map(|peer| self.kept(peer)).collect::<Vec<_>>();
        if ready(Connection::BlockRelayOnly) > limits.block_relay
            && let Some(id) = extra_block_relay(&kept(Connection::BlockRelayOnly))
        {
            self.disconnect_extra(id, "block-relay-only", false);
        }
        if ready(Connection::FullRelay) > limits.full_relay {
            let mut on_network = BTreeMap::new();
            for peer in of_kind(Connection::FullRelay).chain(of_kind(Connection::Manual)) {
                *on_network.entry(peer.network()).or_default() += 1;
            }
            let chosen = extra_full_relay(&kept(Connection::FullRelay), &on_network);
            if chosen.is_some_and(|id| self.disconnect_extra(id, "outbound", true)) {
                // An extra peer has connected; no further one until the tip is stale again.
                self.extra.full_relay.store(false, Relaxed);
            }
        }
    }

    fn kept(&self, peer: &Peer) -> Kept {
        let state = self.with_state(peer, |state| (state.catch_up.is_protected, state.announced_s));
        let (is_protected, announced_s) = state.unwrap_or_default();
        let block_at_s = peer.traffic.block_at_s.load(Relaxed);
        Kept { id: peer.id, network: peer.network(), is_protected, announced_s, block_at_s }
    }

    /// Disconnects a peer unless it is new or has blocks in flight; true if it did.
    fn disconnect_extra(&self, id: u64, kind: &str, is_strict: bool) -> bool {
        let Some(peer) = self.peers.find(id) else { return false };
        let age_us = self.engine.clock().now_us().saturating_sub(peer.connected_us);
        let is_old = if is_strict { age_us > CONNECTED_US } else { age_us >= CONNECTED_US };
        let in_flight = self.with_state(&peer, |state| state.in_flight.len()).unwrap_or(0);
        if is_old && in_flight == 0 {
            net!("disconnecting extra {kind} peer={id}");
            peer.close();
            return true;
        }
        net!(
            "keeping {kind} peer={id} chosen for eviction (connect time: {}, blocks_in_flight: {in_flight})",
            peer.connected_us / 1_000_000
        );
        false
    }

    /// Checks the tip as if `seconds` had passed.
    pub(in crate::p2p) fn check_tip_after(&self, seconds: u64) {
        {
            let mut checks = self.extra.checks.lock().unwrap_or_else(PoisonError::into_inner);
            let earlier = checks.next.checked_sub(Duration::from_secs(seconds));
            checks.next = earlier.unwrap_or_else(Instant::now);
        }
        self.check_tip_if_due();
    }
}

/// Core `net_processing.cpp`, `CHAIN_SYNC_TIMEOUT`, `HEADERS_RESPONSE_TIME`.
const CATCH_UP_S: u64 = 20 * 60;
const ANSWER_S: u64 = 2 * 60;
/// `MAX_OUTBOUND_PEERS_TO_PROTECT_FROM_DISCONNECT`.
const PROTECTED_MAX: usize = 4;
/// `EXTRA_PEER_CHECK_INTERVAL`, `STALE_CHECK_INTERVAL`, `MINIMUM_CONNECT_TIME`.
const CHECK: Duration = Duration::from_secs(45);
const STALE_CHECK_S: u64 = 10 * 60;
const CONNECTED_US: u64 = 30_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn work(height: u8) -> Work {
        (BlockHash([height; 32]), [height; 32])
    }

    fn best(height: u8) -> [u8; 32] {
        work(height).1
    }

    #[test]
    fn peers_behind_are_asked_once_then_disconnected() {
        for known in [None, Some(best(4))] {
            let mut peer = CatchUp::default();
            assert_eq!(peer.step(100, known, work(5)), Step::Wait);
            assert_eq!(peer.step(1300, known, work(5)), Step::Wait);
            assert_eq!(peer.step(1301, known, work(6)), Step::Ask(work(5).0));
            assert_eq!(peer.step(1421, known, work(6)), Step::Wait);
            assert_eq!(peer.step(1422, known, work(6)), Step::Leave);
        }
    }

    #[test]
    fn peers_that_catch_up_stay() {
        let mut peer = CatchUp::default();
        assert_eq!(peer.step(0, Some(best(4)), work(5)), Step::Wait);
        assert_eq!(peer.step(1201, Some(best(4)), work(6)), Step::Ask(work(5).0));
        // It has our former tip; the new deadline is for the next one.
        assert_eq!(peer.step(1202, Some(best(5)), work(6)), Step::Wait);
        assert_eq!(peer.step(2402, Some(best(5)), work(6)), Step::Wait);
        assert_eq!(peer.step(2403, Some(best(5)), work(6)), Step::Ask(work(6).0));
        assert_eq!(peer.step(9999, Some(best(6)), work(6)), Step::Wait);
        assert_eq!(peer.due_s, None);
        let mut peer = CatchUp { is_protected: true, ..CatchUp::default() };
        for now_s in [0, 10_000, 20_000] {
            assert_eq!(peer.step(now_s, None, work(5)), Step::Wait);
        }
    }

    fn kept(id: u64, announced_s: u64, block_at_s: u64) -> Kept {
        Kept { id, network: NetworkKind::Ipv4, is_protected: false, announced_s, block_at_s }
    }

    #[test]
    fn evicts_the_youngest_block_relay_peer_without_blocks() {
        assert_eq!(extra_block_relay(&[]), None);
        assert_eq!(extra_block_relay(&[kept(1, 0, 5), kept(7, 0, 0), kept(3, 0, 0)]), Some(7));
        assert_eq!(extra_block_relay(&[kept(1, 0, 5), kept(7, 0, 4), kept(3, 0, 3)]), Some(3));
    }

    #[test]
    fn evicts_the_full_relay_peer_without_announcements() {
        let mut peers = [kept(1, 9, 0), kept(2, 3, 0), kept(3, 3, 0), kept(4, 5, 0)];
        let two = |count| BTreeMap::from([(NetworkKind::Ipv4, count), (NetworkKind::Onion, 1)]);
        assert_eq!(extra_full_relay(&peers, &two(4)), Some(3), "the younger of two");
        peers[2].is_protected = true;
        assert_eq!(extra_full_relay(&peers, &two(4)), Some(2));
        peers[1].network = NetworkKind::Onion;
        assert_eq!(extra_full_relay(&peers, &two(3)), Some(4), "the only one on its network stays");
        assert_eq!(extra_full_relay(&peers, &two(1)), None);
    }
}
