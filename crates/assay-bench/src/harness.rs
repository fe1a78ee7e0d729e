//! Interleaved timing of alternatives.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Result;
use assay_report::stats::ratio::{Ratio, Summary};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::counters::{Counts, counted};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    pub count: usize,
    pub warm_up: usize,
}

/// Time of one epoch of one alternative: a number of operations in a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub ops: u64,
    pub wall_ns: u64,
    /// CPU time of the whole process that did the work.
    pub cpu_ns: u64,
    /// Hardware counters of the timed thread.
    pub counts: Counts,
}

impl Sample {
    pub fn of(ops: u64, work: impl FnOnce()) -> Self {
        let cpu_start_ns = cpu_ns();
        let (wall_ns, counts) = counted(|| {
            let start = Instant::now();
            work();
            start.elapsed().as_nanos() as u64
        });
        Self { ops, wall_ns, cpu_ns: cpu_ns() - cpu_start_ns, counts }
    }

    /// A measurement of another process by its own clock.
    pub fn timed(ops: u64, wall_ns: u64, cpu_ns: u64) -> Self {
        Self { ops, wall_ns, cpu_ns, counts: Counts::default() }
    }

    /// True if more than one thread worked: the counters of the timed one are then incomplete.
    fn is_parallel(&self) -> bool {
        self.cpu_ns as f64 > self.wall_ns as f64 * PARALLEL
    }
}

impl std::iter::Sum for Sample {
    fn sum<I: Iterator<Item = Self>>(samples: I) -> Self {
        let add = |sum: Self, sample: Self| Self {
            ops: sum.ops + sample.ops,
            wall_ns: sum.wall_ns + sample.wall_ns,
            cpu_ns: sum.cpu_ns + sample.cpu_ns,
            counts: sum.counts.and(sample.counts),
        };
        samples.reduce(add).unwrap_or_else(|| Self::timed(0, 0, 0))
    }
}

/// Ratio of CPU to wall time above which more than one thread has worked.
const PARALLEL: f64 = 1.2;

/// Cumulative CPU time of all threads of this process.
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

type Run<'a> = dyn FnMut(u64) -> Result<Sample> + 'a;

/// One implementation of an operation.
pub struct Alternative<'a> {
    name: String,
    run: Box<Run<'a>>,
    /// Operations per epoch; calibrated before the first one if the benchmark does not fix them.
    repeats: Option<u64>,
}

impl fmt::Debug for Alternative<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alternative").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<'a> Alternative<'a> {
    /// An infallible alternative that sets the number of operations per epoch.
    pub fn new(name: &str, mut epoch: impl FnMut() -> Sample + 'a) -> Self {
        Self::fallible(name, move || Ok(epoch()))
    }

    /// A fallible alternative that sets the number of operations per epoch.
    pub fn fallible(name: &str, mut epoch: impl FnMut() -> Result<Sample> + 'a) -> Self {
        Self { repeats: Some(1), ..Self::repeated(name, move |_| epoch()) }
    }

    /// An alternative whose operation is a call of `operation`, repeated for an epoch of some milliseconds. The output is hidden
    /// from the optimiser and dropped within the measured time; the caller must hide constant inputs ([`std::hint::black_box`]).
    pub fn calls<T>(name: &str, operation: impl FnMut() -> T + 'a) -> Self {
        Self::calls_of(name, 1, operation)
    }

    /// The same for a call that does `ops` operations.
    pub fn calls_of<T>(name: &str, ops: u64, mut call: impl FnMut() -> T + 'a) -> Self {
        Self::repeated(name, move |repeats| {
            Ok(Sample::of(repeats * ops, || {
                for _ in 0..repeats {
                    black_box(call());
                }
            }))
        })
    }

    /// The same for calls that can fail.
    pub fn fallible_calls(name: &str, mut call: impl FnMut() -> Result<()> + 'a) -> Self {
        Self::repeated(name, move |repeats| {
            let mut outcome = Ok(());
            let sample = Sample::of(repeats, || outcome = (0..repeats).try_for_each(|_| call()));
            outcome.map(|()| sample)
        })
    }

    /// An alternative that runs and times the given number of operations, or of calls of several operations, itself: for other
    /// processes, or operations beyond a single call.
    pub fn repeated(name: &str, run: impl FnMut(u64) -> Result<Sample> + 'a) -> Self {
        Self { name: name.to_owned(), run: Box::new(run), repeats: None }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes its epochs minimal, for tests of results.
    pub fn shorten(&mut self) {
        self.repeats = Some(1);
    }

    /// Runs at least `times` operations; more if the benchmark fixes the number per epoch.
    ///
    /// # Errors
    /// When an operation fails.
    pub fn run(&mut self, times: u64) -> Result<Sample> {
        let mut sum = (self.run)(times.max(1))?;
        while sum.ops < times {
            sum = [sum, (self.run)(times)?].into_iter().sum();
        }
        Ok(sum)
    }

    /// Runs one epoch.
    ///
    /// # Errors
    /// When the operation fails.
    pub fn epoch(&mut self) -> Result<Sample> {
        let repeats = match self.repeats {
            Some(repeats) => repeats,
            None => *self.repeats.insert(calibrate(&mut *self.run)?),
        };
        (self.run)(repeats)
    }
}

