//! Forges the chain of a plan, or reuses an existing one.

pub(crate) mod scripts;

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{io, thread};

use assay_ledger::{ChainLine, LedgerError};
use assay_report::atomic_file::{self, WriteError};
use assay_report::child;

use crate::chain::{Chain, ChainError};
use crate::machine::disk::folder_bytes;
use crate::plan::{ChainPlan, Plan};
use crate::process::tail;
use crate::progress::Reporter;

/// Poll interval of a running forge.
const LOOK_PERIOD: Duration = Duration::from_millis(100);

/// Contents of a chain directory. The first is the ledger of an unfinished forge, and is removed last.
const PARTS: [&str; 5] = ["ledger.jsonl.part", "ledger.jsonl", "txids.part", "blocks", "order"];

/// The ledger of a finished forge.
const FINISHED: &str = "ledger.jsonl";

#[derive(Debug, thiserror::Error)]
pub(crate) enum ForgeError {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error("{} holds another chain: {difference}", dir.display())]
    OtherChain {
        dir: PathBuf,
        /// Difference from the plan.
        difference: String,
    },
    #[error("{} is not empty and holds no chain", dir.display())]
    NotAChain { dir: PathBuf },
    #[error("cannot remove {}", path.display())]
    Remove { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot start the forge {program}")]
    Spawn { program: String, source: io::Error },
    #[error("the forge failed ({status}); its last words:\n{log_tail}")]
    Failed {
        status: String,
        /// Last lines of its output.
        log_tail: String,
    },
    #[error("interrupted while forging into {}", dir.display())]
    Interrupted {
        /// Directory of the unfinished chain.
        dir: PathBuf,
    },
}

pub(crate) struct ForgeJob<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) dir: &'a Path,
    /// True if the directory belongs to the laboratory, which may then replace another chain in it.
    pub(crate) own_dir: bool,
    pub(crate) command: &'a [OsString],
    pub(crate) assay_version: &'a str,
    pub(crate) log: &'a Path,
    pub(crate) reporter: &'a dyn Reporter,
}

