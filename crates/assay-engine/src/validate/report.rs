//! What a validation says.

use assay_wire::{Block, BlockHash};

use crate::files::{InvalidBlock, MissingBlock, Stray};
use crate::types::UtxoStats;

#[derive(Clone, Copy, Debug)]
pub struct ConnectState {
    /// Height connected last.
    pub height: u32,
    pub last_height: u32,
    /// Bytes of blocks up to that height, from genesis on.
    pub bytes_done: u64,
    /// Bytes of all blocks to be connected, from genesis on.
    pub bytes_total: u64,
    /// What was counted since genesis.
    pub totals: Totals,
    /// Bytes of coins in memory.
    pub cache_bytes: usize,
}

/// Sums over the connected blocks, genesis left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub blocks: u64,
    /// Transactions, coinbases included.
    pub txs: u64,
    /// Inputs, coinbases' left out.
    pub inputs: u64,
    pub outputs: u64,
    pub bytes: u64,
    /// Blocks whose scripts were taken to be valid.
    pub assumed_blocks: u64,
    /// Time spent connecting, milliseconds, over all runs.
    pub elapsed_ms: u64,
}

/// What the block files hold.
#[derive(Clone, Debug)]
pub struct ScanReport {
    pub files: usize,
    pub bytes: u64,
    /// Whether they are obfuscated.
    pub is_obfuscated: bool,
    /// Distinct blocks, genesis left out.
    pub blocks: usize,
    pub duplicates: usize,
    /// Height of the chosen branch.
    pub height: u32,
    /// Hash of its last block.
    pub hash: BlockHash,
    /// Blocks on other branches.
    pub stale_blocks: usize,
    /// Branches that these blocks form.
    pub stale_branches: usize,
    /// Blocks that do not connect because one below them is missing.
    pub unconnected: usize,
    /// The first few of these gaps, in the order of the files.
    pub missing: Vec<MissingBlock>,
    pub padding_bytes: u64,
    /// Other bytes that belong to no block: the first few places.
    pub strays: Vec<Stray>,
    /// All such places.
    pub stray_count: usize,
    /// A header that breaks a rule, for which a branch with less work was chosen.
    pub bad_header: Option<InvalidBlock>,
    /// Height up to which scripts are taken to be valid.
    pub assumed_height: u32,
    pub elapsed_s: f64,
}

/// How a validation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A branch is valid as a whole, and there is none with more work but those of [`Validation::invalid`].
    Complete,
    /// It is valid up to the height asked for.
    StopHeight,
    Interrupted,
    /// The block above the tip is invalid, and no other branch has more work than the blocks below it, which are valid.
    Invalid(Box<InvalidBlock>),
}

#[derive(Clone, Debug)]
pub struct Validation {
    pub scan: ScanReport,
    pub end: End,
    /// The invalid blocks and headers on branches with more work than the one that was reached, in the order in which they
    /// were tried, without [`ScanReport::bad_header`].
    pub invalid: Vec<InvalidBlock>,
    /// Height at which it took up an earlier one; 0 for a new one.
    pub start_height: u32,
    /// Sums since genesis.
    pub totals: Totals,
    pub run_totals: Totals,
    /// The tip and its coins; absent when it was interrupted.
    pub coins: Option<UtxoStats>,
    pub height: u32,
    pub hash: BlockHash,
    /// Work of the chain up to the tip, big endian, and what a chain must have to be taken for the real one.
    pub chain_work: [u8; 32],
    /// See there.
    pub minimum_chain_work: [u8; 32],
    /// Seconds of this run until the last script had passed; some of the counting and writing goes on meanwhile.
    pub connect_s: f64,
    /// Seconds from then on, for counting and hashing the coins, and for writing them out where they are kept.
    pub hash_s: f64,
}

impl Totals {
    /// Counts a block; the time is not changed.
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

    /// What came after `before`; less than nothing counts as nothing, where blocks were taken back.
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
    /// Whether the tip has less work than the parameters demand of the real chain (Core's `nMinimumChainWork`).
    pub fn is_below_minimum_chain_work(&self) -> bool {
        self.chain_work < self.minimum_chain_work
    }
}
