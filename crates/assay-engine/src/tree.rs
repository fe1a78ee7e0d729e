//! The tree of known blocks and the branch of it that is active.

use std::collections::HashMap;

use assay_consensus::chain::{Ancestors, HeaderFacts};
use assay_consensus::pow::block_work;
use assay_consensus::uint256::U256;
use assay_store::{BlockPos, BlockRecord, UndoPos};
use assay_wire::{BlockHash, Header};

/// Index of a block in the tree; stable for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(u32);

/// Every rule has been checked, scripts included.
const STATUS_VALID: u32 = 1;
/// A rule was broken by this block.
const STATUS_FAILED: u32 = 2;

/// What is known of one block.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) header: Header,
    pub(crate) hash: BlockHash,
    pub(crate) height: u32,
    pub(crate) parent: Option<NodeId>,
    /// Work of the whole branch up to and including this block.
    pub(crate) chain_work: U256,
    pub(crate) tx_count: u32,
    /// Transactions of the whole branch up to and including this block.
    pub(crate) chain_tx_count: u64,
    /// Median of the last eleven times up to and including this block (BIP113).
    pub(crate) median_time: u32,
    /// Order of arrival: of two branches with equal work the first seen stays active.
    pub(crate) sequence: u64,
    pub(crate) block: Option<BlockPos>,
    pub(crate) undo: Option<UndoPos>,
    status: u32,
}

impl Node {
    pub(crate) fn is_valid(&self) -> bool {
        self.status & STATUS_VALID != 0
    }

    pub(crate) fn is_failed(&self) -> bool {
        self.status & STATUS_FAILED != 0
    }

    /// What the store keeps of it.
    pub(crate) fn to_record(&self) -> BlockRecord {
        BlockRecord {
            header: self.header,
            height: self.height,
            status: self.status,
            tx_count: self.tx_count,
            chain_tx_count: self.chain_tx_count,
            sequence: self.sequence,
            block: self.block,
            undo: self.undo,
        }
    }
}

/// All known blocks.
pub(crate) struct BlockTree {
    nodes: Vec<Node>,
    by_hash: HashMap<BlockHash, NodeId>,
    /// The active branch by height.
    active: Vec<NodeId>,
    next_sequence: u64,
}

impl BlockTree {
    /// A tree that holds the genesis block alone.
    pub(crate) fn new(genesis: Header) -> Self {
        let hash = genesis.hash();
        let root = Node {
            header: genesis,
            hash,
            height: 0,
            parent: None,
            chain_work: block_work(genesis.bits),
            tx_count: 1,
            chain_tx_count: 1,
            median_time: genesis.time,
            sequence: 0,
            block: None,
            undo: None,
            status: STATUS_VALID,
        };
        Self {
            nodes: vec![root],
            by_hash: HashMap::from([(hash, NodeId(0))]),
            active: vec![NodeId(0)],
            next_sequence: 1,
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

    pub(crate) fn active_at(&self, height: u32) -> Option<NodeId> {
        self.active.get(height as usize).copied()
    }

    pub(crate) fn is_active(&self, id: NodeId) -> bool {
        self.active_at(self.get(id).height) == Some(id)
    }

    /// Every node, genesis first.
    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes.len() as u32).map(NodeId)
    }

    /// Adds a block below `parent`.
    ///
    /// # Panics
    /// When the header does not name `parent`, or is already known: both are mistakes of the caller.
    pub(crate) fn insert(&mut self, parent: NodeId, header: Header, tx_count: u32) -> NodeId {
        let hash = header.hash();
        assert_eq!(self.get(parent).hash, header.prev_block, "a header goes below its parent");
        assert!(!self.by_hash.contains_key(&hash), "a header is inserted once");
        let above = self.get(parent);
        let height = above.height + 1;
        let chain_work = above.chain_work.wrapping_add(block_work(header.bits));
        let chain_tx_count = above.chain_tx_count + u64::from(tx_count);
        let id = NodeId(self.nodes.len() as u32);
        let mut node = Node {
            header,
            hash,
            height,
            parent: Some(parent),
            chain_work,
            tx_count,
            chain_tx_count,
            median_time: 0,
            sequence: self.next_sequence,
            block: None,
            undo: None,
            status: 0,
        };
        self.next_sequence += 1;
        node.median_time = self.median_time_with(parent, header.time);
        self.nodes.push(node);
        self.by_hash.insert(hash, id);
        id
    }

