//! Index queries of the server: those of [`View`], as a trait so that tests can use a list of blocks. Confirmed transactions are read
//! from their block.

use std::ops::ControlFlow;
use std::sync::Arc;

use assay_wire::{BlockHash, OutPoint, Transaction, Txid};

use crate::chain::{Chain, Tip};
use crate::index::{
    BlockTxs, HistoryEntry, Limits, QueryError, ScriptHash, Spender, TxPosition, Unspent, View,
};
use crate::server::protocol::error::{CallError, RpcError};

/// The confirmed part of the chain. See [`View`] for each query.
#[expect(clippy::missing_errors_doc, reason = "as those of `View`")]
pub trait Confirmed: Send + Sync + 'static {
    fn at_once(&self) -> Arc<dyn Confirmed>;
    fn tip(&self) -> Option<Tip>;
    fn header(&self, height: u32) -> Result<Option<[u8; 80]>, QueryError>;
    fn headers(&self, start: u32, count: usize) -> Result<Vec<u8>, QueryError>;
    fn block_hash(&self, height: u32) -> Result<Option<BlockHash>, QueryError>;
    fn visit_history(
        &self,
        script: &ScriptHash,
        from: u32,
        limits: Limits,
        visit: &mut dyn FnMut(HistoryEntry) -> ControlFlow<()>,
    ) -> Result<(), QueryError>;
    fn balance(&self, script: &ScriptHash) -> Result<u64, QueryError>;
    fn unspent(&self, script: &ScriptHash, limits: Limits) -> Result<Vec<Unspent>, QueryError>;
    fn position(&self, txid: &Txid) -> Result<Option<TxPosition>, QueryError>;
    fn block_txs(&self, height: u32) -> Result<Option<BlockTxs>, QueryError>;
    fn txid_at(&self, height: u32, index: u32) -> Result<Option<Txid>, QueryError>;
    fn spender(&self, outpoint: &OutPoint) -> Result<Option<Spender>, QueryError>;
}

impl Confirmed for View {
    fn at_once(&self) -> Arc<dyn Confirmed> {
        Arc::new(self.at_once())
    }

    fn tip(&self) -> Option<Tip> {
        self.tip()
    }

    fn header(&self, height: u32) -> Result<Option<[u8; 80]>, QueryError> {
        self.header(height)
    }

    fn headers(&self, start: u32, count: usize) -> Result<Vec<u8>, QueryError> {
        self.headers(start, count)
    }

    fn block_hash(&self, height: u32) -> Result<Option<BlockHash>, QueryError> {
        self.block_hash(height)
    }

    fn visit_history(
        &self,
        script: &ScriptHash,
        from: u32,
        limits: Limits,
        visit: &mut dyn FnMut(HistoryEntry) -> ControlFlow<()>,
    ) -> Result<(), QueryError> {
        self.visit_history(script, from, limits, visit)
    }

    fn balance(&self, script: &ScriptHash) -> Result<u64, QueryError> {
        self.balance(script)
    }

    fn unspent(&self, script: &ScriptHash, limits: Limits) -> Result<Vec<Unspent>, QueryError> {
        self.unspent(script, limits)
    }

    fn position(&self, txid: &Txid) -> Result<Option<TxPosition>, QueryError> {
        self.position(txid)
    }

    fn block_txs(&self, height: u32) -> Result<Option<BlockTxs>, QueryError> {
        self.block_txs(height)
    }

    fn txid_at(&self, height: u32, index: u32) -> Result<Option<Txid>, QueryError> {
        self.txid_at(height, index)
    }

    fn spender(&self, outpoint: &OutPoint) -> Result<Option<Spender>, QueryError> {
        self.spender(outpoint)
    }
}

pub(in crate::server) fn confirmed_bytes(
    chain: &dyn Chain,
    position: &TxPosition,
) -> Result<Vec<u8>, CallError> {
    let bytes = chain.block_part(&position.block, position.offset, position.length)?;
    bytes.ok_or_else(|| RpcError::daemon("the block of this transaction is not stored").into())
}

pub(in crate::server) fn confirmed_transaction(
    chain: &dyn Chain,
    position: &TxPosition,
) -> Result<Transaction, CallError> {
    let bytes = confirmed_bytes(chain, position)?;
    Transaction::parse(bytes, chain.encoding()).map_err(|error| {
        tracing::error!("A stored transaction cannot be read: {error}");
        RpcError::daemon("a stored transaction cannot be read").into()
    })
}
