//! `assay bench`.

mod blocks;
mod libsecp;
mod progress;
mod signatures;
mod sync;

use crate::Outcome;
use crate::cli::{BenchArguments, BenchCommand};
pub(crate) use libsecp::LibsecpRates;

pub(crate) fn run(arguments: &BenchArguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        BenchCommand::Signatures(arguments) => signatures::run(arguments),
        BenchCommand::Blocks(arguments) => blocks::run(arguments),
        BenchCommand::Sync(arguments) => sync::run(arguments),
        BenchCommand::Libsecp { json } => libsecp::run(*json),
    }
}
