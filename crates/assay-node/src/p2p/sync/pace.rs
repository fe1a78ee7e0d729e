//! Block download rate of a peer, and its backoff after slower delivery than others.

use std::collections::VecDeque;

/// Moving averages of time and size per block.
#[derive(Clone, Copy)]
pub(super) struct Usual {
    pub(super) time_us: u64,
    pub(super) bytes: u64,
}

impl Usual {
    pub(super) fn bytes_in(self, time_ms: u64) -> u64 {
        let bytes = u128::from(self.bytes) * u128::from(time_ms) * 1000;
        u64::try_from(bytes / u128::from(self.time_us.max(1))).unwrap_or(u64::MAX)
    }
}

#[derive(Default)]
pub(super) struct Pace {
    pub(super) usual: Option<Usual>,
    pub(super) blocks: usize,
    ping_ms: Option<u64>,
    /// Received bytes at the last update, and at the start of the current block.
    received_bytes: u64,
    begun_at_bytes: u64,
    /// Samples of time (milliseconds by the node's clock) and received bytes since the peer became busy: the latest seconds.
    trail: VecDeque<(u64, u64)>,
    /// Blocks that others delivered first, since its last delivered block; at most one per rest.
    pub(super) lapses: u32,
    rests_until_ms: u64,
}

impl Pace {
    pub(super) fn look(&mut self, received_bytes: u64, ping_ms: Option<u64>, now_ms: u64) {
        (self.received_bytes, self.ping_ms) = (received_bytes, ping_ms);
        if self.trail.back().is_none_or(|(at_ms, _)| now_ms >= at_ms + TRAIL_STEP_MS) {
            self.trail.push_back((now_ms, received_bytes));
        }
        while self.trail.get(1).is_some_and(|(at_ms, _)| now_ms > at_ms + PATIENCE_MOST_MS) {
            self.trail.pop_front();
        }
    }

    /// The peer becomes busy.
    pub(super) fn begin(&mut self) {
        self.trail.clear();
    }

    /// Bytes received in the last `span_ms`; `None` if it became busy later than that.
    pub(super) fn bytes_within(&self, span_ms: u64, now_ms: u64) -> Option<u64> {
        let from_ms = now_ms.checked_sub(span_ms)?;
        let (_, before) = self.trail.iter().rev().find(|(at_ms, _)| *at_ms <= from_ms)?;
        Some(self.received_bytes.saturating_sub(*before))
    }

    pub(super) fn begin_block(&mut self) {
        self.begun_at_bytes = self.received_bytes;
    }

    pub(super) fn bytes_since_block(&self) -> u64 {
        self.received_bytes.saturating_sub(self.begun_at_bytes)
    }

    /// Assumes the maximum without a pong.
    pub(super) fn ping_ms(&self) -> u64 {
        self.ping_ms.unwrap_or(PING_MOST_MS)
    }

    pub(super) fn patience_ms(&self) -> u64 {
        (FACTOR * self.ping_ms()).clamp(PATIENCE_LEAST_MS, PATIENCE_MOST_MS)
    }

    /// Another peer delivered a block first: the peer rests, then gets one block at a time.
    pub(super) fn lapse(&mut self, now_ms: u64) {
        if now_ms < self.rests_until_ms {
            return;
        }
        self.rests_until_ms = now_ms + (REST_LEAST_MS << self.lapses.min(REST_DOUBLINGS));
        self.lapses += 1;
    }

    /// The peer has delivered a block.
    pub(super) fn recover(&mut self) {
        (self.lapses, self.rests_until_ms) = (0, 0);
    }

    pub(super) fn is_slow(&self) -> bool {
        self.lapses > 0
    }

    /// True if the peer gets no requests now while others are available.
    pub(super) fn rests(&self, now_ms: u64) -> bool {
        now_ms < self.rests_until_ms
    }

    pub(super) fn note_block(&mut self, time_us: u64) {
        let bytes = self.bytes_since_block();
        self.blocks += 1;
        let part = |before: u64, now: u64| (before * (WEIGHT - 1) + now) / WEIGHT;
        self.usual = Some(match self.usual {
            Some(before) => {
                Usual { time_us: part(before.time_us, time_us), bytes: part(before.bytes, bytes) }
            }
            None => Usual { time_us, bytes },
        });
    }
}

/// Factor over the usual time, and number of pings, that make a peer late.
pub(super) const FACTOR: u64 = 4;
/// Minimum lateness, independent of other peers.
const PATIENCE_LEAST_MS: u64 = 400;
/// Maximum allowance for slow pings: Core's minimum stall timeout (`net_processing.cpp`, `BLOCK_STALLING_TIMEOUT_DEFAULT`).
const PATIENCE_MOST_MS: u64 = 2_000;
pub(super) const PING_MOST_MS: u64 = 2_000;
const TRAIL_STEP_MS: u64 = 50;
/// Weight of the average: the latest block counts 1/8.
const WEIGHT: u64 = 8;
/// First rest, which doubles up to about a minute.
const REST_LEAST_MS: u64 = 2_000;
const REST_DOUBLINGS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_grow() {
        let mut pace = Pace::default();
        let mut now_ms = 0;
        let mut rests = Vec::new();
        for _ in 0..8 {
            pace.lapse(now_ms);
            rests.push(pace.rests_until_ms - now_ms);
            // Other blocks of the same rest change nothing.
            pace.lapse(now_ms + 1);
            now_ms = pace.rests_until_ms;
        }
        assert_eq!(rests, [2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 64_000, 64_000]);
    }
}
