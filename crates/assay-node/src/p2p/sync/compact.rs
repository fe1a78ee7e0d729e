//! Compact block download (BIP152; Core `net_processing.cpp`, CMPCTBLOCK and BLOCKTXN): acceptance, requests for
//! missing transactions, and selection of high-bandwidth peers.

use std::sync::atomic::Ordering;

use assay_engine::{HeaderPlace, HeadersError, WorkShown};
use assay_wire::p2p::{BlockTxs, BlockTxsRequest, CompactBlock, Inventory, InventoryKind, Message};
use assay_wire::{BlockHash, Encoding};

use super::blocks::IN_FLIGHT_MAX;
use super::headers::ask_headers;
use super::in_flight::Rebuilding;
use super::{BlockSync, NODE_WITNESS, Table};
use crate::p2p::compact::{Partial, Unusable};
use crate::p2p::faults::{described, log_malformed};
use crate::p2p::peers::Peer;

#[derive(Clone, Copy)]
enum Plan {
    Nothing,
    /// Request the whole block: it is wanted, but the mempool will not help.
    AskWhole,
    /// Too far above the tip: only the header is useful.
    AsHeader,
    Rebuild(Turn),
    /// Enough peers have requests in flight: rebuild only if nothing is missing.
    RebuildIfWhole,
}

/// Position of a peer among those with a request for a block.
#[derive(Clone, Copy)]
struct Turn {
    is_first: bool,
    /// Number of requests, of any peer, before this one.
    asked: usize,
    is_chosen: bool,
}

impl BlockSync {
    pub(in crate::p2p) fn handle_send_compact(&self, peer: &Peer, announce: u8, version: u64) {
        if announce > 1 {
            return self.peers.misbehaving(peer, "invalid sendcmpct announce field");
        }
        if version == self.compact.version() {
            self.with_state(peer, |state| state.traits.gives_compact = true);
            peer.wants_compact.store(announce == 1, Ordering::Relaxed);
        }
    }

    /// Handles `cmpctblock`, requested or not.
    pub(in crate::p2p) fn handle_compact_block(&self, peer: &Peer, payload: &[u8]) {
        let id = peer.id;
        let ignored = |why: &str| {
            tracing::debug!(target: "cmpctblock", "peer={id} sent us a compact block {why}!");
        };
        if self.peers.config.blocks_only {
            return ignored("even though we are blocksonly");
        }
        if self.with_state(peer, |state| state.traits.gives_compact) != Some(true) {
            return ignored("despite never having sent us a SENDCMPCT");
        }
        let block = match CompactBlock::parse(payload, self.peers.encoding, self.compact.txs_max())
        {
            Ok(block) => block,
            Err(error) => return log_malformed("cmpctblock", payload.len(), &error, peer),
        };
        let hash = block.header.hash();
        match self.engine.chain().shows_work(&[block.header]) {
            Some(WorkShown::Yes) => {}
            Some(WorkShown::No) => {
                net!("Ignoring low-work compact block from peer {id}");
                return;
            }
            None => return self.ask_below(peer),
        }
        let is_new = self.engine.chain().header_place(&hash).is_none();
        let _bringing = is_new.then(|| self.bring());
        match self.engine.blocks().take_headers(&[block.header]) {
            Ok(()) => {}
            Err(HeadersError::Refused(fault)) => {
                net!("{}", described(&fault));
                return self.peers.punish(peer, &fault, "invalid header via cmpctblock", true);
            }
            Err(HeadersError::Failed(error)) => {
                tracing::error!("A header of peer={id} cannot be kept: {error}");
                return;
            }
        }
        let Some(place) = self.engine.chain().header_place(&hash) else { return };
        if is_new {
            let height = place.height;
            tracing::info!("Saw new cmpctblock header hash={hash} height={height} peer={id}");
        }
        let plan = self.plan_compact(peer, &place);
        if is_new {
            self.note_announcement(peer);
        }
        match plan {
            Plan::Nothing => {}
            Plan::AskWhole => self.ask_whole(peer, &hash),
            Plan::AsHeader => self.handle_headers(peer, &[block.header]),
            Plan::Rebuild(turn) => self.rebuild(peer, &block, hash, turn),
            Plan::RebuildIfWhole => {
                if let Ok(partial) = self.partial(&block)
                    && let Some(raw) = partial.fill(&[])
                {
                    self.block_rebuilt(peer, &hash, (raw, partial.known()));
                }
            }
        }
    }

    /// Requests the headers below a compact block without a known parent.
    fn ask_below(&self, peer: &Peer) {
        if !self.engine.chain().is_initial_block_download() {
            let locator = self.engine.chain().locator(None);
            self.with_state(peer, |state| ask_headers(peer, state, &locator, self.now_ms()));
        }
    }

