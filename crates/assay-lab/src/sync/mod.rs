//! `assay bench sync`: full validation of one forged chain by Assay's engine and by Bitcoin Core's kernel, process against
//! process.
//!
//! It is a plan similar to `core-evolution` with settings of its own: both sides read the same block files, have the same cores
//! and the same coin cache, begin with an empty folder and verify every script. Runs form pairs in alternating order (ABBA);
//! their number is fixed in advance. After each run tip, coin count, amount and `MuHash` of the UTXO set are compared with the
//! ledger of the chain. This module defines the runs, and computes ratios of pairs.

mod results;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use assay_report::record::Record;

use self::results::SyncRun;
use crate::plan::{Delivery, NodeSpec, Plan, PlanError, SyncPlan, TargetSpec};
use crate::progress::Reporter;
use crate::results::{Check, Results, Run};
use crate::run::{self, RunOptions, VoidRun};

/// Coin cache in MiB: fixed by the kernel's interface.
pub const DB_CACHE_MIB: u32 = 450;

/// Base plan of the settings.
const PLAN: &str = "core-evolution";

#[derive(Debug, Clone)]
pub struct SyncOptions {
    /// The program around the kernel.
    pub kernel: PathBuf,
    pub recipe: String,
    pub seed: u64,
    pub scale: f64,
    /// True to give every output its own key.
    pub distinct_keys: bool,
    /// An existing chain, instead of recipe, seed and scale.
    pub chain_dir: Option<PathBuf>,
    pub pairs: u32,
    /// Cores that both may use.
    pub cores: Vec<usize>,
    /// Script check threads.
    pub threads: usize,
    /// Also compare one core with two.
    pub cores_compare: bool,
    /// Also compare validation with and without signature spot checks.
    pub sample_compare: bool,
}

/// Process and its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Ours,
    Kernel,
    OneCore,
    TwoCores,
    /// With the default signature spot checks.
    Sampled,
    /// Without spot checks.
    Unsampled,
}

impl Subject {
    const fn name(self) -> &'static str {
        match self {
            Self::Ours => "assay",
            Self::Kernel => "kernel",
            Self::OneCore => "assay on one core",
            Self::TwoCores => "assay on two cores",
            Self::Sampled => "assay, sampled",
            Self::Unsampled => "assay, not sampled",
        }
    }

    /// The subject as a target of the plan.
    fn target(self, options: &SyncOptions) -> TargetSpec {
        let (cores, threads) = match self {
            Self::OneCore => (1, 1),
            Self::TwoCores => (2, 2),
            _ => (options.cores.len(), options.threads),
        };
        let node = match self {
            Self::Kernel => NodeSpec::Kernel(Some(options.kernel.clone())),
            _ => NodeSpec::Engine(None),
        };
        // The kernel's submitting thread verifies too, like the workers.
        let mut args = match self {
            Self::Kernel => vec!["--worker-threads".to_owned(), (threads - 1).to_string()],
            _ => vec!["--par".to_owned(), threads.to_string()],
        };
        // Explicit in both cases, so that the environment has no influence.
        match self {
            Self::Sampled => args.extend(["--sample-signatures", "256"].map(str::to_owned)),
            Self::Unsampled => args.extend(["--sample-signatures", "0"].map(str::to_owned)),
            _ => {}
        }
        let name = Some(self.name().replace(", ", "-").replace(' ', "-"));
        let cores = options.cores[..cores].to_vec();
        TargetSpec { name, args, cores, ..TargetSpec::node(node) }
    }
}

/// Compared sides; those of a pair are adjacent.
fn subjects(options: &SyncOptions) -> Vec<Subject> {
    let mut subjects = vec![Subject::Ours, Subject::Kernel];
    if options.cores_compare {
        subjects.extend([Subject::OneCore, Subject::TwoCores]);
    }
    if options.sample_compare {
        subjects.extend([Subject::Sampled, Subject::Unsampled]);
    }
    subjects
}

