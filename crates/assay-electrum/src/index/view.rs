//! The index at one moment.

use assay_wire::{BlockHash, OutPoint, Txid};

use super::types::{
    BlockTxs, HistoryEntry, Limits, QueryError, ScriptHash, Spender, TxPosition, Unspent,
};
use crate::chain::{Chain, Tip};

/// The index as it was at one moment: cheap to clone, unaffected by blocks that come later.
///
/// When the chain is reorganised below the view's tip, questions may end with [`QueryError::Reorganised`]: take a new view.
#[derive(Clone)]
pub struct View {}

impl View {
    /// The highest block indexed; `None` before genesis is.
    pub fn tip(&self) -> Option<Tip> {
        todo!()
    }

    /// The 80 bytes of the header at `height`.
    pub fn header(&self, height: u32) -> Result<Option<[u8; 80]>, QueryError> {
        todo!()
    }

    /// Up to `count` headers from `start` on, one after the other.
    pub fn headers(&self, start: u32, count: usize) -> Result<Vec<u8>, QueryError> {
        todo!()
    }

    /// Hash of the block at `height`.
    pub fn block_hash(&self, height: u32) -> Result<Option<BlockHash>, QueryError> {
        todo!()
    }

    /// Confirmed transactions that touch a script, from height `from` on, in the order of the chain.
    pub fn history(
        &self,
        script: &ScriptHash,
        from: u32,
        limits: Limits,
    ) -> Result<Vec<HistoryEntry>, QueryError> {
        todo!()
    }

    /// Satoshi that a script holds; costs one pass over its entries and no memory.
    pub fn balance(&self, script: &ScriptHash) -> Result<u64, QueryError> {
        todo!()
    }

    /// Confirmed unspent outputs of a script, in the order of the chain.
    pub fn unspent(&self, script: &ScriptHash, limits: Limits) -> Result<Vec<Unspent>, QueryError> {
        todo!()
    }

    /// Where a transaction is.
    pub fn position(&self, txid: &Txid) -> Result<Option<TxPosition>, QueryError> {
        todo!()
    }

    /// All txids of the block at `height`.
    pub fn block_txs(&self, height: u32) -> Result<Option<BlockTxs>, QueryError> {
        todo!()
    }

    /// The txid at a place of a block.
    pub fn txid_at(&self, height: u32, index: u32) -> Result<Option<Txid>, QueryError> {
        todo!()
    }

    /// What spends an output; `chain` is asked for the candidate's bytes, which decide.
    pub fn spender(
        &self,
        outpoint: &OutPoint,
        chain: &dyn Chain,
    ) -> Result<Option<Spender>, QueryError> {
        todo!()
    }
}