    fn plan_compact(&self, peer: &Peer, place: &HeaderPlace) -> Plan {
        let tip = self.engine.chain().tip();
        let has_young_tip = self.engine.blocks().has_young_tip();
        let mut table = self.lock();
        let table = &mut *table;
        let Some(state) = table.peers.get_mut(&peer.id) else { return Plan::Nothing };
        self.note_availability(peer, state, &place.hash);
        if place.has_data {
            return Plan::Nothing;
        }
        let asked = table.in_flight.asked(&place.hash);
        let own = asked.iter().find(|asked| asked.peer == peer.id);
        let is_chosen = table.high_bandwidth.contains(&peer.id);
        if own.is_none() && !is_chosen {
            tracing::debug!(
                target: "cmpctblock",
                "peer={}, not marked as high-bandwidth, sent us an unsolicited compact block!",
                peer.id
            );
            return Plan::Nothing;
        }
        let ask_whole = if own.is_some() { Plan::AskWhole } else { Plan::Nothing };
        if place.chain_work <= tip.chain_work {
            return ask_whole;
        }
        if asked.is_empty() && !has_young_tip {
            return Plan::Nothing;
        }
        if place.height > tip.height + 2 {
            return if own.is_some() { Plan::AskWhole } else { Plan::AsHeader };
        }
        let has_room = asked.len() < ASKED_MAX && state.in_flight.len() < IN_FLIGHT_MAX;
        if own.is_none() && !has_room {
            return Plan::RebuildIfWhole;
        }
        if own.is_some_and(|own| own.rebuilding.is_some()) {
            net!("Peer sent us compact block we were already syncing!");
            return Plan::Nothing;
        }
        let is_first = asked.first().is_none_or(|first| first.peer == peer.id);
        let turn = Turn { is_first, asked: asked.len(), is_chosen };
        table.ask(peer.id, place.hash, place.height, self.now_ms());
        Plan::Rebuild(turn)
    }

    fn partial(&self, block: &CompactBlock<'_>) -> Result<Partial, Unusable> {
        Partial::new(block, |visit| self.engine.mempool().visit(visit), &self.compact.extra())
    }

    fn rebuild(&self, peer: &Peer, block: &CompactBlock<'_>, hash: BlockHash, turn: Turn) {
        let partial = match self.partial(block) {
            Ok(partial) => partial,
            Err(Unusable::Malformed) => {
                self.forget_asked(&hash, peer);
                return self.peers.misbehaving(peer, "invalid compact block");
            }
            Err(Unusable::Ambiguous) if turn.is_first => return self.ask_whole(peer, &hash),
            Err(Unusable::Ambiguous) => return self.forget_asked(&hash, peer),
        };
        let indexes = partial.missing();
        if !(indexes.is_empty() || turn.is_first || self.may_ask_too(peer, &hash, turn)) {
            return self.forget_asked(&hash, peer);
        }
        if let Some(asked) = self.lock().in_flight.of_peer(&hash, peer.id) {
            asked.rebuilding = Some(Rebuilding::Open(partial));
        } else {
            // Another peer has delivered it in the meantime.
            return;
        }
        if indexes.is_empty() {
            return self.fill(peer, &hash, &[]);
        }
        let mut payload = Vec::new();
        BlockTxsRequest { block: hash, indexes }.encode(&mut payload);
        peer.send(&Message::GetBlockTxs(&payload));
    }

    /// True if a peer may be asked for missing transactions, too: a high-bandwidth peer, for the last slot an outbound one.
    fn may_ask_too(&self, peer: &Peer, block: &BlockHash, turn: Turn) -> bool {
        if !turn.is_chosen {
            return false;
        }
        let is_outbound =
            |id: u64| self.peers.find(id).is_some_and(|peer| !peer.connection.is_inbound());
        let asked: Vec<u64> = {
            let table = self.lock();
            table.in_flight.asked(block).iter().map(|asked| asked.peer).collect()
        };
        !peer.connection.is_inbound()
            || turn.asked < ASKED_MAX - 1
            || asked.into_iter().any(is_outbound)
    }

    pub(in crate::p2p) fn handle_block_txs(&self, peer: &Peer, payload: &[u8]) {
        match BlockTxs::parse(payload, self.peers.encoding) {
            Ok(txs) => self.fill(peer, &txs.block, &txs.txs),
            Err(error) => log_malformed("blocktxn", payload.len(), &error, peer),
        }
    }

    fn fill(&self, peer: &Peer, hash: &BlockHash, txs: &[&[u8]]) {
        let id = peer.id;
        let (rebuilding, is_first) = {
            let mut table = self.lock();
            let asked = table.in_flight.asked(hash);
            let is_first = asked.first().is_some_and(|first| first.peer == id);
            let own = table.in_flight.of_peer(hash, id);
            let rebuilding = own.and_then(|own| own.rebuilding.as_mut());
            // There is no second attempt.
            (rebuilding.map(|state| std::mem::replace(state, Rebuilding::Failed)), is_first)
        };
        let partial = match rebuilding {
            Some(Rebuilding::Open(partial)) => partial,
            Some(Rebuilding::Failed) => {
                self.forget_asked(hash, peer);
                let fault = "previous compact block reconstruction attempt failed";
                return self.peers.misbehaving(peer, fault);
            }
            None => {
                net!("Peer {id} sent us block transactions for block we weren't expecting");
                return;
            }
        };
        let Some(raw) = partial.fill(txs) else {
            self.forget_asked(hash, peer);
            let fault = "invalid compact block/non-matching block transactions";
            return self.peers.misbehaving(peer, fault);
        };
        self.compact.note_lacked(*hash, partial.missing());
        if self.block_rebuilt(peer, hash, (raw, partial.known())) {
            return;
        }
        if is_first {
            // Most likely a short txid collision.
            self.ask_whole(peer, hash);
        } else {
            self.forget_asked(hash, peer);
            net!(
                "Peer {id} sent us a compact block but it failed to reconstruct, waiting on first download to complete"
            );
        }
    }

