//! Significance of differences: one rule for micro-benchmarks and for whole runs.

use serde::{Deserialize, Serialize};

use super::ratio::Ratio;

/// Coverage of intervals in verdicts on micro-benchmarks: at 95 % one of twenty A/A comparisons would differ, apart from the floor.
pub const COVERAGE: f64 = 0.99;

/// Smallest floor: code placement in memory causes differences of this size.
pub const FLOOR_MIN: f64 = 0.01;

/// Verdict on a ratio of the other's time over ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Faster,
    Slower,
    /// Any difference is shown to be smaller than the margin fixed in advance.
    Equivalent,
    /// No difference is shown, which does not exclude one.
    NotShown,
}

impl Verdict {
    /// A difference is shown if the interval has [`COVERAGE`] and excludes 1, and the median is over `floor` (0.01: 1 %) from 1.
    pub fn of(ratio: &Ratio, floor: f64) -> Self {
        Self::of_covered(ratio, floor, COVERAGE)
    }

    /// The same for intervals of another coverage.
    pub fn of_covered(ratio: &Ratio, floor: f64, wanted: f64) -> Self {
        let is_sure = ratio.coverage >= wanted;
        if is_sure && ratio.low > 1.0 && ratio.median > 1.0 + floor {
            Self::Faster
        } else if is_sure && ratio.high < 1.0 && ratio.median < 1.0 / (1.0 + floor) {
            Self::Slower
        } else {
            Self::NotShown
        }
    }

    pub const fn is_difference(self) -> bool {
        matches!(self, Self::Faster | Self::Slower)
    }

    pub const fn text(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Equivalent => "equivalent",
            Self::NotShown => "no difference shown",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn significance_criteria() {
        let ratio = |low, median, high| Ratio { median, low, high, coverage: 0.99, pairs: 15 };
        for (ratio, verdict) in [
            (ratio(1.02, 1.03, 1.04), Verdict::Faster),
            (ratio(0.96, 0.97, 0.98), Verdict::Slower),
            (ratio(0.99, 1.03, 1.05), Verdict::NotShown),
            (ratio(1.001, 1.005, 1.009), Verdict::NotShown),
            (ratio(0.991, 0.995, 0.999), Verdict::NotShown),
            (Ratio { coverage: 0.9, ..ratio(1.2, 1.3, 1.4) }, Verdict::NotShown),
        ] {
            assert_eq!(Verdict::of(&ratio, FLOOR_MIN), verdict, "{ratio:?}");
        }
        let few = Ratio { coverage: 0.96, ..ratio(1.02, 1.03, 1.04) };
        assert_eq!(Verdict::of_covered(&few, FLOOR_MIN, 0.95), Verdict::Faster);
    }
}
