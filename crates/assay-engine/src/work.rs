//! Counters of the work since the start, and its time by stage.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Stages of a block before it is the tip.
///
/// The threads of the block's senders run [`Stage::Check`] and [`Stage::Archive`], several of them during IBD; the connecting
/// thread runs the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Hashing, and context-free checks.
    Check,
    /// Contextual checks, and the archive write.
    Archive,
    /// Reads of archived blocks that are no longer in memory.
    Read,
    /// Lookups and changes of coins, and the handover of scripts.
    Coins,
    /// Waiting for scripts, which all cores verify.
    Scripts,
    /// Undo data, index and mempool updates of a block with verified scripts.
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

    /// Name in metrics and displays.
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
    /// Runs `work` and adds its time to a stage.
    pub(crate) fn time<T>(&self, stage: Stage, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        let elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.stages_ns[stage as usize].fetch_add(elapsed_ns, Ordering::Relaxed);
        done
    }

    /// Counts a block that became the tip.
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
