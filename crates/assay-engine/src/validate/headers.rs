//! The headers found in block files: which of them connect, which branch has the most work, and whether it obeys the rules
//! of headers.

use std::collections::HashSet;

use assay_consensus::chain::{Ancestors, HeaderFacts, MEDIAN_TIME_SPAN, median_time};
use assay_consensus::header::{HeaderError, contextual_check_header};
use assay_consensus::params::ChainParams;
use assay_consensus::pow::block_work;
use assay_consensus::uint256::U256;
use assay_store::BlockPlace;
use assay_wire::{Block, BlockHash, Header};

/// What is kept of a header: everything that the rules of headers and of coins ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) hash: BlockHash,
    prev: BlockHash,
    version: i32,
    time: u32,
    bits: u32,
    pub(crate) place: BlockPlace,
}

impl Entry {
    pub(crate) fn new(header: &Header, hash: BlockHash, place: BlockPlace) -> Self {
        Self {
            hash,
            prev: header.prev_block,
            version: header.version,
            time: header.time,
            bits: header.bits,
            place,
        }
    }

    /// The header, without what only its hash depends on.
    fn header(&self) -> Header {
        Header {
            version: self.version,
            prev_block: self.prev,
            merkle_root: [0; 32],
            time: self.time,
            bits: self.bits,
            nonce: 0,
        }
    }
}

/// A header on the branch with the most work that breaks a rule.
#[derive(Debug)]
pub(crate) struct BadHeader {
    pub(crate) entry: Entry,
    pub(crate) height: u32,
    pub(crate) error: HeaderError,
}

/// A block that others build on and that is in no file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    pub(crate) hash: BlockHash,
    /// One that builds on it.
    pub(crate) child: Entry,
}

/// The chosen branch, by height.
pub(crate) struct Chain<'e> {
    genesis: HeaderFacts,
    entries: &'e [Entry],
    /// From height 1 on.
    branch: Vec<Index>,
    /// From height 0 on.
    median_times: Vec<u32>,
}

/// What a choice of branch found out besides the branch.
pub(crate) struct Choice<'e> {
    pub(crate) chain: Chain<'e>,
    /// Blocks found, each once, without genesis.
    pub(crate) blocks: usize,
    /// Blocks found again.
    pub(crate) duplicates: usize,
    /// Blocks on other branches, and how many tips these have.
    pub(crate) stale_blocks: usize,
    pub(crate) stale_tips: usize,
    /// Blocks that do not connect to genesis, and the first blocks missing below them.
    pub(crate) unconnected: usize,
    pub(crate) gaps: Vec<Gap>,
    /// The first header that was the reason to prefer a branch with less work.
    pub(crate) bad_header: Option<BadHeader>,
    /// Height up to which the chain agrees with the ancestors of the block asked about; `None` when it is not there.
    pub(crate) ancestor_height: Option<u32>,
}

impl Chain<'_> {
    /// Height of the last block.
    pub(crate) fn height(&self) -> u32 {
        self.branch.len() as u32
    }

    /// The block at `height`, which is neither 0 nor above the last.
    pub(crate) fn entry(&self, height: u32) -> &Entry {
        &self.entries[self.branch[height as usize - 1] as usize]
    }

    pub(crate) fn hash(&self, height: u32) -> BlockHash {
        if height == 0 { self.genesis.hash } else { self.entry(height).hash }
    }

    /// Bytes of the blocks in a range of heights, ends included.
    pub(crate) fn bytes(&self, heights: std::ops::RangeInclusive<u32>) -> u64 {
        heights.map(|height| u64::from(self.entry(height).place.size)).sum()
    }

    /// The chain up to `height`, as the rules read it.
    pub(crate) fn up_to(&self, height: u32) -> ChainView<'_> {
        ChainView { chain: self, height }
    }

    /// Adds a header when it obeys the rules in its place.
    fn push(&mut self, params: &ChainParams, index: Index, now_s: i64) -> Result<(), HeaderError> {
        let header = self.entries[index as usize].header();
        contextual_check_header(params, &self.up_to(self.height()), &header, now_s)?;
        self.branch.push(index);
        let height = self.height();
        let first = height.saturating_sub(MEDIAN_TIME_SPAN - 1);
        let mut times = [0u32; MEDIAN_TIME_SPAN as usize];
        let count = (height - first + 1) as usize;
        for (time, at) in times.iter_mut().zip(first..=height) {
            *time = self.up_to(height).header_at(at).time;
        }
        self.median_times.push(median_time(&mut times[..count]));
        Ok(())
    }
}