    /// Puts back what the store kept; `false` when the parent is unknown.
    pub(crate) fn restore(&mut self, record: &BlockRecord) -> bool {
        let hash = record.header.hash();
        let id = match self.find(&hash) {
            Some(id) => id,
            None => match self.find(&record.header.prev_block) {
                Some(parent) => self.insert(parent, record.header, record.tx_count),
                None => return false,
            },
        };
        self.next_sequence = self.next_sequence.max(record.sequence + 1);
        let node = self.get_mut(id);
        node.sequence = record.sequence;
        node.status |= record.status;
        node.block = record.block;
        node.undo = record.undo;
        true
    }

    fn median_time_with(&self, parent: NodeId, time: u32) -> u32 {
        let mut times = [time; assay_consensus::chain::MEDIAN_TIME_SPAN as usize];
        let mut count = 1;
        let mut at = Some(parent);
        while let (Some(id), true) = (at, count < times.len()) {
            times[count] = self.get(id).header.time;
            count += 1;
            at = self.get(id).parent;
        }
        assay_consensus::chain::median_time(&mut times[..count])
    }

    pub(crate) fn set_block(&mut self, id: NodeId, pos: BlockPos) {
        self.get_mut(id).block = Some(pos);
    }

    pub(crate) fn set_valid(&mut self, id: NodeId, undo: UndoPos) {
        let node = self.get_mut(id);
        node.undo = Some(undo);
        node.status |= STATUS_VALID;
    }

    pub(crate) fn set_failed(&mut self, id: NodeId) {
        self.get_mut(id).status |= STATUS_FAILED;
    }

    /// Whether this block or one it builds on broke a rule.
    pub(crate) fn is_on_failed_branch(&self, id: NodeId) -> bool {
        let mut at = Some(id);
        while let Some(id) = at {
            // What is active has been connected, so nothing below it failed.
            if self.is_active(id) {
                return false;
            }
            if self.get(id).is_failed() {
                return true;
            }
            at = self.get(id).parent;
        }
        false
    }

    /// Makes `id`, a child of the tip, the tip.
    pub(crate) fn extend_active(&mut self, id: NodeId) {
        assert_eq!(self.get(id).parent, Some(self.tip()), "only a child extends the tip");
        self.active.push(id);
    }

    /// Takes the tip off the active branch.
    pub(crate) fn shrink_active(&mut self) {
        assert!(self.active.len() > 1, "the genesis block stays");
        self.active.pop();
    }

    /// Makes the branch that ends in `id` the active one, without connecting anything: for opening a store.
    pub(crate) fn set_active(&mut self, id: NodeId) {
        let mut branch = self.branch_above_active(id);
        let fork = branch.last().map_or(id, |lowest| self.get(*lowest).parent.unwrap_or(id));
        self.active.truncate(self.get(fork).height as usize + 1);
        while let Some(next) = branch.pop() {
            self.active.push(next);
        }
    }

    /// The blocks from `id` down to, and without, the first active one; highest first.
    pub(crate) fn branch_above_active(&self, id: NodeId) -> Vec<NodeId> {
        let mut branch = Vec::new();
        let mut at = Some(id);
        while let Some(id) = at {
            if self.is_active(id) {
                break;
            }
            branch.push(id);
            at = self.get(id).parent;
        }
        branch
    }

    /// The block that chain selection wants as tip: most work, then first seen, with all data and nothing failed below.
    pub(crate) fn best_candidate(&self) -> NodeId {
        let mut best = self.tip();
        for id in self.ids() {
            let (node, leader) = (self.get(id), self.get(best));
            let is_better = (node.chain_work, std::cmp::Reverse(node.sequence))
                > (leader.chain_work, std::cmp::Reverse(leader.sequence));
            if is_better && !self.is_active(id) && self.is_connectable(id) {
                best = id;
            }
        }
        best
    }

