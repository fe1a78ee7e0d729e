//! Statistics for few, long runs.

pub mod machines;
pub mod paired;
pub mod random;
pub mod ratio;
pub mod t_test;
pub mod verdict;

/// Median; zero if empty.
pub fn median(values: &[f64]) -> f64 {
    median_of(values.iter().copied()).unwrap_or(0.0)
}

/// Median; `None` if empty.
pub fn median_of(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some(f64::midpoint(sorted[middle - 1], sorted[middle])),
    }
}

/// Range relative to the median; `None` for fewer than two values.
pub fn spread(values: &[f64]) -> Option<f64> {
    let middle = median(values);
    if values.len() < 2 || middle <= 0.0 {
        return None;
    }
    let largest = values.iter().copied().fold(f64::MIN, f64::max);
    let smallest = values.iter().copied().fold(f64::MAX, f64::min);
    Some((largest - smallest) / middle)
}

/// `count / seconds`; zero without time.
pub fn rate(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert!(median(&[]).abs() < 1e-12);
        assert!((median(&[3.0]) - 3.0).abs() < 1e-12);
        assert!((median(&[9.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
    }

    #[test]
    fn spreads() {
        assert_eq!(spread(&[1.0]), None);
        assert_eq!(spread(&[0.0, 0.0]), None);
        assert!(spread(&[0.9, 1.0, 1.1]).is_some_and(|spread| (spread - 0.2).abs() < 1e-9));
    }

    #[test]
    fn rates_without_time() {
        assert!(rate(5.0, 0.0).abs() < 1e-12);
        assert!((rate(5.0, 2.0) - 2.5).abs() < 1e-12);
    }
}
