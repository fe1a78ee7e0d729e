//! `assay bench sync`.

use anyhow::{Context, ensure};
use assay_bench::options::Against;
use assay_lab::process::cores;
use assay_lab::progress::Terminal;
use assay_lab::run::RunOptions;
use assay_lab::sync::{SyncOptions, run as measure};
use assay_lab::target::kernel;

use super::progress::warn;
use crate::cli::BenchSyncArguments;
use crate::commands::own_command;
use crate::commands::stop_flag;
use crate::invocation::rerun;
use crate::{Outcome, output};

pub(super) fn run(arguments: &BenchSyncArguments) -> anyhow::Result<Outcome> {
    let Against::Kernel = arguments.against;
    let kernel = kernel::find(arguments.kernel.as_deref())?;
    let allowed = cores::allowed().context("cannot determine the available cores")?;
    let cores = if arguments.cores.is_empty() { allowed.clone() } else { arguments.cores.clone() };
    if let Some(core) = cores.iter().find(|core| !allowed.contains(core)) {
        anyhow::bail!("--cores {core}: this process may use {allowed:?}");
    }
    let mut distinct = cores.clone();
    distinct.sort_unstable();
    distinct.dedup();
    ensure!(distinct.len() == cores.len(), "--cores {cores:?}: a core is named twice");
    let options = SyncOptions {
        kernel,
        recipe: arguments.recipe.clone(),
        seed: arguments.seed,
        scale: arguments.scale,
        distinct_keys: arguments.distinct_keys,
        chain_dir: arguments.chain.clone(),
        pairs: arguments.pairs,
        threads: arguments.threads.unwrap_or(cores.len()),
        cores,
        cores_compare: arguments.cores_compare,
        sample_compare: arguments.sample_compare,
    };
    // Another process forges the chain, so that the memory of forging does not raise the peak of a child.
    let with = RunOptions {
        out_dir: arguments.work.clone(),
        forge_command: own_command(&["chain", "forge"])?,
        node_command: own_command(&["node"])?,
        assay_version: env!("CARGO_PKG_VERSION").to_owned(),
        rustc_version: env!("ASSAY_RUSTC_VERSION").to_owned(),
        rerun: rerun(),
        ..RunOptions::default()
    };
    warn();
    let mut record = measure(&options, with, &Terminal::stopped_by(stop_flag()))?;
    record.software = super::software();
    output::print_record(&record, arguments.json)
}
