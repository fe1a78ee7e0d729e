//! Published test vectors for the engine, as one table.
//!
//! `cargo test -p assay-engine --test vectors [-- FILE…]` prints a line per file: cases, passed cases, and evaluations (a case
//! often runs under many combinations of rules). It fails if one case fails. No case is skipped or treated specially; a missing
//! file is listed as `absent`, which is not a pass. The module of each file describes its cases; `docs/testing.md` has the
//! sources of the files.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

mod bip119;
mod bip341;
mod bip360;
mod bip54;
mod blocks;
mod cash;
mod data;
mod filters;
mod flags;
mod full_blocks;
mod main_chain;
mod outcome;
mod scripts;
mod taproot;
mod tapscript_ops;
mod transactions;
mod verify;
mod wycheproof;

use std::process::ExitCode;

use outcome::Report;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        println!("vectors: test");
        return ExitCode::SUCCESS;
    }
    let filters = arguments.into_iter().filter(|argument| !argument.starts_with('-')).collect();
    let mut report = Report::new(filters);
    scripts::run(&mut report);
    transactions::run(&mut report);
    transactions::run_sighash(&mut report);
    bip341::run(&mut report);
    taproot::run(&mut report);
    wycheproof::run_bip340(&mut report);
    bip54::run(&mut report);
    bip119::run(&mut report);
    bip360::run(&mut report);
    tapscript_ops::run(&mut report);
    wycheproof::run(&mut report);
    wycheproof::run_ml_dsa(&mut report);
    filters::run_siphash(&mut report);
    filters::run(&mut report);
    cash::run(&mut report);
    blocks::run(&mut report);
    main_chain::run(&mut report);
    full_blocks::run(&mut report);
    if report.finish() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
