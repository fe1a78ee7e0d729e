//! Creates the script ledger of a chain: the expected responses of an index.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::process::Command;

use assay_report::atomic_file::WriteError;
use assay_report::child;

use crate::plan::IndexCheckPlan;
use crate::process::tail;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ScriptsError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot run {program} to make the script ledger")]
    Spawn { program: String, source: io::Error },
    #[error("the script ledger could not be made ({status}); last words:\n{log_tail}")]
    Failed {
        status: String,
        /// Last lines of the output.
        log_tail: String,
    },
}

pub(crate) struct ScriptsJob<'a> {
    pub(crate) chain_dir: &'a Path,
    pub(crate) command: &'a [OsString],
    pub(crate) check: &'a IndexCheckPlan,
    pub(crate) out: &'a Path,
    pub(crate) log: &'a Path,
}

impl ScriptsJob<'_> {
    /// Runs the program to its end.
    pub(crate) fn make(&self) -> Result<(), ScriptsError> {
        let log_error = |source| WriteError { path: self.log.to_owned(), source };
        let out = File::create(self.log).map_err(log_error)?;
        let err = out.try_clone().map_err(log_error)?;
        let (program, first_args) = match self.command.split_first() {
            Some((program, args)) => (program.clone(), args),
            None => (OsString::new(), &[][..]),
        };
        let mut command = Command::new(&program);
        command
            .args(first_args)
            .arg(self.chain_dir)
            .args(["--sample", &self.check.scripts_max.to_string()])
            .args(["--seed", &self.check.sample_seed.to_string()])
            .arg("--out")
            .arg(self.out)
            .stdout(out)
            .stderr(err);
        let status = child::status(&mut command).map_err(|source| ScriptsError::Spawn {
            program: program.to_string_lossy().into_owned(),
            source,
        })?;
        if status.success() {
            return Ok(());
        }
        Err(ScriptsError::Failed { status: status.to_string(), log_tail: tail(self.log) })
    }
}
