//! Statistics of few, long runs in pairs.
//!
//! A pair is one run of each side in immediate succession; the statistic is the logarithm of the ratio of their times. Whole runs
//! are resampled, never blocks within them, because blocks of a run are correlated (Kalibera and Jones, "Rigorous Benchmarking in
//! Reasonable Time", 2013). With few pairs every bootstrap interval is too narrow, percentile and corrected ones alike, because
//! six values do not determine their own variance. So the interval is the hull of two: that of the bootstrap, and the one between
//! sorted ratios, whose coverage is exact for every distribution ([`super::ratio`]).

use serde::{Deserialize, Serialize};

use super::random::SplitMix64;
use super::ratio::{Ratio, WANTED_COVERAGE};
use super::t_test;
use super::verdict::Verdict;

/// Coverage of the interval that has to lie within ±δ: two one-sided tests at 5 % each (Schuirmann 1987).
pub(super) const EQUIVALENCE_COVERAGE: f64 = 0.90;
/// Significance level of adjusted p values: half of 5 % for the totals, and half for all other rows.
const P_MAX: f64 = 0.025;
const RESAMPLES: usize = 10_000;
/// Seed of the bootstrap: the same runs give the same interval.
const SEED: u64 = 0x6173_7361_7921;

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// Smallest interval that contains both.
    #[must_use]
    pub(super) fn hull(self, other: Self) -> Self {
        Self { low: self.low.min(other.low), high: self.high.max(other.high) }
    }
}

/// Distribution of one side's times, without pairing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub mean_s: f64,
    /// Sample standard deviation in seconds.
    pub sigma_s: f64,
    pub min_s: f64,
    pub max_s: f64,
}

impl Spread {
    /// Summary of the times; zeros if empty.
    pub fn of(times_s: &[f64]) -> Self {
        let (mean_s, variance) = t_test::moments(times_s);
        let pick = |choose: fn(f64, f64) -> f64| times_s.iter().copied().reduce(choose);
        Self {
            mean_s,
            sigma_s: variance.sqrt(),
            min_s: pick(f64::min).unwrap_or(0.0),
            max_s: pick(f64::max).unwrap_or(0.0),
        }
    }
}

/// Times of the first side over times of the second: above 1 the second is faster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedRatio {
    pub pairs: usize,
    /// Median of the pair ratios: the estimate.
    pub median: f64,
    pub mean: f64,
    /// Hull of the two intervals below.
    pub interval: Interval,
    /// Minimum coverage of the hull for every distribution.
    pub coverage: f64,
    /// 95 % bootstrap interval of the geometric mean, over pairs.
    pub bootstrap: Interval,
    /// Interval between sorted ratios.
    pub order: Interval,
    /// Hull of the 90 % intervals, for the equivalence test.
    pub narrow: Interval,
    /// Minimum coverage of `narrow`.
    pub narrow_coverage: f64,
    /// p value of Student's t test of the logarithms; `None` for a single pair.
    pub p: Option<f64>,
}

impl PairedRatio {
    /// Ratio of times in seconds, pair by pair; `None` if empty, or for a time that is not above zero.
    pub fn of(first_s: &[f64], second_s: &[f64]) -> Option<Self> {
        let pairs = first_s.len().min(second_s.len());
        let (first_s, second_s) = (&first_s[..pairs], &second_s[..pairs]);
        let is_time = |time: &f64| time.is_finite() && *time > 0.0;
        if pairs == 0 || !first_s.iter().chain(second_s).all(is_time) {
            return None;
        }
        let logs: Vec<f64> = first_s.iter().zip(second_s).map(|(a, b)| (a / b).ln()).collect();
        let wide = Ratio::of_pairs_covered(first_s, second_s, WANTED_COVERAGE)?;
        let narrow = Ratio::of_pairs_covered(first_s, second_s, EQUIVALENCE_COVERAGE)?;
        let mut means = Means::of(&logs);
        let of_ratio = |ratio: &Ratio| Interval { low: ratio.low, high: ratio.high };
        let bootstrap = means.interval(WANTED_COVERAGE);
        Some(Self {
            pairs,
            median: wide.median,
            mean: t_test::moments(&logs).0.exp(),
            interval: bootstrap.hull(of_ratio(&wide)),
            coverage: wide.coverage,
            bootstrap,
            order: of_ratio(&wide),
            narrow: means.interval(EQUIVALENCE_COVERAGE).hull(of_ratio(&narrow)),
            narrow_coverage: narrow.coverage,
            p: t_test::p_of_mean(&logs),
        })
    }

    /// Largest distance of the mean ratio from 1 by the bootstrap: for an A/A pair this is a noise floor of other comparisons.
    pub fn reach(&self) -> f64 {
        self.bootstrap.high.max(1.0 / self.bootstrap.low) - 1.0
    }

    /// A difference is significant under four criteria, all fixed in advance: the interval has 95 % coverage and excludes 1; the
    /// median is further from 1 than `floor`; and the p value, adjusted for the number of rows, is below 2.5 %. Otherwise the two
    /// are equivalent if the 90 % interval lies within ±`delta`, which must be at least the floor, since smaller differences
    /// cannot be distinguished from noise.
    pub fn verdict(&self, floor: f64, delta: f64, p_adjusted: Option<f64>) -> Verdict {
        let ratio = Ratio {
            median: self.median,
            low: self.interval.low,
            high: self.interval.high,
            coverage: self.coverage,
            pairs: self.pairs,
        };
        let difference = Verdict::of_covered(&ratio, floor, WANTED_COVERAGE);
        if difference.is_difference() && p_adjusted.is_some_and(|p| p <= P_MAX) {
            return difference;
        }
        let is_small = self.narrow.low > 1.0 / (1.0 + delta) && self.narrow.high < 1.0 + delta;
        if is_small && self.narrow_coverage >= EQUIVALENCE_COVERAGE && delta >= floor {
            Verdict::Equivalent
        } else {
            Verdict::NotShown
        }
    }
}

