//! `assay run` of a plan of benchmarks.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::bail;
use assay_bench::plan::BenchPlan;
use assay_bench::registry::Filter;
use assay_bench::results::BenchResults;
use assay_bench::run::{RunOptions, run as measure};
use assay_bench::suite::Extent;
use assay_bench::{report, table};

use super::progress::RunBar;
use crate::Outcome;
use crate::cli::RunArguments;
use crate::commands::stop_flag;
use crate::output;

const FLAGS_OF_CHAINS: &str = "--series --pair --by --profile --recipe --scale --byte-scale --seed --stop-height --chain \
                               --keep-datadirs";

pub(crate) fn run(plan: &BenchPlan, arguments: &RunArguments) -> anyhow::Result<Outcome> {
    let plan = &with_nodes(plan, arguments);
    arguments.reject("benchmarks", FLAGS_OF_CHAINS)?;
    if plan.worst.is_none() {
        arguments.reject("benchmarks", "--target")?;
    }
    check_part(plan, arguments.part.as_deref())?;
    let extent = match (arguments.smoke, arguments.quick) {
        (true, _) => Extent::Smoke,
        (false, true) => Extent::Quick,
        (false, false) => Extent::Full,
    };
    let out_dir =
        arguments.out.clone().unwrap_or_else(|| PathBuf::from("results").join(&plan.name));
    let options = RunOptions {
        extent,
        rounds: arguments.rounds,
        filter: Filter::new(arguments.filter.clone()),
        out_dir: Some(out_dir.clone()),
        resume: arguments.resume,
        rerun: rerun(arguments),
        software: super::software(),
        plan: Some(plan.clone()),
        counter: super::counter(arguments.instructions, Some(plan))?,
        plan_source: arguments.plan.clone(),
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
    bar.warn();
    let results = measure(&sections, options, &bar)?;
    drop(bar);
    report::write_all(&results, out_dir)?;
    Ok(results)
}

/// Adds the nodes that receive the blocks of the worst-block plan.
fn with_nodes(plan: &BenchPlan, arguments: &RunArguments) -> BenchPlan {
    let mut plan = plan.clone();
    if let Some(worst) = plan.worst.as_mut().filter(|_| !arguments.targets.is_empty()) {
        worst.nodes = arguments.targets.iter().map(ToString::to_string).collect();
    }
    plan
}

/// The plan of the initial block download has a second part with whole nodes, which is a chain plan.
fn check_part(plan: &BenchPlan, part: Option<&str>) -> anyhow::Result<()> {
    match (part, &plan.ibd) {
        (None, _) | (Some("micro"), Some(_)) => Ok(()),
        (Some(name), Some(_)) => bail!("there is no part {name:?}; there are micro and macro"),
        (Some(_), None) => bail!("{} has no parts", plan.name),
    }
}

/// Command line that repeats the measurement, without the output folder.
fn rerun(arguments: &RunArguments) -> String {
    let mut words = vec!["assay run".to_owned(), arguments.plan.clone()];
    words.extend(arguments.quick.then(|| "--quick".to_owned()));
    words.extend(arguments.smoke.then(|| "--smoke".to_owned()));
    words.extend(arguments.instructions.then(|| "--instructions".to_owned()));
    words.extend(arguments.rounds.map(|rounds| format!("--rounds {rounds}")));
    words.extend(arguments.filter.iter().map(|filter| format!("--filter '{filter}'")));
    words.extend(arguments.part.iter().map(|part| format!("--part {part}")));
    words.extend(arguments.targets.iter().map(|target| format!("--target '{target}'")));
    words.join(" ")
}
