//! Measures every function on every backend of this machine.
//!
//! Rounds of all cases are interleaved, so that noise affects all of them; the figure is the median over rounds, with its
//! interquartile range. Each case also yields a number that must not depend on the backend, so a wrong computation fails instead
//! of appearing fast.
//!
//! `cargo run --release -p assay-hash --example throughput [rounds [part of a name]]`

#![expect(clippy::print_stdout, reason = "the table is this program's output")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use assay_hash::{
    Backend, Chain, MuHash3072, Sha256, SipHash13, SipHash24, TaggedHasher, TreePath,
    climb_paths_with, hash160, hash160_many_with, merkle_root_with, ripemd160, run_chains_with,
    sha1, sha256_compress_many_with, sha256d_64_many_with, sha256d_many_with,
};

/// A benchmark case.
struct Case {
    name: &'static str,
    backend: &'static str,
    /// Operations per call of `run`.
    operations: usize,
    /// Message bytes per operation; zero if a figure per byte is meaningless.
    bytes: usize,
    run: Box<dyn Fn() -> u64>,
    elapsed_ns: Vec<f64>,
}

fn main() -> ExitCode {
    let rounds = std::env::args().nth(1).map_or(Ok(51), |text| text.parse());
    let Ok(rounds @ 1..) = rounds else {
        println!("usage: throughput [rounds [part of a name]]");
        return ExitCode::from(2);
    };
    let mut cases = single_cases();
    for backend in Backend::available() {
        cases.extend(backend_cases(backend));
        cases.extend(chain_cases(backend));
    }
    let wanted = std::env::args().nth(2).unwrap_or_default();
    cases.retain(|case| format!("{} {}", case.name, case.backend).contains(&wanted));
    check_answers(&cases);
    for _ in 0..rounds {
        for case in &mut cases {
            let start = Instant::now();
            black_box((case.run)());
            case.elapsed_ns.push(start.elapsed().as_nanos() as f64);
        }
    }
    println!("detected backend: {}; {rounds} interleaved rounds", assay_hash::backend());
    println!(
        "{:<34} {:<9} {:>11} {:>11} {:>19}",
        "work", "backend", "ns/op", "ns/byte", "middle half, ns/op"
    );
    for case in &mut cases {
        print_case(case);
    }
    ExitCode::SUCCESS
}

/// Functions with one implementation.
fn single_cases() -> Vec<Case> {
    let data = pattern(4096);
    let mut cases = Vec::new();
    let mut add = |name, bytes, hash: fn(&[u8]) -> u64| {
        let data = data.clone();
        let run = move || (0..256).map(|i| hash(black_box(&data[i..i + bytes]))).fold(0, mix);
        cases.push(Case::new(name, "-", 256, bytes, run));
    };
    add("SipHash-1-3, 36 bytes", 36, |data| SipHash13::new(1, 2).hash(data));
    add("SipHash-1-3, outpoint path", 36, |data| {
        let txid = data.first_chunk().expect("36 bytes hold a txid");
        assay_hash::hash_outpoint(1, 2, txid, u32::from(data[32]))
    });
    add("SipHash-2-4, 36 bytes", 36, |data| SipHash24::new(1, 2).hash(data));
    add("RIPEMD-160, 32 bytes", 32, |data| word(&ripemd160(data)));
    add("SHA-1, 32 bytes", 32, |data| word(&sha1(data)));
    add("hash160, 33 bytes", 33, |data| word(&hash160(data)));
    add("SHA-256, 32 bytes, one shot", 32, |data| word(&assay_hash::sha256(data)));
    add("SHA-256d, 80 bytes, one shot", 80, |data| word(&assay_hash::sha256d(data)));
    add("SHA-256d, 250 bytes, one shot", 250, |data| word(&assay_hash::sha256d(data)));
    add("tagged hash, 64 bytes", 64, |data| word(&TaggedHasher::TAP_BRANCH.hash(&[data])));
    cases
}

