//! How often, and after which pause, what failed is tried again.

use std::time::Duration;

/// How often a request is tried that a reorganisation interrupts, and the pause in between.
pub(in crate::server) const REQUEST_TRIES: u32 = 50;
pub(in crate::server) const REQUEST_PAUSE: Duration = Duration::from_millis(20);
/// Pause before something watched is looked up again that a reorganisation interrupted, unless
/// there are changes before.
pub(in crate::server) const NOTIFY_PAUSE: Duration = Duration::from_millis(50);
/// Pause after a failure to accept a connection, most likely for want of file descriptors.
pub(in crate::server) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
