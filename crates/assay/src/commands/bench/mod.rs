//! `assay bench`.

mod blocks;
mod libsecp;
mod list;
mod measure;
mod network;
mod peers;
pub(crate) mod plan;
mod progress;
mod serve;
mod sync;

use std::ffi::OsString;

use anyhow::bail;
use assay_bench::agreement::{self, AgreementError};
use assay_bench::instructions::Counter;
use assay_bench::results::BenchResults;
use assay_bench::signatures::{self, Backend};
use assay_bench::{compare, mempool, report};
use assay_lab::machine::Software;
use serde::Serialize;

use self::progress::Bar;
use crate::cli::{
    BenchAgreementArguments, BenchArguments, BenchCommand, BenchCompareArguments,
    BenchMempoolArguments, BenchSignaturesArguments,
};
use crate::commands::{own_command, stop_flag};
use crate::{Outcome, output};

pub(crate) use libsecp::LibsecpRates;

pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        None => measure::run(&arguments.measure),
        Some(BenchCommand::List(arguments)) => list::run(arguments),
        Some(BenchCommand::Compare(arguments)) => compare(arguments),
        Some(BenchCommand::One(arguments)) => serve::one(arguments),
        Some(BenchCommand::Serve(arguments)) => serve::run(arguments),
        Some(BenchCommand::Signatures(arguments)) => signatures(arguments),
        Some(BenchCommand::Blocks(arguments)) => blocks::run(arguments),
        Some(BenchCommand::Sync(arguments)) => sync::run(arguments),
        Some(BenchCommand::Peers(arguments)) => peers::run(arguments),
        Some(BenchCommand::Network(arguments)) => network::run(arguments),
        Some(BenchCommand::Mempool(arguments)) => mempool(arguments),
        Some(BenchCommand::Agreement(arguments)) => agreement(arguments),
        Some(BenchCommand::Libsecp { json }) => libsecp::run(*json),
    }
}

fn compare(arguments: &BenchCompareArguments) -> anyhow::Result<Outcome> {
    let (before, after) = (report::load(&arguments.before)?, report::load(&arguments.after)?);
    let comparison = compare::compare(&before, &after, arguments.floor);
    output::print_as(arguments.json, &comparison, || comparison.text())?;
    Ok(if comparison.is_slower() { Outcome::Negative } else { Outcome::Good })
}

fn signatures(arguments: &BenchSignaturesArguments) -> anyhow::Result<Outcome> {
    let backend = match arguments.backend.as_deref() {
        None => Backend::fastest(),
        Some(name) => match Backend::by_name(name) {
            Some(backend) if backend.available() => backend,
            Some(_) => bail!("this processor does not run the backend {name}"),
            None => {
                let names: Vec<&str> = Backend::all().map(Backend::name).collect();
                bail!("unknown backend {name:?}; there are {}", names.join(", "))
            }
        },
    };
    let bar = Bar::new();
    bar.warn();
    let BenchSignaturesArguments { batch, rounds, seed, .. } = *arguments;
    let report = signatures::run(&signatures::Options { batch, rounds, backend, seed }, &bar)?;
    drop(bar);
    print(&report, arguments.json, signatures::Report::text)?;
    Ok(Outcome::Good)
}

fn mempool(arguments: &BenchMempoolArguments) -> anyhow::Result<Outcome> {
    let threads = threads(arguments.threads);
    let BenchMempoolArguments { blocks, txs, clusters, hostile_threads, lead, seed, .. } =
        *arguments;
    let options = mempool::Options { blocks, txs, clusters, hostile_threads, threads, lead, seed };
    let bar = Bar::new();
    bar.warn();
    let report = mempool::run(&options, &bar)?;
    drop(bar);
    print(&report, arguments.json, mempool::Report::text)?;
    Ok(Outcome::Good)
}

fn agreement(arguments: &BenchAgreementArguments) -> anyhow::Result<Outcome> {
    let BenchAgreementArguments { target, cases, seed, .. } = arguments;
    let options = agreement::Options { target: target.clone(), cases: *cases, seed: *seed };
    let bar = Bar::new();
    let report = match agreement::run(&options, &bar, &stop_flag()) {
        Err(AgreementError::Interrupted) => return Ok(Outcome::Interrupted),
        other => other?,
    };
    drop(bar);
    print(&report, arguments.json, agreement::Report::text)?;
    Ok(if report.agrees() { Outcome::Good } else { Outcome::Negative })
}

/// Threads of a measurement: those asked for, or for 0 one for each core.
fn threads(asked: usize) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    if asked > 0 { asked } else { cores() }
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

/// The counter of instructions where the processor has none: this program under valgrind.
fn counter(is_wanted: bool, plan: Option<&str>) -> anyhow::Result<Option<Counter>> {
    if !is_wanted {
        return Ok(None);
    }
    let mut command = own_command(&["bench", "one"])?;
    command.extend(plan.into_iter().flat_map(|plan| ["--plan", plan]).map(OsString::from));
    Ok(Some(Counter::find(command)?))
}

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
