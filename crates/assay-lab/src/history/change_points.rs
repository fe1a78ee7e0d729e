//! Change point detection: places where a series permanently changes its level.
//!
//! E-divisive means (Matteson and James 2014) finds the split with the largest difference between both sides. Student's t test
//! decides on its significance instead of random permutations, as in Hunter (Fleming and Kołaczkowski 2023), so that the same
//! figures always give the same points. Splits are found top down, each between its neighbours; then those that are not
//! significant between their final neighbours are removed, the weakest first.

use assay_report::stats::t_test::{moments, p_of_difference};

/// Minimum number of values on either side of a change: a single one is an outlier until another follows.
const SIDE_MIN: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value of the new level.
    pub index: usize,
    /// Mean from the previous change to this one.
    pub before: f64,
    /// Mean from this change to the next.
    pub after: f64,
    pub p: f64,
}

/// Changes of a series in order, each with a p value of at most `p_max` and a relative size of at least `size_min`.
///
/// Values are compared directly; pass logarithms to compare ratios.
pub fn change_points(values: &[f64], p_max: f64, size_min: f64) -> Vec<ChangePoint> {
    let mut splits = vec![0, values.len()];
    divide(values, 0, p_max, &mut splits);
    splits.sort_unstable();
    // A change within a long stretch may be insignificant between its final neighbours.
    loop {
        let points = points(values, &splits);
        let is_weak =
            |point: &&ChangePoint| point.p > p_max || (point.after - point.before).abs() < size_min;
        let weakest = points.iter().filter(is_weak).max_by(|a, b| a.p.total_cmp(&b.p));
        match weakest.map(|point| point.index) {
            Some(index) => splits.retain(|split| *split != index),
            None => return points,
        }
    }
}

fn points(values: &[f64], splits: &[usize]) -> Vec<ChangePoint> {
    splits
        .windows(3)
        .map(|ends| {
            let (left, right) = (&values[ends[0]..ends[1]], &values[ends[1]..ends[2]]);
            ChangePoint {
                index: ends[1],
                before: moments(left).0,
                after: moments(right).0,
                p: p_of_difference(left, right).unwrap_or(1.0),
            }
        })
        .collect()
}

/// Splits `values`, which begin at `offset`, at the largest difference, and then both parts.
fn divide(values: &[f64], offset: usize, p_max: f64, splits: &mut Vec<usize>) {
    let Some(at) = best_split(values) else { return };
    let (left, right) = values.split_at(at);
    if p_of_difference(left, right).is_none_or(|p| p > p_max) {
        return;
    }
    splits.push(offset + at);
    divide(left, offset, p_max, splits);
    divide(right, offset + at, p_max, splits);
}

/// The split with the largest energy distance: mn/(m+n) · (2 E|X−Y| − E|X−X'| − E|Y−Y'|).
fn best_split(values: &[f64]) -> Option<usize> {
    let count = values.len();
    if count < 2 * SIDE_MIN {
        return None;
    }
    // Sums of distances within both sides and between them, updated as each value changes sides.
    let to = |index: usize, others: &[f64]| -> f64 {
        others.iter().map(|other| (values[index] - other).abs()).sum()
    };
    let all: f64 = (0..count).map(|index| to(index, &values[index + 1..])).sum();
    let (mut within_left, mut within_right, mut between) = (0.0, all, 0.0);
    let mut best: Option<(f64, usize)> = None;
    for at in 1..count {
        let (to_left, to_right) = (to(at - 1, &values[..at - 1]), to(at - 1, &values[at..]));
        within_left += to_left;
        within_right -= to_right;
        between += to_right - to_left;
        if at < SIDE_MIN || count - at < SIDE_MIN {
            continue;
        }
        let (m, n) = (at as f64, (count - at) as f64);
        let mean = |sum: f64, pairs: f64| if pairs > 0.0 { sum / pairs } else { 0.0 };
        let distance = 2.0 * between / (m * n)
            - mean(within_left, m * (m - 1.0) / 2.0)
            - mean(within_right, n * (n - 1.0) / 2.0);
        let energy = m * n / (m + n) * distance;
        if best.is_none_or(|(most, _)| energy > most) {
            best = Some((energy, at));
        }
    }
    best.map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_report::stats::random::SplitMix64;

    fn noisy(seed: u64, levels: &[(usize, f64)], noise: f64) -> Vec<f64> {
        let mut random = SplitMix64::new(seed);
        let mut uniform = || ((random.next() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        // Twelve uniform numbers approximate a normal one.
        let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        let level = |(count, level): &(usize, f64)| vec![*level; *count];
        levels.iter().flat_map(level).map(|level| level + noise * normal()).collect()
    }

    #[test]
    fn locates_steps() {
        for seed in 0..200 {
            let values = noisy(seed, &[(20, 1.0), (15, 1.05), (25, 0.97)], 0.008);
            let found: Vec<usize> =
                change_points(&values, 0.001, 0.0).iter().map(|point| point.index).collect();
            assert!(found.iter().any(|at| at.abs_diff(20) <= 1), "{seed}: {found:?}");
            assert!(found.iter().any(|at| at.abs_diff(35) <= 1), "{seed}: {found:?}");
            assert!(found.len() <= 4, "{seed}: {found:?}");
        }
    }

    #[test]
    fn noise_has_few_steps() {
        let with_any = (0..1000u64)
            .filter(|seed| !change_points(&noisy(*seed, &[(40, 1.0)], 0.01), 0.001, 0.0).is_empty())
            .count();
        eprintln!("of 1000 series of noise, {with_any} have a change");
        assert!(with_any <= 50, "{with_any} of 1000");
    }

    #[test]
    fn outliers_and_short_series() {
        let mut values = vec![1.0; 20];
        values[10] = 1.5;
        assert!(change_points(&values, 0.001, 0.0).is_empty());
        for count in 0..4 {
            assert!(change_points(&[1.0, 1.0, 9.0][..count.min(3)], 0.001, 0.0).is_empty());
        }
        let steps = change_points(&[1.0, 1.0, 2.0, 2.0], 0.001, 0.0);
        assert_eq!(steps.len(), 1);
        assert!(steps[0].index == 2 && (steps[0].after - 2.0).abs() < 1e-12);
        assert!(change_points(&[1.0, 1.0, 2.0, 2.0], 0.001, 1.5).is_empty(), "too small to matter");
    }

    /// The incremental sums equal those of the definition.
    #[test]
    fn energy_equals_definition() {
        let values = noisy(3, &[(6, 0.0), (5, 2.0)], 1.0);
        let mean = |pairs: Vec<(f64, f64)>| {
            pairs.iter().map(|(a, b)| (a - b).abs()).sum::<f64>() / pairs.len().max(1) as f64
        };
        let within = |side: &[f64]| {
            let of = |i: usize| (i + 1..side.len()).map(move |j| (i, j));
            mean((0..side.len()).flat_map(of).map(|(i, j)| (side[i], side[j])).collect())
        };
        let energy = |at: usize| {
            let (left, right) = values.split_at(at);
            let both = left.iter().flat_map(|a| right.iter().map(move |b| (*a, *b))).collect();
            let share = (left.len() * right.len()) as f64 / values.len() as f64;
            share * (2.0 * mean(both) - within(left) - within(right))
        };
        let best = (2..=9).max_by(|a, b| energy(*a).total_cmp(&energy(*b)));
        assert_eq!(best_split(&values), best);
    }
}
