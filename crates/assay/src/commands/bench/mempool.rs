//! `assay bench mempool`.

use assay_bench::mempool::{Options, Report, run as measure};

use super::progress::Bar;
use crate::Outcome;
use crate::cli::BenchMempoolArguments;

pub(super) fn run(arguments: &BenchMempoolArguments) -> anyhow::Result<Outcome> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if arguments.threads > 0 { arguments.threads } else { cores() };
    let BenchMempoolArguments { blocks, txs, clusters, hostile_threads, lead, seed, .. } =
        *arguments;
    let options = Options { blocks, txs, clusters, hostile_threads, threads, lead, seed };
    let bar = Bar::new();
    bar.warn();
    let report = measure(&options, &bar)?;
    drop(bar);
    super::print(&report, arguments.json, Report::text)?;
    Ok(Outcome::Good)
}
