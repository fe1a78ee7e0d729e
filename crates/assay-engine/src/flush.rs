//! When the coins in memory are written to disk: the one place that decides it, for the engine and for `validate`.
//!
//! - After a block, when the cache is so full of changes that nothing else makes room. How much it may hold is
//!   [`default_cache_bytes`](crate::default_cache_bytes) or a setting; what blocks and changes take of it is for the store to
//!   know ([`CoinStore::make_room`]).
//! - After a block, when the last flush is an interval ago: that bounds what a crash or an interruption costs. It is the same
//!   while a chain is being caught up with and near the tip.
//! - Before a snapshot that would copy more changes than there is room for.
//! - At the end.
//!
//! A folder that is thrown away afterwards is only written to when the cache is full.

use std::time::{Duration, Instant};

use assay_store::{CoinStore, Room};

use crate::log;

/// For an engine. Connecting an archived block again needs no scripts, so half an hour of work takes a few minutes after a
/// crash; writing out a cache of 4 GiB this often costs about one hundredth of the time. Core flushes every hour or so.
pub(crate) const ENGINE_INTERVAL: Duration = Duration::from_mins(30);

/// For `validate`, which after an interruption has to verify scripts again.
pub(crate) const VALIDATE_INTERVAL: Duration = Duration::from_mins(10);

/// When to write, and when that was done last.
pub(crate) struct FlushPolicy {
    /// Absent where the folder is not kept.
    interval: Option<Duration>,
    flushed_at: Instant,
}

impl FlushPolicy {
    /// Writes at least so often, as long as blocks come, and at the end; with no interval only when it must.
    pub(crate) fn new(interval: Option<Duration>) -> Self {
        Self { interval, flushed_at: Instant::now() }
    }

    /// Makes room for the next block; call it after every block whose coins have moved. Gives whether to write.
    #[must_use]
    pub(crate) fn is_due(&self, coins: &mut CoinStore) -> bool {
        let room = coins.make_room();
        if let Room::Evicted(evicted) = room {
            log::evicted(evicted, &coins.usage());
        }
        room == Room::FlushDue
            || self.interval.is_some_and(|interval| self.flushed_at.elapsed() >= interval)
    }

    /// Whether to write before a snapshot, which copies what is not written.
    pub(crate) fn is_due_for_snapshot(&self, coins: &CoinStore) -> bool {
        self.is_due_at_end() && !coins.usage().has_room_for_snapshot()
    }

    /// Whether to write when no more blocks come.
    pub(crate) fn is_due_at_end(&self) -> bool {
        self.interval.is_some()
    }

    pub(crate) fn flushed(&mut self) {
        self.flushed_at = Instant::now();
    }
}
