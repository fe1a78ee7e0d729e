//! The verifying threads and their queue.

use std::any::Any;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use assay_consensus::script::Interpreter;
use assay_store::defect::{Point, point};
use assay_wire::{Tx, TxOut};
use rayon::ThreadPool;

use super::collector::Collector;
use super::runs::verify_run;
use super::{Batch, PART_COST, cut};
use crate::deferred::prove_all;
use crate::fault_injection::is_planted;
use crate::sync;
use crate::sync::atomic::Ordering;
use crate::sync::{Condvar, Mutex, MutexGuard};

/// Starts the threads that verify; the error says why they cannot start.
pub(crate) fn verify_threads(count: usize) -> Result<Arc<ThreadPool>, String> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(count.max(1))
        .thread_name(|index| format!("verify-{index}"));
    pool.build().map(Arc::new).map_err(|error| error.to_string())
}

/// Verifies the scripts of any number of blocks on the threads of a pool.
///
/// If signatures are verified in batches ([`DeferredScripts`](crate::DeferredScripts)), each thread collects those of many
/// transactions and blocks; when a thread waits for the last of them, the rest is distributed evenly.
pub(crate) struct Verifier {
    pool: Arc<ThreadPool>,
    /// Batch size, if signatures are verified in batches.
    script_batch: Option<usize>,
    /// Minimum cost of a part of a large transaction.
    part_cost: u64,
    /// Idle collectors; as many exist as threads have worked at once.
    collectors: Mutex<Vec<Collector>>,
    tasks: Mutex<Tasks>,
    changed: Condvar,
}

/// Work handed to the pool.
#[derive(Default)]
struct Tasks {
    /// Tasks that are queued or running, and threads that conclude the rest. Only they hold collectors that are not idle.
    running: usize,
    panic: Option<Box<dyn Any + Send>>,
}

impl Verifier {
    /// `script_batch` is the batch size; `None` verifies each signature at once.
    pub(crate) fn new(pool: Arc<ThreadPool>, script_batch: Option<usize>) -> Arc<Self> {
        Self::with_part_cost(pool, script_batch, PART_COST)
    }

    /// [`Verifier::new`] with a minimum cost of parts of large transactions ([`cut`]).
    pub(super) fn with_part_cost(
        pool: Arc<ThreadPool>,
        script_batch: Option<usize>,
        part_cost: u64,
    ) -> Arc<Self> {
        Arc::new(Self {
            pool,
            script_batch,
            part_cost,
            collectors: Mutex::new(Vec::new()),
            tasks: Mutex::new(Tasks::default()),
            changed: Condvar::new(),
        })
    }

    /// True if signatures are verified in batches.
    pub(super) fn is_deferred(&self) -> bool {
        self.script_batch.is_some()
    }

    /// Waits until `is_enough` returns true or nothing is running.
    pub(crate) fn wait_until(&self, mut is_enough: impl FnMut() -> bool) {
        let mut tasks = self.tasks();
        while tasks.running > 0 && !is_enough() {
            self.changed.wait(&mut tasks);
        }
    }

    /// Waits until everything handed over before is finished, by any thread; several threads may wait at once.
    ///
    /// # Panics
    /// A task has panicked.
    pub(crate) fn drain(&self) {
        let mut tasks = self.tasks();
        while tasks.running > 0 {
            self.changed.wait(&mut tasks);
        }
        if let Some(panic) = tasks.panic.take() {
            drop(tasks);
            std::panic::resume_unwind(panic);
        }
        // Nothing runs, so all collectors are idle, and they have all remaining work.
        let collectors = std::mem::take(&mut *self.idle());
        if collectors.iter().all(Collector::is_empty) {
            return;
        }
        tasks.running += 1;
        drop(tasks);
        let running = Running(self);
        if is_planted("uncounted-drain") {
            drop(running);
            return self.conclude_all(collectors);
        }
        self.conclude_all(collectors);
    }

    /// The parts of a transaction, if it is large.
    pub(super) fn cut(&self, tx: Tx<'_>) -> Option<impl ExactSizeIterator<Item = Range<u32>>> {
        cut(tx, self.pool.current_num_threads(), self.part_cost)
    }

    pub(super) fn spawn(self: &Arc<Self>, batch: Batch) {
        batch.block.open.fetch_add(batch.spends.len(), Ordering::Relaxed);
        self.tasks().running += 1;
        let this = Arc::clone(self);
        sync::spawn(&self.pool, move || {
            let _running = Running(&this);
            let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| this.verify(batch)));
            if let Err(panic) = outcome {
                this.tasks().panic.get_or_insert(panic);
            }
        });
    }

    fn verify(&self, batch: Batch) {
        point(Point::ScriptTask);
        match self.script_batch.filter(|_| !batch.block.is_at_once) {
            Some(checks) => {
                let mut collector = self.idle().pop().unwrap_or_default();
                collector.collect(batch, checks);
                if collector.is_full(checks) {
                    collector.conclude(None);
                }
                self.idle().push(collector);
            }
            None => verify_at_once(&batch),
        }
    }

    fn conclude_all(&self, mut collectors: Vec<Collector>) {
        let proven = self.pool.install(|| prove_all(collectors.iter().map(Collector::scripts)));
        sync::for_each(&self.pool, &mut collectors, |index, collector| {
            collector.conclude(Some(&proven[index]));
        });
        self.idle().append(&mut collectors);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Collector>> {
        self.collectors.lock()
    }

    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock()
    }
}

/// Verifies inputs one by one, with immediate signatures.
fn verify_at_once(batch: &Batch) {
    let mut interpreter = Interpreter::default();
    let mut outputs: Vec<TxOut<'_>> = Vec::new();
    for spend in &batch.spends {
        if batch.block.skips(spend) {
            continue;
        }
        batch.spent(spend, &mut outputs);
        let context = batch.context(spend, &outputs, spend.range());
        let flags = batch.block.rules.flags;
        let verdict = verify_run(&context, spend.inputs.clone(), flags, &mut interpreter);
        batch.note(spend, verdict);
    }
    batch.block.close(batch.spends.len());
}

/// A running task, or a thread that concludes the rest.
struct Running<'v>(&'v Verifier);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.tasks().running -= 1;
        self.0.changed.notify_all();
    }
}
