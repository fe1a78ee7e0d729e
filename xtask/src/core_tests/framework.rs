//! Runs one of Core's test programs.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::Options;
use crate::forget_xtask;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    /// The test skipped itself.
    Skipped,
}

impl Outcome {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub(super) outcome: Outcome,
    pub(super) seconds: f64,
}

/// Environment of the test programs.
pub(super) struct Framework {
    /// Folder of Core's tests.
    tests: PathBuf,
    /// Folder of configuration, cache and the files of failed tests.
    folder: PathBuf,
    /// Used as `bitcoind`.
    program: PathBuf,
    /// Used as `bitcoin-cli`.
    cli: PathBuf,
    /// Core's own program, for interoperability tests.
    core: Option<PathBuf>,
    timeout_factor: String,
}

impl Framework {
    /// Recreates `folder` with the files that the tests need.
    pub(super) fn new(
        folder: &Path,
        options: &Options,
        client: &str,
        program: &Path,
    ) -> anyhow::Result<Self> {
        let source = &options.source;
        let tests = source.join("test/functional");
        ensure!(tests.is_dir(), "there are no functional tests in {}", source.display());
        if folder.exists() {
            // Another build made the cached chain, and nothing checks this.
            fs::remove_dir_all(folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        // The executable's name selects the command line interface.
        let link = folder.join("bitcoind");
        symlink(program, &link).with_context(|| format!("cannot make {}", link.display()))?;
        let framework = Self {
            tests,
            folder: folder.to_owned(),
            program: link,
            cli: options.cli.clone().unwrap_or_else(|| PathBuf::from(OWN_CLI)),
            core: options.core.clone(),
            timeout_factor: options.timeout_factor.clone(),
        };
        let config = config(source, client, options.cli.is_some())?;
        fs::write(framework.config(), config)
            .with_context(|| format!("cannot write {}", framework.config().display()))?;
        // Parallel tests would each make the initial chain that most of them use.
        framework.run("create_cache", 0);
        Ok(framework)
    }

    fn config(&self) -> PathBuf {
        self.folder.join("config.ini")
    }

    /// Runs a test. Its log and the folders of its nodes are kept if it fails.
    pub(super) fn run(&self, name: &str, port_seed: u32) -> Run {
        let start = Instant::now();
        let outcome = match self.start(name, port_seed).and_then(|mut child| wait(&mut child)) {
            Ok(status) => match status.code() {
                Some(0) => Outcome::Passed,
                Some(77) => Outcome::Skipped,
                _ => Outcome::Failed,
            },
            Err(error) => {
                eprintln!("{name}: {error:#}");
                Outcome::Failed
            }
        };
        if outcome != Outcome::Failed {
            let _ = fs::remove_file(self.log(name));
        }
        Run { outcome, seconds: start.elapsed().as_secs_f64() }
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    fn start(&self, name: &str, port_seed: u32) -> anyhow::Result<Child> {
        let mut test = self.tests.join(format!("{name}.py"));
        if !test.is_file() {
            test = Path::new(OWN_TESTS).join(format!("{name}.py"));
        }
        ensure!(test.is_file(), "there is no {}", test.display());
        let path = self.log(name);
        let log =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let mut command = Command::new("python3");
        forget_xtask(&mut command);
        command
            .arg(&test)
            .arg(format!("--configfile={}", self.config().display()))
            .arg(format!("--cachedir={}", self.folder.join("cache").display()))
            .arg(format!("--tmpdir={}", self.folder.join(name).display()))
            .arg(format!("--portseed={port_seed}"))
            .arg(format!("--timeout-factor={}", self.timeout_factor))
            .env("BITCOIND", &self.program)
            .env("BITCOINCLI", &self.cli)
            // Path of the framework for our own tests.
            .env("PYTHONPATH", &self.tests)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdout(log.try_clone()?)
            .stderr(log)
            // In a process group with its nodes, so that all can be killed together.
            .process_group(0);
        if let Some(core) = &self.core {
            command.env("BITCOIND_CORE", core);
        }
        command.spawn().context("cannot start python3")
    }
}

/// Waits for the end of a test, and kills it on timeout.
fn wait(child: &mut Child) -> anyhow::Result<ExitStatus> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if start.elapsed() > TIME_MAX {
            Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status()?;
            return Ok(child.wait()?);
        }
        thread::sleep(POLL);
    }
}

/// `test/config.ini` in the form written by Core's build. It contains every component of the template, since tests fail on a
/// missing one; tests of disabled components skip themselves.
fn config(source: &Path, client: &str, has_cli: bool) -> anyhow::Result<String> {
    let template = source.join("test/config.ini.in");
    let template = fs::read_to_string(&template)
        .with_context(|| format!("cannot read {}", template.display()))?;
    let source = source.display();
    let mut config = format!(
        "[environment]\nCLIENT_NAME={client}\nCLIENT_BUGREPORT=the log\nSRCDIR={source}\nBUILDDIR={source}/build\nEXEEXT=\n\
         RPCAUTH={source}/share/rpcauth/rpcauth.py\n\n[components]\n"
    );
    for component in components(&template) {
        let is_on = match component {
            "ENABLE_BITCOIND" | "ENABLE_ZMQ" => true,
            "ENABLE_CLI" => has_cli,
            _ => false,
        };
        let _ = writeln!(config, "{component}={is_on}");
    }
    Ok(config)
}

/// Component names in a template, `NAME=@…@` or, before `CMake`, `@…@NAME=true`.
fn components(template: &str) -> impl Iterator<Item = &str> {
    let lines = template.lines().skip_while(|line| line.trim() != "[components]").skip(1);
    lines.filter(|line| !line.starts_with('#')).filter_map(|line| {
        let (name, _) = line.split_once('=')?;
        Some(name.rsplit('@').next().unwrap_or(name).trim())
    })
}

const OWN_TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/functional");
/// Minimal `bitcoin-cli` that calls a node by RPC, used if no other is given.
const OWN_CLI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/functional/bitcoin-cli");
/// The longest of the listed tests takes a few minutes.
const TIME_MAX: Duration = Duration::from_mins(40);
const POLL: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_component_of_the_template_has_a_value() {
        let folder = std::env::temp_dir().join(format!("xtask-config-{}", std::process::id()));
        fs::create_dir_all(folder.join("test")).unwrap();
        let template = "[environment]\nSRCDIR=@abs_top_srcdir@\n\n[components]\n# Which are on.\n\
                        ENABLE_WALLET=@ENABLE_WALLET_VALUE@\nENABLE_CLI=@BUILD_BITCOIN_CLI_VALUE@\n\
                        @ENABLE_ZMQ_TRUE@ENABLE_ZMQ=true\nENABLE_BITCOIND=@BUILD_BITCOIND_VALUE@\n";
        fs::write(folder.join("test/config.ini.in"), template).unwrap();
        let config = config(&folder, "Assay", false).unwrap();
        let (_, components) = config.split_once("[components]\n").unwrap();
        assert_eq!(
            components,
            "ENABLE_WALLET=false\nENABLE_CLI=false\nENABLE_ZMQ=true\nENABLE_BITCOIND=true\n"
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
