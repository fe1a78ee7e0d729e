//! `assay bench`.

mod agreement;
mod blocks;
mod compare;
mod libsecp;
mod list;
mod measure;
mod mempool;
mod network;
mod peers;
pub(crate) mod plan;
mod progress;
mod serve;
mod signatures;
mod sync;

use std::ffi::OsString;

use assay_bench::instructions::Counter;
use assay_bench::results::BenchResults;
use assay_lab::machine::Software;
use serde::Serialize;

use crate::cli::{BenchArguments, BenchCommand};
use crate::commands::own_command;
use crate::{Outcome, output};

pub(crate) use libsecp::LibsecpRates;

pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        None => measure::run(&arguments.measure),
        Some(BenchCommand::List(arguments)) => list::run(arguments),
        Some(BenchCommand::Compare(arguments)) => compare::run(arguments),
        Some(BenchCommand::One(arguments)) => serve::one(arguments),
        Some(BenchCommand::Serve(arguments)) => serve::run(arguments),
        Some(BenchCommand::Signatures(arguments)) => signatures::run(arguments),
        Some(BenchCommand::Blocks(arguments)) => blocks::run(arguments),
        Some(BenchCommand::Sync(arguments)) => sync::run(arguments),
        Some(BenchCommand::Peers(arguments)) => peers::run(arguments),
        Some(BenchCommand::Network(arguments)) => network::run(arguments),
        Some(BenchCommand::Mempool(arguments)) => mempool::run(arguments),
        Some(BenchCommand::Agreement(arguments)) => agreement::run(arguments),
        Some(BenchCommand::Libsecp { json }) => libsecp::run(*json),
    }
}

/// Identification of the measuring software.
pub(crate) fn software() -> Software {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    Software {
        assay: env!("CARGO_PKG_VERSION").to_owned(),
        rustc: env!("ASSAY_RUSTC_VERSION").to_owned(),
        profile: profile.to_owned(),
    }
}

/// Negative if a benchmark failed or was left out.
fn outcome(results: &BenchResults) -> Outcome {
    let is_good = results.failures.is_empty() && results.is_complete;
    if is_good { Outcome::Good } else { Outcome::Negative }
}

/// Instruction counter for processors without one: this program under valgrind.
fn counter(is_wanted: bool, plan: Option<&str>) -> anyhow::Result<Option<Counter>> {
    if !is_wanted {
        return Ok(None);
    }
    let mut command = own_command(&["bench", "one"])?;
    command.extend(plan.into_iter().flat_map(|plan| ["--plan", plan]).map(OsString::from));
    Ok(Some(Counter::find(command)?))
}

/// A report with the software that measured it.
#[derive(Serialize)]
struct Signed<'a, T> {
    #[serde(flatten)]
    report: &'a T,
    software: Software,
}

/// Prints a report as JSON, or as `text`.
fn print<T: Serialize>(
    report: &T,
    is_json: bool,
    text: impl Fn(&T) -> String,
) -> anyhow::Result<()> {
    if !is_json {
        return output::print(&text(report));
    }
    let software = software();
    output::print_json(&Signed { report, software })
}
