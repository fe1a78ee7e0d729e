//! Which thread serves a client, in which order, and for how long at a time.

pub(in crate::server) mod retry;
pub(in crate::server) mod runtimes;
pub(in crate::server) mod thread_priority;
pub(in crate::server) mod workers;

use std::time::Duration;

/// After this much time a thread lets other work go first: a batch other requests, notifications
/// the changes that came meanwhile.
pub(in crate::server) const SLICE: Duration = Duration::from_millis(2);

/// How soon a client is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Priority {
    /// Clients whose use is light.
    High,
    /// The others.
    Normal,
}

impl Priority {
    /// Not this one.
    pub(in crate::server) fn other(self) -> Self {
        match self {
            Self::High => Self::Normal,
            Self::Normal => Self::High,
        }
    }
}
