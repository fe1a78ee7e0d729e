//! Fits the growth of time with the width of transactions.
//!
//! Seconds per input at width n are modelled as `a + c/n + b·n^k`: the cost per input, the cost per transaction, and a growing
//! part. Hashing the whole transaction for every input has k = 1, so that a transaction of n inputs takes time proportional to
//! n²; hashes shared by all inputs have b = 0. The exponent is searched on a grid; the other three come from non-negative least
//! squares of relative deviations. Programs that hash several inputs at a time are flat for small widths, which a linear fit of
//! logarithms would misread as a smaller exponent.

use assay_report::stats::median;
use assay_report::stats::paired::Interval;
use assay_report::stats::random::SplitMix64;

/// Searched exponents: first coarsely, then around the best.
const EXPONENTS: (f64, f64) = (0.25, 3.0);
const COARSE_STEP: f64 = 0.05;
const FINE_STEP: f64 = 0.005;
/// Minimum widths of a fit with four parameters.
const WIDTHS_MIN: usize = 4;
/// Minimum measurements per width of an interval.
const TIMES_MIN: usize = 3;
const RESAMPLES: usize = 500;
/// Seed of the bootstrap: the same runs give the same interval.
const SEED: u64 = 0x7769_6474_6873;
/// Minimum growing share at the largest width for which an exponent is reported.
const SHARE_MIN: f64 = 0.1;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AtWidth {
    pub(crate) width: u32,
    /// Seconds per input: one list per run, one value per block.
    pub(crate) runs: Vec<Vec<f64>>,
}

impl AtWidth {
    pub(crate) fn all(&self) -> Vec<f64> {
        self.runs.iter().flatten().copied().collect()
    }
}

/// `a + c/n + b·n^k`, in seconds per input.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Fit {
    /// Cost per input, `a`.
    pub(crate) per_input: f64,
    /// Cost per transaction, `c`.
    pub(crate) per_tx: f64,
    /// Growing part at n = 1, `b`.
    pub(crate) growing: f64,
    pub(crate) exponent: f64,
    /// Root mean square of relative deviations.
    pub(crate) deviation: f64,
}

impl Fit {
    pub(crate) fn at(&self, width: f64) -> f64 {
        self.per_input + self.per_tx / width + self.growing * width.powf(self.exponent)
    }

    pub(crate) fn share(&self, width: f64) -> f64 {
        let all = self.at(width);
        if all > 0.0 { self.growing * width.powf(self.exponent) / all } else { 0.0 }
    }

    /// Fits times per input by width; `None` if too few.
    fn through(points: &[(f64, f64)]) -> Option<Self> {
        let is_time = |(width, time): &(f64, f64)| *width >= 1.0 && time.is_finite() && *time > 0.0;
        if points.len() < WIDTHS_MIN || !points.iter().all(is_time) {
            return None;
        }
        let coarse = Self::best(points, EXPONENTS, COARSE_STEP)?;
        let around = (
            (coarse.exponent - COARSE_STEP).max(EXPONENTS.0),
            (coarse.exponent + COARSE_STEP).min(EXPONENTS.1),
        );
        Self::best(points, around, FINE_STEP)
    }

    fn best(points: &[(f64, f64)], (from, to): (f64, f64), step: f64) -> Option<Self> {
        let steps = ((to - from) / step).round() as usize;
        (0..=steps)
            .filter_map(|at| Self::with_exponent(points, step.mul_add(at as f64, from)))
            .min_by(|left, right| left.deviation.total_cmp(&right.deviation))
    }

    /// Best fit of one exponent: of all subsets of parameters, the one with the smallest squares whose parameters are positive.
    fn with_exponent(points: &[(f64, f64)], exponent: f64) -> Option<Self> {
        let widest = points.iter().map(|point| point.0).fold(1.0, f64::max);
        let mut system = Normal::default();
        for (width, time) in points {
            // Divided by the time, so that deviations are relative; the growing column is scaled by its maximum for accuracy.
            system.add([1.0 / time, 1.0 / (width * time), (width / widest).powf(exponent) / time]);
        }
        let mut best: Option<(f64, [f64; 3])> = None;
        for chosen in 1..8 {
            let Some(parts) = system.solve(chosen) else { continue };
            let squares = system.squares(&parts);
            let is_better = best.as_ref().is_none_or(|(before, _)| squares < *before);
            if is_better && parts.iter().all(|part| *part >= 0.0) {
                best = Some((squares, parts));
            }
        }
        let (squares, [per_input, per_tx, at_widest]) = best?;
        Some(Self {
            per_input,
            per_tx,
            growing: at_widest / widest.powf(exponent),
            exponent,
            deviation: (squares / points.len() as f64).sqrt(),
        })
    }
}

