//! Type-erased tasks and the right to run them: the only unsafe code of this crate.
//!
//! A fork puts its second half on its own stack and adds a pointer to it to a list that only its worker reads. The
//! oldest of these *private* forks are *shared* when the worker's deque is empty, so a thief always finds the largest
//! one, and a fork that is not stolen costs no atomic operation. [`Job`] is the right to run a task once: it is
//! created when a task is shared, is moved through deques and queues, and is consumed by running the task.

#![expect(unsafe_code, reason = "tasks lie on the stacks of other threads")]

use std::any::Any;
use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop, MaybeUninit};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread;

use super::{Seat, Worker};
use crate::deque::{Deque, Steal};
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering};

/// Common first field of all tasks.
#[repr(C)]
struct Header {
    /// Runs the task that starts with this header. The seat is that of the worker which shared the task.
    run: unsafe fn(NonNull<Header>, &Worker, &Seat),
}

/// The right to run a task at a fixed address, which stays valid until the task has run.
pub(crate) struct Job(NonNull<Header>);

// SAFETY: the contents of a task are `Send`, by the bounds of `Worker::join`, `Job::new` and `Scope::spawn`.
unsafe impl Send for Job {}

impl Job {
    /// A heap-allocated task, which must not panic.
    pub(crate) fn new(task: impl FnOnce(&Worker) + Send + 'static) -> Self {
        // SAFETY: the task borrows nothing.
        unsafe { Self::borrowing(task) }
    }

    /// # Safety
    ///
    /// Borrows of the task must live until it has run. The task must not panic.
    unsafe fn borrowing<F: FnOnce(&Worker) + Send>(task: F) -> Self {
        #[repr(C)]
        struct Owned<F> {
            header: Header,
            task: F,
        }
        unsafe fn run<F: FnOnce(&Worker)>(job: NonNull<Header>, worker: &Worker, _: &Seat) {
            // SAFETY: the pointer is from a box of this type below, and the runner of the job owns it.
            let owned = unsafe { Box::from_raw(job.cast::<Owned<F>>().as_ptr()) };
            (owned.task)(worker);
        }
        let owned = Box::new(Owned { header: Header { run: run::<F> }, task });
        Self(NonNull::from(Box::leak(owned)).cast())
    }

    /// Runs the task; `owner` is the seat from which the job was taken.
    pub(super) fn run(self, worker: &Worker, owner: &Seat) {
        // SAFETY: a job points to a header until the task has run.
        let run = unsafe { self.0.as_ref() }.run;
        // SAFETY: `run` is the function of this task, and the job is consumed.
        unsafe { run(self.0, worker, owner) }
    }
}

/// Deque of jobs of a seat.
pub(super) struct Jobs {
    deque: Deque<Header>,
    /// Fast check for a fork, which avoids reading both ends of the deque: true if the deque is
    /// empty, or was after a steal. A stale `true` makes the owner share more than necessary;
    /// `false` is never stale, since it is written before the push that a thief must have observed.
    is_bare: AtomicBool,
}

impl Jobs {
    pub(super) fn new() -> Self {
        Self { deque: Deque::new(RING), is_bare: AtomicBool::new(true) }
    }

    /// For thieves.
    pub(super) fn is_empty(&self) -> bool {
        self.deque.is_empty()
    }

    /// For the owner.
    #[inline]
    pub(super) fn is_bare(&self) -> bool {
        self.is_bare.load(Ordering::Relaxed)
    }

    /// Returns the job if the ring is full.
    pub(super) fn push(&self, job: Job) -> Result<(), Job> {
        self.is_bare.store(false, Ordering::Relaxed);
        if self.deque.push(job.0) { Ok(()) } else { Err(job) }
    }

    pub(super) fn pop(&self) -> Option<Job> {
        let job = self.deque.pop();
        self.note_emptiness();
        job.map(Job)
    }

    pub(super) fn steal(&self) -> Option<Job> {
        loop {
            match self.deque.steal() {
                Steal::One(job) => {
                    self.note_emptiness();
                    return Some(Job(job));
                }
                Steal::Empty => return None,
                Steal::Lost => std::hint::spin_loop(),
            }
        }
    }

    fn note_emptiness(&self) {
        if self.deque.is_empty() {
            self.is_bare.store(true, Ordering::Relaxed);
        }
    }
}

/// Capacity for shared tasks of one worker; further tasks stay private or go to the common queue.
const RING: usize = 256;

