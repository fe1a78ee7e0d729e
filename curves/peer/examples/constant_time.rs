//! Tests operations that are documented as constant-time for differences of time that depend on a secret:
//!
//! `cargo run --release --example constant_time -- [--json] [--samples N]`
//!
//! The method of "Dude, is my code constant time?" (Reparaz, Balasch, Verbauwhede, 2016): operations with one fixed
//! secret, the number 1, and with random ones, in random order, are compared by Welch's t statistic, for all samples
//! and for those below a percentile, since interrupts inflate both tails. The default of `--samples` is 20,000 per
//! operation. A statistic above 10 shows a difference; one below does not prove that there is none. A variable-time
//! product is measured in the same way: if no difference is shown for it, the run is invalid and fails, as it does if
//! a difference is shown for a secret.
//!
//! `valgrind --log-file=memcheck.txt target/release/examples/constant_time --memcheck` searches the
//! machine code for the cause instead: the secret is marked as uninitialised memory (ctgrind,
//! Langley, 2010), and Memcheck counts branches and addresses that depend on it; the log has their
//! locations. A variable-time product must have some. Memcheck does not support AVX-512.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]
#![expect(unsafe_code, reason = "requests to valgrind")]

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context as _, Result, bail, ensure};
use assay_pairing::bls::SecretKey;
use assay_pairing::curve::{BlsG1, Curve as _};
use assay_peer_pairing::derive::expand;
use serde_json::json;

const SAMPLES: usize = 20_000;
/// Warm-up samples, which are discarded.
const WARM: usize = 100;
/// Number of secrets of the second class.
const SECRETS: usize = 256;
/// Threshold of a difference: ten standard errors, as in the paper.
const SHOWN: f64 = 10.0;
/// Percentiles of the sorted samples that are used as upper bounds.
const BOUNDS: [f64; 6] = [0.5, 0.75, 0.9, 0.95, 0.99, 1.0];

/// A secret in all representations.
struct Secret {
    key: SecretKey,
    number: [u64; 4],
}

/// Its name, whether it is constant-time, and its code.
type Operation = (&'static str, bool, fn(&Secret));

const OPERATIONS: [Operation; 3] = [
    ("SecretKey::sign", true, |secret| {
        black_box(secret.key.sign(black_box(b"a message")));
    }),
    ("SecretKey::public_key", true, |secret| {
        black_box(secret.key.public_key());
    }),
    ("Affine::multiply, variable time", false, |secret| {
        let _ = black_box(BlsG1::GENERATOR.multiply(black_box(&secret.number)));
    }),
];

fn main() -> Result<()> {
    let Arguments { is_json, samples, is_memcheck } = arguments()?;
    let secrets = secrets()?;
    if is_memcheck {
        return memcheck::check(&secrets[1], is_json);
    }
    let mut results = Vec::new();
    let mut is_as_said = true;
    for (name, is_constant, run) in OPERATIONS {
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

struct Arguments {
    is_json: bool,
    samples: usize,
    is_memcheck: bool,
}

fn arguments() -> Result<Arguments> {
    let mut parsed = Arguments { is_json: false, samples: SAMPLES, is_memcheck: false };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => parsed.is_json = true,
            "--memcheck" => parsed.is_memcheck = true,
            "--samples" => {
                let text = arguments.next().context("--samples is followed by a number")?;
                parsed.samples =
                    text.parse().with_context(|| format!("--samples {text}: no number"))?;
                ensure!(
                    (1_000..=100_000_000).contains(&parsed.samples),
                    "--samples is from 1,000 to 100,000,000"
                );
            }
            other => bail!("{other}: there are --json, --samples N and --memcheck"),
        }
    }
    Ok(parsed)
}

/// Secrets as uninitialised memory.
mod memcheck {
    use super::{OPERATIONS, Result, Secret, bail, ensure, json};

    /// Request numbers of `valgrind.h` and `memcheck.h`.
    const RUNNING_ON_VALGRIND: u64 = 0x1001;
    const COUNT_ERRORS: u64 = 0x1201;
    const MAKE_MEM_UNDEFINED: u64 = 0x4d43_0001;
    const MAKE_MEM_DEFINED: u64 = 0x4d43_0002;

    /// Result of a valgrind request; 0 without valgrind.
    #[cfg(target_arch = "x86_64")]
    fn request(number: u64, arguments: [u64; 2]) -> u64 {
        let words = [number, arguments[0], arguments[1], 0, 0, 0];
        let answer;
        // SAFETY: rotations that add up to two full turns, and an exchange of a register with itself, which change
        // nothing. valgrind recognises them, reads the words behind `rax` and writes `rdx`.
        unsafe {
            core::arch::asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                in("rax") words.as_ptr(),
                inout("rdx") 0_u64 => answer,
            );
        }
        answer
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn request(_: u64, _: [u64; 2]) -> u64 {
        0
    }

    fn mark(secret: &Secret, request_number: u64) {
        let (key, number) = (&raw const secret.key, &raw const secret.number);
        request(request_number, [key as u64, size_of_val(&secret.key) as u64]);
        request(request_number, [number as u64, size_of_val(&secret.number) as u64]);
    }

    /// Runs every operation with a marked secret and compares the errors with the documentation of the operation.
    pub(super) fn check(secret: &Secret, is_json: bool) -> Result<()> {
        if request(RUNNING_ON_VALGRIND, [0; 2]) == 0 {
            bail!("--memcheck runs under valgrind on x86-64: valgrind constant_time --memcheck");
        }
        let (mut results, mut is_as_said) = (Vec::new(), true);
        for (name, is_constant, run) in OPERATIONS {
            let before = request(COUNT_ERRORS, [0; 2]);
            mark(secret, MAKE_MEM_UNDEFINED);
            run(secret);
            mark(secret, MAKE_MEM_DEFINED);
            let errors = request(COUNT_ERRORS, [0; 2]) - before;
            is_as_said &= is_constant == (errors == 0);
            if is_json {
                results.push(json!({
                    "operation": name, "says_constant_time": is_constant, "errors": errors,
                }));
            } else {
                println!("{name:32} branches and addresses by the secret: {errors}");
            }
        }
        if is_json {
            println!("{}", json!({ "format": 1, "memcheck": results }));
        }
        ensure!(
            is_as_said,
            "a secret decides on a branch or an address, or the product in variable time has none"
        );
        Ok(())
    }
}

/// The fixed secret, then random ones.
fn secrets() -> Result<Vec<Secret>> {
    let mut secrets = Vec::with_capacity(SECRETS + 1);
    for index in 0..=SECRETS {
        let mut bytes: [u8; 32] = expand("secret", 7, index as u64, 32)[..].try_into()?;
        // Keeps the secret below the order.
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
        // Both classes read all of the memory; the first one uses the fixed secret instead.
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

/// Count, mean and variance of the samples up to a bound.
fn moments(times: &[f64], bound: f64) -> Moments {
    let kept = || times.iter().filter(|ns| **ns <= bound);
    let count = kept().count() as f64;
    let mean = kept().sum::<f64>() / count;
    let variance = kept().map(|ns| (ns - mean).powi(2)).sum::<f64>() / (count - 1.0);
    Moments { count, mean, variance }
}
