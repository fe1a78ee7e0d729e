//! Ratios of pairs from several machines.
//!
//! Pairs of one machine share its caches, its disk and its memory layout, so they only characterise that machine, whatever their
//! number. Ratios are therefore formed within each machine, every machine has the same weight, and machines are resampled before
//! their pairs (the two-stage bootstrap of Davison and Hinkley, "Bootstrap Methods and their Application", 1997, section 3.8).
//! With few machines every bootstrap is too narrow, as with few pairs, so the interval is again a hull: of the interval of pairs
//! alone ([`super::paired`]), of the bootstrap over machines, and of Student's interval over the machine means.

use serde::{Deserialize, Serialize};

use super::paired::{EQUIVALENCE_COVERAGE, Interval, Means, PairedRatio};
use super::ratio::WANTED_COVERAGE;
use super::{median, t_test};

/// Times in seconds of the pairs of one machine: first side, second side.
pub type PairTimes = (Vec<f64>, Vec<f64>);

/// Ratios with each machine as one sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineRatios {
    /// Median ratio per machine, in input order; `None` without pairs.
    pub medians: Vec<Option<f64>>,
    pub pairs: Vec<usize>,
    /// 95 % bootstrap interval of the geometric mean, over machines, then over their pairs; `None` for a single machine.
    pub bootstrap: Option<Interval>,
    /// 95 % Student's interval of the machine means; `None` for a single machine.
    pub student: Option<Interval>,
    /// p value of the t test of these means; `None` for a single machine.
    pub p: Option<f64>,
}

impl PairedRatio {
    /// Ratios of times in seconds, pair by pair, of each machine; `None` if empty, or for a time that is not above zero. A single
    /// machine gives the result of [`PairedRatio::of`].
    pub fn of_machines(machines: &[PairTimes]) -> Option<(Self, MachineRatios)> {
        let is_empty = |times: &PairTimes| times.0.is_empty() || times.1.is_empty();
        let each: Vec<Option<Self>> = machines
            .iter()
            .map(|times| (!is_empty(times)).then(|| Self::of(&times.0, &times.1)))
            .map(|ratio| ratio.map_or(Some(None), |ratio| ratio.map(Some)))
            .collect::<Option<_>>()?;
        let side = |of: fn(&PairTimes) -> &Vec<f64>| -> Vec<f64> {
            machines.iter().flat_map(|times| of(times).iter().copied()).collect()
        };
        let mut whole = Self::of(&side(|times| &times.0), &side(|times| &times.1))?;
        let mut found = MachineRatios {
            medians: each.iter().map(|ratio| Some(ratio.as_ref()?.median)).collect(),
            pairs: each.iter().map(|ratio| ratio.as_ref().map_or(0, |ratio| ratio.pairs)).collect(),
            bootstrap: None,
            student: None,
            p: None,
        };
        let logs: Vec<Vec<f64>> =
            machines.iter().filter(|times| !is_empty(times)).map(logarithms).collect();
        if logs.len() > 1 {
            whole.widen(&mut found, &logs);
        }
        Some((whole, found))
    }

    fn widen(&mut self, found: &mut MachineRatios, logs: &[Vec<f64>]) {
        let means: Vec<f64> = logs.iter().map(|logs| t_test::moments(logs).0).collect();
        let mut resampled = Means::of_groups(logs);
        let bootstrap = resampled.interval(WANTED_COVERAGE);
        let of_means = student(&means, WANTED_COVERAGE);
        let p = t_test::p_of_mean(&means);
        self.median = median(&found.medians.iter().copied().flatten().collect::<Vec<_>>());
        self.mean = t_test::moments(&means).0.exp();
        self.interval = self.interval.hull(bootstrap).hull(of_means);
        self.narrow = self
            .narrow
            .hull(resampled.interval(EQUIVALENCE_COVERAGE))
            .hull(student(&means, EQUIVALENCE_COVERAGE));
        // Bounds an A/A comparison.
        self.bootstrap = self.bootstrap.hull(bootstrap);
        // A difference must be significant over pairs and over machines.
        self.p = self.p.zip(p).map(|(pairs, machines)| pairs.max(machines));
        (found.bootstrap, found.student, found.p) = (Some(bootstrap), Some(of_means), p);
    }
}

fn logarithms((first_s, second_s): &PairTimes) -> Vec<f64> {
    first_s.iter().zip(second_s).map(|(a, b)| (a / b).ln()).collect()
}

