//! Benchmarks of the harness itself: the same work twice, and three percent more work.
//!
//! The first measures the floor of verdicts; the harness must detect the second.

use std::hint::black_box;

use anyhow::Result;
use assay_report::stats::ratio::Summary;
use assay_report::stats::verdict::FLOOR_MIN;

use crate::Progress;
use crate::harness::{Alternative, Rounds, compare};
use crate::suite::{Benchmark, Extent, Suite};

/// Steps of the work; a step is a few dependent instructions.
const STEPS: u64 = 10_000;

/// Three percent more.
const MORE_STEPS: u64 = STEPS * 103 / 100;

/// A/A comparisons that determine the floor.
const FLOOR_COMPARISONS: usize = 9;

/// Work with a number of instructions proportional to the steps.
pub(crate) fn work(steps: u64) -> u64 {
    let mut state = black_box(0x9e37_79b9_7f4a_7c15u64);
    for _ in 0..black_box(steps) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}

/// The section `harness`, which no plan sets.
#[derive(Clone, Copy, Debug, Default)]
pub struct SelfCheckSuite;

impl Suite for SelfCheckSuite {
    fn benchmarks(&self, _: Extent) -> Result<Vec<Benchmark<'_>>> {
        let benchmark = |name: &str, steps: [(&'static str, u64); 2]| {
            Benchmark::new(format!("harness/{name}"), "", move |_| {
                let alternative =
                    |(name, steps): (&str, u64)| Alternative::calls(name, move || work(steps));
                Ok(steps.map(alternative).into())
            })
        };
        Ok(vec![
            benchmark("same", [("first", STEPS), ("second", STEPS)]),
            benchmark("three-percent", [("more", MORE_STEPS), ("less", STEPS)]),
        ])
    }
}

/// Current A/A noise floor of this machine: twice the median shift of several comparisons, as a fraction. The maximum would
/// reflect a single disturbance; shifts of a whole comparison appear in its interval.
///
/// # Errors
/// Never; the work cannot fail.
pub fn measure_floor(rounds: usize, progress: &dyn Progress) -> Result<f64> {
    progress.begin("the same work against itself", FLOOR_COMPARISONS as u64);
    let mut shifts = Vec::with_capacity(FLOOR_COMPARISONS);
    for _ in 0..FLOOR_COMPARISONS {
        let mut both = ["first", "second"].map(|name| Alternative::calls(name, || work(STEPS)));
        let row = compare("floor", &mut both, Rounds { count: rounds, warm_up: 1 }, &mut || {})?;
        let ratio = row.ratio("first", "second").map_or(1.0, |ratio| ratio.median);
        shifts.push(ratio.max(1.0 / ratio) - 1.0);
        progress.step();
    }
    Ok(2.0 * Summary::of(&shifts).median)
}

