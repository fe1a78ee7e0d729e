//! Block download: 16 in flight per peer, in IBD as many as a peer sends in a short time, within 1,024 blocks of
//! the lowest missing one. A peer that stalls the window is disconnected.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use assay_engine::{
    BlockFault, BlockOffer, FaultKind, FetchWish, HeaderPlace, Taken, TxIds, Wanted, WorkShown,
};
use assay_wire::p2p::{Inventory, InventoryKind, Message};
use assay_wire::{BlockHash, Encoding, Header};

use super::headers::DAY_MS;
use super::in_flight::Asked;
use super::{BlockSync, PeerSync, Source, Table};
use crate::p2p::faults;
use crate::p2p::peers::Peer;
use crate::p2p::permissions::Permissions;

/// Failure of `getblockfrompeer`, in Core's wording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("Peer does not exist")]
    NoPeer,
    #[error("Peer not fully connected")]
    NotReady,
    #[error("Pre-SegWit peer")]
    WithoutWitness,
}

impl BlockSync {
    /// Requests blocks from a peer, if it has any that are due.
    pub(super) fn fetch_blocks(&self, peer: &Peer) {
        let mut table = self.lock();
        let is_source = table.is_source(peer.id);
        let is_behind = self.engine.chain().is_initial_block_download();
        if !is_behind && self.is_any_bringing() {
            return;
        }
        let now_ms = self.now_ms();
        table.look_at(peer, now_ms);
        let late = if is_behind { table.late_peers(now_ms) } else { Vec::new() };
        let most = if is_behind { table.blocks_at_once(peer.id) } else { IN_FLIGHT_MAX };
        let has_another = is_behind && table.has_another_source(peer.id);
        let has_prompt = table.has_prompt_source(&late, now_ms);
        let far_back = if is_behind { table.far_back(peer.id) } else { HashSet::new() };
        let stride = if is_behind { table.stride(peer.id) } else { 1 };
        let Table { peers, in_flight, .. } = &mut *table;
        let Some(state) = peers.get_mut(&peer.id) else { return };
        self.resolve_unknown(peer, state);
        let traits = state.traits;
        let may_ask = traits.serves_blocks && (is_source && !traits.is_limited || !is_behind);
        let room = most.saturating_sub(state.still_to_come());
        let is_late = late.contains(&peer.id) || has_another && state.pace.rests(now_ms);
        let Some((best, _)) = state.best.filter(|_| may_ask && room > 0) else { return };
        // A slow peer only gets a block that is not urgent.
        let is_tried = has_another && state.pace.is_slow();
        if !self.serves_witnesses_where_needed(state) {
            return;
        }
        let wish = FetchWish {
            best,
            last_common: state.last_common,
            count: if is_tried { IN_FLIGHT_MAX } else { room.saturating_mul(stride) },
            window: WINDOW,
            depth_max: traits.is_limited.then_some(LIMITED_DEPTH),
        };
        // Blocks requested only from late peers are also requested from this one, unless it is late itself: then it
        // waits, which reveals the stalling peer.
        let is_pending =
            |asked: &Asked| is_late || asked.peer == peer.id || !late.contains(&asked.peer);
        let blocks = self.engine.blocks();
        let mut plan =
            blocks.plan_fetch(&wish, |hash| in_flight.asked(hash).iter().any(is_pending));
        if plan.blocks.is_empty() && !far_back.is_empty() && !is_late {
            // No other blocks are available: download a block in flight elsewhere.
            let is_soon = |hash: &BlockHash, asked: &Asked| {
                is_pending(asked) && !far_back.contains(&(asked.peer, *hash))
            };
            plan.blocks = blocks
                .plan_fetch(&wish, |hash| {
                    in_flight.asked(hash).iter().any(|asked| is_soon(hash, asked))
                })
                .blocks;
        }
        if stride > 1 {
            plan.blocks = plan.blocks.into_iter().step_by(stride).take(room).collect();
        } else if is_tried {
            plan.blocks.drain(..plan.blocks.len().saturating_sub(room));
        }
        state.last_common = plan.last_common;
        // The window has moved: the next check determines the stalling peer.
        let has_moved = plan.last_common != wish.last_common;
        // Only blocks first requested from this peer count as outstanding.
        let is_own =
            |block: &BlockHash| in_flight.asked(block).first().is_some_and(|a| a.peer == peer.id);
        let is_idle = !state.in_flight.iter().any(is_own);
        let left = room.saturating_sub(plan.blocks.len());
        // Blocks below a snapshot have lower priority than those at the tip.
        let historical = if left == 0 || is_late || is_tried || traits.is_limited {
            Vec::new()
        } else {
            let wish = FetchWish { count: left, ..wish };
            blocks.plan_historical(&wish, |hash| in_flight.contains(hash))
        };
        if !plan.blocks.is_empty() || !historical.is_empty() {
            // For a late peer these are unrequested blocks, which it gets only without a prompt peer.
            if !is_late || !has_prompt {
                plan.blocks.extend(historical);
                self.request(peer, &mut table, &plan.blocks, false);
            }
        } else if let Some(held_up_by) = plan.held_up_by.filter(|_| is_idle && !has_moved) {
            self.note_stall(&mut table, &held_up_by, peer.id);
        }
    }

