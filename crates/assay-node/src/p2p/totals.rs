//! Bytes of all connections together, and the target for what is sent in a day (Core `net.cpp`, `-maxuploadtarget`).
//!
//! Counted by atomics: every connection adds to them with every write. When a day begins, bytes that another thread adds at that
//! very time may fall into either.

use std::sync::atomic::{AtomicU64, Ordering};

use super::messages::Messages;

/// What has been sent and received since the start, and in the day that is being measured.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Bytes to send in a day; 0 for no limit.
    pub(crate) target_bytes: u64,
    /// Bytes per second of the target that are left for new blocks: the largest block once per spacing.
    reserve: Reserve,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    /// When the day began, seconds since 1970; 0 before anything was sent.
    day_began_s: AtomicU64,
    day_sent_bytes: AtomicU64,
    messages: Messages,
}

/// What is kept for new blocks, so that each can be sent once at least.
#[derive(Debug, Default)]
struct Reserve {
    block_bytes: u64,
    spacing_s: u64,
}

impl Totals {
    /// Nothing sent yet; blocks of up to `block_bytes` come every `spacing_s` seconds.
    pub(super) fn new(target_bytes: u64, block_bytes: u64, spacing_s: u64) -> Self {
        let reserve = Reserve { block_bytes, spacing_s: spacing_s.max(1) };
        Self { target_bytes, reserve, ..Self::default() }
    }

    pub(super) fn sent(&self, bytes: u64, now_s: u64) {
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        let began_s = self.day_began_s.load(Ordering::Relaxed);
        if began_s.saturating_add(DAY_S) < now_s {
            let (new, old) = (Ordering::AcqRel, Ordering::Relaxed);
            // One thread begins the day.
            if self.day_began_s.compare_exchange(began_s, now_s, new, old).is_ok() {
                self.day_sent_bytes.store(0, Ordering::Relaxed);
            }
        }
        self.day_sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn received(&self, bytes: u64) {
        self.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Messages since the start, by kind.
    pub(crate) fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Bytes sent since the start.
    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent_bytes.load(Ordering::Relaxed)
    }

    /// Bytes received since the start.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.received_bytes.load(Ordering::Relaxed)
    }

    /// Whether the target of the day is reached.
    pub(crate) fn is_reached(&self) -> bool {
        self.target_bytes > 0 && self.day_sent_bytes.load(Ordering::Relaxed) >= self.target_bytes
    }

    /// Whether what is left of the target is for new blocks alone.
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

/// Seconds that the target is for (Core's `MAX_UPLOAD_TIMEFRAME`).
pub(crate) const DAY_S: u64 = 24 * 60 * 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_holds_for_a_day_and_keeps_room_for_new_blocks() {
        let now_s = 1_700_000_000;
        let totals = Totals::new(600_000_000, 4_000_000, 600);
        assert!(!totals.is_reached() && !totals.is_reached_for_old_blocks(now_s));
        assert_eq!((totals.left_s(now_s), totals.left_bytes()), (DAY_S, 600_000_000));
        // 144 blocks take 576 MB.
        totals.sent(23_999_999, now_s);
        assert!(!totals.is_reached_for_old_blocks(now_s));
        totals.sent(1, now_s);
        assert!(totals.is_reached_for_old_blocks(now_s) && !totals.is_reached());
        // Half a day later less is reserved.
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
    fn without_a_target_nothing_is_reached_and_a_small_one_serves_no_old_blocks() {
        let totals = Totals::new(0, 4_000_000, 600);
        totals.sent(u64::from(u32::MAX), 5);
        assert!(!totals.is_reached() && !totals.is_reached_for_old_blocks(5));
        assert_eq!((totals.left_s(5), totals.left_bytes()), (0, 0));
        let small = Totals::new(1 << 20, 4_000_000, 600);
        assert!(small.is_reached_for_old_blocks(5) && !small.is_reached());
    }
}
