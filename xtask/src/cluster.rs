//! Tests of `python/assay-cluster` on Ray, in a separate environment, with the built program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::{NotRun, finish, fuzz};

const PACKAGE: &str = "python/assay-cluster";

/// The stage of `cargo xtask ci`. It does not run where Python or the packages cannot be had.
pub(crate) fn run() -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask has a parent")?;
    let program = program(root)?;
    let fuzz = fuzz::program(root)?;
    let environment = root.join("target/assay-cluster");
    if let Some(missing) = make(root, &environment) {
        return Err(NotRun(missing.to_owned()).into());
    }
    let bin = environment.join("bin");
    let in_package = |tool: &str, arguments: &[&str]| {
        let mut command = Command::new(bin.join(tool));
        command.args(arguments).current_dir(root.join(PACKAGE)).env("ASSAY", &program);
        // The test that needs them says that it was skipped.
        if std::env::var_os("ASSAY_FUZZ_PROGRAM").is_none() && fuzz.exists() {
            command.env("ASSAY_FUZZ_PROGRAM", &fuzz);
        }
        finish(&mut command)
    };
    in_package("ruff", &["format", "--check", "."])?;
    in_package("ruff", &["check", "."])?;
    in_package("mypy", &[])?;
    in_package("python", &["-m", "unittest", "discover", "-v", "-t", ".", "-s", "tests"])
}

/// `ASSAY`, or the last build.
fn program(root: &Path) -> anyhow::Result<PathBuf> {
    if let Some(given) = std::env::var_os("ASSAY") {
        return Ok(given.into());
    }
    let built = ["release", "debug"].map(|profile| root.join("target").join(profile).join("assay"));
    match built.into_iter().find(|path| path.is_file()) {
        Some(program) => Ok(program),
        None => bail!("no program: cargo build --release, or set ASSAY"),
    }
}

/// Creates the environment, or returns the missing part.
fn make(root: &Path, environment: &Path) -> Option<&'static str> {
    let works = |command: &mut Command| {
        command.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    if !works(Command::new("python3").args(["-m", "venv"]).arg(environment)) {
        return Some("python3 cannot make a virtual environment (Debian: python3-venv)");
    }
    let mut pip = Command::new(environment.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--editable"]);
    pip.arg(root.join(PACKAGE)).args(["ruff==0.17.6", "mypy==2.4.1"]);
    (!works(&mut pip)).then_some("pip cannot install Ray, ruff and mypy")
}