/// Maximum number of forks shared at once: more than thieves take before the owner checks again.
const SHARED_AT_ONCE: usize = 16;

/// Second halves of a worker's forks in progress, outermost first.
#[derive(Default)]
pub(super) struct Forks(UnsafeCell<Vec<NonNull<Header>>>);

// SAFETY: a worker that moves to another thread has no forks in progress, so the list is empty.
unsafe impl Send for Forks {}

/// The second half of a fork, on the stack of the forking worker.
#[repr(C)]
struct Half<F, B> {
    header: Header,
    is_done: AtomicBool,
    task: UnsafeCell<ManuallyDrop<F>>,
    result: UnsafeCell<MaybeUninit<thread::Result<B>>>,
}

impl<F: FnOnce(&Worker) -> B + Send, B: Send> Half<F, B> {
    fn new(task: F) -> Self {
        Self {
            header: Header { run: Self::run },
            is_done: AtomicBool::new(false),
            task: UnsafeCell::new(ManuallyDrop::new(task)),
            result: UnsafeCell::new(MaybeUninit::uninit()),
        }
    }

    unsafe fn run(job: NonNull<Header>, worker: &Worker, owner: &Seat) {
        // SAFETY: the pointer is from a reference to a `Half` of this type, which its owner keeps until `is_done`.
        let half = unsafe { job.cast::<Self>().as_ref() };
        let result = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: only the runner of the job takes the task.
            let task = unsafe { half.take() };
            task(worker)
        }));
        // SAFETY: only the runner of the job writes the result, and the owner reads it after `is_done`.
        unsafe { &mut *half.result.get() }.write(result);
        // From here on the owner may continue and drop the half.
        half.is_done.store(true, Ordering::Release);
        owner.wake();
    }

    /// # Safety
    ///
    /// To be called at most once, by the holder of the right to run the task.
    #[inline]
    unsafe fn take(&self) -> F {
        // SAFETY: the task is present, and no other thread accesses it.
        unsafe { ManuallyDrop::take(&mut *self.task.get()) }
    }

    /// # Safety
    ///
    /// To be called once, after `is_done`.
    unsafe fn result(&self) -> thread::Result<B> {
        // SAFETY: the result was written before `is_done`.
        unsafe { (*self.result.get()).assume_init_read() }
    }
}

/// Ends the second half, private or shared, when the first half panics.
struct Guard<'a, F: FnOnce(&Worker) -> B + Send, B: Send> {
    worker: &'a Worker,
    half: &'a Half<F, B>,
    depth: usize,
}

impl<F: FnOnce(&Worker) -> B + Send, B: Send> Drop for Guard<'_, F, B> {
    #[cold]
    fn drop(&mut self) {
        if self.worker.reclaim(self.depth, &self.half.header, &self.half.is_done) {
            // SAFETY: no other thread has the right to run the task any more.
            drop(unsafe { self.half.take() });
        } else {
            // SAFETY: the half is done, and the fork that would read the result unwinds.
            drop(unsafe { self.half.result() });
        }
    }
}

impl Worker {
    /// Runs both tasks, the second possibly on another thread, and returns when both have ended.
    ///
    /// # Panics
    ///
    /// Propagates a panic of the first task, or else of the second. Both have ended by then.
    // Always inlined, so that the second task is written in place: a copy of words that were just written one by one
    // waits until they have left the store buffer, which takes longer than the rest of a fork.
    #[inline(always)]
    pub fn join<A, B: Send>(
        &self,
        first: impl FnOnce(&Self) -> A,
        second: impl FnOnce(&Self) -> B + Send,
    ) -> (A, B) {
        let half = Half::new(second);
        // SAFETY: only this thread uses the list, and no reference to it is kept.
        let forks = unsafe { &mut *self.forks.0.get() };
        let depth = forks.len();
        forks.push(NonNull::from(&half).cast());
        if self.seat.jobs.is_bare() {
            self.share();
        }
        let guard = Guard { worker: self, half: &half, depth };
        let a = first(self);
        mem::forget(guard);
        let b = if self.reclaim(depth, &half.header, &half.is_done) {
            // SAFETY: the half is private again, so this thread has the right to run it.
            let task = unsafe { half.take() };
            task(self)
        } else {
            // SAFETY: the half is done, and the result is read once.
            let result = unsafe { half.result() };
            result.unwrap_or_else(|panic| resume_unwind(panic))
        };
        (a, b)
    }