/// Normal equations of `row · parts = 1` in three unknowns.
#[derive(Debug, Default)]
struct Normal {
    products: [[f64; 3]; 3],
    sums: [f64; 3],
    rows: f64,
}

impl Normal {
    fn add(&mut self, row: [f64; 3]) {
        for (left, products) in row.iter().zip(&mut self.products) {
            for (right, product) in row.iter().zip(products) {
                *product += left * right;
            }
        }
        for (cell, sum) in row.iter().zip(&mut self.sums) {
            *sum += cell;
        }
        self.rows += 1.0;
    }

    fn squares(&self, parts: &[f64; 3]) -> f64 {
        let mut squares = self.rows;
        for at in 0..3 {
            let product: f64 = (0..3).map(|other| self.products[at][other] * parts[other]).sum();
            squares += parts[at] * (product - 2.0 * self.sums[at]);
        }
        squares.max(0.0)
    }

    /// Least squares over the selected parameters; the others are zero.
    fn solve(&self, chosen: u8) -> Option<[f64; 3]> {
        let is_chosen = |at: usize| chosen >> at & 1 == 1;
        // Columns are normalised; an unselected one gets the equation `x = 0`.
        let mut length = [1.0; 3];
        let mut system = [[0.0; 4]; 3];
        for at in (0..3).filter(|at| is_chosen(*at)) {
            length[at] = self.products[at][at].sqrt();
        }
        for at in 0..3 {
            if !is_chosen(at) {
                system[at][at] = 1.0;
                continue;
            }
            for other in (0..3).filter(|other| is_chosen(*other)) {
                system[at][other] = self.products[at][other] / (length[at] * length[other]);
            }
            system[at][3] = self.sums[at] / length[at];
        }
        // Positive definite: elimination needs no pivoting.
        for at in 0..3 {
            let head = system[at];
            if head[at] < 1e-10 {
                return None;
            }
            for equation in &mut system[at + 1..] {
                let factor = equation[at] / head[at];
                for (value, of_head) in equation.iter_mut().zip(head) {
                    *value -= factor * of_head;
                }
            }
        }
        let mut parts = [0.0; 3];
        for at in (0..3).rev() {
            let known: f64 = (at + 1..3).map(|other| system[at][other] * parts[other]).sum();
            parts[at] = (system[at][3] - known) / system[at][at];
        }
        for (part, length) in parts.iter_mut().zip(length) {
            *part /= length;
        }
        Some(parts)
    }
}

/// Growth of the time of one kind of transaction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Growth {
    pub(crate) fit: Fit,
    pub(crate) widest: u32,
    /// Growing share of the time at the largest width.
    pub(crate) share: f64,
    /// Its 95 % interval: bootstrap over runs, and over blocks within them. `None` with too few measurements.
    pub(crate) share_interval: Option<Interval>,
    pub(crate) exponent_interval: Option<Interval>,
    /// Ratio of the time per input at the largest width to that at the best.
    pub(crate) times_best: f64,
    /// Width with the shortest time per input.
    pub(crate) best: u32,
}

impl Growth {
    /// Growth over some widths; `None` if too few.
    pub(crate) fn of(widths: &[AtWidth]) -> Option<Self> {
        let middle = |at: &AtWidth| (f64::from(at.width), median(&at.all()));
        let points: Vec<(f64, f64)> = widths.iter().map(middle).collect();
        let fit = Fit::through(&points)?;
        let (widest, at_widest) = points.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let (best, at_best) = points.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let fits = resample(widths);
        let interval = |value: &dyn Fn(&Fit) -> f64| {
            let mut values: Vec<f64> = fits.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            let cut = values.len() / 40;
            let (low, high) = (values.get(cut)?, values.get(values.len().checked_sub(cut + 1)?)?);
            Some(Interval { low: *low, high: *high })
        };
        Some(Self {
            share: fit.share(widest),
            share_interval: interval(&|fit| fit.share(widest)),
            exponent_interval: interval(&|fit| fit.exponent),
            fit,
            widest: widest as u32,
            times_best: at_widest / at_best,
            best: best as u32,
        })
    }

    /// True if growth is significant and not negligible.
    pub(crate) fn is_shown(&self) -> bool {
        self.share_interval.map_or(self.share, |interval| interval.low) > SHARE_MIN
    }
}

