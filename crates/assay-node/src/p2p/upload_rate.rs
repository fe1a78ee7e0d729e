//! Upload limit for all peers together.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

pub(super) struct Rate {
    bytes_per_s: Option<u64>,
    /// Time at which all granted bytes are paid for.
    paid_at: Mutex<Instant>,
}

impl Rate {
    pub(super) fn new(bytes_per_s: Option<u64>) -> Self {
        Self { bytes_per_s, paid_at: Mutex::new(Instant::now()) }
    }

    pub(super) fn is_limited(&self) -> bool {
        self.bytes_per_s.is_some()
    }

    /// Bytes to send before the next call of [`Rate::pay`], up to `wanted`.
    pub(super) fn piece(&self, wanted: usize) -> usize {
        // A tenth of a second each, for an even flow at low rates.
        match self.bytes_per_s {
            None => wanted,
            Some(rate) => wanted.min(usize::try_from(rate / 10).unwrap_or(wanted).max(1)),
        }
    }

    /// Waits until `bytes` may be sent; `false` if `is_over` becomes true before.
    pub(super) fn pay(&self, bytes: usize, is_over: impl Fn() -> bool) -> bool {
        let Some(rate) = self.bytes_per_s else { return true };
        let now = Instant::now();
        let due = {
            let mut paid_at = self.paid_at.lock().unwrap_or_else(PoisonError::into_inner);
            let due = (*paid_at).max(now);
            *paid_at = due + Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
            due
        };
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            if is_over() {
                return false;
            }
            thread::sleep(left.min(NAP));
        }
    }
}

/// Detection latency of a closed connection.
const NAP: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_limited() {
        let rate = Rate::new(Some(1_000_000));
        let start = Instant::now();
        for _ in 0..6 {
            assert!(rate.pay(10_000, || false));
        }
        // The first call is free; later calls pay for it.
        assert!(start.elapsed() >= Duration::from_millis(50));
        assert!(rate.pay(100_000_000, || false), "granted, and paid for by the next");
        assert!(!rate.pay(1, || true), "nobody waits for a closed connection");
        assert_eq!((rate.piece(1 << 20), rate.piece(5)), (100_000, 5));
        assert!(Rate::new(None).pay(usize::MAX, || true));
    }
}
