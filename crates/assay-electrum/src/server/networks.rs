//! Threads that move bytes, in two groups.
//!
//! Whoever sends much keeps the threads that receive it busy, and everybody whose socket waits for the same threads waits as well.
//! So clients who ask little have threads of their own, which are never busy for long. A connection begins with the others, comes to the
//! modest ones when it has been modest for a moment, and goes back as soon as it is not.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

use super::priority::{wake_soon, yield_to_others};
use super::workers::Lane;

/// Threads for clients who ask little.
const MODEST_THREADS: usize = 2;
/// Threads for the others.
const OTHER_THREADS: usize = 1;

/// Both groups.
#[derive(Debug)]
pub(super) struct Networks {
    modest: Option<Runtime>,
    others: Option<Runtime>,
    is_stopping: bool,
}

impl Networks {
    /// Starts the threads.
    pub(super) fn start() -> io::Result<(Self, Handles)> {
        let group = |threads, name: &str, on_start: fn()| {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(threads).thread_name(name).on_thread_start(on_start);
            builder.enable_all().build()
        };
        let modest = group(MODEST_THREADS, "electrum-net", wake_soon)?;
        let others = group(OTHER_THREADS, "electrum-bulk", yield_to_others)?;
        let handles = Handles { modest: modest.handle().clone(), others: others.handle().clone() };
        Ok((Self { modest: Some(modest), others: Some(others), is_stopping: false }, handles))
    }

    /// A way to run what ends the server; the first time alone.
    pub(super) fn take(&mut self) -> Option<Handle> {
        if std::mem::replace(&mut self.is_stopping, true) {
            return None;
        }
        self.modest.as_ref().map(|runtime| runtime.handle().clone())
    }

    /// Ends both; what still runs there has `time`.
    pub(super) fn stop(&mut self, time: Duration) {
        for runtime in [self.others.take(), self.modest.take()].into_iter().flatten() {
            runtime.shutdown_timeout(time);
        }
    }
}

/// Ways to both groups of threads.
#[derive(Clone, Debug)]
pub(super) struct Handles {
    modest: Handle,
    others: Handle,
}

impl Handles {
    /// Those who serve the clients of a lane.
    pub(super) fn of(&self, lane: Lane) -> &Handle {
        match lane {
            Lane::Express => &self.modest,
            Lane::Ordinary => &self.others,
        }
    }
}
