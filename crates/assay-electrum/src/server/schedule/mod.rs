//! Scheduling: threads, queues and time slices of clients.

pub(in crate::server) mod runtimes;
pub(in crate::server) mod thread_priority;
pub(in crate::server) mod workers;

use std::time::Duration;

/// Time slice: afterwards a thread serves other work, such as other requests or newer changes.
pub(in crate::server) const SLICE: Duration = Duration::from_millis(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Priority {
    /// Light clients.
    High,
    /// All others.
    Normal,
}

impl Priority {
    pub(in crate::server) fn other(self) -> Self {
        match self {
            Self::High => Self::Normal,
            Self::Normal => Self::High,
        }
    }
}
