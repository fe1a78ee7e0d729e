//! Workers: their state, their search for work, and waiting.

mod fork;
mod handle;

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::idle::{Backoff, Idle, Parker};
use crate::sync::{AtomicBool, AtomicUsize, Mutex, Ordering};

pub(crate) use fork::Job;
pub use fork::Scope;
use fork::{Forks, Jobs};
pub use handle::Handle;

/// Shared state of a worker. The alignment keeps seats out of each other's cache lines.
#[repr(align(128))]
pub(crate) struct Seat {
    jobs: Jobs,
    parker: Parker,
    idle: Arc<Idle>,
}

impl Seat {
    fn new(idle: &Arc<Idle>) -> Arc<Self> {
        Arc::new(Self { jobs: Jobs::new(), parker: Parker::default(), idle: Arc::clone(idle) })
    }

    /// Called after the worker's condition became true, from any thread of any pool.
    fn wake(&self) {
        self.idle.wake(&self.parker);
    }
}

/// Shared state of a pool.
pub(crate) struct Shared {
    seats: Box<[Arc<Seat>]>,
    idle: Arc<Idle>,
    /// Tasks from outside, and overflow of the deques.
    queue: Mutex<VecDeque<Job>>,
    queued: AtomicUsize,
    is_over: AtomicBool,
}

impl Shared {
    pub(crate) fn new(seats: usize) -> Arc<Self> {
        let idle = Arc::new(Idle::default());
        Arc::new(Self {
            seats: (0..seats).map(|_| Seat::new(&idle)).collect(),
            idle,
            queue: Mutex::default(),
            queued: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        })
    }

    /// Wakes a sleeper if no worker searches for the published work.
    fn notify(&self) {
        self.idle.notify(self.seats.iter().map(|seat| &seat.parker));
    }

    fn has_work(&self) -> bool {
        self.queued.load(Ordering::Relaxed) > 0
            || self.seats.iter().any(|seat| !seat.jobs.is_empty())
    }

    pub(crate) fn enqueue(&self, job: Job) {
        let mut queue = self.queue.lock().expect("nobody panics with it");
        queue.push_back(job);
        self.queued.store(queue.len(), Ordering::Relaxed);
        drop(queue);
        self.notify();
    }

    fn dequeue(&self) -> Option<Job> {
        if self.queued.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut queue = self.queue.lock().expect("nobody panics with it");
        let job = queue.pop_front();
        self.queued.store(queue.len(), Ordering::Relaxed);
        job
    }

    /// Ends all threads once there is no work.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        for seat in &self.seats {
            seat.wake();
        }
    }
}

/// A thread while it works in a pool: passed to every task for its forks, loops and spawns.
pub struct Worker {
    shared: Arc<Shared>,
    seat: Arc<Seat>,
    /// Second halves of forks in progress.
    forks: Forks,
    /// Number of the outermost forks that have been shared.
    shared_forks: Cell<usize>,
    /// Seat of the last successful steal.
    victim: Cell<usize>,
}

impl Worker {
    /// Uses a seat of the pool, or one that is invisible to thieves.
    pub(crate) fn new(shared: &Arc<Shared>, seat: Option<usize>) -> Self {
        let seat = match seat {
            Some(seat) => Arc::clone(&shared.seats[seat]),
            None => Seat::new(&shared.idle),
        };
        Self {
            shared: Arc::clone(shared),
            seat,
            forks: Forks::default(),
            shared_forks: Cell::new(0),
            victim: Cell::new(0),
        }
    }

    /// Works until the pool ends.
    pub(crate) fn live(&self) {
        self.work_until(&|| self.shared.is_over.load(Ordering::Relaxed) && !self.shared.has_work());
    }

    /// Works until no task is left to start.
    pub(crate) fn drain(&self) {
        self.work_until(&|| !self.shared.has_work());
    }

    /// Moves spawned tasks that have not started to the common queue.
    pub(crate) fn leave(&self) {
        while let Some(job) = self.seat.jobs.pop() {
            self.shared.enqueue(job);
        }
    }

    /// Number of threads that wait for work, if they can steal nothing from this worker; else 0.
    #[inline]
    pub(crate) fn hungry(&self) -> usize {
        let hungry = self.shared.idle.count();
        if hungry == 0 || !self.seat.jobs.is_bare() {
            return 0;
        }
        if self.has_private_forks() {
            self.share();
            return 0;
        }
        hungry
    }

    fn enqueue(&self, job: Job) {
        match self.seat.jobs.push(job) {
            Ok(()) => self.shared.notify(),
            Err(job) => self.shared.enqueue(job),
        }
    }

    /// Does other work until then. The thread that makes `is_done` true wakes this worker's seat afterwards.
    fn work_until(&self, is_done: &dyn Fn() -> bool) {
        while !is_done() {
            let Some((job, owner)) = self.find().or_else(|| self.search(is_done)) else { return };
            job.run(self, owner);
        }
    }

    /// The worker's newest task, another worker's oldest, or one from outside.
    fn find(&self) -> Option<(Job, &Seat)> {
        if let Some(job) = self.seat.jobs.pop() {
            return Some((job, &self.seat));
        }
        let seats = &self.shared.seats;
        let first = self.victim.get();
        for index in (first..seats.len()).chain(0..first) {
            let seat = &seats[index];
            if !seat.jobs.is_empty()
                && !Arc::ptr_eq(seat, &self.seat)
                && let Some(job) = seat.jobs.steal()
            {
                self.victim.set(index);
                return Some((job, seat));
            }
        }
        self.shared.dequeue().map(|job| (job, &*self.seat))
    }

    /// Searches for work repeatedly, and sleeps after the time limit; `None` once `is_done` is true.
    #[cold]
    fn search(&self, is_done: &dyn Fn() -> bool) -> Option<(Job, &Seat)> {
        let idle = &*self.shared.idle;
        idle.start_search();
        let mut backoff = Backoff::new();
        let found = loop {
            if is_done() {
                break None;
            }
            if let Some(found) = self.find() {
                break Some(found);
            }
            if backoff.pause() {
                continue;
            }
            idle.announce(&self.seat.parker);
            if is_done() || self.shared.has_work() {
                idle.cancel(&self.seat.parker);
            } else {
                self.seat.parker.park();
                backoff = Backoff::new();
            }
        };
        if idle.end_search() && self.shared.has_work() {
            self.shared.notify();
        }
        found
    }
}
