//! Full validation of one forged chain by our engine and by Bitcoin Core's kernel, process against process.
//!
//! Both are given the same block files, the same cores and the same memory for coins, begin with an empty folder and verify
//! every script. Runs come in pairs whose order turns (ABBA), as many as were asked for beforehand. After each run tip,
//! coin count, amount and MuHash of the coins are compared with the ledger of the chain; the kernel's coins are read out of
//! its database, outside the time that is measured.

mod results;
mod text;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use serde::Deserialize;

use crate::chain::{Chain, ChainError};
use crate::machine;
use crate::process::measured::{self, MeasureError, Usage};

pub use self::results::{Side, SyncResults, SyncRun, SyncSettings};

/// Memory for coins, MiB: the kernel's interface fixes its own to this.
pub const DB_CACHE_MIB: u32 = 450;

/// What to compare, and how.
#[derive(Debug, Clone)]
pub struct SyncOptions {
    /// Our own program.
    pub assay: PathBuf,
    /// The program around the kernel.
    pub kernel: PathBuf,
    /// Recipe of the chain.
    pub recipe: String,
    /// Seed of the chain.
    pub seed: u64,
    /// Size of the chain.
    pub scale: f64,
    /// Whether every output has a key of its own.
    pub distinct_keys: bool,
    /// A chain that is there already, instead of recipe, seed and scale.
    pub chain_dir: Option<PathBuf>,
    /// Folder for the chain and for the coins of each run.
    pub work_dir: PathBuf,
    /// Pairs of runs.
    pub pairs: usize,
    /// Cores that both may use.
    pub cores: Vec<usize>,
    /// Threads that verify scripts.
    pub threads: usize,
    /// Whether to compare one core with two as well.
    pub cores_compare: bool,
    /// Whether to compare validation that samples its signatures with validation that does not.
    pub sample_compare: bool,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum SyncError {
    /// The chain cannot be read.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The folder given holds another chain.
    #[error(
        "{} holds another chain ({found}, not {wanted}); name another --work folder or remove it", dir.display()
    )]
    OtherChain {
        /// The folder.
        dir: PathBuf,
        /// What it holds.
        found: String,
        /// What was asked for.
        wanted: String,
    },
    /// The kernel knows Bitcoin's chains only.
    #[error(
        "the kernel does not know the chain {chain}; take a recipe of a Bitcoin chain, such as bitcoin-scaling"
    )]
    UnknownToKernel {
        /// The chain.
        chain: String,
    },
    /// A process failed.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// A folder or file cannot be used.
    #[error("cannot use {}", path.display())]
    File {
        /// The folder or file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A process printed something else than it should.
    #[error("{program} printed no such JSON as expected")]
    Output {
        /// The program.
        program: &'static str,
        /// What the JSON library says.
        source: serde_json::Error,
    },
    /// Both must end with the same chain and coins.
    #[error("{side} ended with {what} {found}, the ledger of the chain says {expected}")]
    Differs {
        /// Which program.
        side: &'static str,
        /// What differs.
        what: &'static str,
        /// What it has.
        found: String,
        /// What it should be.
        expected: String,
    },
    /// One core cannot be compared with two where there is one.
    #[error("--cores-compare needs two cores")]
    OneCore,
    /// Nothing was to be measured.
    #[error("give at least one pair of runs, one core and one thread")]
    Nothing,
}

/// Hears how it goes.
pub trait SyncProgress {
    /// The chain is there or is about to be forged.
    fn chain(&self, dir: &Path, is_forged: bool);
    /// Run number `done` of `total` begins.
    fn run(&self, name: &str, done: usize, total: usize);
    /// Everything has been measured.
    fn end(&self);
}

/// Which process, and on what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Ours,
    Kernel,
    OneCore,
    TwoCores,
    /// With the sample of signatures that is verified again, as it is by default.
    Sampled,
    /// Without it.
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
}

/// What `assay validate --json` prints, as far as it is needed.
#[derive(Deserialize)]
pub(crate) struct ValidateOutput {
    pub(crate) end: String,
    pub(crate) tip_height: u32,
    pub(crate) tip_hash: String,
    pub(crate) utxo: Option<ValidateCoins>,
    scan_s: f64,
    connect_s: f64,
    pub(crate) hash_s: f64,
}

#[derive(Deserialize)]
pub(crate) struct ValidateCoins {
    pub(crate) txouts: u64,
    pub(crate) amount_sat: u64,
    pub(crate) muhash: String,
}

/// A line of the kernel peer's `validate --json`, or of our `validate --json --progress`.
#[derive(Deserialize)]
pub(crate) struct HeightLine {
    pub(crate) kind: String,
    #[serde(default)]
    versions: Option<String>,
    #[serde(default)]
    pub(crate) height: u32,
    #[serde(default)]
    pub(crate) hash: String,
    #[serde(default)]
    elapsed_s: f64,
}

