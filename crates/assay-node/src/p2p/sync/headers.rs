//! Header download: initially from one peer, from all near the tip.

use assay_engine::{HeadersError, WorkShown};
use assay_wire::p2p::{HEADERS_MAX, Locator, Message};
use assay_wire::{BlockHash, Header};

use super::presync::{Limits, Presync};
use super::{BlockSync, PeerSync};
use crate::p2p::faults;
use crate::p2p::peers::{Connection, Peer};
use crate::p2p::permissions::Permissions;

impl BlockSync {
    /// Starts header sync with a peer if it is selected.
    pub(super) fn start_headers(&self, peer: &Peer) {
        let mut table = self.lock();
        let now_ms = self.now_ms();
        let is_first = table.peers.values().all(|state| !state.has_started);
        let is_free = is_first || !self.is_any_bringing() && table.waits_for_no_headers(now_ms);
        let is_source = table.is_source(peer.id);
        let Some(state) = table.peers.get_mut(&peer.id) else { return };
        if state.has_started || !state.traits.serves_blocks {
            return;
        }
        let best = self.engine.chain().best_header();
        let is_near = u64::from(best.time) * 1000 + DAY_MS > now_ms;
        let is_next = is_first && is_source || is_free && state.traits.is_preferred;
        if !(is_next || is_near) {
            return;
        }
        let locator = self.engine.chain().locator_below_best_header();
        if ask_headers(peer, state, &locator, now_ms) {
            state.has_started = true;
            // Assumes at least a thousand headers per second.
            let missing = now_ms.saturating_sub(u64::from(best.time) * 1000) / SPACING_MS;
            state.headers_due_ms = Some(now_ms + HEADERS_PATIENCE_MS + missing);
            let height = best.height.saturating_sub(1);
            net!(
                "initial getheaders ({height}) to peer={} (startheight:{})",
                peer.id,
                peer.facts().start_height
            );
        }
    }

    pub(in crate::p2p) fn handle_block_announcements(&self, peer: &Peer, hashes: &[BlockHash]) {
        let mut table = self.lock();
        let table = &mut *table;
        let Some(state) = table.peers.get_mut(&peer.id) else { return };
        let mut newest = None;
        for hash in hashes {
            self.note_availability(peer, state, hash);
            if self.engine.chain().header_place(hash).is_none() && !table.in_flight.contains(hash) {
                newest = Some(*hash);
            }
        }
        let Some(newest) = newest else { return };
        // Before header sync, at most one peer is asked per announced block.
        let is_first = !state.has_asked_for_announced && table.last_announced != Some(newest);
        if !(state.has_started || is_first) {
            return;
        }
        let locator = self.engine.chain().locator(None);
        if ask_headers(peer, state, &locator, self.now_ms()) {
            let best = self.engine.chain().best_header();
            net!("getheaders ({}) {newest} to peer={}", best.height, peer.id);
        }
        if !state.has_started {
            state.has_asked_for_announced = true;
            table.last_announced = Some(newest);
        }
    }

    /// Handles headers, requested or not (Core `net_processing.cpp`, `ProcessHeadersMessage`).
    pub(in crate::p2p) fn handle_headers(&self, peer: &Peer, headers: &[Header]) {
        if headers.is_empty() {
            self.with_state(peer, |state| (state.asked_headers_ms, state.presync) = (None, None));
            return;
        }
        if let Some(fault) = self.header_fault(headers) {
            return self.peers.misbehaving(peer, fault);
        }
        let is_full = headers.len() == HEADERS_MAX;
        let continued = self.continue_presync(peer, headers);
        let (headers, has_shown_work, asks_itself) = match &continued {
            Some((released, is_going_on)) => (&released[..], true, *is_going_on),
            None => (headers, false, false),
        };
        let Some(last) = headers.last() else { return };
        let last_hash = last.hash();
        if self.engine.chain().header_place(&headers[0].prev_block).is_none() {
            return self.unconnected_headers(peer, headers[0], &last_hash);
        }
        self.with_state(peer, |state| state.asked_headers_ms = None);
        let is_known = self.engine.chain().header_place(&last_hash).is_some();
        let tip = self.engine.chain().tip().hash;
        let best = self.engine.chain().best_header().hash;
        let is_ours = is_known
            && [tip, best].iter().any(|upper| self.engine.chain().is_ancestor(&last_hash, upper));
        let is_trusted = is_ours || has_shown_work || peer.permissions.has(Permissions::NO_BAN);
        if !is_trusted && self.engine.chain().shows_work(headers) != Some(WorkShown::Yes) {
            return self.low_work_headers(peer, headers);
        }
        let best_before = best;
        let bringing = (!is_known).then(|| self.bring());
        match self.engine.blocks().take_headers(headers) {
            Ok(()) => {}
            Err(HeadersError::Refused(fault)) => {
                net!("{}", faults::described(&fault));
                return self.peers.punish(peer, &fault, "invalid header received", false);
            }
            Err(HeadersError::Failed(error)) => {
                tracing::error!("Headers of peer={} cannot be kept: {error}", peer.id);
                return;
            }
        }
        self.log_progress(&best_before);
        self.kept_headers(peer, is_full && !asks_itself, &last_hash);
        if bringing.is_some() && !is_full && self.engine.chain().is_initial_block_download() {
            // The peer has no more headers: ask the others at once for later ones.
            drop(bringing);
            self.round.ring();
        }
        if !is_known {
            self.note_announcement(peer);
        }
        self.protect_if_good(peer);
    }