impl ForgeJob<'_> {
    /// The chain of the plan, and the seconds of forging if it was forged now.
    pub(crate) fn chain(&self) -> Result<(Chain, Option<f64>), ForgeError> {
        match Chain::open(self.dir) {
            Ok(chain) => match self.difference(&chain.header) {
                None => {
                    report_reused(self.reporter, &chain);
                    return Ok((chain, None));
                }
                Some(difference) if !self.own_dir => {
                    return Err(ForgeError::OtherChain { dir: self.dir.to_owned(), difference });
                }
                Some(_) => {}
            },
            Err(ChainError::Ledger(LedgerError::Read { source, .. }))
                if source.kind() == io::ErrorKind::NotFound =>
            {
                let is_filled =
                    fs::read_dir(self.dir).is_ok_and(|mut entries| entries.next().is_some());
                if is_filled && !self.dir.join(PARTS[0]).exists() {
                    return Err(ForgeError::NotAChain { dir: self.dir.to_owned() });
                }
            }
            Err(error @ ChainError::Ledger(LedgerError::Read { .. })) => return Err(error.into()),
            // Unfinished or damaged: the forge reproduces the same bytes.
            Err(_) => {}
        }
        // The forge itself decides how to continue an unfinished chain.
        if self.dir.join(FINISHED).exists() || !self.dir.join(PARTS[0]).exists() {
            self.remove_old()?;
        }
        let seconds = self.forge()?;
        let chain = Chain::open(self.dir)?;
        if let Some(difference) = self.difference(&chain.header) {
            return Err(ForgeError::OtherChain { dir: self.dir.to_owned(), difference });
        }
        let rate = assay_report::stats::rate(chain.tip.signatures as f64, seconds);
        let what = chain.summary();
        self.reporter.line(&format!("chain: {what}, in {seconds:.1} s ({rate:.0} signatures/s)"));
        Ok((chain, Some(seconds)))
    }

    /// Difference between a chain and the plan, if any.
    fn difference(&self, header: &ChainLine) -> Option<String> {
        let plan = &self.plan.chain;
        let is_file = self.plan.recipe_is_file();
        let pairs = [
            // A recipe file sets its own name; its digest is compared instead.
            (!is_file && header.recipe != plan.recipe, "recipe", header.recipe.clone()),
            (header.seed != plan.seed, "seed", header.seed.to_string()),
            (header.scale.to_bits() != plan.scale.to_bits(), "scale", header.scale.to_string()),
            (
                header.byte_scale.unwrap_or(1.0).to_bits()
                    != plan.byte_scale.unwrap_or(1.0).to_bits(),
                "byte_scale",
                header.byte_scale.unwrap_or(1.0).to_string(),
            ),
            (header.variant != plan.variant.as_str(), "variant", header.variant.clone()),
            (
                // The keys of a history are always distinct.
                header.byte_scale.is_none() && header.distinct_keys != plan.distinct_keys,
                "distinct_keys",
                header.distinct_keys.to_string(),
            ),
            (
                header.stop_height != plan.stop_height,
                "stop_height",
                header
                    .stop_height
                    .map_or_else(|| "not set".to_owned(), |height| height.to_string()),
            ),
            (
                header.assay_version != self.assay_version,
                "assay_version",
                header.assay_version.clone(),
            ),
        ];
        let different = pairs.into_iter().find(|(differs, ..)| *differs);
        if let Some((_, key, value)) = different {
            return Some(format!("{key} is {value}"));
        }
        (is_file && self.recipe_is_newer()).then(|| "its recipe was changed since".to_owned())
    }

    fn recipe_is_newer(&self) -> bool {
        let time = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
        match (time(Path::new(&self.plan.chain.recipe)), time(&self.dir.join("ledger.jsonl"))) {
            (Some(recipe), Some(ledger)) => recipe > ledger,
            _ => false,
        }
    }

    /// Removes the files of a chain and nothing else.
    fn remove_old(&self) -> Result<(), ForgeError> {
        for part in PARTS.into_iter().rev() {
            let path = self.dir.join(part);
            let removed =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(ForgeError::Remove { path, source: error });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Runs the forge to its end.
    fn forge(&self) -> Result<f64, ForgeError> {
        atomic_file::create_folder(self.dir)?;
        let log_error = |source| WriteError { path: self.log.to_owned(), source };
        let out = File::create(self.log).map_err(log_error)?;
        let err = out.try_clone().map_err(log_error)?;
        let (program, first_args) = match self.command.split_first() {
            Some((program, args)) => (program.clone(), args),
            None => (OsString::new(), &[][..]),
        };
        let start = Instant::now();
        let mut command = Command::new(&program);
        command.args(first_args).args(self.args()).stdin(Stdio::null()).stdout(out).stderr(err);
        let child = child::spawn(&mut command).map_err(|source| ForgeError::Spawn {
            program: program.to_string_lossy().into_owned(),
            source,
        })?;
        let status = self.wait(Guard(child))?;
        if status.success() {
            return Ok(start.elapsed().as_secs_f64());
        }
        Err(ForgeError::Failed { status: status.to_string(), log_tail: tail(self.log) })
    }

    fn args(&self) -> Vec<OsString> {
        let chain = &self.plan.chain;
        let mut args: Vec<OsString> = vec![
            chain.recipe.clone().into(),
            "--seed".into(),
            chain.seed.to_string().into(),
            "--scale".into(),
            chain.scale.to_string().into(),
            "--out".into(),
            self.dir.as_os_str().to_owned(),
        ];
        if chain.variant != crate::plan::Variant::default() {
            args.extend(["--variant".into(), chain.variant.as_str().into()]);
        }
        if chain.distinct_keys {
            args.push("--distinct-keys".into());
        }
        if let Some(scale) = chain.byte_scale {
            args.extend(["--byte-scale".into(), scale.to_string().into()]);
        }
        if let Some(height) = chain.stop_height {
            args.extend(["--stop-height".into(), height.to_string().into()]);
        }
        args
    }

    fn wait(&self, mut forge: Guard) -> Result<ExitStatus, ForgeError> {
        let lost = |source| WriteError { path: self.dir.to_owned(), source };
        let start = Instant::now();
        let ChainPlan { recipe, seed, scale, .. } = &self.plan.chain;
        let dir = self.dir.display();
        self.reporter.line(&format!("forging {recipe}, seed {seed}, scale {scale}, into {dir}"));
        self.reporter.step("forging");
        loop {
            if let Some(status) = forge.0.try_wait().map_err(lost)? {
                return Ok(status);
            }
            if self.reporter.wants_stop() {
                return Err(ForgeError::Interrupted { dir: self.dir.to_owned() });
            }
            thread::sleep(LOOK_PERIOD);
            let mib = folder_bytes(&self.dir.join("blocks")) as f64 / 1_048_576.0;
            let seconds = start.elapsed().as_secs();
            self.reporter.step(&format!("forging: {mib:.1} MiB in {seconds} s"));
        }
    }
}

/// Reports a complete chain of the plan that was there before.
pub(crate) fn report_reused(reporter: &dyn Reporter, chain: &Chain) {
    reporter.line(&format!("chain: {} (found in {})", chain.summary(), chain.dir.display()));
}

/// Kills the child on drop.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        if !matches!(self.0.try_wait(), Ok(Some(_))) {
            // Both fail only if the process has ended, which is the goal.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}
