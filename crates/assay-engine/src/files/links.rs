//! Parent links of the headers found in block files.

use assay_consensus::pow::block_work;
use assay_consensus::uint256::U256;
use assay_store::BlockPlace;
use assay_wire::{BlockHash, Header};

/// Index of an entry among all found, in file order.
pub(crate) type Index = u32;

/// The parent is in no file.
pub(crate) const NONE: Index = Index::MAX;
pub(crate) const GENESIS: Index = Index::MAX - 1;
/// Not a separate block: a copy of an earlier entry, or of the genesis block.
const COPY: Index = Index::MAX - 2;

/// The parts of a header that the rules of headers and coins need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) hash: BlockHash,
    pub(crate) prev: BlockHash,
    pub(super) version: i32,
    pub(super) time: u32,
    pub(crate) bits: u32,
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

    /// The header, without the fields that only affect its hash.
    pub(super) fn header(&self) -> Header {
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

/// A block that is in no file, with a child that is.
#[derive(Clone, Debug)]
pub(crate) struct Gap<'e> {
    pub(crate) hash: BlockHash,
    /// A child, and all its copies.
    pub(crate) child: &'e Entry,
    pub(crate) places: Vec<BlockPlace>,
}

/// The entries, with their parents, the order of connection, and the work of their branches.
pub(crate) struct Links<'a> {
    entries: &'a [Entry],
    /// All entries except genesis, ordered by hash and then by position: copies are adjacent.
    by_hash: Vec<Index>,
    genesis: BlockHash,
    pub(crate) genesis_work: U256,
    parents: Vec<Index>,
    /// Blocks that connect to genesis, parents before children, in the order in which a node that reads the files accepts them:
    /// of branches with equal work the one whose tip is accepted first wins (Core's `nSequenceId`).
    order: Vec<Index>,
    /// Work of the branch up to an entry; zero for an unconnected one.
    works: Vec<U256>,
    /// Number of records of the genesis block.
    pub(crate) genesis_copies: usize,
    /// True if blocks with missing parents connect as well.
    has_loose_roots: bool,
}

/// Limit of reported missing blocks.
const GAPS_MAX: usize = 8;

impl<'a> Links<'a> {
    pub(crate) fn new(entries: &'a [Entry], genesis: &Header, genesis_hash: BlockHash) -> Self {
        let mut by_hash: Vec<Index> = (0..entries.len() as Index)
            .filter(|index| entries[*index as usize].hash != genesis_hash)
            .collect();
        by_hash.sort_unstable_by_key(|index| (entries[*index as usize].hash, *index));
        let mut links = Self {
            entries,
            genesis_copies: entries.len() - by_hash.len(),
            by_hash,
            genesis: genesis_hash,
            genesis_work: block_work(genesis.bits),
            parents: vec![COPY; entries.len()],
            order: Vec::new(),
            works: vec![U256::ZERO; entries.len()],
            has_loose_roots: false,
        };
        for place in 0..links.by_hash.len() {
            let index = links.by_hash[place];
            let hash = &links.entry(index).hash;
            if place == 0 || links.entry(links.by_hash[place - 1]).hash != *hash {
                links.parents[index as usize] = links.find(&links.entry(index).prev);
            }
        }
        links.connect();
        links
    }

    /// Connects every block: blocks without a parent start a piece of the chain, like the lowest blocks of a pruned node.
    pub(crate) fn with_loose_roots(mut self) -> Self {
        self.has_loose_roots = true;
        self.order.clear();
        self.connect();
        self
    }