/// For at least two means; unbounded for fewer.
fn student(means: &[f64], coverage: f64) -> Interval {
    match t_test::interval_of_mean(means, coverage) {
        Some((mean, half)) => Interval { low: (mean - half).exp(), high: (mean + half).exp() },
        None => Interval { low: 0.0, high: f64::MAX },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::random::SplitMix64;
    use crate::stats::verdict::FLOOR_MIN;

    /// Synthetic pairs of machines; each has its own random difference between two sides that are equal on average.
    struct Machines {
        random: SplitMix64,
        between: f64,
        within: f64,
    }

    impl Machines {
        /// Box and Muller 1958.
        fn normal(&mut self) -> f64 {
            let (radius, angle) = (1.0 - self.random.uniform(), self.random.uniform());
            (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
        }

        fn times(&mut self, machines: usize, pairs: usize, effect: f64) -> Vec<PairTimes> {
            (0..machines)
                .map(|machine| {
                    let (own, speed) = (self.between * self.normal(), 1.0 + machine as f64);
                    let first = (0..pairs)
                        .map(|_| speed * (effect + own + self.within * self.normal()).exp())
                        .collect();
                    (first, vec![speed; pairs])
                })
                .collect()
        }
    }

    fn verdict_is_difference(ratio: &PairedRatio) -> bool {
        ratio.verdict(FLOOR_MIN, 0.01, ratio.p).is_difference()
    }

    #[test]
    fn one_machine_equals_pairs() {
        let (first, second) = (vec![1.03, 1.01, 1.05, 0.99, 1.02, 1.04], vec![1.0; 6]);
        let (ratio, found) =
            PairedRatio::of_machines(&[(first.clone(), second.clone())]).expect("pairs");
        assert_eq!(Some(ratio), PairedRatio::of(&first, &second));
        assert_eq!((found.p, found.pairs), (None, vec![6]));
        let with_idle =
            PairedRatio::of_machines(&[(Vec::new(), Vec::new()), (first.clone(), second.clone())]);
        assert_eq!(with_idle.as_ref().map(|(ratio, _)| *ratio), Some(ratio));
        assert_eq!(with_idle.map(|(_, found)| found.pairs), Some(vec![0, 6]));
        assert_eq!(PairedRatio::of_machines(&[]), None);
        assert_eq!(PairedRatio::of_machines(&[(vec![1.0], vec![0.0])]), None);
    }

    #[test]
    fn every_machine_counts_once() {
        let many = (vec![1.2; 50], vec![1.0; 50]);
        let few = |ratio: f64| (vec![ratio; 2], vec![1.0; 2]);
        let (ratio, found) = PairedRatio::of_machines(&[many, few(1.0), few(1.1)]).expect("pairs");
        assert!((ratio.median - 1.1).abs() < 1e-12, "{ratio:?}");
        assert!((ratio.mean.ln() - (1.2f64.ln() + 1.1f64.ln()) / 3.0).abs() < 1e-12);
        assert_eq!((found.pairs, ratio.pairs), (vec![50, 2, 2], 54));
        assert!(ratio.interval.low < 1.0 && ratio.interval.high > 1.2, "{ratio:?}");
    }

    #[test]
    fn the_same_pairs_give_the_same_interval() {
        let times = |seed| {
            Machines { random: SplitMix64::new(seed), between: 0.01, within: 0.01 }.times(4, 3, 0.0)
        };
        assert_eq!(PairedRatio::of_machines(&times(7)), PairedRatio::of_machines(&times(7)));
        assert_ne!(PairedRatio::of_machines(&times(7)), PairedRatio::of_machines(&times(8)));
    }

    /// Pairs must not be pooled: here four machines with six pairs each differ by 2 % among themselves.
    #[test]
    fn ignores_differences_between_machines() {
        const COMPARISONS: u64 = 400;
        for count in [2, 3, 4, 8] {
            let (mut pooled, mut over_machines, mut held) = (0, 0, 0);
            for seed in 0..COMPARISONS {
                let mut machines =
                    Machines { random: SplitMix64::new(seed), between: 0.02, within: 0.003 };
                let times = machines.times(count, 6, 0.0);
                let side = |of: fn(&PairTimes) -> &Vec<f64>| -> Vec<f64> {
                    times.iter().flat_map(|times| of(times).clone()).collect()
                };
                let pairs = PairedRatio::of(&side(|t| &t.0), &side(|t| &t.1)).expect("pairs");
                let (ratio, _) = PairedRatio::of_machines(&times).expect("pairs");
                pooled += u64::from(verdict_is_difference(&pairs));
                over_machines += u64::from(verdict_is_difference(&ratio));
                held += u64::from(ratio.interval.low <= 1.0 && 1.0 <= ratio.interval.high);
            }
            let share = |count: u64| count as f64 / COMPARISONS as f64;
            let (pooled, found, held) = (share(pooled), share(over_machines), share(held));
            eprintln!("{count} machines: pooled {pooled}, over machines {found}, held {held}");
            assert!(pooled > 0.1, "{count} machines: pooled pairs are wrong in {pooled}");
            assert!(found <= 0.03, "{count} machines: {found} are false");
            assert!(held >= 0.93, "{count} machines: the interval holds 1 in {held}");
        }
    }

    #[test]
    fn detects_common_difference() {
        let is_found = |seed: &u64| {
            let mut machines =
                Machines { random: SplitMix64::new(*seed), between: 0.002, within: 0.01 };
            let (ratio, _) =
                PairedRatio::of_machines(&machines.times(4, 6, 1.05f64.ln())).expect("pairs");
            verdict_is_difference(&ratio)
        };
        let found = (0..200).filter(is_found).count();
        assert!(found >= 190, "{found} of 200");
    }
}
