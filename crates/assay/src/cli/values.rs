//! Values of flags: durations, sizes, deliveries.

use std::time::Duration;

use assay_lab::plan::Delivery;

/// A duration with its unit: 500ms, 30s, 2m.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (count, unit) = text.split_at(digits);
    let unit_ms = match unit {
        "ms" => 1,
        "s" | "" => 1000,
        "m" => 60_000,
        _ => return Err("give a number with ms, s or m".to_owned()),
    };
    let count: u64 = count.parse().map_err(|_| "give a number with ms, s or m".to_owned())?;
    match count.checked_mul(unit_ms) {
        Some(0) | None => Err("give more than nothing and less than eternity".to_owned()),
        Some(milliseconds) => Ok(Duration::from_millis(milliseconds)),
    }
}

/// A size as a number or a word.
pub(super) fn scale(text: &str) -> Result<f64, String> {
    match text {
        "small" => Ok(0.05),
        "medium" => Ok(0.3),
        "large" => Ok(1.0),
        number => number.parse().map_err(|_| "give a number, small, medium or large".to_owned()),
    }
}

/// A way in which blocks come.
pub(super) fn delivery(text: &str) -> Result<Delivery, String> {
    let ways = Delivery::ALL.map(Delivery::as_str).join(", ");
    Delivery::from_name(text).ok_or_else(|| format!("give one of {ways}"))
}
