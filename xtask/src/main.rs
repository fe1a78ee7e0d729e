//! Project automation: `cargo xtask ci` runs CI, `cargo xtask tidy` runs checks beyond the compiler's.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this program talks to a terminal")]

mod aarch64;
mod backends;
mod ci;
mod clients;
mod cluster;
mod core_tests;
mod fuzz;
mod test_programs;
mod test_times;
mod tidy;
mod words;

use std::num::NonZeroU32;
use std::process::{Command, ExitCode};

use anyhow::{Context, bail};

const USAGE: &str = "\
usage: cargo xtask <command>

  ci     [--require-all] [STAGE…]: format, tidy, lints, policy, tests, documentation, or those named: everything a change must pass;
         exit status 77 if a check could not run here (a tool is absent) and all others passed;
         with --require-all `tests` fails if a test was skipped because data or a program is absent;
         only by name: size (of the release program, against its budget), package (assay-hash and assay-secp as they would be published), aarch64 (build and tests under emulation), aarch64-check (compilation alone), \
         backends (tests of what chooses a backend, with processor features hidden), \
         interleavings (the engine's threads under shuttle), models (the thread pool under loom), cluster (python/assay-cluster on Ray)
  clients [--profile release] [--program ASSAY] [CLIENT…]: a server and libraries of other projects, from their registries,
         against our node on regtest, or those named (files in xtask/clients)
  core-tests --source PATH [--all] [--profile release] [--program ASSAY] [--core BITCOIND] [--cli BITCOIN-CLI] [--jobs 1] [--timeout-factor 1]
         [--portseed 1] [TEST…]: Bitcoin Core's functional tests with our node, those that must pass, all of the list, or those
         named; PATH is a checkout of Bitcoin Core, and BITCOIND its own program, for a comparison and
         for the tests in which both meet (xtask/functional)
  fuzz   [--seconds N] [TARGET…]: each fuzz target, or those named, for N seconds (60)
  tidy [--comments]
         budgets of size (xtask/budgets.toml), allowed and used crate edges, import cycles, files with unsafe code, file length, forbidden words, documents,
         programs of tests";

/// A check that needs what this machine lacks. The others have passed; the exit status is 77.
#[derive(Debug, thiserror::Error)]
#[error("not run: {0}")]
struct NotRun(String);

/// Exit status if a check needs what the machine lacks.
const NOT_RUN: u8 = 77;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [first, program @ ..] = &arguments[..]
        && first == "test-program"
    {
        return test_times::run_program(program).unwrap_or_else(|error| fail(&error));
    }
    let outcome = match arguments.first().map(String::as_str) {
        Some("ci") => ci::run(&arguments[1..]),
        Some("fuzz") => match fuzz_arguments(&arguments[1..]) {
            Some((seconds, targets)) => fuzz::run(seconds, targets),
            None => return usage(),
        },
        Some("clients") => clients::run(&arguments[1..]),
        Some("core-tests") => core_tests::run(&arguments[1..]),
        Some("tidy") if arguments.get(1).is_some_and(|flag| flag == "--comments") => {
            tidy::list_comments()
        }
        Some("tidy") => tidy::run(),
        Some("-h" | "--help") => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => return usage(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("xtask: {error:#}");
    if error.is::<NotRun>() { ExitCode::from(NOT_RUN) } else { ExitCode::FAILURE }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

/// Seconds per target, and the target names.
fn fuzz_arguments(arguments: &[String]) -> Option<(u32, &[String])> {
    match arguments {
        [flag, seconds, targets @ ..] if flag == "--seconds" => {
            // For libFuzzer 0 is no limit.
            Some((seconds.parse::<NonZeroU32>().ok()?.get(), targets))
        }
        [flag, ..] if flag.starts_with('-') => None,
        targets => Some((60, targets)),
    }
}

/// Removes cargo's variables for `cargo xtask` from the environment. Otherwise build scripts that read them (ring's) and their
/// dependents would be rebuilt when cargo is next called directly.
fn forget_xtask(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            command.env_remove(name.as_ref());
        }
    }
}

/// Runs a command; fails unless it succeeds.
fn finish(command: &mut Command) -> anyhow::Result<()> {
    forget_xtask(command);
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} ended with {status}");
    }
    Ok(())
}