    /// Requests blocks of a newly announced branch at once.
    pub(super) fn fetch_directly(&self, peer: &Peer, last: &BlockHash) {
        let mut table = self.lock();
        let Table { peers, in_flight, .. } = &mut *table;
        let Some(state) = peers.get(&peer.id) else { return };
        let room = IN_FLIGHT_MAX.saturating_sub(state.in_flight.len());
        // A peer that announces a header has its block, independent of its services.
        if !self.serves_witnesses_where_needed(state) {
            return;
        }
        let is_under_way = |hash: &BlockHash| in_flight.contains(hash);
        let mut wanted = self.engine.blocks().plan_direct_fetch(last, IN_FLIGHT_MAX, is_under_way);
        wanted.truncate(room);
        if let Some(highest) = wanted.last() {
            let (hash, height) = (highest.hash, highest.height);
            let place = |hash: &BlockHash| self.engine.chain().header_place(hash);
            let is_valid = |hash: &BlockHash| place(hash).is_some_and(|place| place.is_valid);
            let builds_on_valid = place(last).is_some_and(|last| is_valid(&last.parent));
            self.request(peer, &mut table, &wanted, builds_on_valid);
            if wanted.len() > 1 {
                net!("Downloading blocks toward {hash} ({height}) via headers direct fetch");
            }
        }
    }

    /// Requests one block from a peer on demand (Core `net_processing.cpp`, `FetchBlock`).
    pub(crate) fn fetch_block(&self, id: u64, block: &HeaderPlace) -> Result<(), FetchError> {
        let peer = self.peers.list().into_iter().find(|peer| peer.id == id);
        let peer = peer.ok_or(FetchError::NoPeer)?;
        let mut table = self.lock();
        let state = table.peers.get(&id).ok_or(FetchError::NotReady)?;
        if self.peers.encoding == Encoding::Segwit && !state.traits.serves_witnesses {
            return Err(FetchError::WithoutWitness);
        }
        // Other peers need not send it.
        table.forget_block(&block.hash, self.now_ms());
        let wanted = Wanted { hash: block.hash, height: block.height };
        self.request(&peer, &mut table, &[wanted], false);
        Ok(())
    }

    fn serves_witnesses_where_needed(&self, state: &PeerSync) -> bool {
        let next = self.engine.chain().tip().height + 1;
        state.traits.serves_witnesses || !self.engine.params().segwit_active(next)
    }

    /// Requests blocks; a single one on top of a valid block as a compact block if supported.
    fn request(&self, peer: &Peer, table: &mut Table, wanted: &[Wanted], is_new_tip: bool) {
        let Some(state) = table.peers.get(&peer.id) else { return };
        let with_witnesses =
            self.peers.encoding == Encoding::Segwit && state.traits.serves_witnesses;
        let gives_compact = state.traits.gives_compact;
        let now_ms = self.now_ms();
        for block in wanted {
            table.ask(peer.id, block.hash, block.height, now_ms);
        }
        let is_only_one = wanted.len() == 1 && table.in_flight.count() == 1;
        let kind = if is_new_tip && gives_compact && is_only_one && !self.peers.config.blocks_only {
            InventoryKind::COMPACT_BLOCK
        } else if with_witnesses {
            InventoryKind::WITNESS_BLOCK
        } else {
            InventoryKind::BLOCK
        };
        let mut entries = Vec::with_capacity(wanted.len());
        for block in wanted {
            entries.push(Inventory { kind, hash: block.hash.0 });
            net!("Requesting block {} ({}) peer={}", block.hash, block.height, peer.id);
        }
        peer.send(&Message::GetData(entries[..].into()));
    }

