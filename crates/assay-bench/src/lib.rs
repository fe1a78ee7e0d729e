//! Micro-benchmarks: interleaved alternatives of one operation, with ratios and intervals.
//!
//! Alternatives are interleaved round by round, so that a temporary slowdown of the machine affects all of them; a figure is the
//! median over rounds, and a ratio is the median of the ratios of neighbours ([`assay_report::stats::ratio`]). Every benchmark
//! asserts its results: valid cases within the measured work, some invalid cases outside of it.
//!
//! ```
//! use assay_bench::harness::{Alternative, Rounds, Sample, compare};
//!
//! let sum = |count: u64| move || Sample::of(1, || assert_eq!((0..=count).sum::<u64>(), count * (count + 1) / 2));
//! let mut alternatives = [Alternative::new("short", sum(10)), Alternative::new("long", sum(100_000))];
//! let row = compare("sum", &mut alternatives, Rounds { count: 5, warm_up: 1 }, &mut || {})?;
//! assert_eq!(row.figures.len(), 2);
//! assert!(row.ratio("long", "short").is_some_and(|ratio| ratio.median > 0.0));
//! # Ok::<(), anyhow::Error>(())
//! ```
//!
//! Deliberately absent: whole nodes. They are measured as processes, by `assay-lab`.

pub mod bench_bitcoin;
mod builds;
pub mod compare;
pub mod conditions;
pub mod counters;
pub mod experiment;
pub mod harness;
pub mod instructions;
mod journal;
pub mod options;
pub mod overview;
pub mod plan;
pub mod programs;
pub mod published;
pub mod registry;
pub mod report;
pub mod results;
pub mod run;
pub mod selfcheck;
pub mod serve;
pub mod served;
pub mod suite;
pub mod table;
pub mod talk;

use std::fmt::Display;

/// The library of the crate of this name; its version is the crate's, which vendors the C code.
pub const LIBSECP: &str = "libsecp256k1 0.8.0 (crate secp256k1 0.33)";

/// Error of an alternative whose result is wrong, so that its time is meaningless.
pub fn wrong_answer(benchmark: &str, alternative: &str, detail: impl Display) -> anyhow::Error {
    anyhow::anyhow!("{benchmark}: {alternative} gave a wrong answer: {detail}")
}

pub trait Progress {
    fn begin(&self, part: &str, steps: u64);
    fn step(&self);
}

#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &str, _: u64) {}
    fn step(&self) {}
}
