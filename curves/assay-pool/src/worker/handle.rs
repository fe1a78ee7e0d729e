//! Detached tasks, and handles to their results.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;

use super::{Job, Seat, Worker};
use crate::sync::{AtomicBool, Mutex, Ordering};

/// Handle of a spawned task. Dropping the handle does not cancel the task.
pub struct Handle<T> {
    state: Arc<State<T>>,
}

struct State<T> {
    is_done: AtomicBool,
    result: Mutex<Option<thread::Result<T>>>,
    /// Seat of the waiting worker.
    waiter: Mutex<Option<Arc<Seat>>>,
}

impl<T: Send + 'static> Handle<T> {
    /// The task as a job, and its handle.
    pub(crate) fn new(task: impl FnOnce(&Worker) -> T + Send + 'static) -> (Job, Self) {
        let state = Arc::new(State {
            is_done: AtomicBool::new(false),
            result: Mutex::default(),
            waiter: Mutex::default(),
        });
        let handle = Self { state: Arc::clone(&state) };
        let job = Job::new(move |worker| {
            let result = catch_unwind(AssertUnwindSafe(|| task(worker)));
            *state.result.lock().expect("nobody panics with it") = Some(result);
            state.is_done.store(true, Ordering::Release);
            // A waiter registers its seat first and checks `is_done` then.
            let waiter = state.waiter.lock().expect("nobody panics with it").take();
            if let Some(seat) = waiter {
                seat.wake();
            }
        });
        (job, handle)
    }

    /// True if [`Self::join`] would return without waiting.
    pub fn is_finished(&self) -> bool {
        self.state.is_done.load(Ordering::Acquire)
    }

    /// Does other work until the task has ended, and returns its result.
    ///
    /// # Panics
    ///
    /// Propagates a panic of the task.
    pub fn join(self, worker: &Worker) -> T {
        let State { is_done, result, waiter } = &*self.state;
        *waiter.lock().expect("nobody panics with it") = Some(Arc::clone(&worker.seat));
        worker.work_until(&|| is_done.load(Ordering::Acquire));
        let result = result.lock().expect("nobody panics with it").take();
        result.expect("it is done").unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Worker {
    /// Spawns a task that runs on any thread of the pool.
    pub fn spawn<T: Send + 'static>(
        &self,
        task: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Handle<T> {
        let (job, handle) = Handle::new(task);
        self.enqueue(job);
        handle
    }
}