/// What the kernel peer's `coins --json` prints.
#[derive(Deserialize)]
pub(crate) struct CoinsLine {
    pub(crate) coins: u64,
    pub(crate) amount_sat: u64,
    pub(crate) muhash: String,
    pub(crate) best_block: String,
}

/// Forges the chain unless it is there, and runs all pairs.
///
/// # Errors
/// When something fails, or the two do not agree with the ledger: then no figure would mean anything.
pub fn run(options: &SyncOptions, progress: &dyn SyncProgress) -> Result<SyncResults, SyncError> {
    if options.pairs == 0 || options.threads == 0 || options.cores.is_empty() {
        return Err(SyncError::Nothing);
    }
    if options.cores_compare && options.cores.len() < 2 {
        return Err(SyncError::OneCore);
    }
    let chain = open_chain(options, progress)?;
    if chain.header.chain.starts_with("bch") {
        return Err(SyncError::UnknownToKernel { chain: chain.header.chain });
    }
    let order = order(options);
    let mut bench = Bench { options, chain: &chain, versions: None, page_cache: None };
    let mut runs = Vec::new();
    for (number, (subject, pair)) in order.iter().enumerate() {
        progress.run(subject.name(), number, order.len());
        runs.push(bench.run(*subject, *pair)?);
    }
    progress.end();
    let settings = SyncSettings {
        pairs: options.pairs,
        cores: options.cores.clone(),
        threads: options.threads,
        db_cache_mib: DB_CACHE_MIB,
        recipe: chain.header.recipe.clone(),
        seed: chain.header.seed,
        scale: chain.header.scale,
        distinct_keys: chain.header.distinct_keys,
        page_cache: bench.page_cache.take().unwrap_or_default(),
    };
    let versions = bench.versions.take().unwrap_or_default();
    let machine = machine::record(&options.work_dir);
    Ok(SyncResults::new(&chain, settings, runs, versions, machine))
}

/// Pairs whose order turns, and the pairs of one core and two after them.
fn order(options: &SyncOptions) -> Vec<(Subject, usize)> {
    let pairs = |first: Subject, second: Subject| {
        (0..options.pairs).flat_map(move |pair| {
            let both = if pair % 2 == 0 { [first, second] } else { [second, first] };
            both.map(|subject| (subject, pair))
        })
    };
    let mut order: Vec<_> = pairs(Subject::Ours, Subject::Kernel).collect();
    if options.cores_compare {
        order.extend(pairs(Subject::OneCore, Subject::TwoCores));
    }
    if options.sample_compare {
        order.extend(pairs(Subject::Sampled, Subject::Unsampled));
    }
    order
}

/// The chain asked for, forged by a process of its own when it is not there.
fn open_chain(options: &SyncOptions, progress: &dyn SyncProgress) -> Result<Chain, SyncError> {
    if let Some(dir) = &options.chain_dir {
        progress.chain(dir, false);
        return Ok(Chain::open(dir)?);
    }
    let SyncOptions { recipe, seed, scale, distinct_keys, .. } = options;
    let keys = if *distinct_keys { "-distinct" } else { "" };
    // A recipe may be a file, whose name inside is its own.
    let stem = Path::new(recipe).file_stem().unwrap_or_default().to_string_lossy();
    let dir = options.work_dir.join(format!("chain-{stem}-{seed}-{scale}{keys}"));
    if dir.join("ledger.jsonl").exists() {
        let chain = Chain::open(&dir)?;
        let describe = |seed: u64, scale: f64, distinct: bool| {
            format!("seed {seed}, scale {scale}, distinct keys {distinct}")
        };
        let header = &chain.header;
        let found = describe(header.seed, header.scale, header.distinct_keys);
        let wanted = describe(*seed, *scale, *distinct_keys);
        if found != wanted {
            return Err(SyncError::OtherChain { dir, found, wanted });
        }
        progress.chain(&dir, false);
        return Ok(chain);
    }
    make_dir(&dir)?;
    progress.chain(&dir, true);
    let mut command = Command::new(&options.assay);
    command.args(["chain", "forge", recipe, "--seed", &seed.to_string()]);
    command.args(["--scale", &scale.to_string(), "--out"]).arg(&dir);
    if *distinct_keys {
        command.arg("--distinct-keys");
    }
    // Its progress bar goes to our standard error.
    let program = || options.assay.display().to_string();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .map_err(|source| MeasureError::Spawn { program: program(), source })?;
    if !status.success() {
        let (program, status, log_tail) = (program(), status.to_string(), String::new());
        return Err(MeasureError::Failed { program, status, log_tail }.into());
    }
    Ok(Chain::open(&dir)?)
}

