//! Queries of the tree of headers: positions, work, locators, fork points and the headers above them.

use assay_consensus::chain::Ancestors;
use assay_consensus::header::check_header;
use assay_consensus::params::ChainParams;
use assay_consensus::pow::block_work;
use assay_consensus::uint256::U256;
use assay_wire::{BlockHash, Header};

use super::Chain;
use super::accept::WorkShown;
use crate::tree::{BlockTree, Node, NodeId};
use crate::types::big_endian;

/// Position of a header in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderPlace {
    pub hash: BlockHash,
    pub parent: BlockHash,
    pub height: u32,
    /// Work of its branch, big endian.
    pub chain_work: [u8; 32],
    /// Time in the header, seconds since 1970.
    pub time: u32,
    /// True if it, or a block below it, broke a rule.
    pub is_failed: bool,
    /// True if its block is archived.
    pub has_data: bool,
    /// True if its block and all below it were connected at some time.
    pub is_valid: bool,
}

/// The parent of a branch of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchStart {
    pub hash: BlockHash,
    pub height: u32,
    /// Target in compact form.
    pub bits: u32,
    /// Work of its branch up to it.
    pub chain_work: U256,
    /// Median time of the eleven headers up to it, seconds since 1970.
    pub median_time_past_s: u32,
}

impl Chain<'_> {
    /// Position of the header with this hash.
    pub fn header_place(self, hash: &BlockHash) -> Option<HeaderPlace> {
        let state = self.0.lock_tree();
        state.tree.find(hash).map(|id| place(&state.tree, id))
    }

    /// The valid header with the most work.
    pub fn best_header(self) -> HeaderPlace {
        let state = self.0.lock_tree();
        place(&state.tree, state.tree.best_header())
    }

    /// Block locator: hashes of `from` (of the best header if it is `None` or unknown) and of exponentially spaced blocks below
    /// it (Core `chain.cpp`, `LocatorEntries`).
    pub fn locator(self, from: Option<&BlockHash>) -> Vec<BlockHash> {
        let state = self.0.lock_tree();
        let tree = &state.tree;
        let from = from.and_then(|hash| tree.find(hash));
        locator(tree, from.unwrap_or_else(|| tree.best_header()))
    }

    /// [`Chain::locator`] from the parent of the best header. The response then has at least one header, which proves that the
    /// peer knows it (Core `net_processing.cpp`).
    pub fn locator_below_best_header(self) -> Vec<BlockHash> {
        let state = self.0.lock_tree();
        let best = state.tree.best_header();
        locator(&state.tree, state.tree.get(best).parent.unwrap_or(best))
    }

    /// True if `lower` is `upper` or one of its ancestors.
    pub fn is_ancestor(self, lower: &BlockHash, upper: &BlockHash) -> bool {
        let state = self.0.lock_tree();
        let tree = &state.tree;
        let (Some(lower), Some(upper)) = (tree.find(lower), tree.find(upper)) else { return false };
        tree.ancestor_at(upper, tree.get(lower).height) == lower
    }

    /// True if a header meets its own target (Core `pow.cpp`, `CheckProofOfWork`).
    pub fn has_proof_of_work(self, header: &Header) -> bool {
        check_header(self.0.params(), header, &header.hash()).is_ok()
    }

    /// The chain's minimum work, big endian as in [`HeaderPlace`].
    pub fn minimum_work(self) -> [u8; 32] {
        big_endian(self.0.params().minimum_chain_work)
    }

    /// Result of the anti-DoS work check for these headers; `None` if their parent is unknown.
    pub fn shows_work(self, headers: &[Header]) -> Option<WorkShown> {
        let parent = self.branch_start(&headers.first()?.prev_block)?;
        let claimed = headers
            .iter()
            .fold(parent.chain_work, |sum, header| sum.wrapping_add(block_work(header.bits)));
        let is_enough = claimed >= self.work_threshold();
        Some(if is_enough { WorkShown::Yes } else { WorkShown::No })
    }

    /// Minimum work of a branch for storing unrequested headers: that of the tip a day ago, and at least the minimum of the chain
    /// (Core `net_processing.cpp`, `GetAntiDoSWorkThreshold`).
    pub fn work_threshold(self) -> U256 {
        let state = self.0.lock_tree();
        let tip = state.tree.tip_node();
        let day = block_work(tip.header.bits).wrapping_mul_u32(144);
        let near_tip =
            if tip.chain_work > day { tip.chain_work.wrapping_sub(day) } else { 0_u64.into() };
        near_tip.max(self.0.params().minimum_chain_work)
    }

    /// Start of a branch of headers; `None` if that header is unknown.
    pub fn branch_start(self, hash: &BlockHash) -> Option<BranchStart> {
        let state = self.0.lock_tree();
        let id = state.tree.find(hash)?;
        let node = state.tree.get(id);
        Some(BranchStart {
            hash: *hash,
            height: node.height,
            bits: node.header.bits,
            chain_work: node.chain_work,
            median_time_past_s: state.tree.ancestors(id).median_time_past_at(node.height),
        })
    }

    /// The blocks of the branch that ends in `stop`, from height `first` on; empty if it ends before. `None` if `stop` is
    /// unknown.
    pub fn branch_up_to(self, stop: &BlockHash, first: u32) -> Option<Vec<BlockHash>> {
        let state = self.0.lock_tree();
        let tree = &state.tree;
        let mut at = Some(tree.find(stop)?);
        let mut hashes = Vec::new();
        while let Some(node) = at.map(|id| tree.get(id)).filter(|node| node.height >= first) {
            hashes.push(node.hash);
            at = node.parent;
        }
        hashes.reverse();
        Some(hashes)
    }

    /// Headers of the active branch with their hashes: those above the first active block of `locator` (above the genesis block
    /// if none is active), up to `stop`, or `max` of them (Core's `getheaders`).
    ///
    /// Without a locator, the result is the block `stop` alone; `None` if peers may not request it.
    pub fn headers_after(
        self,
        locator: &[BlockHash],
        stop: &BlockHash,
        max: usize,
    ) -> Option<Vec<(BlockHash, Header)>> {
        let state = self.0.lock_tree();
        let tree = &state.tree;
        if locator.is_empty() {
            let id = tree.find(stop)?;
            let node = tree.get(id);
            return may_be_given(tree, id, self.0.params()).then(|| vec![(node.hash, node.header)]);
        }
        let known = locator.iter().filter_map(|hash| tree.find(hash));
        let fork = known.filter(|id| tree.is_active(*id)).map(|id| tree.get(id).height).next();
        Some(up_to(tree, fork.unwrap_or(0), stop, max))
    }

    /// At most `max` headers of the active branch above its fork point with the branch of `hash`, lowest first; `None` for an
    /// unknown block.
    pub fn headers_since(self, hash: &BlockHash, max: usize) -> Option<Vec<(BlockHash, Header)>> {
        let state = self.0.lock_tree();
        let tree = &state.tree;
        let fork = tree.fork_with_active(tree.find(hash)?);
        Some(up_to(tree, tree.get(fork).height, &BlockHash::ZERO, max))
    }
}

