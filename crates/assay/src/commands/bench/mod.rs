//! `assay bench`.

mod libsecp;
mod measure;
mod network;
pub(crate) mod plan;
mod progress;
mod sync;

use std::io::{stdin, stdout};

use assay_bench::instructions::Counter;
use assay_bench::plan::{BenchPlan, PlanText};
use assay_bench::programs::{Caller, SuiteSettings};
use assay_bench::results::BenchResults;
use assay_bench::{compare, report, serve};
use assay_lab::machine::Software;
use assay_report::record::Record;
use serde::Serialize;

use self::progress::{RunBar, warn};
use crate::cli::{
    BenchArguments, BenchCommand, BenchCompareArguments, BenchServeArguments, ExperimentArguments,
};
use crate::invocation::rerun;
use crate::{Outcome, output};

pub(crate) use libsecp::LibsecpRates;

pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        None => measure::run(&arguments.measure),
        Some(BenchCommand::List(arguments)) => measure::list(arguments),
        Some(BenchCommand::Compare(arguments)) => compare(arguments),
        Some(BenchCommand::Serve(arguments)) => serve(arguments),
        Some(BenchCommand::Signatures(arguments)) => experiment("signatures", arguments),
        Some(BenchCommand::Blocks(arguments)) => {
            if arguments.options.data.is_none() {
                output::complain("no real blocks found: forged ones only (--data DIR)");
            }
            experiment("blocks", arguments)
        }
        Some(BenchCommand::Sync(arguments)) => sync::run(arguments),
        Some(BenchCommand::Peers(arguments)) => network::peers(arguments),
        Some(BenchCommand::Network(arguments)) => network::run(arguments),
        Some(BenchCommand::Mempool(arguments)) => experiment("mempool", arguments),
        Some(BenchCommand::Agreement(arguments)) => experiment("agreement", arguments),
        Some(BenchCommand::Libsecp { json }) => libsecp::run(*json),
    }
}

fn compare(arguments: &BenchCompareArguments) -> anyhow::Result<Outcome> {
    let (before, after) = (report::load(&arguments.before)?, report::load(&arguments.after)?);
    let record = compare::compare(&before, &after, arguments.floor);
    let (software, command) = (software(), rerun());
    output::print_record(&Record { software, command, ..record }, arguments.json)
}

/// The child processes of a comparison of builds.
fn serve(arguments: &BenchServeArguments) -> anyhow::Result<Outcome> {
    let software = software();
    let caller = caller(&software);
    let sections = match &arguments.plan {
        None => caller.sections()?,
        Some(name) => caller.sections_of(&PlanText::find(name)?.bench(&arguments.set)?)?,
    };
    serve::serve(&sections, arguments.extent, stdin().lock(), stdout().lock())?;
    Ok(Outcome::Good)
}

/// Runs an experiment of `assay-bench` and prints its record.
fn experiment(
    name: &str,
    arguments: &ExperimentArguments<impl clap::Args + Serialize>,
) -> anyhow::Result<Outcome> {
    let software = software();
    let bar = RunBar::of_parts();
    warn();
    let record = caller(&software).experiment(name, &arguments.options, &bar)?;
    drop(bar);
    output::print_record(&Record { software, command: rerun(), ..record }, arguments.json)
}

/// This program, for the programs with suites.
pub(crate) fn caller(software: &Software) -> Caller<'_> {
    Caller { software, say: &output::complain }
}

pub(crate) fn software() -> Software {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    Software {
        assay: env!("CARGO_PKG_VERSION").to_owned(),
        commit: Some(env!("ASSAY_COMMIT").to_owned()).filter(|commit| !commit.is_empty()),
        rustc: env!("ASSAY_RUSTC_VERSION").to_owned(),
        profile: profile.to_owned(),
    }
}

/// Negative if a benchmark failed, or not all were made.
fn outcome(results: &BenchResults) -> Outcome {
    let is_good = results.failures.is_empty() && results.is_complete;
    if is_good { Outcome::Good } else { Outcome::Negative }
}

/// The counter of instructions for CPUs without counters: `assay-bench` under valgrind.
fn counter(is_wanted: bool, plan: Option<&BenchPlan>) -> anyhow::Result<Option<Counter>> {
    if !is_wanted {
        return Ok(None);
    }
    let suites = plan.map_or_else(SuiteSettings::all, SuiteSettings::of);
    Ok(Some(Counter::find(caller(&software()).once(&suites)?)?))
}