/// Calibrates the operations per epoch: increases them until they take long enough.
fn calibrate(run: &mut Run<'_>) -> Result<u64> {
    let mut repeats = 1;
    loop {
        let mut wall_ns = run(repeats)?.wall_ns.max(1);
        // The fastest of three: interference would make epochs too short.
        if (EPOCH_NS / 4..EPOCH_NS * 4).contains(&wall_ns) {
            for _ in 0..2 {
                wall_ns = wall_ns.min(run(repeats)?.wall_ns.max(1));
            }
        }
        let wanted = (u128::from(repeats) * u128::from(EPOCH_NS) / u128::from(wall_ns)) as u64;
        if wall_ns >= EPOCH_NS / 4 || repeats >= CALLS_MAX {
            return Ok(wanted.clamp(1, CALLS_MAX));
        }
        // Gradually, because the first calls are slower than the others.
        repeats = wanted.clamp(repeats * 2, repeats * 16).min(CALLS_MAX);
    }
}

/// Limit for operations that were optimised away.
const CALLS_MAX: u64 = 100_000_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    pub name: String,
    /// Median time of one operation.
    pub ns_per_op: f64,
    pub op_per_s: f64,
    /// Median absolute deviation, percent of the median.
    pub err_percent: f64,
    /// Median CPU time of one operation.
    pub cpu_ns_per_op: f64,
    pub epoch_ops: u64,
    pub total_s: f64,
    /// Time of one operation in each round.
    pub samples_ns: Vec<f64>,
    /// CPU time of one operation in each round.
    pub samples_cpu_ns: Vec<f64>,
    /// Instructions of one operation; this and the following are medians over the rounds, absent if not counted.
    #[serde(default)]
    pub instructions_per_op: Option<f64>,
    #[serde(default)]
    pub cycles_per_op: Option<f64>,
    #[serde(default)]
    pub branches_per_op: Option<f64>,
    #[serde(default)]
    pub branch_misses_per_op: Option<f64>,
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
            instructions_per_op: count_per_op(samples, |counts| counts.instructions),
            cycles_per_op: count_per_op(samples, |counts| counts.cycles),
            branches_per_op: count_per_op(samples, |counts| counts.branches),
            branch_misses_per_op: count_per_op(samples, |counts| counts.branch_misses),
        }
    }
}

