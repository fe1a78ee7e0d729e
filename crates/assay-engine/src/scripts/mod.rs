//! Script verification on all cores, while one thread moves coins.
//!
//! That thread hands over transactions with their spent outputs, block by block. Pool threads verify them in any order, across
//! blocks ([`Verifier`]). A large transaction is split into parts for several threads (`parts`). The verdict on a block
//! ([`BlockScripts`]) does not depend on the order: of its failures the one in the lowest transaction and input is reported, and
//! nothing below a failure is skipped.
//!
//! Failures belong to the chain of blocks being connected ([`Branch`]), never to the verifying threads: trial blocks, the active
//! chain and the blocks below a snapshot cannot affect each other. A block with a skipped input stays undecided; only
//! [`BlockVerdict::Valid`] yields the [`ScriptsPassed`] that making a block the tip requires (`docs/block-states.md`).

mod collector;
mod lookahead;
mod many;
mod parts;
mod runs;
mod verifier;

use std::ops::Range;
use std::sync::Arc;

use assay_consensus::block::{BlockError, BlockRules, ScriptFailure, ScriptRules};
use assay_consensus::script::{ScriptError, TxContext};
use assay_consensus::tx::TxError;
use assay_wire::{Coin, Tx, TxOut};

use crate::fault_injection::is_planted;
use crate::prepared::Prepared;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(crate) use lookahead::Lookahead;
pub(crate) use many::{Part, Parts, Spending, cut_all, shares, verify_many};
use parts::LargeTx;
pub(crate) use parts::PART_COST;
use parts::cut;
use runs::RunVerdict;
pub(crate) use verifier::{Verifier, verify_threads};

/// Inputs per batch: at least half a millisecond of work.
const BATCH_INPUTS: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TxFailure {
    pub(crate) tx_index: u32,
    pub(crate) cause: Cause,
}

impl TxFailure {
    /// Of two failures the one with the lower position is reported. The signature checks of a transaction are counted after all
    /// its inputs have passed, so a failure of an input is first.
    fn position(&self) -> u64 {
        match self.cause {
            Cause::Script { input, .. } => position(self.tx_index, input),
            Cause::SigChecks(_) => position(self.tx_index, u32::MAX),
        }
    }
}

/// Orders the inputs of a block.
fn position(tx_index: u32, input: u32) -> u64 {
    u64::from(tx_index) << 32 | u64::from(input)
}

/// Kind of a script failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The script of an input failed.
    Script { input: u32, error: ScriptError },
    /// Each input passes, but together they execute too many signature checks (Bitcoin Cash).
    SigChecks(TxError),
}

/// A chain of consecutive blocks being connected, with its lowest failure.
///
/// Every [`Pipeline`](crate::pipeline::Pipeline) has its own, so that failures do not affect other blocks.
pub(crate) struct Branch {
    /// Height of the lowest block with a failure; blocks above it need no verdict.
    lowest_failed: AtomicU32,
}

impl Branch {
    pub(crate) fn new() -> Arc<Self> {
        static SHARED: std::sync::Mutex<Option<Arc<Branch>>> = std::sync::Mutex::new(None);
        let new = || Arc::new(Self { lowest_failed: AtomicU32::new(u32::MAX) });
        if is_planted("shared-failures") {
            let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            return Arc::clone(shared.get_or_insert_with(new));
        }
        new()
    }

    /// True if a script of any of its blocks has failed.
    pub(crate) fn has_failure(&self) -> bool {
        self.lowest_failed.load(Ordering::Relaxed) < u32::MAX
    }
}

/// Proof that every script of a block was verified under its rules and passed.
pub(crate) struct ScriptsPassed(Arc<BlockScripts>);

impl ScriptsPassed {
    pub(crate) fn height(&self) -> u32 {
        self.0.rules.height
    }

    pub(crate) fn prepared(&self) -> &Arc<Prepared> {
        &self.0.prepared
    }
}

pub(crate) enum BlockVerdict {
    /// Inputs are not verified yet, or were skipped: a block below it has failed, or it was given up.
    Undecided,
    Valid(ScriptsPassed),
    /// The lowest failure.
    Invalid(BlockError),
}

pub(crate) struct BlockScripts {
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) rules: BlockRules,
    branch: Arc<Branch>,
    /// True if libsecp256k1 verifies each signature at once.
    is_at_once: bool,
    /// Transactions, and parts of large ones, that are neither verified nor skipped, and one more until the queue is finished.
    open: AtomicUsize,
    /// True if a required input was skipped.
    has_skipped: AtomicBool,
    /// Position of the lowest failure; inputs above it are irrelevant.
    lowest: AtomicU64,
    failure: Mutex<Option<TxFailure>>,
    /// Number of executed signature checks, including known ones.
    sigchecks: AtomicU64,
}

