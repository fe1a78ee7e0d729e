//! Units of figures, and summaries of rounds.

use serde::{Deserialize, Serialize};

use crate::number;
use crate::stats::median;

/// Number of values from which the 95th percentile differs from the maximum.
const P95_COUNT_MIN: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Shown in milliseconds, microseconds or nanoseconds below one second.
    Seconds,
    /// Shown in KiB or MiB from 1 KiB on.
    Bytes,
    Count,
    PerSecond,
    Ratio,
    /// Hundredths.
    Percent,
}

impl Unit {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::Count => "count",
            Self::PerSecond => "per_second",
            Self::Ratio => "ratio",
            Self::Percent => "percent",
        }
    }

    pub fn format(self, value: f64) -> String {
        let (factor, suffix) = self.scale(value);
        self.number(value * factor) + suffix
    }

    /// Factor and suffix for values of this size.
    pub(super) fn scale(self, value: f64) -> (f64, &'static str) {
        match self {
            Self::Seconds if value > 0.0 && value < 1e-6 => (1e9, " ns"),
            Self::Seconds if value > 0.0 && value < 1e-3 => (1e6, " µs"),
            Self::Seconds if value > 0.0 && value < 1.0 => (1e3, " ms"),
            Self::Seconds => (1.0, " s"),
            Self::Bytes if value >= 1_048_576.0 => (1.0 / 1_048_576.0, " MiB"),
            Self::Bytes if value >= 1024.0 => (1.0 / 1024.0, " KiB"),
            Self::Bytes => (1.0, " B"),
            Self::Count => (1.0, ""),
            Self::PerSecond => (1.0, "/s"),
            Self::Ratio => (1.0, "×"),
            Self::Percent => (1.0, " %"),
        }
    }

    /// A scaled value with about four significant digits.
    fn number(self, value: f64) -> String {
        let decimals = match self {
            Self::Bytes | Self::Count if value.fract() == 0.0 => 0,
            Self::Bytes | Self::Count | Self::Percent => 1,
            Self::Seconds | Self::PerSecond | Self::Ratio => match value.abs() {
                size if size >= 1000.0 || size == 0.0 => 0,
                size if size >= 100.0 => 1,
                size if size >= 10.0 => 2,
                _ => 3,
            },
        };
        let text = format!("{:.decimals$}", value.abs());
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        let whole = whole.parse().map_or_else(|_| whole.to_owned(), number::count);
        let sign = if value < 0.0 { "-" } else { "" };
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{sign}{whole}{point}{fraction}")
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    pub count: usize,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// 95th percentile, of 20 values or more.
    pub p95: Option<f64>,
}

impl Summary {
    /// `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let rank = (sorted.len() * 95).div_ceil(100) - 1;
        let p95 = (sorted.len() >= P95_COUNT_MIN).then(|| sorted[rank]);
        Some(Self { count: sorted.len(), median: median(&sorted), min, max, p95 })
    }

    /// The value, with the ends of its interval if there are any; or median and range of several, in the scale of the median.
    pub fn text(&self, unit: Unit, ends: [Option<f64>; 2]) -> String {
        if self.count == 1 {
            let (factor, suffix) = unit.scale(self.median);
            let number = |value: f64| unit.number(value * factor);
            let interval = match ends {
                [Some(low), Some(high)] => format!(" ({} to {})", number(low), number(high)),
                _ => String::new(),
            };
            return format!("{}{suffix}{interval}", number(self.median));
        }
        if self.min.total_cmp(&self.max).is_eq() {
            return format!("{} (all {})", unit.format(self.median), self.count);
        }
        let (factor, suffix) = unit.scale(self.median);
        let [median, min, max] = [self.median, self.min, self.max].map(|x| unit.number(x * factor));
        let p95 =
            self.p95.map_or_else(String::new, |p95| format!(", p95 {}", unit.number(p95 * factor)));
        format!("{median}{suffix} ({min} to {max}{p95}; {})", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_their_scale() {
        for (unit, value, text) in [
            (Unit::Seconds, 0.0, "0 s"),
            (Unit::Seconds, 12.5e-9, "12.50 ns"),
            (Unit::Seconds, 0.000_123_4, "123.4 µs"),
            (Unit::Seconds, 0.001_234, "1.234 ms"),
            (Unit::Seconds, 0.5, "500.0 ms"),
            (Unit::Seconds, 1234.5, "1,234 s"),
            (Unit::Bytes, 1000.0, "1,000 B"),
            (Unit::Bytes, 2560.0, "2.5 KiB"),
            (Unit::Bytes, 177.0 * 1_048_576.0, "177 MiB"),
            (Unit::Count, 1_234_567.0, "1,234,567"),
            (Unit::Count, 2.5, "2.5"),
            (Unit::PerSecond, 5833.4, "5,833/s"),
            (Unit::Ratio, 1.034, "1.034×"),
            (Unit::Percent, -0.05, "-0.1 %"),
        ] {
            assert_eq!(unit.format(value), text);
        }
        let name = serde_json::to_string(&Unit::PerSecond).expect("JSON");
        assert_eq!(name, format!("\"{}\"", Unit::PerSecond.name()));
    }

    #[test]
    fn summaries_of_rounds() {
        assert_eq!(Summary::of(&[]), None);
        let text =
            |values: &[f64]| Summary::of(values).map(|all| all.text(Unit::Seconds, [None; 2]));
        assert_eq!(text(&[2.0]).as_deref(), Some("2.000 s"));
        assert_eq!(text(&[2.0, 2.0]).as_deref(), Some("2.000 s (all 2)"));
        assert_eq!(text(&[2.0, 0.5, 3.0]).as_deref(), Some("2.000 s (0.500 to 3.000; 3)"));
        let ratio = Summary::of(&[1.25]).map(|one| one.text(Unit::Ratio, [Some(1.2), Some(1.3)]));
        assert_eq!(ratio.as_deref(), Some("1.250× (1.200 to 1.300)"));
        let many: Vec<f64> = (1..=100).map(|value| f64::from(value) / 1e3).collect();
        assert_eq!(text(&many).as_deref(), Some("50.50 ms (1.000 to 100.0, p95 95.00; 100)"));
    }
}
