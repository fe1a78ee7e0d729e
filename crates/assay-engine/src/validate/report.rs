//! Results of a validation.

use assay_wire::{Block, BlockHash};

use crate::files::{InvalidBlock, MissingBlock, Stray};
use crate::types::UtxoStats;

#[derive(Clone, Copy, Debug)]
pub struct ConnectState {
    /// Height of the last connected block.
    pub height: u32,
    pub last_height: u32,
    /// Bytes of blocks up to that height, from genesis on.
    pub bytes_done: u64,
    /// Bytes of all blocks to be connected, from genesis on.
    pub bytes_total: u64,
    /// Sums since genesis.
    pub totals: Totals,
    /// Bytes of coins in memory.
    pub cache_bytes: usize,
}

/// Sums over the connected blocks, without genesis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub blocks: u64,
    /// Transactions, coinbases included.
    pub txs: u64,
    /// Inputs, without coinbases.
    pub inputs: u64,
    pub outputs: u64,
    pub bytes: u64,
    /// Blocks with assumed valid scripts.
    pub assumed_blocks: u64,
    /// Time spent connecting, milliseconds, over all runs.
    pub elapsed_ms: u64,
}

/// Contents of the block files.
#[derive(Clone, Debug)]
pub struct ScanReport {
    pub files: usize,
    pub bytes: u64,
    pub is_obfuscated: bool,
    /// Distinct blocks, without genesis.
    pub blocks: usize,
    pub duplicates: usize,
    /// Height of the chosen branch.
    pub height: u32,
    pub hash: BlockHash,
    /// Blocks on other branches.
    pub stale_blocks: usize,
    /// Number of those branches.
    pub stale_branches: usize,
    /// Blocks without a connection to genesis.
    pub unconnected: usize,
    /// The first missing blocks, in file order.
    pub missing: Vec<MissingBlock>,
    pub padding_bytes: u64,
    /// Positions of other bytes that belong to no block; the first few.
    pub strays: Vec<Stray>,
    /// Number of all such positions.
    pub stray_count: usize,
    /// An invalid header that led to a branch with less work.
    pub bad_header: Option<InvalidBlock>,
    /// Height up to which scripts are assumed to be valid.
    pub assumed_height: u32,
    pub elapsed_s: f64,
}

/// Final state of a validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A branch is completely valid, and only branches of [`Validation::invalid`] have more work.
    Complete,
    /// Valid up to the stop height.
    StopHeight,
    Interrupted,
    /// The block above the tip is invalid, and no other branch has more work than the blocks below it, which are valid.
    Invalid(Box<InvalidBlock>),
}

#[derive(Clone, Debug)]
pub struct Validation {
    pub scan: ScanReport,
    pub end: End,
    /// The invalid blocks and headers on branches with more work than the final one, in the order tried, without
    /// [`ScanReport::bad_header`].
    pub invalid: Vec<InvalidBlock>,
    /// Height at which it continued an earlier one; 0 for a new one.
    pub start_height: u32,
    /// Sums since genesis.
    pub totals: Totals,
    pub run_totals: Totals,
    /// The tip and its coins; `None` after an interruption.
    pub coins: Option<UtxoStats>,
    pub height: u32,
    pub hash: BlockHash,
    /// Work of the chain up to the tip, big endian.
    pub chain_work: [u8; 32],
    /// Minimum work of the real chain, big endian.
    pub minimum_chain_work: [u8; 32],
    /// Seconds of this run until the last script passed; some of the counting and writing runs in parallel.
    pub connect_s: f64,
    /// Seconds after that, for counting, hashing and, if they are kept, writing the coins.
    pub hash_s: f64,
}

impl Totals {
    /// Adds a block; the time is not changed.
    pub(crate) fn add(&mut self, block: &Block, is_assumed: bool) {
        self.blocks += 1;
        self.txs += block.tx_count() as u64;
        self.inputs += (block.input_count() - block.tx(0).input_count()) as u64;
        self.outputs += block.output_count() as u64;
        self.bytes += block.bytes().len() as u64;
        self.assumed_blocks += u64::from(is_assumed);
    }

    pub(super) fn remove(&mut self, block: &Block, was_assumed: bool) {
        self.blocks -= 1;
        self.txs -= block.tx_count() as u64;
        self.inputs -= (block.input_count() - block.tx(0).input_count()) as u64;
        self.outputs -= block.output_count() as u64;
        self.bytes -= block.bytes().len() as u64;
        self.assumed_blocks -= u64::from(was_assumed);
    }

    /// Difference to `before`; negative values, after disconnected blocks, become zero.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self {
            blocks: self.blocks.saturating_sub(before.blocks),
            txs: self.txs.saturating_sub(before.txs),
            inputs: self.inputs.saturating_sub(before.inputs),
            outputs: self.outputs.saturating_sub(before.outputs),
            bytes: self.bytes.saturating_sub(before.bytes),
            assumed_blocks: self.assumed_blocks.saturating_sub(before.assumed_blocks),
            elapsed_ms: self.elapsed_ms.saturating_sub(before.elapsed_ms),
        }
    }
}

impl Validation {
    /// True if the tip has less than the minimum chain work (Core's `nMinimumChainWork`).
    pub fn is_below_minimum_chain_work(&self) -> bool {
        self.chain_work < self.minimum_chain_work
    }
}
