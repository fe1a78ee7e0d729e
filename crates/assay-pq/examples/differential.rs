//! Signatures by the crate `slh-dsa` and single-bit flips of them, verified by every backend, by the serial implementation and by
//! that crate. Any disagreement ends the program with status 1.
//!
//! `cargo run --release -p assay-pq --example differential [signatures [flips [seed]]]`
//!
//! Most signatures are 128f, the fastest to sign; most flips are of 128s. The default is 10,000 signatures and 100,000 flips with
//! seed 1: some 15 minutes of one core.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the counts are its output")]

use std::process::ExitCode;
use std::time::Instant;

use assay_hash::Backend;
use assay_pq::{Check, ParameterSet, serial, verify_many_with};

use signer::{Random, Signed, Signer};

#[path = "../tests/suite/signer.rs"]
mod signer;

/// Signatures and flips per parameter set, per thousand, in the order of [`ParameterSet::ALL`].
const SHARES: [[usize; 2]; 6] = [[20, 600], [910, 200], [1, 50], [40, 80], [1, 20], [28, 50]];

fn main() -> ExitCode {
    let mut numbers = [10_000, 100_000, 1];
    for (number, text) in numbers.iter_mut().zip(std::env::args().skip(1)) {
        let Ok(value) = text.parse() else {
            eprintln!(
                "differential: {text:?} is no number; usage: differential [signatures [flips [seed]]]"
            );
            return ExitCode::from(2);
        };
        *number = value;
    }
    let [signatures, flips, seed] = numbers;
    let mut random = Random::new(seed as u64);
    let mut counts = Counts::default();
    for (signer, [share, flip_share]) in Signer::ALL.iter().zip(SHARES) {
        let signatures = (signatures * share).div_ceil(1000);
        let flips = (flips * flip_share).div_ceil(1000);
        let mut set = Counts::default();
        let mut flipped_before = 0;
        for done in (0..signatures).step_by(64) {
            let count = (signatures - done).min(64);
            let signed = sign(signer, count, &mut random, (done, signatures));
            set.add(compare(signer, &signed));
            // Flips are spread over all signatures.
            let flipped = flips * (done + count) / signatures;
            let damaged = flip_some(&signed, flipped - flipped_before, &mut random);
            flipped_before = flipped;
            for damaged in damaged.chunks(512) {
                set.add(compare(signer, damaged));
            }
        }
        set.print(signer.set.name());
        counts.add(set);
    }
    counts.print("all");
    if counts.disagreements > 0 || counts.valid != counts.expected_valid {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn sign(
    signer: &Signer,
    count: usize,
    random: &mut Random,
    (done, all): (usize, usize),
) -> Vec<Signed> {
    let start = Instant::now();
    let signed: Vec<Signed> = (0..count).map(|_| (signer.sign)(random)).collect();
    let each = start.elapsed().as_secs_f64() / count as f64;
    let left = each * (all - done - count) as f64;
    eprintln!("{}: {} of {all} signed, {left:.0} s left", signer.set.name(), done + count);
    signed
}

/// Copies with one random bit changed: in signature, key, message or context.
fn flip_some(signed: &[Signed], count: usize, random: &mut Random) -> Vec<Signed> {
    (0..count)
        .map(|_| {
            let mut signed = signed[random.below(signed.len())].clone();
            signed.flip(random);
            signed
        })
        .collect()
}

#[derive(Clone, Copy, Default)]
struct Counts {
    checks: usize,
    valid: usize,
    expected_valid: usize,
    verdicts: usize,
    disagreements: usize,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.checks += other.checks;
        self.valid += other.valid;
        self.expected_valid += other.expected_valid;
        self.verdicts += other.verdicts;
        self.disagreements += other.disagreements;
    }

    fn print(&self, name: &str) {
        let Self { checks, valid, verdicts, disagreements, .. } = self;
        println!(
            "{name}: {valid} valid, {} flipped, {verdicts} verdicts, {disagreements} disagreements",
            checks - valid
        );
    }
}

/// Compares every verdict with the crate's; an unmodified signature must also be valid.
fn compare(signer: &Signer, signed: &[Signed]) -> Counts {
    let set: &ParameterSet = &signer.set;
    let checks: Vec<Check<'_>> = signed.iter().map(Signed::check).collect();
    let expected: Vec<bool> = signed.iter().map(|signed| (signer.verify)(signed)).collect();
    let mut counts = Counts {
        checks: checks.len(),
        valid: expected.iter().filter(|valid| **valid).count(),
        expected_valid: signed.iter().filter(|signed| !signed.is_flipped).count(),
        ..Counts::default()
    };
    let mut compare = |verdicts: &[bool], name: &str| {
        for (i, (verdict, expected)) in verdicts.iter().zip(&expected).enumerate() {
            counts.verdicts += 1;
            if verdict != expected {
                counts.disagreements += 1;
                println!("{} {name}: {verdict}, the crate {expected}; check {i}", set.name());
            }
        }
    };
    for backend in Backend::available() {
        // Portable code and the oracle are slow: a sixteenth of the flips.
        let checks = match backend {
            Backend::PORTABLE => &checks[..checks.len().div_ceil(16)],
            _ => &checks[..],
        };
        compare(&verify_many_with(backend, set, checks), backend.name());
    }
    let oracle = checks[..checks.len().div_ceil(16)].iter().map(|check| serial::verify(set, check));
    compare(&oracle.collect::<Vec<bool>>(), "serial");
    counts
}
