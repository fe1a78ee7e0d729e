//! Bitcoin Core's functional tests, unmodified, with our node as `bitcoind`.
//!
//! A few tests of our own use the same framework to test our node with Core's program (`xtask/functional`). Core's test framework
//! starts the program in `BITCOIND` with Core's command line and uses RPC and the peer-to-peer protocol. [`list`] has the tests
//! and those that must pass; [`framework`] runs one.

mod framework;
mod list;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::{fs, thread};

use anyhow::{Context, bail};

use self::framework::{Framework, Outcome, Run};
use self::list::Test;
use crate::finish;

struct Options {
    /// A checkout of Bitcoin Core.
    source: PathBuf,
    /// Core's own program, for comparison.
    core: Option<PathBuf>,
    cli: Option<PathBuf>,
    /// Our program, if it need not be built.
    program: Option<PathBuf>,
    profile: String,
    jobs: usize,
    timeout_factor: String,
    port_seed: u32,
    all: bool,
    names: Vec<String>,
}

/// Runs the tests; an error if a required one fails.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let options = Options::parse(arguments)?;
    let tests = list::chosen(&options.names, options.all, options.core.is_some())?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("there is a workspace")?;
    let folder = root.join("target/core-tests");
    let ours = match &options.program {
        Some(program) => program.clone(),
        None => build(root, &options.profile)?,
    };
    let ours = Framework::new(&folder.join("assay"), &options, "Assay", &ours)?;
    let core = match &options.core {
        Some(program) => {
            Some(Framework::new(&folder.join("core"), &options, "Bitcoin Core", program)?)
        }
        None => None,
    };
    head(core.is_some());
    let failed = run_all(&tests, &options, &ours, core.as_ref());
    if !failed.is_empty() {
        bail!(
            "{} that must pass did not; their logs are in {}",
            failed.join(", "),
            folder.display()
        )
    }
    let unlisted = list::unlisted(&options.source.join("test/functional"))?;
    if options.names.is_empty() && !unlisted.is_empty() {
        bail!("xtask/core-tests.toml lacks {}", unlisted.join(", "))
    }
    Ok(())
}

/// Runs tests, `jobs` at a time; returns the names of unexpected failures.
fn run_all(
    tests: &[Test],
    options: &Options,
    ours: &Framework,
    core: Option<&Framework>,
) -> Vec<String> {
    let queue: Mutex<VecDeque<(u32, &Test)>> = Mutex::new((0..).zip(tests).collect());
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some((index, test)) = next else { return };
                    let seed = options.port_seed + 2 * index;
                    let our_run = ours.run(&test.name, seed);
                    // Interoperability tests are not compared.
                    let core = core.filter(|_| !test.with_core);
                    let core_run = core.map(|core| core.run(&test.name, seed + 1));
                    row(test, &our_run, core_run.as_ref());
                    if test.must_pass && our_run.outcome != Outcome::Passed {
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.push(test.name.clone());
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn head(with_core: bool) {
    let core = if with_core { "  Core     seconds" } else { "" };
    println!("{:<40}{:<9}{:>7}{core}", "test", "result", "seconds");
}

fn row(test: &Test, ours: &Run, core: Option<&Run>) {
    let core = core.map(|core| format!("  {:<9}{:>7.1}", core.outcome.name(), core.seconds));
    let note = match (ours.outcome, test.must_pass, &test.reason) {
        (Outcome::Failed, true, _) => "  must pass",
        (Outcome::Failed, false, Some(reason)) => &format!("  {reason}"),
        (Outcome::Passed, false, Some(_)) => "  can be made one that must pass",
        _ => "",
    };
    let core = core.unwrap_or_default();
    println!("{:<40}{:<9}{:>7.1}{core}{note}", test.name, ours.outcome.name(), ours.seconds);
}

pub(crate) fn build(root: &Path, profile: &str) -> anyhow::Result<PathBuf> {
    let cargo_profile = if profile == "debug" { "dev" } else { profile };
    finish(Command::new("cargo").current_dir(root).args([
        "build",
        "--locked",
        "--bin",
        "assay",
        "--profile",
        cargo_profile,
    ]))?;
    let program = root.join("target").join(profile).join("assay");
    fs::canonicalize(&program).with_context(|| format!("cannot find {}", program.display()))
}

impl Options {
    fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut source = None;
        let mut options = Self {
            source: PathBuf::new(),
            core: None,
            cli: None,
            program: None,
            profile: "release".to_owned(),
            jobs: 1,
            timeout_factor: "1".to_owned(),
            port_seed: 1,
            all: false,
            names: Vec::new(),
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().with_context(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--source" => source = Some(absolute(value()?)?),
                "--core" => options.core = Some(absolute(value()?)?),
                "--cli" => options.cli = Some(absolute(value()?)?),
                "--program" => options.program = Some(absolute(value()?)?),
                "--profile" => options.profile.clone_from(value()?),
                "--jobs" => {
                    options.jobs = value()?.parse().context("--jobs takes a number")?;
                }
                "--timeout-factor" => options.timeout_factor.clone_from(value()?),
                "--portseed" => {
                    options.port_seed = value()?.parse().context("--portseed takes a number")?;
                }
                "--all" => options.all = true,
                flag if flag.starts_with('-') => bail!("unknown option {flag}"),
                name => {
                    let name = name.strip_suffix(".py").unwrap_or(name);
                    options.names.push(name.to_owned());
                }
            }
        }
        options.source = source.context("give the checkout of Bitcoin Core: --source PATH")?;
        options.jobs = options.jobs.max(1);
        Ok(options)
    }
}

pub(crate) fn absolute(path: &str) -> anyhow::Result<PathBuf> {
    fs::canonicalize(path).with_context(|| format!("cannot find {path}"))
}