    /// Handles a block, requested or not.
    pub(in crate::p2p) fn handle_block(&self, peer: &Peer, raw: &[u8]) {
        let Some(head) = raw.first_chunk::<{ Header::SIZE }>() else { return };
        let header = Header::parse(head);
        let hash = header.hash();
        net!("received block {hash} peer={}", peer.id);
        let (is_source, was_requested) = {
            let mut table = self.lock();
            let source = Source { peer: peer.id, is_compact: false };
            let is_source = table.sources.note(hash, source);
            if let Some(state) = table.peers.get_mut(&peer.id) {
                state.in_hand = Some(hash);
            }
            (is_source, table.in_flight.contains(&hash))
        };
        if was_requested && self.engine.chain().is_initial_block_download() {
            // Keep the link busy while the block is validated, which takes long if scripts use all cores.
            self.fetch_blocks(peer);
        }
        // Without its parent the block is rejected for that.
        let shown = self.engine.chain().shows_work(&[header]).unwrap_or(WorkShown::Yes);
        let taken = self.engine.blocks().take(BlockOffer {
            raw: raw.to_vec(),
            was_requested,
            shown,
            known: Vec::new(),
            on_fresh: &|block| self.compact.pass_on(block),
        });
        self.keep_source(&hash, is_source, &taken);
        if let Taken::Undecodable(error) = &taken {
            faults::log_malformed("block", raw.len(), error, peer);
        }
        if let Some(fault) = self.block_taken(peer, &hash, taken) {
            self.peers.punish(peer, &fault, "", false);
        }
    }

    /// Submits a block reconstructed from a compact one; `false` if it does not match its header. Its work has been
    /// checked and exceeds the tip's: it counts as requested.
    pub(super) fn block_rebuilt(
        &self,
        peer: &Peer,
        hash: &BlockHash,
        (raw, known): (Vec<u8>, Vec<Option<TxIds>>),
    ) -> bool {
        let source = Source { peer: peer.id, is_compact: true };
        let is_source = self.lock().sources.note(*hash, source);
        let taken = self.engine.blocks().take(BlockOffer {
            raw,
            was_requested: true,
            shown: WorkShown::Yes,
            known,
            on_fresh: &|block| self.compact.pass_on(block),
        });
        self.keep_source(hash, is_source, &taken);
        let is_mutated =
            matches!(&taken, Taken::Refused(fault) if fault.kind == FaultKind::Mutated);
        if is_mutated || matches!(taken, Taken::Undecodable(_)) {
            return false;
        }
        if let Some(fault) = self.block_taken(peer, hash, taken) {
            self.peers.punish(peer, &fault, "", true);
        }
        true
    }

    /// Keeps the peer as source only if the block was stored: other bytes may be the valid block.
    fn keep_source(&self, hash: &BlockHash, is_source: bool, taken: &Taken) {
        if is_source && !matches!(taken, Taken::Kept(_)) {
            self.lock().sources.forget(hash);
        }
    }

    /// Processes the result of a received block; returns the fault.
    fn block_taken(&self, peer: &Peer, hash: &BlockHash, taken: Taken) -> Option<BlockFault> {
        {
            // After archiving, or it would be requested from another peer.
            let mut table = self.lock();
            table.look_at(peer, self.now_ms());
            match &taken {
                Taken::Kept(_) | Taken::Passed(_) => table.arrived(hash, peer.id, self.now_ms()),
                _ => table.forget_asked(hash, peer.id, self.now_ms()),
            }
        }
        match taken {
            Taken::Kept(_) => {
                peer.traffic.note_block(self.now_ms() / 1000);
                let kept = self.connector.kept();
                self.with_state(peer, |state| state.kept_last = kept);
                if !self.engine.chain().is_initial_block_download() {
                    self.connector.wait(&self.engine, kept);
                }
            }
            Taken::Passed(_) | Taken::Undecodable(_) => {}
            Taken::Refused(fault) => {
                net!("{}", faults::described(&fault));
                tracing::debug!(target: "validation", "AcceptBlock FAILED ({})", fault.reason);
                return Some(fault);
            }
            Taken::Failed(error) => tracing::error!("Block {hash} cannot be kept: {error}"),
        }
        None
    }

    /// Waits until the peer's blocks are validated.
    pub(in crate::p2p) fn wait_for_validations(&self, peer: &Peer) {
        let kept = self.with_state(peer, |state| state.kept_last);
        self.connector.wait(&self.engine, kept.unwrap_or_default());
    }

    /// The first block in flight stalls the window: its peer has seconds to send it.
    fn note_stall(&self, table: &mut Table, held_up_by: &BlockHash, waiting: u64) {
        let Some(staller) = table.in_flight.asked(held_up_by).first().map(|block| block.peer)
        else {
            return;
        };
        if staller == waiting {
            return;
        }
        if let Some(state) = table.peers.get_mut(&staller)
            && state.stalling_since_ms.is_none()
        {
            state.stalling_since_ms = Some(self.now_ms());
            net!("Stall started peer={staller}");
        }
    }

