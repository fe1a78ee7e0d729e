//! Script verification on all cores, while one thread moves coins.
//!
//! That thread hands over transactions with the outputs they spend, of one block after the other; threads of a pool verify
//! them in any order, those of later blocks too ([`Verifier`]). A large transaction goes to several of them, in parts
//! (`parts`). The verdict on a block ([`BlockScripts`]) does not depend on that order: of its failures the one in the lowest
//! transaction and input counts, and nothing below a failure is skipped.

mod ahead;
mod collector;
mod many;
mod parts;
mod runs;
mod verifier;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use assay_consensus::block::{BlockError, BlockRules, ScriptFailure, ScriptRules};
use assay_consensus::script::{ScriptError, TxContext};
use assay_consensus::tx::TxError;
use assay_wire::{Coin, Tx, TxOut};

use crate::prepared::Prepared;
pub(crate) use ahead::Ahead;
pub(crate) use many::verify_many;
use parts::LargeTx;
pub(crate) use parts::{PART_COST, cut};
pub(crate) use verifier::Verifier;

/// A batch is handed over when it holds this many inputs: half a millisecond of work and more.
const BATCH_INPUTS: usize = 64;

/// A transaction whose scripts do not all pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TxFailure {
    pub(crate) tx_index: u32,
    pub(crate) cause: Cause,
}

impl TxFailure {
    /// Of two failures the one with the lower position counts. The signature checks of a transaction are counted when all
    /// its inputs have passed, so an input of it comes first.
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

/// What is wrong with its scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The script of an input failed.
    Script { input: u32, error: ScriptError },
    /// Each passes, together they execute too many signature checks (Bitcoin Cash).
    SigChecks(TxError),
}

/// The scripts of one block, and what is known of them.
pub(crate) struct BlockScripts {
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) rules: BlockRules,
    /// Whether signatures are verified one by one as scripts ask, by libsecp256k1.
    is_at_once: bool,
    /// Transactions, and parts of large ones, whose verdict is open, and one more as long as others may come.
    open: AtomicUsize,
    /// Position of the lowest failure; work above it is pointless.
    lowest: AtomicU64,
    failure: Mutex<Option<TxFailure>>,
    /// Signature checks that have been executed, and those known from before.
    sigchecks: AtomicU64,
}

impl BlockScripts {
    fn new(prepared: Arc<Prepared>, rules: BlockRules) -> Self {
        Self {
            prepared,
            rules,
            is_at_once: false,
            open: AtomicUsize::new(1),
            lowest: AtomicU64::new(u64::MAX),
            failure: Mutex::default(),
            sigchecks: AtomicU64::new(0),
        }
    }

    /// Whether everything that was handed over has been verified, or passed over because it cannot matter.
    pub(crate) fn is_decided(&self) -> bool {
        self.open.load(Ordering::Acquire) == 0
    }

    /// The verdict on the block; call it when it is decided, on the lowest block that has failed or one below it.
    pub(crate) fn verdict(&self) -> Result<(), BlockError> {
        debug_assert!(self.is_decided());
        match &*self.failure.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(failure) => Err(self.error(failure)),
            None => self.rules.check_block_sigchecks(self.sigchecks.load(Ordering::Relaxed)),
        }
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

    /// Notes a failure; gives whether it is the first of the block.
    fn fail(&self, failure: TxFailure) -> bool {
        let mut known = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = known.is_none();
        let position = failure.position();
        if known.as_ref().is_none_or(|known| position < known.position()) {
            self.lowest.fetch_min(position, Ordering::Relaxed);
            *known = Some(failure);
        }
        is_first
    }

    fn add_sigchecks(&self, sigchecks: u64) {
        self.sigchecks.fetch_add(sigchecks, Ordering::Relaxed);
    }

    /// Whether no verdict can depend on these inputs: one before them has failed.
    fn is_pointless(&self, spend: &Spend) -> bool {
        position(spend.tx_index, spend.inputs.start) > self.lowest.load(Ordering::Relaxed)
    }

    fn close(&self, spends: usize) {
        self.open.fetch_sub(spends, Ordering::Release);
    }
}

/// What one task verifies.
struct Batch {
    block: Arc<BlockScripts>,
    spends: Vec<Spend>,
    coins: Coins,
}

/// Inputs of a transaction that are verified one after the other.
struct Spend {
    tx_index: u32,
    inputs: Range<u32>,
    /// Index of what the transaction's first input spends in the coins of the batch.
    first_coin: u32,
}

enum Coins {
    /// Those of whole transactions, one after the other.
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

    /// What the whole transaction spends.
    fn spent<'b>(&'b self, spend: &Spend, outputs: &mut Vec<TxOut<'b>>) {
        let coins = match &self.coins {
            Coins::Whole(coins) => coins,
            Coins::Part(large) => &large.coins,
        };
        let coins = &coins[spend.first_coin as usize..][..self.tx(spend).input_count()];
        outputs.clear();
        outputs.extend(coins.iter().map(Coin::as_tx_out));
    }

    /// The context for `inputs` of a transaction whose outputs [`Self::spent`] gave.
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
    /// The next batch.
    spends: Vec<Spend>,
    coins: Vec<Coin>,
}

impl<'v> ScriptQueue<'v> {
    pub(crate) fn new(
        verifier: &'v Arc<Verifier>,
        prepared: Arc<Prepared>,
        rules: BlockRules,
    ) -> Self {
        let block = Arc::new(BlockScripts::new(prepared, rules));
        Self { verifier, block, spends: Vec::new(), coins: Vec::new() }
    }

    /// The block, and the rules for it.
    pub(crate) fn block(&self) -> (Arc<Prepared>, BlockRules) {
        (Arc::clone(&self.block.prepared), self.block.rules)
    }

    /// Has libsecp256k1 verify every signature by itself, whatever is usual; to be called first.
    pub(crate) fn verify_at_once(&mut self) {
        let block = Arc::get_mut(&mut self.block);
        block.expect("nothing has been handed over").is_at_once = true;
    }

    /// Whether signatures are verified many at a time, some time after they were handed over.
    fn is_deferred(&self) -> bool {
        self.verifier.is_deferred() && !self.block.is_at_once
    }

    /// Takes a transaction over; `coins` are what its inputs spend, in input order, and are drained.
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

    /// Counts the signature checks of a transaction that has been verified before.
    pub(crate) fn add_known(&mut self, sigchecks: u32) {
        self.block.add_sigchecks(sigchecks.into());
    }

    /// Hands over what is left. The block will be decided.
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
mod large_tests;
#[cfg(test)]
mod tests;
