//! Compares assay-pairing with arkworks, blst, revm and c-kzg on any number of cases:
//! `cargo run --release --example differential -- [CASES [SEED [NAME …]]]`, by default 100,000 and 1.
//!
//! The same numbers give the same cases. Without names CASES is the number for fields, and slower operations run a
//! fraction of it; with names, each operation whose name contains one runs all of them, and the others none. The
//! compared operations are printed on standard output, progress on standard error.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use assay_peer_pairing::differential::compare;

/// Interval of progress lines.
const EVERY: Duration = Duration::from_secs(2);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, name: &str, default: u64| {
        let text = arguments.get(place);
        text.map_or(Ok(default), |text| {
            text.parse().with_context(|| format!("{name} {text}: no number"))
        })
    };
    let (cases, seed) = (number(0, "CASES", 100_000)?, number(1, "SEED", 1)?);
    let names = arguments.get(2..).unwrap_or_default();
    let (mut current, mut begin, mut printed) = ("", Instant::now(), Instant::now());
    let mut report = |name: &'static str, done: usize, all: usize| {
        if name != current {
            (current, begin) = (name, Instant::now());
        }
        if printed.elapsed() >= EVERY && done > 0 {
            printed = Instant::now();
            let rate = done as f64 / begin.elapsed().as_secs_f64().max(1e-3);
            let left_s = (all - done) as f64 / rate;
            eprintln!("{name}: {done} of {all} cases, {rate:.0}/s, {left_s:.0} s left");
        }
    };
    for (operation, compared) in compare(usize::try_from(cases)?, seed, names, &mut report)? {
        println!("{operation}: {compared} cases, no difference");
    }
    Ok(())
}