/// Forges the chain unless it exists, and runs all pairs. `with` defines folders and programs; its targets and chain are set here.
///
/// # Errors
/// When something fails, or a side differs from the ledger: the figures would be meaningless.
pub fn run(
    options: &SyncOptions,
    with: RunOptions,
    reporter: &dyn Reporter,
) -> anyhow::Result<Record> {
    ensure!(
        options.pairs > 0 && options.threads > 0 && !options.cores.is_empty(),
        "give at least one pair of runs, one core and one thread"
    );
    ensure!(!options.cores_compare || options.cores.len() >= 2, "--cores-compare needs two cores");
    let subjects = subjects(options);
    let with = RunOptions {
        chain_dir: Some(chain_dir(options, &with.out_dir)),
        takes_any_chain: options.chain_dir.is_some(),
        targets: subjects.iter().map(|subject| subject.target(options)).collect(),
        ..with
    };
    let results = run::run(plan(options)?, &with, reporter).map_err(|error| {
        // Without the advice to resume, which is for plans.
        match error.downcast::<VoidRun>() {
            Ok(VoidRun { id, source, .. }) => source.context(format!("run {id} failed")),
            Err(other) => other,
        }
    })?;
    let runs = in_order(&subjects, &results)?;
    Ok(results::record(options, &results, &runs))
}

fn plan(options: &SyncOptions) -> Result<Plan, PlanError> {
    let mut plan = Plan::builtin(PLAN)?;
    "bench-sync".clone_into(&mut plan.name);
    "Full validation: our engine and Bitcoin Core's kernel".clone_into(&mut plan.title);
    plan.chain.recipe.clone_from(&options.recipe);
    plan.chain.seed = options.seed;
    plan.chain.scale = options.scale;
    plan.chain.distinct_keys = options.distinct_keys;
    plan.feed.by = Delivery::Peer;
    plan.sync = SyncPlan { dbcache_mib: DB_CACHE_MIB, ..SyncPlan::default() };
    plan.runs.repeat = options.pairs;
    plan.runs.drop_blocks = true;
    Ok(plan)
}

/// Chains of different sizes are stored side by side and reused.
fn chain_dir(options: &SyncOptions, work_dir: &Path) -> PathBuf {
    if let Some(dir) = &options.chain_dir {
        return dir.clone();
    }
    let SyncOptions { recipe, seed, scale, distinct_keys, .. } = options;
    let keys = if *distinct_keys { "-distinct" } else { "" };
    // A recipe may be a file with its own name inside.
    let stem = Path::new(recipe).file_stem().unwrap_or_default().to_string_lossy();
    work_dir.join(format!("chain-{stem}-{seed}-{scale}{keys}"))
}

/// Runs in execution order: every second round was reversed.
fn in_order<'a>(subjects: &[Subject], results: &'a Results) -> anyhow::Result<Vec<SyncRun<'a>>> {
    let rounds = results.targets.iter().map(|target| target.runs.len()).max().unwrap_or_default();
    let mut runs = Vec::new();
    for pair in 0..rounds {
        let mut round: Vec<_> = subjects.iter().zip(&results.targets).collect();
        if pair % 2 == 1 {
            round.reverse();
        }
        for (subject, target) in round {
            if let Some(run) = target.runs.get(pair) {
                runs.push(checked(*subject, pair, run)?);
            }
        }
    }
    Ok(runs)
}