    /// Computes order and work. Core accepts blocks in this way while it reads files: a block with an unknown parent waits for it
    /// (`validation.cpp`, `LoadExternalBlockFile`).
    fn connect(&mut self) {
        /// Child lists in file order: the first one, and the next after each.
        const END: Index = Index::MAX;
        let count = self.entries.len();
        let (mut first, mut next) = (vec![END; count], vec![END; count]);
        for index in (0..count as Index).rev() {
            let parent = self.parents[index as usize];
            if parent < COPY {
                next[index as usize] = first[parent as usize];
                first[parent as usize] = index;
            }
        }
        let mut done = 0;
        for index in 0..count as Index {
            let parent = self.parents[index as usize];
            let is_root = parent == GENESIS || parent == NONE && self.has_loose_roots;
            let is_ready = is_root || parent < COPY && self.is_connected(parent);
            if !is_ready {
                continue;
            }
            self.accept(index);
            // Descendants that have waited for it.
            while done < self.order.len() {
                let mut child = first[self.order[done] as usize];
                while child < index {
                    self.accept(child);
                    child = next[child as usize];
                }
                done += 1;
            }
        }
    }

    fn accept(&mut self, index: Index) {
        let below = match self.parents[index as usize] {
            GENESIS => self.genesis_work,
            NONE => U256::ZERO,
            parent => self.works[parent as usize],
        };
        self.works[index as usize] = below.wrapping_add(block_work(self.entry(index).bits));
        self.order.push(index);
    }

    pub(crate) fn entry(&self, index: Index) -> &'a Entry {
        &self.entries[index as usize]
    }

    /// The first copy of a block; [`GENESIS`] or [`NONE`].
    pub(crate) fn find(&self, hash: &BlockHash) -> Index {
        if *hash == self.genesis {
            return GENESIS;
        }
        let place = self.by_hash.partition_point(|index| self.entry(*index).hash < *hash);
        let found = self.by_hash.get(place).copied();
        found.filter(|index| self.entry(*index).hash == *hash).unwrap_or(NONE)
    }

    /// All copies of a block, in file order.
    pub(crate) fn copies(&'a self, index: Index) -> impl Iterator<Item = &'a Entry> + use<'a> {
        let hash = self.entry(index).hash;
        let place = self.by_hash.partition_point(|index| self.entry(*index).hash < hash);
        self.by_hash[place..]
            .iter()
            .map(|index| self.entry(*index))
            .take_while(move |entry| entry.hash == hash)
    }

    pub(crate) fn is_connected(&self, index: Index) -> bool {
        self.works[index as usize] != U256::ZERO
    }

    pub(crate) fn work(&self, index: Index) -> U256 {
        if index == GENESIS { self.genesis_work } else { self.works[index as usize] }
    }

    pub(crate) fn parent(&self, index: Index) -> Index {
        self.parents[index as usize]
    }

    /// Blocks that connect to genesis, parents before children.
    pub(crate) fn order(&self) -> &[Index] {
        &self.order
    }

    /// Every block once, in file order.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Index> + '_ {
        let is_block = |index: &Index| self.parents[*index as usize] != COPY;
        (0..self.entries.len() as Index).filter(is_block)
    }

    /// The entries from height 1 up to `tip`.
    pub(crate) fn branch(&self, tip: Index) -> Vec<Index> {
        let mut branch = Vec::new();
        let mut at = tip;
        while at < COPY {
            branch.push(at);
            at = self.parents[at as usize];
        }
        branch.reverse();
        branch
    }

    /// The first blocks of the files with missing parents, one per parent; without `roots`.
    pub(crate) fn gaps(&'a self, roots: &[Index]) -> Vec<Gap<'a>> {
        let mut gaps: Vec<Gap<'_>> = Vec::new();
        for index in self.blocks() {
            let child = self.entry(index);
            let is_loose = self.parents[index as usize] == NONE && !roots.contains(&index);
            if is_loose && !gaps.iter().any(|gap| gap.hash == child.prev) {
                let places = self.copies(index).map(|entry| entry.place).collect();
                gaps.push(Gap { hash: child.prev, child, places });
            }
            if gaps.len() == GAPS_MAX {
                break;
            }
        }
        gaps
    }

    pub(crate) fn entries(&self) -> usize {
        self.entries.len()
    }
}
