//! Pruned blocks.
//!
//! On the active branch they remain part of it: only a reorg deeper than the kept blocks needs them. Elsewhere they and their
//! descendants cannot be connected before another download.

use super::{BlockTree, NodeId};

impl BlockTree {
    /// All blocks with their ids, genesis first.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (NodeId, &super::Node)> {
        self.ids().map(|id| (id, self.get(id)))
    }

    /// True if blocks were ever pruned.
    pub(crate) fn had_removals(&self) -> bool {
        self.nodes.iter().any(|node| node.was_pruned)
    }

    /// Removes the positions of blocks and their undo data.
    pub(crate) fn forget_data(&mut self, ids: &[NodeId]) {
        for id in ids {
            let node = self.get_mut(*id);
            (node.block, node.undo) = (None, None);
            node.was_pruned = true;
        }
        self.unlink(ids.to_vec());
    }

    /// Unlinks pruned blocks read from an index, once the active branch is known.
    pub(crate) fn unlink_removed(&mut self) {
        let removed = self.nodes().filter(|(_, node)| node.is_pruned()).map(|(id, _)| id);
        let removed: Vec<NodeId> = removed.collect();
        self.unlink(removed);
    }

    /// Marks blocks off the active branch and their descendants as not connectable.
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

    /// Height of the highest active block without data or undo data; `None` if all are complete (Core `rpc/blockchain.cpp`,
    /// `GetPruneHeight`).
    pub(crate) fn prune_height(&self) -> Option<u32> {
        let above = self.active[1..].iter().rev().take_while(|id| self.is_whole(**id)).count();
        let height = self.active.len() - 1 - above;
        (height > 0).then_some(height as u32)
    }

    /// [`Self::prune_height`] for the branch that ends in `tip`.
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
