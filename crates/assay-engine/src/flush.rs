//! Flush policy of the coins, for the engine and for `validate`.
//!
//! Flushes happen:
//!
//! - After a block, when the cache is full and only changes are left in it. Its limit is
//!   [`default_cache_bytes`](crate::default_cache_bytes) or a setting; [`CoinStore::make_room`] measures its usage.
//! - After a block, one interval after the last flush, during IBD and near the tip: that limits the cost of a crash or an
//!   interruption.
//! - Before a snapshot that would copy more changes than fit into memory.
//! - At the end.
//!
//! A temporary folder is only written to when the cache is full.

use std::time::{Duration, Instant};

use assay_store::{CoinStore, Room};

use crate::log;

/// For an engine. Connecting an archived block again needs no scripts, so half an hour of work takes a few minutes after a crash;
/// a flush of a 4 GiB cache at this interval costs about one hundredth of the time. Core flushes about every hour.
pub(crate) const ENGINE_INTERVAL: Duration = Duration::from_mins(30);

/// For `validate`, which must verify scripts again after an interruption.
pub(crate) const VALIDATE_INTERVAL: Duration = Duration::from_mins(10);

/// Flush policy, with the time of the last flush.
pub(crate) struct FlushPolicy {
    /// `None` for a temporary folder.
    interval: Option<Duration>,
    flushed_at: Instant,
}

impl FlushPolicy {
    /// Flushes at least once per interval while blocks arrive, and at the end; without an interval only when the cache is full.
    pub(crate) fn new(interval: Option<Duration>) -> Self {
        Self { interval, flushed_at: Instant::now() }
    }

    /// Makes room for the next block; call it after every block whose coins have moved. Returns true if a flush is due.
    #[must_use]
    pub(crate) fn is_due(&self, coins: &mut CoinStore) -> bool {
        let room = coins.make_room();
        if let Room::Evicted(evicted) = room {
            log::evicted(evicted, &coins.usage());
        }
        room == Room::FlushDue
            || self.interval.is_some_and(|interval| self.flushed_at.elapsed() >= interval)
    }

    /// True if a flush is due before a snapshot, which copies unflushed changes.
    pub(crate) fn is_due_for_snapshot(&self, coins: &CoinStore) -> bool {
        self.is_due_at_end() && !coins.usage().has_room_for_snapshot()
    }

    /// True if a flush is due when no more blocks arrive.
    pub(crate) fn is_due_at_end(&self) -> bool {
        self.interval.is_some()
    }

    pub(crate) fn flushed(&mut self) {
        self.flushed_at = Instant::now();
    }
}
