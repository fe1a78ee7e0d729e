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
//! # Ok::<(), assay_bench::BenchError>(())
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

use std::io;
use std::path::PathBuf;

/// The library of the crate of this name; its version is the crate's, which vendors the C code.
pub const LIBSECP: &str = "libsecp256k1 0.8.0 (crate secp256k1 0.33)";

type Cause = Box<dyn std::error::Error + Send + Sync>;

#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A result is wrong, so its time is meaningless.
    #[error("{benchmark}: {alternative} gave a wrong answer: {detail}")]
    WrongAnswer { benchmark: String, alternative: String, detail: String },
    #[error("cannot use {}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("cannot use {}", path.display())]
    Prevouts { path: PathBuf, source: Cause },
    #[error("cannot speak to {program}")]
    Peer { program: PathBuf, source: io::Error },
    #[error("{program} failed: {detail}")]
    PeerFailed { program: PathBuf, detail: String },
    #[error("the engine rejects block {height} of the benchmark's own chain: {detail}")]
    OwnBlock {
        height: u32,
        /// Verdict of the engine.
        detail: String,
    },
    #[error("the engine cannot be opened in {}", dir.display())]
    Engine { dir: PathBuf, source: Cause },
    #[error("the store fails")]
    Store { source: Cause },
    #[error("there is no {what} `{name}`; there are {}", known.join(", "))]
    UnknownName {
        /// Kind of the name.
        what: &'static str,
        name: String,
        known: Vec<String>,
    },
    #[error("cannot start {threads} threads")]
    Threads {
        /// Requested number.
        threads: usize,
        source: Cause,
    },
    #[error(transparent)]
    Write(#[from] assay_report::atomic_file::WriteError),
    #[error("there is no {name}")]
    Unknown { name: String },
    #[error(
        "instructions are counted with valgrind where the processor's counters are unavailable, and it cannot be started: install it (Debian: apt-get install valgrind)"
    )]
    NoValgrind { source: io::Error },
    #[error("there are two benchmarks {name}")]
    SameName { name: String },
    #[error(transparent)]
    Setting(Cause),
    #[error("{what}: give {wanted}")]
    Parameter {
        what: &'static str,
        /// Allowed values.
        wanted: &'static str,
    },
}

pub trait Progress {
    fn begin(&self, part: &str, steps: u64);
    /// A step of the part is done.
    fn step(&self);
}

/// Reports nothing.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &str, _: u64) {}
    fn step(&self) {}
}
