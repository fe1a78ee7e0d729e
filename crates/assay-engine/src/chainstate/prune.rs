//! Prunes old blocks (Core's `-prune`; `node/blockstorage.cpp`, `FindFilesToPrune` and `FindFilesToPruneManual`).
//!
//! A block file is removed when all its blocks are deep below the tip, an undo file when no remaining block refers to it. The
//! order makes a crash harmless at any point: first the coins and everything before them are flushed, then the blocks are removed
//! from the index, which is synced, then the files are removed. A start needs only blocks near the coins' marker, which is the
//! tip; the next start removes leftover files.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use assay_wire::BlockHash;

use super::{Chainstate, State};
use crate::config::Pruning;
use crate::error::EngineError;
use crate::tree::{BlockTree, NodeId};

#[derive(Debug, Default)]
struct Removal {
    blocks: Vec<u32>,
    undo: Vec<u32>,
    nodes: Vec<NodeId>,
}

#[derive(Default)]
struct FileBlocks {
    height_max: u32,
    nodes: Vec<NodeId>,
}

impl Chainstate {
    /// True if enough was written since the last check that files may have to be removed.
    pub(crate) fn is_pruning_due(&self, state: &State) -> bool {
        let Some(Pruning::Automatic { bytes_max }) = self.config.prune else { return false };
        if state.is_importing {
            return false;
        }
        let bytes = self.blocks.bytes();
        // Core checks after each chunk that it adds to a file.
        let chunk_bytes = CHUNK_BYTES.min(self.config.block_file_bytes_max / 4);
        bytes.saturating_add(MARGIN_BYTES) >= bytes_max
            && bytes.abs_diff(state.pruned_at_bytes) >= chunk_bytes
    }

    /// Removes files until block and undo files take less than the target. The coins are flushed, and at the tip.
    pub(super) fn prune_to_target(&self, state: &mut State) -> Result<(), EngineError> {
        let Some(Pruning::Automatic { bytes_max }) = self.config.prune else { return Ok(()) };
        let bytes = self.blocks.bytes();
        state.pruned_at_bytes = bytes;
        let tip = state.tree.tip_facts();
        if bytes.saturating_add(MARGIN_BYTES) < bytes_max
            || tip.height <= self.config.prune_after_height
        {
            return Ok(());
        }
        let mut margin_bytes = MARGIN_BYTES;
        if self.notifier.download().goes_on(&tip) {
            // During IBD a flush per file would cost more than it saves.
            let best_height = state.tree.get(state.tree.best_header()).height;
            margin_bytes += u64::from(best_height.saturating_sub(tip.height)) * BLOCK_BYTES_MEAN;
        }
        let is_enough = |bytes: u64| bytes.saturating_add(margin_bytes) < bytes_max;
        let count = self.remove_old(state, tip.height, is_enough)?;
        state.pruned_at_bytes = self.blocks.bytes();
        let target_mib = bytes_max >> 20;
        let actual_mib = state.pruned_at_bytes >> 20;
        tracing::debug!(
            target: "prune",
            "target={target_mib}MiB actual={actual_mib}MiB diff={}MiB max_prune_height={} removed {count} blk/rev pairs",
            target_mib.cast_signed() - actual_mib.cast_signed(),
            tip.height.saturating_sub(self.config.prune_keeps),
        );
        Ok(())
    }

    /// Removes all files whose blocks are at `height` or below, except the latest blocks. The coins are flushed, and at the tip.
    pub(crate) fn prune_to_height(
        &self,
        state: &mut State,
        height: u32,
    ) -> Result<(), EngineError> {
        let highest =
            height.saturating_add(self.config.prune_keeps).min(state.tree.tip_node().height);
        let count = self.remove_old(state, highest, |_| false)?;
        tracing::info!("Prune (Manual): prune_height={height} removed {count} blk/rev pairs");
        Ok(())
    }

