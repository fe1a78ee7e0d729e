//! Proportional integer allocation without cumulative error, so that the chain's totals match the recipe.

use crate::random::Stream;

/// Allocates items of several kinds by share, and tracks the remainders.
#[derive(Clone, Debug)]
pub(crate) struct Shares {
    shares: Vec<f64>,
    made: Vec<u64>,
}

impl Shares {
    pub(crate) fn new(shares: &[f64]) -> Self {
        Self { shares: shares.to_vec(), made: vec![0; shares.len()] }
    }

    /// Number of each kind among the next `count`, such that no kind ever deviates from its share of the total by more than one.
    pub(crate) fn next(&mut self, count: u64) -> Vec<u64> {
        let total = (self.made.iter().sum::<u64>() + count) as f64;
        let missing = |made: u64, share: f64| share * total - made as f64;
        let mut given: Vec<u64> = (self.made.iter().zip(&self.shares))
            .map(|(made, share)| missing(*made, *share).floor().max(0.0) as u64)
            .collect();
        loop {
            let sum: u64 = given.iter().sum();
            if sum == count {
                break;
            }
            let rest = |at: usize| {
                missing(self.made[at] + given[at], self.shares[at]) * SIGN[usize::from(sum > count)]
            };
            let can =
                |at: &usize| if sum > count { given[*at] > 0 } else { self.shares[*at] > 0.0 };
            let best = (0..given.len()).filter(can).max_by(|a, b| {
                // The first of equals: `max_by` returns the last.
                rest(*a).total_cmp(&rest(*b)).then(b.cmp(a))
            });
            let best = best.expect("shares add up to one, so one is positive");
            if sum > count { given[best] -= 1 } else { given[best] += 1 }
        }
        self.made.iter_mut().zip(&given).for_each(|(made, given)| *made += given);
        given
    }

    /// The same as a list of kinds in random order.
    pub(crate) fn shuffled(&mut self, count: usize, stream: &mut Stream) -> Vec<u8> {
        let given = self.next(count as u64);
        let mut list = Vec::with_capacity(count);
        for (kind, given) in (0u8..).zip(given) {
            list.extend(std::iter::repeat_n(kind, given as usize));
        }
        shuffle(&mut list, stream);
        list
    }
}

/// Deficits and surpluses.
const SIGN: [f64; 2] = [1.0, -1.0];

/// Integer steps of a fractional mean: their sum deviates from the mean's by less than one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FractionalSum {
    due: f64,
}

impl FractionalSum {
    /// Adds the fraction `more`, and returns the integer part of the total.
    pub(crate) fn take(&mut self, more: f64) -> u64 {
        self.due += more;
        let whole = self.due.floor().max(0.0);
        self.due -= whole;
        whole as u64
    }
}

/// Shuffles a list (Fisher and Yates).
pub(crate) fn shuffle<T>(list: &mut [T], stream: &mut Stream) {
    for at in (1..list.len()).rev() {
        list.swap(at, stream.below(at as u32 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact_over_any_steps() {
        let parts = [0.57, 0.0, 0.3, 0.129, 0.001];
        let mut shares = Shares::new(&parts);
        let mut stream = Stream::plain(1, 1, 1);
        let mut made = [0u64; 5];
        for _ in 0..2_000 {
            let count = u64::from(stream.below(7));
            let given = shares.next(count);
            assert_eq!(given.iter().sum::<u64>(), count);
            made.iter_mut().zip(&given).for_each(|(made, given)| *made += given);
            let total: u64 = made.iter().sum();
            for (made, part) in made.iter().zip(parts) {
                assert!((*made as f64 - part * total as f64).abs() <= 1.5, "{made} of {total}");
            }
        }
        assert_eq!(made[1], 0);
    }

    #[test]
    fn means_are_exact_over_any_steps() {
        let mut sum_of_steps = FractionalSum::default();
        let sum: u64 = (0..1_000).map(|_| sum_of_steps.take(0.173)).sum();
        assert!((172..=173).contains(&sum), "{sum}");
    }
}
