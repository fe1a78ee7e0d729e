//! Builds everything for aarch64 and runs tests under user-mode emulation, on a machine of another kind.
//!
//! Needs what Debian calls `gcc-aarch64-linux-gnu` (with `libc6-dev-arm64-cross`) and `qemu-user`, and
//! Rust's standard library for the target; what is missing is listed with the command that installs it.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Also compiles the C parts of libsecp256k1, `SQLite` and others, where the `cc` crate finds it by its name.
const LINKER: &str = "aarch64-linux-gnu-gcc";

/// Where Debian puts the target's C library.
const SYSROOT: &str = "/usr/aarch64-linux-gnu";

const EMULATORS: [&str; 2] = ["qemu-aarch64", "qemu-aarch64-static"];

/// Crates whose tests run: all that decide whether a block is valid, and the C interface.
const TESTED: [&str; 7] = [
    "assay-hash",
    "assay-secp",
    "assay-secp-c",
    "assay-wire",
    "assay-consensus",
    "assay-store",
    "assay-engine",
];

/// Tests that emulation cannot run, each with the reason.
const LEFT_OUT: [(&str, &str); 0] = [];

/// Crates that are built with their tests, which do not run, each with the reason.
const ONLY_BUILT: [(&str, &str); 0] = [];

/// The stage of `cargo xtask ci`.
pub(crate) fn run() -> anyhow::Result<()> {
    let emulator = tools()?;
    timed("build of the workspace with all tests", || {
        cargo(&["test", "--workspace", "--no-run"], emulator)
    })?;
    for (name, reason) in ONLY_BUILT {
        println!("only built: {name}: {reason}");
    }
    for (test, reason) in LEFT_OUT {
        println!("left out: {test}: {reason}");
    }
    for name in TESTED {
        timed(name, || {
            let mut arguments = vec!["test", "--package", name, "--", "--quiet"];
            for (test, _) in LEFT_OUT {
                arguments.extend(["--skip", test]);
            }
            cargo(&arguments, emulator)
        })?;
    }
    Ok(())
}

fn timed(what: &str, work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<()> {
    let start = Instant::now();
    work()?;
    println!("aarch64: {what}: {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// The emulator, when all tools are there.
fn tools() -> anyhow::Result<&'static str> {
    let mut missing = Vec::new();
    if !is_target_installed() {
        missing.push(format!("Rust's standard library for it: rustup target add {TARGET}"));
    }
    if !starts(LINKER) {
        missing.push(format!(
            "the C compiler {LINKER}: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
        ));
    }
    let emulator = EMULATORS.into_iter().find(|emulator| starts(emulator));
    if emulator.is_none() {
        missing.push(format!("an emulator, {}: apt-get install qemu-user", EMULATORS.join(" or ")));
    }
    match emulator {
        Some(emulator) if missing.is_empty() => Ok(emulator),
        _ => bail!("{TARGET} needs\n  {}", missing.join("\n  ")),
    }
}

/// Whether rustc finds the target's libraries where it looks for them.
fn is_target_installed() -> bool {
    let output =
        Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    output.is_ok_and(|output| {
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success() && std::path::Path::new(&folder).is_dir()
    })
}

fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Runs cargo for the target; what it starts goes through the emulator.
fn cargo(arguments: &[&str], emulator: &str) -> anyhow::Result<()> {
    let (command, arguments) = arguments.split_first().context("a command of cargo")?;
    let variable = TARGET.to_uppercase().replace('-', "_");
    crate::ci::finish(
        Command::new("cargo")
            .args([*command, "--locked", "--target", TARGET])
            .args(arguments)
            .env(format!("CARGO_TARGET_{variable}_LINKER"), LINKER)
            .env(format!("CARGO_TARGET_{variable}_RUNNER"), format!("{emulator} -L {SYSROOT}")),
    )
}
