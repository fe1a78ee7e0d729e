//! Merkle proofs of transactions in blocks, and of headers in the chain.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use assay_hash::{Backend, sha256d, sha256d_64_many_with};
use assay_wire::BlockHash;
use parking_lot::Mutex;

use crate::index::{QueryError, View};

/// Cache limit for merkle trees of blocks.
pub(super) const CACHE_BYTES_MAX: usize = 64 << 20;

/// All hashes of a merkle tree. The last hash of a level with an odd number of them is paired with itself.
pub(super) struct Tree {
    /// From the leaves to the root.
    levels: Vec<Vec<[u8; 32]>>,
}

impl Tree {
    /// The tree over `leaves`, which must not be empty.
    pub(super) fn new(leaves: Vec<[u8; 32]>) -> Self {
        let mut levels = vec![leaves];
        while let Some(level) = levels.last().filter(|level| level.len() > 1) {
            let above = pairs(level);
            levels.push(above);
        }
        Self { levels }
    }

    pub(super) fn branch(&self, mut index: usize) -> Vec<[u8; 32]> {
        let mut branch = Vec::with_capacity(self.levels.len());
        for level in self.levels.iter().take(self.levels.len() - 1) {
            branch.push(*level.get(index ^ 1).unwrap_or(&level[level.len() - 1]));
            index >>= 1;
        }
        branch
    }

    pub(super) fn root(&self) -> [u8; 32] {
        self.levels[self.levels.len() - 1][0]
    }

    fn bytes(&self) -> usize {
        self.levels.iter().map(|level| 32 * level.len()).sum()
    }
}

/// Computes a level from the one below it.
fn pairs(level: &[[u8; 32]]) -> Vec<[u8; 32]> {
    let mut input = level.concat();
    if level.len() % 2 == 1 {
        input.extend_from_slice(&level[level.len() - 1]);
    }
    let mut output = vec![0; input.len() / 2];
    sha256d_64_many_with(Backend::detect(), &input, &mut output);
    output.chunks_exact(32).map(|hash| hash.try_into().expect("32 bytes")).collect()
}

fn pair(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    let mut both = [0; 64];
    both[..32].copy_from_slice(left);
    both[32..].copy_from_slice(right);
    sha256d(&both)
}

#[derive(Default)]
pub(super) struct BlockTrees {
    state: Mutex<Trees>,
}

#[derive(Default)]
struct Trees {
    by_block: HashMap<BlockHash, Arc<Tree>>,
    /// In order of creation.
    order: VecDeque<BlockHash>,
    bytes: usize,
}

impl BlockTrees {
    /// The tree of the block at `height`, if cached.
    pub(super) fn known(&self, view: &View, height: u32) -> Result<Option<Arc<Tree>>, QueryError> {
        let Some(hash) = view.block_hash(height)? else { return Ok(None) };
        Ok(self.state.lock().by_block.get(&hash).map(Arc::clone))
    }

    /// The tree and the hash of the block at `height`, if it exists.
    pub(super) fn get(&self, view: &View, height: u32) -> Result<Option<Arc<Tree>>, QueryError> {
        let Some(hash) = view.block_hash(height)? else { return Ok(None) };
        if let Some(tree) = self.state.lock().by_block.get(&hash) {
            return Ok(Some(Arc::clone(tree)));
        }
        let Some(block) = view.block_txs(height)? else { return Ok(None) };
        let tree = Arc::new(Tree::new(block.txids.iter().map(|txid| txid.0).collect()));
        let bytes = tree.bytes();
        let mut state = self.state.lock();
        if bytes <= CACHE_BYTES_MAX && !state.by_block.contains_key(&block.hash) {
            state.bytes += bytes;
            state.by_block.insert(block.hash, Arc::clone(&tree));
            state.order.push_back(block.hash);
            while state.bytes > CACHE_BYTES_MAX {
                let Some(oldest) = state.order.pop_front() else { break };
                if let Some(tree) = state.by_block.remove(&oldest) {
                    state.bytes -= tree.bytes();
                }
            }
        }
        Ok(Some(tree))
    }
}

/// Headers per stored node: 2^5.
const GROUP_LEVEL: usize = 5;
const GROUP: usize = 1 << GROUP_LEVEL;
/// Headers per read when the tree grows.
const READ: usize = 64 * GROUP;

/// Merkle tree over the hashes of all headers, for the protocol's `cp_height`.
///
/// Only complete nodes are stored, from the level of 32 headers upwards: two million bytes for a million headers. They are
/// constant while the chain grows. A proof reads the 32 headers of its own group and those at the right edge, and hashes along
/// two paths.
#[derive(Default)]
pub(super) struct HeaderTree {
    state: Mutex<Groups>,
}

