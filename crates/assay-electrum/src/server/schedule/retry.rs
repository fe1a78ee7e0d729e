//! Retry limits and pauses.

use std::time::Duration;

/// Attempts per request that reorgs interrupt, and the pause between them.
pub(in crate::server) const REQUEST_TRIES: u32 = 50;
pub(in crate::server) const REQUEST_PAUSE: Duration = Duration::from_millis(20);
/// Pause before a status lookup that a reorg interrupted is retried, unless new changes arrive first.
pub(in crate::server) const NOTIFY_PAUSE: Duration = Duration::from_millis(50);
/// Pause after a failed accept, probably for lack of file descriptors.
pub(in crate::server) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
