//! A block of the tree.

use assay_consensus::uint256::U256;
use assay_store::{BlockPos, BlockRecord, UndoPos};
use assay_wire::{BlockHash, Header};

/// Index of a block in the tree; stable for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(super) u32);

impl NodeId {
    pub(crate) const GENESIS: Self = Self(0);
}

/// Every rule has been checked, scripts included.
pub(super) const STATUS_VALID: u32 = 1;
/// A rule was broken by this block or an ancestor, or the operator invalidated it (Core's `BLOCK_FAILED_VALID`, which has
/// included descendants since 30.0).
pub(super) const STATUS_FAILED: u32 = 2;
/// Checked by the rules before segwit, although changed rules may activate segwit below it (Core has the opposite,
/// `BLOCK_OPT_WITNESS`; blocks of earlier versions have no mark and are accepted).
pub(super) const STATUS_WITHOUT_WITNESS: u32 = 4;

/// Every rule was checked, but with the coins of an unvalidated snapshot: worthless without it.
pub(super) const STATUS_ASSUMED: u32 = 8;

/// One block of the tree.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) header: Header,
    pub(crate) hash: BlockHash,
    pub(crate) height: u32,
    pub(crate) parent: Option<NodeId>,
    /// An ancestor that makes walks to any height logarithmic (E. Myers, "An applicative random-access stack").
    pub(super) jump: NodeId,
    pub(super) first_child: Option<NodeId>,
    pub(super) next_sibling: Option<NodeId>,
    /// Work of the whole branch up to and including this block.
    pub(crate) chain_work: U256,
    /// Number of transactions; 0 if only the header is known.
    pub(crate) tx_count: u32,
    /// Transactions of the whole branch up to and including this block; 0 unless all of its blocks are archived.
    pub(crate) chain_tx_count: u64,
    /// Median of the last eleven times up to and including this block (BIP113).
    pub(crate) median_time: u32,
    /// Order in which blocks became connectable.
    pub(crate) sequence: u64,
    /// Of two branches with equal work the one of lower rank is active: the sequence, unless the operator chose otherwise.
    pub(super) rank: i64,
    pub(crate) block: Option<BlockPos>,
    pub(crate) undo: Option<UndoPos>,
    /// True if block and undo data were pruned at some time.
    pub(super) was_pruned: bool,
    pub(super) status: u32,
}

impl Node {
    pub(crate) fn is_valid(&self) -> bool {
        self.status & STATUS_VALID != 0
    }

    /// True if every rule was checked at some time, possibly with snapshot coins.
    pub(crate) fn was_connected(&self) -> bool {
        self.status & (STATUS_VALID | STATUS_ASSUMED) != 0
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.status & STATUS_FAILED != 0
    }

    /// True if it was checked by the rules before segwit.
    pub(crate) fn is_without_witness(&self) -> bool {
        self.status & STATUS_WITHOUT_WITNESS != 0
    }

    /// True if it is missing because of pruning (Core's `IsBlockPruned`).
    pub(crate) fn is_pruned(&self) -> bool {
        self.was_pruned && self.block.is_none()
    }

    /// True if the block can be read.
    pub(crate) fn has_data(&self) -> bool {
        // The genesis block is part of the parameters.
        self.block.is_some() || self.height == 0
    }

    /// True if it and all blocks below it are archived, except pruned active ones (Core's `HaveNumChainTxs`).
    pub(crate) fn is_linked(&self) -> bool {
        self.chain_tx_count > 0
    }

    pub(crate) fn to_record(&self) -> BlockRecord {
        BlockRecord {
            header: self.header,
            height: self.height,
            status: self.status,
            tx_count: self.tx_count,
            chain_tx_count: self.chain_tx_count,
            sequence: self.sequence,
            block: self.block,
            undo: self.undo,
            was_pruned: self.was_pruned,
        }
    }
}
