//! Looks for differences of time that depend on a secret, in what says that it has none:
//!
//! `cargo run --release --example constant_time -- [--json] [--samples N]`
//!
//! The method of "Dude, is my code constant time?" (Reparaz, Balasch, Verbauwhede, 2016): operations with one fixed secret, the number 1,
//! and with random ones, in random order, are compared by Welch's t statistic, for all samples and for those below a percentile, since
//! interrupts make the tail of both. 20,000 samples of each operation without `--samples`. Above 10 a difference is shown; below, none is
//! by so many samples, which is no proof. A product in variable time is measured in the same way: if no difference is shown for it, the
//! run says nothing and fails, as it does where one is shown for a secret.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use assay_pairing::bls::SecretKey;
use assay_pairing::curve::{BlsG1, Curve as _};
use assay_peer_pairing::derive::expand;
use serde_json::json;

const SAMPLES: usize = 20_000;
/// Samples that warm the caches and count for nothing.
const WARM: usize = 100;
/// Secrets of the second class.
const SECRETS: usize = 256;
/// Differences above are called one: ten standard errors, as the paper has it.
const SHOWN: f64 = 10.0;
/// Parts of the sorted samples whose largest one is a bound.
const BOUNDS: [f64; 6] = [0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

/// What is measured, and whether it may depend on the secret.
struct Operation {
    name: &'static str,
    is_constant: bool,
    run: fn(&Secret),
}

/// A secret in all forms.
struct Secret {
    key: SecretKey,
    number: [u64; 4],
}

const OPERATIONS: [Operation; 3] = [
    Operation {
        name: "SecretKey::sign",
        is_constant: true,
        run: |secret| {
            black_box(secret.key.sign(black_box(b"a message")));
        },
    },
    Operation {
        name: "SecretKey::public_key",
        is_constant: true,
        run: |secret| {
            black_box(secret.key.public_key());
        },
    },
    Operation {
        name: "Affine::multiply, variable time",
        is_constant: false,
        run: |secret| {
            let _ = black_box(BlsG1::GENERATOR.multiply(black_box(&secret.number)));
        },
    },
];

fn main() -> Result<()> {
    let (is_json, samples) = arguments()?;
    let secrets = secrets()?;
    let mut results = Vec::new();
    let mut is_as_said = true;
    for Operation { name, is_constant, run } in OPERATIONS {
        eprintln!("{name}: {samples} samples");
        let times = sample(&secrets, samples, run);
        let statistic = largest_statistic(&times);
        let is_shown = statistic >= SHOWN;
        is_as_said &= is_shown != is_constant;
        if is_json {
            results.push(json!({
                "operation": name, "says_constant_time": is_constant, "samples": samples,
                "t": statistic, "difference_is_shown": is_shown,
            }));
        } else {
            let verdict = if is_shown { "a difference is shown" } else { "no difference is shown" };
            println!("{name:32} |t| at most {statistic:8.1}: {verdict}");
        }
    }
    if is_json {
        println!("{}", json!({ "format": 1, "operations": results }));
    }
    ensure!(
        is_as_said,
        "a difference is shown for a secret, or none for the product in variable time; on a busy machine run again with more samples"
    );
    Ok(())
}

fn arguments() -> Result<(bool, usize)> {
    let (mut is_json, mut samples) = (false, SAMPLES);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => is_json = true,
            "--samples" => {
                let text = arguments.next().context("--samples is followed by a number")?;
                samples = text.parse().with_context(|| format!("--samples {text}: no number"))?;
                ensure!(
                    (1_000..=100_000_000).contains(&samples),
                    "--samples is from 1,000 to 100,000,000"
                );
            }
            other => bail!("{other}: there are --json and --samples N"),
        }
    }
    Ok((is_json, samples))
}

/// The fixed secret, then random ones.
fn secrets() -> Result<Vec<Secret>> {
    let mut secrets = Vec::with_capacity(SECRETS + 1);
    for index in 0..=SECRETS {
        let mut bytes: [u8; 32] = expand("secret", 7, index as u64, 32)[..].try_into()?;
        // Below the order.
        bytes[0] &= 0x3f;
        if index == 0 {
            bytes = [0; 32];
            bytes[31] = 1;
        }
        let (words, _) = bytes.as_chunks::<8>();
        let number = core::array::from_fn(|k| u64::from_be_bytes(words[3 - k]));
        secrets.push(Secret { key: SecretKey::from_bytes(&bytes).context("a secret")?, number });
    }
    Ok(secrets)
}

/// Nanoseconds with the fixed secret, and with random ones.
fn sample(secrets: &[Secret], samples: usize, run: fn(&Secret)) -> [Vec<f64>; 2] {
    let choices = expand("class", 7, 0, samples + WARM);
    let mut times = [Vec::new(), Vec::new()];
    for (index, choice) in choices.into_iter().enumerate() {
        let class = usize::from(choice & 1);
        // Both classes go through all of the memory: the first one has the fixed secret instead of what it reads.
        let random = &secrets[1 + index % SECRETS];
        let secret = black_box([&secrets[0], random])[class];
        let start = Instant::now();
        run(secret);
        let ns = start.elapsed().as_nanos() as f64;
        if index >= WARM {
            times[class].push(ns);
        }
    }
    times
}

/// The largest t statistic over all bounds.
fn largest_statistic(times: &[Vec<f64>; 2]) -> f64 {
    let mut all: Vec<f64> = times.iter().flatten().copied().collect();
    all.sort_by(f64::total_cmp);
    let at = |part: f64| all[((all.len() as f64 * part) as usize).min(all.len() - 1)];
    let statistic = |bound: f64| {
        let [a, b] = times.each_ref().map(|times| moments(times, bound));
        ((a.mean - b.mean) / (a.variance / a.count + b.variance / b.count).sqrt()).abs()
    };
    BOUNDS.map(|part| statistic(at(part))).into_iter().fold(0.0, f64::max)
}

struct Moments {
    count: f64,
    mean: f64,
    variance: f64,
}

/// Of the samples up to a bound.
fn moments(times: &[f64], bound: f64) -> Moments {
    let kept = || times.iter().filter(|ns| **ns <= bound);
    let count = kept().count() as f64;
    let mean = kept().sum::<f64>() / count;
    let variance = kept().map(|ns| (ns - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Moments { count, mean, variance }
}
