//! `assay index`.

mod progress;
mod report;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, ensure};
use assay_electrum::index::{Index, IndexConfig};
use assay_electrum::{Chain, RealIo, follow};
use assay_engine::Engine;
use assay_forge::Ledger;
use assay_lab::machine::new_record;
use assay_node::{EngineChain, IndexOptions};

use super::bench::software;
use super::{mebibytes, node_with_blocks};
use crate::Outcome;
use crate::cli::{IndexArguments, IndexBuildArguments, IndexCommand};
use crate::invocation::rerun;
use crate::output;
use progress::Progress;
use report::add_figures;

pub(crate) fn run(arguments: &IndexArguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        IndexCommand::Build(arguments) => build(arguments),
    }
}

fn build(arguments: &IndexBuildArguments) -> anyhow::Result<Outcome> {
    let node = node_with_blocks(&arguments.chain, &arguments.datadir)?;
    let dir = node.chain_dir();
    let memory_bytes_max = Some(mebibytes("--index-memory", arguments.index_memory)?);
    let mut config = node.index_config(&IndexOptions { memory_bytes_max, server: None });
    if let Some(out) = &arguments.out {
        config.dir.clone_from(out);
    }
    if arguments.fresh {
        remove(&config)?;
    }
    let ledger = arguments.chain_dir.as_deref().map(Ledger::read).transpose()?;
    let opened = Engine::open(node.engine_config());
    let engine = opened.with_context(|| format!("cannot open the chain in {}", dir.display()))?;
    let engine = Arc::new(engine);
    let tip = engine.chain().tip();
    let threads = if arguments.par > 0 { arguments.par } else { engine.config().threads };
    let index = Index::open(config, Arc::new(RealIo))?;
    let chain = EngineChain::new(Arc::clone(&engine));
    let progress = Progress::new(tip.height);
    let before = index.usage();
    let start = Instant::now();
    let built = follow::build(&index, &chain, &progress, threads);
    let elapsed = start.elapsed();
    let steps = progress.finish();
    built?;
    let after = index.usage();
    let at = index.tip().context("the index has nothing, not even genesis")?;
    ensure!(at == chain.tip(), "the index ends at height {} of {}", at.height, tip.height);
    let mut record = new_record("index build", &software(), &rerun(), &dir);
    record.headline = format!("The index is at height {}, block {}.", at.height, at.hash);
    record.set("threads", threads);
    add_figures(&mut record, (&steps, elapsed), (&before, &after), ledger.as_ref());
    output::print_as(arguments.json, &record, || record.text())?;
    Ok(Outcome::Good)
}

/// Removes an index; any other folder is left alone.
fn remove(config: &IndexConfig) -> anyhow::Result<()> {
    let dir: &Path = &config.dir;
    if !dir.exists() {
        return Ok(());
    }
    let is_index = dir.join("manifest.json").is_file();
    ensure!(is_index, "{} is no index of ours, and is not removed", dir.display());
    std::fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))
}
