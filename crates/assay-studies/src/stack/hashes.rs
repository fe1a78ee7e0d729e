//! The hash functions alone, and SHA-256 against other libraries.

use std::hint::black_box;

use anyhow::Result;
use assay_bench::harness::{Alternative, Sample};
use assay_bench::suite::Benchmark;
use assay_bench::wrong_answer;
use assay_hash::{hash160, ripemd160, sha1, sha256, sha256d};
use sha2::Digest as _;

use super::ASSAY;

type Hash = fn(&[u8]) -> Vec<u8>;

/// A hash function by the name of its opcode, with its implementations.
struct Function {
    name: &'static str,
    by: &'static [(&'static str, Hash)],
    /// First four bytes of its hash of `abc`.
    abc: [u8; 4],
}

const FUNCTIONS: [Function; 5] = [
    Function {
        name: "sha1",
        by: &[(ASSAY, |data| sha1(data).to_vec())],
        abc: [0xa9, 0x99, 0x3e, 0x36],
    },
    Function {
        name: "ripemd160",
        by: &[(ASSAY, |data| ripemd160(data).to_vec())],
        abc: [0x8e, 0xb2, 0x08, 0xf7],
    },
    Function {
        name: "sha256",
        by: &[
            (ASSAY, |data| sha256(data).to_vec()),
            ("sha2", |data| sha2::Sha256::digest(data).to_vec()),
            ("ring", |data| ring::digest::digest(&ring::digest::SHA256, data).as_ref().to_vec()),
        ],
        abc: [0xba, 0x78, 0x16, 0xbf],
    },
    Function {
        name: "hash160",
        by: &[(ASSAY, |data| hash160(data).to_vec())],
        abc: [0xbb, 0x1b, 0xe9, 0x8c],
    },
    Function {
        name: "hash256",
        by: &[(ASSAY, |data| sha256d(data).to_vec())],
        abc: [0x4f, 0x8b, 0x42, 0xc2],
    },
];

pub(super) fn benchmarks<'a>(sizes: &[usize]) -> Vec<Benchmark<'a>> {
    let mut benchmarks = Vec::new();
    for function in &FUNCTIONS {
        for &size in sizes {
            let series = format!("hash/{}", function.name);
            let make = move |name: &str| alternatives(name, function, size);
            benchmarks.push(Benchmark::of_bytes(&series, size as u64, make));
        }
    }
    benchmarks
}

fn alternatives<'a>(
    name: &str,
    function: &'static Function,
    size: usize,
) -> Result<Vec<Alternative<'a>>> {
    let data = vec![0x42; size];
    let first = function.by[0].1(&data);
    let mut alternatives = Vec::new();
    for &(by, hash) in function.by {
        if hash(&data) != first || !hash(b"abc").starts_with(&function.abc) {
            return Err(wrong_answer(name, by, "another hash"));
        }
        let data = data.clone();
        let run = move |times| Ok(timed(by, function.name, &data, times));
        alternatives.push(Alternative::repeated(by, run));
    }
    Ok(alternatives)
}

/// Timed loops, without the vector that comparing results needs.
fn timed(by: &str, function: &str, data: &[u8], times: u64) -> Sample {
    fn each<T>(times: u64, data: &[u8], hash: impl Fn(&[u8]) -> T) -> Sample {
        Sample::of(times, || {
            for _ in 0..times {
                black_box(hash(black_box(data)));
            }
        })
    }
    match (by, function) {
        ("sha2", _) => each(times, data, |data| sha2::Sha256::digest(data)),
        ("ring", _) => each(times, data, |data| ring::digest::digest(&ring::digest::SHA256, data)),
        (_, "sha1") => each(times, data, sha1),
        (_, "ripemd160") => each(times, data, ripemd160),
        (_, "hash160") => each(times, data, hash160),
        (_, "hash256") => each(times, data, sha256d),
        _ => each(times, data, sha256),
    }
}
