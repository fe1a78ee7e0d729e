//! `assay run --blocks`: a chain from another program's block files.

use std::path::Path;

use anyhow::Context;
use assay_lab::run::RunOptions;

use super::snapshot;
use crate::cli::{LedgerArguments, OwnChainArguments};
use crate::commands::chain::write_ledger;
use crate::output;

/// Folder of the ledger inside the folder for results.
const FOLDER: &str = "ledger";

/// With block files: checks them, has their ledger written, checks the snapshot against it, and makes
/// them the chain of `options`. Otherwise `--chain` is the folder of a forged one.
pub(crate) fn put_own_chain(
    arguments: &OwnChainArguments,
    options: &mut RunOptions,
) -> anyhow::Result<()> {
    let Some(blocks) = &arguments.blocks else {
        options.chain_dir.clone_from(&arguments.chain);
        return Ok(());
    };
    let chain = arguments.chain.as_deref().and_then(Path::to_str);
    let chain = chain.context("--blocks: name the --chain of the files, such as main")?;
    let out = options.out_dir.join(FOLDER);
    output::complain(&format!("checking the block files of {chain} in {}", blocks.display()));
    let (ledger, _) = write_ledger(&LedgerArguments {
        blocks: blocks.clone(),
        chain: chain.to_owned(),
        stop_height: arguments.stop_height,
        test_activation_height: arguments.test_activation_height.clone(),
        out: out.clone(),
        threads: 0,
        json: false,
    })?;
    let snapshot = arguments.from_snapshot.as_deref();
    options.snapshot = snapshot.map(|path| snapshot::check(path, &ledger)).transpose()?;
    options.chain_dir = Some(out);
    options.takes_any_chain = true;
    Ok(())
}
