//! Ratios of paired measurements, with a distribution-free interval.
//!
//! Interleaved measurements see the same machine state, so the ratio of neighbours is steadier than the ratio of averages. The
//! estimate is the median of these ratios; the interval runs between two of the sorted ratios, chosen so that the true median
//! lies between them with at least [`WANTED_COVERAGE`] for every distribution (sign test: David and Nagaraja, "Order Statistics",
//! section 7.1). With fewer than six pairs not even the extremes reach that, so the interval includes its actual coverage.

use serde::{Deserialize, Serialize};

use super::median;

/// Coverage of an interval with enough pairs.
pub const WANTED_COVERAGE: f64 = 0.95;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    /// Probability that such an interval contains the true median.
    pub coverage: f64,
    pub pairs: usize,
}

impl Ratio {
    /// Ratio of `numerators` to `denominators`, pair by pair; `None` if empty, or for a denominator that is not positive.
    pub fn of_pairs(numerators: &[f64], denominators: &[f64]) -> Option<Self> {
        Self::of_pairs_covered(numerators, denominators, WANTED_COVERAGE)
    }

    /// The same with an interval of another coverage.
    pub fn of_pairs_covered(numerators: &[f64], denominators: &[f64], wanted: f64) -> Option<Self> {
        let pairs = numerators.len().min(denominators.len());
        if pairs == 0 || denominators[..pairs].iter().any(|value| *value <= 0.0) {
            return None;
        }
        let mut ratios: Vec<f64> =
            numerators.iter().zip(denominators).map(|(above, below)| above / below).collect();
        ratios.sort_by(f64::total_cmp);
        let (rank, coverage) = interval_rank(pairs, wanted);
        Some(Self {
            median: median(&ratios),
            low: ratios[rank - 1],
            high: ratios[pairs - rank],
            coverage,
            pairs,
        })
    }

    /// Ratio of two medians of unpaired values, which were not interleaved. Each median has its own interval with half of the
    /// error probability; the ratio lies between their extreme quotients.
    pub fn of_medians(numerators: &[f64], denominators: &[f64], wanted: f64) -> Option<Self> {
        let each = 1.0 - (1.0 - wanted) / 2.0;
        let (above, below) = (interval(numerators, each)?, interval(denominators, each)?);
        if below.1 <= 0.0 {
            return None;
        }
        Some(Self {
            median: above.0 / below.0,
            low: above.1 / below.2,
            high: above.2 / below.1,
            coverage: (above.3 + below.3 - 1.0).max(0.0),
            pairs: numerators.len().min(denominators.len()),
        })
    }
}

/// Median, interval ends, and coverage.
fn interval(values: &[f64], wanted: f64) -> Option<(f64, f64, f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (rank, coverage) = interval_rank(sorted.len(), wanted);
    let (low, high) = (*sorted.get(rank - 1)?, *sorted.get(sorted.len().checked_sub(rank)?)?);
    Some((median(&sorted), low, high, coverage))
}

/// Rank from both ends of `count` sorted values that bounds the interval, and its coverage.
fn interval_rank(count: usize, wanted: f64) -> (usize, f64) {
    // The number of values below the median is binomial with one half; `tail` is P(fewer than `rank` of them).
    let mut term = 0.5f64.powi(count as i32);
    let (mut rank, mut tail) = (1, term);
    while rank < count / 2 {
        term *= (count + 1 - rank) as f64 / rank as f64;
        if 1.0 - 2.0 * (tail + term) < wanted {
            break;
        }
        tail += term;
        rank += 1;
    }
    (rank, (1.0 - 2.0 * tail).max(0.0))
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub median: f64,
    /// Median absolute deviation from the median, in percent of it.
    pub err_percent: f64,
    pub min: f64,
    pub max: f64,
}