    /// Removes files, lowest number first, with all blocks far enough below `tip_height`, until `is_enough` accepts the remaining
    /// bytes. Returns their number.
    fn remove_old(
        &self,
        state: &mut State,
        tip_height: u32,
        is_enough: impl Fn(u64) -> bool,
    ) -> Result<usize, EngineError> {
        let Some(height_max) = tip_height.checked_sub(self.config.prune_keeps) else {
            return Ok(0);
        };
        if state.is_importing {
            return Ok(0);
        }
        let tree = &state.tree;
        let fork_height = |hash: &BlockHash| {
            tree.find(hash).map_or(0, |id| tree.get(tree.fork_with_active(id)).height)
        };
        let height_max =
            height_max.min(self.prune_locks.limit(tree.tip_node().height, fork_height));
        let needed = self.needed_by_historical(state);
        let removal = self.plan_removal(&state.tree, (height_max, needed), is_enough);
        if removal.blocks.is_empty() {
            return Ok(0);
        }
        // A restart after a crash must not need the removed blocks.
        self.flush_historical(state)?;
        state.tree.forget_data(&removal.nodes);
        self.put_records(state, &removal.nodes)?;
        self.sync_records()?;
        self.blocks.remove_files(&removal.blocks, &removal.undo)?;
        for file in &removal.blocks {
            tracing::debug!(target: "blockstorage", "UnlinkPrunedFiles: deleted blk/rev ({file:05})");
        }
        Ok(removal.blocks.len())
    }

    /// Heights of blocks that the historical chain still has to validate, and those just below them.
    fn needed_by_historical(&self, state: &State) -> Option<RangeInclusive<u32>> {
        let historical = state.historical.as_ref()?;
        let height = |id| state.tree.get(id).height;
        let first = height(historical.tip).saturating_sub(self.config.prune_keeps);
        Some(first..=height(historical.base))
    }

    fn plan_removal(
        &self,
        tree: &BlockTree,
        (height_max, needed): (u32, Option<RangeInclusive<u32>>),
        is_enough: impl Fn(u64) -> bool,
    ) -> Removal {
        let full = self.blocks.full_files();
        let mut files: BTreeMap<u32, FileBlocks> = BTreeMap::new();
        let mut undo_uses: HashMap<u32, usize> = HashMap::new();
        for (id, node) in tree.nodes() {
            if let Some(pos) = node.block.filter(|pos| full.blocks.contains_key(&pos.file)) {
                let file = files.entry(pos.file).or_default();
                file.height_max = file.height_max.max(node.height);
                file.nodes.push(id);
            }
            if let Some(pos) = node.undo {
                *undo_uses.entry(pos.file).or_default() += 1;
            }
        }
        let mut left_bytes = self.blocks.bytes();
        let mut removal = Removal::default();
        for (number, file) in files {
            if is_enough(left_bytes) {
                break;
            }
            let is_needed = |id: &NodeId| {
                let height = tree.get(*id).height;
                needed.as_ref().is_some_and(|needed| needed.contains(&height))
            };
            if file.height_max > height_max || file.nodes.iter().any(is_needed) {
                continue;
            }
            left_bytes = left_bytes.saturating_sub(full.blocks[&number]);
            for undo in file.nodes.iter().filter_map(|id| tree.get(*id).undo) {
                let uses = undo_uses.entry(undo.file).or_default();
                *uses = uses.saturating_sub(1);
                if let (0, Some(bytes)) = (*uses, full.undo.get(&undo.file)) {
                    left_bytes = left_bytes.saturating_sub(*bytes);
                    removal.undo.push(undo.file);
                }
            }
            removal.blocks.push(number);
            removal.nodes.extend(file.nodes);
        }
        removal
    }
}

/// Core's `BLOCKFILE_CHUNK_SIZE` (`node/blockstorage.h`).
const CHUNK_BYTES: u64 = 16 << 20;
/// Allowance for writes before the next check: a chunk of blocks, and one of undo data (`UNDOFILE_CHUNK_SIZE`).
const MARGIN_BYTES: u64 = 17 << 20;
/// Assumed size of a future block (Core `node/blockstorage.cpp`, `average_block_size`).
const BLOCK_BYTES_MEAN: u64 = 1_000_000;