    /// Shares the oldest private forks: half of them, at most [`SHARED_AT_ONCE`].
    #[cold]
    pub(super) fn share(&self) {
        // SAFETY: as in `join`.
        let forks = unsafe { &*self.forks.0.get() };
        let from = self.shared_forks.get();
        let count = ((forks.len() - from) / 2).clamp(1, SHARED_AT_ONCE);
        for half in &forks[from..from + count] {
            if self.seat.jobs.push(Job(*half)).is_err() {
                break;
            }
            self.shared_forks.set(self.shared_forks.get() + 1);
        }
        self.shared.notify();
    }

    /// True if there are forks that thieves cannot see.
    #[inline]
    pub(super) fn has_private_forks(&self) -> bool {
        // SAFETY: as in `join`.
        self.shared_forks.get() < unsafe { &*self.forks.0.get() }.len()
    }

    /// Ends the innermost fork. True if the caller must run or drop its second half, false if a thief has run it.
    #[inline]
    fn reclaim(&self, depth: usize, half: &Header, is_done: &AtomicBool) -> bool {
        // SAFETY: as in `join`; the list is at least this long, since forks end in stack order.
        unsafe { (*self.forks.0.get()).set_len(depth) };
        if self.shared_forks.get() > depth {
            return self.reclaim_shared(depth, half, is_done);
        }
        if self.seat.jobs.is_bare() && self.shared_forks.get() < depth {
            self.share();
        }
        true
    }

    #[cold]
    fn reclaim_shared(&self, depth: usize, half: &Header, is_done: &AtomicBool) -> bool {
        self.shared_forks.set(depth);
        while !is_done.load(Ordering::Acquire) {
            match self.seat.jobs.pop() {
                Some(job) if job.0 == NonNull::from(half) => return true,
                // A task spawned by the first half.
                Some(job) => job.run(self, &self.seat),
                None => self.work_until(&|| is_done.load(Ordering::Acquire)),
            }
        }
        false
    }

    /// Calls `body` with a scope for tasks that borrow from outside of it, and returns when all of them have ended.
    ///
    /// # Panics
    ///
    /// Propagates a panic of `body`, or else of the first task that panicked; all tasks have ended by then.
    pub fn scope<'scope, R>(&self, body: impl FnOnce(&Self, &Scope<'scope>) -> R) -> R {
        let scope = Scope {
            state: Arc::new(ScopeState {
                running: AtomicUsize::new(0),
                panic: Mutex::default(),
                seat: Arc::clone(&self.seat),
            }),
            borrowed: PhantomData,
        };
        let result = catch_unwind(AssertUnwindSafe(|| body(self, &scope)));
        self.work_until(&|| scope.state.running.load(Ordering::Acquire) == 0);
        let panic = scope.state.panic.lock().expect("nobody panics with it").take();
        match (result, panic) {
            (Ok(result), None) => result,
            (Err(panic), _) | (_, Some(panic)) => resume_unwind(panic),
        }
    }
}

/// Spawns tasks with borrows that outlive the scope ([`Worker::scope`]).
pub struct Scope<'scope> {
    state: Arc<ScopeState>,
    borrowed: PhantomData<fn(&'scope ()) -> &'scope ()>,
}

struct ScopeState {
    running: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
    seat: Arc<Seat>,
}

impl<'scope> Scope<'scope> {
    /// Spawns a task that runs before the scope ends, on any thread. The task may spawn others.
    pub fn spawn(
        &self,
        worker: &Worker,
        task: impl FnOnce(&Worker, &Scope<'scope>) + Send + 'scope,
    ) {
        let scope = Self { state: Arc::clone(&self.state), borrowed: PhantomData };
        self.state.running.fetch_add(1, Ordering::Relaxed);
        let run = move |worker: &Worker| {
            let result = catch_unwind(AssertUnwindSafe(|| task(worker, &scope)));
            if let Err(panic) = result {
                scope.state.panic.lock().expect("nobody panics with it").get_or_insert(panic);
            }
            scope.state.running.fetch_sub(1, Ordering::Release);
            scope.state.seat.wake();
        };
        // SAFETY: `Worker::scope` returns, and with it 'scope ends, only after the task has decremented the count,
        // which happens after `task` and its borrows are dropped; only an `Arc` is left then. Panics are caught.
        worker.enqueue(unsafe { Job::borrowing(run) });
    }
}
