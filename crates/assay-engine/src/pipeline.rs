//! Blocks whose coins have moved and whose scripts are being verified.
//!
//! Scripts need the outputs they spend, and not that the blocks before are valid. So coins move ahead in the order of the
//! blocks, the scripts of many blocks are verified at once, and a watermark follows: the highest block up to which all
//! scripts have passed. Nothing is written to disk that is above it. When a script fails, the blocks from that one on are
//! taken back; the lowest block that is invalid is the one reported, whatever was found first.

use std::collections::VecDeque;
use std::sync::Arc;

use assay_consensus::block::{BlockError, BlockRules};
use assay_store::CoinStore;

use crate::apply::CoinbaseLog;
use crate::connect::{Connected, disconnect, overwrite_or};
use crate::error::EngineError;
use crate::prepared::Prepared;
use crate::scripts::{BlockScripts, BlockVerdict, Branch, ScriptQueue, ScriptsPassed, Verifier};

/// The bytes of blocks, and of what they spend, that may wait for their scripts.
const BYTES_MAX: usize = 64 << 20;

/// Blocks that may wait: each bears a few hundred bytes however small it is.
const BLOCKS_MAX: usize = 16 << 10;

/// A block whose coins have moved, with what its owner keeps of it.
pub(crate) struct InFlight<T> {
    pub(crate) block: Connected,
    pub(crate) note: T,
}

impl<T> InFlight<T> {
    fn bytes(&self) -> usize {
        let Connected { scripts, undo } = &self.block;
        // What is spent is also there decoded, until its scripts are verified.
        scripts.prepared.memory_bytes() + 4 * undo.len()
    }
}

/// A block all of whose scripts have passed; made by the pipeline alone.
pub(crate) struct Passed<T> {
    pub(crate) scripts: ScriptsPassed,
    /// The coins it spent, encoded.
    pub(crate) undo: Vec<u8>,
    pub(crate) note: T,
}

/// An invalid block and all that build on it, lowest first; never empty.
pub(crate) struct Refuted<T> {
    error: BlockError,
    blocks: VecDeque<InFlight<T>>,
}

impl<T> Refuted<T> {
    /// The rule that the lowest block breaks, and its note, where there are no coins to take back.
    pub(crate) fn into_error(mut self) -> (T, BlockError) {
        let lowest = self.blocks.pop_front().expect("there is an invalid block");
        (lowest.note, self.error)
    }

    /// Takes the coins of all blocks back, highest first. Gives the note of the lowest, and what is to be reported of it.
    pub(crate) fn unwind(
        mut self,
        coins: &mut CoinStore,
        coinbases: &mut CoinbaseLog,
    ) -> Result<(T, BlockError), EngineError> {
        while let Some(InFlight { block: Connected { scripts, undo }, note }) =
            self.blocks.pop_back()
        {
            let BlockScripts { prepared, rules, .. } = &*scripts;
            disconnect(prepared, &undo, rules.cash.is_some(), (coins, coinbases))?;
            if self.blocks.is_empty() {
                let error = overwrite_or(self.error, prepared, rules, coins)?;
                return Ok((note, error));
            }
        }
        unreachable!("there is an invalid block")
    }
}

/// The blocks between the watermark and the tip of the coins.
pub(crate) struct Pipeline<T> {
    verifier: Arc<Verifier>,
    /// Of the blocks that have come since it was drained last.
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

    /// The scripts of the block that comes next.
    pub(crate) fn queue(&self, prepared: &Arc<Prepared>, rules: BlockRules) -> ScriptQueue<'_> {
        ScriptQueue::new((&self.verifier, &self.branch), Arc::clone(prepared), rules)
    }

    /// Takes over a block whose coins have moved.
    pub(crate) fn push(&mut self, block: InFlight<T>) {
        self.bytes += block.bytes();
        self.blocks.push_back(block);
    }

    /// Whether a block is known to be invalid: then no more should come, and [`Pipeline::drain`] says which one is.
    pub(crate) fn has_failure(&self) -> bool {
        self.is_refuted || self.branch.has_failure()
    }

    /// Gives each block that the watermark passes, without waiting.
    pub(crate) fn take_passed(&mut self, passed: impl FnMut(Passed<T>)) {
        self.advance(passed);
    }

    /// Waits until another block may come; `passed` gets each block that the watermark passes.
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
                // Nothing is running, so its last signatures wait for others to make up a batch.
                self.verifier.drain();
            }
        }
    }

    /// Waits for all scripts: afterwards all blocks have passed, or the rest is refuted. What was handed over of a block that
    /// was not pushed is finished as well.
    ///
    /// # Panics
    /// When a block is left undecided though none below it is invalid, which is a defect.
    pub(crate) fn drain(&mut self, passed: impl FnMut(Passed<T>)) -> Result<(), Refuted<T>> {
        self.verifier.drain();
        let error = self.advance(passed);
        let Self { blocks, .. } = std::mem::replace(self, Self::new(Arc::clone(&self.verifier)));
        if let Some(error) = error {
            Err(Refuted { error, blocks })
        } else {
            assert!(blocks.is_empty(), "{} blocks are undecided after a drain", blocks.len());
            Ok(())
        }
    }

    /// Blocks that wait, and their bytes with what they spend.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.blocks.len(), self.bytes)
    }

    /// Whether scripts are to be waited for before another block comes.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > BYTES_MAX || self.blocks.len() >= BLOCKS_MAX
    }

    /// Moves the watermark up to the first block that is undecided, or invalid: then gives the reason.
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
