//! Wakes a thread that polls periodically.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// One thread waits, any thread may ring.
#[derive(Default)]
pub(super) struct Wakeup {
    is_rung: Mutex<bool>,
    rung: Condvar,
}

impl Wakeup {
    /// Wakes the thread, or makes it run once more if it is busy.
    pub(super) fn ring(&self) {
        *self.is_rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.rung.notify_one();
    }

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
    fn ring_wakes_exactly_once() {
        let wakeup = Wakeup::default();
        wakeup.ring();
        wakeup.ring();
        let started = Instant::now();
        wakeup.wait(LONG);
        assert!(started.elapsed() < LONG);
        let started = Instant::now();
        wakeup.wait(Duration::from_millis(10));
        assert!(started.elapsed() >= Duration::from_millis(10));
    }

    #[test]
    fn ring_wakes_the_waiting_thread() {
        let wakeup = Wakeup::default();
        let started = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| wakeup.wait(LONG));
            wakeup.ring();
        });
        assert!(started.elapsed() < LONG);
    }
}
