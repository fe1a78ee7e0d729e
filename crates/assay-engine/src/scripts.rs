//! Script verification on all cores, beside the thread that moves coins.
//!
//! That thread hands over transactions with the outputs they spend, of one block after the other; threads of a pool verify
//! them in any order, those of later blocks too ([`Verifier`]). The verdict on a block ([`BlockScripts`]) does not depend
//! on that order: of its failures the one in the lowest transaction and input counts, and nothing below a failure is skipped.

mod collector;
mod many;
mod verifier;

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use assay_consensus::block::{BlockError, BlockRules, ScriptFailure};
use assay_consensus::script::{Flags, Interpreter, ScriptError, TxContext};
use assay_consensus::tx::TxError;
use assay_wire::{Coin, Tx, TxOut};

use crate::checker::ImmediateChecker;
use crate::connect::Prepared;
pub(crate) use many::verify_many;
pub(crate) use verifier::Verifier;

/// A batch is handed over when it holds this many inputs: half a millisecond of work and more.
const BATCH_INPUTS: usize = 64;

/// A transaction whose scripts do not all pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TxFailure {
    pub(crate) tx_index: u32,
    pub(crate) cause: Cause,
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
    /// Transactions whose verdict is open, and one more as long as others may come.
    open: AtomicUsize,
    /// Transaction index of the lowest failure; work above it is pointless.
    lowest: AtomicU32,
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
            lowest: AtomicU32::new(u32::MAX),
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
                let source = ScriptFailure { txid, wtxid, input, prevout, error };
                BlockError::Script { tx_index, source: Box::new(source) }
            }
        }
    }

    /// Notes what the scripts of a transaction came to; gives whether it is the first failure of the block.
    fn note(&self, tx_index: u32, verdict: Result<u64, Cause>) -> bool {
        let cause = match verdict {
            Ok(sigchecks) => {
                self.sigchecks.fetch_add(sigchecks, Ordering::Relaxed);
                return false;
            }
            Err(cause) => cause,
        };
        let mut known = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = known.is_none();
        // One thread verifies a transaction, from its first input on, so there is one failure for each.
        if known.as_ref().is_none_or(|known| tx_index < known.tx_index) {
            self.lowest.fetch_min(tx_index, Ordering::Relaxed);
            *known = Some(TxFailure { tx_index, cause });
        }
        is_first
    }

    fn is_pointless(&self, tx_index: u32) -> bool {
        tx_index > self.lowest.load(Ordering::Relaxed)
    }

    fn close(&self, txs: usize) {
        self.open.fetch_sub(txs, Ordering::Release);
    }
}

/// Transactions to verify, with the coins that their inputs spend.
struct Batch {
    block: Arc<BlockScripts>,
    /// Index of the transaction in the block and of its first coin in `coins`.
    txs: Vec<(u32, u32)>,
    coins: Vec<Coin>,
}

impl Batch {
    fn new(block: Arc<BlockScripts>) -> Self {
        Self { block, txs: Vec::new(), coins: Vec::new() }
    }

    /// What a transaction spends, from its first coin on.
    fn spent<'b>(&'b self, first_coin: u32, tx: Tx<'_>, outputs: &mut Vec<TxOut<'b>>) {
        let coins = &self.coins[first_coin as usize..][..tx.input_count()];
        outputs.clear();
        outputs.extend(coins.iter().map(Coin::as_tx_out));
    }
}

/// Collects the transactions of a block into batches and hands them over.
pub(crate) struct ScriptQueue<'v> {
    verifier: &'v Arc<Verifier>,
    batch: Batch,
}

impl<'v> ScriptQueue<'v> {
    pub(crate) fn new(
        verifier: &'v Arc<Verifier>,
        prepared: Arc<Prepared>,
        rules: BlockRules,
    ) -> Self {
        Self { verifier, batch: Batch::new(Arc::new(BlockScripts::new(prepared, rules))) }
    }

    /// Has libsecp256k1 verify every signature by itself, whatever is usual; to be called first.
    pub(crate) fn verify_at_once(&mut self) {
        let block = Arc::get_mut(&mut self.batch.block);
        block.expect("nothing has been handed over").is_at_once = true;
    }

    /// Takes a transaction over; `coins` are what its inputs spend, in input order, and are drained.
    pub(crate) fn push(&mut self, tx_index: usize, coins: &mut Vec<Coin>) {
        let first_coin = self.batch.coins.len() as u32;
        self.batch.txs.push((tx_index as u32, first_coin));
        self.batch.coins.append(coins);
        if self.batch.coins.len() >= BATCH_INPUTS {
            self.send();
        }
    }

    /// Counts the signature checks of a transaction that has been verified before.
    pub(crate) fn add_known(&mut self, sigchecks: u32) {
        self.batch.block.note(0, Ok(sigchecks.into()));
    }

    /// Hands over what is left. The block will be decided.
    pub(crate) fn finish(mut self) -> Arc<BlockScripts> {
        self.send();
        self.batch.block.close(1);
        self.batch.block
    }

    fn send(&mut self) {
        if !self.batch.txs.is_empty() {
            let next = Batch::new(Arc::clone(&self.batch.block));
            self.verifier.spawn(std::mem::replace(&mut self.batch, next));
        }
    }
}

/// Verifies every input of a transaction: the number of signature checks, or the first input that fails and why.
pub(crate) fn verify_tx(
    tx: Tx<'_>,
    spent: &[TxOut<'_>],
    flags: Flags,
    interpreter: &mut Interpreter,
) -> Result<u64, Cause> {
    let context = TxContext::new(tx, spent);
    let mut sigchecks = 0;
    for input in 0..tx.input_count() {
        let stats = interpreter
            .verify_input(&context, input, flags, &mut ImmediateChecker)
            .map_err(|error| Cause::Script { input: input as u32, error })?;
        sigchecks += u64::from(stats.sig_checks);
    }
    Ok(sigchecks)
}

#[cfg(test)]
mod tests;
