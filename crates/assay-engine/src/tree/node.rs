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
/// A rule was broken by this block or by one that it builds on, or its owner declared it invalid (Core's
/// `BLOCK_FAILED_VALID`, which has covered descendants too since 30.0).
pub(super) const STATUS_FAILED: u32 = 2;
/// It was checked by the rules before segregated witness, which may begin below it when the rules are changed (Core has the
/// opposite, `BLOCK_OPT_WITNESS`; blocks of earlier versions have no mark and are taken as they are).
pub(super) const STATUS_WITHOUT_WITNESS: u32 = 4;

/// Every rule has been checked, but with coins of a snapshot that was not validated: worth nothing without that snapshot.
pub(super) const STATUS_ASSUMED: u32 = 8;

/// What is known of one block.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) header: Header,
    pub(crate) hash: BlockHash,
    pub(crate) height: u32,
    pub(crate) parent: Option<NodeId>,
    /// A block further down that makes walks to any height logarithmic (E. Myers, "An applicative random-access stack").
    pub(super) jump: NodeId,
    pub(super) first_child: Option<NodeId>,
    pub(super) next_sibling: Option<NodeId>,
    /// Work of the whole branch up to and including this block.
    pub(crate) chain_work: U256,
    /// Transactions in it; 0 as long as only the header is known.
    pub(crate) tx_count: u32,
    /// Transactions of the whole branch up to and including this block; 0 unless all of its blocks are archived.
    pub(crate) chain_tx_count: u64,
    /// Median of the last eleven times up to and including this block (BIP113).
    pub(crate) median_time: u32,
    /// Order in which blocks became connectable.
    pub(crate) sequence: u64,
    /// Of two branches with equal work the one of lower rank is active: the sequence, unless somebody chose otherwise.
    pub(super) rank: i64,
    pub(crate) block: Option<BlockPos>,
    pub(crate) undo: Option<UndoPos>,
    /// Whether block and undo data were removed at some time.
    pub(super) was_pruned: bool,
    pub(super) status: u32,
}

impl Node {
    pub(crate) fn is_valid(&self) -> bool {
        self.status & STATUS_VALID != 0
    }

    /// Whether every rule has been checked at some time, with coins of a snapshot at least.
    pub(crate) fn was_connected(&self) -> bool {
        self.status & (STATUS_VALID | STATUS_ASSUMED) != 0
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.status & STATUS_FAILED != 0
    }

    /// Whether it was checked by the rules before segregated witness.
    pub(crate) fn is_without_witness(&self) -> bool {
        self.status & STATUS_WITHOUT_WITNESS != 0
    }

    /// Whether it is missing because it was removed (Core's `IsBlockPruned`).
    pub(crate) fn is_pruned(&self) -> bool {
        self.was_pruned && self.block.is_none()
    }

    /// Whether this block itself can be read.
    pub(crate) fn has_data(&self) -> bool {
        // The genesis block is part of the parameters.
        self.block.is_some() || self.height == 0
    }

    /// Whether it and all blocks below it are archived, those apart that are active and were removed (Core's
    /// `HaveNumChainTxs`).
    pub(crate) fn is_linked(&self) -> bool {
        self.chain_tx_count > 0
    }

    /// What the store keeps of it.
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
