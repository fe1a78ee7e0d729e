//! `assay run`.

mod block_files;
mod mempool;
mod series;
mod snapshot;
pub(crate) mod steps;

use std::path::{Path, PathBuf};

use anyhow::bail;
use assay_bench::plan::{BenchPlan, StepsPlan};
use assay_lab::admission::MempoolPlan;
use assay_lab::plan::{Delivery, Plan, PlanFile};
use assay_lab::progress::Terminal;
use assay_lab::report;
use assay_lab::run::{LabError, RunOptions, run as run_plan};

pub(crate) use self::block_files::OwnChainFlags;
use super::{bench, own_command, own_programs, plan, stop_flag};
use crate::Outcome;
use crate::cli::RunArguments;
use crate::output;

pub(crate) fn run(arguments: &RunArguments) -> anyhow::Result<Outcome> {
    if let Some(plan) = find_kind::<MempoolPlan>(&arguments.plan)? {
        block_files::reject_own_chain(arguments, "the mempool")?;
        return mempool::run(plan, arguments);
    }
    if let Some(plan) = find_kind::<StepsPlan>(&arguments.plan)? {
        return steps::run(plan, arguments);
    }
    let Some(plan) = find_kind::<BenchPlan>(&arguments.plan)? else {
        return run_chain(&arguments.plan, arguments);
    };
    let Some(nodes) = part_with_nodes(&plan, arguments)? else {
        block_files::reject_own_chain(arguments, "benchmarks")?;
        return bench::plan::run(&plan, arguments);
    };
    if arguments.part.is_some() {
        return run_chain(nodes, &RunArguments { part: None, ..arguments.clone() });
    }
    if arguments.json {
        bail!("--json prints one result: choose --part micro or --part macro");
    }
    let of_benchmarks = RunArguments {
        part: Some("micro".to_owned()),
        targets: Vec::new(),
        scale: None,
        seed: None,
        stop_height: None,
        chain: None,
        blocks: None,
        from_snapshot: None,
        test_activation_height: Vec::new(),
        keep_datadirs: false,
        profile: false,
        series: None,
        pair: None,
        by: None,
        ..arguments.clone()
    };
    let first = bench::plan::run(&plan, &of_benchmarks)?;
    let second = run_chain(nodes, &of_nodes(arguments))?;
    Ok(if matches!(first, Outcome::Good) { second } else { first })
}

/// The chain plan that a plan of benchmarks has as its part with whole nodes, if that part is selected.
fn part_with_nodes(
    plan: &BenchPlan,
    arguments: &RunArguments,
) -> anyhow::Result<Option<&'static str>> {
    const PLAN: &str = "ibd-tracking-macro";
    if plan.ibd.is_none() {
        return Ok(None);
    }
    match arguments.part.as_deref() {
        Some("macro") if arguments.targets.len() < 2 => {
            bail!("--part macro compares builds of a node: give --target twice at least")
        }
        Some("macro") => Ok(Some(PLAN)),
        None if !arguments.targets.is_empty() => Ok(Some(PLAN)),
        _ => Ok(None),
    }
}

/// Arguments for the part with whole nodes when both parts run.
fn of_nodes(arguments: &RunArguments) -> RunArguments {
    RunArguments {
        quick: false,
        smoke: false,
        rounds: None,
        filter: Vec::new(),
        instructions: false,
        out: arguments.out.as_ref().map(|out| out.join("macro")),
        ..arguments.clone()
    }
}

