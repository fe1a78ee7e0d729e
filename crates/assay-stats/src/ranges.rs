//! Sums over ranges of heights.

use serde::Serialize;

use crate::block_set::Heights;
use crate::counts::Counts;
use crate::rows::BlockRow;

/// Default number of ranges.
const RANGES: u32 = 100;

/// Sums over a range of heights.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RangeRow {
    pub first: u32,
    pub last: u32,
    #[serde(flatten)]
    pub counts: Counts,
}

/// Equal ranges that cover a chain.
#[derive(Clone, Debug)]
pub struct Ranges {
    first: u32,
    step: u32,
    rows: Vec<RangeRow>,
    total: Counts,
}

impl Ranges {
    /// Ranges of `step` heights each, or about a hundred of them.
    pub fn new(heights: Heights, step: Option<u32>) -> Self {
        let Heights { first, last } = heights;
        let count = last.saturating_sub(first).saturating_add(1);
        let step = step.unwrap_or_else(|| count.div_ceil(RANGES)).max(1);
        Self { first, step, rows: Vec::new(), total: Counts::default() }
    }

    /// Adds a block, in order of height.
    pub fn add(&mut self, row: &BlockRow) {
        self.total.add(&row.counts);
        let number = row.height.saturating_sub(self.first) / self.step;
        let first = self.first + number * self.step;
        match self.rows.last_mut() {
            Some(range) if range.first == first => {
                range.last = row.height;
                range.counts.add(&row.counts);
            }
            _ => self.rows.push(RangeRow { first, last: row.height, counts: row.counts.clone() }),
        }
    }

    /// The ranges with blocks.
    pub fn rows(&self) -> &[RangeRow] {
        &self.rows
    }

    pub fn total(&self) -> &Counts {
        &self.total
    }
}

#[cfg(test)]
mod tests {
    use assay_store::BlockPlace;
    use assay_wire::BlockHash;

    use super::*;

    fn row(height: u32) -> BlockRow {
        let counts = Counts {
            blocks: 1,
            inputs: u64::from(height),
            largest_tx_inputs: u64::from(height),
            ..Counts::default()
        };
        BlockRow {
            height,
            hash: BlockHash::ZERO,
            time: 0,
            version: 1,
            bits: 0,
            place: BlockPlace { file: 0, offset: 0, size: 0 },
            counts,
        }
    }

    fn cut(first: u32, last: u32, step: Option<u32>) -> Vec<(u32, u32, u64)> {
        let mut ranges = Ranges::new(Heights { first, last }, step);
        (first..=last).for_each(|height| ranges.add(&row(height)));
        let blocks: u64 = ranges.rows().iter().map(|range| range.counts.blocks).sum();
        assert_eq!(blocks, u64::from(last - first + 1));
        assert_eq!(ranges.total().largest_tx_inputs, u64::from(last));
        ranges.rows().iter().map(|range| (range.first, range.last, range.counts.blocks)).collect()
    }

    #[test]
    fn ranges_cover_the_chain() {
        assert_eq!(cut(1, 7, Some(3)), [(1, 3, 3), (4, 6, 3), (7, 7, 1)]);
        assert_eq!(cut(0, 0, None), [(0, 0, 1)]);
        assert_eq!(cut(0, 99, None).len(), 100);
        assert_eq!(cut(0, 100, None).len(), 51);
        assert_eq!(cut(5, 9, Some(100)), [(5, 9, 5)]);
    }
}
