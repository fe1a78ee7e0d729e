//! The branch with the most work among headers found in files.

use std::collections::HashMap;

use assay_consensus::pow::block_work;
use assay_consensus::uint256::U256;
use assay_store::BlockPlace;
use assay_wire::BlockHash;

/// What is kept of a header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) hash: BlockHash,
    pub(crate) prev: BlockHash,
    pub(crate) bits: u32,
    pub(crate) place: BlockPlace,
}

/// What came of a choice.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    /// Indices of the entries on the branch, from the lowest to the tip.
    pub(crate) branch: Vec<u32>,
    /// Height of the first; `None` when it does not connect to genesis, as in a pruned node's files.
    pub(crate) first_height: Option<u32>,
    /// Distinct blocks, entries that are there again, blocks off the branch that connect as it does, and blocks that do not.
    pub(crate) blocks: usize,
    pub(crate) duplicates: usize,
    pub(crate) stale: usize,
    pub(crate) unconnected: usize,
    /// Indices of entries off the branch whose parents are in no file, one for each of the first few parents.
    pub(crate) loose: Vec<u32>,
}

/// Not found.
const NONE: u32 = u32::MAX;

/// Missing blocks that are named.
const MISSING_MAX: usize = 8;

/// Where an entry's branch starts.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Root {
    entry: u32,
    is_genesis: bool,
}

/// Chooses, among what connects to genesis if anything does, the branch with the most work; of equal ones the first in the
/// files.
pub(crate) fn choose(entries: &[Entry], genesis: &BlockHash) -> Choice {
    let mut by_hash: HashMap<BlockHash, u32> = HashMap::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        by_hash.entry(entry.hash).or_insert(index as u32);
    }
    let parents: Vec<u32> = entries
        .iter()
        .map(|entry| match by_hash.get(&entry.prev) {
            Some(parent) if entry.hash != *genesis => *parent,
            _ => NONE,
        })
        .collect();
    let (works, roots) = add_up(entries, &parents, genesis);
    let mut best: Option<usize> = None;
    for index in 0..entries.len() {
        let rank = |index: usize| (roots[index].is_genesis, works[index]);
        if best.is_none_or(|best| rank(index) > rank(best)) {
            best = Some(index);
        }
    }
    let Some(best) = best else { return Choice::default() };
    let root = roots[best];
    let mut branch = Vec::new();
    let mut at = best as u32;
    while at != NONE {
        branch.push(at);
        at = parents[at as usize];
    }
    branch.reverse();
    let first_height =
        root.is_genesis.then(|| u32::from(entries[root.entry as usize].hash != *genesis));
    // Several blocks may follow genesis without genesis being there.
    let connects = |other: &Root| if root.is_genesis { other.is_genesis } else { *other == root };
    let first = |index: &u32| by_hash[&entries[*index as usize].hash] == *index;
    let connected =
        (0..entries.len() as u32).filter(first).filter(|i| connects(&roots[*i as usize])).count();
    let mut loose: Vec<u32> = Vec::new();
    for index in (0..entries.len() as u32).filter(first) {
        let is_loose = parents[index as usize] == NONE && !roots[index as usize].is_genesis;
        let prev = |index: u32| entries[index as usize].prev;
        if is_loose
            && loose.len() < MISSING_MAX
            && !loose.iter().any(|other| prev(*other) == prev(index))
        {
            loose.push(index);
        }
    }
    Choice {
        first_height,
        blocks: by_hash.len(),
        duplicates: entries.len() - by_hash.len(),
        stale: connected - branch.len(),
        unconnected: by_hash.len() - connected,
        loose,
        branch,
    }
}

/// Work of the branch up to each entry, and where that branch begins.
fn add_up(entries: &[Entry], parents: &[u32], genesis: &BlockHash) -> (Vec<U256>, Vec<Root>) {
    let unknown = Root { entry: NONE, is_genesis: false };
    let (mut works, mut roots) = (vec![U256::ZERO; entries.len()], vec![unknown; entries.len()]);
    let mut path = Vec::new();
    for index in 0..entries.len() as u32 {
        let mut at = index;
        while at != NONE && roots[at as usize] == unknown {
            path.push(at);
            at = parents[at as usize];
        }
        let (mut work, mut root) = match at {
            NONE => (U256::ZERO, unknown),
            at => (works[at as usize], roots[at as usize]),
        };
        while let Some(index) = path.pop() {
            let entry = &entries[index as usize];
            if root == unknown {
                let is_genesis = entry.hash == *genesis || entry.prev == *genesis;
                root = Root { entry: index, is_genesis };
            }
            work = work.wrapping_add(block_work(entry.bits));
            (works[index as usize], roots[index as usize]) = (work, root);
        }
    }
    (works, roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENESIS: BlockHash = BlockHash([0xff; 32]);

    fn entry(hash: u8, prev: u8) -> Entry {
        let place = BlockPlace { file: 0, offset: u64::from(hash), size: 80 };
        Entry { hash: BlockHash([hash; 32]), prev: BlockHash([prev; 32]), bits: 0x207f_ffff, place }
    }

    fn chosen(pairs: &[(u8, u8)]) -> (Vec<u8>, Choice) {
        let entries: Vec<Entry> = pairs.iter().map(|(hash, prev)| entry(*hash, *prev)).collect();
        let choice = choose(&entries, &GENESIS);
        let hashes = choice.branch.iter().map(|index| entries[*index as usize].hash.0[0]).collect();
        (hashes, choice)
    }

    #[test]
    fn the_longest_branch_in_any_order_with_copies() {
        let (hashes, choice) =
            chosen(&[(3, 2), (2, 1), (12, 1), (1, 0xff), (2, 1), (13, 12), (14, 13)]);
        assert_eq!(hashes, [1, 12, 13, 14]);
        assert_eq!((choice.first_height, choice.blocks, choice.duplicates), (Some(1), 6, 1));
        assert_eq!((choice.stale, choice.unconnected), (2, 0));
    }

    #[test]
    fn genesis_may_be_there() {
        let (hashes, choice) = chosen(&[(2, 1), (1, 0xff), (0xff, 0)]);
        assert_eq!(hashes, [0xff, 1, 2]);
        assert_eq!((choice.first_height, choice.stale, choice.unconnected), (Some(0), 0, 0));
    }

    #[test]
    fn of_equal_branches_the_first_in_the_files() {
        assert_eq!(chosen(&[(1, 0xff), (12, 1), (2, 1)]).0, [1, 12]);
        assert_eq!(chosen(&[(1, 0xff), (2, 1), (12, 1)]).0, [1, 2]);
        let (hashes, choice) = chosen(&[(1, 0xff), (9, 0xff)]);
        assert_eq!((hashes, choice.stale), (vec![1], 1));
    }

    #[test]
    fn a_gap_ends_the_branch_and_is_named() {
        let (hashes, choice) = chosen(&[(1, 0xff), (4, 3), (5, 4), (6, 5)]);
        assert_eq!(hashes, [1]);
        assert_eq!((choice.unconnected, choice.loose), (3, vec![1]), "block 3 is missing");
    }

    #[test]
    fn without_genesis_the_longest_piece() {
        let (hashes, choice) = chosen(&[(20, 19), (4, 3), (5, 4)]);
        assert_eq!(hashes, [4, 5]);
        assert_eq!((choice.first_height, choice.unconnected), (None, 1));
        assert_eq!(chosen(&[]).0, Vec::<u8>::new());
    }
}