fn run_chain(name: &str, arguments: &RunArguments) -> anyhow::Result<Outcome> {
    let mut plan = find_plan(name)?;
    arguments.reject("a chain", "--quick --smoke --rounds --filter --part --instructions")?;
    if arguments.blocks.is_some() && !plan.feed.by.is_sync() {
        // The error of the lab has the reason.
        return Err(LabError::NoSync { plan: plan.name }.into());
    }
    if let Some(recipe) = &arguments.recipe {
        plan.chain.recipe.clone_from(recipe);
    }
    plan.chain.byte_scale = arguments.byte_scale.or(plan.chain.byte_scale);
    plan.chain.stop_height = arguments.stop_height.or(plan.chain.stop_height);
    plan.runs.repeat = arguments.repeat.unwrap_or(plan.runs.repeat);
    if let Some(by) = arguments.by {
        if by.is_sync() != plan.feed.by.is_sync() {
            // A changed delivery is another experiment, with settings and a report of its own.
            let of_plan = plan.feed.by.as_str();
            bail!("--by {} cannot stand in for {of_plan}, which {name} is made for", by.as_str());
        }
        plan.feed.by = by;
        // Forged chains have old time stamps, and nodes accept compact blocks near the tip only.
        plan.feed.mock_time |= by == Delivery::Compact;
    }
    plan.feed.orphans = arguments.orphans.unwrap_or(plan.feed.orphans);
    if !arguments.seen.is_empty() {
        plan.feed.seen.clone_from(&arguments.seen);
    }
    let plan = plan.checked("command line")?;
    if let Some(pair) = arguments.pair.filter(|pair| *pair > plan.runs.repeat) {
        bail!("--pair {pair}: the plan has {} pairs (--pairs)", plan.runs.repeat);
    }
    let out_dir =
        arguments.out.clone().unwrap_or_else(|| PathBuf::from("results").join(&plan.name));
    // Everything measured is a process, including the parts of this program.
    let mut options = RunOptions {
        out_dir,
        scale: arguments.scale,
        seed: arguments.seed,
        targets: arguments.targets.clone(),
        pair: arguments.pair.map(|pair| pair - 1),
        resume: arguments.resume,
        keep_datadirs: arguments.keep_datadirs,
        profile: arguments.profile,
        scripts_command: own_command(&["chain", "scripts"])?,
        rerun: rerun(name, arguments),
        ..own_programs()?
    };
    OwnChainFlags::of_run(arguments).put(&mut options)?;
    let reporter = Terminal::stopped_by(stop_flag());
    if let Some(count) = arguments.series {
        return series::run(&plan, &options, (count, arguments.json), &reporter);
    }
    let results = run_plan(plan, &options, &reporter)?;
    output::print_as(arguments.json, &results, || report::record(&results).text())?;
    let is_void = results.void_runs().next().is_some();
    Ok(if is_void { Outcome::Negative } else { Outcome::Good })
}

/// Loads a plan from a path, or the built-in plan of that name.
pub(crate) fn find_plan(name: &str) -> anyhow::Result<Plan> {
    if is_path(name) {
        return Ok(Plan::load(Path::new(name))?);
    }
    if Plan::builtin_text(name).is_none() {
        let plans = plan::builtin()?;
        let known: Vec<&str> = plans.iter().map(|(name, ..)| *name).collect();
        bail!("no built-in plan {name:?}; there are: {}", known.join(", "));
    }
    Ok(Plan::builtin(name)?)
}

/// The same for a plan of any kind; `None` if it is of another one.
pub(crate) fn find_kind<P: PlanFile>(name: &str) -> anyhow::Result<Option<P>> {
    if !is_path(name) {
        return Ok(P::builtin_text(name).map(|text| P::parse(text, name)).transpose()?);
    }
    // An unreadable file is of no kind: the lookup of the last kind reports the error.
    let path = Path::new(name);
    let is_one = std::fs::read_to_string(path).is_ok_and(|text| P::is_one(&text));
    Ok(if is_one { Some(P::load(path)?) } else { None })
}

fn is_path(name: &str) -> bool {
    let path = Path::new(name);
    path.extension().is_some() || path.components().count() > 1
}

/// Command line that repeats the measurement, without folders.
fn rerun(plan: &str, arguments: &RunArguments) -> String {
    let mut words = vec!["assay run".to_owned(), plan.to_owned()];
    if let Some(recipe) = &arguments.recipe {
        words.push(format!("--recipe {}", quoted(recipe)));
    }
    words.extend(OwnChainFlags::of_run(arguments).words());
    if let Some(scale) = arguments.scale {
        words.push(format!("--scale {scale}"));
    }
    if let Some(scale) = arguments.byte_scale {
        words.push(format!("--byte-scale {scale}"));
    }
    if let Some(seed) = arguments.seed {
        words.push(format!("--seed {seed}"));
    }
    if let Some(height) = arguments.stop_height {
        words.push(format!("--stop-height {height}"));
    }
    for target in &arguments.targets {
        words.push(format!("--target {}", quoted(&target.to_string())));
    }
    if let Some(by) = arguments.by {
        words.push(format!("--by {}", by.as_str()));
    }
    if let Some(orphans) = arguments.orphans {
        words.push(format!("--orphans {orphans}"));
    }
    for seen in &arguments.seen {
        words.push(format!("--seen {seen}"));
    }
    if let Some(repeat) = arguments.repeat {
        words.push(format!("--repeat {repeat}"));
    }
    if let Some(pair) = arguments.pair {
        words.push(format!("--pair {pair}"));
    }
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=+@,%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
