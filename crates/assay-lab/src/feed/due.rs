//! Send times and waiting for them.

use std::thread;
use std::time::Duration;

use crate::machine::clock::Clock;
use crate::plan::Rate;

/// Send times of transactions.
pub(crate) struct Due {
    start_s: f64,
    /// Seconds per transaction and per byte.
    per_tx_s: f64,
    per_byte_s: f64,
    burst: usize,
    /// Transactions sent so far, and in the current burst.
    txs: usize,
    bytes: u64,
}

impl Due {
    /// `interval_s` is the time until the block is due; `txs` transactions are spread over it if the rate is so configured.
    pub(crate) fn new(
        rate: Rate,
        burst: usize,
        (start_s, interval_s): (f64, Option<f64>),
        txs: usize,
    ) -> Self {
        let (per_tx_s, per_byte_s) = match rate {
            Rate::Asap => (0.0, 0.0),
            Rate::Txs(rate) => (1.0 / rate, 0.0),
            Rate::Mib(rate) => (0.0, 1.0 / (rate * f64::from(1 << 20))),
            Rate::Interval => (interval_s.unwrap_or(0.0).max(0.0) / txs.max(1) as f64, 0.0),
        };
        Self { start_s, per_tx_s, per_byte_s, burst, txs: 0, bytes: 0 }
    }

    /// True without any delay.
    pub(crate) fn is_asap(&self) -> bool {
        self.per_tx_s == 0.0 && self.per_byte_s == 0.0
    }

    /// Number of next transactions, given by their lengths, that are due now; at most `most`. Bursts are not split.
    pub(crate) fn ready(
        &self,
        now_s: f64,
        lengths: impl Iterator<Item = u64>,
        most: usize,
    ) -> usize {
        let (mut count, mut bytes) = (0, self.bytes);
        for length in lengths.take(most) {
            // The first of a burst decides for all of it.
            let txs = self.txs + count;
            let is_start = txs.is_multiple_of(self.burst);
            let due_s = self.start_s + txs as f64 * self.per_tx_s + bytes as f64 * self.per_byte_s;
            if is_start && due_s > now_s && !self.is_asap() {
                return count;
            }
            count += 1;
            bytes += length;
        }
        count
    }

    pub(crate) fn sent(&mut self, txs: usize, bytes: u64) {
        self.txs += txs;
        self.bytes += bytes;
    }
}

/// Sleeps until `at_s`; `false` when interrupted.
pub(crate) fn sleep_until(clock: Clock, at_s: f64, wants_stop: &dyn Fn() -> bool) -> bool {
    loop {
        if wants_stop() {
            return false;
        }
        let left = at_s - clock.now_s();
        if left <= 0.0 {
            return true;
        }
        thread::sleep(Duration::from_secs_f64(left.min(0.05)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_bursts() {
        let lengths = || std::iter::repeat_n(250_u64, 100);
        let asap = Due::new(Rate::Asap, 1, (0.0, None), 100);
        assert_eq!(asap.ready(0.0, lengths(), 40), 40);
        let mut ten = Due::new(Rate::Txs(10.0), 1, (5.0, None), 100);
        assert_eq!(ten.ready(4.9, lengths(), 40), 0);
        assert_eq!(ten.ready(5.0, lengths(), 40), 1);
        assert_eq!(ten.ready(6.01, lengths(), 40), 11);
        ten.sent(11, 11 * 250);
        assert_eq!(ten.ready(6.05, lengths(), 40), 0);
        assert_eq!(ten.ready(6.11, lengths(), 40), 1);
        let bursts = Due::new(Rate::Txs(10.0), 20, (0.0, None), 100);
        assert_eq!(bursts.ready(0.0, lengths(), 40), 20);
        assert_eq!(bursts.ready(2.01, lengths(), 100), 40);
        let bytes = Due::new(Rate::Mib(1.0), 1, (0.0, None), 100);
        assert_eq!(bytes.ready(2500.0 / f64::from(1 << 20), lengths(), 100), 11);
        let spread = Due::new(Rate::Interval, 1, (0.0, Some(10.0)), 100);
        assert_eq!(spread.ready(5.01, lengths(), 100), 51);
    }
}
