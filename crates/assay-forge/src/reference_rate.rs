//! Single-thread rates of libsecp256k1 on this machine: the reference for the rates of a forge or a node.

use std::{hint::black_box, time::Instant};

use secp256k1::{Keypair, PublicKey, SecretKey, XOnlyPublicKey, ecdsa, schnorr};

use crate::raw::Signer;

/// Operations per second on one thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    pub ecdsa_per_s: f64,
    /// BIP340.
    pub schnorr_per_s: f64,
}

/// Signing rate: the C library's functions alone, without re-randomisation, on distinct keys and messages.
///
/// Short rounds of both algorithms alternate; each rate is the median of its rounds. Takes about a quarter of a second.
pub fn sign_rate() -> Rates {
    let signer = Signer::new();
    let work = samples(SAMPLES);
    interleave(
        || {
            for sample in &work {
                black_box(signer.ecdsa(&sample.message, &sample.secret));
            }
        },
        || {
            for sample in &work {
                black_box(signer.schnorr(&sample.message, &sample.keypair));
            }
        },
    )
}

/// Verification rate per signature: parsing the public key and the signature, and the verification equation.
///
/// Measured like [`sign_rate`].
pub fn verify_rate() -> Rates {
    let work = samples(SAMPLES);
    interleave(
        || {
            for sample in &work {
                let key = PublicKey::from_byte_array_compressed(sample.public_key);
                let key = key.expect("serialised by the same library");
                let signature = ecdsa::Signature::from_der(&sample.der);
                let signature = signature.expect("serialised by the same library");
                let message = secp256k1::Message::from_digest(sample.message);
                assert!(black_box(ecdsa::verify(&signature, message, &key)).is_ok());
            }
        },
        || {
            for sample in &work {
                let key = XOnlyPublicKey::from_byte_array(sample.x_only);
                let key = key.expect("serialised by the same library");
                let signature = schnorr::Signature::from_byte_array(sample.schnorr);
                assert!(black_box(schnorr::verify(&signature, &sample.message, &key)).is_ok());
            }
        },
    )
}

/// Signatures of both kinds by one key.
#[derive(Debug)]
pub struct Sample {
    pub message: [u8; 32],
    secret: [u8; 32],
    keypair: Keypair,
    /// Compressed.
    pub public_key: [u8; 33],
    x_only: [u8; 32],
    pub der: Vec<u8>,
    schnorr: [u8; 64],
}

/// Signatures by distinct keys.
pub fn samples(count: usize) -> Vec<Sample> {
    let signer = Signer::new();
    let sample = |number: usize| {
        let message = assay_hash::sha256(&number.to_le_bytes());
        let secret = assay_hash::sha256(&message);
        let key = SecretKey::from_secret_bytes(secret).expect("a hash is a key but once in 2^127");
        let keypair = Keypair::from_secret_key(&key);
        Sample {
            message,
            secret,
            public_key: keypair.public_key().serialize(),
            x_only: keypair.x_only_public_key().0.to_byte_array(),
            der: signer.ecdsa(&message, &secret).serialize_der().to_vec(),
            schnorr: signer.schnorr(&message, &keypair),
            keypair,
        }
    };
    (0..count).map(sample).collect()
}

fn interleave(mut ecdsa: impl FnMut(), mut schnorr: impl FnMut()) -> Rates {
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        rounds[0].push(rate(&mut ecdsa));
        rounds[1].push(rate(&mut schnorr));
    }
    let [ecdsa_per_s, schnorr_per_s] = rounds.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    });
    Rates { ecdsa_per_s, schnorr_per_s }
}

fn rate(work: &mut impl FnMut()) -> f64 {
    let begun = Instant::now();
    work();
    SAMPLES as f64 / begun.elapsed().as_secs_f64()
}

const SAMPLES: usize = 256;
const ROUNDS: usize = 31;
