//! Pruning on request, and the prune height.

use std::sync::Arc;

use super::Chain;
use crate::error::EngineError;
use crate::prune_lock::BlockKeeper;
use crate::types::Tip;

impl Chain<'_> {
    /// Removes the block files with all blocks at `height` or below, and more than
    /// [`Config::prune_keeps`](crate::Config::prune_keeps) below the tip. Returns the height of the highest active block without
    /// data or undo data; `None` if there is none.
    ///
    /// # Errors
    /// The engine fails.
    pub fn prune_to(self, height: u32) -> Result<Option<u32>, EngineError> {
        let mut state = self.0.lock();
        state.check()?;
        self.0.chainstate.flush(&mut state)?;
        let pruned = self.0.chainstate.prune_to_height(&mut state, height);
        state.poison(pruned)?;
        Ok(state.tree.prune_height())
    }

    /// Registers a prune lock: pruning stops below the blocks that its owner still reads.
    pub fn add_prune_lock(self, lock: Arc<dyn BlockKeeper>) {
        self.0.chainstate.prune_locks.add(lock);
    }

    /// Height of the highest active block without data or undo data; `None` if there is none.
    pub fn prune_height(self) -> Option<u32> {
        self.0.lock_tree().tree.prune_height()
    }

    /// Height of the highest block up to [`Chain::validated_tip`] without data or undo data; `None` if there is none.
    pub fn validated_prune_height(self) -> Option<u32> {
        let state = self.0.lock_tree();
        match &state.historical {
            Some(historical) => state.tree.prune_height_below(historical.tip),
            None => state.tree.prune_height(),
        }
    }

    /// The lowest active block such that it or a lower one has at least this time, seconds since 1970 (Core `chain.cpp`,
    /// `FindEarliestAtLeast`).
    pub fn earliest_at_least(self, time_s: u64) -> Option<Tip> {
        let state = self.0.lock_tree();
        let tree = &state.tree;
        let mut active = (0..).map_while(|height| tree.active_at(height));
        let found = active.find(|id| u64::from(tree.get(*id).header.time) >= time_s)?;
        Some(tree.facts(found))
    }
}
