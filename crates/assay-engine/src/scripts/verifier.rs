//! The threads that verify, and what waits for them.

use std::any::Any;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use assay_consensus::script::Interpreter;
use assay_store::defect::{Point, point};
use assay_wire::{Tx, TxOut};
use rayon::ThreadPool;
use rayon::prelude::*;

use super::collector::Collector;
use super::runs::{RunVerdict, verify_run};
use super::{Batch, Cause, Coins, PART_COST, Spend, TxFailure, cut};
use crate::deferred::prove_all;

/// Verifies the scripts of any number of blocks on the threads of a pool.
///
/// Where signatures are verified in batches ([`DeferredScripts`](crate::DeferredScripts)), each thread collects those of many
/// transactions and blocks; what is left when somebody waits for the last of them is shared out evenly.
pub(crate) struct Verifier {
    pool: Arc<ThreadPool>,
    /// How many signatures and the like are verified together, if they are.
    script_batch: Option<usize>,
    /// What a part of a large transaction costs at least.
    part_cost: u64,
    /// Those that no thread is using; as many come to be as threads work at once.
    collectors: Mutex<Vec<Collector>>,
    tasks: Mutex<Tasks>,
    changed: Condvar,
    /// Height of the lowest block with a failure; those above it need no verdict.
    lowest_failed: AtomicU32,
}

/// What has been handed to the pool.
#[derive(Default)]
struct Tasks {
    running: usize,
    panic: Option<Box<dyn Any + Send>>,
}

impl Verifier {
    /// `script_batch` says how many signatures and the like to verify together; `None` verifies each as it comes.
    pub(crate) fn new(pool: Arc<ThreadPool>, script_batch: Option<usize>) -> Arc<Self> {
        Self::with_part_cost(pool, script_batch, PART_COST)
    }

    /// The same with parts of large transactions that cost at least so much ([`cut`]).
    pub(super) fn with_part_cost(
        pool: Arc<ThreadPool>,
        script_batch: Option<usize>,
        part_cost: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            pool,
            script_batch,
            part_cost,
            collectors: Mutex::default(),
            tasks: Mutex::default(),
            changed: Condvar::new(),
            lowest_failed: AtomicU32::new(u32::MAX),
        })
    }

    /// Whether signatures are verified many at a time.
    pub(super) fn is_deferred(&self) -> bool {
        self.script_batch.is_some()
    }

    /// Whether a script has failed since the last [`Verifier::forget_failure`].
    pub(crate) fn has_failure(&self) -> bool {
        self.lowest_failed.load(Ordering::Relaxed) < u32::MAX
    }

    /// Waits until `is_enough` holds or nothing is running any more.
    pub(crate) fn wait_until(&self, mut is_enough: impl FnMut() -> bool) {
        let mut tasks = self.tasks();
        while tasks.running > 0 && !is_enough() {
            tasks = self.changed.wait(tasks).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Makes blocks above one that has failed count again.
    pub(crate) fn forget_failure(&self) {
        self.lowest_failed.store(u32::MAX, Ordering::Relaxed);
    }

    /// Waits until everything that was handed over is decided.
    ///
    /// # Panics
    /// When a task has panicked.
    pub(crate) fn drain(&self) {
        self.wait_until(|| false);
        if let Some(panic) = self.tasks().panic.take() {
            std::panic::resume_unwind(panic);
        }
        let collectors = std::mem::take(&mut *self.idle());
        if collectors.iter().any(|collector| !collector.is_empty()) {
            self.pool.install(|| self.conclude_all(collectors));
        }
    }

    /// The parts in which a transaction is to be handed over, if it is large.
    pub(super) fn cut(&self, tx: Tx<'_>) -> Option<impl ExactSizeIterator<Item = Range<u32>>> {
        cut(tx, self.pool.current_num_threads(), self.part_cost)
    }

    pub(super) fn spawn(self: &Arc<Self>, batch: Batch) {
        batch.block.open.fetch_add(batch.spends.len(), Ordering::Relaxed);
        self.tasks().running += 1;
        let this = Arc::clone(self);
        self.pool.spawn(move || {
            let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| this.verify(batch)));
            let mut tasks = this.tasks();
            tasks.running -= 1;
            if let Err(panic) = outcome {
                tasks.panic.get_or_insert(panic);
            }
            drop(tasks);
            this.changed.notify_all();
        });
    }

    fn verify(&self, batch: Batch) {
        point(Point::ScriptTask);
        match self.script_batch.filter(|_| !batch.block.is_at_once) {
            Some(checks) => {
                let mut collector = self.idle().pop().unwrap_or_default();
                collector.collect(batch, checks, self);
                if collector.is_full(checks) {
                    collector.conclude(None, self);
                }
                self.idle().push(collector);
            }
            None => self.verify_at_once(&batch),
        }
    }

    fn verify_at_once(&self, batch: &Batch) {
        let mut interpreter = Interpreter::default();
        let mut outputs: Vec<TxOut<'_>> = Vec::new();
        for spend in &batch.spends {
            if self.is_pointless(batch, spend) {
                continue;
            }
            batch.spent(spend, &mut outputs);
            let context = batch.context(spend, &outputs, spend.range());
            let flags = batch.block.rules.flags;
            let verdict = verify_run(&context, spend.inputs.clone(), flags, &mut interpreter);
            self.note(batch, spend, verdict);
        }
        batch.block.close(batch.spends.len());
    }

    /// Whether no verdict can depend on these inputs: one before them has failed.
    pub(super) fn is_pointless(&self, batch: &Batch, spend: &Spend) -> bool {
        batch.block.rules.height > self.lowest_failed.load(Ordering::Relaxed)
            || batch.block.is_pointless(spend)
    }

    /// Notes what came of some inputs. The last part of a transaction to pass brings the signature checks of all; where a
    /// part fails or is passed over none is the last, since then a script has failed that counts before them.
    pub(super) fn note(&self, batch: &Batch, spend: &Spend, verdict: RunVerdict) {
        let block = &*batch.block;
        let whole = match verdict {
            Err((input, error)) => return self.fail(batch, spend, Cause::Script { input, error }),
            Ok(sigchecks) => {
                block.add_sigchecks(sigchecks);
                match &batch.coins {
                    Coins::Whole(_) => Some(sigchecks),
                    Coins::Part(large) => large.pass(sigchecks),
                }
            }
        };
        if let Some(sigchecks) = whole
            && let Err(error) = block.rules.check_tx_sigchecks(sigchecks)
        {
            self.fail(batch, spend, Cause::SigChecks(error));
        }
    }

    fn fail(&self, batch: &Batch, spend: &Spend, cause: Cause) {
        if batch.block.fail(TxFailure { tx_index: spend.tx_index, cause }) {
            self.lowest_failed.fetch_min(batch.block.rules.height, Ordering::Relaxed);
        }
    }

    /// Concludes what was left over.
    fn conclude_all(&self, mut collectors: Vec<Collector>) {
        let proven = prove_all(collectors.iter().map(Collector::scripts));
        collectors
            .par_iter_mut()
            .zip(&proven)
            .for_each(|(collector, proven)| collector.conclude(Some(proven), self));
        self.idle().append(&mut collectors);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Collector>> {
        self.collectors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
