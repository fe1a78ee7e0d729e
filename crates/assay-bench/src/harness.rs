//! Alternatives that take turns.

use std::fmt;
use std::time::Instant;

use assay_lab::ratio::{Ratio, Summary};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::BenchError;

/// How often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    /// Rounds that count.
    pub count: usize,
    /// Rounds before them that do not.
    pub warm_up: usize,
}

/// Time of one epoch of one alternative: a number of operations in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Operations done.
    pub ops: u64,
    /// Wall time.
    pub wall_ns: u64,
    /// CPU time of the whole process that did the work.
    pub cpu_ns: u64,
}

impl Sample {
    /// Times `work`, which does `ops` operations in this process.
    pub fn of(ops: u64, work: impl FnOnce()) -> Self {
        let (cpu_start_ns, start) = (cpu_ns(), Instant::now());
        work();
        let wall_ns = start.elapsed().as_nanos() as u64;
        Self { ops, wall_ns, cpu_ns: cpu_ns() - cpu_start_ns }
    }

    /// What another process measured by its own clock.
    pub fn told(ops: u64, wall_ns: u64, cpu_ns: u64) -> Self {
        Self { ops, wall_ns, cpu_ns }
    }
}

impl std::iter::Sum for Sample {
    fn sum<I: Iterator<Item = Self>>(samples: I) -> Self {
        samples.fold(Self { ops: 0, wall_ns: 0, cpu_ns: 0 }, |sum, sample| Self {
            ops: sum.ops + sample.ops,
            wall_ns: sum.wall_ns + sample.wall_ns,
            cpu_ns: sum.cpu_ns + sample.cpu_ns,
        })
    }
}

/// CPU time of this process so far, all threads.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// What an alternative does for one epoch; it times itself, so that it can prepare without being timed.
type Epoch<'a> = dyn FnMut() -> Result<Sample, BenchError> + 'a;

/// One way of doing an operation.
pub struct Alternative<'a> {
    name: String,
    epoch: Box<Epoch<'a>>,
}

impl fmt::Debug for Alternative<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alternative").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Alternative<'a> {
    /// One that cannot fail.
    pub fn new(name: &str, mut epoch: impl FnMut() -> Sample + 'a) -> Self {
        Self::fallible(name, move || Ok(epoch()))
    }

    /// One that may fail.
    pub fn fallible(name: &str, epoch: impl FnMut() -> Result<Sample, BenchError> + 'a) -> Self {
        Self { name: name.to_owned(), epoch: Box::new(epoch) }
    }
}

/// What one alternative took.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// Its name.
    pub name: String,
    /// Median time of one operation.
    pub ns_per_op: f64,
    /// Operations per second at that time.
    pub op_per_s: f64,
    /// Median absolute deviation, percent of the median.
    pub err_percent: f64,
    /// Median CPU time of one operation.
    pub cpu_ns_per_op: f64,
    /// Operations in one epoch.
    pub epoch_ops: u64,
    /// Time measured.
    pub total_s: f64,
    /// Time of one operation in each round.
    pub samples_ns: Vec<f64>,
    /// CPU time of one operation in each round.
    #[serde(skip)]
    pub samples_cpu_ns: Vec<f64>,
}

impl Figures {
    fn new(name: &str, samples: &[Sample]) -> Self {
        let per_op = |value: fn(&Sample) -> u64| -> Vec<f64> {
            samples.iter().map(|sample| value(sample) as f64 / sample.ops.max(1) as f64).collect()
        };
        let (samples_ns, samples_cpu_ns) =
            (per_op(|sample| sample.wall_ns), per_op(|sample| sample.cpu_ns));
        let wall = Summary::of(&samples_ns);
        Self {
            name: name.to_owned(),
            ns_per_op: wall.median,
            op_per_s: if wall.median > 0.0 { 1e9 / wall.median } else { 0.0 },
            err_percent: wall.err_percent,
            cpu_ns_per_op: Summary::of(&samples_cpu_ns).median,
            epoch_ops: samples.last().map_or(0, |sample| sample.ops),
            total_s: samples.iter().map(|sample| sample.wall_ns as f64 / 1e9).sum(),
            samples_ns,
            samples_cpu_ns,
        }
    }
}

/// One operation and its alternatives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The operation.
    pub name: String,
    /// Its alternatives, in the order in which they were given.
    pub figures: Vec<Figures>,
}