fn make_dir(dir: &Path) -> Result<(), SyncError> {
    fs::create_dir_all(dir).map_err(|source| SyncError::File { path: dir.to_owned(), source })
}

/// The runs of one comparison.
struct Bench<'a> {
    options: &'a SyncOptions,
    chain: &'a Chain,
    /// What the kernel peer says of itself.
    versions: Option<String>,
    /// What became of the wish for a cold page cache.
    page_cache: Option<String>,
}

impl Bench<'_> {
    /// One run from nothing to the end, checked.
    fn run(&mut self, subject: Subject, pair: usize) -> Result<SyncRun, SyncError> {
        let dir = self.options.work_dir.join("run");
        if dir.exists() {
            remove_dir(&dir)?;
        }
        make_dir(&dir)?;
        self.forget_blocks();
        let (cores, threads) = match subject {
            Subject::Ours | Subject::Kernel | Subject::Sampled | Subject::Unsampled => {
                (&self.options.cores[..], self.options.threads)
            }
            Subject::OneCore => (&self.options.cores[..1], 1),
            Subject::TwoCores => (&self.options.cores[..2], 2),
        };
        let stdout = dir.join("stdout");
        let command = self.command(subject, threads, &dir.join("data"));
        let usage = measured::run(&command, cores, &stdout)?;
        let text = fs::read_to_string(&stdout)
            .map_err(|source| SyncError::File { path: stdout.clone(), source })?;
        let run = match subject {
            Subject::Kernel => self.kernel_run(pair, usage, &text, &dir)?,
            _ => self.our_run(subject, pair, usage, &text)?,
        };
        remove_dir(&dir)?;
        Ok(run)
    }

    fn command(&self, subject: Subject, threads: usize, datadir: &Path) -> Vec<OsString> {
        let chain = &self.chain.header.chain;
        let blocks = self.chain.dir.join("blocks");
        let (program, last) = if subject == Subject::Kernel {
            // Its submitting thread verifies too, beside the workers.
            let workers = (threads - 1).to_string();
            (&self.options.kernel, vec!["--worker-threads".to_owned(), workers])
        } else {
            let cache = ["--db-cache".to_owned(), DB_CACHE_MIB.to_string()];
            let par = ["--par".to_owned(), threads.to_string()];
            // Said in both cases, so that the environment decides neither.
            let sample = match subject {
                Subject::Sampled => vec!["--sample-signatures".to_owned(), "256".to_owned()],
                Subject::Unsampled => vec!["--sample-signatures".to_owned(), "0".to_owned()],
                _ => Vec::new(),
            };
            (&self.options.assay, [&cache[..], &par, &sample].concat())
        };
        let mut command: Vec<OsString> = vec![program.into(), "validate".into(), "--blocks".into()];
        command.extend([blocks.into(), "--chain".into(), chain.into(), "--datadir".into()]);
        command.extend([datadir.into(), OsString::from("--json")]);
        command.extend(last.into_iter().map(OsString::from));
        command
    }

    fn our_run(
        &self,
        subject: Subject,
        pair: usize,
        usage: Usage,
        text: &str,
    ) -> Result<SyncRun, SyncError> {
        let output: ValidateOutput = serde_json::from_str(text)
            .map_err(|source| SyncError::Output { program: "assay validate", source })?;
        let tip = &self.chain.tip;
        let check = Check("assay");
        check.same("end", output.end.as_str(), "complete")?;
        check.same("tip", &output.tip_hash, &tip.hash)?;
        check.same("height", &output.tip_height, &tip.height)?;
        let coins = output.utxo.as_ref();
        check.same("coin count", &coins.map_or(0, |coins| coins.txouts), &tip.utxo_count)?;
        check.same("amount", &coins.map_or(0, |coins| coins.amount_sat), &tip.utxo_amount)?;
        check.same("MuHash", coins.map_or("", |coins| &coins.muhash), tip.utxo_muhash.as_str())?;
        let connect_s = output.scan_s + output.connect_s;
        let hash_s = Some(output.hash_s);
        Ok(SyncRun { subject: subject.name().to_owned(), pair, usage, connect_s, hash_s })
    }

    /// The kernel keeps its coins in a database of its own, which a second process reads once it has ended.
    fn kernel_run(
        &mut self,
        pair: usize,
        usage: Usage,
        text: &str,
        dir: &Path,
    ) -> Result<SyncRun, SyncError> {
        let not_json = |source| SyncError::Output { program: "assay-peer-kernel validate", source };
        let mut end = None;
        for line in text.lines() {
            let line: HeightLine = serde_json::from_str(line).map_err(not_json)?;
            if line.versions.is_some() {
                self.versions.clone_from(&line.versions);
            }
            if line.kind == "end" {
                end = Some(line);
            }
        }
        let (tip, check) = (&self.chain.tip, Check("kernel"));
        let end = end.ok_or_else(|| check.differs("end", "none", "complete"))?;
        check.same("tip", &end.hash, &tip.hash)?;
        check.same("height", &end.height, &tip.height)?;
        let stdout = dir.join("coins");
        let mut command: Vec<OsString> = vec![(&self.options.kernel).into(), "coins".into()];
        command.extend(["--datadir".into(), dir.join("data").into(), OsString::from("--json")]);
        measured::run(&command, &self.options.cores, &stdout)?;
        let text = fs::read_to_string(&stdout)
            .map_err(|source| SyncError::File { path: stdout.clone(), source })?;
        let coins: CoinsLine = serde_json::from_str(&text)
            .map_err(|source| SyncError::Output { program: "assay-peer-kernel coins", source })?;
        check.same("block of its coins", &coins.best_block, &tip.hash)?;
        check.same("coin count", &coins.coins, &tip.utxo_count)?;
        check.same("amount", &coins.amount_sat, &tip.utxo_amount)?;
        check.same("MuHash", &coins.muhash, &tip.utxo_muhash)?;
        let subject = Subject::Kernel.name().to_owned();
        Ok(SyncRun { subject, pair, usage, connect_s: end.elapsed_s, hash_s: None })
    }

    /// Takes the block files out of the page cache where the system lets one.
    fn forget_blocks(&mut self) {
        let blocks = self.chain.dir.join("blocks");
        let mut entries = fs::read_dir(&blocks).into_iter().flatten().flatten();
        let trouble = entries.find_map(|entry| measured::forget_file(&entry.path()).err());
        self.page_cache = Some(match trouble {
            None => "block files dropped from the page cache before each run".to_owned(),
            Some(error) => format!("block files stayed in the page cache ({error})"),
        });
    }
}

