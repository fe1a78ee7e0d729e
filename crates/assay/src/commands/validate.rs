//! `assay validate`.

mod progress;
mod report;

use anyhow::Context;
use assay_engine::{
    End, Schnorr, ValidateConfig, WriteSpent, default_cache_bytes, default_script_batch, validate,
};
use assay_node::SNAPSHOT_KEYS;

use super::{chain_with, mebibytes, stop_flag, threads};
use crate::Outcome;
use crate::cli::ValidateArguments;
use crate::{output, signals};
pub(crate) use progress::Progress;
use report::Report;
pub(crate) use report::{utxo_json, utxo_text};

pub(crate) fn run(arguments: &ValidateArguments) -> anyhow::Result<Outcome> {
    let params = chain_with(&arguments.chain, &arguments.test_activation_height)?;
    let cache_bytes_max = match arguments.db_cache {
        Some(count) => mebibytes("--db-cache", count)?,
        None => default_cache_bytes(),
    };
    let stop = stop_flag();
    // Dropped at the end of the function, which removes the folder.
    let mut temporary = None;
    let datadir = if let Some(datadir) = &arguments.datadir {
        datadir.clone()
    } else {
        let folder = tempfile::Builder::new()
            .prefix("assay-validate-")
            .tempdir()
            .context("cannot make a temporary folder")?;
        let path = folder.path().to_path_buf();
        output::complain(&format!(
            "coins go to {} and are removed at the end; --datadir keeps them",
            path.display()
        ));
        temporary = Some(folder);
        path
    };
    let config = ValidateConfig {
        blocks: arguments.blocks.clone(),
        params,
        datadir,
        is_lasting: temporary.is_none(),
        stop_height: arguments.stop_height,
        assume_valid: arguments.assume_valid,
        cache_bytes_max,
        threads: threads(arguments.par),
        script_batch: default_script_batch(),
        sample_signatures: arguments.sample_signatures,
        schnorr: Schnorr::default(),
        write_spent: arguments
            .write_spent
            .clone()
            .map(|dir| WriteSpent { dir, keys: SNAPSHOT_KEYS }),
        write_hints: arguments.write_hints.clone(),
    };
    if temporary.is_none() {
        signals::save_first();
    }
    let progress = Progress::new(arguments.progress);
    let outcome = validate(&config, &stop, &progress);
    drop(progress);
    let validation = outcome?;
    let report = Report::new(config.params.name, &validation, temporary.is_none());
    if arguments.json {
        output::print_json(&report.json())?;
        if let Some(trouble) = report.trouble() {
            output::complain(&trouble);
        }
    } else {
        output::print(&report.text())?;
    }
    if let Some(folder) = temporary {
        let path = folder.path().display().to_string();
        folder.close().with_context(|| format!("cannot remove {path}"))?;
    }
    Ok(match (&validation.end, report.is_valid()) {
        (End::Interrupted, _) => Outcome::Interrupted,
        (_, true) => Outcome::Good,
        (_, false) => Outcome::Negative,
    })
}