/// Functions that exist once per backend.
fn backend_cases(backend: Backend) -> Vec<Case> {
    let name = backend.name();
    // A round is far shorter than a scheduler's time slice, so that few rounds are interrupted.
    let bytes = pattern(1 << 16);
    let long = bytes.clone();
    let transactions = bytes.clone();
    let mixed = bytes.clone();
    let keys = bytes.clone();
    let same = bytes.clone();
    let elements = bytes.clone();
    let leaves: Vec<[u8; 32]> = bytes.as_chunks::<32>().0[..1001].to_vec();
    let mut spent = MuHash3072::with_backend(backend);
    spent.insert(&bytes[..60]);
    spent.remove(&bytes[100..160]);
    vec![
        Case::new("SHA-256, 64 KiB", name, 1, 1 << 16, move || {
            let mut hasher = Sha256::with_backend(backend);
            hasher.update(black_box(&long));
            word(&hasher.finalize())
        }),
        Case::new("SHA-256d, 250 bytes, streamed", name, 256, 250, move || {
            let hash = |i: usize| {
                let mut hasher = Sha256::with_backend(backend);
                hasher.update(black_box(&transactions[i..i + 100]));
                hasher.update(black_box(&transactions[i + 100..i + 250]));
                word(&hasher.finalize_double())
            };
            (0..256).map(hash).fold(0, mix)
        }),
        Case::new("SHA-256d, 200..400 bytes, many", name, 256, 300, move || {
            let messages: Vec<&[u8]> =
                (0..256).map(|i| &mixed[i..i + 200 + 3 * (mixed[i] as usize % 67)]).collect();
            let mut digests = vec![[0; 32]; 256];
            sha256d_many_with(backend, black_box(&messages), &mut digests);
            digests.iter().map(|digest| word(digest)).fold(0, mix)
        }),
        Case::new("SHA-256, 16 states, same 8 KiB", name, 16, 1 << 13, move || {
            let mut hashers = vec![Sha256::with_backend(backend); 16];
            hashers.iter_mut().enumerate().for_each(|(i, hasher)| hasher.update(&same[i..i + 64]));
            Sha256::update_all(&mut hashers, black_box(&same[..1 << 13]));
            hashers.into_iter().map(|hasher| word(&hasher.finalize())).fold(0, mix)
        }),
        Case::new("hash160, 33 bytes, many", name, 256, 33, move || {
            let messages: Vec<&[u8]> = (0..256).map(|i| &keys[i..i + 33]).collect();
            let mut digests = vec![[0; 20]; 256];
            hash160_many_with(backend, black_box(&messages), &mut digests);
            digests.iter().map(|digest| word(digest)).fold(0, mix)
        }),
        Case::new("SHA-256d, 64 bytes, many", name, 1 << 10, 64, move || {
            let mut digests = vec![0; 1 << 15];
            sha256d_64_many_with(backend, black_box(&bytes), &mut digests);
            digests.as_chunks::<32>().0.iter().map(|digest| word(digest)).fold(0, mix)
        }),
        Case::new("merkle root, per leaf of 1001", name, 1001, 0, move || {
            word(&merkle_root_with(backend, black_box(leaves.clone())).0)
        }),
        Case::new("MuHash insert, 60 bytes", name, 64, 0, move || {
            let mut set = MuHash3072::with_backend(backend);
            for i in 0..64u8 {
                set.insert(black_box(&[i; 60]));
            }
            word(&set.to_bytes())
        }),
        Case::new("MuHash insert, 75 bytes, many", name, 1024, 0, move || {
            let mut set = MuHash3072::with_backend(backend);
            let coins: Vec<&[u8]> = (0..1024).map(|i| &elements[31 * i..31 * i + 75]).collect();
            set.insert_many(black_box(&coins));
            // Equal products may have different representations.
            word(&set.finalize())
        }),
        Case::new("MuHash finalize", name, 1, 0, move || {
            word(&black_box(spent.clone()).finalize())
        }),
    ]
}

/// Functions of hash-based signatures, once per backend.
fn chain_cases(backend: Backend) -> Vec<Case> {
    let name = backend.name();
    let values = pattern(1 << 14);
    let siblings = values.clone();
    let blocks = values.as_chunks::<64>().0.to_vec();
    vec![
        Case::new("SHA-256 compression, 256 states", name, 256, 64, move || {
            let mut states = [Sha256::INITIAL_STATE; 256];
            sha256_compress_many_with(backend, &mut states, black_box(&blocks));
            states.iter().map(|state| state[0].into()).fold(0, mix)
        }),
        Case::new("hash chain of 16 bytes, per step", name, CHAIN_STEPS, 0, move || {
            let mut chains: Vec<Chain<'_, 16>> = (0..256)
                .map(|i| Chain {
                    state: &Sha256::INITIAL_STATE,
                    prefix: *values[i..].first_chunk().expect("20 bytes"),
                    start: i as u8 % 16,
                    value: *values[i..].first_chunk().expect("16 bytes"),
                })
                .collect();
            run_chains_with(backend, black_box(&mut chains), 15);
            chains.iter().map(|chain| word(&chain.value)).fold(0, mix)
        }),
        Case::new("tree path of 16 bytes, per node", name, 256 * 9, 0, move || {
            let mut paths: Vec<TreePath<'_>> = (0..256)
                .map(|i| TreePath {
                    state: &Sha256::INITIAL_STATE,
                    prefix: *siblings[i..].first_chunk().expect("14 bytes"),
                    index: i as u32,
                    node: *siblings[i..].first_chunk().expect("16 bytes"),
                    siblings: &siblings[i..],
                })
                .collect();
            climb_paths_with(backend, black_box(&mut paths), 9);
            paths.iter().map(|path| word(&path.node)).fold(0, mix)
        }),
    ]
}

/// Steps of 256 chains that start at 0 to 15 and end at 15.
const CHAIN_STEPS: usize = 16 * (15 * 16 / 2);

impl Case {
    fn new(
        name: &'static str,
        backend: &'static str,
        operations: usize,
        bytes: usize,
        run: impl Fn() -> u64 + 'static,
    ) -> Self {
        Self { name, backend, operations, bytes, run: Box::new(run), elapsed_ns: Vec::new() }
    }
}

/// Cases with the same name must agree on all backends.
fn check_answers(cases: &[Case]) {
    let mut answers = BTreeMap::new();
    for case in cases {
        let answer = (case.run)();
        let expected = *answers.entry(case.name).or_insert(answer);
        assert_eq!(answer, expected, "{} differs on {}", case.name, case.backend);
    }
}

fn print_case(case: &mut Case) {
    case.elapsed_ns.sort_by(f64::total_cmp);
    let quantile = |quarters: usize| {
        let last = case.elapsed_ns.len() - 1;
        case.elapsed_ns[last * quarters / 4] / case.operations as f64
    };
    let per_byte = match case.bytes {
        0 => String::from("-"),
        bytes => format!("{:.3}", quantile(2) / bytes as f64),
    };
    let half = format!("{:.1} .. {:.1}", quantile(1), quantile(3));
    println!(
        "{:<34} {:<9} {:>11.1} {per_byte:>11} {half:>19}",
        case.name,
        case.backend,
        quantile(2)
    );
}

/// Pseudorandom bytes, the same in every run.
fn pattern(length: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// The first eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(*bytes.first_chunk().expect("digests have at least eight bytes"))
}

fn mix(sum: u64, value: u64) -> u64 {
    sum.rotate_left(5) ^ value
}
