//! Builds everything for aarch64 and runs tests under user-mode emulation on another architecture.
//!
//! Needs Debian's `gcc-aarch64-linux-gnu` (with `libc6-dev-arm64-cross`) and `qemu-user`, and Rust's standard library for the
//! target; missing ones are listed with the command that installs them.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::bail;

use crate::NotRun;
use crate::test_programs::{self, TestProgram};

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// Also compiles the C parts of libsecp256k1 and others, where the `cc` crate finds it by its name.
const LINKER: &str = "aarch64-linux-gnu-gcc";

/// Debian's folder of the target's C library.
const SYSROOT: &str = "/usr/aarch64-linux-gnu";

const EMULATORS: [&str; 2] = ["qemu-aarch64", "qemu-aarch64-static"];

/// Crates whose tests run.
const TESTED: [&str; 12] = [
    "assay-hash",
    "assay-secp",
    "assay-secp-c",
    "assay-wire",
    "assay-consensus",
    "assay-store",
    "assay-engine",
    "assay-forge",
    "assay-stats",
    "assay-node",
    "assay-json",
    "assay-ledger",
];

const STARTS_ITSELF: &str = "it starts itself, and the kernel does not run a program of another processor without the emulator";

/// Tests that emulation cannot run, with reasons.
const LEFT_OUT: [(&str, &str); 6] = [
    ("deferred::fault_injection_tests::a_failing_self_test_stops_the_engine", STARTS_ITSELF),
    ("deferred::fault_injection_tests::a_planted_wrong_lane_stops_the_engine", STARTS_ITSELF),
    ("deferred::fault_injection_tests::near_the_tip_the_library_decides", STARTS_ITSELF),
    (
        "deferred::fault_injection_tests::without_spot_checks_wrong_blocks_are_accepted",
        STARTS_ITSELF,
    ),
    ("defect::a_panic_below_the_engine_ends_the_process", STARTS_ITSELF),
    (
        "a_set_of_coins_larger_than_the_cache_stays_within_the_limit",
        "it limits the resident memory of the process, which is the emulator's here",
    ),
];

/// Crates that are built with their tests, which do not run, each with the reason.
const ONLY_BUILT: [(&str, &str); 6] = [
    (
        "assay",
        "its tests start the program `assay`, which the kernel does not run without the emulator",
    ),
    ("assay-lab", "its tests start nodes, and measure"),
    ("assay-bench", "its tests measure, and count instructions"),
    ("assay-studies", "its tests measure"),
    (
        "assay-electrum",
        "its tests limit clients by what they ask for in a second, which emulation does not keep",
    ),
    ("xtask", "it is for the machine that builds"),
];

pub(crate) fn run() -> anyhow::Result<()> {
    let emulator = tools()?;
    let start = Instant::now();
    let tests = test_programs::build(|command| {
        with_tools(command.args(["--target", TARGET]), emulator);
    })?;
    println!("aarch64: {} test programs built in {:.0} s", tests.len(), seconds(start));
    for (name, reason) in ONLY_BUILT {
        println!("only built: {name}: {reason}");
    }
    for (test, reason) in LEFT_OUT {
        println!("left out: {test}: {reason}");
    }
    println!(
        "left out: examples in documentation: `cargo xtask ci tests` runs them on this machine"
    );
    for name in TESTED {
        let start = Instant::now();
        let mut count = 0;
        for test in tests.iter().filter(|test| test.is_of(name)) {
            run_one(test, emulator)?;
            count += 1;
        }
        if count == 0 {
            bail!("cargo built no tests of {name}: is the crate's name still that?");
        }
        println!("aarch64: {name}: {count} programs ok in {:.0} s", seconds(start));
    }
    Ok(())
}

fn seconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64()
}

fn run_one(test: &TestProgram, emulator: &str) -> anyhow::Result<()> {
    println!("aarch64: {}", test.executable.display());
    let mut command = Command::new(emulator);
    command.args(["-L", SYSROOT]).arg(&test.executable).arg("--quiet");
    // One word each: tests with a custom `main` treat every other word as a filter.
    command.args(LEFT_OUT.map(|(test, _)| format!("--skip={test}")));
    crate::finish(with_tools(&mut command, emulator).current_dir(&test.folder))
}

/// Configures linker and emulator for cargo and for the test that compiles C.
fn with_tools<'a>(command: &'a mut Command, emulator: &str) -> &'a mut Command {
    let variable = TARGET.to_uppercase().replace('-', "_");
    command
        .env(format!("CARGO_TARGET_{variable}_LINKER"), LINKER)
        .env(format!("CARGO_TARGET_{variable}_RUNNER"), format!("{emulator} -L {SYSROOT}"))
}

/// The stage `aarch64-check`: compiles the root workspace for the target, and runs nothing.
pub(crate) fn check() -> anyhow::Result<()> {
    let missing = missing_compilers();
    if !missing.is_empty() {
        return Err(NotRun(missing.join("; ")).into());
    }
    let arguments = ["check", "--workspace", "--locked", "--target", TARGET];
    crate::finish(Command::new("cargo").args(arguments))
}

/// Each absent part of the cross compiler, with the command that installs it.
fn missing_compilers() -> Vec<String> {
    let mut missing = Vec::new();
    if !is_target_installed() {
        missing.push(format!("Rust's standard library for it: rustup target add {TARGET}"));
    }
    if !starts(LINKER) {
        missing.push(format!(
            "the C compiler {LINKER}: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
        ));
    }
    missing
}

/// The emulator, if all tools are installed.
fn tools() -> anyhow::Result<&'static str> {
    let mut missing = missing_compilers();
    let emulator = EMULATORS.into_iter().find(|emulator| starts(emulator));
    if emulator.is_none() {
        missing.push(format!("an emulator, {}: apt-get install qemu-user", EMULATORS.join(" or ")));
    }
    match emulator {
        Some(emulator) if missing.is_empty() => Ok(emulator),
        _ => bail!("{TARGET} needs\n  {}", missing.join("\n  ")),
    }
}

/// True if rustc finds the target's libraries.
fn is_target_installed() -> bool {
    let output =
        Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    output.is_ok_and(|output| {
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success() && Path::new(&folder).is_dir()
    })
}

fn starts(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
