//! Automation in one place: `cargo xtask ci` is what CI runs, `cargo xtask tidy` checks what no compiler checks.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this program talks to a terminal")]

mod ci;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  ci     format, lints, tidy, dependency policy, tests: everything a change must pass
  tidy   allowed crate edges, files with unsafe code, file length, forbidden words, documents";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.first().map(String::as_str) {
        Some("ci") => ci::run(),
        Some("tidy") => tidy::run(),
        Some("-h" | "--help") => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
