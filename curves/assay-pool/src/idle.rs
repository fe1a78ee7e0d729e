//! Idle workers and their wake-up: an event count whose waiters park separately.
//!
//! A worker without work first searches, for about as long as a wake-up takes, then parks. To park it announces itself,
//! checks its condition once more, and goes to sleep; a producer publishes work and then checks for sleepers. Both have
//! a sequentially consistent fence between the two steps, so at least one of them notices the other. No worker is woken
//! while another searches, and the last one that ends its search because it found work wakes the next.

use std::hint;
use std::time::{Duration, Instant};

use crate::sync::{
    AtomicU32, AtomicUsize, Mutex, Ordering, Thread, current, fence, park, yield_now,
};

#[derive(Default)]
pub(crate) struct Parker {
    state: AtomicU32,
    thread: Mutex<Option<Thread>>,
}

const AWAKE: u32 = 0;
/// The worker sleeps or is about to.
const WAITING: u32 = 1;
/// Another thread is waking the worker.
const CLAIMED: u32 = 2;

impl Parker {
    /// Blocks until woken; the worker then counts as searching again.
    pub(crate) fn park(&self) {
        while self.state.load(Ordering::Acquire) != AWAKE {
            park();
        }
    }
}

/// Numbers of searching (low half) and sleeping (high half) workers.
#[derive(Default)]
pub(crate) struct Idle {
    counts: AtomicUsize,
}

const SEARCHING: usize = 1;
const SLEEPING: usize = 1 << (usize::BITS / 2);

impl Idle {
    /// Number of idle workers; may lag slightly.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        let counts = self.counts.load(Ordering::Relaxed);
        counts % SLEEPING + counts / SLEEPING
    }

    pub(crate) fn start_search(&self) {
        self.counts.fetch_add(SEARCHING, Ordering::SeqCst);
    }

    /// True if no other worker searches now: the caller must then call [`Self::notify`] for work that it leaves.
    pub(crate) fn end_search(&self) -> bool {
        let is_last = self.counts.fetch_sub(SEARCHING, Ordering::SeqCst) % SLEEPING == 1;
        // The following search finds work whose publisher relied on this worker.
        fence(Ordering::SeqCst);
        is_last
    }

    /// From searching to sleeping; the caller then checks once more, and ends this by
    /// [`Self::cancel`] or [`Parker::park`].
    pub(crate) fn announce(&self, parker: &Parker) {
        *parker.thread.lock().expect("nobody panics with it") = Some(current());
        // Counted first: the waking thread subtracts it.
        self.counts.fetch_add(SLEEPING - SEARCHING, Ordering::SeqCst);
        parker.state.store(WAITING, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Returns to searching.
    pub(crate) fn cancel(&self, parker: &Parker) {
        if exchange(&parker.state, WAITING, AWAKE) {
            self.counts.fetch_sub(SLEEPING - SEARCHING, Ordering::SeqCst);
        } else {
            // Another thread is about to wake this worker.
            parker.park();
        }
    }

    /// Wakes this worker if it sleeps. Its condition was made true before.
    pub(crate) fn wake(&self, parker: &Parker) -> bool {
        fence(Ordering::SeqCst);
        let state = &parker.state;
        if state.load(Ordering::Relaxed) != WAITING || !exchange(state, WAITING, CLAIMED) {
            return false;
        }
        // Before the wake-up, so that the counts never miss a worker.
        self.counts.fetch_sub(SLEEPING - SEARCHING, Ordering::SeqCst);
        // Cloned: a worker that wakes may register again at once.
        let thread = parker.thread.lock().expect("nobody panics with it").clone();
        state.store(AWAKE, Ordering::Release);
        thread.expect("noted before it waits").unpark();
        true
    }

    /// Wakes one of these workers if some sleep and none searches. The work was published before.
    pub(crate) fn notify<'a>(&self, parkers: impl Iterator<Item = &'a Parker>) {
        fence(Ordering::SeqCst);
        let counts = self.counts.load(Ordering::Relaxed);
        if counts >= SLEEPING && counts.is_multiple_of(SLEEPING) {
            let mut parkers = parkers;
            parkers.any(|parker| self.wake(parker));
        }
    }
}

fn exchange(state: &AtomicU32, from: u32, to: u32) -> bool {
    state.compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed).is_ok()
}

