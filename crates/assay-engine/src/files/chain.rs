//! The chain in block files, with the positions of all copies of its blocks.

use assay_consensus::params::ChainParams;
use assay_consensus::uint256::U256;
use assay_store::{BlockFiles, BlockFilesError, BlockPlace, Search};
use assay_wire::{Block, BlockHash};

use super::branches::{BadHeader, Branches, Census};
use super::links::Entry;
use super::links::{Index, Links};
use super::search::{height_of, missing_blocks, search};
use super::{FilePlace, InvalidBlock, MissingBlock, Stray};
use crate::clock::unix_time_s;

/// A block and the positions of its copies, in file order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedBlock {
    pub hash: BlockHash,
    pub place: BlockPlace,
    /// Further copies; usually none.
    pub others: Box<[BlockPlace]>,
}

impl PlacedBlock {
    pub fn copies(&self) -> impl Iterator<Item = BlockPlace> + '_ {
        std::iter::once(self.place).chain(self.others.iter().copied())
    }
}

/// The branch with the most work in block files, and the blocks outside of it.
#[derive(Debug, Default)]
pub struct FoundChain {
    /// Its blocks from the lowest one on, which is genesis if the files have it.
    pub chain: Vec<PlacedBlock>,
    /// Height of the lowest block; `None` if it has no connection to genesis and no height in its coinbase.
    pub first_height: Option<u32>,
    /// Distinct blocks.
    pub blocks: usize,
    pub duplicates: usize,
    /// Blocks on other branches.
    pub stale: usize,
    /// Blocks without a connection to the chain.
    pub unconnected: usize,
    /// Missing parents of those blocks; the first few.
    pub missing: Vec<MissingBlock>,
    /// Positions of bytes that belong to no block; the first few.
    pub strays: Vec<Stray>,
    /// Number of all such positions.
    pub stray_count: usize,
    pub padding_bytes: u64,
    /// An invalid header that led to a branch with less work.
    pub bad_header: Option<InvalidBlock>,
}

/// Finds the chain in block files. If nothing connects to genesis, as in the files of a pruned node, it is the connected piece
/// with the most work, whose headers are checked only for their own work.
///
/// `on_bytes` receives the bytes searched and the total, from several threads.
///
/// # Errors
/// The files cannot be read.
pub fn find_blocks(
    params: &ChainParams,
    files: &BlockFiles,
    threads: usize,
    on_bytes: &(dyn Fn(u64, u64) + Sync),
) -> Result<FoundChain, BlockFilesError> {
    let all = search(params, files, threads, on_bytes)?;
    let genesis = Block::parse(params.genesis_block(), params.encoding)
        .expect("the genesis block of known parameters parses");
    let links = Links::new(&all.entries, genesis.header(), params.genesis_hash);
    let mut found = if links.order().is_empty() && links.genesis_copies == 0 {
        piece(params, files, &links.with_loose_roots())
    } else {
        let mut branches = Branches::new(params, *genesis.header(), &links, unix_time_s() as i64);
        from_genesis(params, files, (&all.entries, &links), &mut branches)
    };
    let Search { strays, stray_count, padding_bytes, .. } = all;
    found.strays = strays.iter().map(|stray| Stray::new(files, stray)).collect();
    (found.stray_count, found.padding_bytes) = (stray_count, padding_bytes);
    Ok(found)
}

fn from_genesis(
    params: &ChainParams,
    files: &BlockFiles,
    (entries, links): (&[Entry], &Links<'_>),
    branches: &mut Branches<'_>,
) -> FoundChain {
    let best = branches.best();
    let Census { blocks, duplicates, stale_blocks, unconnected, gaps, .. } = branches.census(&best);
    let is_genesis = |entry: &&Entry| entry.hash == params.genesis_hash;
    let genesis = placed(entries.iter().filter(is_genesis));
    let has_genesis = genesis.is_some();
    let above = (1..=best.height()).filter_map(|height| placed(best.copies(height)));
    FoundChain {
        chain: genesis.into_iter().chain(above).collect(),
        first_height: Some(u32::from(!has_genesis)),
        blocks: blocks + usize::from(has_genesis),
        duplicates: duplicates + links.genesis_copies.saturating_sub(1),
        stale: stale_blocks,
        unconnected,
        missing: missing_blocks(params, files, &gaps),
        bad_header: branches.bad_headers().first().map(|bad| invalid_header(files, bad)),
        ..FoundChain::default()
    }
}

/// The connected piece with the most work; of equal ones the one that connects first.
fn piece(params: &ChainParams, files: &BlockFiles, links: &Links<'_>) -> FoundChain {
    let mut best: Option<(Index, U256)> = None;
    for index in links.order() {
        let work = links.work(*index);
        if best.is_none_or(|(_, most)| work > most) {
            best = Some((*index, work));
        }
    }
    let Some((tip, _)) = best else { return FoundChain::default() };
    let branch = links.branch(tip);
    let root = branch[0];
    // Blocks of the same piece, parents before children.
    let mut is_own = vec![false; links.entries()];
    for index in links.order() {
        let parent = is_own.get(links.parent(*index) as usize).copied().unwrap_or(false);
        is_own[*index as usize] = *index == root || parent;
    }
    let own = is_own.iter().filter(|is_own| **is_own).count();
    let chain: Vec<PlacedBlock> =
        branch.iter().filter_map(|index| placed(links.copies(*index))).collect();
    let copies: Vec<BlockPlace> = chain[0].copies().collect();
    let blocks = links.order().len();
    FoundChain {
        first_height: height_of(params, files, links.entry(root), &copies),
        blocks,
        duplicates: links.entries() - blocks,
        stale: own - chain.len(),
        unconnected: blocks - own,
        missing: missing_blocks(params, files, &links.gaps(&[root])),
        chain,
        ..FoundChain::default()
    }
}

fn placed<'e>(mut copies: impl Iterator<Item = &'e Entry>) -> Option<PlacedBlock> {
    let Entry { hash, place, .. } = *copies.next()?;
    Some(PlacedBlock { hash, place, others: copies.map(|entry| entry.place).collect() })
}

/// An invalid header as an invalid block.
pub(crate) fn invalid_header(files: &BlockFiles, bad: &BadHeader<'_>) -> InvalidBlock {
    InvalidBlock {
        hash: bad.entry.hash,
        height: bad.height,
        reason: bad.error.reject_reason().into_owned(),
        debug: bad.error.to_string(),
        place: FilePlace::new(files, &bad.entry.place),
        is_damaged: false,
    }
}
