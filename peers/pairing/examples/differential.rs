//! Compares assay-pairing with arkworks, blst, revm and c-kzg on as many cases as one likes:
//! `cargo run --release --example differential -- [CASES [SEED]]`, 100,000 and 1 without. The same numbers give the same cases.
//! What was compared goes to standard output; how far it is, to standard error.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use assay_peer_pairing::differential::compare;

/// How often progress is printed.
const EVERY: Duration = Duration::from_secs(2);

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let cases = numbers.next().transpose().context("CASES is a number")?.unwrap_or(100_000);
    let seed = numbers.next().transpose().context("SEED is a number")?.unwrap_or(1);
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
    for (operation, compared) in compare(usize::try_from(cases)?, seed, &mut report)? {
        println!("{operation}: {compared} cases, no difference");
    }
    Ok(())
}
