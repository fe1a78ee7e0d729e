//! Interface of index and server to the node.

use std::sync::Arc;
use std::time::Duration;

use assay_wire::{Block, BlockHash, Coin, Encoding, Transaction, Txid};

/// A validating node as its index and the Electrum server use it. All methods are thread-safe.
pub trait Chain: Send + Sync + 'static {
    fn encoding(&self) -> Encoding;

    fn tip(&self) -> Tip;

    /// Waits until tip or mempool differ from `seen`, the timeout expires, or the node stops; returns the current state.
    fn wait(&self, seen: &SnapshotId, timeout: Duration) -> SnapshotId;

    /// Waits until the tip differs from `seen`, the timeout expires, or the node stops. Mempool changes may wake it too.
    fn wait_for_tip(&self, seen: &Tip, timeout: Duration);

    /// True once shutdown has begun: threads that follow the node must end.
    fn is_stopping(&self) -> bool;

    fn hash_at(&self, height: u32) -> Option<BlockHash>;

    /// Takes the block connected on top of block `hash` if it is still in memory, each only once. Never waits for a connection.
    fn take_connected(&self, hash: &BlockHash) -> Option<Connected>;

    /// The serialised block, if stored.
    fn block(&self, hash: &BlockHash) -> Result<Option<Vec<u8>>, ChainError>;

    /// `length` bytes from `offset` of a stored block, unchecked.
    fn block_part(
        &self,
        hash: &BlockHash,
        offset: u32,
        length: u32,
    ) -> Result<Option<Vec<u8>>, ChainError>;

    /// [`Chain::block_part`] without waiting for disks or threads; `None` if that would wait or fail, or the block is not stored.
    fn block_part_at_once(&self, hash: &BlockHash, offset: u32, length: u32) -> Option<Vec<u8>>;

    /// The coins spent by a connected block, encoded as for [`assay_store::UndoReader`]. Genesis has none.
    fn undo(&self, hash: &BlockHash) -> Result<Option<Vec<u8>>, ChainError>;

    /// Mempool changes after change number `since`; `None` requests the whole mempool.
    fn mempool_since(&self, since: Option<u64>) -> Result<MempoolChanges, ChainError>;

    /// Offers a transaction to the mempool.
    ///
    /// # Errors
    /// The reject reason if the transaction was not admitted.
    fn broadcast(&self, raw: &[u8]) -> Result<Txid, RelayError>;

    /// Dry run of [`Chain::broadcast`] (`testmempoolaccept`) for transactions that may spend one another in this order.
    fn test(&self, raws: &[Vec<u8>]) -> Vec<TestVerdict>;

    fn relay(&self) -> Relay;

    /// [`Chain::relay`] without waiting for another thread.
    fn relay_at_once(&self) -> Option<Relay>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    /// 0 for genesis.
    pub height: u32,
    pub hash: BlockHash,
}

/// A snapshot of the node's state, for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotId {
    pub tip: Tip,
    pub mempool: u64,
}

/// A connected block with all data that indexing needs.
pub trait ConnectedBlock: Send + Sync {
    fn block(&self) -> &Block;
    /// In block order.
    fn txids(&self) -> &[Txid];
    /// The spent coins, encoded as for [`assay_store::UndoReader`].
    fn undo(&self) -> &[u8];
}

pub type Connected = Box<dyn ConnectedBlock>;

#[derive(Debug, thiserror::Error)]
#[error("the node cannot {operation}: {source}")]
pub struct ChainError {
    pub operation: &'static str,
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Mempool changes, in order.
#[derive(Clone, Debug)]
pub struct MempoolChanges {
    /// The state after these changes.
    pub moment: SnapshotId,
    /// True if the changes replace the whole mempool, starting from an empty one.
    pub from_scratch: bool,
    pub changes: Vec<MempoolChange>,
}

#[derive(Clone, Debug)]
pub enum MempoolChange {
    /// A new transaction. All its inputs are confirmed or were added before.
    Added(MempoolTx),
    /// A transaction left the mempool: confirmed, replaced, evicted or conflicting.
    Removed(Txid),
}

#[derive(Clone, Debug)]
pub struct MempoolTx {
    pub txid: Txid,
    pub tx: Arc<Transaction>,
    /// The spent coins, in input order.
    pub spent: Vec<Coin>,
    pub fee_sat: i64,
    /// In bytes: virtual size (BIP141); plain size on chains without witnesses.
    pub vsize: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct RelayError {
    /// Bitcoin Core's reject reason.
    pub reason: String,
    /// Details; may be empty.
    pub debug: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestVerdict {
    /// `None` if the bytes are not a transaction.
    pub txid: Option<Txid>,
    pub wtxid: Option<assay_wire::Wtxid>,
    /// In bytes.
    pub vsize: u32,
    pub fee_sat: i64,
    /// `None` if the mempool would admit it.
    pub refusal: Option<RelayError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relay {
    /// Minimum fee rate for relay, in satoshi per 1,000 virtual bytes.
    pub min_relay_fee_sat_per_kvb: u64,
    /// Current minimum fee rate of the mempool, in the same unit; it rises when the mempool is full.
    pub mempool_min_fee_sat_per_kvb: u64,
    /// Minimum fee increase of a replacement, in the same unit.
    pub incremental_relay_fee_sat_per_kvb: u64,
}