/// The floor of verdicts: the measured one, at least [`FLOOR_MIN`].
pub fn floor(measured: Option<f64>) -> f64 {
    measured.unwrap_or(0.0).max(FLOOR_MIN)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::Silent;
    use crate::harness::Sample;
    use crate::results::comparisons;
    use assay_report::stats::verdict::Verdict;

    /// Comparisons in a series, and the allowed number of false differences.
    const SERIES: usize = 20;
    const WRONG_MAX: usize = 1;

    /// A simulated machine with drift, heavy-tailed noise and occasional interference.
    struct Machine {
        state: u64,
        epochs: f64,
        /// Standard deviation of an ordinary epoch, as a fraction.
        noise: f64,
    }

    impl Machine {
        fn new(seed: u64, noise: f64) -> Self {
            Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, epochs: 0.0, noise }
        }

        /// Uniform between 0 and 1 (xorshift64*, Vigna 2016).
        fn uniform(&mut self) -> f64 {
            self.state ^= self.state >> 12;
            self.state ^= self.state << 25;
            self.state ^= self.state >> 27;
            (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
        }

        fn epoch(&mut self, true_ns: f64) -> Sample {
            self.epochs += 1.0;
            // Warms up, with an oscillating clock frequency.
            let drift = 1.0 + 0.001 * self.epochs + 0.02 * (self.epochs / 7.0).sin();
            // Box and Muller 1958.
            let (radius, angle) = (self.uniform().max(1e-300), self.uniform());
            let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
            let mut factor = drift * (1.0 + self.noise * normal);
            if self.uniform() < 0.1 {
                // Pareto with exponent 1.5: its variance is infinite.
                factor *= 1.0 + 0.02 * self.uniform().max(1e-9).powf(-1.0 / 1.5);
            }
            Sample::timed(1000, (true_ns * factor.max(0.1) * 1000.0) as u64, 0)
        }
    }

    fn verdict(rounds: usize, left: &mut Alternative<'_>, right: &mut Alternative<'_>) -> Verdict {
        // `compare` needs both at once; their state stays separate.
        let mut both = [
            Alternative::fallible("left", || left.epoch()),
            Alternative::fallible("right", || right.epoch()),
        ];
        let rounds = Rounds { count: rounds, warm_up: 1 };
        let row = compare("aa", &mut both, rounds, &mut || {}).expect("no failure");
        comparisons(&row, FLOOR_MIN, |_| "left")[0].verdict
    }

    fn made_up(seed: u64, noise: f64, rounds: usize, [left, right]: [f64; 2]) -> Verdict {
        let machine = &RefCell::new(Machine::new(seed, noise));
        let alternative =
            |ns: f64| Alternative::new("made up", move || machine.borrow_mut().epoch(ns));
        verdict(rounds, &mut alternative(left), &mut alternative(right))
    }

    #[test]
    fn the_same_is_called_the_same_on_any_machine() {
        const ALL: u64 = 800;
        for (noise, rounds) in [(0.002, 15), (0.01, 15), (0.05, 21), (0.3, 21)] {
            let (mut wrong, mut bad_series) = (0, 0);
            for series in 0..ALL {
                let seeds = (0..SERIES as u64).map(|number| 1 + series * SERIES as u64 + number);
                let here = seeds
                    .filter(|seed| {
                        made_up(*seed, noise, rounds, [100.0, 100.0]) != Verdict::NotShown
                    })
                    .count();
                wrong += here;
                bad_series += usize::from(here > WRONG_MAX);
            }
            let wrong = wrong as f64 / (ALL * SERIES as u64) as f64;
            let bad_series = bad_series as f64 / ALL as f64;
            assert!(wrong <= 0.01, "noise {noise}: {wrong} of all comparisons");
            assert!(bad_series <= 0.015, "noise {noise}: {bad_series} of all series");
        }
    }

    #[test]
    fn three_percent_are_found() {
        const ALL: u64 = 1000;
        for (noise, rounds) in [(0.002, 21), (0.01, 21), (0.02, 81)] {
            for (times, expected) in
                [([103.0, 100.0], Verdict::Faster), ([100.0, 103.0], Verdict::Slower)]
            {
                let found = (1..=ALL)
                    .filter(|seed| made_up(*seed, noise, rounds, times) == expected)
                    .count();
                assert!(found as f64 >= 0.97 * ALL as f64, "noise {noise}: {found} of {ALL}");
            }
        }
    }

    /// Real times. Chance spoils at most one series in a hundred, so three spoilt ones are a fault.
    #[test]
    fn the_same_work_is_called_the_same_here() {
        let is_spoilt = || {
            let wrong = (0..SERIES).filter(|_| {
                let [mut left, mut right] =
                    ["left", "right"].map(|name| Alternative::calls(name, || work(STEPS / 10)));
                verdict(9, &mut left, &mut right) != Verdict::NotShown
            });
            wrong.count() > WRONG_MAX
        };
        assert!(!(0..3).all(|_| is_spoilt()), "three series of {SERIES} in a row");
    }

    #[test]
    fn floors_are_never_below_the_least() {
        assert!(
            (floor(None) - FLOOR_MIN).abs() < 1e-12 && (floor(Some(0.03)) - 0.03).abs() < 1e-12
        );
        let measured = measure_floor(1, &Silent).expect("no failure");
        assert!(measured.is_finite() && measured >= 0.0);
    }
}