/// Adjusts p values for their number (Holm 1979), since one of twenty questions is expected to be significant at 5 % by chance.
pub fn holm(probabilities: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut order: Vec<usize> =
        (0..probabilities.len()).filter(|index| probabilities[*index].is_some()).collect();
    let of = |index: usize| probabilities[index].unwrap_or(1.0);
    order.sort_by(|a, b| of(*a).total_cmp(&of(*b)));
    let mut adjusted = vec![None; probabilities.len()];
    let mut largest = 0.0f64;
    for (rank, index) in order.iter().enumerate() {
        largest = largest.max(of(*index) * (order.len() - rank) as f64).min(1.0);
        adjusted[*index] = Some(largest);
    }
    adjusted
}

/// Means of resampled logarithms.
pub(super) struct Means(Vec<f64>);

impl Means {
    fn of(logs: &[f64]) -> Self {
        let mut random = SplitMix64::new(SEED);
        let count = logs.len() as u64;
        let mut mean = || {
            let sum: f64 = (0..count).map(|_| logs[random.below(count) as usize]).sum();
            sum / count as f64
        };
        Self((0..RESAMPLES).map(|_| mean()).collect())
    }

    /// Resamples groups, then values within them; each group has the same weight, whatever its size.
    pub(super) fn of_groups(groups: &[Vec<f64>]) -> Self {
        let mut random = SplitMix64::new(SEED);
        let mut mean = || {
            let mut sum = 0.0;
            for _ in groups {
                let group = &groups[random.below(groups.len() as u64) as usize];
                let count = group.len() as u64;
                let logs = (0..count).map(|_| group[random.below(count) as usize]);
                sum += logs.sum::<f64>() / count as f64;
            }
            sum / groups.len() as f64
        };
        Self((0..RESAMPLES).map(|_| mean()).collect())
    }

    /// The percentile interval: quantiles commute with the exponential, so that ratios need no correction.
    pub(super) fn interval(&mut self, coverage: f64) -> Interval {
        let tail = ((1.0 - coverage) / 2.0 * RESAMPLES as f64) as usize;
        let mut quantile = |rank: usize| {
            let (_, value, _) = self.0.select_nth_unstable_by(rank, f64::total_cmp);
            value.exp()
        };
        Interval { low: quantile(tail), high: quantile(RESAMPLES - 1 - tail) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::verdict::FLOOR_MIN;

    #[test]
    fn six_equal_pairs() {
        let ratio = PairedRatio::of(&[1.05; 6], &[1.0; 6]).expect("pairs");
        assert!((ratio.median - 1.05).abs() < 1e-12 && (ratio.mean - 1.05).abs() < 1e-12);
        assert!(ratio.coverage > 0.95 && ratio.p == Some(0.0));
        assert_eq!(ratio.verdict(FLOOR_MIN, 0.01, ratio.p), Verdict::Faster);
        assert_eq!(ratio.verdict(0.06, 0.01, ratio.p), Verdict::NotShown, "below the floor");
        assert_eq!(ratio.verdict(FLOOR_MIN, 0.01, Some(0.06)), Verdict::NotShown, "by chance");
        let same = PairedRatio::of(&[2.0; 6], &[2.0; 6]).expect("pairs");
        assert_eq!(same.verdict(0.01, 0.01, same.p), Verdict::Equivalent);
        assert_eq!(same.verdict(0.02, 0.01, same.p), Verdict::NotShown, "the floor is above δ");
    }

    #[test]
    fn five_pairs_show_no_difference_and_four_no_equality() {
        let five = PairedRatio::of(&[1.2; 5], &[1.0; 5]).expect("pairs");
        assert_eq!(five.verdict(FLOOR_MIN, 0.01, five.p), Verdict::NotShown);
        let same = |pairs: usize| PairedRatio::of(&vec![1.0; pairs], &vec![1.0; pairs]);
        let verdict = |pairs| same(pairs).expect("pairs").verdict(0.01, 0.01, None);
        assert_eq!((verdict(5), verdict(4)), (Verdict::Equivalent, Verdict::NotShown));
    }

    #[test]
    fn no_times_no_ratio() {
        assert_eq!(PairedRatio::of(&[], &[]), None);
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(PairedRatio::of(&[wrong], &[1.0]), None);
            assert_eq!(PairedRatio::of(&[1.0], &[wrong]), None);
        }
        let one = PairedRatio::of(&[2.0], &[1.0]).expect("a pair");
        assert_eq!((one.p, one.coverage), (None, 0.0));
    }

    #[test]
    fn adjusted_probabilities() {
        let of = |values: &[f64]| holm(&values.iter().map(|p| Some(*p)).collect::<Vec<_>>());
        let close = |found: Option<f64>, wanted: f64| (found.expect("one") - wanted).abs() < 1e-12;
        let found = of(&[0.04, 0.01, 0.03]);
        assert!(close(found[0], 0.06) && close(found[1], 0.03) && close(found[2], 0.06));
        assert!(close(of(&[0.9, 0.8])[0], 1.0));
        assert_eq!(holm(&[None, Some(0.02)]), [None, Some(0.02)]);
    }

    #[test]
    fn spreads() {
        assert_eq!(Spread::of(&[]), Spread::default());
        let spread = Spread::of(&[1.0, 2.0, 3.0]);
        assert!((spread.mean_s - 2.0).abs() < 1e-12 && (spread.sigma_s - 1.0).abs() < 1e-12);
        assert!((spread.min_s - 1.0).abs() < 1e-12 && (spread.max_s - 3.0).abs() < 1e-12);
    }
}
