//! The facts that the rules need from the chain that a block extends.

use assay_wire::BlockHash;

/// The facts that the rules need from one header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderFacts {
    pub hash: BlockHash,
    pub time: u32,
    pub bits: u32,
}

/// The headers from the genesis block to the parent of the block in question.
///
/// The code that stores the headers implements this. The rules never walk a data structure of their own.
pub trait Ancestors {
    /// Height of the parent of the block in question.
    fn tip_height(&self) -> u32;

    /// The header at `height`, which is at most [`Ancestors::tip_height`].
    fn header_at(&self, height: u32) -> HeaderFacts;

    /// The median of the last eleven timestamps up to and including `height`; of fewer near the
    /// genesis block (BIP113).
    fn median_time_past_at(&self, height: u32) -> u32 {
        let first = height.saturating_sub(MEDIAN_TIME_SPAN - 1);
        let mut times = [0u32; MEDIAN_TIME_SPAN as usize];
        let count = (height - first + 1) as usize;
        for (time, at) in times.iter_mut().zip(first..=height) {
            *time = self.header_at(at).time;
        }
        median_time(&mut times[..count])
    }
}

/// Number of blocks that the median time past covers, the last one included.
pub const MEDIAN_TIME_SPAN: u32 = 11;

/// The median of `times`, which it sorts; of an even number the upper of the two middle ones.
///
/// # Panics
/// When `times` is empty.
pub fn median_time(times: &mut [u32]) -> u32 {
    times.sort_unstable();
    times[times.len() / 2]
}

/// A chain that lies in memory as a whole, genesis first.
impl Ancestors for [HeaderFacts] {
    fn tip_height(&self) -> u32 {
        self.len().saturating_sub(1) as u32
    }

    fn header_at(&self, height: u32) -> HeaderFacts {
        self[height as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_few_and_of_eleven() {
        let times = [10u32, 30, 20, 50, 40, 60, 80, 70, 100, 90, 110, 5];
        let chain: Vec<HeaderFacts> = times
            .iter()
            .map(|time| HeaderFacts { hash: BlockHash::ZERO, time: *time, bits: 0 })
            .collect();
        let at = |height| chain.as_slice().median_time_past_at(height);
        assert_eq!(at(0), 10);
        assert_eq!(at(1), 30, "of two, the upper");
        assert_eq!(at(2), 20);
        assert_eq!(at(10), 60);
        assert_eq!(at(11), 60, "the first has left, 5 has come");
    }
}
