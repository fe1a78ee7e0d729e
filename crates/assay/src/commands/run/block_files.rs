//! `assay run --blocks`: a chain from another program's block files.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::cli::{LedgerArguments, RunArguments};
use crate::commands::chain::write_ledger;
use crate::output;

/// Folder of the ledger inside the folder for results.
const FOLDER: &str = "ledger";

/// Plans that have no chain have none of one's own.
pub(super) fn refuse(arguments: &RunArguments, kind: &str) -> anyhow::Result<()> {
    match &arguments.blocks {
        Some(_) => bail!(
            "--blocks is for syncs, such as core-evolution and ibd-tracking --part macro; {} is a plan of {kind}",
            arguments.plan
        ),
        None => Ok(()),
    }
}

/// Checks the files and has their ledger written, where files are given; returns its folder.
pub(super) fn ledger(arguments: &RunArguments, out: &Path) -> anyhow::Result<Option<PathBuf>> {
    let Some(blocks) = &arguments.blocks else { return Ok(None) };
    let chain = arguments.chain.as_ref().and_then(|chain| chain.to_str());
    let chain = chain.context("--blocks: name the --chain of the files, such as main")?;
    let out = out.join(FOLDER);
    output::complain(&format!("checking the block files of {chain} in {}", blocks.display()));
    write_ledger(&LedgerArguments {
        blocks: blocks.clone(),
        chain: chain.to_owned(),
        stop_height: arguments.stop_height,
        test_activation_height: arguments.test_activation_height.clone(),
        out: out.clone(),
        threads: 0,
        json: false,
    })?;
    Ok(Some(out))
}
