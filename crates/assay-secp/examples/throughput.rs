//! Measures batches against libsecp256k1, one thread, in rounds that alternate.
//!
//! Keys are distinct and compressed, and parsing them is part of the work. A figure is the median
//! over rounds; a ratio is the median of the ratios of neighbours, so that a slow moment of the
//! machine hits both sides. Every answer is compared: a benchmark that is wrong fails.
//!
//! `cargo run --release -p assay-secp --example throughput [rounds] [backend]`; with `libsecp256k1` as
//! the backend it shows what a batch costs beyond the calls of the library.

#![expect(clippy::print_stdout, reason = "the table is this program's output")]

use std::process::ExitCode;
use std::time::Instant;

use assay_secp::{Backend, BatchVerifier, Check};
use secp256k1::{Keypair, Message, Parity, PublicKey, Scalar, SecretKey, ecdsa, schnorr};

/// A way to answer a batch.
type Verify = fn(&mut BatchVerifier, &[Check<'_>], &mut Vec<bool>);

/// What everything is compared with: plain calls of the library, one after the other.
fn plain(_: &mut BatchVerifier, checks: &[Check<'_>], answers: &mut Vec<bool>) {
    answers.clear();
    answers.extend(checks.iter().map(Check::verify));
}

/// Checks per batch.
const BATCH: usize = 4096;

/// Owned operands of one key.
struct Case {
    pubkey: [u8; 33],
    xonly: [u8; 32],
    msg: [u8; 32],
    der_sig: Vec<u8>,
    schnorr_sig: [u8; 64],
    tweak: [u8; 32],
    output: [u8; 32],
    parity: bool,
}

fn case(seed: u32) -> Case {
    let hash = |tag: u8| {
        let [a, b, c, d] = seed.to_le_bytes();
        assay_hash::sha256(&[a, b, c, d, tag])
    };
    let secret = SecretKey::from_secret_bytes(hash(0)).expect("a hash below the order");
    let keypair = Keypair::from_secret_key(&secret);
    let (xonly, _) = keypair.x_only_public_key();
    let (msg, tweak) = (hash(1), hash(2));
    let scalar = Scalar::from_be_bytes(tweak).expect("a hash below the order");
    let (output, parity) = xonly.add_tweak(&scalar).expect("not infinity");
    Case {
        pubkey: PublicKey::from_secret_key(&secret).serialize(),
        xonly: xonly.to_byte_array(),
        msg,
        der_sig: ecdsa::sign(Message::from_digest(msg), &secret).serialize_der().to_vec(),
        schnorr_sig: schnorr::sign_with_aux_rand(&msg, &keypair, &hash(3)).to_byte_array(),
        tweak,
        output: output.to_byte_array(),
        parity: parity == Parity::Odd,
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints the cost on both sides and returns the ratio.
fn measure(
    name: &str,
    checks: &[Check<'_>],
    (backend, verify): (Backend, Verify),
    rounds: usize,
) -> f64 {
    let mut batch = BatchVerifier::with_backend(backend);
    let mut answers = Vec::new();
    let mut time = |verifier: &mut BatchVerifier, verify: Verify| {
        let start = Instant::now();
        verify(verifier, checks, &mut answers);
        let elapsed_ns = start.elapsed().as_nanos() as f64 / checks.len() as f64;
        assert!(answers.iter().all(|&answer| answer), "all checks are true");
        elapsed_ns
    };
    time(&mut batch, verify);
    let (mut batch_ns, mut single_ns, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let (a, b) = (time(&mut batch, verify), time(&mut batch, plain));
        batch_ns.push(a);
        single_ns.push(b);
        ratios.push(b / a);
    }
    let ratio = median(&mut ratios);
    println!(
        "{name}: {:.0} ns per check, libsecp256k1 {:.0} ns, middle half of ratios {:.2} to {:.2}",
        median(&mut batch_ns),
        median(&mut single_ns),
        ratios[rounds / 4],
        ratios[3 * rounds / 4],
    );
    ratio
}

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().map_or(Some(21), |text| text.parse().ok());
    let backend = arguments.next().map_or(Some(Backend::detect()), |text| Backend::by_name(&text));
    let (Some(rounds @ 1..), Some(backend)) = (rounds, backend) else {
        println!("usage: throughput [rounds] [backend]");
        return ExitCode::from(2);
    };
    let cases: Vec<Case> = (0..BATCH as u32).map(case).collect();
    let ecdsa: Vec<Check<'_>> = cases
        .iter()
        .map(|case| Check::Ecdsa { pubkey: &case.pubkey, der_sig: &case.der_sig, msg: &case.msg })
        .collect();
    let schnorr: Vec<Check<'_>> = cases
        .iter()
        .map(|case| Check::Schnorr { xonly: &case.xonly, sig: &case.schnorr_sig, msg: &case.msg })
        .collect();
    let tweaks: Vec<Check<'_>> = cases
        .iter()
        .map(|case| Check::TaprootTweak {
            internal: &case.xonly,
            tweak: &case.tweak,
            output: &case.output,
            parity: case.parity,
        })
        .collect();
    let single: (Backend, Verify) = (backend, BatchVerifier::verify);
    let weighted: (Backend, Verify) = (backend, BatchVerifier::verify_weighted);
    let ecdsa = measure("ecdsa", &ecdsa, single, rounds);
    let schnorr_batch = measure("schnorr, weighted", &schnorr, weighted, rounds);
    let schnorr = measure("schnorr", &schnorr, single, rounds);
    let tweak = measure("taproot tweak", &tweaks, single, rounds);
    println!("ecdsa_ratio {ecdsa:.2}");
    println!("schnorr_ratio {schnorr:.2}");
    println!("schnorr_batch_ratio {schnorr_batch:.2}");
    println!("tweak_ratio {tweak:.2}");
    println!("backend {}", BatchVerifier::with_backend(backend).backend().name());
    ExitCode::SUCCESS
}
