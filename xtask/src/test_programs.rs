//! The test programs of a workspace, built at once: with fewer packages cargo would choose other features of dependencies, and
//! build them again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::forget_xtask;

pub(crate) struct TestProgram {
    pub(crate) executable: PathBuf,
    /// Package folder: the working directory under cargo.
    pub(crate) folder: PathBuf,
    /// `lib`, or the argument of `--test`.
    pub(crate) target: String,
}

impl TestProgram {
    /// The test executable in a cargo message, if any.
    fn announced(message: &Value) -> Option<Self> {
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let is_test = message["target"]["kind"][0] == "test";
        let target = if is_test { message["target"]["name"].as_str()? } else { "lib" };
        Some(Self {
            executable: message["executable"].as_str()?.into(),
            folder: Path::new(message["manifest_path"].as_str()?).parent()?.to_path_buf(),
            target: target.to_owned(),
        })
    }

    pub(crate) fn is_of(&self, package: &str) -> bool {
        self.folder.ends_with(package)
    }
}

/// The manifest of the workspace `curves/`, as an argument of cargo.
pub(crate) const CURVES: &str =
    concat!("--manifest-path=", env!("CARGO_MANIFEST_DIR"), "/../curves/Cargo.toml");

/// Packages of the root workspace and `curves/` for cargo, without `peer`: it needs two hundred libraries, `.ci/run` tests it.
pub(crate) const WORKSPACES: [&[&str]; 2] =
    [&["--workspace"], &[CURVES, "--workspace", "--exclude", "assay-peer-pairing"]];

/// Packages tested in debug builds. `.ci/run` tests the suites of reports in `curves/` optimised, as they are used.
pub(crate) const TESTED: [&[&str]; 2] =
    [&["--workspace"], &[CURVES, "--package", "assay-pairing", "--package", "assay-pool"]];

/// Builds the test programs of both workspaces with what `adapt` adds to the commands.
pub(crate) fn build(adapt: impl Fn(&mut Command)) -> anyhow::Result<Vec<TestProgram>> {
    let mut all = Vec::new();
    for packages in TESTED {
        let mut command = Command::new("cargo");
        command.arg("test").args(packages).args(["--lib", "--bins", "--tests"]);
        command.args(["--no-run", "--locked", "--message-format=json-render-diagnostics"]);
        adapt(&mut command);
        all.extend(built(command)?);
    }
    Ok(all)
}

/// Fails unless the command, a test program with a filter and `--list`, lists a test: without any it would run none, and succeed.
pub(crate) fn require_tests(command: &mut Command) -> anyhow::Result<()> {
    forget_xtask(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    let list = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !list.lines().any(|line| line.ends_with(": test")) {
        bail!("{command:?} lists no test");
    }
    Ok(())
}

fn built(mut command: Command) -> anyhow::Result<Vec<TestProgram>> {
    forget_xtask(&mut command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} ended with {}", output.status);
    }
    String::from_utf8(output.stdout)?
        .lines()
        .map(|line| serde_json::from_str(line).context("a message of cargo"))
        .filter_map(|message| message.map(|message| TestProgram::announced(&message)).transpose())
        .collect()
}
