//! Student's t test for means and differences of means.

use std::f64::consts::TAU;

/// Mean and sample variance; zeros for too few values.
pub fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    if values.is_empty() {
        return (0.0, 0.0);
    }
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, if values.len() < 2 { 0.0 } else { squares / (count - 1.0) })
}

/// Two-sided p value of a mean against zero; `None` for fewer than two values.
pub fn p_of_mean(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let (mean, variance) = moments(values);
    let count = values.len() as f64;
    Some(two_sided(mean, (variance / count).sqrt(), count - 1.0))
}

/// Mean, and half the width of its interval with this coverage; `None` for fewer than two values.
pub fn interval_of_mean(values: &[f64], coverage: f64) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let (mean, variance) = moments(values);
    let count = values.len() as f64;
    Some((mean, quantile(1.0 - coverage, count - 1.0) * (variance / count).sqrt()))
}

/// Quantile with this two-sided tail probability, by bisection.
fn quantile(both_tails: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided(high, 1.0, freedom) > both_tails && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if two_sided(middle, 1.0, freedom) > both_tails { low = middle } else { high = middle }
    }
    high
}

/// Two-sided p value of a difference of two means with a common variance; `None` for fewer than three values in total.
pub fn p_of_difference(left: &[f64], right: &[f64]) -> Option<f64> {
    let (n_left, n_right) = (left.len() as f64, right.len() as f64);
    let freedom = n_left + n_right - 2.0;
    if left.is_empty() || right.is_empty() || freedom < 1.0 {
        return None;
    }
    let ((mean_left, var_left), (mean_right, var_right)) = (moments(left), moments(right));
    let pooled = ((n_left - 1.0) * var_left + (n_right - 1.0) * var_right) / freedom;
    let error = (pooled * (1.0 / n_left + 1.0 / n_right)).sqrt();
    Some(two_sided(mean_left - mean_right, error, freedom))
}

/// Both tails beyond `difference / error`.
fn two_sided(difference: f64, error: f64, freedom: f64) -> f64 {
    if difference == 0.0 {
        return 1.0;
    }
    if error <= 0.0 {
        return 0.0;
    }
    let t = difference / error;
    incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The regularised incomplete beta function by its continued fraction (Abramowitz and Stegun 26.5.8) and Lentz's method of 1976.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast below the mean; above it, the other tail is computed.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front =
        (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() / a;
    let away = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..500 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / away(1.0 + even * d);
        c = away(1.0 + even / c);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / away(1.0 + odd * d);
        c = away(1.0 + odd / c);
        let factor = d * c;
        fraction *= factor;
        if (factor - 1.0).abs() < 1e-14 {
            break;
        }
    }
    (front * fraction).clamp(0.0, 1.0)
}

/// Logarithm of the gamma function of a positive number: Stirling's series, shifted to where five terms give 13 digits.
fn ln_gamma(x: f64) -> f64 {
    let mut shift = 0.0;
    let mut x = x;
    while x < 12.0 {
        shift += x.ln();
        x += 1.0;
    }
    let inverse = 1.0 / (x * x);
    let series = (1.0 / 12.0
        - inverse
            * (1.0 / 360.0
                - inverse * (1.0 / 1260.0 - inverse * (1.0 / 1680.0 - inverse / 1188.0))))
        / x;
    (x - 0.5) * x.ln() - x + 0.5 * TAU.ln() + series - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Quantiles of published tables: degrees of freedom, t, probability of both tails.
    #[test]
    fn tails_of_the_tables() {
        for (freedom, t, p) in [
            (1.0, 12.706_205, 0.05),
            (2.0, 4.302_653, 0.05),
            (5.0, 2.570_582, 0.05),
            (5.0, 4.032_143, 0.01),
            (10.0, 4.586_894, 0.001),
            (30.0, 2.042_272, 0.05),
            (120.0, 1.657_651, 0.1),
        ] {
            let found = two_sided(t, 1.0, freedom);
            assert!((found - p).abs() < 1e-6, "{freedom} {t}: {found}");
            assert!((quantile(p, freedom) - t).abs() < 1e-4 * t, "{freedom} {p}");
        }
    }

    #[test]
    fn means() {
        assert_eq!(p_of_mean(&[1.0]), None);
        assert_eq!(p_of_mean(&[0.0, 0.0]), Some(1.0));
        assert_eq!(p_of_mean(&[2.0, 2.0]), Some(0.0));
        // t = 3 / (1.5811 / sqrt 5) = 4.2426 with four degrees of freedom.
        let p = p_of_mean(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("five values");
        assert!((p - 0.013_235).abs() < 1e-5, "{p}");
        assert_eq!(p_of_difference(&[1.0], &[2.0]), None);
        let p = p_of_difference(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).expect("six values");
        assert!((p - 0.021_312).abs() < 1e-5, "{p}");
    }

    #[test]
    fn factorials() {
        for (x, expected) in [(1.0, 0.0), (5.0, 24.0f64.ln()), (0.5, 0.572_364_942_924_7)] {
            assert!((ln_gamma(x) - expected).abs() < 1e-12, "{x}");
        }
    }
}