/// Fits of resampled runs, and of resampled blocks within them; empty with too few measurements.
fn resample(widths: &[AtWidth]) -> Vec<Fit> {
    let runs = widths.iter().map(|at| at.runs.len()).min().unwrap_or(0);
    if runs == 0 || widths.iter().any(|at| at.all().len() < TIMES_MIN) {
        return Vec::new();
    }
    let mut random = SplitMix64::new(SEED);
    let mut fits = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        // A run affects all widths, so it is resampled for all together.
        let chosen: Vec<usize> = (0..runs).map(|_| random.below(runs as u64) as usize).collect();
        let mut points = Vec::with_capacity(widths.len());
        for at in widths {
            let mut times = Vec::new();
            for run in &chosen {
                let of_run = &at.runs[*run];
                times.extend(
                    of_run.iter().map(|_| of_run[random.below(of_run.len() as u64) as usize]),
                );
            }
            points.push((f64::from(at.width), median(&times)));
        }
        fits.extend(Fit::through(&points));
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    const WIDTHS: [u32; 7] = [1, 10, 100, 500, 1000, 2500, 5000];

    /// Times of three runs of four blocks, with noise of this size.
    fn measured(noise: f64, time: impl Fn(f64) -> f64) -> Vec<AtWidth> {
        let mut random = SplitMix64::new(5);
        let mut uneven = || 1.0 + noise * (random.below(2001) as f64 / 1000.0 - 1.0);
        WIDTHS
            .iter()
            .map(|width| AtWidth {
                width: *width,
                runs: (0..3)
                    .map(|_| (0..4).map(|_| time(f64::from(*width)) * uneven()).collect())
                    .collect(),
            })
            .collect()
    }

    #[test]
    fn exact_times_are_found() {
        for exponent in [0.5, 1.0, 2.0] {
            let made = Fit {
                per_input: 20e-6,
                per_tx: 8e-6,
                growing: 90e-6 / 5000f64.powf(exponent),
                exponent,
                deviation: 0.0,
            };
            let growth = Growth::of(&measured(0.0, |n| made.at(n))).expect("enough widths");
            let close = |left: f64, right: f64| (left - right).abs() < 1e-3 * right;
            assert!(close(growth.fit.exponent, exponent), "{growth:?}");
            assert!(close(growth.fit.per_input, made.per_input), "{growth:?}");
            assert!(close(growth.fit.per_tx, made.per_tx), "{growth:?}");
            assert!(close(growth.fit.growing, made.growing), "{growth:?}");
            assert!(growth.is_shown() && growth.widest == 5000, "{growth:?}");
        }
    }

    #[test]
    fn quadratic_hashing_is_seen_through_noise() {
        let growth = Growth::of(&measured(0.05, |n| 20e-6 + 5e-6 / n + 3e-8 * n)).expect("enough");
        let exponent = growth.exponent_interval.expect("enough times");
        assert!(exponent.low < 1.0 && 1.0 < exponent.high, "{growth:?}");
        assert!(exponent.high - exponent.low < 0.5, "{growth:?}");
        assert!(growth.is_shown(), "{growth:?}");
        assert!((growth.share - 0.88).abs() < 0.05, "{growth:?}");
        assert!((7.5..9.0).contains(&growth.times_best), "{growth:?}");
    }

    #[test]
    fn shared_hashes_show_no_growth() {
        for noise in [0.0, 0.05] {
            let growth = Growth::of(&measured(noise, |n| 20e-6 + 5e-6 / n)).expect("enough");
            assert!(!growth.is_shown(), "{growth:?}");
        }
        // Lanes: wide transactions are cheaper than narrow ones.
        let growth = Growth::of(&measured(0.02, |n| 20e-6 - 1e-9 * n)).expect("enough");
        assert!(!growth.is_shown() && growth.fit.growing < 1e-12, "{growth:?}");
    }

    #[test]
    fn widths_of_phases() {
        let plan = Plan::builtin("sighash-scaling").expect("valid");
        let [legacy, ..] = &plan.scaling[..] else { panic!("there are kinds") };
        assert_eq!(legacy.width("legacy-2500"), Some(2500));
        for other in ["legacy", "legacy-", "legacy-0", "legacy-+1", "segwit-1", "legacy-1-1"] {
            assert_eq!(legacy.width(other), None, "{other}");
        }
        let mut plans = Plan::BUILTIN.into_iter();
        let (_, text) = plans.find(|(name, _)| *name == "sighash-scaling").expect("built in");
        for (from, to) in [("series = \"segwit\"", "series = \"legacy\""), ("\"segwit\"", "\"\"")] {
            let error = Plan::parse(&text.replacen(from, to, 1), "plan.toml");
            let error = error.expect_err("must be refused").to_string();
            assert!(error.starts_with("plan.toml: scaling.series = "), "{error}");
        }
    }

    #[test]
    fn too_few_measurements() {
        let few = measured(0.0, |n| n)[..3].to_vec();
        assert_eq!(Growth::of(&few), None);
        assert_eq!(Growth::of(&[]), None);
        let mut once = measured(0.0, |n| 1e-6 * n);
        for at in &mut once {
            at.runs.truncate(1);
            at.runs[0].truncate(2);
        }
        let growth = Growth::of(&once).expect("a fit");
        assert_eq!((growth.exponent_interval, growth.share_interval), (None, None));
        assert_eq!(Growth::of(&measured(0.0, |_| 0.0)), None);
    }
}
