//! The pool: threads that work, and the way in from outside.

use std::io;
use std::num::NonZero;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::worker::{Handle, Shared, Worker};

/// Threads that work on tasks, together with every thread that calls [`Pool::run`]. Dropping it runs what was spawned and
/// ends the threads.
pub struct Pool {
    shared: Arc<Shared>,
    /// Seats for callers from outside, with what they need.
    guests: Mutex<Vec<Worker>>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Pool {
    /// A pool in which `threads` threads work, the caller of [`Self::run`] among them; so it starts one less.
    ///
    /// # Errors
    ///
    /// The operating system's, if it starts no thread.
    pub fn new(threads: NonZero<usize>) -> io::Result<Self> {
        Self::named("pool", threads)
    }

    /// The same, with a name for its threads.
    ///
    /// # Errors
    ///
    /// As [`Self::new`].
    pub fn named(name: &str, threads: NonZero<usize>) -> io::Result<Self> {
        let started = threads.get() - 1;
        // As many callers at once as threads can share their tasks with the pool; what more there are work alone.
        let shared = Shared::new(started + threads.get());
        let guests =
            (started..started + threads.get()).map(|seat| Worker::new(&shared, Some(seat)));
        let guests = Mutex::new(guests.collect());
        let mut pool = Self { shared, guests, threads: Vec::with_capacity(started) };
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

    /// Runs a task on this thread, which is a worker until it returns. A task that has a worker already uses that one.
    ///
    /// # Panics
    ///
    /// As the task does.
    pub fn run<R>(&self, task: impl FnOnce(&Worker) -> R) -> R {
        let worker = self.guests.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let is_seated = worker.is_some();
        let worker = worker.unwrap_or_else(|| Worker::new(&self.shared, None));
        let guest = Guest { pool: self, worker: Some(worker), is_seated };
        task(guest.worker.as_ref().expect("until it leaves"))
    }

    /// A task that runs sometime, on any thread of the pool; with a single thread when somebody waits in [`Self::run`].
    pub fn spawn<T: Send + 'static>(
        &self,
        task: impl FnOnce(&Worker) -> T + Send + 'static,
    ) -> Handle<T> {
        let (job, handle) = Handle::new(task);
        self.shared.enqueue(job);
        handle
    }
}

/// A caller from outside, until it leaves or unwinds.
struct Guest<'a> {
    pool: &'a Pool,
    worker: Option<Worker>,
    is_seated: bool,
}

impl Drop for Guest<'_> {
    fn drop(&mut self) {
        let worker = self.worker.take().expect("it leaves once");
        worker.leave();
        if self.is_seated {
            self.pool.guests.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.run(Worker::drain);
        self.shared.end();
        for thread in self.threads.drain(..) {
            // A task may hold the last reference to the pool, and a thread cannot wait for itself.
            if thread.thread().id() != thread::current().id() {
                thread.join().expect("panics of tasks are caught");
            }
        }
    }
}
