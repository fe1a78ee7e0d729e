//! `assay run --blocks`: a chain from another program's block files.

use std::path::Path;

use anyhow::{Context, bail};
use assay_lab::run::RunOptions;

use super::{quoted, snapshot};
use crate::cli::{LedgerArguments, RunArguments};
use crate::commands::chain::write_ledger;
use crate::output;

/// Folder of the ledger inside the folder for results.
const FOLDER: &str = "ledger";

/// Rejects flags of a user's own chain for plans without a chain.
pub(super) fn reject_own_chain(arguments: &RunArguments, kind: &str) -> anyhow::Result<()> {
    match &arguments.blocks {
        Some(_) => bail!(
            "--blocks is for syncs, such as core-evolution and ibd-tracking --part macro; {} is a plan of {kind}",
            arguments.plan
        ),
        None => Ok(()),
    }
}

/// Flags that select a chain from block files.
pub(crate) struct OwnChainFlags<'a> {
    pub(crate) blocks: Option<&'a Path>,
    /// `--chain`, which names the chain of the files.
    pub(crate) chain: Option<&'a Path>,
    pub(crate) stop_height: Option<u32>,
    /// `--test-activation-height`.
    pub(crate) activation: &'a [String],
    pub(crate) from_snapshot: Option<&'a Path>,
}

impl<'a> OwnChainFlags<'a> {
    pub(super) fn of_run(arguments: &'a RunArguments) -> Self {
        Self {
            blocks: arguments.blocks.as_deref(),
            chain: arguments.chain.as_deref(),
            stop_height: arguments.stop_height,
            activation: &arguments.test_activation_height,
            from_snapshot: arguments.from_snapshot.as_deref(),
        }
    }

    /// With block files: checks them, has their ledger written, checks the snapshot against it, and
    /// makes them the chain of `options`. Otherwise `--chain` is the folder of a forged one.
    pub(crate) fn put(&self, options: &mut RunOptions) -> anyhow::Result<()> {
        let Some(blocks) = self.blocks else {
            options.chain_dir = self.chain.map(Path::to_owned);
            return Ok(());
        };
        let chain = self.chain.and_then(|chain| chain.to_str());
        let chain = chain.context("--blocks: name the --chain of the files, such as main")?;
        let out = options.out_dir.join(FOLDER);
        output::complain(&format!("checking the block files of {chain} in {}", blocks.display()));
        let (ledger, _) = write_ledger(&LedgerArguments {
            blocks: blocks.to_owned(),
            chain: chain.to_owned(),
            stop_height: self.stop_height,
            test_activation_height: self.activation.to_vec(),
            out: out.clone(),
            threads: 0,
            json: false,
        })?;
        options.snapshot =
            self.from_snapshot.map(|path| snapshot::check(path, &ledger)).transpose()?;
        options.chain_dir = Some(out);
        options.takes_any_chain = true;
        Ok(())
    }

    /// The flags as arguments of the command line that repeats the measurement.
    pub(crate) fn words(&self) -> Vec<String> {
        let (Some(blocks), Some(chain)) = (self.blocks, self.chain) else { return Vec::new() };
        let path = |path: &Path| quoted(&path.display().to_string());
        let mut words = vec![format!("--blocks {} --chain {}", path(blocks), path(chain))];
        let activation = self.activation.iter();
        words.extend(
            activation.map(|height| format!("--test-activation-height {}", quoted(height))),
        );
        words.extend(self.from_snapshot.map(|file| format!("--from-snapshot {}", path(file))));
        words
    }
}