/// A [`Chain`] that ends at a height.
#[derive(Clone, Copy)]
pub(crate) struct ChainView<'a> {
    chain: &'a Chain<'a>,
    height: u32,
}

impl Ancestors for ChainView<'_> {
    fn tip_height(&self) -> u32 {
        self.height
    }

    fn header_at(&self, height: u32) -> HeaderFacts {
        if height == 0 {
            return self.chain.genesis;
        }
        let entry = self.chain.entry(height);
        HeaderFacts { hash: entry.hash, time: entry.time, bits: entry.bits }
    }

    fn median_time_past_at(&self, height: u32) -> u32 {
        self.chain.median_times[height as usize]
    }
}

/// The place of an entry among all that were found.
type Index = u32;

/// Missing blocks that are named; where more are missing, that is no help.
const GAPS_MAX: usize = 8;

/// Not found, or not linked to genesis.
const NONE: Index = Index::MAX;
const GENESIS: Index = Index::MAX - 1;

/// How the entries hang together.
struct Links<'a> {
    entries: &'a [Entry],
    /// Indices of distinct entries, ordered by hash.
    by_hash: Vec<Index>,
    genesis: BlockHash,
    parents: Vec<Index>,
    /// Work of the branch up to an entry; zero for one that does not connect to genesis.
    works: Vec<U256>,
}

/// Chooses among `entries`, which are in the order of the files, the branch with the most work, all of whose blocks are
/// there and whose headers obey the rules; of equal ones the first in the files. `asked` is a block whose place is wanted.
pub(crate) fn choose<'e>(
    params: &ChainParams,
    entries: &'e [Entry],
    asked: Option<BlockHash>,
    now_s: i64,
) -> Choice<'e> {
    let genesis = Block::parse(params.genesis_block(), params.encoding)
        .expect("the genesis block of known parameters parses");
    let mut links = Links::new(entries, params.genesis_hash);
    let blocks = links.by_hash.len();
    let own_genesis = entries.iter().filter(|entry| entry.hash == params.genesis_hash).count();
    let mut bad: HashSet<Index> = HashSet::new();
    let mut bad_header = None;
    let (branch, chain) = loop {
        links.add_up(genesis.header().bits, &bad);
        let branch = links.branch(links.best());
        let mut chain = Chain::new(genesis.header(), params.genesis_hash, entries, branch.len());
        let failed = branch
            .iter()
            .find_map(|index| chain.push(params, *index, now_s).err().map(|error| (*index, error)));
        let Some((index, error)) = failed else { break (branch, chain) };
        bad.insert(index);
        bad_header.get_or_insert_with(|| {
            let (entry, height) = (entries[index as usize], chain.height() + 1);
            BadHeader { entry, height, error }
        });
    };
    let on_branch: HashSet<Index> = branch.iter().copied().collect();
    let connected = links.by_hash.iter().filter(|index| links.is_connected(**index)).count();
    Choice {
        blocks,
        duplicates: entries.len() - blocks - own_genesis,
        stale_blocks: connected - branch.len(),
        stale_tips: links.tips().filter(|index| !on_branch.contains(index)).count(),
        unconnected: links.unconnected(&bad),
        gaps: links.gaps(),
        bad_header,
        ancestor_height: asked.and_then(|hash| links.ancestor_height(&hash, &branch)),
        chain,
    }
}

impl<'e> Chain<'e> {
    fn new(genesis: &Header, hash: BlockHash, entries: &'e [Entry], capacity: usize) -> Self {
        let mut median_times = Vec::with_capacity(capacity + 1);
        median_times.push(genesis.time);
        Self {
            genesis: HeaderFacts { hash, time: genesis.time, bits: genesis.bits },
            entries,
            branch: Vec::with_capacity(capacity),
            median_times,
        }
    }
}