    /// Continues a presync; returns the headers to store, and true if more were requested. `None` for headers outside of it.
    fn continue_presync(&self, peer: &Peer, headers: &[Header]) -> Option<(Vec<Header>, bool)> {
        let mut presync = self.with_state(peer, |state| state.presync.take())??;
        let is_full = headers.len() == HEADERS_MAX;
        let before = presync.height();
        let progress = match presync.take(headers, is_full, &self.engine.params().pow) {
            Ok(progress) => progress,
            Err(reason) => {
                net!("Initial headers sync aborted with peer={}: {reason}", peer.id);
                return None;
            }
        };
        if let Some(height) = presync.height() {
            tracing::info!("Pre-synchronizing blockheaders, height: {height}");
        } else if let Some(height) = before {
            net!(
                "Initial headers sync transition with peer={}: reached sufficient work after height={height}",
                peer.id
            );
        }
        let mut locator = vec![presync.last()];
        locator.extend(self.engine.chain().locator(Some(&presync.start())));
        self.with_state(peer, |state| {
            state.asked_headers_ms = None;
            if progress.wants_more {
                ask_headers(peer, state, &locator, self.now_ms());
                net!("more getheaders (from {}) to peer={}", locator[0], peer.id);
                state.presync = Some(presync);
            }
        });
        Some((progress.headers, progress.wants_more))
    }

    /// Logs header sync progress in IBD, if the best header changed.
    fn log_progress(&self, before: &BlockHash) {
        let best = self.engine.chain().best_header();
        if best.hash == *before || !self.engine.chain().is_initial_block_download() {
            return;
        }
        let missing_ms = self.now_ms().saturating_sub(u64::from(best.time) * 1000);
        let spacing_s = u64::from(self.engine.params().pow.target_spacing_s.max(1));
        let height = f64::from(best.height);
        let percent = 100.0 * height / (height + (missing_ms / 1000 / spacing_s) as f64);
        tracing::info!("Synchronizing blockheaders, height: {} (~{percent:.2}%)", best.height);
    }

