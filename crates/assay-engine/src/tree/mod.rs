//! The block tree, its active branch, and chain selection.
//!
//! Every block that is neither active nor on a failed branch is in one of two ordered sets, depending on its being linked: it and
//! all blocks below it are archived. So the best block is always the last of a set, and no event costs more than the logarithm of
//! the number of blocks per changed block.

mod assumed;
mod branch;
mod node;
mod removal;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, VecDeque};

use assay_consensus::pow::block_work;
use assay_consensus::uint256::U256;
use assay_store::{BlockPos, BlockRecord, UndoPos};
use assay_wire::{BlockHash, Header};

use crate::types::{Tip, big_endian};
pub(crate) use node::{Node, NodeId};
use node::{STATUS_ASSUMED, STATUS_FAILED, STATUS_VALID, STATUS_WITHOUT_WITNESS};

/// Order of tips: more work, then the lower rank (Core's `CBlockIndexWorkComparator`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    work: U256,
    rank: Reverse<i64>,
    id: Reverse<NodeId>,
}

pub(crate) struct BlockTree {
    nodes: Vec<Node>,
    by_hash: HashMap<BlockHash, NodeId>,
    /// The active branch by height. Blocks at its top may have failed, until they are disconnected.
    active: Vec<NodeId>,
    /// Linked blocks, neither active nor failed.
    candidates: BTreeSet<Score>,
    /// Unlinked blocks that have not failed.
    unlinked: BTreeSet<Score>,
    next_sequence: u64,
    /// Work of the tip when a block was last preferred, and the rank of that block.
    preferred: (U256, i64),
    /// The base of a snapshot, and the transactions of the chain up to it.
    assumed: Option<(BlockHash, u64)>,
}

impl BlockTree {
    /// A tree of only the genesis block.
    pub(crate) fn new(genesis: Header) -> Self {
        let hash = genesis.hash();
        let root = Node {
            header: genesis,
            hash,
            height: 0,
            parent: None,
            jump: NodeId::GENESIS,
            first_child: None,
            next_sibling: None,
            chain_work: block_work(genesis.bits),
            tx_count: 1,
            chain_tx_count: 1,
            median_time: genesis.time,
            sequence: 0,
            rank: 0,
            block: None,
            undo: None,
            was_pruned: false,
            status: STATUS_VALID,
        };
        Self {
            nodes: vec![root],
            by_hash: HashMap::from([(hash, NodeId::GENESIS)]),
            active: vec![NodeId::GENESIS],
            candidates: BTreeSet::new(),
            unlinked: BTreeSet::new(),
            next_sequence: 1,
            preferred: (U256::default(), 0),
            assumed: None,
        }
    }

