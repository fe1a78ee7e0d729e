//! Compares assay-pairing with arkworks and blst on as many cases as one likes:
//! `cargo run --release --example differential -- [CASES [SEED]]`, 100,000 and 1 without.

#![expect(clippy::print_stdout, reason = "a program")]

use anyhow::{Context as _, Result};
use assay_peer_pairing::differential::compare;

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let cases = numbers.next().transpose().context("CASES is a number")?.unwrap_or(100_000);
    let seed = numbers.next().transpose().context("SEED is a number")?.unwrap_or(1);
    for (operation, compared) in compare(usize::try_from(cases)?, seed)? {
        println!("{operation}: {compared} cases, no difference");
    }
    Ok(())
}
