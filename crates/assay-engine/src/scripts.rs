//! Script verification on all cores, beside the thread that resolves coins.
//!
//! The resolving thread hands over batches of whole transactions with the outputs they spend; the pool verifies them in any
//! order. The verdict does not depend on that order: of all failures the one in the lowest transaction and input counts, and
//! nothing below a failure is skipped.
//!
//! Where signatures are verified in batches ([`DeferredScripts`]), each thread collects those of many transactions; what is
//! left at the end of the block is shared out evenly.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use assay_consensus::block::BlockRules;
use assay_consensus::script::{Flags, Interpreter, ScriptError, TxContext};
use assay_consensus::tx::TxError;
use assay_wire::{Block, Coin, Tx, TxOut};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::checker::ImmediateChecker;
use crate::deferred::{DeferredScripts, prove_all};

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

impl Batch {
    /// What a transaction spends, from its first coin on.
    fn spent<'b>(&'b self, first_coin: u32, tx: Tx<'_>, outputs: &mut Vec<TxOut<'b>>) {
        let coins = &self.coins[first_coin as usize..][..tx.input_count()];
        outputs.clear();
        outputs.extend(coins.iter().map(Coin::as_tx_out));
    }
}

impl Collected {
    fn fail(&mut self, input: u32, error: ScriptError) {
        if self.failure.is_none_or(|(first, _)| input < first) {
            self.failure = Some((input, error));
        }
    }
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
    /// How many signatures and the like are verified together, if they are.
    script_batch: Option<usize>,
    /// Those that no thread is using; as many come to be as threads work at once.
    collectors: Mutex<Vec<Collector>>,
    findings: Findings,
}

/// Transactions whose signatures have yet to be verified.
#[derive(Default)]
struct Collector {
    scripts: DeferredScripts<Site>,
    batches: Vec<Batch>,
    txs: Vec<Collected>,
}

/// An input of a collected transaction.
#[derive(Clone, Copy)]
struct Site {
    /// Index in `Collector::txs`.
    slot: u32,
    input: u32,
}

/// A collected transaction, and what is known of it.
struct Collected {
    tx_index: u32,
    /// Index in `Collector::batches`, and of its first coin there.
    batch: u32,
    first_coin: u32,
    sigchecks: u64,
    /// Its first input that fails, so far.
    failure: Option<(u32, ScriptError)>,
}

/// Inputs whose coins a collector keeps at most; only inputs without signatures let it come to that.
const COLLECTED_INPUTS_MAX: usize = 1 << 14;

impl<'a> ScriptJob<'a> {
    /// `script_batch` says how many signatures and the like to verify together; `None` verifies each as it comes.
    pub(crate) fn new(
        block: &'a Block,
        rules: &'a BlockRules,
        script_batch: Option<usize>,
    ) -> Self {
        let findings = Findings {
            lowest: AtomicU32::new(u32::MAX),
            failure: Mutex::new(None),
            sigchecks: AtomicU64::new(0),
        };
        Self { block, rules, script_batch, collectors: Mutex::default(), findings }
    }

