//! Sends compact blocks and their missing transactions (BIP152).

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use assay_engine::Block;
use assay_wire::BlockHash;
use assay_wire::p2p::{BlockTxs, BlockTxsRequest, InventoryKind, Message};

use super::{Ended, PeerWriter, nonce};
use crate::p2p::compact::compact_of;

impl PeerWriter<'_> {
    pub(super) fn wants_compact(&self) -> bool {
        self.peer.wants_compact.load(Ordering::Relaxed)
    }

    /// Announces a block during its validation if the peer has its parent and not the block.
    pub(super) fn pass_on(&mut self) -> Result<(), Ended> {
        let Some(recent) = self.shared.compact.recent() else { return Ok(()) };
        let parent = &recent.header().prev_block;
        // Checked first without the engine, which may be busy with the chain.
        let is_due = self.peer.is_ready()
            && self.wants_compact()
            && (self.peer.knows_up_to(parent) || !self.knows(recent.hash()) && self.knows(parent));
        if !is_due {
            return Ok(());
        }
        self.peer.with_known(|known| known.best_sent = Some(*recent.hash()));
        net!("sending header-and-ids {} to peer={}", recent.hash(), self.peer.id);
        self.send(&Message::CompactBlock(recent.payload()))
    }

    /// Sends an archived block in the requested form; `false` if unavailable.
    pub(super) fn block_as(
        &mut self,
        hash: &BlockHash,
        kind: InventoryKind,
    ) -> Result<bool, Ended> {
        let engine = &self.shared.engine;
        if kind == InventoryKind::COMPACT_BLOCK && engine.blocks().has_young_tip() {
            let Some(block) = engine.blocks().archived(hash) else { return Ok(false) };
            // For an old block the peer's mempool is useless.
            if block.height() + COMPACT_DEPTH_MAX >= engine.chain().tip().height {
                return self.compact_block(hash);
            }
        }
        if kind == InventoryKind::FILTERED_BLOCK {
            return self.filtered_block(hash);
        }
        self.block(hash, kind != InventoryKind::BLOCK)
    }

    /// Sends the compact form of a block; `false` if unavailable.
    pub(super) fn compact_block(&mut self, hash: &BlockHash) -> Result<bool, Ended> {
        if let Some(recent) = self.shared.compact.recent().filter(|recent| recent.hash() == hash) {
            self.send(&Message::CompactBlock(recent.payload()))?;
            return Ok(true);
        }
        let Some(payload) = self.compact_from_archive(hash)? else { return Ok(false) };
        self.send(&Message::CompactBlock(&payload))?;
        Ok(true)
    }

    fn compact_from_archive(&self, hash: &BlockHash) -> Result<Option<Vec<u8>>, Ended> {
        let _turn = self.shared.stripping.lock().unwrap_or_else(PoisonError::into_inner);
        let archived = self.shared.engine.blocks().archived(hash);
        let block = archived.and_then(|archived| self.parsed(&archived));
        block.map(|block| Ok(compact_of(&block, nonce().map_err(Ended::Io)?))).transpose()
    }

    /// Sends transactions of a block. For a deep block sends the whole block, which costs the same to read.
    pub(super) fn block_txs(&mut self, request: &BlockTxsRequest) -> Result<(), Ended> {
        let hash = &request.block;
        if let Some(recent) = self.shared.compact.recent().filter(|recent| recent.hash() == hash) {
            return self.send_txs(recent.block(), request);
        }
        let engine = &self.shared.engine;
        let place = engine.chain().header_place(hash).filter(|place| place.has_data);
        let Some(place) = place else {
            net!("Peer {} sent us a getblocktxn for a block we don't have", self.peer.id);
            return Ok(());
        };
        if place.height + TXS_DEPTH_MAX < engine.chain().tip().height {
            net!("Peer {} sent us a getblocktxn for a block > {TXS_DEPTH_MAX} deep", self.peer.id);
            return self.block(hash, true).map(drop);
        }
        let block = {
            let _turn = self.shared.stripping.lock().unwrap_or_else(PoisonError::into_inner);
            engine.blocks().archived(hash).and_then(|archived| self.parsed(&archived))
        };
        block.map_or(Ok(()), |block| self.send_txs(&block, request))
    }

    fn send_txs(&mut self, block: &Block, request: &BlockTxsRequest) -> Result<(), Ended> {
        let places = request.indexes.iter().map(|place| *place as usize);
        let txs = places.map(|place| (place < block.tx_count()).then(|| block.tx(place).raw()));
        let Some(txs) = txs.collect::<Option<Vec<&[u8]>>>() else {
            let fault = "getblocktxn with out-of-bounds tx indices";
            self.shared.peers.misbehaving(self.peer, fault);
            return Ok(());
        };
        tracing::debug!(
            target: "cmpctblock",
            "peer={} sent us a GETBLOCKTXN for block {}, sending a BLOCKTXN with {} txns",
            self.peer.id, request.block, txs.len(),
        );
        let mut payload = Vec::new();
        BlockTxs { block: request.block, txs }.encode(&mut payload);
        self.send(&Message::BlockTxs(&payload))
    }
}

/// Core `net_processing.cpp`, `MAX_CMPCTBLOCK_DEPTH` and `MAX_BLOCKTXN_DEPTH`.
const COMPACT_DEPTH_MAX: u32 = 5;
const TXS_DEPTH_MAX: u32 = 10;
