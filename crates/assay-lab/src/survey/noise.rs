//! Variation in the time of a fixed piece of work.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use assay_report::control::time_once_ns;
use assay_report::stats::ratio::Summary;
use serde::Serialize;

use super::effort::{Limit, Steps};

/// Share of one measurement in the time of a survey.
const WEIGHT: f64 = 0.2;

/// Times of the control load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Noise {
    /// Number of concurrent cores.
    pub cores: usize,
    /// Minimum number of repeats per core.
    pub repeats: usize,
    pub median_ms: f64,
    /// Median absolute deviation, in percent of the median.
    pub err_percent: f64,
    /// Maximum, in percent above the median.
    pub max_percent: f64,
    /// Median of the last fifth over that of the first: above 1 the machine became slower, usually from heat.
    pub drift: f64,
}

impl Noise {
    fn of(times_ms: &[Vec<f64>]) -> Self {
        let all: Vec<f64> = times_ms.iter().flatten().copied().collect();
        let summary = Summary::of(&all);
        let repeats = times_ms.iter().map(Vec::len).min().unwrap_or(0);
        let fifth = repeats.div_ceil(5);
        let part = |range: std::ops::Range<usize>| {
            let times: Vec<f64> = times_ms
                .iter()
                .filter_map(|times| times.get(range.clone()))
                .flatten()
                .copied()
                .collect();
            Summary::of(&times).median
        };
        let above = |value: f64| if summary.median > 0.0 { value / summary.median } else { 1.0 };
        let first = part(0..fifth);
        Self {
            cores: times_ms.len(),
            repeats,
            median_ms: summary.median,
            err_percent: summary.err_percent,
            max_percent: (above(summary.max) - 1.0) * 100.0,
            drift: if first > 0.0 { part(repeats - fifth..repeats) / first } else { 1.0 },
        }
    }
}

/// Measures on one core, then on all at once.
pub(super) fn measure(limit: &Limit, steps: &mut Steps<'_>) -> (Noise, Noise) {
    let times = |steps: Option<&Steps<'_>>| {
        let mut times_ms = Vec::with_capacity(limit.samples);
        let start = Instant::now();
        while limit.goes_on(times_ms.len(), start) {
            times_ms.push(time_once_ns() as f64 / 1e6);
            if let Some(steps) = steps {
                steps.report(WEIGHT, limit, times_ms.len(), start);
            }
        }
        times_ms
    };
    let alone = Noise::of(&[times(Some(steps))]);
    steps.end(WEIGHT);
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let barrier = Barrier::new(cores);
    let steps_here = &*steps;
    let together = thread::scope(|scope| {
        let on_core = |core: usize| {
            barrier.wait();
            times((core == 0).then_some(steps_here))
        };
        let threads: Vec<_> = (0..cores).map(|core| scope.spawn(move || on_core(core))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect::<Vec<_>>()
    });
    steps.end(WEIGHT);
    (alone, Noise::of(&together))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        assert_eq!(Noise::of(&[]).repeats, 0);
        let noise = Noise::of(&[vec![10.0, 10.0, 10.0, 10.0, 12.0]]);
        assert!((noise.median_ms - 10.0).abs() < 1e-12 && noise.err_percent.abs() < 1e-12);
        assert!((noise.max_percent - 20.0).abs() < 1e-9 && (noise.drift - 1.2).abs() < 1e-9);
    }
}
