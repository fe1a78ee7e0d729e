//! Alternatives that repeat one call until an epoch is long enough to be timed.

use std::hint::black_box;
use std::path::Path;
use std::time::Duration;

use assay_bench::BenchError;
use assay_bench::harness::{Alternative, Sample};
use assay_bench::suite::Extent;

/// Length of an epoch, and the limit on its calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    epoch: Duration,
    times_max: u64,
}

impl Scale {
    pub(super) fn of(extent: Extent) -> Self {
        let epoch = match extent {
            Extent::Smoke => Duration::from_micros(10),
            Extent::Quick => Duration::from_millis(2),
            Extent::Full => Duration::from_millis(5),
        };
        Self { epoch, times_max: u64::MAX }
    }

    /// Limits the calls, if repeating them takes memory or disk space.
    pub(super) fn at_most(self, times_max: u64) -> Self {
        Self { times_max, ..self }
    }

    fn epoch_ns(self) -> u64 {
        self.epoch.as_nanos() as u64
    }

    /// Number of calls per epoch.
    fn calibrate(
        self,
        epoch: &mut impl FnMut(u64) -> Result<Sample, BenchError>,
    ) -> Result<u64, BenchError> {
        let mut times = 1u64;
        loop {
            let wall_ns = epoch(times)?.wall_ns.max(1);
            let wanted = times.saturating_mul(self.epoch_ns()).div_ceil(wall_ns);
            if wanted <= times * 4 || times >= self.times_max {
                return Ok(wanted.clamp(1, self.times_max));
            }
            times = (times * 16).min(wanted).min(self.times_max);
        }
    }

    /// An alternative that does `ops` operations per call and cannot fail.
    pub(super) fn calls<'a, R>(
        self,
        name: &str,
        ops: u64,
        mut work: impl FnMut() -> R + 'a,
    ) -> Result<Alternative<'a>, BenchError> {
        self.prepared(
            name,
            ops,
            || Ok(()),
            move |()| {
                black_box(work());
                Ok(())
            },
        )
    }

    /// An alternative whose epochs begin with an untimed preparation, dropped untimed as well.
    pub(super) fn prepared<'a, T>(
        self,
        name: &str,
        ops: u64,
        mut prepare: impl FnMut() -> Result<T, BenchError> + 'a,
        mut work: impl FnMut(&mut T) -> Result<(), BenchError> + 'a,
    ) -> Result<Alternative<'a>, BenchError> {
        let mut epoch = move |times: u64| {
            let mut item = prepare()?;
            let mut outcome = Ok(());
            let sample = Sample::of(times * ops, || {
                for _ in 0..times {
                    outcome = work(&mut item);
                    if outcome.is_err() {
                        break;
                    }
                }
            });
            outcome.map(|()| sample)
        };
        let times = self.calibrate(&mut epoch)?;
        Ok(Alternative::fallible(name, move || epoch(times)))
    }
}

pub(super) fn file_error(path: &Path) -> impl Fn(std::io::Error) -> BenchError + '_ {
    |source| BenchError::File { path: path.to_owned(), source }
}

pub(super) fn store_error<E: std::error::Error + Send + Sync + 'static>(source: E) -> BenchError {
    BenchError::Store { source: Box::new(source) }
}

/// Error of a result that differs from that of another alternative.
pub(super) fn wrong(benchmark: &str, alternative: &str, detail: impl Into<String>) -> BenchError {
    BenchError::WrongAnswer {
        benchmark: benchmark.to_owned(),
        alternative: alternative.to_owned(),
        detail: detail.into(),
    }
}

/// Returns the error of a wrong result unless the condition holds.
pub(super) fn expect(
    holds: bool,
    benchmark: &str,
    alternative: &str,
    detail: &str,
) -> Result<(), BenchError> {
    if holds { Ok(()) } else { Err(wrong(benchmark, alternative, detail)) }
}
