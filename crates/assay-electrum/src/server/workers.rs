//! Worker pool for requests, with two queues.
//!
//! A client has at most one job here at a time. A job that is unfinished after its time slice goes to the end of its queue: round
//! robin. Light clients have a priority queue and a dedicated thread, so that no long request of a heavy client delays them. The
//! other threads run at a lower priority, so that on few cores they delay neither the node nor that thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use assay_store::defect::{Point, Whole, point};
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::thread_priority::{wake_soon, yield_to_others};

/// Time slice: afterwards a thread serves other work, such as other requests or newer changes.
pub(super) const SLICE: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Priority {
    /// Light clients.
    High,
    /// All others.
    Normal,
}

impl Priority {
    pub(super) fn other(self) -> Self {
        match self {
            Self::High => Self::Normal,
            Self::Normal => Self::High,
        }
    }
}

/// Of this many consecutive jobs at least one comes from the normal queue, to prevent starvation.
const NORMAL_EVERY: u32 = 8;

type Job = Box<dyn FnOnce() + Send>;

/// A bounded number of threads with two queues.
pub(super) struct Workers {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    queues: Mutex<Queues>,
    /// Signals a job for any thread.
    filled: Condvar,
    /// Signals a job for the dedicated priority thread.
    high_filled: Condvar,
}

#[derive(Default)]
struct Queues {
    high: VecDeque<Job>,
    normal: VecDeque<Job>,
    high_in_a_row: u32,
    /// True if the dedicated priority thread sleeps and has not been woken.
    is_high_idle: bool,
    stopping: bool,
}

impl Workers {
    pub(super) fn start(count: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let mut threads = Vec::new();
        let high = Arc::clone(&shared);
        let thread = Builder::new().name("electrum-express".to_owned());
        threads.push(thread.spawn(move || {
            wake_soon();
            high.work(Priority::High);
        })?);
        for number in 0..count.max(1) {
            let shared = Arc::clone(&shared);
            let thread = Builder::new().name(format!("electrum-{number}"));
            threads.push(thread.spawn(move || {
                yield_to_others();
                shared.work(Priority::Normal);
            })?);
        }
        Ok(Self { shared, threads: Mutex::new(threads) })
    }

    /// Runs `job`; `None` on shutdown.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        priority: Priority,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = oneshot::channel();
        let job: Job = Box::new(move || {
            // There is no receiver if the connection has ended.
            let _ = sender.send(job());
        });
        // Wake one thread per job.
        let filled = {
            let mut queues = self.shared.queues.lock();
            if queues.stopping {
                return None;
            }
            match priority {
                Priority::High => queues.high.push_back(job),
                Priority::Normal => queues.normal.push_back(job),
            }
            if priority == Priority::High && std::mem::take(&mut queues.is_high_idle) {
                &self.shared.high_filled
            } else {
                &self.shared.filled
            }
        };
        filled.notify_one();
        receiver.await.ok()
    }

    pub(super) fn waiting(&self) -> (usize, usize) {
        let queues = self.shared.queues.lock();
        (queues.high.len(), queues.normal.len())
    }

    /// Finishes running jobs and drops the queues.
    pub(super) fn stop(&self) {
        {
            let mut queues = self.shared.queues.lock();
            queues.stopping = true;
            queues.high.clear();
            queues.normal.clear();
        }
        self.shared.filled.notify_all();
        self.shared.high_filled.notify_all();
        for thread in self.threads.lock().drain(..) {
            // A panic there has aborted the process.
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
    fn work(&self, priority: Priority) {
        while let Some(job) = self.next(priority) {
            // A panic may leave shared state inconsistent.
            let whole = Whole::begin("what the Electrum server shares");
            point(Point::ElectrumCall);
            job();
            drop(whole);
        }
    }

    fn next(&self, priority: Priority) -> Option<Job> {
        let mut queues = self.queues.lock();
        loop {
            if queues.stopping {
                return None;
            }
            let (job, filled) = match priority {
                Priority::High => (queues.high.pop_front(), &self.high_filled),
                Priority::Normal => (queues.pop(), &self.filled),
            };
            if job.is_some() {
                return job;
            }
            queues.is_high_idle |= priority == Priority::High;
            filled.wait(&mut queues);
        }
    }
}

impl Queues {
    fn pop(&mut self) -> Option<Job> {
        let is_normal_due = self.high_in_a_row + 1 >= NORMAL_EVERY;
        if !is_normal_due && let Some(job) = self.high.pop_front() {
            self.high_in_a_row += 1;
            return Some(job);
        }
        self.high_in_a_row = 0;
        self.normal.pop_front().or_else(|| self.high.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_priority_queue_does_not_starve_the_other() {
        let order = Arc::new(Mutex::new(String::new()));
        let mut queues = Queues::default();
        for _ in 0..10 {
            for (queue, letter) in [(&mut queues.high, 'e'), (&mut queues.normal, 'o')] {
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
        assert_eq!(runtime.block_on(workers.run(Priority::High, || 7)), Some(7));
        workers.stop();
        assert_eq!(runtime.block_on(workers.run(Priority::High, || 7)), None);
    }
}