impl Row {
    /// The figures of an alternative.
    pub fn of(&self, name: &str) -> Option<&Figures> {
        self.figures.iter().find(|figures| figures.name == name)
    }

    /// Time of the one over time of the other, by pairs of the same round.
    pub fn ratio(&self, above: &str, below: &str) -> Option<Ratio> {
        Ratio::of_pairs(&self.of(above)?.samples_ns, &self.of(below)?.samples_ns)
    }

    /// The same for CPU time.
    pub fn cpu_ratio(&self, above: &str, below: &str) -> Option<Ratio> {
        Ratio::of_pairs(&self.of(above)?.samples_cpu_ns, &self.of(below)?.samples_cpu_ns)
    }
}

/// Lets the alternatives take turns: each round runs each of them once, and every other round in reverse order, so that
/// none is always the one that runs after another.
///
/// # Errors
/// When an alternative fails.
pub fn compare(
    name: &str,
    alternatives: &mut [Alternative<'_>],
    rounds: Rounds,
    step: &mut dyn FnMut(),
) -> Result<Row, BenchError> {
    let mut samples = vec![Vec::with_capacity(rounds.count); alternatives.len()];
    for round in 0..rounds.warm_up + rounds.count {
        for turn in 0..alternatives.len() {
            let index = if round % 2 == 0 { turn } else { alternatives.len() - 1 - turn };
            let sample = (alternatives[index].epoch)()?;
            if round >= rounds.warm_up {
                samples[index].push(sample);
            }
        }
        step();
    }
    let figures = alternatives
        .iter()
        .zip(&samples)
        .map(|(alternative, samples)| Figures::new(&alternative.name, samples))
        .collect();
    Ok(Row { name: name.to_owned(), figures })
}

/// How often an operation that took this sample has to be repeated for an epoch of some milliseconds.
pub fn repeats(sample: Sample) -> u64 {
    let op_ns = (sample.wall_ns / sample.ops.max(1)).max(1);
    (EPOCH_NS / op_ns).clamp(1, REPEATS_MAX)
}

/// Epochs shorter than this would measure the clock, the first misses in the cache and other guests of the machine.
const EPOCH_NS: u64 = 5_000_000;

/// More would only take longer where an operation has to be prepared.
const REPEATS_MAX: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternatives_take_turns() {
        let order = std::cell::RefCell::new(String::new());
        let epoch = |name: char| {
            let order = &order;
            move || {
                order.borrow_mut().push(name);
                let wall_ns = if name == 'a' { 20 } else { 10 };
                Sample { ops: 2, wall_ns, cpu_ns: 2 * wall_ns }
            }
        };
        let mut steps = 0;
        let mut alternatives =
            [Alternative::new("a", epoch('a')), Alternative::new("b", epoch('b'))];
        let rounds = Rounds { count: 3, warm_up: 1 };
        let row =
            compare("order", &mut alternatives, rounds, &mut || steps += 1).expect("no failure");
        drop(alternatives);
        assert_eq!((order.into_inner().as_str(), steps), ("abbaabba", 4));
        let figures = row.of("a").expect("an alternative");
        assert_eq!(figures.samples_ns, [10.0, 10.0, 10.0]);
        assert!((figures.op_per_s - 1e8).abs() < 1.0 && figures.epoch_ops == 2);
        assert!(row.ratio("a", "b").is_some_and(|ratio| (ratio.median - 2.0).abs() < 1e-12));
        assert!(row.cpu_ratio("b", "a").is_some_and(|ratio| (ratio.median - 0.5).abs() < 1e-12));
        assert_eq!(row.ratio("a", "c"), None);
    }

    #[test]
    fn failures_end_it() {
        let mut alternatives = [Alternative::fallible("bad", || {
            Err(BenchError::Parameter { what: "rounds", wanted: "more" })
        })];
        let rounds = Rounds { count: 1, warm_up: 0 };
        assert!(compare("bad", &mut alternatives, rounds, &mut || {}).is_err());
    }

    #[test]
    fn epochs_are_long_enough() {
        let sample = |wall_ns, ops| Sample { ops, wall_ns, cpu_ns: 0 };
        assert_eq!(repeats(sample(EPOCH_NS * 3, 1)), 1);
        assert_eq!(repeats(sample(EPOCH_NS, 10)), 10);
        assert_eq!(repeats(sample(0, 0)), REPEATS_MAX);
    }
}
