//! Verifies with spot checks: libsecp256k1 verifies one of every 256 proven checks again.
//!
//! `cargo run --release -p assay-secp --example sampled`

#![expect(clippy::print_stdout, reason = "the result is this program's output")]

use std::hash::{BuildHasher, RandomState};
use std::process::ExitCode;

use assay_secp::{BatchVerifier, Check, Sample, SampledVerifier};
use secp256k1::{Keypair, SecretKey, schnorr};

fn main() -> ExitCode {
    // The key must be secret. The operating system seeds `RandomState`.
    let key = [0u8, 1].map(|half| RandomState::new().hash_one(half));
    let sample = Sample::new(256, key);

    let verifier = BatchVerifier::new();
    if verifier.has_failed_self_test() {
        println!("this processor fails the self-test; libsecp256k1 verifies everything");
    }
    let mut verifier = SampledVerifier::new(verifier, sample);

    let keys =
        Keypair::from_secret_key(&SecretKey::from_secret_bytes([7; 32]).expect("below the order"));
    let xonly = keys.x_only_public_key().0.to_byte_array();
    let signatures: Vec<(Vec<u8>, [u8; 64])> = (0..2000u32)
        .map(|index| {
            let msg = index.to_le_bytes().to_vec();
            let sig = schnorr::sign_no_aux_rand(&msg, &keys).to_byte_array();
            (msg, sig)
        })
        .collect();
    let checks: Vec<Check<'_>> =
        signatures.iter().map(|(msg, sig)| Check::Schnorr { xonly: &xonly, sig, msg }).collect();

    let mut valid = Vec::new();
    match verifier.verify_weighted(&checks, &mut valid) {
        Ok(()) => {
            let count = valid.iter().filter(|&&valid| valid).count();
            println!("{}: {count} of {} valid", verifier.backend().name(), checks.len());
            ExitCode::SUCCESS
        }
        // All results of this process from vectors are unreliable.
        Err(disagreement) => {
            println!("{disagreement}: {:?}", disagreement.operands);
            ExitCode::FAILURE
        }
    }
}