    /// After `blocks` connected blocks, the stall timeout decays to its minimum (Core `net_processing.cpp`, `BlockConnected`).
    pub(super) fn connected(&self, blocks: u32) {
        let mut table = self.lock();
        for _ in 0..blocks {
            let before_ms = table.stall_patience_ms;
            if before_ms <= STALL_LEAST_MS {
                return;
            }
            // Whole seconds, as in Core.
            let seconds = before_ms * 85 / 100_000;
            table.stall_patience_ms = (seconds * 1000).max(STALL_LEAST_MS);
            let seconds = table.stall_patience_ms / 1000;
            net!("Decreased stalling timeout to {seconds} seconds");
        }
    }

    /// Disconnects a peer that stalls the window or exceeds the block timeout (Core `net_processing.cpp`, `SendMessages`).
    pub(in crate::p2p) fn disconnect_if_stalling(&self, peer: &Peer) {
        let now_ms = self.now_ms();
        let mut table = self.lock();
        let loading = table.peers.values().filter(|state| !state.in_flight.is_empty()).count();
        let patience_ms = table.stall_patience_ms.max(STALL_LEAST_MS);
        let Some(state) = table.peers.get(&peer.id) else { return };
        if state.stalling_since_ms.is_some_and(|since| now_ms > since + patience_ms) {
            // The cause may be local: double the timeout for the next peer.
            let longer_ms = (2 * patience_ms).min(STALL_MOST_MS);
            table.stall_patience_ms = longer_ms;
            if longer_ms != patience_ms {
                let seconds = longer_ms / 1000;
                net!("Increased stalling timeout temporarily to {seconds} seconds");
            }
            tracing::info!("Peer is stalling block download, disconnecting peer={}", peer.id);
            return peer.close();
        }
        let others = loading.saturating_sub(1) as u64;
        let spacing_ms = u64::from(self.engine.params().pow.target_spacing_s) * 1000;
        let block_ms = spacing_ms + others * spacing_ms / 2;
        if let Some(first) = state.in_flight.front()
            && now_ms > state.downloading_since_ms + block_ms
        {
            tracing::info!("Timeout downloading block {first}, disconnecting peer={}", peer.id);
            return peer.close();
        }
        let Some(due_ms) = state.headers_due_ms.filter(|_| state.has_started) else { return };
        if u64::from(self.engine.chain().best_header().time) * 1000 + DAY_MS > now_ms {
            // Caught up.
            if let Some(state) = table.peers.get_mut(&peer.id) {
                state.headers_due_ms = None;
            }
        } else if now_ms > due_ms {
            headers_are_late(peer, &mut table);
        }
    }
}

impl Table {
    /// Records received bytes and updates the peer's speed.
    fn look_at(&mut self, peer: &Peer, now_ms: u64) {
        let Some(state) = self.peers.get_mut(&peer.id) else { return };
        let ping = peer.with_facts(|facts| facts.ping_time_min);
        let ping_ms = ping.map(|ping| ping.as_millis() as u64);
        state.pace.look(peer.traffic.received_bytes.load(Ordering::Relaxed), ping_ms, now_ms);
    }
}

fn headers_are_late(peer: &Peer, table: &mut Table) {
    let is_preferred = |state: &&PeerSync| state.traits.is_preferred;
    let preferred = table.peers.values().filter(is_preferred).count();
    let started = table.peers.values().filter(|state| state.has_started).count();
    let Some(state) = table.peers.get_mut(&peer.id) else { return };
    // Without another source it is better than nothing, otherwise harmless.
    if started != 1 || preferred <= usize::from(state.traits.is_preferred) {
        return;
    }
    if peer.permissions.has(Permissions::NO_BAN) {
        tracing::info!(
            "Timeout downloading headers from noban peer, not disconnecting peer={}",
            peer.id
        );
        // Request from another peer; this one may still respond.
        (state.has_started, state.asked_headers_ms, state.headers_due_ms) = (false, None, None);
    } else {
        tracing::info!("Timeout downloading headers, disconnecting peer={}", peer.id);
        peer.close();
    }
}

/// Core `net_processing.cpp`, `MAX_BLOCKS_IN_TRANSIT_PER_PEER`.
pub(super) const IN_FLIGHT_MAX: usize = 16;
/// A limited peer has 288 blocks. Two are left out, as the peer may have advanced by the time of the request (Core
/// `net_processing.cpp`, `NODE_NETWORK_LIMITED_MIN_BLOCKS`).
const LIMITED_DEPTH: u32 = 286;
/// Core `net_processing.cpp`, `BLOCK_DOWNLOAD_WINDOW`.
const WINDOW: u32 = 1024;
/// Core `net_processing.cpp`, `BLOCK_STALLING_TIMEOUT_DEFAULT` and `BLOCK_STALLING_TIMEOUT_MAX`.
const STALL_LEAST_MS: u64 = 2_000;
const STALL_MOST_MS: u64 = 64_000;
