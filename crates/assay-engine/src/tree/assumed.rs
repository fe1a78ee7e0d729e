//! A chain that starts from a snapshot: its base counts as linked though blocks below it are missing.

use std::collections::VecDeque;

use assay_wire::BlockHash;

use super::node::{STATUS_ASSUMED, STATUS_VALID};
use super::{BlockTree, NodeId};

impl BlockTree {
    /// Makes the block `base` count as linked, with `chain_txs` transactions in the chain up to it, as soon as it is known. Call
    /// it before the tree is filled.
    pub(crate) fn expect_assumed(&mut self, base: BlockHash, chain_txs: u64) {
        self.assumed = Some((base, chain_txs));
    }

    /// [`Self::expect_assumed`] for a known block; archived descendants become connectable too.
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

    /// Marks blocks checked with the snapshot's coins as valid, after its validation. Returns the changed blocks.
    pub(crate) fn confirm_assumed(&mut self) -> Vec<NodeId> {
        self.assumed = None;
        let changed = self.all_assumed();
        for id in &changed {
            let node = self.get_mut(*id);
            node.status = node.status & !STATUS_ASSUMED | STATUS_VALID;
        }
        changed
    }

    /// Removes the marks of an earlier snapshot: blocks checked with its coins count as unchecked, so that no later snapshot
    /// confirms them. Returns the changed blocks.
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