    /// The verdict, and the number of signature checks executed; call it when all batches have ended. What is left to
    /// verify is verified on the pool.
    pub(crate) fn finish(mut self, pool: &ThreadPool) -> Result<u64, TxFailure> {
        let collectors = std::mem::take(
            self.collectors.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        if !collectors.is_empty() {
            pool.install(|| self.conclude_all(collectors));
        }
        let failure =
            self.findings.failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        match failure {
            Some(failure) => Err(failure),
            None => Ok(self.findings.sigchecks.into_inner()),
        }
    }

    fn verify(&self, batch: Batch) {
        match self.script_batch {
            Some(checks) => self.collect(batch, checks),
            None => self.verify_at_once(&batch),
        }
    }

    /// Runs the scripts; the signatures are verified when enough have come together.
    fn collect(&self, batch: Batch, script_batch: usize) {
        let idle = || self.collectors.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut collector = idle().pop().unwrap_or_default();
        collector.batches.push(batch);
        let Collector { scripts, batches, txs } = &mut collector;
        let number = batches.len() as u32 - 1;
        let batch = &batches[number as usize];
        let mut outputs: Vec<TxOut<'_>> = Vec::new();
        for (tx_index, first_coin) in &batch.txs {
            if *tx_index > self.findings.lowest.load(Ordering::Relaxed) {
                break;
            }
            let (tx_index, first_coin) = (*tx_index, *first_coin);
            let tx = self.block.tx(tx_index as usize);
            let slot = txs.len() as u32;
            txs.push(Collected {
                tx_index,
                batch: number,
                first_coin,
                sigchecks: 0,
                failure: None,
            });
            batch.spent(first_coin, tx, &mut outputs);
            let context = TxContext::new(tx, &outputs);
            for input in 0..tx.input_count() {
                let site = Site { slot, input: input as u32 };
                match scripts.verify_input(&context, input, self.rules.flags, site) {
                    Ok(stats) => txs[slot as usize].sigchecks += u64::from(stats.sig_checks),
                    Err(error) => {
                        txs[slot as usize].fail(input as u32, error);
                        break;
                    }
                }
                // Only a transaction with very many inputs comes to this.
                if scripts.checks_len() >= 2 * script_batch {
                    self.settle(scripts, None, batches, txs);
                }
            }
        }
        let kept: usize = collector.batches.iter().map(|batch| batch.coins.len()).sum();
        if collector.scripts.checks_len() >= script_batch || kept >= COLLECTED_INPUTS_MAX {
            self.conclude(&mut collector, None);
        }
        idle().push(collector);
    }

    /// Verifies what has been recorded, and runs inputs again where that did not prove it.
    fn settle(
        &self,
        scripts: &mut DeferredScripts<Site>,
        proven: Option<&[bool]>,
        batches: &[Batch],
        txs: &mut [Collected],
    ) {
        scripts.settle_proven(proven, |site, claimed, interpreter| {
            let collected = &mut txs[site.slot as usize];
            if collected.failure.is_some_and(|(first, _)| first < site.input) {
                return;
            }
            let tx = self.block.tx(collected.tx_index as usize);
            let mut outputs = Vec::new();
            batches[collected.batch as usize].spent(collected.first_coin, tx, &mut outputs);
            let context = TxContext::new(tx, &outputs);
            let input = site.input as usize;
            match interpreter.verify_input(&context, input, self.rules.flags, &mut ImmediateChecker)
            {
                Ok(stats) => {
                    collected.sigchecks -= u64::from(claimed.sig_checks);
                    collected.sigchecks += u64::from(stats.sig_checks);
                }
                Err(error) => collected.fail(site.input, error),
            }
        });
    }

    /// Settles everything in a collector and empties it.
    fn conclude(&self, collector: &mut Collector, proven: Option<&[bool]>) {
        let Collector { scripts, batches, txs } = collector;
        self.settle(scripts, proven, batches, txs);
        let mut sigchecks = 0;
        for collected in txs.drain(..) {
            let verdict = match collected.failure {
                Some((input, error)) => Err(Cause::Script { input, error }),
                None => {
                    self.rules.check_tx_sigchecks(collected.sigchecks).map_err(Cause::SigChecks)
                }
            };
            match verdict {
                Ok(()) => sigchecks += collected.sigchecks,
                Err(cause) => self.fail(TxFailure { tx_index: collected.tx_index, cause }),
            }
        }
        batches.clear();
        self.findings.sigchecks.fetch_add(sigchecks, Ordering::Relaxed);
    }

    /// Concludes what the end of the block has left.
    fn conclude_all(&self, mut collectors: Vec<Collector>) {
        let proven = prove_all(collectors.iter().map(|collector| &collector.scripts));
        collectors
            .par_iter_mut()
            .zip(&proven)
            .for_each(|(collector, proven)| self.conclude(collector, Some(proven)));
    }

    fn verify_at_once(&self, batch: &Batch) {
        let mut interpreter = Interpreter::default();
        let mut outputs: Vec<TxOut<'_>> = Vec::new();
        let mut sigchecks = 0;
        for (tx_index, first_coin) in &batch.txs {
            if *tx_index > self.findings.lowest.load(Ordering::Relaxed) {
                break;
            }
            let tx = self.block.tx(*tx_index as usize);
            batch.spent(*first_coin, tx, &mut outputs);
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
        self.scope.spawn(move |_| job.verify(batch));
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
