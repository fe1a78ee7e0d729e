//! Blocks: sixteen at once from each peer, up to 1,024 above the lowest that is missing; whoever keeps all others waiting is left.

use assay_engine::{FetchWish, Taken, Wanted, WorkShown};
use assay_wire::p2p::{Inventory, InventoryKind, Message};
use assay_wire::{BlockHash, Encoding, Header};

use super::super::peers::Peer;
use super::super::permissions::Permissions;
use super::headers::DAY_MS;
use super::{PeerSync, Shared, Table, UnderWay};

impl Shared {
    /// Asks a peer for blocks, if there are any that it should send.
    pub(super) fn fetch_blocks(&self, peer: &Peer) {
        let mut table = self.sync.lock();
        let is_source = table.is_source(peer.id);
        let is_behind = self.engine.is_initial_block_download();
        if !is_behind && self.sync.is_any_bringing() {
            return;
        }
        let Table { peers, under_way, .. } = &mut *table;
        let Some(state) = peers.get_mut(&peer.id) else { return };
        self.resolve_unknown(peer, state);
        let traits = state.traits;
        let may_ask = traits.serves_blocks && (is_source && !traits.is_limited || !is_behind);
        let room = UNDER_WAY_MAX.saturating_sub(state.under_way.len());
        let Some((best, _)) = state.best.filter(|_| may_ask && room > 0) else { return };
        if !self.serves_witnesses_where_needed(state) {
            return;
        }
        let wish = FetchWish { best, last_common: state.last_common, count: room, window: WINDOW };
        let plan = self.engine.plan_fetch(&wish, |hash| under_way.contains_key(hash));
        state.last_common = plan.last_common;
        let is_idle = state.under_way.is_empty();
        if !plan.blocks.is_empty() {
            self.request(peer, &mut table, &plan.blocks);
        } else if let Some(held_up_by) = plan.held_up_by.filter(|_| is_idle) {
            self.note_stall(&mut table, &held_up_by, peer.id);
        }
    }

    /// Blocks of a branch that a peer has just shown, without waiting for the next round.
    pub(super) fn fetch_directly(&self, peer: &Peer, last: &BlockHash) {
        let mut table = self.sync.lock();
        let Table { peers, under_way, .. } = &mut *table;
        let Some(state) = peers.get(&peer.id) else { return };
        let room = UNDER_WAY_MAX.saturating_sub(state.under_way.len());
        // Who shows a header has its block, whatever it serves else.
        if !self.serves_witnesses_where_needed(state) {
            return;
        }
        let is_under_way = |hash: &BlockHash| under_way.contains_key(hash);
        let mut wanted = self.engine.plan_direct_fetch(last, UNDER_WAY_MAX, is_under_way);
        wanted.truncate(room);
        if let Some(highest) = wanted.last() {
            let (hash, height) = (highest.hash, highest.height);
            self.request(peer, &mut table, &wanted);
            if wanted.len() > 1 {
                tracing::debug!(
                    target: "net",
                    "Downloading blocks toward {hash} ({height}) via headers direct fetch"
                );
            }
        }
    }

    fn serves_witnesses_where_needed(&self, state: &PeerSync) -> bool {
        let next = self.engine.tip().height + 1;
        state.traits.serves_witnesses || !self.engine.params().segwit_active(next)
    }

    fn request(&self, peer: &Peer, table: &mut Table, wanted: &[Wanted]) {
        let Table { peers, under_way, .. } = table;
        let Some(state) = peers.get_mut(&peer.id) else { return };
        let with_witnesses = self.encoding == Encoding::Segwit && state.traits.serves_witnesses;
        let kind = if with_witnesses { InventoryKind::WITNESS_BLOCK } else { InventoryKind::BLOCK };
        if state.under_way.is_empty() {
            state.downloading_since_ms = self.now_ms();
        }
        let mut entries = Vec::with_capacity(wanted.len());
        for block in wanted {
            under_way.insert(block.hash, UnderWay { peer: peer.id, height: block.height });
            state.under_way.push_back(block.hash);
            entries.push(Inventory { kind, hash: block.hash.0 });
            tracing::debug!(
                target: "net",
                "Requesting block {} ({}) peer={}", block.hash, block.height, peer.id
            );
        }
        peer.send(&Message::GetData(entries[..].into()));
    }

    /// A block has come, or will not come, from this peer.
    fn no_longer_under_way(&self, table: &mut Table, peer: &Peer, hash: &BlockHash) {
        let is_his = table.under_way.get(hash).is_some_and(|block| block.peer == peer.id);
        if !is_his {
            return;
        }
        table.under_way.remove(hash);
        if let Some(state) = table.peers.get_mut(&peer.id) {
            if state.under_way.front() == Some(hash) {
                state.downloading_since_ms = self.now_ms();
            }
            state.under_way.retain(|other| other != hash);
            state.stalling_since_ms = None;
        }
    }