/// A run of this comparison, which must match the ledger in everything.
fn checked(subject: Subject, pair: usize, run: &Run) -> anyhow::Result<SyncRun<'_>> {
    let side = subject.name();
    let is_wrong = |check: &&Check| check.found.as_ref() != Some(&check.expected);
    if let Some(check) = run.checks.iter().find(is_wrong) {
        let Check { what, expected, .. } = check;
        let found = check.found.as_deref().unwrap_or("unknown");
        bail!("{side} ended with {what} {found}, the ledger of the chain says {expected}");
    }
    let process = run.process.as_ref();
    let process = process.with_context(|| format!("the system gave no account of {side}"))?;
    Ok(SyncRun { subject, pair, process, is_disturbed: run.disturbance.is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Usage;
    use crate::progress::Silent;
    use crate::results::{WholeProcess, fixture};

    fn options() -> SyncOptions {
        SyncOptions {
            kernel: "assay-peer-kernel".into(),
            recipe: "bitcoin-scaling".to_owned(),
            seed: 1,
            scale: 2.0,
            distinct_keys: true,
            chain_dir: None,
            pairs: 3,
            cores: vec![0, 1],
            threads: 2,
            cores_compare: true,
            sample_compare: true,
        }
    }

    #[test]
    fn every_side_sets_cores_and_threads() {
        let options = SyncOptions { cores: vec![4, 2, 3], threads: 3, ..options() };
        let targets: Vec<String> = subjects(&options)
            .iter()
            .map(|subject| {
                let target = subject.target(&options);
                assert!(crate::plan::is_target_name(target.name.as_deref().unwrap_or_default()));
                format!("{target} on {:?}", target.cores)
            })
            .collect();
        assert_eq!(
            targets,
            [
                "assay:engine --par 3 on [4, 2, 3]",
                "kernel:kernel=assay-peer-kernel --worker-threads 2 on [4, 2, 3]",
                "assay-on-one-core:engine --par 1 on [4]",
                "assay-on-two-cores:engine --par 2 on [4, 2]",
                "assay-sampled:engine --par 3 --sample-signatures 256 on [4, 2, 3]",
                "assay-not-sampled:engine --par 3 --sample-signatures 0 on [4, 2, 3]",
            ]
        );
        assert!(plan(&options).expect("built in").runs.drop_blocks);
        assert_eq!(
            chain_dir(&options, Path::new("work")),
            Path::new("work/chain-bitcoin-scaling-1-2-distinct")
        );
    }

    /// Results of two targets with three runs each that match the ledger.
    fn results() -> Results {
        let mut results = fixture::results();
        let usage = Usage { wall_s: 1.0, user_s: 0.5, system_s: 0.5, rss_bytes_max: 1 };
        let mut run = results.targets[0].runs[0].clone();
        run.process = Some(WholeProcess { usage, connect_s: 0.5, hash_s: None, versions: None });
        results.targets.truncate(1);
        results.targets[0].runs = vec![run; 3];
        results.targets.push(results.targets[0].clone());
        results
    }

    #[test]
    fn pairs_alternate() {
        let results = results();
        let runs = in_order(&[Subject::Ours, Subject::Kernel], &results).expect("all agree");
        let order: Vec<(&str, usize)> =
            runs.iter().map(|run| (run.subject.name(), run.pair)).collect();
        let expected =
            [("assay", 0), ("kernel", 0), ("kernel", 1), ("assay", 1), ("assay", 2), ("kernel", 2)];
        assert_eq!(order, expected);
    }

    #[test]
    fn both_sides_must_agree_with_the_ledger() {
        let mut results = results();
        let check = |found: Option<&str>| Check {
            what: "UTXO count".to_owned(),
            expected: "7".to_owned(),
            found: found.map(str::to_owned),
        };
        for (found, text) in [(Some("6"), "6"), (None, "unknown")] {
            results.targets[1].runs[2].checks = vec![check(found)];
            let error = in_order(&[Subject::Ours, Subject::Kernel], &results)
                .expect_err("they differ")
                .to_string();
            let expected =
                format!("kernel ended with UTXO count {text}, the ledger of the chain says 7");
            assert_eq!(error, expected);
        }
    }

    #[test]
    fn rejects_impossible_options() {
        let with = RunOptions::default;
        let none = SyncOptions { pairs: 0, ..options() };
        let error = run(&none, with(), &Silent).expect_err("nothing to do").to_string();
        assert!(error.starts_with("give at least one pair"), "{error}");
        let one = SyncOptions { cores: vec![1], ..options() };
        let error = run(&one, with(), &Silent).expect_err("one core").to_string();
        assert_eq!(error, "--cores-compare needs two cores");
    }
}
