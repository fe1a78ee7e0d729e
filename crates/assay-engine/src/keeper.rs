//! Those who still need old blocks, so that they must not be removed yet (Core's prune locks, `node/blockstorage.h`).

use std::sync::Arc;

use parking_lot::Mutex;

/// Somebody who reads blocks of the archive in their order, an index for one. Asked with the engine's state locked: it must not
/// ask the engine for anything.
pub trait BlockKeeper: Send + Sync {
    /// What it is called in the log.
    fn name(&self) -> &str;

    /// Height of the last block that it is done with.
    fn height(&self) -> u32;

    /// Writes out what it has made of blocks, and gives the height of the last one that it will not need after a crash either.
    fn settle(&self) -> u32;
}

/// All of them.
#[derive(Default)]
pub(crate) struct Keepers(Mutex<Vec<Arc<dyn BlockKeeper>>>);

impl Keepers {
    pub(crate) fn add(&self, keeper: Arc<dyn BlockKeeper>) {
        self.0.lock().push(keeper);
    }

    /// The highest block that may be removed, `height` at most (Core `validation.cpp`, `FlushStateToDisk`).
    pub(crate) fn limit(&self, height: u32) -> u32 {
        let mut last = height;
        let mut limiting = None;
        for keeper in &*self.0.lock() {
            let limit = keeper.settle().saturating_sub(BUFFER_BLOCKS + 1);
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

    /// A block is taken off whose parent has this height: those who were beyond it go back too, and say so in Core's words
    /// (`validation.cpp`, `DisconnectTip`).
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

/// Blocks below those that are needed are kept as well, for reorganisations (Core `validation.cpp`, `PRUNE_LOCK_BUFFER`).
const BUFFER_BLOCKS: u32 = 10;