    /// A block from a peer, asked for or not. Returns whether it is to be connected now.
    pub(in super::super) fn block_came(&self, peer: &Peer, raw: &[u8]) {
        let Some(head) = raw.first_chunk::<{ Header::SIZE }>() else { return };
        let header = Header::parse(head);
        let hash = header.hash();
        tracing::debug!(target: "net", "received block {hash} peer={}", peer.id);
        let was_requested = {
            let mut table = self.sync.lock();
            table.sources.note(hash, peer.id);
            table.under_way.contains_key(&hash)
        };
        // Without its parent it is refused for that.
        let shown = self.engine.shows_work(&[header]).unwrap_or(WorkShown::Yes);
        let taken = self.engine.take_block(raw.to_vec(), was_requested, shown);
        // Not before it is archived: another peer would be asked for it.
        self.no_longer_under_way(&mut self.sync.lock(), peer, &hash);
        match taken {
            Taken::Kept(_) => {
                peer.traffic.note_block(self.now_ms() / 1000);
                self.sync.connector().kept();
                if !self.engine.is_initial_block_download() {
                    self.sync.connector().wait(&self.engine);
                }
            }
            Taken::Passed(_) => {}
            Taken::Refused(fault) => {
                tracing::debug!(target: "net", "{}", super::faults::described(&fault));
                self.punish(peer, &fault, "");
            }
            Taken::Undecodable(error) => super::faults::log_malformed("block", &error, peer),
            Taken::Failed(error) => tracing::error!("Block {hash} cannot be kept: {error}"),
        }
    }

    /// The first block under way keeps all the rest waiting: its peer has seconds to send it.
    fn note_stall(&self, table: &mut Table, held_up_by: &BlockHash, waiting: u64) {
        let Some(staller) = table.under_way.get(held_up_by).map(|block| block.peer) else { return };
        if staller == waiting {
            return;
        }
        if let Some(state) = table.peers.get_mut(&staller)
            && state.stalling_since_ms.is_none()
        {
            state.stalling_since_ms = Some(self.now_ms());
            tracing::debug!(target: "net", "Stall started peer={staller}");
        }
    }

    /// So many blocks have been connected: the patience with one peer that keeps the others waiting goes back to its least
    /// (Core `net_processing.cpp`, `BlockConnected`).
    pub(super) fn connected(&self, blocks: u32) {
        let mut table = self.sync.lock();
        for _ in 0..blocks {
            let before_ms = table.stall_patience_ms;
            if before_ms <= STALL_LEAST_MS {
                return;
            }
            // Whole seconds, as Core keeps it.
            let seconds = before_ms * 85 / 100_000;
            table.stall_patience_ms = (seconds * 1000).max(STALL_LEAST_MS);
            let seconds = table.stall_patience_ms / 1000;
            tracing::debug!(target: "net", "Decreased stalling timeout to {seconds} seconds");
        }
    }

    /// Leaves a peer that keeps us waiting (Core `net_processing.cpp`, `SendMessages`).
    pub(super) fn leave_if_late(&self, peer: &Peer) {
        let now_ms = self.now_ms();
        let mut table = self.sync.lock();
        let loading = table.peers.values().filter(|state| !state.under_way.is_empty()).count();
        let patience_ms = table.stall_patience_ms.max(STALL_LEAST_MS);
        let Some(state) = table.peers.get(&peer.id) else { return };
        if state.stalling_since_ms.is_some_and(|since| now_ms > since + patience_ms) {
            // It may be us who are slow: the next one gets longer.
            let longer_ms = (2 * patience_ms).min(STALL_MOST_MS);
            table.stall_patience_ms = longer_ms;
            if longer_ms != patience_ms {
                let seconds = longer_ms / 1000;
                tracing::debug!(
                    target: "net", "Increased stalling timeout temporarily to {seconds} seconds"
                );
            }
            tracing::info!("Peer is stalling block download, disconnecting peer={}", peer.id);
            return peer.close();
        }
        let others = loading.saturating_sub(1) as u64;
        let spacing_ms = u64::from(self.engine.params().pow.target_spacing_s) * 1000;
        let block_ms = spacing_ms + others * spacing_ms / 2;
        if let Some(first) = state.under_way.front()
            && now_ms > state.downloading_since_ms + block_ms
        {
            tracing::info!("Timeout downloading block {first}, disconnecting peer={}", peer.id);
            return peer.close();
        }
        let Some(due_ms) = state.headers_due_ms.filter(|_| state.has_started) else { return };
        if u64::from(self.engine.best_header().time) * 1000 + DAY_MS > now_ms {
            // Caught up with: no longer a concern.
            if let Some(state) = table.peers.get_mut(&peer.id) {
                state.headers_due_ms = None;
            }
        } else if now_ms > due_ms {
            headers_are_late(peer, &mut table);
        }
    }
}

fn headers_are_late(peer: &Peer, table: &mut Table) {
    let is_preferred = |state: &&PeerSync| state.traits.is_preferred;
    let preferred = table.peers.values().filter(is_preferred).count();
    let started = table.peers.values().filter(|state| state.has_started).count();
    let Some(state) = table.peers.get_mut(&peer.id) else { return };
    // Without another source it is better than nothing, and with one it does no harm.
    if started != 1 || preferred <= usize::from(state.traits.is_preferred) {
        return;
    }
    if peer.permissions.has(Permissions::NO_BAN) {
        tracing::info!(
            "Timeout downloading headers from noban peer, not disconnecting peer={}",
            peer.id
        );
        // Another is asked; this one may send what it has later.
        (state.has_started, state.asked_headers_ms, state.headers_due_ms) = (false, None, None);
    } else {
        tracing::info!("Timeout downloading headers, disconnecting peer={}", peer.id);
        peer.close();
    }
}

/// Core `net_processing.cpp`, `MAX_BLOCKS_IN_TRANSIT_PER_PEER`.
const UNDER_WAY_MAX: usize = 16;
/// Core `net_processing.cpp`, `BLOCK_DOWNLOAD_WINDOW`.
const WINDOW: u32 = 1024;
/// Core `net_processing.cpp`, `BLOCK_STALLING_TIMEOUT_DEFAULT` and `BLOCK_STALLING_TIMEOUT_MAX`.
const STALL_LEAST_MS: u64 = 2_000;
const STALL_MOST_MS: u64 = 64_000;
