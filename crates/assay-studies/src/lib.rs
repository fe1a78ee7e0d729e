//! The suites and experiments of `assay-bench`: benchmarks of two reports, stack element size and initial block download, an atlas of
//! worst blocks, and experiments on signatures, blocks, the mempool and agreement with another node.
//!
//! A suite belongs to a section of a plan and evaluates its times: tables and findings. Tables of parameters are data next to the
//! plans: published figures (`plans/published/`), claims (`plans/claims/`), and programs and sizes of operations
//! (`plans/studies/`).
//!
//! ```
//! use assay_bench::programs::Suites;
//!
//! let names: Vec<&str> = assay_studies::sections_of(Suites::all()).iter().map(|section| section.name).collect();
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

use assay_bench::programs::Suites;
use assay_bench::registry::Section;
use assay_bench::{BenchError, Progress};
use assay_engine::SubmitOutcome;
use assay_report::record::Record;
use serde::de::DeserializeOwned;

use crate::ibd::IbdSuite;
use crate::stack::StackSuite;
use crate::worst::WorstSuite;

/// Suites with their settings, by the names of their sections.
pub fn sections_of(suites: Suites) -> Vec<Section> {
    let Suites { stack, worst, ibd } = suites;
    let mut sections = Vec::new();
    if let Some(settings) = stack {
        sections.push(Section { name: "stack", suite: Box::new(StackSuite::new(settings)) });
    }
    if let Some(settings) = worst {
        sections.push(Section { name: "worst", suite: Box::new(WorstSuite::new(settings)) });
    }
    if let Some(settings) = ibd {
        sections.push(Section { name: "ibd", suite: Box::new(IbdSuite::new(settings)) });
    }
    sections
}

/// Runs the experiment of this name. Options are JSON.
///
/// # Errors
/// When there is no such experiment, or it fails.
pub fn experiment(
    name: &str,
    options: &str,
    progress: &dyn Progress,
) -> Result<Record, BenchError> {
    match name {
        "signatures" => signatures::run(&parse(options)?, progress),
        "blocks" => blocks::run(&parse(options)?, progress),
        "mempool" => mempool::run(&parse(options)?, progress),
        "agreement" => agreement::run(&parse(options)?, progress).map_err(setting),
        _ => Err(BenchError::Unknown { name: format!("experiment {name}") }),
    }
}

fn parse<T: DeserializeOwned>(options: &str) -> Result<T, BenchError> {
    serde_json::from_str(options).map_err(setting)
}

fn setting(error: impl std::error::Error + Send + Sync + 'static) -> BenchError {
    BenchError::Setting(Box::new(error))
}

/// Threads of a measurement: for 0 one for each core.
fn threads(asked: usize) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    if asked > 0 { asked } else { cores() }
}

/// Error for a block of a benchmark's own chain that the engine did not connect.
fn own_block(height: u32, outcome: &SubmitOutcome) -> BenchError {
    let detail = match outcome {
        SubmitOutcome::Rejected { reason, .. } => reason.clone(),
        SubmitOutcome::Undecodable(error) => error.to_string(),
        SubmitOutcome::Failed(error) => error.to_string(),
        _ => "it is not the tip".to_owned(),
    };
    BenchError::OwnBlock { height, detail }
}

#[cfg(test)]
mod tests {
    use assay_bench::Silent;
    use assay_bench::registry::Filter;
    use assay_bench::results::BenchResults;
    use assay_bench::run::{RunOptions, run};
    use assay_bench::suite::Extent;
    use assay_lab::machine::Software;

    use super::*;

    /// Every benchmark of every suite at its smallest size: all results are checked.
    #[test]
    fn every_benchmark_gives_correct_results() {
        let options = RunOptions {
            plan: None,
            extent: Extent::Smoke,
            rounds: None,
            filter: Filter::default(),
            out_dir: None,
            resume: false,
            rerun: String::new(),
            software: Software::default(),
            counter: None,
            plan_source: Vec::new(),
        };
        let results = run(&sections_of(Suites::all()), &options, &Silent)
            .expect("suites with their defaults");
        assert!(results.failures.is_empty(), "{:#?}", results.failures);
        let text = serde_json::to_string(&results).expect("results are JSON");
        assert_eq!(serde_json::from_str::<BenchResults>(&text).expect("and back"), results);
    }
}
