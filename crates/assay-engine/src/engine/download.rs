//! Blocks to download from peers.

use assay_wire::BlockHash;

use super::Blocks;
use crate::tree::Node;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    pub hash: BlockHash,
    pub height: u32,
}

/// Blocks to request from a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FetchPlan {
    /// Blocks, lowest first.
    pub blocks: Vec<Wanted>,
    /// The highest block of the peer's branch with all blocks up to it archived.
    pub last_common: Option<BlockHash>,
    /// The lowest block in flight, if it stalls the download window.
    pub held_up_by: Option<BlockHash>,
}

#[derive(Clone, Copy, Debug)]
pub struct FetchWish {
    /// Best known block of the peer.
    pub best: BlockHash,
    /// [`FetchPlan::last_common`] of the previous call.
    pub last_common: Option<BlockHash>,
    pub count: usize,
    /// Maximum height above the lowest missing block.
    pub window: u32,
    /// Number of blocks, from the peer's best one down, that it may be asked for; `None` for all (BIP159).
    pub depth_max: Option<u32>,
}

impl Blocks<'_> {
    /// Blocks that a peer has and this node lacks (Core `net_processing.cpp`, `FindNextBlocksToDownload`). `is_under_way` returns
    /// true for a block in flight from any peer.
    pub fn plan_fetch(
        self,
        request: &FetchWish,
        is_under_way: impl Fn(&BlockHash) -> bool,
    ) -> FetchPlan {
        let state = self.0.lock_tree();
        let tree = &state.tree;
        let mut plan = FetchPlan { last_common: request.last_common, ..FetchPlan::default() };
        let Some(best) = tree.find(&request.best) else { return plan };
        let best_node = tree.get(best);
        let minimum = self.0.params().minimum_chain_work;
        if best_node.chain_work < tree.tip_node().chain_work || best_node.chain_work < minimum {
            return plan;
        }
        let base = state.historical.as_ref().map(|historical| historical.base);
        // The coins of a snapshot cannot be disconnected below its base: other branches wait for its validation, as in Core.
        if base.is_some_and(|base| tree.ancestor_at(best, tree.get(base).height) != base) {
            return plan;
        }
        let common = request.last_common.and_then(|hash| tree.find(&hash));
        let common = common.unwrap_or_else(|| tree.fork_with_active(best));
        let mut at = tree.common(common, best);
        at = base.filter(|base| tree.get(*base).height > tree.get(at).height).unwrap_or(at);
        plan.last_common = Some(tree.get(at).hash);
        let window_end = tree.get(at).height.saturating_add(request.window);
        let mut first_under_way = None;
        let top = best_node.height.min(window_end.saturating_add(1));
        while tree.get(at).height < top {
            // Walk in stretches of bounded length: the whole branch may be long.
            let low = tree.get(at).height;
            let upper = tree.ancestor_at(best, top.min(low + STRETCH));
            for id in tree.path(at, upper).into_iter().rev() {
                let node = tree.get(id);
                if node.is_failed() {
                    return plan;
                }
                // An active block without data was pruned.
                if node.has_data() || tree.is_active(id) {
                    if node.is_linked() {
                        plan.last_common = Some(node.hash);
                    }
                } else if is_under_way(&node.hash) {
                    first_under_way.get_or_insert(node.hash);
                } else if node.height > window_end {
                    plan.held_up_by = first_under_way.filter(|_| plan.blocks.is_empty());
                    return plan;
                } else if request.depth_max.is_none_or(|max| best_node.height - node.height < max) {
                    plan.blocks.push(Wanted { hash: node.hash, height: node.height });
                    if plan.blocks.len() == request.count {
                        return plan;
                    }
                }
            }
            at = upper;
        }
        plan
    }

    /// Blocks below a snapshot that a peer has and the validation needs, lowest first (Core `net_processing.cpp`,
    /// `TryDownloadingHistoricalBlocks`).
    pub fn plan_historical(
        self,
        request: &FetchWish,
        is_under_way: impl Fn(&BlockHash) -> bool,
    ) -> Vec<Wanted> {
        if self.0.chain().historical().is_none() {
            return Vec::new();
        }
        let state = self.0.lock_tree();
        let tree = &state.tree;
        let (Some(historical), Some(best)) = (&state.historical, tree.find(&request.best)) else {
            return Vec::new();
        };
        let (base, height) = (historical.base, tree.get(historical.base).height);
        if tree.ancestor_at(best, height) != base {
            return Vec::new();
        }
        let from = tree.common(historical.tip, base);
        let end = tree.get(from).height.saturating_add(request.window).min(height);
        let path = tree.path(from, tree.ancestor_at(base, end));
        let is_wanted = |node: &&Node| !node.has_data() && !is_under_way(&node.hash);
        let nodes = path.into_iter().rev().map(|id| tree.get(id)).filter(is_wanted);
        let wanted = nodes.map(|node| Wanted { hash: node.hash, height: node.height });
        wanted.take(request.count).collect()
    }

    /// True if the tip is recent enough to fetch announced blocks directly (Core `net_processing.cpp`, `CanDirectFetch`).
    pub fn has_young_tip(self) -> bool {
        self.is_young(self.0.lock_tree().tree.tip_node())
    }

    fn is_young(self, tip: &Node) -> bool {
        let young_s = u64::from(self.0.params().pow.target_spacing_s) * YOUNG_SPACINGS;
        u64::from(tip.header.time) > self.0.config().clock.now_s().saturating_sub(young_s)
    }

    /// The unarchived blocks between the active branch and `last`, lowest first, if the tip is recent and they are few: they are
    /// fetched directly (Core `net_processing.cpp`, `HeadersDirectFetchBlocks`).
    pub fn plan_direct_fetch(
        self,
        last: &BlockHash,
        max: usize,
        is_under_way: impl Fn(&BlockHash) -> bool,
    ) -> Vec<Wanted> {
        let state = self.0.lock_tree();
        let tree = &state.tree;
        let Some(last) = tree.find(last) else { return Vec::new() };
        let tip = tree.tip_node();
        if !self.is_young(tip)
            || tree.get(last).is_failed()
            || tree.get(last).chain_work < tip.chain_work
        {
            return Vec::new();
        }
        let mut wanted = Vec::new();
        let mut at = last;
        while !tree.is_active(at) {
            let node = tree.get(at);
            if !node.has_data() && !is_under_way(&node.hash) {
                wanted.push(Wanted { hash: node.hash, height: node.height });
            }
            let Some(parent) = node.parent.filter(|_| wanted.len() <= max) else {
                // A large reorg uses the ordinary download.
                return Vec::new();
            };
            at = parent;
        }
        wanted.reverse();
        wanted
    }
}

const STRETCH: u32 = 128;
/// Maximum age of a recent tip in block intervals (Core `net_processing.cpp`, `CanDirectFetch`).
const YOUNG_SPACINGS: u64 = 20;
