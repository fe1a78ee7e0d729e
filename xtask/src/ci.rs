//! What CI runs, in the order in which a failure is cheapest to learn of.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

/// Runs every stage; stops at the first that fails.
pub(crate) fn run() -> anyhow::Result<()> {
    stage("format", || cargo(&["fmt", "--all", "--check"]))?;
    stage("tidy", crate::tidy::run)?;
    stage("lints", || {
        cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"])
    })?;
    stage("dependency policy", deny)?;
    stage("tests", || cargo(&["test", "--workspace", "--locked"]))?;
    stage("documentation", || {
        let mut command = Command::new("cargo");
        command.args(["doc", "--workspace", "--no-deps", "--locked"]);
        command.env("RUSTDOCFLAGS", "-D warnings");
        finish(&mut command)
    })
}

fn stage(name: &str, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    println!("== {name}");
    let start = Instant::now();
    work().with_context(|| format!("stage `{name}` failed"))?;
    println!("== {name}: ok in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn cargo(arguments: &[&str]) -> anyhow::Result<()> {
    finish(Command::new("cargo").args(arguments))
}

fn finish(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
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
    cargo(&["deny", "--offline", "check", "bans", "licenses", "sources"])
}
