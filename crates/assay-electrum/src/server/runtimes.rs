//! Two asynchronous runtimes for socket I/O.
//!
//! A client with heavy traffic keeps its receiving thread busy and delays every other client of that thread. Light clients
//! therefore have threads of their own, which are never busy for long. A connection starts on the runtime for others, moves to
//! that for light clients after a short time of light use, and back as soon as its use is not light. Measurements:
//! `docs/adr/0028`.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

use super::thread_priority::{wake_soon, yield_to_others};
use super::workers::Priority;

/// Threads for light clients.
const LIGHT_THREADS: usize = 2;
/// Threads for new and heavy clients.
const OTHER_THREADS: usize = 1;

#[derive(Debug)]
pub(super) struct Runtimes {
    light: Option<Runtime>,
    others: Option<Runtime>,
    is_stopping: bool,
}

impl Runtimes {
    pub(super) fn start() -> io::Result<(Self, RuntimeHandles)> {
        let group = |threads, name: &str, on_start: fn()| {
            let mut builder = Builder::new_multi_thread();
            builder.worker_threads(threads).thread_name(name).on_thread_start(on_start);
            builder.enable_all().build()
        };
        let light = group(LIGHT_THREADS, "electrum-net", wake_soon)?;
        let others = group(OTHER_THREADS, "electrum-bulk", yield_to_others)?;
        let handles =
            RuntimeHandles { light: light.handle().clone(), others: others.handle().clone() };
        Ok((Self { light: Some(light), others: Some(others), is_stopping: false }, handles))
    }

    /// A handle for shutdown; only the first call returns one.
    pub(super) fn take(&mut self) -> Option<Handle> {
        if std::mem::replace(&mut self.is_stopping, true) {
            return None;
        }
        self.light.as_ref().map(|runtime| runtime.handle().clone())
    }

    /// Shuts both down; running tasks get `time`.
    pub(super) fn stop(&mut self, time: Duration) {
        for runtime in [self.others.take(), self.light.take()].into_iter().flatten() {
            runtime.shutdown_timeout(time);
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct RuntimeHandles {
    light: Handle,
    others: Handle,
}

impl RuntimeHandles {
    pub(super) fn of(&self, priority: Priority) -> &Handle {
        match priority {
            Priority::High => &self.light,
            Priority::Normal => &self.others,
        }
    }
}
