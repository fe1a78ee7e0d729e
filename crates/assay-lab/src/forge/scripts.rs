//! Creates the script ledger of a chain: the expected responses of an index.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow};

use crate::plan::IndexCheckPlan;
use crate::process::child::{Supervised, command_of};
use crate::process::tail;

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct ScriptsError(#[from] anyhow::Error);

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
        let [scripts_max, seed] = [self.check.scripts_max as u64, self.check.sample_seed];
        let (scripts_max, seed) = (scripts_max.to_string(), seed.to_string());
        let mut command = command_of(self.command);
        command.arg(self.chain_dir).args(["--sample", &scripts_max, "--seed", &seed, "--out"]);
        let mut child = Supervised::logged(command.arg(self.out), &[], self.log)
            .context("the script ledger could not be made")?;
        let status = loop {
            match child.status() {
                Some(status) => break status,
                None => child.wait(Duration::from_secs(1)),
            }
        };
        if status.success() {
            return Ok(());
        }
        let tail = tail(self.log);
        Err(anyhow!("the script ledger could not be made ({status}); last words:\n{tail}").into())
    }
}
