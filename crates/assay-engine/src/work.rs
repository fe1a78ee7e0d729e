//! How much was done since the start, and where the time went.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is done to a block before it is the tip.
///
/// [`Stage::Check`] and [`Stage::Archive`] are done by those who bring blocks, on several threads while a chain is caught up with;
/// the others by the one thread that connects them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Hashes, and the checks that need no context.
    Check,
    /// Checks against the branch, and writing the block to the archive.
    Archive,
    /// Reading a block from the archive that is no longer in memory.
    Read,
    /// Finding the coins that a block spends, moving coins, and handing scripts over.
    Coins,
    /// Waiting for scripts, which all cores verify.
    Scripts,
    /// Undo data, index and mempool of a block whose scripts have passed.
    Tip,
    Flush,
}

impl Stage {
    pub const ALL: [Self; 7] = [
        Self::Check,
        Self::Archive,
        Self::Read,
        Self::Coins,
        Self::Scripts,
        Self::Tip,
        Self::Flush,
    ];

    /// In metrics and displays.
    pub fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Archive => "archive",
            Self::Read => "read",
            Self::Coins => "coins",
            Self::Scripts => "scripts",
            Self::Tip => "tip",
            Self::Flush => "flush",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkDone {
    pub blocks: u64,
    pub txs: u64,
    pub bytes: u64,
    /// Time by stage, in the order of [`Stage::ALL`].
    pub stages: [Duration; Stage::ALL.len()],
}

#[derive(Debug, Default)]
pub(crate) struct Work {
    blocks: AtomicU64,
    txs: AtomicU64,
    bytes: AtomicU64,
    stages_ns: [AtomicU64; Stage::ALL.len()],
}

impl Work {
    /// Does something, and counts its time.
    pub(crate) fn time<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.stages_ns[stage as usize].fetch_add(elapsed_ns, Ordering::Relaxed);
        done
    }

    /// A block has become the tip.
    pub(crate) fn connected(&self, txs: usize, bytes: usize) {
        self.blocks.fetch_add(1, Ordering::Relaxed);
        self.txs.fetch_add(txs as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn done(&self) -> WorkDone {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        WorkDone {
            blocks: read(&self.blocks),
            txs: read(&self.txs),
            bytes: read(&self.bytes),
            stages: std::array::from_fn(|at| Duration::from_nanos(read(&self.stages_ns[at]))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_by_stage() {
        let work = Work::default();
        assert_eq!(work.time(Stage::Tip, || 7), 7);
        work.time(Stage::Flush, || std::thread::sleep(Duration::from_millis(2)));
        work.connected(3, 1000);
        work.connected(1, 200);
        let done = work.done();
        assert_eq!((done.blocks, done.txs, done.bytes), (2, 4, 1200));
        for (at, stage) in Stage::ALL.into_iter().enumerate() {
            assert_eq!(stage as usize, at);
            assert_eq!(done.stages[at] >= Duration::from_millis(2), stage == Stage::Flush);
        }
    }
}
