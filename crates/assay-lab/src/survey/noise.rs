//! Variation in the time of a fixed piece of work.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use assay_report::control::time_once_ns;
use assay_report::record::{Record, Unit};
use assay_report::stats::ratio::Summary;

use super::effort::{Limit, Steps};

/// Share of one measurement in the time of a survey.
const WEIGHT: f64 = 0.2;

/// Adds the times of the control load on one core or several at once. Returns the median absolute deviation, in percent of the
/// median.
fn add(times_ms: &[Vec<f64>], record: &mut Record) -> f64 {
    let all: Vec<f64> = times_ms.iter().flatten().map(|ms| ms / 1e3).collect();
    let summary = Summary::of(&all);
    let fifth = times_ms.iter().map(Vec::len).min().unwrap_or(0).div_ceil(5);
    let part = |begin: bool| {
        let of = |times: &Vec<f64>| {
            let end = times.len() - fifth;
            times[if begin { 0..fifth } else { end..times.len() }].to_vec()
        };
        Summary::of(&times_ms.iter().flat_map(of).collect::<Vec<_>>()).median
    };
    let place = ("fixed work", format!("on {} cores", times_ms.len()));
    record.add_rounds((place.0, &place.1), ("time", Unit::Seconds), &all);
    let figures = [
        ("error", Unit::Percent, Some(summary.err_percent)),
        // Above 1 the machine became slower, usually from heat.
        ("last over first fifth", Unit::Ratio, Some(part(false) / part(true))),
    ];
    record.add((place.0, &place.1, None), &figures);
    summary.err_percent
}

/// Measures on one core, then on all at once. Returns both errors in percent.
pub(super) fn measure(limit: &Limit, steps: &mut Steps<'_>, record: &mut Record) -> [f64; 2] {
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
    let alone = add(&[times(Some(steps))], record);
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
    [alone, add(&together, record)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures() {
        let mut record = Record::default();
        add(&[], &mut record);
        assert!(record.values("on 0 cores", "time").is_empty());
        let error = add(&[vec![10.0, 10.0, 10.0, 10.0, 12.0]], &mut record);
        assert!(error.abs() < 1e-12);
        assert_eq!(record.values("on 1 cores", "time").len(), 5);
        let drift = record.values("on 1 cores", "last over first fifth");
        assert!((drift[0] - 1.2).abs() < 1e-9, "{drift:?}");
    }
}