/// Median of a count per operation. `None` unless every round counted and a single thread did the work.
fn count_per_op(samples: &[Sample], count: fn(&Counts) -> Option<u64>) -> Option<f64> {
    if samples.is_empty() || samples.iter().any(Sample::is_parallel) {
        return None;
    }
    let per_op = |sample: &Sample| Some(count(&sample.counts)? as f64 / sample.ops.max(1) as f64);
    let values: Vec<f64> = samples.iter().map(per_op).collect::<Option<_>>()?;
    // Virtual machines may have counters that stay zero.
    values.iter().any(|value| *value > 0.0).then(|| Summary::of(&values).median)
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    pub name: String,
    pub figures: Vec<Figures>,
}

impl Row {
    pub fn of(&self, name: &str) -> Option<&Figures> {
        self.figures.iter().find(|figures| figures.name == name)
    }

    /// Time of `above` over time of `below`, by pairs of the same round.
    pub fn ratio(&self, above: &str, below: &str) -> Option<Ratio> {
        Ratio::of_pairs(&self.of(above)?.samples_ns, &self.of(below)?.samples_ns)
    }

    /// The same with an interval of another coverage.
    pub fn ratio_covered(&self, above: &str, below: &str, coverage: f64) -> Option<Ratio> {
        let (above, below) = (self.of(above)?, self.of(below)?);
        Ratio::of_pairs_covered(&above.samples_ns, &below.samples_ns, coverage)
    }

    /// Ratio of CPU times with an interval of another coverage.
    pub fn cpu_ratio_covered(&self, above: &str, below: &str, coverage: f64) -> Option<Ratio> {
        let (above, below) = (self.of(above)?, self.of(below)?);
        Ratio::of_pairs_covered(&above.samples_cpu_ns, &below.samples_cpu_ns, coverage)
    }

    /// Ratio of CPU times, by pairs of the same round.
    pub fn cpu_ratio(&self, above: &str, below: &str) -> Option<Ratio> {
        Ratio::of_pairs(&self.of(above)?.samples_cpu_ns, &self.of(below)?.samples_cpu_ns)
    }
}

