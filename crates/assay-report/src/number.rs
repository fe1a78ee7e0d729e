//! Number formats of tables.

/// Text of a missing measurement.
pub const UNAVAILABLE: &str = "unavailable";

/// A count with thousands separators.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A rate with about four significant digits.
pub fn rate(value: f64) -> String {
    match value {
        value if !value.is_finite() => UNAVAILABLE.to_owned(),
        value if value >= 10_000.0 => count(value.round() as u64),
        value if value >= 100.0 => {
            let tenths = (value * 10.0).round() as u64;
            format!("{}.{}", count(tenths / 10), tenths % 10)
        }
        value => format!("{value:.3}"),
    }
}

pub fn seconds(value: f64) -> String {
    format!("{value:.3}")
}

/// Three digits, and all before the point.
pub fn three_digits(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Three digits in a suitable unit.
pub fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns >= 1e9 => (ns / 1e9, "s"),
        ns if ns >= 1e6 => (ns / 1e6, "ms"),
        ns if ns >= 1e3 => (ns / 1e3, "µs"),
        ns => (ns, "ns"),
    };
    format!("{} {unit}", three_digits(value))
}

pub fn mib(bytes: u64) -> String {
    let tenths = (bytes as f64 / 1_048_576.0 * 10.0).round() as u64;
    format!("{}.{}", count(tenths / 10), tenths % 10)
}

pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A share in whole percent for file names.
pub fn in_percent(share: f64) -> u32 {
    (share * 100.0).round() as u32
}

/// A share in reports: `90 %`.
pub fn whole_percent(share: f64) -> String {
    format!("{} %", in_percent(share))
}

pub fn ratio(value: f64) -> String {
    match value {
        value if !value.is_finite() => UNAVAILABLE.to_owned(),
        value if value >= 100.0 => format!("{}×", count(value.round() as u64)),
        value if value >= 10.0 => format!("{value:.1}×"),
        value => format!("{value:.2}×"),
    }
}

/// A value, or the text for a missing one.
pub fn or_unavailable<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNAVAILABLE.to_owned(), show)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let rates = [0.0, 5.794, 99.9994, 708.7, 5833.4, 151_667.5, f64::NAN].map(rate);
        let shown = ["0.000", "5.794", "99.999", "708.7", "5,833.4", "151,668", UNAVAILABLE];
        assert_eq!(rates, shown);
        let shown = [0.5, 12.0, 1_946.67, 384_400.0, 23.3e6, 2.5e9].map(duration);
        assert_eq!(shown, ["0.50 ns", "12.0 ns", "1.95 µs", "384 µs", "23.3 ms", "2.50 s"]);
        assert_eq!(mib(177 << 20), "177.0");
        assert_eq!([0.5, 12.34, 1234.0].map(ratio), ["0.50×", "12.3×", "1,234×"]);
        assert_eq!((percent(0.8999), whole_percent(0.9)), ("90.0 %".into(), "90 %".into()));
    }
}
