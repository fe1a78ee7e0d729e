//! Verification time of SLH-DSA on every backend of this machine and in the crate `slh-dsa`, interleaved.
//!
//! `cargo run --release -p assay-pq --example throughput [parameter set [rounds [signatures]]]`
//!
//! Also prints the mean number of hash computations per verification. Signing takes a while first.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the table is its output")]

use std::process::ExitCode;
use std::time::Instant;

use assay_hash::Backend;
use assay_pq::{Check, serial, verify_many_with};

use signer::{Random, Signed, Signer};

#[path = "../tests/suite/signer.rs"]
mod signer;

/// Number of distinct signatures; the rest are copies.
const DISTINCT: usize = 16;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| String::from("SLH-DSA-SHA2-128s"));
    let mut number = |default| arguments.next().map_or(Ok(default), |text| text.parse::<usize>());
    let signer = Signer::ALL.into_iter().find(|signer| signer.set.name() == name);
    let (Some(signer), Ok(rounds @ 1..), Ok(count @ 1..)) = (signer, number(21), number(494))
    else {
        eprintln!("usage: throughput [SLH-DSA-SHA2-128s [rounds [signatures]]]");
        return ExitCode::from(2);
    };
    let mut random = Random::new(1);
    let distinct: Vec<Signed> =
        (0..DISTINCT.min(count)).map(|_| (signer.sign)(&mut random)).collect();
    let signed: Vec<Signed> = distinct.iter().cycle().take(count).cloned().collect();
    let checks: Vec<Check<'_>> = signed.iter().map(Signed::check).collect();
    let mut hashes = [0; 3];
    for check in &checks[..distinct.len()] {
        let (valid, count) = serial::count_hashes(&signer.set, check).expect("well formed");
        assert!(valid);
        for (sum, count) in hashes.iter_mut().zip([count.f, count.h, count.t]) {
            *sum += count;
        }
    }
    let [f, h, t] = hashes.map(|sum| sum as f64 / distinct.len() as f64);
    println!("{name}: on average {f:.1} of F, {h:.1} of H, {t:.1} of T");
    let subjects = Backend::available().into_iter().map(Some).chain([None]);
    let mut elapsed: Vec<(Option<Backend>, Vec<f64>)> =
        subjects.map(|subject| (subject, Vec::new())).collect();
    for _ in 0..rounds {
        for (subject, elapsed) in &mut elapsed {
            // Portable code and the crate take as long as all others together.
            let count = match *subject {
                None | Some(Backend::PORTABLE) => checks.len().div_ceil(16),
                Some(_) => checks.len(),
            };
            let start = Instant::now();
            match *subject {
                None => assert!(signed[..count].iter().all(signer.verify)),
                Some(backend) => {
                    let valid = verify_many_with(backend, &signer.set, &checks[..count]);
                    assert!(valid.into_iter().all(|valid| valid));
                }
            }
            elapsed.push(start.elapsed().as_secs_f64() * 1e6 / count as f64);
        }
    }
    println!("{rounds} interleaved rounds of {count} signatures; us per signature");
    for (subject, elapsed) in &mut elapsed {
        elapsed.sort_by(f64::total_cmp);
        let at = |quarters: usize| elapsed[(elapsed.len() - 1) * quarters / 4];
        let name = subject.map_or("slh-dsa", Backend::name);
        println!("{name:<9} {:>8.2}   middle half {:.2} .. {:.2}", at(2), at(1), at(3));
    }
    ExitCode::SUCCESS
}
