//! Finds one invalid signature among thousands, on every backend of this processor.
//!
//! `cargo run --release -p assay-secp --example batch [signatures]`

#![expect(clippy::print_stdout, reason = "the table is this program's output")]

use std::time::Instant;

use assay_secp::{Backend, BatchVerifier, Check};
use secp256k1::{Keypair, Message, SecretKey, ecdsa, schnorr};

/// Owned operands of a check.
struct Signed {
    pubkey: [u8; 33],
    xonly: [u8; 32],
    der_sig: ecdsa::SerializedSignature,
    schnorr_sig: [u8; 64],
    msg: [u8; 32],
}

fn main() {
    let count = std::env::args().nth(1).map_or(Ok(4096), |text| text.parse());
    let Ok(count @ 2..=1_000_000) = count else {
        println!("usage: batch [signatures, 2 to 1000000]");
        return;
    };
    let mut signed: Vec<Signed> = (0..count).map(sign).collect();
    let bad = count / 3;
    signed[bad].msg[0] ^= 1;

    for (kind, check) in
        [("ECDSA", ecdsa_check as fn(&Signed) -> Check<'_>), ("BIP340", schnorr_check)]
    {
        let checks: Vec<Check<'_>> = signed.iter().map(check).collect();
        for backend in [Backend::detect(), Backend::Libsecp] {
            let mut verifier = BatchVerifier::with_backend(backend);
            let mut valid = Vec::new();
            for (method, is_weighted) in [("each", false), ("weighted sum", true)] {
                let start = Instant::now();
                if is_weighted {
                    verifier.verify_weighted(&checks, &mut valid);
                } else {
                    verifier.verify(&checks, &mut valid);
                }
                let each_us = start.elapsed().as_secs_f64() * 1e6 / count as f64;
                let invalid: Vec<usize> = (0..count).filter(|&index| !valid[index]).collect();
                assert_eq!(invalid, [bad], "{kind}, {}", backend.name());
                println!(
                    "{kind:<7} {:<13} {method:<13} {each_us:>7.2} us each, invalid: {invalid:?}",
                    backend.name()
                );
            }
        }
    }
}

/// Signatures of both kinds by a key derived from `index`.
fn sign(index: usize) -> Signed {
    let hash = |tag: &[u8]| assay_hash::sha256(&[tag, &index.to_le_bytes()].concat());
    let secret = SecretKey::from_secret_bytes(hash(b"key"))
        .expect("below the order, but for one hash in 2^128");
    let keys = Keypair::from_secret_key(&secret);
    let msg = hash(b"message");
    Signed {
        pubkey: keys.public_key().serialize(),
        xonly: keys.x_only_public_key().0.to_byte_array(),
        der_sig: ecdsa::sign(Message::from_digest(msg), &secret).serialize_der(),
        schnorr_sig: schnorr::sign_no_aux_rand(&msg, &keys).to_byte_array(),
        msg,
    }
}

fn ecdsa_check(signed: &Signed) -> Check<'_> {
    Check::Ecdsa { pubkey: &signed.pubkey, der_sig: &signed.der_sig, msg: &signed.msg }
}

fn schnorr_check(signed: &Signed) -> Check<'_> {
    Check::Schnorr { xonly: &signed.xonly, sig: &signed.schnorr_sig, msg: &signed.msg }
}
