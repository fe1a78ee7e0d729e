//! Selects among the branches in block files the one with the most work and without known invalid blocks.

use std::collections::{BTreeMap, HashSet};

use assay_consensus::header::HeaderError;
use assay_consensus::params::ChainParams;
use assay_consensus::uint256::U256;
use assay_wire::{BlockHash, Header};

use super::headers::Chain;
use super::links::Entry;
use super::links::{GENESIS, Gap, Index, Links, NONE};

/// An invalid header on the branch with the most work.
#[derive(Clone, Debug)]
pub(crate) struct BadHeader<'e> {
    pub(crate) entry: &'e Entry,
    pub(crate) height: u32,
    pub(crate) error: HeaderError,
}

/// All branches, and the errors found in them so far.
pub(crate) struct Branches<'e> {
    params: &'e ChainParams,
    genesis: Header,
    links: &'e Links<'e>,
    now_s: i64,
    /// Headers that break a rule of headers.
    bad: HashSet<Index>,
    /// Blocks that are invalid or have no undamaged copy.
    failed: HashSet<Index>,
    /// Invalid headers that led to a branch with less work, in the order of discovery.
    bad_headers: Vec<BadHeader<'e>>,
}

/// Counts of the blocks outside of a selected branch.
pub(crate) struct Census<'e> {
    /// Distinct blocks, without genesis.
    pub(crate) blocks: usize,
    pub(crate) duplicates: usize,
    /// Blocks on other branches, and the number of these branches' tips.
    pub(crate) stale_blocks: usize,
    pub(crate) stale_tips: usize,
    /// Blocks without a connection to genesis, and the first missing blocks below them.
    pub(crate) unconnected: usize,
    pub(crate) gaps: Vec<Gap<'e>>,
}

impl<'e> Branches<'e> {
    pub(crate) fn new(
        params: &'e ChainParams,
        genesis: Header,
        links: &'e Links<'e>,
        now_s: i64,
    ) -> Self {
        let (bad, failed) = (HashSet::new(), HashSet::new());
        Self { params, genesis, links, now_s, bad, failed, bad_headers: Vec::new() }
    }

