//! The suites and experiments of `assay-bench`: benchmarks of two reports, stack element size and initial block download, an atlas of
//! worst blocks, and experiments on signatures, blocks, the mempool and agreement with another node.
//!
//! A suite belongs to a section of a plan and evaluates its times: tables and findings. Tables of parameters are data next to the
//! plans: published figures (`plans/published/`), claims (`plans/claims/`), and programs and sizes of operations
//! (`plans/studies/`).
//!
//! ```
//! use assay_bench::programs::SuiteSettings;
//!
//! let sections = assay_studies::sections_of(SuiteSettings::all());
//! let names: Vec<&str> = sections.iter().map(|section| section.name).collect();
//! assert_eq!(names, ["stack", "worst", "ibd"]);
//! ```
//!
//! Deliberately absent: timing, comparison and reports, which are in the library `assay-bench`.

mod agreement;
mod block_builder;
mod blocks;
mod forged;
mod heap;
mod ibd;
mod kernels;
mod mempool;
mod peer;
mod rules;
mod signatures;
mod spend;
mod stack;
mod worst;

use std::fmt::Display;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, bail};
use assay_bench::Progress;
use assay_bench::programs::SuiteSettings;
use assay_bench::registry::Section;
use assay_bench::suite::{StudyTable, Suite};
use assay_consensus::params::ChainParams;
use assay_engine::{Config, Engine, SubmitOutcome};
use assay_report::record::Record;
use assay_report::stats::ratio::Ratio;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tempfile::TempDir;

use crate::ibd::IbdSuite;
use crate::stack::StackSuite;
use crate::worst::WorstSuite;

/// Suites with their settings, by the names of their sections.
pub fn sections_of(suites: Vec<SuiteSettings>) -> Vec<Section> {
    let section = |settings: SuiteSettings| {
        let name = settings.name();
        let suite: Box<dyn Suite> = match settings {
            SuiteSettings::Stack(settings) => Box::new(StackSuite::new(settings)),
            SuiteSettings::Worst(settings) => Box::new(WorstSuite::new(settings)),
            SuiteSettings::Ibd(settings) => Box::new(IbdSuite::new(settings)),
        };
        Section { name, suite }
    };
    suites.into_iter().map(section).collect()
}

/// Runs the experiment of this name. Options are JSON.
///
/// # Errors
/// When there is no such experiment, or it fails.
pub fn experiment(name: &str, options: &str, progress: &dyn Progress) -> Result<Record> {
    match name {
        "signatures" => signatures::run(&serde_json::from_str(options)?, progress),
        "blocks" => blocks::run(&serde_json::from_str(options)?, progress),
        "mempool" => mempool::run(&serde_json::from_str(options)?, progress),
        "agreement" => agreement::run(&serde_json::from_str(options)?, progress),
        _ => bail!("there is no experiment {name}"),
    }
}

fn temporary_folder() -> Result<TempDir> {
    tempfile::tempdir().context("cannot make a temporary folder")
}

fn read_file(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| cannot_use(path))
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    std::fs::write(path, bytes).with_context(|| cannot_use(path))
}

fn cannot_use(path: &Path) -> String {
    format!("cannot use {}", path.display())
}

/// A pool for work on one thread.
fn one_thread() -> Result<ThreadPool> {
    ThreadPoolBuilder::new().num_threads(1).build().context("cannot start a thread")
}

fn open_engine(config: Config) -> Result<Engine> {
    let dir = config.datadir.display().to_string();
    Engine::open(config).with_context(|| format!("the engine cannot be opened in {dir}"))
}

fn chain(name: &str) -> ChainParams {
    ChainParams::by_name(name).expect("a known chain")
}

/// A column of a table: its heading, and the text of each row.
type Column<'a, T> = (&'a str, &'a dyn Fn(&T) -> String);

fn table<T>(
    caption: &str,
    word_columns: usize,
    rows: impl IntoIterator<Item = T>,
    columns: &[Column<'_, T>],
) -> StudyTable {
    let head: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
    let row = |row: T| columns.iter().map(|(_, text)| text(&row)).collect();
    StudyTable::of(caption, &head, word_columns, rows.into_iter().map(row))
}

/// Ends of an interval.
fn interval(ratio: &Ratio) -> String {
    format!("{:.2} to {:.2}", ratio.low, ratio.high)
}

fn threads(asked: usize) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    if asked > 0 { asked } else { cores() }
}

/// Error for a block of a benchmark's own chain that the engine did not connect.
fn own_block(height: u32, outcome: &SubmitOutcome) -> anyhow::Error {
    let detail = match outcome {
        SubmitOutcome::Rejected { reason, .. } => reason.clone(),
        SubmitOutcome::Undecodable(error) => error.to_string(),
        SubmitOutcome::Failed(error) => error.to_string(),
        _ => "it is not the tip".to_owned(),
    };
    rejected(height, detail)
}

fn rejected(height: u32, detail: impl Display) -> anyhow::Error {
    anyhow!("the engine rejects block {height} of the benchmark's own chain: {detail}")
}

#[cfg(test)]
mod tests {
    use assay_bench::Silent;
    use assay_bench::results::BenchResults;
    use assay_bench::run::{RunOptions, run};
    use assay_bench::suite::Extent;

    use super::*;

    /// Every benchmark of every suite at its smallest size: all results are checked.
    #[test]
    fn every_benchmark_gives_correct_results() {
        let options = RunOptions { extent: Extent::Smoke, ..RunOptions::default() };
        let results = run(&sections_of(SuiteSettings::all()), &options, &Silent)
            .expect("suites with their defaults");
        assert!(results.failures.is_empty(), "{:#?}", results.failures);
        let text = serde_json::to_string(&results).expect("results are JSON");
        assert_eq!(serde_json::from_str::<BenchResults>(&text).expect("and back"), results);
    }
}
