//! Wakes a thread that looks at something every so often.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// One thread waits for it, any may ring.
#[derive(Default)]
pub(super) struct Bell {
    is_rung: Mutex<bool>,
    rung: Condvar,
}

impl Bell {
    /// The thread is to look now, or once more if it is looking.
    pub(super) fn ring(&self) {
        *self.is_rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.rung.notify_one();
    }

    /// Waits until it is rung, for a while.
    pub(super) fn wait(&self, at_most: Duration) {
        let is_rung = self.is_rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.rung.wait_timeout_while(is_rung, at_most, |is_rung| !*is_rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const LONG: Duration = Duration::from_mins(1);

    #[test]
    fn a_ring_is_heard_once_and_not_lost() {
        let bell = Bell::default();
        bell.ring();
        bell.ring();
        let started = Instant::now();
        bell.wait(LONG);
        assert!(started.elapsed() < LONG);
        let started = Instant::now();
        bell.wait(Duration::from_millis(10));
        assert!(started.elapsed() >= Duration::from_millis(10));
    }

    #[test]
    fn who_waits_is_woken() {
        let bell = Bell::default();
        let started = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| bell.wait(LONG));
            bell.ring();
        });
        assert!(started.elapsed() < LONG);
    }
}