/// Compares what a program ended with.
struct Check(&'static str);

impl Check {
    fn same<A, B>(&self, what: &'static str, found: &A, expected: &B) -> Result<(), SyncError>
    where
        A: ToString + PartialEq<B> + ?Sized,
        B: ToString + ?Sized,
    {
        if found == expected {
            return Ok(());
        }
        Err(self.differs(what, found, expected))
    }

    fn differs<A, B>(&self, what: &'static str, found: &A, expected: &B) -> SyncError
    where
        A: ToString + ?Sized,
        B: ToString + ?Sized,
    {
        let (found, expected) = (found.to_string(), expected.to_string());
        SyncError::Differs { side: self.0, what, found, expected }
    }
}

fn remove_dir(dir: &Path) -> Result<(), SyncError> {
    fs::remove_dir_all(dir).map_err(|source| SyncError::File { path: dir.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> SyncOptions {
        SyncOptions {
            assay: "assay".into(),
            kernel: "assay-peer-kernel".into(),
            recipe: "bitcoin-scaling".to_owned(),
            seed: 1,
            scale: 2.0,
            distinct_keys: true,
            chain_dir: None,
            work_dir: "work".into(),
            pairs: 3,
            cores: vec![0, 1],
            threads: 2,
            cores_compare: true,
            sample_compare: true,
        }
    }

    #[test]
    fn pairs_turn() {
        use Subject::{Kernel, OneCore, Ours, Sampled, TwoCores, Unsampled};
        let order = order(&options());
        let subjects: Vec<Subject> = order.iter().map(|(subject, _)| *subject).collect();
        assert_eq!(subjects[..6], [Ours, Kernel, Kernel, Ours, Ours, Kernel]);
        assert_eq!(subjects[6..12], [OneCore, TwoCores, TwoCores, OneCore, OneCore, TwoCores]);
        assert_eq!(subjects[12..], [Sampled, Unsampled, Unsampled, Sampled, Sampled, Unsampled]);
        assert_eq!(order[5].1, 2);
    }

    #[test]
    fn both_sides_must_agree_with_the_ledger() {
        let check = Check("kernel");
        check.same("height", &7, &7).expect("they are the same");
        let error = check.same("coin count", &6, &7).expect_err("they differ").to_string();
        assert_eq!(error, "kernel ended with coin count 6, the ledger of the chain says 7");
    }

    #[test]
    fn impossible_wishes_are_refused() {
        struct Silent;
        impl SyncProgress for Silent {
            fn chain(&self, _: &Path, _: bool) {}
            fn run(&self, _: &str, _: usize, _: usize) {}
            fn end(&self) {}
        }
        let none = SyncOptions { pairs: 0, ..options() };
        assert!(matches!(run(&none, &Silent), Err(SyncError::Nothing)));
        let one = SyncOptions { cores: vec![1], ..options() };
        assert!(matches!(run(&one, &Silent), Err(SyncError::OneCore)));
    }
}