    /// Whether every block from `id` down to the active branch has data and none failed.
    pub(crate) fn is_connectable(&self, id: NodeId) -> bool {
        self.branch_above_active(id)
            .iter()
            .all(|id| self.get(*id).block.is_some() && !self.get(*id).is_failed())
    }

    /// The headers from genesis to `tip`, as the rules read them.
    pub(crate) fn ancestors(&self, tip: NodeId) -> Branch<'_> {
        Branch { tree: self, above_active: self.branch_above_active(tip), tip }
    }
}

/// One branch of the tree, by height.
pub(crate) struct Branch<'a> {
    tree: &'a BlockTree,
    /// Highest first.
    above_active: Vec<NodeId>,
    tip: NodeId,
}

impl Ancestors for Branch<'_> {
    fn tip_height(&self) -> u32 {
        self.tree.get(self.tip).height
    }

    fn header_at(&self, height: u32) -> HeaderFacts {
        let from_top = (self.tip_height() - height) as usize;
        let id = match self.above_active.get(from_top) {
            Some(id) => *id,
            None => self.tree.active[height as usize],
        };
        let node = self.tree.get(id);
        HeaderFacts { hash: node.hash, time: node.header.time, bits: node.header.bits }
    }

    fn median_time_past_at(&self, height: u32) -> u32 {
        let from_top = (self.tip_height() - height) as usize;
        let id = match self.above_active.get(from_top) {
            Some(id) => *id,
            None => self.tree.active[height as usize],
        };
        self.tree.get(id).median_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(prev_block: BlockHash, nonce: u32) -> Header {
        Header {
            version: 1,
            prev_block,
            merkle_root: [0; 32],
            time: 1000 + nonce,
            bits: 0x207f_ffff,
            nonce,
        }
    }

    fn pos() -> BlockPos {
        BlockPos { file: 0, offset: 8, size: 1, crc: 0 }
    }

    #[test]
    fn of_equal_branches_the_first_seen_wins_and_more_work_beats_it() {
        let mut tree = BlockTree::new(header(BlockHash::ZERO, 0));
        let genesis = tree.tip();
        let a = tree.insert(genesis, header(tree.get(genesis).hash, 1), 1);
        let b = tree.insert(genesis, header(tree.get(genesis).hash, 2), 1);
        tree.set_block(b, pos());
        assert_eq!(tree.best_candidate(), b, "a has no data yet");
        tree.set_block(a, pos());
        assert_eq!(tree.best_candidate(), a);
        tree.extend_active(a);
        assert_eq!(tree.best_candidate(), a);
        let b2 = tree.insert(b, header(tree.get(b).hash, 3), 1);
        tree.set_block(b2, pos());
        assert_eq!(tree.best_candidate(), b2);
        assert_eq!(tree.branch_above_active(b2), vec![b2, b]);
        assert_eq!(tree.ancestors(b2).header_at(1).hash, tree.get(b).hash);
        assert_eq!(tree.ancestors(b2).header_at(0).hash, tree.get(genesis).hash);
        tree.set_failed(b);
        assert!(tree.is_on_failed_branch(b2));
        assert_eq!(tree.best_candidate(), a);
        tree.set_active(b2);
        assert!(tree.is_active(b) && !tree.is_active(a) && tree.tip() == b2);
    }

    #[test]
    fn records_come_back() {
        let mut tree = BlockTree::new(header(BlockHash::ZERO, 0));
        let genesis = tree.tip();
        let a = tree.insert(genesis, header(tree.get(genesis).hash, 1), 7);
        tree.set_block(a, pos());
        let record = tree.get(a).to_record();
        let mut again = BlockTree::new(header(BlockHash::ZERO, 0));
        assert!(again.restore(&record));
        let found = again.find(&record.header.hash()).unwrap();
        assert_eq!(again.get(found).chain_tx_count, 8);
        assert_eq!(again.get(found).block, Some(pos()));
        let orphan = BlockRecord { header: header(BlockHash([9; 32]), 5), ..record };
        assert!(!again.restore(&orphan));
    }
}