impl<'a> Links<'a> {
    fn new(entries: &'a [Entry], genesis: BlockHash) -> Self {
        let mut by_hash: Vec<Index> = (0..entries.len() as Index)
            .filter(|index| entries[*index as usize].hash != genesis)
            .collect();
        // Stable within a hash: the first in the files counts.
        by_hash.sort_unstable_by_key(|index| (entries[*index as usize].hash, *index));
        by_hash.dedup_by_key(|index| entries[*index as usize].hash);
        let mut links = Self {
            entries,
            by_hash,
            genesis,
            parents: vec![NONE; entries.len()],
            works: Vec::new(),
        };
        for place in 0..links.by_hash.len() {
            let index = links.by_hash[place] as usize;
            links.parents[index] = links.find(&entries[index].prev);
        }
        links
    }

    fn find(&self, hash: &BlockHash) -> Index {
        if *hash == self.genesis {
            return GENESIS;
        }
        let found =
            self.by_hash.binary_search_by_key(hash, |index| self.entries[*index as usize].hash);
        found.map_or(NONE, |place| self.by_hash[place])
    }

    /// Sums up the work of all branches that connect to genesis without passing through a bad header.
    fn add_up(&mut self, genesis_bits: u32, bad: &HashSet<Index>) {
        self.works.clear();
        self.works.resize(self.entries.len(), U256::ZERO);
        let mut is_done = vec![false; self.entries.len()];
        let mut path = Vec::new();
        for index in &self.by_hash {
            let mut at = *index;
            while at < GENESIS && !is_done[at as usize] {
                path.push(at);
                at = self.parents[at as usize];
            }
            let mut work = match at {
                GENESIS => block_work(genesis_bits),
                NONE => U256::ZERO,
                index => self.works[index as usize],
            };
            while let Some(index) = path.pop() {
                if work != U256::ZERO && !bad.contains(&index) {
                    work = work.wrapping_add(block_work(self.entries[index as usize].bits));
                } else {
                    work = U256::ZERO;
                }
                self.works[index as usize] = work;
                is_done[index as usize] = true;
            }
        }
    }

    fn is_connected(&self, index: Index) -> bool {
        self.works[index as usize] != U256::ZERO
    }

    /// The entry at the end of the branch with the most work, or genesis.
    fn best(&self) -> Index {
        let mut best = GENESIS;
        let mut best_work = U256::ZERO;
        // By place in the files, not by hash: of equal branches the first found counts.
        for (index, work) in self.works.iter().enumerate() {
            if *work > best_work {
                (best, best_work) = (index as Index, *work);
            }
        }
        best
    }

    /// The entries from height 1 up to `tip`.
    fn branch(&self, tip: Index) -> Vec<Index> {
        let mut branch = Vec::new();
        let mut at = tip;
        while at < GENESIS {
            branch.push(at);
            at = self.parents[at as usize];
        }
        branch.reverse();
        branch
    }

    /// Connected entries that nothing builds on.
    fn tips(&self) -> impl Iterator<Item = Index> {
        let mut has_child = vec![false; self.entries.len()];
        for index in self.by_hash.iter().filter(|index| self.is_connected(**index)) {
            if let Some(parent) = has_child.get_mut(self.parents[*index as usize] as usize) {
                *parent = true;
            }
        }
        self.by_hash
            .iter()
            .copied()
            .filter(move |index| self.is_connected(*index) && !has_child[*index as usize])
    }

    /// Entries that would connect if nothing were missing.
    fn unconnected(&self, bad: &HashSet<Index>) -> usize {
        let descends_from_bad = |index: &&Index| {
            let mut at = **index;
            while at < GENESIS && !bad.contains(&at) {
                at = self.parents[at as usize];
            }
            at < GENESIS
        };
        self.by_hash
            .iter()
            .filter(|index| !self.is_connected(**index))
            .filter(|index| bad.is_empty() || !descends_from_bad(index))
            .count()
    }

    /// The first entries of the files whose parents are in none.
    fn gaps(&self) -> Vec<Gap> {
        let is_loose = |index: &Index| self.parents[*index as usize] == NONE;
        let mut loose: Vec<Index> = self.by_hash.iter().copied().filter(is_loose).collect();
        loose.sort_unstable();
        let gap = |index: &Index| {
            let child = self.entries[*index as usize];
            Gap { hash: child.prev, child }
        };
        loose.iter().take(GAPS_MAX).map(gap).collect()
    }

