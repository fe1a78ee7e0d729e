//! Threads that answer questions, and the order in which they do.
//!
//! A client has at most one job here at a time, and a job that is not done within its time slice goes to the end of its queue: every
//! client that waits gets its turn. Clients who have asked little lately queue before the others, and one thread answers
//! nobody else: however long a greedy question takes, it keeps no modest one waiting. The other threads have a lower
//! priority, so that on few cores they do not keep the node and that one thread waiting either.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use assay_store::defect::{Point, Whole, point};
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::priority::{wake_soon, yield_to_others};

/// Of this many jobs in a row, at least one is taken from the ordinary queue if there is one: it moves, however slowly.
const ORDINARY_EVERY: u32 = 8;

type Job = Box<dyn FnOnce() + Send>;

/// A bounded number of threads with two queues.
#[derive(Debug)]
pub(super) struct Workers {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    queues: Mutex<Queues>,
    /// Something for any thread.
    filled: Condvar,
    /// Something for the thread that serves one queue alone.
    express_filled: Condvar,
}

#[derive(Default)]
struct Queues {
    express: VecDeque<Job>,
    ordinary: VecDeque<Job>,
    express_in_a_row: u32,
    stopping: bool,
}

impl std::fmt::Debug for Queues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lengths = (self.express.len(), self.ordinary.len());
        f.debug_struct("Queues").field("lengths", &lengths).finish_non_exhaustive()
    }
}

/// Which queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// For clients who have asked little lately.
    Express,
    /// For the others.
    Ordinary,
}

impl Lane {
    /// Not this one.
    pub(super) fn other(self) -> Self {
        match self {
            Self::Express => Self::Ordinary,
            Self::Ordinary => Self::Express,
        }
    }
}

impl Workers {
    pub(super) fn start(count: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut threads = Vec::new();
        let express = Arc::clone(&shared);
        let thread = Builder::new().name("electrum-express".to_owned());
        threads.push(thread.spawn(move || {
            wake_soon();
            express.work(Lane::Express);
        })?);
        for number in 0..count.max(1) {
            let shared = Arc::clone(&shared);
            let thread = Builder::new().name(format!("electrum-{number}"));
            threads.push(thread.spawn(move || {
                yield_to_others();
                shared.work(Lane::Ordinary);
            })?);
        }
        Ok(Self { shared, threads: Mutex::new(threads) })
    }

    /// Runs `job`; `None` when the workers stop.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        let job: Job = Box::new(move || {
            // Nobody waits any more where the connection is gone.
            let _ = sender.send(job());
        });
        {
            let mut queues = self.shared.queues.lock();
            if queues.stopping {
                return None;
            }
            match lane {
                Lane::Express => queues.express.push_back(job),
                Lane::Ordinary => queues.ordinary.push_back(job),
            }
        }
        match lane {
            Lane::Express => self.shared.express_filled.notify_one(),
            Lane::Ordinary => false,
        };
        self.shared.filled.notify_one();
        receiver.await.ok()
    }

    /// Lengths of the two queues.
    pub(super) fn waiting(&self) -> (usize, usize) {
        let queues = self.shared.queues.lock();
        (queues.express.len(), queues.ordinary.len())
    }

    /// Lets what runs finish and drops what waits.
    pub(super) fn stop(&self) {
        {
            let mut queues = self.shared.queues.lock();
            queues.stopping = true;
            queues.express.clear();
            queues.ordinary.clear();
        }
        self.shared.filled.notify_all();
        self.shared.express_filled.notify_all();
        for thread in self.threads.lock().drain(..) {
            // A panic there has ended the process.
            let _ = thread.join();
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn work(&self, lane: Lane) {
        while let Some(job) = self.next(lane) {
            // What a request shares with others may be half changed by a panic: nobody goes on from there.
            let whole = Whole::begin("what the Electrum server shares");
            point(Point::ElectrumCall);
            job();
            drop(whole);
        }
    }

    fn next(&self, lane: Lane) -> Option<Job> {
        let mut queues = self.queues.lock();
        loop {
            if queues.stopping {
                return None;
            }
            let (job, filled) = match lane {
                Lane::Express => (queues.express.pop_front(), &self.express_filled),
                Lane::Ordinary => (queues.pop(), &self.filled),
            };
            if job.is_some() {
                return job;
            }
            filled.wait(&mut queues);
        }
    }
}

impl Queues {
    fn pop(&mut self) -> Option<Job> {
        let others_turn = self.express_in_a_row + 1 >= ORDINARY_EVERY;
        if !others_turn && let Some(job) = self.express.pop_front() {
            self.express_in_a_row += 1;
            return Some(job);
        }
        self.express_in_a_row = 0;
        self.ordinary.pop_front().or_else(|| self.express.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn express_goes_first_but_does_not_starve_the_others() {
        let order = Arc::new(Mutex::new(String::new()));
        let mut queues = Queues::default();
        for _ in 0..10 {
            for (queue, letter) in [(&mut queues.express, 'e'), (&mut queues.ordinary, 'o')] {
                let order = Arc::clone(&order);
                queue.push_back(Box::new(move || order.lock().push(letter)));
            }
        }
        while let Some(job) = queues.pop() {
            job();
        }
        assert_eq!(*order.lock(), "eeeeeeeoeeeooooooooo");
    }

    #[test]
    fn jobs_run_until_the_end() {
        let workers = Workers::start(1).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(workers.run(Lane::Express, || 7)), Some(7));
        workers.stop();
        assert_eq!(runtime.block_on(workers.run(Lane::Express, || 7)), None);
    }
}