    fn ask_whole(&self, peer: &Peer, hash: &BlockHash) {
        let has_witnesses = peer.facts().services & NODE_WITNESS != 0;
        let is_segwit = self.peers.encoding == Encoding::Segwit && has_witnesses;
        let kind = if is_segwit { InventoryKind::WITNESS_BLOCK } else { InventoryKind::BLOCK };
        let entries = [Inventory { kind, hash: hash.0 }];
        peer.send(&Message::GetData(entries[..].into()));
    }

    fn forget_asked(&self, block: &BlockHash, peer: &Peer) {
        self.lock().forget_asked(block, peer.id, self.now_ms());
    }

    /// Makes the source of the new tip a high-bandwidth peer (Core's `MaybeSetPeerAsAnnouncingHeaderAndIDs`).
    pub(super) fn reward_source(&self, tip: &BlockHash) {
        if self.peers.config.blocks_only || self.engine.chain().is_initial_block_download() {
            return;
        }
        let is_inbound = |id: u64| self.peers.find(id).map(|peer| peer.connection.is_inbound());
        let changed = {
            let mut table = self.lock();
            let Some(source) = table.sources.of(tip).map(|source| source.peer) else { return };
            let gives = table.peers.get(&source).is_some_and(|state| state.traits.gives_compact);
            if !gives || !table.in_flight.is_alone(tip) {
                return;
            }
            table.choose(source, is_inbound)
        };
        for (id, announce) in changed {
            if let Some(peer) = self.peers.find(id) {
                let version = self.compact.version();
                peer.send(&Message::SendCompact { announce, version });
            }
        }
    }
}

impl Table {
    /// Adds a high-bandwidth peer, up to three. Returns the peers whose state changes, with 1 for selected and 0 for deselected.
    fn choose(&mut self, peer: u64, is_inbound: impl Fn(u64) -> Option<bool>) -> Vec<(u64, u8)> {
        let chosen = &mut self.high_bandwidth;
        if let Some(at) = chosen.iter().position(|other| *other == peer) {
            chosen.remove(at);
            chosen.push_back(peer);
            return Vec::new();
        }
        let is_outbound = |id: &u64| is_inbound(*id) == Some(false);
        // An inbound peer does not displace the only outbound one.
        let outbound = chosen.iter().filter(|id| is_outbound(id)).count();
        if is_inbound(peer) == Some(true)
            && chosen.len() >= CHOSEN_MAX
            && outbound == 1
            && chosen.front().is_some_and(is_outbound)
        {
            chosen.swap(0, 1);
        }
        chosen.push_back(peer);
        let dropped = if chosen.len() > CHOSEN_MAX { chosen.pop_front() } else { None };
        [(peer, 1)].into_iter().chain(dropped.map(|dropped| (dropped, 0))).collect()
    }
}

/// Maximum number of peers with a request for the same block (Core `MAX_CMPCTBLOCKS_INFLIGHT_PER_BLOCK`).
const ASKED_MAX: usize = 3;
/// Maximum number of high-bandwidth peers (BIP152).
const CHOSEN_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selects_three_peers_and_keeps_an_outbound_one() {
        let mut table = Table::default();
        // Even ids are inbound.
        let is_inbound = |id: u64| Some(id.is_multiple_of(2));
        let mut choose = |peer| {
            let outcome = table.choose(peer, is_inbound);
            (outcome, table.high_bandwidth.iter().copied().collect::<Vec<_>>())
        };
        assert_eq!(choose(2), (vec![(2, 1)], vec![2]));
        assert_eq!(choose(4), (vec![(4, 1)], vec![2, 4]));
        assert_eq!(choose(2), (vec![], vec![4, 2]));
        assert_eq!(choose(1), (vec![(1, 1)], vec![4, 2, 1]));
        assert_eq!(choose(6), (vec![(6, 1), (4, 0)], vec![2, 1, 6]));
        assert_eq!(choose(8), (vec![(8, 1), (2, 0)], vec![1, 6, 8]));
        assert_eq!(choose(10), (vec![(10, 1), (6, 0)], vec![1, 8, 10]));
        assert_eq!(choose(3), (vec![(3, 1), (1, 0)], vec![8, 10, 3]));
    }
}
