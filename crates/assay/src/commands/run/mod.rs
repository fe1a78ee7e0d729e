//! `assay run` and `assay plan`.

mod block_files;
mod series;
mod snapshot;
pub(crate) mod steps;

use anyhow::{bail, ensure};
use assay_bench::plan::{Experiment, PlanText};
use assay_lab::admission::{self, MempoolOptions, MempoolPlan};
use assay_lab::plan::{Delivery, Kind, Plan, PlanError};
use assay_lab::progress::Terminal;
use assay_lab::report;
use assay_lab::run::{RunOptions, no_sync, run as run_plan};

pub(crate) use self::block_files::put_own_chain;
use super::bench::software;
use super::{bench, own_command, own_programs, print_builtin, print_names, stop_flag};
use crate::Outcome;
use crate::cli::{PlanArguments, PlanCommand, RunArguments, has_heading};
use crate::invocation::{given_with_heading, rerun};
use crate::output;

/// The plan that is the part `macro` of plans with a section `[ibd]`.
const MACRO_PLAN: &str = "ibd-tracking-macro";

pub(crate) fn run(arguments: &RunArguments) -> anyhow::Result<Outcome> {
    let mut text = PlanText::find(&arguments.plan)?;
    let has_macro = text.kind == Kind::Bench && text.has("ibd");
    match arguments.part.as_deref() {
        None if has_macro => ensure!(
            arguments.targets.is_empty(),
            "--target: benchmarks have no targets, those of {} are of --part macro",
            arguments.plan
        ),
        Some("macro") if has_macro => {
            ensure!(
                arguments.targets.len() > 1,
                "--part macro compares builds of a node: give --target twice at least"
            );
            text = PlanText::find(MACRO_PLAN)?;
        }
        Some("micro") if has_macro => {}
        Some(name) if has_macro => bail!("there is no part {name:?}; there are micro and macro"),
        Some(_) if text.kind != Kind::Steps => bail!("{} has no parts", arguments.plan),
        None | Some(_) => {}
    }
    // The error of a key names the plans that have it.
    let changes = arguments.changes(text.kind)?;
    let plan = text.plan(&changes)?;
    for (flag, heading) in given_with_heading() {
        ensure!(
            has_heading(text.kind, &heading),
            "{flag} means nothing for {}, a plan of kind {}",
            arguments.plan,
            text.kind.as_str()
        );
    }
    match plan {
        Experiment::Chain(plan) => chain(*plan, text.chain()?.feed.by, arguments),
        Experiment::Mempool(plan) => mempool(&plan, arguments),
        Experiment::Bench(plan) => bench::plan::run(&plan, arguments),
        Experiment::Steps(plan) => steps::run(*plan, arguments),
    }
}

/// Runs a plan of a chain, whose blocks were to be delivered `by` this before changes.
fn chain(mut plan: Plan, before: Delivery, arguments: &RunArguments) -> anyhow::Result<Outcome> {
    let by = plan.feed.by;
    if by.is_sync() != before.is_sync() {
        // Another experiment, with settings and a report of its own.
        let (by, before) = (by.as_str(), before.as_str());
        bail!("feed.by = {by} cannot stand in for {before}, which {} is made for", plan.name);
    }
    // Forged chains have old time stamps, and nodes accept compact blocks near the tip only.
    plan.feed.mock_time |= by != before && by == Delivery::Compact;
    if arguments.own_chain.blocks.is_some() {
        if !by.is_sync() {
            // The error of the lab has the reason.
            return Err(no_sync(&plan.name));
        }
        let mut changes = arguments.changes(Kind::Chain)?.into_iter();
        let of_forge = |key: &str| key.starts_with("chain.") && key != "chain.stop_height";
        if let Some(change) = changes.find(|change| of_forge(change.key())) {
            bail!("{change} is of forged chains, and --blocks names another");
        }
    }
    if let Some(pair) = arguments.pair.filter(|pair| *pair > plan.runs.repeat) {
        bail!("--pair {pair}: the plan has {} pairs (--pairs)", plan.runs.repeat);
    }
    // Everything measured is a process, including the parts of this program.
    let mut options = RunOptions {
        out_dir: arguments.out_dir(&plan.name),
        targets: arguments.targets.clone(),
        pair: arguments.pair.map(|pair| pair - 1),
        resume: arguments.resume,
        keep_datadirs: arguments.keep_datadirs,
        profile: arguments.profile,
        scripts_command: own_command(&["chain", "scripts"])?,
        rerun: rerun(),
        ..own_programs()?
    };
    put_own_chain(&arguments.own_chain, &mut options)?;
    let reporter = Terminal::stopped_by(stop_flag());
    if let Some(count) = arguments.series {
        return series::run(&plan, &options, (count, arguments.json), &reporter);
    }
    let results = run_plan(plan, &options, &reporter)?;
    output::print_as(arguments.json, &results, || report::record(&results).text())?;
    let is_void = results.void_runs().next().is_some();
    Ok(if is_void { Outcome::Negative } else { Outcome::Good })
}

fn mempool(plan: &MempoolPlan, arguments: &RunArguments) -> anyhow::Result<Outcome> {
    ensure!(!arguments.resume, "--resume means nothing for {}, a plan of kind mempool", plan.name);
    let options = MempoolOptions {
        out_dir: arguments.out_dir(&plan.name),
        node_command: own_command(&["node"])?,
        software: software(),
        rerun: rerun(),
    };
    let reporter = Terminal::stopped_by(stop_flag());
    output::print_record(&admission::run(plan, &options, &reporter)?, arguments.json)
}

/// Lists the built-in plans, or prints one.
pub(crate) fn plans(arguments: PlanArguments) -> anyhow::Result<Outcome> {
    match arguments.command {
        PlanCommand::List { json } => {
            let titled =
                |(name, text)| Ok((name, Experiment::parse(text, name)?.title().to_owned()));
            let names = Experiment::builtin().map(titled).collect::<Result<Vec<_>, PlanError>>()?;
            print_names(json, &names)
        }
        PlanCommand::Show { name } => {
            let found = Experiment::builtin().find(|(builtin, _)| *builtin == name);
            print_builtin(found.map(|(_, text)| text), "plan", &name, "plan list")
        }
    }
}
