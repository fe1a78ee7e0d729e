//! `assay run` of a plan of benchmarks.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use assay_bench::plan::BenchPlan;
use assay_bench::registry::Filter;
use assay_bench::results::BenchResults;
use assay_bench::run::{RunOptions, run as measure};
use assay_bench::suite::Extent;
use assay_bench::{report, table};

use super::progress::{RunBar, warn};
use crate::Outcome;
use crate::cli::RunArguments;
use crate::commands::stop_flag;
use crate::invocation::rerun;
use crate::output;

pub(crate) fn run(plan: &BenchPlan, arguments: &RunArguments) -> anyhow::Result<Outcome> {
    let extent = match (arguments.smoke, arguments.quick) {
        (true, _) => Extent::Smoke,
        (false, true) => Extent::Quick,
        (false, false) => Extent::Full,
    };
    let out_dir = arguments.out_dir(&plan.name);
    // Other builds make the same changes.
    let set = arguments.set.iter().map(ToString::to_string);
    let set = set
        .filter_map(|flag| flag.split_once(' ').map(|(flag, key)| [flag, key].map(str::to_owned)));
    let options = RunOptions {
        extent,
        rounds: arguments.rounds,
        filter: Filter::new(arguments.filter.clone()),
        out_dir: Some(out_dir.clone()),
        resume: arguments.resume,
        rerun: rerun(),
        software: super::software(),
        plan: Some(plan.clone()),
        counter: super::counter(arguments.instructions, Some(plan))?,
        plan_source: std::iter::once(arguments.plan.clone()).chain(set.flatten()).collect(),
    };
    let results = make(plan, &options, &out_dir, stop_flag())?;
    output::print_as(arguments.json, &results, || table::terminal(&results))?;
    output::complain(&format!("report: {}", out_dir.join("report.html").display()));
    Ok(super::outcome(&results))
}

/// Runs the benchmarks of a plan and writes their report.
pub(crate) fn make(
    plan: &BenchPlan,
    options: &RunOptions,
    out_dir: &Path,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<BenchResults> {
    let sections = super::caller(&options.software).sections_of(plan)?;
    let bar = RunBar::stopped_by(stop);
    warn();
    let results = measure(&sections, options, &bar)?;
    drop(bar);
    report::write_all(&results, out_dir)?;
    Ok(results)
}
