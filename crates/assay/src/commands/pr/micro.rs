//! `bench_bitcoin` of two builds, with the base measured twice.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use assay_bench::plan::{BenchPlan, CoreBuild, CoreSettings};
use assay_bench::registry::Filter;
use assay_bench::results::{BenchResults, Measured};
use assay_bench::run::RunOptions;
use assay_bench::suite::Extent;
use assay_lab::builds::Build;
use assay_lab::plan::Kind;
use assay_report::record::{Outcome, Record, Unit};
use assay_report::stats::ratio::Ratio;
use assay_report::stats::verdict::Verdict;
use serde::{Deserialize, Serialize};

use super::{AGAIN, BASE, HEAD, spec};
use crate::commands::bench;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct MicroRow {
    pub(crate) benchmark: String,
    pub(crate) base_ns: f64,
    pub(crate) head_ns: f64,
    /// Time of the base over time of the head: above 1 the head is faster.
    pub(crate) ratio: Ratio,
    /// Ratio of the base against itself.
    pub(crate) again: Ratio,
    /// Minimum distance of the ratio from 1, as a share.
    pub(crate) floor: f64,
    pub(crate) verdict: Verdict,
    /// Instructions of the base over those of the head, if counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instructions_ratio: Option<f64>,
}

/// Results of `bench_bitcoin`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Micro {
    pub(crate) rounds: usize,
    /// Noise floor of the harness on this machine, as a share.
    pub(crate) floor: f64,
    pub(crate) rows: Vec<MicroRow>,
    pub(crate) failures: Vec<String>,
    pub(crate) is_complete: bool,
}

impl Micro {
    /// Adds the rows, and differences in words. Ratios are the time of the base over that of the head.
    pub(crate) fn add_to(&self, record: &mut Record, target: &str) {
        for row in &self.rows {
            let MicroRow { ratio, again, .. } = row;
            let time = |metric, ns: f64| (metric, Unit::Seconds, Some(ns / 1e9));
            let figures = [
                ("benchmark | ratio", Unit::Ratio, Some(ratio.median)),
                ("benchmark | ratio, low", Unit::Ratio, Some(ratio.low)),
                ("benchmark | ratio, high", Unit::Ratio, Some(ratio.high)),
                ("benchmark | base over itself", Unit::Ratio, Some(again.median)),
                ("benchmark | base over itself, low", Unit::Ratio, Some(again.low)),
                ("benchmark | base over itself, high", Unit::Ratio, Some(again.high)),
                ("benchmark | floor", Unit::Percent, Some(100.0 * row.floor)),
                ("benchmark | ratio of instructions", Unit::Ratio, row.instructions_ratio),
                time("benchmark | base", row.base_ns),
                time("benchmark | head", row.head_ns),
            ];
            record.add((target, &row.benchmark, None), &figures);
            if row.verdict.is_difference() {
                record.notes.push(format!(
                    "{target}: {} is {}: {:.3} ({:.3} to {:.3})",
                    row.benchmark,
                    row.verdict.text(),
                    ratio.median,
                    ratio.low,
                    ratio.high
                ));
            }
        }
        let rest = (!self.is_complete)
            .then(|| "not all benchmarks were made: continue with --resume".to_owned());
        let failure = self.failures.first().cloned().or(rest);
        record.notes.extend(self.failures.iter().skip(1).cloned());
        let name = format!("{target}: benchmarks in {} rounds", self.rounds);
        record.check(&name, Outcome::of(self.rows.len() as u64, failure));
    }
}

/// Two builds and the benchmarks to compare.
pub(crate) struct MicroTask<'a> {
    pub(crate) base: &'a Build,
    pub(crate) head: &'a Build,
    /// Filters on benchmarks: substrings or patterns; all if empty.
    pub(crate) benchmarks: Vec<String>,
    pub(crate) rounds: usize,
    pub(crate) min_time_ms: u64,
    pub(crate) out_dir: PathBuf,
    pub(crate) resume: bool,
    pub(crate) rerun: String,
}

/// Measures and compares both builds.
pub(crate) fn measure(task: &MicroTask<'_>, stop: Arc<AtomicBool>) -> anyhow::Result<Micro> {
    let plan = plan(task);
    let options = RunOptions {
        extent: Extent::Full,
        rounds: None,
        filter: Filter::default(),
        out_dir: Some(task.out_dir.clone()),
        resume: task.resume,
        rerun: task.rerun.clone(),
        software: bench::software(),
        counter: None,
        plan_source: Vec::new(),
        plan: Some(plan.clone()),
    };
    let results = bench::plan::make(&plan, &options, &task.out_dir, stop)?;
    Ok(judged(&results))
}

fn plan(task: &MicroTask<'_>) -> BenchPlan {
    let MicroTask { base, head, .. } = *task;
    let build = |name: &str, build: &Build| CoreBuild {
        name: name.to_owned(),
        target: spec(build).to_string(),
    };
    BenchPlan {
        format: 1,
        kind: Kind::Bench,
        name: "pr-micro".to_owned(),
        title: "bench_bitcoin of two revisions".to_owned(),
        summary: format!(
            "Base: {} ({}). Head: {} ({}). Each benchmark is made in rounds by the base, the base again, and the head.",
            base.commit, base.subject, head.commit, head.subject
        ),
        questions: Vec::new(),
        rounds: Some(task.rounds),
        stack: None,
        worst: None,
        ibd: None,
        pairing: None,
        compilers: None,
        core: Some(CoreSettings {
            benchmarks: task.benchmarks.clone(),
            min_time_ms: task.min_time_ms,
            builds: vec![build(BASE, base), build(AGAIN, base), build(HEAD, head)],
        }),
        published: Vec::new(),
        builds: Vec::new(),
    }
}

fn judged(results: &BenchResults) -> Micro {
    let mut rows: Vec<MicroRow> =
        results.benchmarks.iter().filter_map(|measured| row(measured, results.floor)).collect();
    // Sorts by distance from 1, differences first.
    let distance = |row: &MicroRow| (!row.verdict.is_difference(), -row.ratio.median.ln().abs());
    rows.sort_by(|a, b| {
        let ((a_same, a_by), (b_same, b_by)) = (distance(a), distance(b));
        a_same.cmp(&b_same).then(a_by.total_cmp(&b_by))
    });
    let failure =
        |failure: &assay_bench::results::Failure| format!("{}: {}", failure.name, failure.error);
    Micro {
        rounds: results.rounds,
        floor: results.floor,
        rows,
        failures: results.failures.iter().map(failure).collect(),
        is_complete: results.is_complete,
    }
}

/// The whole interval of a difference must exceed that of the base against itself in the same rounds.
fn row(measured: &Measured, floor: f64) -> Option<MicroRow> {
    let (head, again) = (measured.comparison(HEAD)?, measured.comparison(AGAIN)?);
    let reach = again.ratio.high.max(1.0 / again.ratio.low) - 1.0;
    let floor = floor.max(reach);
    let figures = |name| measured.row.of(name);
    let (base_figures, head_figures) = (figures(BASE)?, figures(HEAD)?);
    let instructions = base_figures.instructions_per_op.zip(head_figures.instructions_per_op);
    Some(MicroRow {
        benchmark: measured
            .name
            .split_once('/')
            .map_or(&*measured.name, |(_, name)| name)
            .to_owned(),
        base_ns: base_figures.ns_per_op,
        head_ns: head_figures.ns_per_op,
        ratio: head.ratio,
        again: again.ratio,
        floor,
        verdict: Verdict::of(&head.ratio, floor),
        instructions_ratio: instructions.map(|(base, head)| base / head),
    })
}