    fn ancestor_height(&self, hash: &BlockHash, branch: &[Index]) -> Option<u32> {
        let found = self.find(hash);
        if found == NONE || found < GENESIS && !self.is_connected(found) {
            return None;
        }
        let ancestors = self.branch(found);
        let common = ancestors.iter().zip(branch).take_while(|(a, b)| a == b).count();
        Some(common as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regtest() -> ChainParams {
        ChainParams::by_name("regtest").unwrap()
    }

    const NOW: i64 = 1_800_000_000;

    /// An entry whose hash is its number; no proof of work is looked at here.
    fn entry(number: u8, prev: BlockHash, time: u32) -> Entry {
        let header = Header {
            version: 4,
            prev_block: prev,
            merkle_root: [0; 32],
            time: 1_700_000_000 + time,
            bits: 0x207f_ffff,
            nonce: 0,
        };
        let place = BlockPlace { file: 0, offset: u64::from(number), size: 100 };
        Entry::new(&header, hash(number), place)
    }

    fn hash(number: u8) -> BlockHash {
        BlockHash([number; 32])
    }

    fn chosen(choice: &Choice<'_>) -> Vec<u8> {
        (1..=choice.chain.height()).map(|height| choice.chain.entry(height).hash.0[0]).collect()
    }

    #[test]
    fn the_branch_with_most_work_wins_in_any_order() {
        let params = regtest();
        let genesis = params.genesis_hash;
        let blocks = [
            entry(4, hash(3), 4),
            entry(1, genesis, 1),
            entry(13, hash(12), 3),
            entry(2, hash(1), 2),
            entry(1, genesis, 1),
            entry(12, hash(1), 2),
            entry(3, hash(2), 3),
        ];
        let choice = choose(&params, &blocks, Some(hash(13)), NOW);
        assert_eq!(chosen(&choice), [1, 2, 3, 4]);
        assert_eq!((choice.blocks, choice.duplicates), (6, 1));
        assert_eq!((choice.stale_blocks, choice.stale_tips, choice.unconnected), (2, 1, 0));
        assert_eq!(choice.ancestor_height, Some(1), "13 shares block 1 with the chain");
        assert_eq!(choice.chain.up_to(2).median_time_past_at(2), 1_700_000_001);
        assert!(choice.gaps.is_empty() && choice.bad_header.is_none());
        let asked = |hash| choose(&params, &blocks, Some(hash), NOW).ancestor_height;
        assert_eq!((asked(genesis), asked(hash(3)), asked(hash(99))), (Some(0), Some(3), None));
    }

    #[test]
    fn of_equal_branches_the_first_in_the_files_wins() {
        let params = regtest();
        let (a, b) = (entry(1, params.genesis_hash, 1), entry(2, params.genesis_hash, 1));
        assert_eq!(chosen(&choose(&params, &[a, b], None, NOW)), [1]);
        assert_eq!(chosen(&choose(&params, &[b, a], None, NOW)), [2]);
        let empty = choose(&params, &[], None, NOW);
        assert_eq!((empty.chain.height(), empty.chain.hash(0)), (0, params.genesis_hash));
    }

    #[test]
    fn a_missing_block_ends_the_chain_and_is_named() {
        let params = regtest();
        let blocks = [entry(1, params.genesis_hash, 1), entry(3, hash(2), 3), entry(4, hash(3), 4)];
        let choice = choose(&params, &blocks, Some(hash(4)), NOW);
        assert_eq!(chosen(&choice), [1]);
        assert_eq!(choice.unconnected, 2);
        let [gap] = choice.gaps[..] else { panic!("one gap") };
        assert_eq!((gap.hash, gap.child.hash), (hash(2), hash(3)));
        assert_eq!(choice.ancestor_height, None);
    }

    #[test]
    fn a_bad_header_leaves_the_next_best_branch() {
        let params = regtest();
        let blocks = [
            entry(1, params.genesis_hash, 1),
            entry(2, hash(1), 2),
            // Not later than the median of the three before it.
            entry(3, hash(2), 0),
            entry(4, hash(3), 9),
            entry(5, hash(2), 9),
        ];
        let choice = choose(&params, &blocks, None, NOW);
        assert_eq!(chosen(&choice), [1, 2, 5]);
        let bad = choice.bad_header.unwrap();
        assert_eq!((bad.entry.hash, bad.height), (hash(3), 3));
        assert_eq!(bad.error.reject_reason(), "time-too-old");
        assert_eq!((choice.unconnected, choice.stale_blocks), (0, 0));
    }
}
