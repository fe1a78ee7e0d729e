//! CI stages, ordered by the cost of a failure.

use std::process::Command;
use std::time::Instant;

use anyhow::bail;

use crate::test_programs::{CURVES, TESTED, WORKSPACES, require_tests};
use crate::test_times;
use crate::{NotRun, finish};

/// Makes the stage `tests` fail if a test was skipped because data or a program is absent.
const REQUIRE_ALL: &str = "--require-all";

/// Runs the named stages, or all that are not optional; stops at the first failure.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    let requires_all = arguments.iter().any(|argument| argument == REQUIRE_ALL);
    let names: Vec<&String> = arguments.iter().filter(|name| *name != REQUIRE_ALL).collect();
    let all = || STAGES.iter().chain(&OPTIONAL);
    let mut not_run = Vec::new();
    if let Some(unknown) = names.iter().find(|name| all().all(|(known, _)| known != *name)) {
        let known: Vec<&str> = all().map(|(name, _)| *name).collect();
        bail!("there is no stage `{unknown}`; there are {}", known.join(", "));
    }
    for (name, work) in all() {
        let is_wanted = names.iter().any(|wanted| *wanted == name);
        let is_optional = OPTIONAL.iter().any(|(optional, _)| optional == name);
        if !is_wanted && (is_optional || !names.is_empty()) {
            continue;
        }
        println!("== {name}");
        let start = Instant::now();
        let result = if *name == "tests" { tests(requires_all) } else { work() };
        match result {
            Ok(()) => println!("== {name}: ok in {:.1} s", start.elapsed().as_secs_f64()),
            Err(error) if error.is::<NotRun>() => not_run.push(format!("{name}: {error}")),
            Err(error) => return Err(error.context(format!("stage `{name}` failed"))),
        }
    }
    if not_run.is_empty() { Ok(()) } else { Err(NotRun(not_run.join("; ")).into()) }
}

type Stage = (&'static str, fn() -> anyhow::Result<()>);

const STAGES: [Stage; 6] = [
    ("format", format),
    ("tidy", crate::tidy::run),
    ("lints", || each(&["clippy"], &["--all-targets", "--locked", "--", "-D", "warnings"])),
    ("policy", deny),
    ("tests", || tests(false)),
    ("documentation", documentation),
];

/// Run by name alone: they need tools or time that not everybody has.
const OPTIONAL: [Stage; 8] = [
    ("size", crate::tidy::budgets::check_program),
    ("package", package),
    ("backends", crate::backends::run),
    ("aarch64", crate::aarch64::run),
    ("aarch64-check", crate::aarch64::check),
    ("interleavings", interleavings),
    ("models", models),
    ("cluster", crate::cluster::run),
];

/// The engine's threads under shuttle, which randomises their schedule (`crates/assay-engine/src/engine/model.rs`).
fn interleavings() -> anyhow::Result<()> {
    let program = ["test", "--locked", "-p", "assay-engine", "--features", "model", "--lib"];
    let with = |last: &'static str| [&program[..], &["engine::model", "--", last]].concat();
    require_tests(Command::new("cargo").args(with("--list")))?;
    cargo(&with("--nocapture"))
}

/// Without building examples, which the lints compile; then the seconds of the tests.
fn tests(requires_all: bool) -> anyhow::Result<()> {
    let times = std::env::temp_dir().join(format!("assay-test-times-{}", std::process::id()));
    let runner = test_times::runner()?;
    for packages in TESTED {
        let mut command = Command::new("cargo");
        command.arg("test").args(packages).args(["--locked", "--lib", "--bins", "--tests"]);
        finish(command.args(&runner).env(test_times::FILE, &times))?;
    }
    test_times::summary(&times, &crate::tidy::budgets::test_seconds()?, requires_all)?;
    std::fs::remove_file(times)?;
    // `.ci/run` runs the examples of `curves/`, optimised.
    cargo(&["test", "--workspace", "--locked", "--doc"])
}

fn format() -> anyhow::Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["fmt", CURVES, "--all", "--check"])
}

fn documentation() -> anyhow::Result<()> {
    for packages in WORKSPACES {
        let mut command = Command::new("cargo");
        command.arg("doc").args(packages).args(["--no-deps", "--locked"]);
        finish(command.env("RUSTDOCFLAGS", "-D warnings"))?;
    }
    Ok(())
}

/// The same in both workspaces: arguments before the packages, and after them.
fn each(before: &[&str], after: &[&str]) -> anyhow::Result<()> {
    for packages in WORKSPACES {
        cargo(&[before, packages, after].concat())?;
    }
    Ok(())
}

/// The thread pool's models under loom, which explores all interleavings; own target folder, since the flag applies to every crate.
fn models() -> anyhow::Result<()> {
    let mut command = Command::new("cargo");
    command.args(["test", "--locked", "--release", "--lib", "-p", "assay-pool"]);
    command.args([CURVES, "--target-dir", "target/models"]);
    command.env("RUSTFLAGS", "--cfg loom");
    finish(&mut command)
}

/// Builds the published crates from their packages alone, the dependent one against the other in a temporary registry.
fn package() -> anyhow::Result<()> {
    // Cargo would take packages of the same version that it unpacked or built in an earlier run.
    let old = r#"rm -rf target/packages "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/assay-*"#;
    finish(Command::new("sh").args(["-c", old]))?;
    let package = ["package", "--locked", "--allow-dirty", "--target-dir", "target/packages"];
    cargo(&[&package[..], &["-p", "assay-hash", "-p", "assay-secp"]].concat())
}

fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    finish(Command::new("cargo").args(arguments))
}

/// `cargo-deny` is an external tool, which `.ci/run` installs.
fn deny() -> anyhow::Result<()> {
    let is_installed = Command::new("cargo")
        .args(["deny", "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !is_installed {
        let reason = "cargo-deny is not installed (cargo install cargo-deny --locked)";
        return Err(NotRun(reason.to_owned()).into());
    }
    // A build fetches only the crates of its own platform; the policy covers several.
    cargo(&["fetch", "--locked"])?;
    cargo(&["deny", "--offline", "check", "bans", "licenses", "sources"])
}