impl Summary {
    /// Summary of the values; zeros if empty.
    pub fn of(values: &[f64]) -> Self {
        let middle = median(values);
        let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
        let err_percent = if middle > 0.0 { median(&deviations) * 100.0 / middle } else { 0.0 };
        let pick = |choose: fn(f64, f64) -> f64| values.iter().copied().reduce(choose);
        Self {
            median: middle,
            err_percent,
            min: pick(f64::min).unwrap_or(0.0),
            max: pick(f64::max).unwrap_or(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::SplitMix64;

    /// Published tables of confidence intervals for the median: n, rank, coverage.
    #[test]
    fn ranks_of_the_tables() {
        for (count, rank, coverage) in [
            (1, 1, 0.0),
            (2, 1, 0.5),
            (5, 1, 0.9375),
            (6, 1, 0.96875),
            (8, 1, 0.992_187_5),
            (9, 2, 0.960_937_5),
            (20, 6, 0.958_61),
            (25, 8, 0.956_71),
            (100, 40, 0.964_8),
        ] {
            let found = interval_rank(count, WANTED_COVERAGE);
            assert_eq!(found.0, rank, "{count}");
            assert!((found.1 - coverage).abs() < 1e-4, "{count}: {}", found.1);
        }
    }

    #[test]
    fn ratios_are_those_of_pairs() {
        assert_eq!(Ratio::of_pairs(&[], &[]), None);
        assert_eq!(Ratio::of_pairs(&[1.0], &[0.0]), None);
        // The machine is twice as slow in the second pair, which affects both sides.
        let ratio = Ratio::of_pairs(&[30.0, 60.0, 33.0], &[10.0, 20.0, 10.0]).expect("pairs");
        assert!((ratio.median - 3.0).abs() < 1e-12);
        assert!((ratio.low - 3.0).abs() < 1e-12 && (ratio.high - 3.3).abs() < 1e-12);
    }

    #[test]
    fn unpaired_medians() {
        assert_eq!(Ratio::of_medians(&[], &[1.0], 0.95), None);
        assert_eq!(Ratio::of_medians(&[1.0], &[0.0], 0.95), None);
        let values =
            |scale: f64| (0..21).map(|n| scale * (100.0 + f64::from(n))).collect::<Vec<_>>();
        let ratio = Ratio::of_medians(&values(2.0), &values(1.0), 0.95).expect("values");
        assert!((ratio.median - 2.0).abs() < 1e-12 && ratio.low < 2.0 && ratio.high > 2.0);
        assert!(ratio.coverage >= 0.95 && ratio.high - ratio.low < 0.5, "{ratio:?}");
    }

    #[test]
    fn intervals_have_their_coverage() {
        const EXPERIMENTS: usize = 4000;
        let mut random = SplitMix64::new(5);
        let mut unit = || (random.next() >> 11) as f64 / (1u64 << 53) as f64;
        for pairs in [5, 11, 21] {
            let mut held = 0;
            for _ in 0..EXPERIMENTS {
                // Times with a long tail, of two equal alternatives.
                let mut times =
                    || -> Vec<f64> { (0..pairs).map(|_| 1.0 / (0.05 + unit())).collect() };
                let (left, right) = (times(), times());
                let ratio = Ratio::of_pairs(&left, &right).expect("pairs");
                held += usize::from(ratio.low <= 1.0 && 1.0 <= ratio.high);
            }
            let (_, coverage) = interval_rank(pairs, WANTED_COVERAGE);
            let share = held as f64 / EXPERIMENTS as f64;
            assert!(
                (share - coverage).abs() < 0.02,
                "{pairs} pairs: {share} instead of {coverage}"
            );
        }
    }

    #[test]
    fn summaries() {
        assert_eq!(Summary::of(&[]), Summary::default());
        let summary = Summary::of(&[10.0, 11.0, 9.0, 10.0, 90.0]);
        assert!((summary.median - 10.0).abs() < 1e-12);
        assert!((summary.err_percent - 10.0).abs() < 1e-9);
        assert!((summary.min - 9.0).abs() < 1e-12 && (summary.max - 90.0).abs() < 1e-12);
    }
}