/// Interleaves the alternatives: each round runs each once, every second round in reverse, so that none always follows the same.
///
/// # Errors
/// When an alternative fails.
pub fn compare(
    name: &str,
    alternatives: &mut [Alternative<'_>],
    rounds: Rounds,
    step: &mut dyn FnMut(),
) -> Result<Row> {
    compare_within(name, alternatives, rounds, None, step)
}

/// The same with a time limit: after `within` no further round begins, unless fewer than [`ROUNDS_LEAST`] were measured. Fewer
/// rounds give a wider interval.
///
/// # Errors
/// When an alternative fails.
pub fn compare_within(
    name: &str,
    alternatives: &mut [Alternative<'_>],
    rounds: Rounds,
    within: Option<Duration>,
    step: &mut dyn FnMut(),
) -> Result<Row> {
    let start = Instant::now();
    let is_over = || within.is_some_and(|within| start.elapsed() >= within);
    let mut samples = vec![Vec::with_capacity(rounds.count); alternatives.len()];
    let mut counted = 0;
    for round in 0..rounds.warm_up + rounds.count {
        if counted >= ROUNDS_LEAST && is_over() {
            break;
        }
        let mut epochs = Vec::with_capacity(alternatives.len());
        for turn in 0..alternatives.len() {
            let index = if round % 2 == 0 { turn } else { alternatives.len() - 1 - turn };
            epochs.push((index, alternatives[index].epoch()?));
        }
        // An operation as long as all rounds should take needs no further warm-up.
        if round >= rounds.warm_up || is_over() {
            counted += 1;
            for (index, epoch) in epochs {
                samples[index].push(epoch);
            }
        }
        step();
        if counted == rounds.count {
            break;
        }
    }
    let figures = alternatives
        .iter()
        .zip(&samples)
        .map(|(alternative, samples)| Figures::new(&alternative.name, samples))
        .collect();
    Ok(Row { name: name.to_owned(), figures })
}

/// Minimum number of measured rounds, regardless of their time.
pub const ROUNDS_LEAST: usize = 3;

/// Repetitions of an operation with this sample for an epoch of some milliseconds.
pub fn repeats(sample: Sample) -> u64 {
    let op_ns = (sample.wall_ns / sample.ops.max(1)).max(1);
    (EPOCH_NS / op_ns).clamp(1, REPEATS_MAX)
}

/// Minimum epoch, below which clock resolution, cache misses and other guests of the machine dominate.
const EPOCH_NS: u64 = 5_000_000;

/// Upper limit, which saves time for operations with preparation.
const REPEATS_MAX: u64 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_after_the_least_rounds() {
        let mut alternatives =
            [Alternative::fallible("slow", || Ok(Sample::timed(1, 1_000_000, 1_000_000)))];
        let rounds = Rounds { count: 15, warm_up: 1 };
        let mut steps = 0;
        let none = Some(Duration::ZERO);
        let row = compare_within("slow", &mut alternatives, rounds, none, &mut || steps += 1);
        assert_eq!(steps, ROUNDS_LEAST, "the first round counts too");
        assert_eq!(row.expect("it is made").figures[0].samples_ns.len(), ROUNDS_LEAST);
    }

    #[test]
    fn alternatives_take_turns() {
        let order = std::cell::RefCell::new(String::new());
        let epoch = |name: char| {
            let order = &order;
            move || {
                order.borrow_mut().push(name);
                let wall_ns = if name == 'a' { 20 } else { 10 };
                Sample::timed(2, wall_ns, 2 * wall_ns)
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
        let mut alternatives = [Alternative::fallible("bad", || anyhow::bail!("no result"))];
        let rounds = Rounds { count: 1, warm_up: 0 };
        assert!(compare("bad", &mut alternatives, rounds, &mut || {}).is_err());
    }

    #[test]
    fn epochs_are_long_enough() {
        let sample = |wall_ns, ops| Sample::timed(ops, wall_ns, 0);
        assert_eq!(repeats(sample(EPOCH_NS * 3, 1)), 1);
        assert_eq!(repeats(sample(EPOCH_NS, 10)), 10);
        assert_eq!(repeats(sample(0, 0)), REPEATS_MAX);
    }

    #[test]
    fn calls_are_repeated_until_they_can_be_measured() {
        let calls = std::cell::Cell::new(0u64);
        let mut alternative = Alternative::calls("call", || calls.set(black_box(calls.get() + 1)));
        let sample = alternative.epoch().expect("no failure");
        assert!(sample.ops > 1000, "a call of a nanosecond: {sample:?}");
        let before = calls.get();
        let again = alternative.epoch().expect("no failure");
        assert_eq!((again.ops, calls.get() - before), (sample.ops, sample.ops));
        assert_eq!(alternative.run(7).expect("no failure").ops, 7);
        alternative.shorten();
        assert_eq!(alternative.epoch().expect("no failure").ops, 1);
    }

    #[test]
    fn epochs_can_be_counted_too() {
        let mut alternative = Alternative::new("epoch", || Sample::timed(10, 100, 90));
        assert_eq!(alternative.run(25).expect("no failure"), Sample::timed(30, 300, 270));
        let counts = Counts { instructions: Some(50), ..Counts::default() };
        let sample = Sample { counts, ..Sample::timed(10, 100, 100) };
        let figures = Figures::new("x", &[sample, sample]);
        assert_eq!((figures.instructions_per_op, figures.cycles_per_op), (Some(5.0), None));
        // Two threads worked, one was counted.
        let parallel = Sample { cpu_ns: 200, ..sample };
        assert_eq!(Figures::new("x", &[sample, parallel]).instructions_per_op, None);
        let still = Sample { counts: Counts { instructions: Some(0), ..counts }, ..sample };
        assert_eq!(Figures::new("x", &[still, still]).instructions_per_op, None);
    }
}