    pub(crate) fn get(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    fn get_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.0 as usize]
    }

    pub(crate) fn find(&self, hash: &BlockHash) -> Option<NodeId> {
        self.by_hash.get(hash).copied()
    }

    pub(crate) fn tip(&self) -> NodeId {
        self.active[self.active.len() - 1]
    }

    pub(crate) fn tip_node(&self) -> &Node {
        self.get(self.tip())
    }

    /// Public data of the tip.
    pub(crate) fn tip_facts(&self) -> Tip {
        self.facts(self.tip())
    }

    /// Public data of a block as tip.
    pub(crate) fn facts(&self, id: NodeId) -> Tip {
        let node = self.get(id);
        Tip {
            height: node.height,
            hash: node.hash,
            time: node.header.time,
            median_time: node.median_time,
            bits: node.header.bits,
            chain_work: big_endian(node.chain_work),
            chain_txs: node.chain_tx_count,
        }
    }

    pub(crate) fn active_at(&self, height: u32) -> Option<NodeId> {
        self.active.get(height as usize).copied()
    }

    pub(crate) fn is_active(&self, id: NodeId) -> bool {
        self.active_at(self.get(id).height) == Some(id)
    }

    /// Every block, genesis first, parents before children.
    fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    fn children(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        std::iter::successors(self.get(id).first_child, |child| self.get(*child).next_sibling)
    }

    /// Adds a header below `parent`.
    ///
    /// # Panics
    /// The header's parent is not `parent`, or the header is known: both are mistakes of the caller.
    pub(crate) fn insert(&mut self, parent: NodeId, header: Header) -> NodeId {
        let hash = header.hash();
        let above = self.get(parent);
        assert_eq!(above.hash, header.prev_block, "a header goes below its parent");
        let id = NodeId(self.nodes.len() as u32);
        let node = Node {
            header,
            hash,
            height: above.height + 1,
            parent: Some(parent),
            jump: self.jump_above(parent),
            first_child: None,
            next_sibling: above.first_child,
            chain_work: above.chain_work.wrapping_add(block_work(header.bits)),
            tx_count: 0,
            chain_tx_count: 0,
            median_time: self.median_time_with(parent, header.time),
            sequence: self.next_sequence,
            rank: self.next_sequence as i64,
            block: None,
            undo: None,
            was_pruned: false,
            status: above.status & STATUS_FAILED,
        };
        self.next_sequence += 1;
        self.nodes.push(node);
        self.get_mut(parent).first_child = Some(id);
        let known = self.by_hash.insert(hash, id);
        assert!(known.is_none(), "a header is inserted once");
        self.file(id);
        id
    }

    /// Restores a record of the store, parents before children; `false` if the parent is unknown.
    pub(crate) fn restore(&mut self, record: &BlockRecord) -> bool {
        let hash = record.header.hash();
        let id = match self.find(&hash) {
            Some(id) => id,
            None => match self.find(&record.header.prev_block) {
                Some(parent) => self.insert(parent, record.header),
                None => return false,
            },
        };
        self.unfile(id);
        self.next_sequence = self.next_sequence.max(record.sequence + 1);
        let linked_below = self.get(id).parent.map_or(0, |parent| self.get(parent).chain_tx_count);
        let node = self.get_mut(id);
        node.sequence = record.sequence;
        node.rank = record.sequence as i64;
        node.status |= record.status;
        node.tx_count = record.tx_count;
        node.block = record.block;
        node.undo = record.undo;
        node.was_pruned = record.was_pruned;
        // Off the active branch this is reverted once the active branch is known.
        if (node.block.is_some() || node.was_pruned) && linked_below > 0 {
            node.chain_tx_count = linked_below + u64::from(node.tx_count);
        }
        self.link_assumed(id);
        self.file(id);
        true
    }

    /// Records the position of an archived block. Returns the blocks with changed records: this one, and archived ones above it
    /// that become connectable.
    pub(crate) fn set_block(&mut self, id: NodeId, pos: BlockPos, tx_count: u32) -> Vec<NodeId> {
        if self.is_active(id) && self.get(id).is_linked() {
            // It was pruned and is archived again, or is the base of a snapshot: its descendants are linked already.
            let node = self.get_mut(id);
            (node.block, node.tx_count) = (Some(pos), tx_count);
            return vec![id];
        }
        self.unfile(id);
        let sequence = self.take_sequence();
        let node = self.get_mut(id);
        node.block = Some(pos);
        node.tx_count = tx_count;
        (node.sequence, node.rank) = (sequence, sequence as i64);
        let parent = node.parent.expect("the genesis block is archived from the beginning");
        if !self.get(parent).is_linked() {
            self.file(id);
            return vec![id];
        }
        let mut linked = Vec::new();
        let mut open = VecDeque::from([id]);
        while let Some(next) = open.pop_front() {
            self.link(next);
            linked.push(next);
            let mut above: Vec<NodeId> =
                self.children(next).filter(|child| self.is_to_link(*child)).collect();
            above.sort_unstable_by_key(|child| self.get(*child).sequence);
            open.extend(above);
        }
        linked
    }

    /// The base of a snapshot is linked before its ancestors.
    fn is_to_link(&self, id: NodeId) -> bool {
        self.get(id).has_data() && !self.get(id).is_linked()
    }

    /// Core assigns the sequence when a block becomes connectable (`ReceivedBlockTransactions`).
    fn link(&mut self, id: NodeId) {
        self.unfile(id);
        let sequence = self.take_sequence();
        let below = self.get(id).parent.map_or(0, |parent| self.get(parent).chain_tx_count);
        let node = self.get_mut(id);
        node.chain_tx_count = below + u64::from(node.tx_count);
        (node.sequence, node.rank) = (sequence, sequence as i64);
        self.file(id);
    }

    fn take_sequence(&mut self) -> u64 {
        self.next_sequence += 1;
        self.next_sequence - 1
    }

    /// Records that every rule was checked: with `assumed` coins, or definitively.
    pub(crate) fn set_valid(&mut self, id: NodeId, undo: UndoPos, assumed: bool) {
        let node = self.get_mut(id);
        node.undo = Some(undo);
        if assumed {
            node.status |= STATUS_ASSUMED;
        } else {
            node.status = node.status & !STATUS_ASSUMED | STATUS_VALID;
        }
    }

    /// Records that a block was checked by the rules before segwit.
    pub(crate) fn set_without_witness(&mut self, id: NodeId) {
        self.get_mut(id).status |= STATUS_WITHOUT_WITNESS;
    }

    /// Marks a block and its descendants as failed. Returns those not marked before, parents first.
    ///
    /// # Panics
    /// The block is genesis, which is valid by definition.
    pub(crate) fn set_failed(&mut self, id: NodeId) -> Vec<NodeId> {
        assert_ne!(id, NodeId::GENESIS, "the genesis block never fails");
        let mut changed = Vec::new();
        let mut open = vec![id];
        while let Some(next) = open.pop() {
            // Everything above a failed block is marked already.
            if self.get(next).is_failed() {
                continue;
            }
            self.unfile(next);
            self.get_mut(next).status |= STATUS_FAILED;
            changed.push(next);
            open.extend(self.children(next));
        }
        changed
    }

    /// Greatest work of a failed block.
    pub(crate) fn best_failed_work(&self) -> Option<U256> {
        self.nodes.iter().filter(|node| node.is_failed()).map(|node| node.chain_work).max()
    }

    /// Removes the failure mark of a block, its descendants, and its ancestors (Core's `ResetBlockFailureFlags`). Returns the
    /// blocks that were marked.
    pub(crate) fn clear_failed(&mut self, id: NodeId) -> Vec<NodeId> {
        let mut changed = Vec::new();
        let mut below = self.get(id).parent;
        while let Some(next) = below.filter(|next| self.get(*next).is_failed()) {
            changed.push(next);
            below = self.get(next).parent;
        }
        let mut open = vec![id];
        while let Some(next) = open.pop() {
            if self.get(next).is_failed() {
                changed.push(next);
            }
            open.extend(self.children(next));
        }
        for id in &changed {
            self.get_mut(*id).status &= !STATUS_FAILED;
            self.file(*id);
        }
        changed
    }

    /// Failed blocks without a failed parent.
    pub(crate) fn failed_roots(&self) -> Vec<NodeId> {
        let has_failed = |id: NodeId| self.get(id).is_failed();
        let is_root = |id: &NodeId| {
            has_failed(*id) && self.get(*id).parent.is_none_or(|parent| !has_failed(parent))
        };
        self.ids().filter(is_root).collect()
    }

    /// Removes the valid mark of a refuted block.
    pub(crate) fn clear_valid(&mut self, id: NodeId) {
        self.get_mut(id).status &= !(STATUS_VALID | STATUS_ASSUMED);
    }

    /// Removes the valid marks of all blocks. Returns the blocks that were marked.
    pub(crate) fn clear_all_valid(&mut self) -> Vec<NodeId> {
        let was_connected = |id: &NodeId| self.get(*id).was_connected();
        let ids: Vec<NodeId> = self.ids().skip(1).filter(was_connected).collect();
        for id in &ids {
            self.clear_valid(*id);
        }
        ids
    }

    /// Removes the marks of all archived failed blocks and their descendants: they can be validated again. Returns the blocks
    /// that were marked.
    pub(crate) fn clear_stored_failures(&mut self) -> Vec<NodeId> {
        let roots = self.failed_roots();
        let stored = roots.into_iter().filter(|id| self.get(*id).has_data());
        let stored: Vec<NodeId> = stored.collect();
        stored.into_iter().flat_map(|id| self.clear_failed(id)).collect()
    }

    /// Prefers a block to all others of equal work (Core's `PreciousBlock`); only until the process ends.
    pub(crate) fn prefer(&mut self, id: NodeId) {
        let tip_work = self.tip_node().chain_work;
        if self.get(id).chain_work < tip_work {
            return;
        }
        let (work, rank) = self.preferred;
        // Earlier preferences are void once the chain has grown.
        let rank = if tip_work > work { -1 } else { rank.saturating_sub(1) };
        self.preferred = (tip_work, rank);
        self.unfile(id);
        self.get_mut(id).rank = rank;
        self.file(id);
    }

    /// Makes `id`, a child of the tip, the new tip.
    pub(crate) fn extend_active(&mut self, id: NodeId) {
        assert_eq!(self.get(id).parent, Some(self.tip()), "only a child extends the tip");
        self.unfile(id);
        self.active.push(id);
    }

    /// Removes the tip from the active branch.
    pub(crate) fn shrink_active(&mut self) {
        assert!(self.active.len() > 1, "the genesis block stays");
        let tip = self.active.pop().expect("the genesis block is left");
        self.file(tip);
    }

    /// Makes the branch that ends in `id` the active one, without connecting anything: for opening a store. The tip of the stored
    /// coins keeps its priority over branches of equal work, as in Core's `LoadChainTip`.
    pub(crate) fn set_active(&mut self, id: NodeId) {
        let fork = self.fork_with_active(id);
        let mut branch = self.path(fork, id);
        while self.tip() != fork {
            self.shrink_active();
        }
        while let Some(next) = branch.pop() {
            self.extend_active(next);
        }
        for index in 0..self.active.len() {
            let id = self.active[index];
            self.get_mut(id).rank = 0;
        }
    }

    /// The best tip for chain selection: most work, then lowest rank, with all data and no failed ancestor.
    pub(crate) fn best_candidate(&self) -> NodeId {
        let sound = self.last_sound_active();
        match self.candidates.last() {
            Some(best) if *best > self.score(sound) => best.id.0,
            _ => sound,
        }
    }

    /// The valid header with the most work, with or without its block.
    pub(crate) fn best_header(&self) -> NodeId {
        let best = self.best_candidate();
        match self.unlinked.last() {
            Some(header) if header.work > self.get(best).chain_work => header.id.0,
            _ => best,
        }
    }

    /// The highest active block that has not failed.
    fn last_sound_active(&self) -> NodeId {
        if !self.tip_node().is_failed() {
            return self.tip();
        }
        self.active[self.active.partition_point(|id| !self.get(*id).is_failed()) - 1]
    }

    /// The tip and every childless block off the active branch; highest first.
    pub(crate) fn leaves(&self) -> Vec<NodeId> {
        let is_leaf = |id: &NodeId| self.get(*id).first_child.is_none() && !self.is_active(*id);
        let mut leaves: Vec<NodeId> = self.ids().filter(is_leaf).collect();
        leaves.push(self.tip());
        leaves.sort_by_key(|id| (Reverse(self.get(*id).height), *id));
        leaves
    }

    fn score(&self, id: NodeId) -> Score {
        let node = self.get(id);
        Score { work: node.chain_work, rank: Reverse(node.rank), id: Reverse(id) }
    }

    /// Adds a block to its set; call it after any change of the criteria.
    fn file(&mut self, id: NodeId) {
        let node = self.get(id);
        let (is_failed, is_linked) = (node.is_failed(), node.is_linked());
        if is_failed || self.is_active(id) {
            return;
        }
        let score = self.score(id);
        let set = if is_linked { &mut self.candidates } else { &mut self.unlinked };
        set.insert(score);
    }

    /// Removes a block from its set; call it before any change of the criteria.
    fn unfile(&mut self, id: NodeId) {
        let score = self.score(id);
        let is_linked = self.get(id).is_linked();
        let set = if is_linked { &mut self.candidates } else { &mut self.unlinked };
        set.remove(&score);
    }
}