impl BlockScripts {
    fn new(prepared: Arc<Prepared>, rules: BlockRules, branch: Arc<Branch>) -> Self {
        Self {
            prepared,
            rules,
            branch,
            is_at_once: false,
            open: AtomicUsize::new(1),
            has_skipped: AtomicBool::new(false),
            lowest: AtomicU64::new(u64::MAX),
            failure: Mutex::new(None),
            sigchecks: AtomicU64::new(0),
        }
    }

    /// True if no work is left: everything handed over is verified or skipped.
    pub(crate) fn is_finished(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    pub(crate) fn verdict(self: &Arc<Self>) -> BlockVerdict {
        // In this order: skipped inputs are recorded before they count as finished.
        if !self.is_finished()
            || self.has_skipped.load(Ordering::Relaxed) && !is_planted("shared-failures")
        {
            return BlockVerdict::Undecided;
        }
        let verdict = match &*self.failure.lock() {
            Some(failure) => Err(self.error(failure)),
            None => self.rules.check_block_sigchecks(self.sigchecks.load(Ordering::Relaxed)),
        };
        match verdict {
            Ok(()) => BlockVerdict::Valid(ScriptsPassed(Arc::clone(self))),
            Err(error) => BlockVerdict::Invalid(error),
        }
    }

    /// Skips the rest of a block that was rejected for another reason. It stays undecided.
    pub(crate) fn give_up(&self) {
        self.has_skipped.store(true, Ordering::Relaxed);
        self.lowest.store(0, Ordering::Relaxed);
    }

    fn error(&self, failure: &TxFailure) -> BlockError {
        let tx_index = failure.tx_index as usize;
        let txid = self.prepared.txids[tx_index];
        match failure.cause.clone() {
            Cause::SigChecks(source) => BlockError::Tx { tx_index, txid, source },
            Cause::Script { input, error } => {
                let input = input as usize;
                let prevout = self.prepared.block.tx(tx_index).input(input).prevout;
                let wtxid = self.prepared.wtxid(tx_index);
                let source = ScriptFailure {
                    txid,
                    wtxid,
                    input,
                    prevout,
                    error,
                    rules: ScriptRules::of(self.rules.flags),
                };
                BlockError::Script { tx_index, source: Box::new(source) }
            }
        }
    }

    fn fail(&self, failure: TxFailure) {
        let mut known = self.failure.lock();
        let position = failure.position();
        if known.as_ref().is_none_or(|known| position < known.position()) {
            self.lowest.fetch_min(position, Ordering::Relaxed);
            *known = Some(failure);
            self.branch.lowest_failed.fetch_min(self.rules.height, Ordering::Relaxed);
        }
    }

    fn add_sigchecks(&self, sigchecks: u64) {
        self.sigchecks.fetch_add(sigchecks, Ordering::Relaxed);
    }

    /// True if these inputs are irrelevant for every verdict: an input before them has failed, in this block or below.
    fn skips(&self, spend: &Spend) -> bool {
        if self.rules.height > self.branch.lowest_failed.load(Ordering::Relaxed) {
            self.has_skipped.store(true, Ordering::Relaxed);
            return true;
        }
        position(spend.tx_index, spend.inputs.start) > self.lowest.load(Ordering::Relaxed)
    }

    fn close(&self, spends: usize) {
        self.open.fetch_sub(spends, Ordering::Release);
    }
}

/// The work of one task.
struct Batch {
    block: Arc<BlockScripts>,
    spends: Vec<Spend>,
    coins: Coins,
}

/// Inputs of a transaction, verified sequentially.
struct Spend {
    tx_index: u32,
    inputs: Range<u32>,
    /// Index of the transaction's first spent coin in the coins of the batch.
    first_coin: u32,
}

enum Coins {
    /// Coins of whole transactions, concatenated.
    Whole(Vec<Coin>),
    /// The batch is a part of this transaction.
    Part(Arc<LargeTx>),
}

impl Spend {
    fn range(&self) -> Range<usize> {
        self.inputs.start as usize..self.inputs.end as usize
    }
}

impl Batch {
    fn input_count(&self) -> usize {
        self.spends.iter().map(|spend| spend.inputs.len()).sum()
    }

    fn tx(&self, spend: &Spend) -> Tx<'_> {
        self.block.prepared.block.tx(spend.tx_index as usize)
    }

