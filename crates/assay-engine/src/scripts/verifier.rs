//! The threads that verify, and what waits for them.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use assay_consensus::script::Interpreter;
use assay_wire::TxOut;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::collector::Collector;
use super::{Batch, verify_tx};
use crate::deferred::prove_all;

/// Verifies the scripts of any number of blocks on the threads of a pool.
///
/// Where signatures are verified in batches ([`DeferredScripts`](crate::DeferredScripts)), each thread collects those of many
/// transactions and blocks; what is left when somebody waits for the last of them is shared out evenly.
pub(crate) struct Verifier {
    pool: Arc<ThreadPool>,
    /// How many signatures and the like are verified together, if they are.
    script_batch: Option<usize>,
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
        Arc::new(Self {
            pool,
            script_batch,
            collectors: Mutex::default(),
            tasks: Mutex::default(),
            changed: Condvar::new(),
            lowest_failed: AtomicU32::new(u32::MAX),
        })
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

    pub(super) fn spawn(self: &Arc<Self>, batch: Batch) {
        batch.block.open.fetch_add(batch.txs.len(), Ordering::Relaxed);
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
        let block = &*batch.block;
        for (tx_index, first_coin) in &batch.txs {
            if self.is_pointless(batch, *tx_index) {
                continue;
            }
            let tx = block.prepared.block.tx(*tx_index as usize);
            batch.spent(*first_coin, tx, &mut outputs);
            let rules = &block.rules;
            let verdict =
                verify_tx(tx, &outputs, rules.flags, &mut interpreter).and_then(|count| {
                    rules.check_tx_sigchecks(count).map(|()| count).map_err(super::Cause::SigChecks)
                });
            self.note(batch, *tx_index, verdict);
        }
        block.close(batch.txs.len());
    }

    /// Whether no verdict can depend on this transaction: one before it has failed.
    pub(super) fn is_pointless(&self, batch: &Batch, tx_index: u32) -> bool {
        batch.block.rules.height > self.lowest_failed.load(Ordering::Relaxed)
            || batch.block.is_pointless(tx_index)
    }

    pub(super) fn note(&self, batch: &Batch, tx_index: u32, verdict: Result<u64, super::Cause>) {
        if batch.block.note(tx_index, verdict) {
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
