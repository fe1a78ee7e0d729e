//! `assay bench blocks`.

use std::path::{Path, PathBuf};

use assay_bench::blocks::{Options, Report, run as measure};
use assay_lab::target::kernel;

use super::progress::Bar;
use crate::cli::BenchBlocksArguments;
use crate::{Outcome, output};

pub(super) fn run(arguments: &BenchBlocksArguments) -> anyhow::Result<Outcome> {
    let path = arguments.kernel.as_deref();
    let kernel = arguments.against.map(|_| kernel::find(path)).transpose()?;
    let data = find_data(arguments.data.as_deref())?;
    let BenchBlocksArguments { rounds, txs, connect_blocks, large_inputs, seed, .. } = *arguments;
    let threads = super::threads(arguments.threads);
    let bar = Bar::new();
    bar.warn();
    if data.is_none() {
        output::complain("no real blocks found: forged ones only (--data DIR)");
    }
    let options =
        Options { rounds, txs, connect_blocks, large_inputs, threads, seed, data, kernel };
    let report = measure(&options, &bar)?;
    drop(bar);
    super::print(&report, arguments.json, Report::text)?;
    Ok(Outcome::Good)
}

/// Finds the folder of block data: the given path or the default one.
fn find_data(named: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    let places = |dir: &Path| [dir.join("blocks"), dir.to_owned()];
    let holds_blocks = |dir: &PathBuf| {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .any(|path| path.extension().is_some_and(|ext| ext == "blk"))
    };
    let Some(named) = named else { return Ok(None) };
    let found = places(named).into_iter().find(holds_blocks);
    if found.is_none() {
        anyhow::bail!("there are no NETWORK-HEIGHT.blk in {} or its blocks", named.display());
    }
    Ok(found)
}