#[derive(Default)]
struct Groups {
    /// `levels[k][i]` covers the headers from `i << (5 + k)` on.
    levels: Vec<Vec<[u8; 32]>>,
    /// Hash of the last header of each group, to detect reorgs.
    ends: Vec<BlockHash>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeaderProof {
    pub(super) branch: Vec<[u8; 32]>,
    pub(super) root: [u8; 32],
}

impl HeaderTree {
    /// Proof that the header at `height` is among the first `cp_height + 1`; `None` if the view has fewer, or it is not.
    pub(super) fn proof(
        &self,
        view: &View,
        height: u32,
        cp_height: u32,
    ) -> Result<Option<HeaderProof>, QueryError> {
        let Some(tip) = view.tip() else { return Ok(None) };
        if height > cp_height || cp_height > tip.height {
            return Ok(None);
        }
        let count = cp_height as usize + 1;
        let mut groups = self.state.lock();
        groups.follow(view, count / GROUP)?;
        groups.proof(view, height as usize, count)
    }
}

impl Groups {
    /// Drops groups that a reorg disconnected, and adds new ones up to `wanted`.
    fn follow(&mut self, view: &View, wanted: usize) -> Result<(), QueryError> {
        while let Some(end) = self.ends.last() {
            let height = self.ends.len() * GROUP - 1;
            if view.block_hash(height as u32)? == Some(*end) {
                break;
            }
            self.ends.pop();
            let mut count = self.ends.len();
            for level in &mut self.levels {
                level.truncate(count);
                count /= 2;
            }
        }
        while self.ends.len() < wanted {
            let start = self.ends.len() * GROUP;
            let count = READ.min((wanted - self.ends.len()) * GROUP);
            let hashes = hashes(view, start, count)?;
            if hashes.len() < GROUP {
                return Err(QueryError::Reorganised);
            }
            for group in hashes.chunks_exact(GROUP) {
                self.push(group);
            }
        }
        Ok(())
    }

    fn push(&mut self, group: &[[u8; 32]]) {
        self.ends.push(BlockHash(group[GROUP - 1]));
        let mut node = climb(group.to_vec(), |_, _| {});
        for k in 0.. {
            if self.levels.len() == k {
                self.levels.push(Vec::new());
            }
            let level = &mut self.levels[k];
            level.push(node);
            if level.len() % 2 == 1 {
                break;
            }
            node = pair(&level[level.len() - 2], &level[level.len() - 1]);
        }
    }

    fn proof(
        &self,
        view: &View,
        height: usize,
        count: usize,
    ) -> Result<Option<HeaderProof>, QueryError> {
        let groups = count / GROUP;
        let edge = exactly(view, groups * GROUP, count % GROUP)?;
        if groups == 0 {
            let tree = Tree::new(edge);
            return Ok(Some(HeaderProof { branch: tree.branch(height), root: tree.root() }));
        }
        // Inside the header's group, complete or not.
        let level = if height / GROUP == groups {
            edge.clone()
        } else {
            exactly(view, height / GROUP * GROUP, GROUP)?
        };
        let mut branch = Vec::new();
        climb(level, |level, k| {
            let at = (height % GROUP) >> k;
            branch.push(level[(at ^ 1).min(level.len() - 1)]);
        });
        // Above: stored nodes, and at the right edge possibly an incomplete one.
        let mut last = (!edge.is_empty()).then(|| climb(edge, |_, _| {}));
        let mut size = groups + usize::from(last.is_some());
        let mut index = height / GROUP;
        let mut level = 0;
        while size > 1 {
            let node = |at: usize| match last {
                Some(last) if at == size - 1 => last,
                _ => self.levels[level][at],
            };
            branch.push(node((index ^ 1).min(size - 1)));
            let end = node(size - 1);
            last = match (last, size % 2) {
                // Two complete nodes: the nodes above are stored.
                (None, 0) => None,
                (Some(_), 0) => Some(pair(&node(size - 2), &end)),
                _ => Some(pair(&end, &end)),
            };
            index >>= 1;
            size = size.div_ceil(2);
            level += 1;
        }
        Ok(Some(HeaderProof { branch, root: last.unwrap_or_else(|| self.levels[level][0]) }))
    }
}

/// Hashes a group up to its single node; passes each level to `visit`. A group at the edge of a larger tree may have fewer hashes
/// than others, but has the same number of levels.
fn climb(mut level: Vec<[u8; 32]>, mut visit: impl FnMut(&[[u8; 32]], usize)) -> [u8; 32] {
    for k in 0..GROUP_LEVEL {
        visit(&level, k);
        level = pairs(&level);
    }
    level[0]
}

fn exactly(view: &View, start: usize, count: usize) -> Result<Vec<[u8; 32]>, QueryError> {
    let hashes = hashes(view, start, count)?;
    if hashes.len() == count { Ok(hashes) } else { Err(QueryError::Reorganised) }
}

fn hashes(view: &View, start: usize, count: usize) -> Result<Vec<[u8; 32]>, QueryError> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let headers = view.headers(start as u32, count)?;
    Ok(headers.chunks_exact(80).map(sha256d).collect())
}
