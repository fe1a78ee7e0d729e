//! Blocks whose data were removed because they are old.
//!
//! On the active branch they stay part of it: nothing needs them but a reorganisation further down than blocks are kept. Off it
//! they, and what builds on them, cannot be connected before they are fetched again.

use super::{BlockTree, NodeId};

impl BlockTree {
    /// Every block with its number, genesis first.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (NodeId, &super::Node)> {
        self.ids().map(|id| (id, self.get(id)))
    }

    /// Whether blocks were ever removed.
    pub(crate) fn had_removals(&self) -> bool {
        self.nodes.iter().any(|node| node.was_pruned)
    }

    /// Forgets where blocks and their undo data lie.
    pub(crate) fn forget_data(&mut self, ids: &[NodeId]) {
        for id in ids {
            let node = self.get_mut(*id);
            (node.block, node.undo) = (None, None);
            node.was_pruned = true;
        }
        self.unlink(ids.to_vec());
    }

    /// The same for what an index says, once it is known which branch is active.
    pub(crate) fn unlink_removed(&mut self) {
        let removed = self.nodes().filter(|(_, node)| node.is_pruned()).map(|(id, _)| id);
        let removed: Vec<NodeId> = removed.collect();
        self.unlink(removed);
    }

    /// Notes of blocks off the active branch, and of all that build on them, that they cannot be connected.
    fn unlink(&mut self, mut open: Vec<NodeId>) {
        while let Some(id) = open.pop() {
            if self.is_active(id) || !self.get(id).is_linked() {
                continue;
            }
            self.unfile(id);
            self.get_mut(id).chain_tx_count = 0;
            self.file(id);
            open.extend(self.children(id));
        }
    }

    /// Height of the highest active block that lacks its data or undo data; `None` where all are there (Core
    /// `rpc/blockchain.cpp`, `GetPruneHeight`).
    pub(crate) fn prune_height(&self) -> Option<u32> {
        let above = self.active[1..].iter().rev().take_while(|id| self.is_whole(**id)).count();
        let height = self.active.len() - 1 - above;
        (height > 0).then_some(height as u32)
    }

    /// The same for the branch that ends in `tip`.
    pub(crate) fn prune_height_below(&self, tip: NodeId) -> Option<u32> {
        let path = self.path(NodeId::GENESIS, tip);
        let lacking = path.into_iter().find(|id| !self.is_whole(*id))?;
        Some(self.get(lacking).height)
    }

    fn is_whole(&self, id: NodeId) -> bool {
        let node = self.get(id);
        node.block.is_some() && node.undo.is_some()
    }
}
