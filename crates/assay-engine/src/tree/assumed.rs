//! A chain that begins with the coins of a snapshot: its base counts as linked though blocks below it are not there.

use std::collections::VecDeque;

use assay_wire::BlockHash;

use super::node::{STATUS_ASSUMED, STATUS_VALID};
use super::{BlockTree, NodeId};

impl BlockTree {
    /// From now on the block `base` counts as linked, with so many transactions in the chain up to it, as soon as it is known.
    /// For an empty tree, before it is filled.
    pub(crate) fn expect_assumed(&mut self, base: BlockHash, chain_txs: u64) {
        self.assumed = Some((base, chain_txs));
    }

    /// The same for a block that is known; what builds on it and is archived can be connected too.
    pub(crate) fn assume(&mut self, base: NodeId, chain_txs: u64) {
        self.assumed = Some((self.get(base).hash, chain_txs));
        if self.get(base).is_linked() {
            return;
        }
        self.unfile(base);
        self.link_assumed(base);
        self.file(base);
        let mut open = VecDeque::from([base]);
        while let Some(id) = open.pop_front() {
            let mut above: Vec<NodeId> =
                self.children(id).filter(|child| self.is_to_link(*child)).collect();
            above.sort_unstable_by_key(|child| self.get(*child).sequence);
            for child in &above {
                self.link(*child);
            }
            open.extend(above);
        }
    }

    pub(super) fn link_assumed(&mut self, id: NodeId) {
        let node = self.get(id);
        if let Some((base, chain_txs)) = self.assumed
            && node.hash == base
            && !node.is_linked()
        {
            self.get_mut(id).chain_tx_count = chain_txs;
        }
    }

    /// The snapshot has been validated: what was checked with its coins is valid. Gives the blocks of which that is noted.
    pub(crate) fn confirm_assumed(&mut self) -> Vec<NodeId> {
        self.assumed = None;
        let changed = self.all_assumed();
        for id in &changed {
            let node = self.get_mut(*id);
            node.status = node.status & !STATUS_ASSUMED | STATUS_VALID;
        }
        changed
    }

    /// There is no snapshot any more: what was checked with the coins of an earlier one counts as never checked, so that no
    /// later snapshot confirms it. Gives the blocks of which that is noted.
    pub(crate) fn drop_assumed(&mut self) -> Vec<NodeId> {
        let changed = self.all_assumed();
        for id in &changed {
            self.get_mut(*id).status &= !STATUS_ASSUMED;
        }
        changed
    }

    fn all_assumed(&self) -> Vec<NodeId> {
        let is_assumed = |id: &NodeId| self.get(*id).status & STATUS_ASSUMED != 0;
        self.ids().filter(is_assumed).collect()
    }
}
