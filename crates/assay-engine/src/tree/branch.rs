//! Walks along branches: ancestors by height, fork points, and the view of a branch for the rules.

use assay_consensus::chain::{Ancestors, HeaderFacts, MEDIAN_TIME_SPAN, median_time};

use assay_consensus::pow::block_work;

use super::{BlockTree, NodeId};

impl BlockTree {
    /// Target of the jump of a child of `parent`.
    pub(super) fn jump_above(&self, parent: NodeId) -> NodeId {
        let above = self.get(parent);
        let middle = self.get(above.jump);
        let low = self.get(middle.jump);
        // Two jumps of equal length become one of twice the length.
        if above.height - middle.height == middle.height - low.height {
            middle.jump
        } else {
            parent
        }
    }

    /// The block at `height` on the branch that ends in `id`; `id` itself if it is lower.
    pub(crate) fn ancestor_at(&self, id: NodeId, height: u32) -> NodeId {
        self.descend(id, |at| self.get(at).height <= height)
    }

    /// The highest active block on the branch that ends in `id`.
    pub(crate) fn fork_with_active(&self, id: NodeId) -> NodeId {
        self.descend(id, |at| self.is_active(at))
    }

    /// The last common block of both branches.
    pub(crate) fn common(&self, left: NodeId, right: NodeId) -> NodeId {
        let height = self.get(left).height.min(self.get(right).height);
        let (mut left, mut right) =
            (self.ancestor_at(left, height), self.ancestor_at(right, height));
        while left != right {
            let below = (self.get(left).parent, self.get(right).parent);
            let (Some(below_left), Some(below_right)) = below else { return NodeId::GENESIS };
            (left, right) = (below_left, below_right);
        }
        left
    }

    /// The first block from `id` downwards that satisfies `is_reached`, which must hold for all blocks below it too.
    pub(super) fn descend(&self, id: NodeId, is_reached: impl Fn(NodeId) -> bool) -> NodeId {
        let mut at = id;
        while !is_reached(at) {
            let node = self.get(at);
            at = match node.parent {
                None => return at,
                Some(parent) => {
                    if is_reached(node.jump) {
                        parent
                    } else {
                        node.jump
                    }
                }
            };
        }
        at
    }

    /// The blocks from `to` down to its ancestor `from`, exclusive; highest first.
    pub(crate) fn path(&self, from: NodeId, to: NodeId) -> Vec<NodeId> {
        std::iter::successors(Some(to), |at| self.get(*at).parent)
            .take_while(|at| *at != from)
            .collect()
    }

    /// Time for the work between two blocks at the rate of the upper one, seconds (Core `chain.cpp`,
    /// `GetBlockProofEquivalentTime`); 0 if the lower one has more work.
    pub(crate) fn equivalent_time_s(&self, lower: NodeId, upper: NodeId, spacing_s: u32) -> u64 {
        let (lower, upper) = (self.get(lower), self.get(upper));
        if lower.chain_work >= upper.chain_work {
            return 0;
        }
        let work = upper.chain_work.wrapping_sub(lower.chain_work);
        let time = work.wrapping_mul_u32(spacing_s).checked_div(block_work(upper.header.bits));
        match time {
            Some(time) if time.bits() <= 63 => time.low_u64(),
            _ => u64::MAX,
        }
    }

    pub(super) fn median_time_with(&self, parent: NodeId, time: u32) -> u32 {
        let mut times = [time; MEDIAN_TIME_SPAN as usize];
        let mut count = 1;
        let mut at = Some(parent);
        while let (Some(id), true) = (at, count < times.len()) {
            times[count] = self.get(id).header.time;
            count += 1;
            at = self.get(id).parent;
        }
        median_time(&mut times[..count])
    }

    /// The headers from genesis to `tip`, as the rules read them.
    pub(crate) fn ancestors(&self, tip: NodeId) -> Branch<'_> {
        let fork_height = self.get(self.fork_with_active(tip)).height;
        Branch { tree: self, tip, fork_height }
    }
}

/// One branch of the tree, by height.
pub(crate) struct Branch<'a> {
    tree: &'a BlockTree,
    tip: NodeId,
    /// Up to here it is the active branch.
    fork_height: u32,
}

impl Branch<'_> {
    fn at(&self, height: u32) -> NodeId {
        if height <= self.fork_height {
            self.tree.active[height as usize]
        } else {
            self.tree.ancestor_at(self.tip, height)
        }
    }
}

impl Ancestors for Branch<'_> {
    fn tip_height(&self) -> u32 {
        self.tree.get(self.tip).height
    }

    fn header_at(&self, height: u32) -> HeaderFacts {
        let node = self.tree.get(self.at(height));
        HeaderFacts { hash: node.hash, time: node.header.time, bits: node.header.bits }
    }

    fn median_time_past_at(&self, height: u32) -> u32 {
        self.tree.get(self.at(height)).median_time
    }
}
