//! Blocks with moved coins whose scripts are being verified.
//!
//! Scripts need only the outputs they spend, not the validity of earlier blocks. So coins move ahead in block order, the scripts
//! of many blocks are verified in parallel, and a watermark follows: the highest block with verified scripts up to it. Nothing
//! above it is written to disk. When a script fails, that block and later ones are disconnected; the lowest invalid block is
//! reported, regardless of the order of discovery.
//!
//! Blocks are connected in four loops over it, which differ for a reason: that of the tip (`chainstate/activate.rs`) ends between
//! any two blocks, so that other threads get the lock, and may turn back to another branch; that below a snapshot
//! (`chainstate/historical.rs`) never waits for scripts under the lock; that of block files (`validate/connect.rs`) knows all
//! branches beforehand, reads ahead and writes coins while scripts run; that of a part (`shard/part.rs`) has the spent coins, and
//! moves none. A block alone (`verify/block.rs`) has no chain to connect to.

use std::collections::VecDeque;
use std::sync::Arc;

use assay_consensus::block::{BlockError, BlockRules};

use crate::apply::ChainCoins;
use crate::connect::{Connected, disconnect, overwrite_or};
use crate::error::EngineError;
use crate::prepared::Prepared;
use crate::scripts::{BlockScripts, BlockVerdict, Branch, ScriptQueue, ScriptsPassed, Verifier};

/// Limit of the bytes of pending blocks and their spent coins.
const BYTES_MAX: usize = 64 << 20;

/// Limit of pending blocks: each has an overhead of a few hundred bytes.
const BLOCKS_MAX: usize = 16 << 10;

/// A block whose coins have moved, with the data of the caller.
pub(crate) struct InFlight<T> {
    pub(crate) block: Connected,
    pub(crate) note: T,
}

impl<T> InFlight<T> {
    fn bytes(&self) -> usize {
        let Connected { scripts, undo } = &self.block;
        // Spent coins also exist in decoded form until the scripts are verified.
        scripts.prepared.memory_bytes() + 4 * undo.len()
    }
}

/// A block with verified scripts; only the pipeline creates it.
pub(crate) struct Passed<T> {
    pub(crate) scripts: ScriptsPassed,
    /// Its spent coins, encoded.
    pub(crate) undo: Vec<u8>,
    pub(crate) note: T,
}

/// An invalid block and its descendants, lowest first; never empty.
pub(crate) struct FailedBlocks<T> {
    error: BlockError,
    blocks: VecDeque<InFlight<T>>,
}

impl<T> FailedBlocks<T> {
    /// The broken rule of the lowest block, and its note, if there are no coins to revert.
    pub(crate) fn into_error(mut self) -> (T, BlockError) {
        let lowest = self.blocks.pop_front().expect("there is an invalid block");
        (lowest.note, self.error)
    }

    /// Disconnects all blocks from the coins, highest first. Returns the note of the lowest, and its error.
    pub(crate) fn unwind(mut self, coins: &mut ChainCoins) -> Result<(T, BlockError), EngineError> {
        while let Some(InFlight { block: Connected { scripts, undo }, note }) =
            self.blocks.pop_back()
        {
            let BlockScripts { prepared, rules, .. } = &*scripts;
            disconnect(prepared, &undo, rules.cash.is_some(), coins)?;
            if self.blocks.is_empty() {
                let error = overwrite_or(self.error, prepared, rules, &coins.store)?;
                return Ok((note, error));
            }
        }
        unreachable!("there is an invalid block")
    }
}

/// The blocks between the watermark and the tip of the coins.
pub(crate) struct Pipeline<T> {
    verifier: Arc<Verifier>,
    /// The branch of the blocks since the last drain.
    branch: Arc<Branch>,
    blocks: VecDeque<InFlight<T>>,
    bytes: usize,
    /// The first block is invalid.
    is_refuted: bool,
}

impl<T> Pipeline<T> {
    pub(crate) fn new(verifier: Arc<Verifier>) -> Self {
        Self {
            verifier,
            branch: Branch::new(),
            blocks: VecDeque::new(),
            bytes: 0,
            is_refuted: false,
        }
    }

    /// The queue for the scripts of the next block.
    pub(crate) fn queue(&self, prepared: &Arc<Prepared>, rules: BlockRules) -> ScriptQueue<'_> {
        ScriptQueue::new((&self.verifier, &self.branch), Arc::clone(prepared), rules)
    }

    /// Adds a block whose coins have moved.
    pub(crate) fn push(&mut self, block: InFlight<T>) {
        self.bytes += block.bytes();
        self.blocks.push_back(block);
    }

    /// True if a block is known to be invalid: then no more should be added, and [`Pipeline::drain`] returns it.
    pub(crate) fn has_failure(&self) -> bool {
        self.is_refuted || self.branch.has_failure()
    }

    /// Calls `passed` for each block that the watermark passes, without waiting.
    pub(crate) fn take_passed(&mut self, passed: impl FnMut(Passed<T>)) {
        self.advance(passed);
    }

    /// Waits until another block fits; calls `passed` for each block that the watermark passes.
    pub(crate) fn make_room(&mut self, mut passed: impl FnMut(Passed<T>)) {
        loop {
            self.advance(&mut passed);
            if !self.is_full() || self.has_failure() {
                return;
            }
            let Some(first) = self.blocks.front() else { return };
            let first = Arc::clone(&first.block.scripts);
            self.verifier.wait_until(|| first.is_finished() || self.branch.has_failure());
            if !first.is_finished() && !self.has_failure() {
                // Nothing is running, so its last signatures wait for a full batch.
                self.verifier.drain();
            }
        }
    }

    /// Waits for all scripts: afterwards all blocks have passed, or the rest is refuted. Queued scripts of a block that was not
    /// pushed are finished as well.
    ///
    /// # Panics
    /// A block is left undecided though none below it is invalid, which is a defect.
    pub(crate) fn drain(&mut self, passed: impl FnMut(Passed<T>)) -> Result<(), FailedBlocks<T>> {
        self.verifier.drain();
        let error = self.advance(passed);
        let Self { blocks, .. } = std::mem::replace(self, Self::new(Arc::clone(&self.verifier)));
        if let Some(error) = error {
            Err(FailedBlocks { error, blocks })
        } else {
            assert!(blocks.is_empty(), "{} blocks are undecided after a drain", blocks.len());
            Ok(())
        }
    }

    /// Number of pending blocks, and their bytes with the spent coins.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.blocks.len(), self.bytes)
    }

    /// True if another block must wait for scripts.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > BYTES_MAX || self.blocks.len() >= BLOCKS_MAX
    }

    /// Moves the watermark up to the first undecided or invalid block; returns the error of the latter.
    fn advance(&mut self, mut passed: impl FnMut(Passed<T>)) -> Option<BlockError> {
        while let Some(first) = self.blocks.front() {
            match first.block.scripts.verdict() {
                BlockVerdict::Undecided => return None,
                BlockVerdict::Invalid(error) => {
                    self.is_refuted = true;
                    return Some(error);
                }
                BlockVerdict::Valid(scripts) => {
                    let first = self.blocks.pop_front()?;
                    self.bytes -= first.bytes();
                    let InFlight { block: Connected { undo, .. }, note } = first;
                    passed(Passed { scripts, undo, note });
                }
            }
        }
        None
    }
}