/// Pauses between two searches: the log-log iterated back-off of Bender, Farach-Colton, He,
/// Kuszmaul and Leiserson (Adversarial Contention Resolution for Simple Channels, SPAA 2005):
/// windows double, and each is repeated lg lg w times.
pub(crate) struct Backoff {
    window_log: u32,
    repeats: u32,
    since: Option<Instant>,
}

/// Pauses in the widest window: about the time to fetch a cache line from another core.
const WINDOW_LOG_MAX: u32 = 3;

/// Searching for longer costs more than a sleep and a wake-up.
const SEARCH_MAX: Duration = Duration::from_micros(50);

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { window_log: 0, repeats: 1, since: None }
    }

    /// Pauses; false once the search has reached its time limit.
    pub(crate) fn pause(&mut self) -> bool {
        for _ in 0..1 << self.window_log {
            hint::spin_loop();
        }
        if self.window_log == WINDOW_LOG_MAX {
            // The thread that would share its work may be waiting for this processor.
            yield_now();
        }
        self.repeats -= 1;
        if self.repeats > 0 {
            return true;
        }
        self.window_log = (self.window_log + 1).min(WINDOW_LOG_MAX);
        self.repeats = self.window_log.max(1).ilog2() + 1;
        self.since.get_or_insert_with(Instant::now).elapsed() < SEARCH_MAX
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::sync::{Arc, atomic::AtomicBool};
    use loom::thread;

    use super::*;

    struct Shared {
        idle: Idle,
        parkers: [Parker; 2],
        work: [AtomicBool; 2],
    }

    /// Takes one piece of work; parks while there is none.
    fn consume(shared: &Shared, own: usize) {
        let Shared { idle, parkers, work } = shared;
        let take = || work.iter().any(|work| work.swap(false, Ordering::SeqCst));
        let is_any = || work.iter().any(|work| work.load(Ordering::Relaxed));
        idle.start_search();
        loop {
            if take() {
                if idle.end_search() && is_any() {
                    idle.notify(parkers.iter());
                }
                return;
            }
            idle.announce(&parkers[own]);
            if is_any() { idle.cancel(&parkers[own]) } else { parkers[own].park() }
        }
    }

    fn shared() -> Arc<Shared> {
        let bools = || [AtomicBool::new(false), AtomicBool::new(false)];
        Arc::new(Shared { idle: Idle::default(), parkers: Default::default(), work: bools() })
    }

    fn publish(shared: &Shared, which: usize) {
        // A swap, since loom does not order a plain store before another thread's swap.
        shared.work[which].swap(true, Ordering::AcqRel);
        shared.idle.notify(shared.parkers.iter());
    }

    /// loom fails on a deadlock.
    #[test]
    fn no_wake_is_lost() {
        loom::model(|| {
            let shared = shared();
            let other = Arc::clone(&shared);
            let consumer = thread::spawn(move || consume(&other, 0));
            publish(&shared, 0);
            consumer.join().expect("no panic");
            assert_eq!(shared.idle.counts.load(Ordering::Relaxed), 0);
        });
    }

    #[test]
    fn two_pieces_of_work_wake_two_sleepers() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = shared();
            let consumers = [0, 1].map(|own| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || consume(&shared, own))
            });
            publish(&shared, 0);
            publish(&shared, 1);
            for consumer in consumers {
                consumer.join().expect("no panic");
            }
            assert_eq!(shared.idle.counts.load(Ordering::Relaxed), 0);
        });
    }

    /// The owner of a fork waits for its thief, which alone wakes it.
    #[test]
    fn the_end_of_a_stolen_task_wakes_its_owner() {
        loom::model(|| {
            let shared = shared();
            let other = Arc::clone(&shared);
            let thief = thread::spawn(move || {
                other.work[0].store(true, Ordering::Release);
                other.idle.wake(&other.parkers[0]);
            });
            let Shared { idle, parkers, work } = &*shared;
            idle.start_search();
            while !work[0].load(Ordering::Acquire) {
                idle.announce(&parkers[0]);
                if work[0].load(Ordering::Relaxed) {
                    idle.cancel(&parkers[0]);
                } else {
                    parkers[0].park();
                }
            }
            idle.end_search();
            thief.join().expect("no panic");
            assert_eq!(idle.counts.load(Ordering::Relaxed), 0);
        });
    }
}
