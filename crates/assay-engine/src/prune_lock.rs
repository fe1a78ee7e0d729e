//! Prune locks: readers of old blocks prevent their removal (Core's prune locks, `node/blockstorage.h`).

use std::sync::Arc;

use assay_wire::BlockHash;
use parking_lot::Mutex;

/// A reader that processes archived blocks in order, such as an index. Called under the engine's state lock: it must not call the
/// engine.
pub trait BlockKeeper: Send + Sync {
    /// Name in the log.
    fn name(&self) -> &str;

    /// Height of the last processed block.
    fn height(&self) -> u32;

    /// Writes its results to disk, and returns the last block that it will not need even after a crash; `None` if there is none.
    /// By hash, since the block may no longer be active.
    fn settle(&self) -> Option<BlockHash>;
}

#[derive(Default)]
pub(crate) struct PruneLocks(Mutex<Vec<Arc<dyn BlockKeeper>>>);

impl PruneLocks {
    pub(crate) fn add(&self, keeper: Arc<dyn BlockKeeper>) {
        self.0.lock().push(keeper);
    }

    /// The highest prunable block, at most `height` (Core `validation.cpp`, `FlushStateToDisk`). `fork_height` returns the fork
    /// point of a block's branch with the active one.
    pub(crate) fn limit(&self, height: u32, fork_height: impl Fn(&BlockHash) -> u32) -> u32 {
        let mut last = height;
        let mut limiting = None;
        for keeper in &*self.0.lock() {
            let done = keeper.settle().map_or(0, |hash| fork_height(&hash));
            let limit = done.saturating_sub(BUFFER_BLOCKS + 1);
            last = last.min(limit).max(1);
            if last == limit {
                limiting = Some(keeper.name().to_owned());
            }
        }
        if let Some(name) = limiting {
            tracing::debug!(target: "prune", "{name} limited pruning to height {last}");
        }
        last
    }

    /// Logs, in Core's words (`validation.cpp`, `DisconnectTip`), the locks that move back because a block whose parent has this
    /// height is disconnected.
    pub(crate) fn moved_back(&self, height: u32) {
        for keeper in &*self.0.lock() {
            if keeper.height() > height {
                tracing::debug!(
                    target: "prune",
                    "{} prune lock moved back to {height}", keeper.name()
                );
            }
        }
    }
}

/// Additional blocks kept below the needed ones, for reorgs (Core `validation.cpp`, `PRUNE_LOCK_BUFFER`).
const BUFFER_BLOCKS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// An index that has processed this block.
    struct At(BlockHash);

    impl BlockKeeper for At {
        fn name(&self) -> &'static str {
            "index"
        }

        fn height(&self) -> u32 {
            100
        }

        fn settle(&self) -> Option<BlockHash> {
            Some(self.0)
        }
    }

    #[test]
    fn an_index_on_a_branch_that_was_left_keeps_the_blocks_above_the_fork() {
        let (active, left) = (BlockHash([1; 32]), BlockHash([2; 32]));
        // Both blocks are at height 100; the branch of the second forks off the active one at 60.
        let fork_height = |hash: &BlockHash| if *hash == active { 100 } else { 60 };
        for (hash, expected) in [(active, 89), (left, 49)] {
            let keepers = PruneLocks::default();
            keepers.add(Arc::new(At(hash)));
            assert_eq!(keepers.limit(400, fork_height), expected);
        }
    }
}
