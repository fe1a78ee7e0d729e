//! Script verification on all cores, beside the thread that resolves coins.
//!
//! The resolving thread hands over batches of whole transactions with the outputs they spend; the pool verifies them in any
//! order. The verdict does not depend on that order: of all failures the one in the lowest transaction and input counts, and
//! nothing below a failure is skipped.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use assay_consensus::block::BlockRules;
use assay_consensus::script::{Flags, Interpreter, ScriptError, TxContext};
use assay_consensus::tx::TxError;
use assay_wire::{Block, Coin, Tx, TxOut};

use crate::checker::ImmediateChecker;

/// A batch is handed over when it holds this many inputs: about two milliseconds of work.
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

/// Transactions to verify, with the coins that their inputs spend.
#[derive(Default)]
struct Batch {
    /// Index of the transaction in the block and of its first coin in `coins`.
    txs: Vec<(u32, u32)>,
    coins: Vec<Coin>,
}

/// What the workers found so far.
struct Findings {
    /// Transaction index of the lowest failure; work above it is pointless.
    lowest: AtomicU32,
    failure: Mutex<Option<TxFailure>>,
    sigchecks: AtomicU64,
}

/// Collects transactions into batches and spawns them.
pub(crate) struct ScriptQueue<'scope, 'env> {
    scope: &'scope rayon::Scope<'env>,
    job: &'env ScriptJob<'env>,
    batch: Batch,
}

/// The scripts of one block.
pub(crate) struct ScriptJob<'a> {
    block: &'a Block,
    rules: &'a BlockRules,
    findings: Findings,
}

impl<'a> ScriptJob<'a> {
    pub(crate) fn new(block: &'a Block, rules: &'a BlockRules) -> Self {
        let findings = Findings {
            lowest: AtomicU32::new(u32::MAX),
            failure: Mutex::new(None),
            sigchecks: AtomicU64::new(0),
        };
        Self { block, rules, findings }
    }

    /// The verdict, and the number of signature checks executed; call it when all batches have ended.
    pub(crate) fn finish(self) -> Result<u64, TxFailure> {
        let failure =
            self.findings.failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        match failure {
            Some(failure) => Err(failure),
            None => Ok(self.findings.sigchecks.into_inner()),
        }
    }

    fn verify(&self, batch: &Batch) {
        let mut interpreter = Interpreter::default();
        let mut outputs: Vec<TxOut<'_>> = Vec::new();
        let mut sigchecks = 0;
        for (tx_index, first_coin) in &batch.txs {
            if *tx_index > self.findings.lowest.load(Ordering::Relaxed) {
                break;
            }
            let tx = self.block.tx(*tx_index as usize);
            let first_coin = *first_coin as usize;
            outputs.clear();
            outputs.extend(
                batch.coins[first_coin..first_coin + tx.input_count()].iter().map(Coin::as_tx_out),
            );
            let verdict =
                verify_tx(tx, &outputs, self.rules.flags, &mut interpreter).and_then(|count| {
                    self.rules.check_tx_sigchecks(count).map(|()| count).map_err(Cause::SigChecks)
                });
            match verdict {
                Ok(count) => sigchecks += count,
                Err(cause) => self.fail(TxFailure { tx_index: *tx_index, cause }),
            }
        }
        self.findings.sigchecks.fetch_add(sigchecks, Ordering::Relaxed);
    }

    fn fail(&self, failure: TxFailure) {
        let mut known =
            self.findings.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // One thread verifies a transaction, from its first input on, so there is one failure for each.
        if known.as_ref().is_none_or(|known| failure.tx_index < known.tx_index) {
            self.findings.lowest.fetch_min(failure.tx_index, Ordering::Relaxed);
            *known = Some(failure);
        }
    }
}

impl<'scope, 'env> ScriptQueue<'scope, 'env> {
    pub(crate) fn new(scope: &'scope rayon::Scope<'env>, job: &'env ScriptJob<'env>) -> Self {
        Self { scope, job, batch: Batch::default() }
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

    /// Hands over what is left.
    pub(crate) fn send(&mut self) {
        if self.batch.txs.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        let job = self.job;
        self.scope.spawn(move |_| job.verify(&batch));
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
