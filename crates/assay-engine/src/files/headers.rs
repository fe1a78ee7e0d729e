//! Headers found in block files, and one branch of them by height.

use assay_consensus::chain::{Ancestors, HeaderFacts, MEDIAN_TIME_SPAN, median_time};
use assay_consensus::header::{HeaderError, contextual_check_header};
use assay_consensus::params::ChainParams;
use assay_wire::{BlockHash, Header};

use super::links::{Entry, Index, Links};

/// One branch of valid headers, by height.
pub(crate) struct Chain<'e> {
    genesis: HeaderFacts,
    links: &'e Links<'e>,
    /// From height 1 on.
    branch: Vec<Index>,
    /// From height 0 on.
    median_times: Vec<u32>,
    /// From height 1 on: true if a branch with more work may disconnect the block.
    pub(crate) rivals: Vec<bool>,
}

impl<'e> Chain<'e> {
    /// A chain of only the genesis block.
    pub(crate) fn new(genesis: &Header, hash: BlockHash, links: &'e Links<'e>) -> Self {
        Self {
            genesis: HeaderFacts { hash, time: genesis.time, bits: genesis.bits },
            links,
            branch: Vec::new(),
            median_times: vec![genesis.time],
            rivals: Vec::new(),
        }
    }

    /// Height of the last block.
    pub(crate) fn height(&self) -> u32 {
        self.branch.len() as u32
    }

    /// The block at `height`, from 1 to [`Chain::height`].
    pub(crate) fn entry(&self, height: u32) -> &'e Entry {
        self.links.entry(self.branch[height as usize - 1])
    }

    /// Every copy of the block at `height`, as for [`Chain::entry`], in file order.
    pub(crate) fn copies(&self, height: u32) -> impl Iterator<Item = &'e Entry> + use<'e> {
        self.links.copies(self.branch[height as usize - 1])
    }

    /// The branch from height 1 on.
    pub(crate) fn branch(&self) -> &[Index] {
        &self.branch
    }

    /// The last common block of this chain and the first `height` blocks of another.
    pub(crate) fn fork(&self, other: &Chain<'_>, height: u32) -> u32 {
        let own = &self.branch[..self.branch.len().min(height as usize)];
        own.iter().zip(&other.branch).take_while(|(a, b)| a == b).count() as u32
    }

    /// True if a branch with as much work or more may disconnect the block at `height`.
    pub(crate) fn has_rival(&self, height: u32) -> bool {
        self.rivals.get((height as usize).wrapping_sub(1)).copied().unwrap_or(false)
    }

    pub(crate) fn hash(&self, height: u32) -> BlockHash {
        if height == 0 { self.genesis.hash } else { self.entry(height).hash }
    }

    /// Sum of the block sizes in an inclusive range of heights.
    pub(crate) fn bytes(&self, heights: std::ops::RangeInclusive<u32>) -> u64 {
        heights.map(|height| u64::from(self.entry(height).place.size)).sum()
    }

    /// The chain up to `height`, as the rules read it.
    pub(crate) fn up_to(&self, height: u32) -> ChainView<'_> {
        ChainView { chain: self, height }
    }

    /// Adds a header if it is valid at its position.
    pub(crate) fn push(
        &mut self,
        params: &ChainParams,
        index: Index,
        now_s: i64,
    ) -> Result<(), HeaderError> {
        let header = self.links.entry(index).header();
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