    /// Checks proof of work and continuity, without other headers.
    fn header_fault(&self, headers: &[Header]) -> Option<&'static str> {
        if !headers.iter().all(|header| self.engine.chain().has_proof_of_work(header)) {
            return Some("header with invalid proof of work");
        }
        let is_chain = headers.windows(2).all(|pair| pair[1].prev_block == pair[0].hash());
        (!is_chain).then_some("non-continuous headers sequence")
    }

    fn unconnected_headers(&self, peer: &Peer, first: Header, last: &BlockHash) {
        let locator = self.engine.chain().locator(None);
        let best = self.engine.chain().best_header();
        self.with_state(peer, |state| {
            if ask_headers(peer, state, &locator, self.now_ms()) {
                net!("received header {}: missing prev block {}, sending getheaders ({}) to end (peer={})", first.hash(), first.prev_block, best.height, peer.id);
            }
            self.note_availability(peer, state, last);
        });
    }

    fn low_work_headers(&self, peer: &Peer, headers: &[Header]) {
        let start = self.engine.chain().branch_start(&headers[0].prev_block);
        if let Some(start) = start.filter(|_| headers.len() == HEADERS_MAX) {
            // More headers may follow, with enough total work.
            let (threshold, now_s) =
                (self.engine.chain().work_threshold(), self.engine.clock().now_s());
            let limits = Limits::of(self.engine.params().name);
            net!("Initial headers sync started with peer={}: height={}", peer.id, start.height);
            let presync = Presync::new(start, threshold, limits, now_s);
            self.with_state(peer, |state| state.presync = Some(presync));
            self.continue_presync(peer, headers);
            return;
        }
        let start = start.map_or(0, |start| start.height);
        net!(
            "Ignoring low-work chain (height={}) from peer={}",
            start as usize + headers.len(),
            peer.id
        );
    }

    fn kept_headers(&self, peer: &Peer, may_have_more: bool, last: &BlockHash) {
        let place = self.engine.chain().header_place(last);
        self.with_state(peer, |state| {
            if may_have_more {
                let locator = self.engine.chain().locator(Some(last));
                if ask_headers(peer, state, &locator, self.now_ms()) {
                    let height = place.map_or(0, |place| place.height);
                    net!(
                        "more getheaders ({height}) to end to peer={} (startheight:{})",
                        peer.id,
                        peer.facts().start_height
                    );
                }
            }
            self.note_availability(peer, state, last);
        });
        let is_going_on = self.with_state(peer, |state| state.presync.is_some()) == Some(true);
        if !may_have_more && !is_going_on && self.has_too_little(peer) {
            tracing::info!(
                "outbound peer headers chain has insufficient work, disconnecting peer={}",
                peer.id
            );
            return peer.close();
        }
        self.fetch_directly(peer, last);
    }

    /// True for an outbound peer whose chain has too little work during IBD.
    fn has_too_little(&self, peer: &Peer) -> bool {
        let is_chosen =
            matches!(peer.connection, Connection::FullRelay | Connection::BlockRelayOnly);
        is_chosen
            && self.engine.chain().is_initial_block_download()
            && self.with_state(peer, |state| {
                state.best.is_some_and(|(_, work)| work < self.engine.chain().minimum_work())
            }) == Some(true)
    }

    /// Records that the peer has the block `hash` (Core's `UpdateBlockAvailability`).
    pub(super) fn note_availability(&self, peer: &Peer, state: &mut PeerSync, hash: &BlockHash) {
        self.resolve_unknown(peer, state);
        if !self.note_known(peer, state, hash) {
            state.last_unknown = Some(*hash);
        }
    }

    /// Resolves the last unknown announcement, which may have become known.
    pub(super) fn resolve_unknown(&self, peer: &Peer, state: &mut PeerSync) {
        if let Some(hash) = state.last_unknown
            && self.note_known(peer, state, &hash)
        {
            state.last_unknown = None;
        }
    }

    fn note_known(&self, peer: &Peer, state: &mut PeerSync, hash: &BlockHash) -> bool {
        let Some(place) = self.engine.chain().header_place(hash) else { return false };
        if state.best.is_none_or(|(_, work)| place.chain_work >= work) {
            state.best = Some((*hash, place.chain_work));
            peer.with_known(|known| known.best = Some(*hash));
            // BIP130: request header announcements once the peer is on a chain with enough work.
            if !state.has_sent_sendheaders && place.chain_work > self.engine.chain().minimum_work()
            {
                state.has_sent_sendheaders = true;
                peer.send(&Message::SendHeaders);
            }
        }
        true
    }

    pub(super) fn with_state<T>(
        &self,
        peer: &Peer,
        with: impl FnOnce(&mut PeerSync) -> T,
    ) -> Option<T> {
        self.lock().peers.get_mut(&peer.id).map(with)
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.engine.clock().now_ms()
    }
}

/// Requests headers above `locator`, unless a request is outstanding.
pub(super) fn ask_headers(
    peer: &Peer,
    state: &mut PeerSync,
    locator: &[BlockHash],
    now_ms: u64,
) -> bool {
    if state.asked_headers_ms.is_some_and(|asked| now_ms < asked + HEADERS_RESPONSE_MS) {
        return false;
    }
    state.asked_headers_ms = Some(now_ms);
    let version = super::super::PROTOCOL_VERSION as u32;
    let locator = Locator { version, hashes: locator.into(), stop: BlockHash::ZERO };
    peer.send(&Message::GetHeaders(locator));
    true
}

impl super::Table {
    /// True if a peer may be asked for headers and blocks in IBD: outbound ones, or any if none exist or no block is in flight.
    pub(super) fn is_source(&self, id: u64) -> bool {
        let Some(state) = self.peers.get(&id) else { return false };
        let is_any_preferred = self.peers.values().any(|state| state.traits.is_preferred);
        let can_help = state.traits.serves_blocks && !state.traits.is_for_addresses;
        state.traits.is_preferred || can_help && (!is_any_preferred || self.in_flight.is_empty())
    }

    /// True if all outstanding header requests are complete or slow: then an outbound peer is asked next. Core
    /// waits 15 minutes for the first peer, which may be inbound.
    fn waits_for_no_headers(&self, now_ms: u64) -> bool {
        let is_late = |asked: u64| now_ms >= asked + HEADERS_SLOW_MS;
        self.peers
            .values()
            .filter(|state| state.has_started)
            .all(|state| state.asked_headers_ms.is_none_or(is_late))
    }
}

pub(super) const DAY_MS: u64 = 24 * 3_600_000;
const SPACING_MS: u64 = 600_000;
/// Core `net_processing.cpp`, `HEADERS_DOWNLOAD_TIMEOUT_BASE`; plus one millisecond per header.
const HEADERS_PATIENCE_MS: u64 = 15 * 60_000;
/// Age of a slow header request: the peer has none, or withholds them.
const HEADERS_SLOW_MS: u64 = 20_000;
/// Core `net_processing.cpp`, `HEADERS_RESPONSE_TIME`.
const HEADERS_RESPONSE_MS: u64 = 2 * 60_000;
