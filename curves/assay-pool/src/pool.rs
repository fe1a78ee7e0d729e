//! The pool: worker threads, and entry for other threads.

use std::io;
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::worker::{Handle, Shared, Worker};

/// Threads that run tasks, together with every thread that calls [`Pool::run`]. Drop runs all
/// spawned tasks and ends the threads.
pub struct Pool {
    shared: Arc<Shared>,
    /// Workers of calls from outside, with their seats.
    external_workers: Mutex<Vec<Worker>>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Pool {
    /// A pool of `threads` threads including the caller of [`Self::run`]; so it starts one less.
    ///
    /// # Errors
    ///
    /// The operating system's, if it cannot start a thread.
    pub fn new(threads: NonZero<usize>) -> io::Result<Self> {
        Self::named("pool", threads)
    }

    /// The same, with a name for the threads.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn named(name: &str, threads: NonZero<usize>) -> io::Result<Self> {
        let started = threads.get() - 1;
        // Seats for as many concurrent callers as there are threads; further callers work alone.
        let shared = Shared::new(started + threads.get());
        let external_workers =
            (started..started + threads.get()).map(|seat| Worker::new(&shared, Some(seat)));
        let external_workers = Mutex::new(external_workers.collect());
        let mut pool = Self { shared, external_workers, threads: Vec::with_capacity(started) };
        for seat in 0..started {
            let shared = Arc::clone(&pool.shared);
            let work = move || Worker::new(&shared, Some(seat)).live();
            pool.threads.push(thread::Builder::new().name(format!("{name}-{seat}")).spawn(work)?);
        }
        Ok(pool)
    }

    /// A pool for all processors that this process may use.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn of_all_processors() -> io::Result<Self> {
        Self::new(thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN))
    }

    /// Runs a task on this thread, which is a worker until the task returns. Inside a task the existing worker is used.
    ///
    /// # Panics
    ///
    /// As the task does.
    pub fn run<R>(&self, task: impl FnOnce(&Worker) -> R) -> R {
        let worker = self.external_workers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let is_seated = worker.is_some();
        let worker = worker.unwrap_or_else(|| Worker::new(&self.shared, None));
        let guest = ExternalCall { pool: self, worker: Some(worker), is_seated };
        task(guest.worker.as_ref().expect("until it leaves"))
    }

    /// Spawns a task that runs on any thread of the pool; with a single thread, during a wait in [`Self::run`].
    pub fn spawn<T: Send + 'static>(
        &self,
        task: impl FnOnce(&Worker) -> T + Send + 'static,
    ) -> Handle<T> {
        let (job, handle) = Handle::new(task);
        self.shared.enqueue(job);
        handle
    }
}

/// A call from outside, until it returns or unwinds.
struct ExternalCall<'a> {
    pool: &'a Pool,
    worker: Option<Worker>,
    is_seated: bool,
}

impl Drop for ExternalCall<'_> {
    fn drop(&mut self) {
        let worker = self.worker.take().expect("it leaves once");
        worker.leave();
        if self.is_seated {
            self.pool.external_workers.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.run(Worker::drain);
        self.shared.end();
        for thread in self.threads.drain(..) {
            // A task may hold the last reference to the pool, and a thread cannot join itself.
            if thread.thread().id() != thread::current().id() {
                thread.join().expect("panics of tasks are caught");
            }
        }
    }
}
