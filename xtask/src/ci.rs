//! What CI runs, in the order in which a failure is cheapest to learn of.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

use crate::command::finish;
use crate::test_times;

/// Runs the stages of these names, or all that are not optional; stops at the first that fails.
pub(crate) fn run(names: &[String]) -> anyhow::Result<()> {
    let all = || STAGES.iter().chain(&OPTIONAL);
    if let Some(unknown) = names.iter().find(|name| all().all(|(known, _)| known != name)) {
        let known: Vec<&str> = all().map(|(name, _)| *name).collect();
        bail!("there is no stage `{unknown}`; there are {}", known.join(", "));
    }
    for (name, work) in all() {
        let is_wanted = names.iter().any(|wanted| wanted == name);
        let is_optional = OPTIONAL.iter().any(|(optional, _)| optional == name);
        if !is_wanted && (is_optional || !names.is_empty()) {
            continue;
        }
        println!("== {name}");
        let start = Instant::now();
        work().with_context(|| format!("stage `{name}` failed"))?;
        println!("== {name}: ok in {:.1} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// A stage's name and its work.
type Stage = (&'static str, fn() -> anyhow::Result<()>);

const STAGES: [Stage; 6] = [
    ("format", || cargo(&["fmt", "--all", "--check"])),
    ("tidy", crate::tidy::run),
    ("lints", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
    }),
    ("policy", deny),
    ("tests", tests),
    ("documentation", || {
        let mut command = Command::new("cargo");
        command.args(["doc", "--workspace", "--no-deps", "--locked"]);
        command.env("RUSTDOCFLAGS", "-D warnings");
        finish(&mut command)
    }),
];

/// Run by name alone: they need tools or time that not everybody has.
const OPTIONAL: [Stage; 7] = [
    ("size", crate::tidy::budgets::check_program),
    ("package", package),
    ("backends", crate::backends::run),
    ("aarch64", crate::aarch64::run),
    ("interleavings", interleavings),
    ("models", models),
    ("cluster", crate::cluster::run),
];

/// The engine's threads under shuttle, which chooses their order (`crates/assay-engine/src/engine/model.rs`).
fn interleavings() -> anyhow::Result<()> {
    let features = ["--features", "model", "--lib", "engine::model", "--", "--nocapture"];
    let arguments = [&["test", "--locked", "-p", "assay-engine"], &features[..]].concat();
    cargo(&arguments)
}

/// `cargo test --workspace` without building examples, which the lints compile; then the seconds of the tests.
fn tests() -> anyhow::Result<()> {
    let times = std::env::temp_dir().join(format!("assay-test-times-{}", std::process::id()));
    let mut command = Command::new("cargo");
    command.args(["test", "--workspace", "--locked", "--lib", "--bins", "--tests"]);
    command.args(test_times::runner()?).env(test_times::FILE, &times);
    finish(&mut command)?;
    test_times::summary(&times, &crate::tidy::budgets::test_seconds()?)?;
    std::fs::remove_file(times)?;
    cargo(&["test", "--workspace", "--locked", "--doc"])
}

/// The thread pool's models, in which loom tries every interleaving; in a folder of its own, since the flag is every crate's.
fn models() -> anyhow::Result<()> {
    let mut command = Command::new("cargo");
    command.args(["test", "--locked", "--release", "--lib", "-p", "assay-pool"]);
    command.args(["--target-dir", "target/models"]);
    command.env("RUSTFLAGS", "--cfg loom");
    finish(&mut command)
}

/// The crates for others as they would be published, built from what is in the packages alone. The one that depends on the
/// other is built with it from a registry that cargo makes for the moment.
fn package() -> anyhow::Result<()> {
    cargo(&["package", "--locked", "--allow-dirty", "-p", "assay-hash", "-p", "assay-secp"])
}

fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    finish(Command::new("cargo").args(arguments))
}

/// `cargo-deny` is a tool, not a dependency: where it is missing the stage says so and passes, and `.ci/run` installs it.
fn deny() -> anyhow::Result<()> {
    let is_installed = Command::new("cargo")
        .args(["deny", "--version"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !is_installed {
        println!("skipped: cargo-deny is not installed (cargo install cargo-deny --locked)");
        return Ok(());
    }
    // A build fetches the crates of its own platform alone; the policy speaks of several.
    cargo(&["fetch", "--locked"])?;
    cargo(&["deny", "--offline", "check", "bans", "licenses", "sources"])
}
