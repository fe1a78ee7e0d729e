//! What index and server ask of the node behind them.

use std::sync::Arc;
use std::time::Duration;

use assay_wire::{Block, BlockHash, Coin, Encoding, Transaction, Txid};

/// A validating node, as seen by its index and by the server in front of it. All methods may be called from any thread.
pub trait Chain: Send + Sync + 'static {
    /// How transactions and blocks are encoded.
    fn encoding(&self) -> Encoding;

    /// The highest valid block.
    fn tip(&self) -> Tip;

    /// Waits until tip or mempool differ from `seen`, the time is over, or the node stops; returns what is then.
    fn wait(&self, seen: &Moment, timeout: Duration) -> Moment;

    /// Waits until the tip differs from `seen`, the time is over, or the node stops; changes of the mempool may end it too.
    fn wait_for_tip(&self, seen: &Tip, timeout: Duration);

    /// Whether the node is stopping: threads that follow it should end.
    fn is_stopping(&self) -> bool;

    /// Hash of the active block at `height`.
    fn hash_at(&self, height: u32) -> Option<BlockHash>;

    /// The block that was connected on top of block `hash`, if it is still in memory. It is handed out once. Never waits
    /// for a block that is being connected.
    fn take_connected(&self, hash: &BlockHash) -> Option<Connected>;

    /// The serialised block, when it is stored.
    ///
    /// # Errors
    /// When it cannot be read.
    fn block(&self, hash: &BlockHash) -> Result<Option<Vec<u8>>, ChainError>;

    /// `length` bytes from `offset` of a stored block, unchecked.
    ///
    /// # Errors
    /// When they cannot be read.
    fn block_part(
        &self,
        hash: &BlockHash,
        offset: u32,
        length: u32,
    ) -> Result<Option<Vec<u8>>, ChainError>;

    /// [`Chain::block_part`] as far as that waits for neither a disk nor another thread; `None` where it would, where that
    /// fails, and where the block is not stored.
    fn block_part_at_once(&self, hash: &BlockHash, offset: u32, length: u32) -> Option<Vec<u8>>;

    /// The coins that a connected block spent, encoded as [`assay_store::UndoReader`] reads them; genesis has none.
    ///
    /// # Errors
    /// When they cannot be read.
    fn undo(&self, hash: &BlockHash) -> Result<Option<Vec<u8>>, ChainError>;

    /// What happened in the mempool after change number `since`; `None` asks for everything there is.
    ///
    /// # Errors
    /// When coins that a new transaction spends cannot be read.
    fn mempool_since(&self, since: Option<u64>) -> Result<MempoolChanges, ChainError>;

    /// Offers a transaction to the mempool.
    ///
    /// # Errors
    /// Why it was not admitted.
    fn broadcast(&self, raw: &[u8]) -> Result<Txid, Refusal>;

    /// What [`Chain::broadcast`] would say, for transactions that may spend one another in this order.
    fn test(&self, raws: &[Vec<u8>]) -> Vec<TestVerdict>;

    /// Fees and limits of the mempool.
    fn relay(&self) -> Relay;

    /// The same as far as that waits for no other thread.
    fn relay_at_once(&self) -> Option<Relay>;
}

/// The highest valid block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tip {
    /// Height; genesis is 0.
    pub height: u32,
    /// Its hash.
    pub hash: BlockHash,
}

/// A moment in the life of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The tip.
    pub tip: Tip,
    /// Number of the last change of the mempool.
    pub mempool: u64,
}

/// A connected block with what indexing needs.
pub trait ConnectedBlock: Send + Sync {
    /// The block.
    fn block(&self) -> &Block;
    /// Its txids, in order.
    fn txids(&self) -> &[Txid];
    /// The coins it spent, as [`assay_store::UndoReader`] reads them.
    fn undo(&self) -> &[u8];
}

/// A connected block that the node has handed over.
pub type Connected = Box<dyn ConnectedBlock>;

/// Why the node could not answer.
#[derive(Debug, thiserror::Error)]
#[error("the node cannot {operation}: {source}")]
pub struct ChainError {
    /// What was asked.
    pub operation: &'static str,
    /// What it said.
    pub source: Box<dyn std::error::Error + Send + Sync>,
}

/// Changes of the mempool, in order.
#[derive(Clone, Debug)]
pub struct MempoolChanges {
    /// The moment that the changes lead to.
    pub moment: Moment,
    /// Whether everything that was known before is void: the changes begin with an empty mempool.
    pub from_scratch: bool,
    /// What happened.
    pub changes: Vec<MempoolChange>,
}

/// One change of the mempool.
#[derive(Clone, Debug)]
pub enum MempoolChange {
    /// A transaction came in; all that it spends is in the chain or came in before.
    Added(MempoolTx),
    /// A transaction left: confirmed, replaced, evicted or conflicting.
    Removed(Txid),
}

/// An unconfirmed transaction.
#[derive(Clone, Debug)]
pub struct MempoolTx {
    /// Its id.
    pub txid: Txid,
    /// The transaction.
    pub tx: Arc<Transaction>,
    /// What it spends, input by input.
    pub spent: Vec<Coin>,
    /// Its fee in satoshi.
    pub fee_sat: i64,
    /// Virtual size in bytes (BIP141); plain size where there are no witnesses.
    pub vsize: u32,
}

/// Why a transaction was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// The reference node's reject reason.
    pub reason: String,
    /// Evidence, possibly empty.
    pub debug: String,
}

/// Verdict of a trial admission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestVerdict {
    /// The transaction, where the bytes are one.
    pub txid: Option<Txid>,
    /// The same with witnesses, as the node prints it.
    pub wtxid: Option<assay_wire::Wtxid>,
    /// Virtual size.
    pub vsize: u32,
    /// Fee in satoshi.
    pub fee_sat: i64,
    /// Why it would be refused.
    pub refusal: Option<Refusal>,
}

/// Fees and limits of the mempool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relay {
    /// Least fee rate for relay, satoshi per 1,000 virtual bytes.
    pub min_relay_fee_sat_per_kvb: u64,
    /// Fee rate below which the mempool, as full as it is, takes nothing; the same unit.
    pub mempool_min_fee_sat_per_kvb: u64,
    /// By how much a replacement must pay more; the same unit.
    pub incremental_relay_fee_sat_per_kvb: u64,
}
