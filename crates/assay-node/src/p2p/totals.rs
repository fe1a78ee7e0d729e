//! Traffic totals and the daily upload target (Core `net.cpp`, `-maxuploadtarget`).
//!
//! Counters are atomic, as every connection updates them on every write. Bytes added concurrently with the start of
//! a day may count towards either day.

use std::sync::atomic::{AtomicU64, Ordering};

use super::messages::Messages;

/// Bytes sent and received since start and in the current day.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Daily upload target, bytes; 0 for no limit.
    pub(crate) target_bytes: u64,
    /// Reserve of the target for new blocks: the largest block once per block interval.
    reserve: Reserve,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    /// Start of the day, seconds since 1970; 0 before the first byte.
    day_began_s: AtomicU64,
    day_sent_bytes: AtomicU64,
    messages: Messages,
}

/// Reserve that allows each new block to be sent once.
#[derive(Debug, Default)]
struct Reserve {
    block_bytes: u64,
    spacing_s: u64,
}

impl Totals {
    /// For blocks of up to `block_bytes` every `spacing_s` seconds.
    pub(super) fn new(target_bytes: u64, block_bytes: u64, spacing_s: u64) -> Self {
        let reserve = Reserve { block_bytes, spacing_s: spacing_s.max(1) };
        Self { target_bytes, reserve, ..Self::default() }
    }

    pub(super) fn sent(&self, bytes: u64, now_s: u64) {
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        let began_s = self.day_began_s.load(Ordering::Relaxed);
        if began_s.saturating_add(DAY_S) < now_s {
            let (new, old) = (Ordering::AcqRel, Ordering::Relaxed);
            // One thread starts the day.
            if self.day_began_s.compare_exchange(began_s, now_s, new, old).is_ok() {
                self.day_sent_bytes.store(0, Ordering::Relaxed);
            }
        }
        self.day_sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn received(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn messages(&self) -> &Messages {
        &self.messages
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_reached(&self) -> bool {
        self.target_bytes > 0 && self.day_sent_bytes.load(Ordering::Relaxed) >= self.target_bytes
    }

    /// True if only the reserve for new blocks is left.
    pub(crate) fn is_reached_for_old_blocks(&self, now_s: u64) -> bool {
        if self.target_bytes == 0 {
            return false;
        }
        let blocks = self.left_s(now_s) / self.reserve.spacing_s.max(1);
        let reserved = blocks.saturating_mul(self.reserve.block_bytes);
        let sent = self.day_sent_bytes.load(Ordering::Relaxed);
        self.target_bytes.checked_sub(reserved).is_none_or(|free| free == 0 || sent >= free)
    }

    /// Bytes left of the target; 0 without one.
    pub(crate) fn left_bytes(&self) -> u64 {
        self.target_bytes.saturating_sub(self.day_sent_bytes.load(Ordering::Relaxed))
    }

    /// Seconds left of the day; 0 without a target.
    pub(crate) fn left_s(&self, now_s: u64) -> u64 {
        match (self.target_bytes, self.day_began_s.load(Ordering::Relaxed)) {
            (0, _) => 0,
            (_, 0) => DAY_S,
            (_, began_s) => began_s.saturating_add(DAY_S).saturating_sub(now_s),
        }
    }
}

/// Period of the target (Core's `MAX_UPLOAD_TIMEFRAME`).
pub(crate) const DAY_S: u64 = 24 * 60 * 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn daily_target_reserves_new_blocks() {
        let now_s = 1_700_000_000;
        let totals = Totals::new(600_000_000, 4_000_000, 600);
        assert!(!totals.is_reached() && !totals.is_reached_for_old_blocks(now_s));
        assert_eq!((totals.left_s(now_s), totals.left_bytes()), (DAY_S, 600_000_000));
        // 144 blocks take 576 MB.
        totals.sent(23_999_999, now_s);
        assert!(!totals.is_reached_for_old_blocks(now_s));
        totals.sent(1, now_s);
        assert!(totals.is_reached_for_old_blocks(now_s) && !totals.is_reached());
        // Half a day later the reserve is smaller.
        assert!(!totals.is_reached_for_old_blocks(now_s + DAY_S / 2));
        totals.sent(576_000_000, now_s + DAY_S);
        assert!(totals.is_reached() && totals.left_bytes() == 0);
        assert_eq!(totals.left_s(now_s + DAY_S + 5), 0);
        totals.sent(10, now_s + DAY_S + 1);
        assert!(!totals.is_reached());
        assert_eq!(totals.left_bytes(), 600_000_000 - 10);
        assert_eq!(totals.sent_bytes(), 600_000_010);
    }

    #[test]
    fn absent_and_small_targets() {
        let totals = Totals::new(0, 4_000_000, 600);
        totals.sent(u64::from(u32::MAX), 5);
        assert!(!totals.is_reached() && !totals.is_reached_for_old_blocks(5));
        assert_eq!((totals.left_s(5), totals.left_bytes()), (0, 0));
        let small = Totals::new(1 << 20, 4_000_000, 600);
        assert!(small.is_reached_for_old_blocks(5) && !small.is_reached());
    }
}