    /// Records the result of some inputs. The last part of a transaction to pass adds the signature checks of all. If a part
    /// fails or is skipped, none is the last, because a script has failed at a lower position.
    fn note(&self, spend: &Spend, verdict: RunVerdict) {
        let block = &*self.block;
        let fail = |cause| block.fail(TxFailure { tx_index: spend.tx_index, cause });
        let whole = match verdict {
            Err((input, error)) => return fail(Cause::Script { input, error }),
            Ok(sigchecks) => {
                block.add_sigchecks(sigchecks);
                match &self.coins {
                    Coins::Whole(_) => Some(sigchecks),
                    Coins::Part(large) => large.pass(sigchecks),
                }
            }
        };
        if let Some(sigchecks) = whole
            && let Err(error) = block.rules.check_tx_sigchecks(sigchecks)
        {
            fail(Cause::SigChecks(error));
        }
    }

    /// The spent outputs of the whole transaction.
    fn spent<'b>(&'b self, spend: &Spend, outputs: &mut Vec<TxOut<'b>>) {
        let coins = match &self.coins {
            Coins::Whole(coins) => coins,
            Coins::Part(large) => &large.coins,
        };
        let coins = &coins[spend.first_coin as usize..][..self.tx(spend).input_count()];
        outputs.clear();
        outputs.extend(coins.iter().map(Coin::as_tx_out));
    }

    /// The context for `inputs` of a transaction with outputs from [`Self::spent`].
    fn context<'b>(
        &'b self,
        spend: &Spend,
        outputs: &'b [TxOut<'b>],
        inputs: Range<usize>,
    ) -> TxContext<'b> {
        let context = TxContext::new(self.tx(spend), outputs);
        match &self.coins {
            Coins::Whole(_) => context,
            Coins::Part(large) => context.for_part(inputs, &large.hashes),
        }
    }
}

/// Collects the transactions of a block into batches and hands them over.
pub(crate) struct ScriptQueue<'v> {
    verifier: &'v Arc<Verifier>,
    block: Arc<BlockScripts>,
    spends: Vec<Spend>,
    coins: Vec<Coin>,
}

impl<'v> ScriptQueue<'v> {
    pub(crate) fn new(
        (verifier, branch): (&'v Arc<Verifier>, &Arc<Branch>),
        prepared: Arc<Prepared>,
        rules: BlockRules,
    ) -> Self {
        let block = Arc::new(BlockScripts::new(prepared, rules, Arc::clone(branch)));
        Self { verifier, block, spends: Vec::new(), coins: Vec::new() }
    }

    pub(crate) fn block(&self) -> (Arc<Prepared>, BlockRules) {
        (Arc::clone(&self.block.prepared), self.block.rules)
    }

    /// Makes libsecp256k1 verify every signature at once; must be called first.
    pub(crate) fn verify_at_once(&mut self) {
        let block = Arc::get_mut(&mut self.block);
        block.expect("nothing has been handed over").is_at_once = true;
    }

    /// True if signatures are verified later in batches.
    fn is_deferred(&self) -> bool {
        self.verifier.is_deferred() && !self.block.is_at_once
    }

    /// Adds a transaction; `coins` are its spent coins in input order, and are drained.
    pub(crate) fn push(&mut self, tx_index: usize, coins: &mut Vec<Coin>) {
        let tx = self.block.prepared.block.tx(tx_index);
        let tx_index = tx_index as u32;
        if let Some(parts) = self.verifier.cut(tx) {
            let large = Arc::new(LargeTx::new(tx, std::mem::take(coins), parts.len()));
            for inputs in parts {
                let spends = vec![Spend { tx_index, inputs, first_coin: 0 }];
                self.spawn(spends, Coins::Part(Arc::clone(&large)));
            }
            return;
        }
        let (first_coin, inputs) = (self.coins.len() as u32, 0..coins.len() as u32);
        self.spends.push(Spend { tx_index, inputs, first_coin });
        self.coins.append(coins);
        if self.coins.len() >= BATCH_INPUTS {
            self.send();
        }
    }

    /// Adds the signature checks of a transaction verified before.
    pub(crate) fn add_known(&mut self, sigchecks: u32) {
        self.block.add_sigchecks(sigchecks.into());
    }

    /// Hands over the rest. The block can then finish.
    pub(crate) fn finish(mut self) -> Arc<BlockScripts> {
        self.send();
        self.block.close(1);
        self.block
    }

    fn send(&mut self) {
        if !self.spends.is_empty() {
            let (spends, coins) =
                (std::mem::take(&mut self.spends), std::mem::take(&mut self.coins));
            self.spawn(spends, Coins::Whole(coins));
        }
    }

    fn spawn(&self, spends: Vec<Spend>, coins: Coins) {
        self.verifier.spawn(Batch { block: Arc::clone(&self.block), spends, coins });
    }
}

#[cfg(test)]
mod tests;