    pub(crate) fn params(&self) -> &'e ChainParams {
        self.params
    }

    /// The invalid headers found during the selection.
    pub(crate) fn bad_headers(&self) -> &[BadHeader<'e>] {
        &self.bad_headers
    }

    /// Marks a block as invalid, which excludes it and its descendants.
    pub(crate) fn fail(&mut self, hash: &BlockHash) {
        self.failed.insert(self.links.find(hash));
    }

    /// Hash of the parent of a block; `None` if the block is not in the files.
    pub(crate) fn parent(&self, hash: &BlockHash) -> Option<BlockHash> {
        let index = self.links.find(hash);
        (index < GENESIS).then(|| self.links.entry(index).prev)
    }

    /// The valid branch with the most work; of equal ones the one that connects first.
    pub(crate) fn best(&mut self) -> Chain<'e> {
        loop {
            let dead = self.dead(&[&self.bad, &self.failed]);
            let mut best = (GENESIS, self.links.genesis_work);
            // In the order of connection, so that the first of equal ones wins.
            for index in self.links.order().iter().filter(|index| !dead[**index as usize]) {
                let work = self.links.work(*index);
                if work > best.1 {
                    best = (*index, work);
                }
            }
            if let Some(chain) = self.chain_to(best.0) {
                return chain;
            }
        }
    }

    /// The branch that ends in a block, if the block is in the files and its headers are valid.
    pub(crate) fn branch_of(&mut self, hash: &BlockHash) -> Option<Chain<'e>> {
        let tip = self.links.find(hash);
        if tip == NONE || tip < GENESIS && !self.links.is_connected(tip) {
            return None;
        }
        self.chain_to(tip)
    }

    /// The branch that ends in an entry, or `None` if one of its headers is invalid, which is recorded.
    fn chain_to(&mut self, tip: Index) -> Option<Chain<'e>> {
        let mut chain = Chain::new(&self.genesis, self.params.genesis_hash, self.links);
        for index in self.links.branch(tip) {
            if let Err(error) = chain.push(self.params, index, self.now_s) {
                self.bad.insert(index);
                let (entry, height) = (self.links.entry(index), chain.height() + 1);
                self.bad_headers.push(BadHeader { entry, height, error });
                return None;
            }
        }
        chain.rivals = self.rivals(&chain);
        Some(chain)
    }

    /// Height of the last common block of a chain and a given block; `None` if the block is unknown.
    pub(crate) fn common_height(&self, chain: &Chain<'_>, hash: &BlockHash) -> Option<u32> {
        let found = self.links.find(hash);
        if found == NONE || found < GENESIS && !self.links.is_connected(found) {
            return None;
        }
        let ancestors = self.links.branch(found);
        let common = ancestors.iter().zip(chain.branch()).take_while(|(a, b)| a == b).count();
        Some(common as u32)
    }

    /// Work of the branch up to the block at `height` of a chain.
    pub(crate) fn work(&self, chain: &Chain<'_>, height: u32) -> U256 {
        let index = (height as usize).checked_sub(1).map(|place| chain.branch()[place]);
        self.links.work(index.unwrap_or(GENESIS))
    }

    /// For each block of a chain, true if a branch without it has as much work or more: only such a branch can disconnect the
    /// block. Invalid blocks are included: a later run does not know their verdict.
    fn rivals(&self, chain: &Chain<'_>) -> Vec<bool> {
        let dead = self.dead(&[&self.bad]);
        // Height of the fork point of each entry with the chain.
        let mut forks = vec![0u32; self.links.entries()];
        let mut is_own = vec![false; self.links.entries()];
        for (place, index) in chain.branch().iter().enumerate() {
            forks[*index as usize] = place as u32 + 1;
            is_own[*index as usize] = true;
        }
        let mut most: BTreeMap<u32, U256> = BTreeMap::new();
        for index in self.links.order() {
            let at = *index as usize;
            if is_own[at] || dead[at] {
                continue;
            }
            let parent = self.links.parent(*index);
            forks[at] = if parent == GENESIS { 0 } else { forks[parent as usize] };
            let work = most.entry(forks[at]).or_default();
            *work = (*work).max(self.links.work(*index));
        }
        let mut rival = U256::ZERO;
        let mut forks = most.into_iter().peekable();
        let mut has_rival = |height: u32, index: &Index| {
            while let Some((_, work)) = forks.next_if(|(fork, _)| *fork < height) {
                rival = rival.max(work);
            }
            rival >= self.links.work(*index)
        };
        chain.branch().iter().zip(1..).map(|(index, height)| has_rival(height, index)).collect()
    }

    /// For each entry, true if it or an ancestor is in one of the sets.
    fn dead(&self, sets: &[&HashSet<Index>]) -> Vec<bool> {
        let mut dead = vec![false; self.links.entries()];
        if sets.iter().all(|set| set.is_empty()) {
            return dead;
        }
        for index in self.links.order() {
            let parent = self.links.parent(*index);
            dead[*index as usize] = parent != GENESIS && dead[parent as usize]
                || sets.iter().any(|set| set.contains(index));
        }
        dead
    }

    /// Counts of the blocks outside of a chain.
    pub(crate) fn census(&self, chain: &Chain<'_>) -> Census<'e> {
        let blocks = self.links.blocks().count();
        let dead = self.dead(&[&self.bad]);
        let mut has_child = vec![false; dead.len()];
        let sound = || self.links.order().iter().copied().filter(|index| !dead[*index as usize]);
        for index in sound() {
            if let Some(parent) = has_child.get_mut(self.links.parent(index) as usize) {
                *parent = true;
            }
        }
        let own_tip = chain.branch().last();
        let is_stale_tip = |index: &Index| !has_child[*index as usize] && Some(index) != own_tip;
        Census {
            blocks,
            duplicates: self.links.entries() - self.links.genesis_copies - blocks,
            stale_blocks: sound().count() - chain.branch().len(),
            stale_tips: sound().filter(is_stale_tip).count(),
            unconnected: blocks - self.links.order().len(),
            gaps: self.links.gaps(&[]),
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_store::BlockPlace;
    use assay_testkit::chain::header_on;
    use assay_wire::Block;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    /// An entry with its number as hash; no proof of work is checked here.
    fn entry(number: u8, prev: BlockHash, time: u32) -> Entry {
        let header = Header { version: 4, ..header_on(prev, 1_700_000_000 + time) };
        let place = BlockPlace { file: 0, offset: u64::from(number), size: 100 };
        Entry::new(&header, hash(number), place)
    }

    fn hash(number: u8) -> BlockHash {
        BlockHash([number; 32])
    }

    fn numbers(chain: &Chain<'_>) -> Vec<u8> {
        (1..=chain.height()).map(|height| chain.entry(height).hash.0[0]).collect()
    }

    /// Calls `check` with the branches of these blocks.
    fn with(blocks: &[Entry], check: impl FnOnce(&mut Branches<'_>)) {
        let params = ChainParams::by_name("regtest").unwrap();
        let genesis = Block::parse(params.genesis_block(), params.encoding).unwrap();
        let links = Links::new(blocks, genesis.header(), params.genesis_hash);
        check(&mut Branches::new(&params, *genesis.header(), &links, NOW));
    }

    fn genesis() -> BlockHash {
        ChainParams::by_name("regtest").unwrap().genesis_hash
    }

    #[test]
    fn the_branch_with_most_work_wins_in_any_order() {
        let blocks = [
            entry(4, hash(3), 4),
            entry(1, genesis(), 1),
            entry(13, hash(12), 3),
            entry(2, hash(1), 2),
            entry(1, genesis(), 1),
            entry(12, hash(1), 2),
            entry(3, hash(2), 3),
        ];
        with(&blocks, |branches| {
            let chain = branches.best();
            assert_eq!(numbers(&chain), [1, 2, 3, 4]);
            let census = branches.census(&chain);
            assert_eq!((census.blocks, census.duplicates), (6, 1));
            assert_eq!((census.stale_blocks, census.stale_tips, census.unconnected), (2, 1, 0));
            assert!(census.gaps.is_empty() && branches.bad_headers().is_empty());
            let time = assay_consensus::chain::Ancestors::median_time_past_at(&chain.up_to(2), 2);
            assert_eq!(time, 1_700_000_001);
            let asked = |hash| branches.common_height(&chain, &hash);
            assert_eq!(asked(hash(13)), Some(1), "13 shares block 1 with the chain");
            assert_eq!(
                (asked(genesis()), asked(hash(3)), asked(hash(99))),
                (Some(0), Some(3), None)
            );
            let copies: Vec<u64> = chain.copies(1).map(|entry| entry.place.offset).collect();
            assert_eq!((copies, chain.copies(2).count()), (vec![1, 1], 1));
            // The other branch has three blocks.
            let rivals: Vec<bool> = (0..=5).map(|height| chain.has_rival(height)).collect();
            assert_eq!(rivals, [false, false, true, true, false, false]);
        });
    }

    #[test]
    fn of_equal_branches_the_one_that_connects_first_wins() {
        let check = |blocks: &[Entry], expected: &[u8]| {
            with(blocks, |branches| assert_eq!(numbers(&branches.best()), expected));
        };
        let (a, b) = (entry(1, genesis(), 1), entry(2, genesis(), 1));
        check(&[a, b], &[1]);
        check(&[b, a], &[2]);
        // 12 is in the files before 13, but waits for 2.
        let (late, other) = (entry(12, hash(2), 2), entry(13, hash(1), 2));
        check(&[late, a, other, b], &[1, 13]);
        check(&[late, a, b, other], &[2, 12]);
        check(&[], &[]);
    }

    #[test]
    fn a_missing_block_ends_the_chain_and_is_reported() {
        let blocks = [entry(1, genesis(), 1), entry(3, hash(2), 3), entry(4, hash(3), 4)];
        with(&blocks, |branches| {
            let chain = branches.best();
            assert_eq!(numbers(&chain), [1]);
            let census = branches.census(&chain);
            assert_eq!(census.unconnected, 2);
            let [gap] = &census.gaps[..] else { panic!("one gap") };
            assert_eq!((gap.hash, gap.child.hash), (hash(2), hash(3)));
            assert_eq!(branches.common_height(&chain, &hash(4)), None);
            assert!(branches.branch_of(&hash(4)).is_none());
        });
    }

    #[test]
    fn a_bad_header_selects_the_next_best_branch() {
        let blocks = [
            entry(1, genesis(), 1),
            entry(2, hash(1), 2),
            // Not later than the median of the three before it.
            entry(3, hash(2), 0),
            entry(4, hash(3), 9),
            entry(5, hash(2), 9),
        ];
        with(&blocks, |branches| {
            let chain = branches.best();
            assert_eq!(numbers(&chain), [1, 2, 5]);
            let [bad] = branches.bad_headers() else { panic!("one bad header") };
            assert_eq!((bad.entry.hash, bad.height), (hash(3), 3));
            assert_eq!(bad.error.reject_reason(), "time-too-old");
            let census = branches.census(&chain);
            assert_eq!((census.unconnected, census.stale_blocks), (0, 0));
            assert!(!chain.has_rival(3), "a branch with a bad header is never taken");
        });
    }

    #[test]
    fn pieces_without_genesis_connect_where_that_is_asked_for() {
        let params = ChainParams::by_name("regtest").unwrap();
        let genesis = Block::parse(params.genesis_block(), params.encoding).unwrap();
        let blocks = [
            entry(20, hash(19), 1),
            entry(5, hash(4), 3),
            entry(4, hash(3), 2),
            entry(5, hash(4), 3),
            entry(6, hash(4), 3),
        ];
        let links = Links::new(&blocks, genesis.header(), params.genesis_hash);
        assert!(links.order().is_empty());
        let links = links.with_loose_roots();
        assert_eq!(links.order(), [0, 2, 1, 4]);
        assert!(links.work(1) == links.work(4) && links.work(1) > links.work(0));
        assert_eq!(links.branch(1), [2, 1]);
        let gaps: Vec<u8> = links.gaps(&[2]).iter().map(|gap| gap.hash.0[0]).collect();
        assert_eq!(gaps, [19], "a root lacks nothing");
    }

    #[test]
    fn invalid_blocks_leave_the_next_best_branch_until_none_is_left() {
        let blocks = [
            entry(1, genesis(), 1),
            entry(2, hash(1), 2),
            entry(3, hash(2), 3),
            entry(4, hash(3), 4),
            entry(22, hash(1), 2),
            entry(23, hash(22), 3),
            entry(31, genesis(), 1),
        ];
        with(&blocks, |branches| {
            let mut chosen = Vec::new();
            for failed in [3, 23, 2, 1, 22, 31] {
                chosen.push(numbers(&branches.best()));
                branches.fail(&hash(failed));
            }
            let expected: [&[u8]; 6] =
                [&[1, 2, 3, 4], &[1, 22, 23], &[1, 2], &[1, 22], &[31], &[31]];
            assert_eq!(chosen, expected);
            assert_eq!(numbers(&branches.best()), [0u8; 0]);
        });
    }
}
