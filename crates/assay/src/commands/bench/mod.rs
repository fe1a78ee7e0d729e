//! `assay bench`.

mod blocks;
mod libsecp;
mod progress;
mod signatures;
mod sync;

use assay_lab::results::Software;
use serde::Serialize;

use crate::Outcome;
use crate::cli::{BenchArguments, BenchCommand};
use crate::output;
pub(crate) use libsecp::LibsecpRates;

pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        BenchCommand::Signatures(arguments) => signatures::run(arguments),
        BenchCommand::Blocks(arguments) => blocks::run(arguments),
        BenchCommand::Sync(arguments) => sync::run(arguments),
        BenchCommand::Libsecp { json } => libsecp::run(*json),
    }
}

/// A report and what made it.
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
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let software = Software {
        assay: env!("CARGO_PKG_VERSION").to_owned(),
        rustc: env!("ASSAY_RUSTC_VERSION").to_owned(),
        profile: profile.to_owned(),
    };
    output::print_json(&Signed { report, software })
}
