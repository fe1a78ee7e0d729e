//! Workers: what they own, where they look for work, and how they wait.

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

/// What others see of a worker. The alignment keeps seats out of each other's cache lines.
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

    /// After what its worker may wait for, on whatever thread of whatever pool.
    fn wake(&self) {
        self.idle.wake(&self.parker);
    }
}

/// What all workers of a pool share.
pub(crate) struct Shared {
    seats: Box<[Arc<Seat>]>,
    idle: Arc<Idle>,
    /// Tasks from outside, and those for which a deque had no room.
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

    /// Wakes a sleeper if nobody searches for the work that was published.
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

    /// Lets all threads end once there is no work.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        for seat in &self.seats {
            seat.wake();
        }
    }
}

/// A thread while it works in a pool: passed to every task, which forks, loops and spawns with it.
pub struct Worker {
    shared: Arc<Shared>,
    seat: Arc<Seat>,
    /// Second halves of forks in progress.
    forks: Forks,
    /// How many of them, the outermost, have been shared.
    shared_forks: Cell<usize>,
    /// From whose seat the last task was stolen.
    victim: Cell<usize>,
}

impl Worker {
    /// On a seat of the pool, or on one that nobody steals from.
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

    /// Works until there is nothing more to begin.
    pub(crate) fn drain(&self) {
        self.work_until(&|| !self.shared.has_work());
    }

    /// Gives what was spawned and has not begun to the others.
    pub(crate) fn leave(&self) {
        while let Some(job) = self.seat.jobs.pop() {
            self.shared.enqueue(job);
        }
    }

    /// How many threads wait for work, if there is none that they could steal from this worker; else 0.
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

    /// Does other work until then. Whoever makes `is_done` true wakes this worker's seat after it.
    fn work_until(&self, is_done: &dyn Fn() -> bool) {
        while !is_done() {
            let Some((job, owner)) = self.find().or_else(|| self.search(is_done)) else { return };
            job.run(self, owner);
        }
    }

    /// Its own newest task, or another worker's oldest, or one from outside.
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

    /// Looks for work again and again, and sleeps when that has taken long; none if it is done meanwhile.
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
