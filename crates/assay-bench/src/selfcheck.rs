//! Benchmarks of the harness itself: the same work twice, and work with three percent more of it.
//!
//! The first is what the floor of verdicts is measured with, the second what a harness has to find.

use std::hint::black_box;

use crate::harness::{Alternative, Rounds, Row, compare};
use crate::suite::{Benchmark, Extent, Published, Study, Suite};
use crate::verdict::FLOOR_MIN;
use crate::{BenchError, Progress};

/// Steps of the work; a step is a handful of instructions, each of which waits for the one before.
const STEPS: u64 = 10_000;

/// Three percent more.
const MORE_STEPS: u64 = STEPS * 103 / 100;

/// Comparisons of the same work that the floor is taken from.
const FLOOR_COMPARISONS: usize = 8;

/// Work that takes as many instructions as there are steps, times a constant, and nothing else.
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
    fn benchmarks(&self, _: Extent) -> Result<Vec<Benchmark<'_>>, BenchError> {
        let benchmark = |name: &str, steps: [(&'static str, u64); 2]| Benchmark {
            name: format!("harness/{name}"),
            series: format!("harness/{name}"),
            size: None,
            unit: "",
            bytes_per_op: None,
            baseline: None,
            make: Box::new(move || {
                let alternative =
                    |(name, steps): (&str, u64)| Alternative::calls(name, move || work(steps));
                Ok(steps.map(alternative).into())
            }),
        };
        Ok(vec![
            benchmark("same", [("first", STEPS), ("second", STEPS)]),
            benchmark("three-percent", [("more", MORE_STEPS), ("less", STEPS)]),
        ])
    }

    fn studies(&self, _: Extent, _: &[Row], _: &dyn Progress) -> Result<Vec<Study>, BenchError> {
        Ok(Vec::new())
    }

    fn published(&self) -> Vec<Published> {
        Vec::new()
    }
}

/// How far from 1 the ratio of a thing to itself comes on this machine now: the largest of some comparisons, a share.
///
/// # Errors
/// Never; the work cannot fail.
pub fn measure_floor(rounds: usize, progress: &dyn Progress) -> Result<f64, BenchError> {
    progress.begin("the same work beside itself", FLOOR_COMPARISONS as u64);
    let mut floor: f64 = 0.0;
    for _ in 0..FLOOR_COMPARISONS {
        let mut both = ["first", "second"].map(|name| Alternative::calls(name, || work(STEPS)));
        let row = compare("floor", &mut both, Rounds { count: rounds, warm_up: 1 }, &mut || {})?;
        let ratio = row.ratio("first", "second").map_or(1.0, |ratio| ratio.median);
        floor = floor.max(ratio.max(1.0 / ratio) - 1.0);
        progress.step();
    }
    Ok(floor)
}

/// The floor of verdicts: what was measured, and never less than [`FLOOR_MIN`].
pub fn floor(measured: Option<f64>) -> f64 {
    measured.unwrap_or(0.0).max(FLOOR_MIN)
}
