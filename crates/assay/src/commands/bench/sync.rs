//! `assay bench sync`.

use anyhow::{Context, ensure};
use assay_lab::process::measured::cores;
use assay_lab::sync::{SyncOptions, SyncResults, run as measure};
use assay_lab::target::kernel;

use super::progress::Bar;
use crate::Outcome;
use crate::cli::{Against, BenchSyncArguments};

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
    // The chain is forged by another process: nothing of it is in this one's memory, which a child's peak would begin with.
    let options = SyncOptions {
        assay: std::env::current_exe().context("cannot find the path of this program")?,
        kernel,
        recipe: arguments.recipe.clone(),
        seed: arguments.seed,
        scale: arguments.scale,
        distinct_keys: arguments.distinct_keys,
        chain_dir: arguments.chain.clone(),
        work_dir: arguments.work.clone(),
        pairs: arguments.pairs,
        threads: arguments.threads.unwrap_or(cores.len()),
        cores,
        cores_compare: arguments.cores_compare,
        sample_compare: arguments.sample_compare,
    };
    let bar = Bar::new();
    bar.warn();
    let results = measure(&options, &bar)?;
    drop(bar);
    super::print(&results, arguments.json, SyncResults::text)?;
    Ok(Outcome::Good)
}
