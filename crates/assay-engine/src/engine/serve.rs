//! What somebody needs who hands the chain on to others: where two chains part, headers above that, and blocks as they are
//! archived.

use assay_store::BlockPos;
use assay_wire::{BlockHash, Header};

use super::Engine;
use super::download::{HeaderPlace, place};
use crate::error::EngineError;
use crate::tree::{BlockTree, NodeId};

/// A block of the archive. Reading it takes no lock.
#[derive(Clone, Copy, Debug)]
pub struct ArchivedBlock {
    hash: BlockHash,
    height: u32,
    size: u32,
    /// The genesis block is nowhere: it is part of the parameters.
    pos: Option<BlockPos>,
}

impl ArchivedBlock {
    pub fn hash(&self) -> &BlockHash {
        &self.hash
    }

    pub fn height(&self) -> u32 {
        self.height
    }

    /// Its serialised length, bytes.
    pub fn size(&self) -> u32 {
        self.size
    }
}

impl Engine {
    /// A block that is archived and was found valid at some time, on the active branch or off it.
    pub fn archived_block(&self, hash: &BlockHash) -> Option<ArchivedBlock> {
        let state = self.lock_tree();
        let id = state.tree.find(hash)?;
        let node = state.tree.get(id);
        if !may_be_given(&state.tree, id, self.chain.params().pow.target_spacing_s) {
            return None;
        }
        let (height, pos) = (node.height, node.block);
        drop(state);
        let size = match pos {
            Some(pos) => pos.size,
            None if height == 0 => self.chain.params().genesis_block().len() as u32,
            None => return None,
        };
        Some(ArchivedBlock { hash: *hash, height, size, pos })
    }

    /// Where a block stands that others may see, whether it is archived or not.
    pub fn place_for_peers(&self, hash: &BlockHash) -> Option<HeaderPlace> {
        let state = self.lock_tree();
        let id = state.tree.find(hash)?;
        let spacing_s = self.chain.params().pow.target_spacing_s;
        may_be_given(&state.tree, id, spacing_s).then(|| place(&state.tree, id))
    }

    /// The blocks of the branch that ends in `stop`, from height `first` on; none where it ends before. `None` where `stop` is
    /// not known.
    pub fn branch_up_to(&self, stop: &BlockHash, first: u32) -> Option<Vec<BlockHash>> {
        let state = self.lock_tree();
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

    /// Where a block stands, and whether it was found valid with its transactions at some time.
    pub fn judged_place(&self, hash: &BlockHash) -> Option<(HeaderPlace, bool)> {
        let state = self.lock_tree();
        let id = state.tree.find(hash)?;
        let is_valid = state.tree.get(id).height == 0 || state.tree.get(id).was_connected();
        Some((place(&state.tree, id), is_valid))
    }

    /// Fills `out` with the bytes of a block from `offset` on, of which the framing alone is checked.
    ///
    /// # Errors
    /// When they cannot be read, or the block is shorter.
    pub fn read_archived(
        &self,
        block: &ArchivedBlock,
        offset: u32,
        out: &mut [u8],
    ) -> Result<(), EngineError> {
        let Some(pos) = block.pos else {
            let genesis = self.chain.params().genesis_block();
            let end = (offset as usize).saturating_add(out.len());
            let short = EngineError::MissingData { hash: block.hash, height: 0, what: "such part" };
            out.copy_from_slice(genesis.get(offset as usize..end).ok_or(short)?);
            return Ok(());
        };
        Ok(self.chain.blocks.read_block_into(pos, offset, out)?)
    }

    /// Headers of the active branch with their hashes: those above the first block of `locator` that is on it (above the
    /// genesis block where none is), up to `stop` or, where that is not met, `max` of them (Core's `getheaders`).
    ///
    /// Without a locator, it is the block `stop` alone; `None` where that is not given to others.
    pub fn headers_after(
        &self,
        locator: &[BlockHash],
        stop: &BlockHash,
        max: usize,
    ) -> Option<Vec<(BlockHash, Header)>> {
        let state = self.lock_tree();
        let tree = &state.tree;
        if locator.is_empty() {
            let id = tree.find(stop)?;
            let spacing_s = self.chain.params().pow.target_spacing_s;
            let node = tree.get(id);
            return may_be_given(tree, id, spacing_s).then(|| vec![(node.hash, node.header)]);
        }
        let known = locator.iter().filter_map(|hash| tree.find(hash));
        let fork = known.filter(|id| tree.is_active(*id)).map(|id| tree.get(id).height).next();
        Some(up_to(tree, fork.unwrap_or(0), stop, max))
    }

    /// Headers of the active branch above the point where the branch of `hash` leaves it; `None` for an unknown block. At
    /// most `max`, the lowest ones.
    pub fn headers_since(&self, hash: &BlockHash, max: usize) -> Option<Vec<(BlockHash, Header)>> {
        let state = self.lock_tree();
        let tree = &state.tree;
        let fork = tree.fork_with_active(tree.find(hash)?);
        Some(up_to(tree, tree.get(fork).height, &BlockHash::ZERO, max))
    }
}

/// Whether others may see a block: an active one, or one that was valid and is no older than a month. Old branches that few
/// nodes know would tell one node from the others (Core `net_processing.cpp`, `BlockRequestAllowed`).
fn may_be_given(tree: &BlockTree, id: NodeId, spacing_s: u32) -> bool {
    if tree.is_active(id) {
        return true;
    }
    let node = tree.get(id);
    let best = tree.best_header();
    let age_s = tree.get(best).header.time.saturating_sub(node.header.time);
    node.was_connected()
        && !node.is_failed()
        && u64::from(age_s) < MONTH_S
        && tree.equivalent_time_s(id, best, spacing_s) < MONTH_S
}

/// Core `net_processing.cpp`, `STALE_RELAY_AGE_LIMIT`.
const MONTH_S: u64 = 30 * 24 * 3600;

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
