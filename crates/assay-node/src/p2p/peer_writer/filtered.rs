//! Blocks for peers that have set a Bloom filter (BIP37).

use std::sync::PoisonError;

use assay_wire::BlockHash;
use assay_wire::p2p::Message;

use super::PeerWriter;
use crate::p2p::ended::Ended;
use crate::p2p::peers::Matches;
use crate::partial_merkle::Builder;

impl PeerWriter<'_> {
    /// Sends a `merkleblock` and the transactions that match the peer's filter; `false` if the block is
    /// unavailable. Without a filter there is no response (Core `net_processing.cpp`, `ProcessGetBlockData`).
    pub(super) fn filtered_block(&mut self, hash: &BlockHash) -> Result<bool, Ended> {
        if !self.peer.with_relay(|relay| relay.filter.is_some()) {
            return Ok(true);
        }
        let shared = self.shared;
        let Some(archived) = shared.engine.blocks().archived(hash) else { return Ok(false) };
        let turn = shared.stripping.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(block) = self.parsed(&archived) else { return Ok(false) };
        let is_cash = shared.engine.params().cash.is_some();
        let found = self.peer.with_relay(|relay| relay.filter_block(&block, is_cash));
        drop(turn);
        let Some(Matches { txids, matches }) = found else { return Ok(true) };
        let proof = Builder::new(&txids, &matches).proof(block.header());
        self.send(&Message::MerkleBlock(&proof))?;
        for (tx, _) in block.txs().zip(&matches).filter(|(_, is_match)| **is_match) {
            self.send(&Message::Tx(&tx.stripped_parts().concat()))?;
        }
        Ok(true)
    }
}
