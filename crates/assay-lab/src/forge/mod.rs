//! Forges the chain of a plan, or reuses an existing one.

pub(crate) mod scripts;

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};
use std::{fs, io};

use anyhow::{Context as _, anyhow, ensure};
use assay_ledger::{ChainLine, LedgerError};
use assay_report::atomic_file;

use crate::chain::{Chain, ChainError};
use crate::machine::disk::folder_bytes;
use crate::plan::{ChainPlan, Plan};
use crate::process::child::{Supervised, command_of};
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
    #[error(transparent)]
    Other(#[from] anyhow::Error),
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
                Some(difference) if !self.own_dir => return Err(self.other_chain(&difference)),
                Some(_) => {}
            },
            Err(ChainError::Ledger(LedgerError::Read { source, .. }))
                if source.kind() == io::ErrorKind::NotFound =>
            {
                let is_filled =
                    fs::read_dir(self.dir).is_ok_and(|mut entries| entries.next().is_some());
                if is_filled && !self.dir.join(PARTS[0]).exists() {
                    let dir = self.dir.display();
                    return Err(anyhow!("{dir} is not empty and holds no chain").into());
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
            return Err(self.other_chain(&difference));
        }
        let rate = assay_report::stats::rate(chain.tip.signatures as f64, seconds);
        let what = chain.summary();
        self.reporter.line(&format!("chain: {what}, in {seconds:.1} s ({rate:.0} signatures/s)"));
        Ok((chain, Some(seconds)))
    }

    fn other_chain(&self, difference: &str) -> ForgeError {
        anyhow!("{} holds another chain: {difference}", self.dir.display()).into()
    }

    /// Difference between a chain and the plan, if any.
    fn difference(&self, header: &ChainLine) -> Option<String> {
        let plan = &self.plan.chain;
        let is_file = self.plan.recipe_is_file();
        let scale = |byte_scale: Option<f64>| byte_scale.unwrap_or(1.0).to_string();
        let stop = |height: Option<u32>| {
            height.map_or_else(|| "not set".to_owned(), |height| height.to_string())
        };
        // A recipe file sets its own name; its digest is compared instead.
        let recipe = if is_file { &header.recipe } else { &plan.recipe };
        // The keys of a history are always distinct.
        let is_history = header.byte_scale.is_some();
        let keys = if is_history { header.distinct_keys } else { plan.distinct_keys };
        let pairs = [
            ("recipe", header.recipe.clone(), recipe.clone()),
            ("seed", header.seed.to_string(), plan.seed.to_string()),
            ("scale", header.scale.to_string(), plan.scale.to_string()),
            ("byte_scale", scale(header.byte_scale), scale(plan.byte_scale)),
            ("variant", header.variant.clone(), plan.variant.as_str().to_owned()),
            ("distinct_keys", header.distinct_keys.to_string(), keys.to_string()),
            ("stop_height", stop(header.stop_height), stop(plan.stop_height)),
            ("assay_version", header.assay_version.clone(), self.assay_version.to_owned()),
        ];
        let different = pairs.into_iter().find(|(_, found, expected)| found != expected);
        if let Some((key, found, _)) = different {
            return Some(format!("{key} is {found}"));
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
    fn remove_old(&self) -> anyhow::Result<()> {
        for part in PARTS.into_iter().rev() {
            let path = self.dir.join(part);
            let removed =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("cannot remove {}", path.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Runs the forge to its end; returns the seconds.
    fn forge(&self) -> anyhow::Result<f64> {
        atomic_file::create_folder(self.dir)?;
        let start = Instant::now();
        let mut command = command_of(self.command);
        let mut child = Supervised::logged(command.args(self.args()), &[], self.log)
            .context("cannot start the forge")?;
        let ChainPlan { recipe, seed, scale, .. } = &self.plan.chain;
        let dir = self.dir.display();
        self.reporter.line(&format!("forging {recipe}, seed {seed}, scale {scale}, into {dir}"));
        self.reporter.step("forging");
        let status = loop {
            if let Some(status) = child.status() {
                break status;
            }
            ensure!(!self.reporter.wants_stop(), "interrupted while forging into {dir}");
            child.wait(LOOK_PERIOD);
            let mib = folder_bytes(&self.dir.join("blocks")) as f64 / 1_048_576.0;
            let seconds = start.elapsed().as_secs();
            self.reporter.step(&format!("forging: {mib:.1} MiB in {seconds} s"));
        };
        let log_tail = || tail(self.log);
        ensure!(status.success(), "the forge failed ({status}); its last words:\n{}", log_tail());
        Ok(start.elapsed().as_secs_f64())
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
}

/// Reports a complete chain of the plan that was there before.
pub(crate) fn report_reused(reporter: &dyn Reporter, chain: &Chain) {
    reporter.line(&format!("chain: {} (found in {})", chain.summary(), chain.dir.display()));
}