pub(super) fn place(tree: &BlockTree, id: NodeId) -> HeaderPlace {
    let node: &Node = tree.get(id);
    HeaderPlace {
        hash: node.hash,
        parent: node.header.prev_block,
        height: node.height,
        chain_work: big_endian(node.chain_work),
        time: node.header.time,
        is_failed: node.is_failed(),
        has_data: node.has_data(),
        is_valid: node.was_connected(),
    }
}

fn locator(tree: &BlockTree, from: NodeId) -> Vec<BlockHash> {
    let mut hashes = Vec::new();
    let (mut at, mut step) = (from, 1);
    loop {
        let node = tree.get(at);
        hashes.push(node.hash);
        if node.height == 0 {
            return hashes;
        }
        at = tree.ancestor_at(at, node.height.saturating_sub(step));
        if hashes.len() > 10 {
            step *= 2;
        }
    }
}

fn up_to(tree: &BlockTree, below: u32, stop: &BlockHash, max: usize) -> Vec<(BlockHash, Header)> {
    let ids = (below + 1..).map_while(|height| tree.active_at(height));
    let mut out = Vec::new();
    for node in ids.take(max).map(|id: NodeId| tree.get(id)) {
        out.push((node.hash, node.header));
        if node.hash == *stop {
            break;
        }
    }
    out
}

/// True if peers may request a block: an active one, or a valid one no older than a month. Old branches that few nodes know would
/// allow fingerprinting (Core `net_processing.cpp`, `BlockRequestAllowed`).
pub(super) fn may_be_given(tree: &BlockTree, id: NodeId, params: &ChainParams) -> bool {
    if tree.is_active(id) {
        return true;
    }
    let node = tree.get(id);
    let best = tree.best_header();
    let age_s = tree.get(best).header.time.saturating_sub(node.header.time);
    node.was_connected()
        && !node.is_failed()
        && u64::from(age_s) < MONTH_S
        && tree.equivalent_time_s(id, best, params.pow.target_spacing_s) < MONTH_S
}

/// Core `net_processing.cpp`, `STALE_RELAY_AGE_LIMIT`.
const MONTH_S: u64 = 30 * 24 * 3600;
