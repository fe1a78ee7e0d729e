//! The subject in this program: our batch verifier of secp256k1 signatures. It also generates the
//! signatures for all subjects, since libraries differ in how they derive them.

use assay_bench::harness::Sample;
use assay_hash::sha256;
use assay_secp::{Backend, BatchVerifier, Check};
use faster_hex::hex_string;
use secp256k1::{Keypair, Message, PublicKey, SecretKey, XOnlyPublicKey, ecdsa, schnorr};

use super::protocol::{Answer, Description, Offer, Order};

pub(super) const NAME: &str = "assay";

pub(super) fn description() -> Description {
    let offer = |operation: &str, how: &str| Offer {
        curve: "secp256k1".to_owned(),
        operation: operation.to_owned(),
        how: format!("{how}, {}", Backend::detect().name()),
    };
    Description {
        name: "assay-secp".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        compiler: "that of assay-curves".to_owned(),
        operations: vec![
            offer("ecdsa-verify", "BatchVerifier::verify"),
            offer("schnorr-verify", "BatchVerifier::verify_weighted"),
        ],
        traces: Vec::new(),
    }
}

/// A signature with its key and message.
#[derive(Clone, Debug)]
struct Signed {
    /// Compressed key, or the x coordinate alone.
    key: Vec<u8>,
    /// DER, or r and s.
    sig: Vec<u8>,
    msg: [u8; 32],
}

#[derive(Debug, Default)]
pub(super) struct Own {
    signed: Vec<Signed>,
    is_schnorr: bool,
    verifier: BatchVerifier,
}

impl Own {
    /// The answer has the verdict on the valid signatures, and on the first one with another message.
    pub(super) fn prepare(&mut self, order: &Order) -> Answer {
        self.is_schnorr = order.operation == "schnorr-verify";
        self.signed = (0..order.size as u64)
            .map(|index| signed(order.seed, index, self.is_schnorr))
            .collect();
        let mut answers = self.answers();
        if let Some(first) = self.signed.first_mut() {
            first.msg[0] ^= 1;
        }
        answers.extend(self.answers().first().copied());
        if let Some(first) = self.signed.first_mut() {
            first.msg[0] ^= 1;
        }
        let bytes: Vec<u8> = answers.into_iter().map(u8::from).collect();
        let shown = hex_string(&bytes[..bytes.len().min(96)]);
        Answer { digest: hex_string(&sha256(&bytes)), shown }
    }

    pub(super) fn time(&mut self, iterations: u64) -> Sample {
        let Self { signed, is_schnorr, verifier } = self;
        let checks = checks(signed, *is_schnorr);
        let mut answers = Vec::with_capacity(checks.len());
        Sample::of(iterations, || {
            for _ in 0..iterations {
                verify(verifier, &checks, *is_schnorr, &mut answers);
                assert!(answers.iter().all(|answer| *answer), "valid signatures");
            }
        })
    }

    fn answers(&mut self) -> Vec<bool> {
        let mut answers = Vec::new();
        verify(
            &mut self.verifier,
            &checks(&self.signed, self.is_schnorr),
            self.is_schnorr,
            &mut answers,
        );
        answers
    }
}

fn verify(
    verifier: &mut BatchVerifier,
    checks: &[Check<'_>],
    is_schnorr: bool,
    out: &mut Vec<bool>,
) {
    if is_schnorr { verifier.verify_weighted(checks, out) } else { verifier.verify(checks, out) }
}

fn checks(signed: &[Signed], is_schnorr: bool) -> Vec<Check<'_>> {
    signed
        .iter()
        .filter_map(|Signed { key, sig, msg }| {
            if is_schnorr {
                let (xonly, sig) =
                    (key.as_slice().try_into().ok()?, sig.as_slice().try_into().ok()?);
                Some(Check::Schnorr { xonly, sig, msg })
            } else {
                Some(Check::Ecdsa { pubkey: key, der_sig: sig, msg })
            }
        })
        .collect()
}

fn bytes_of(label: &str, seed: u64, index: u64) -> [u8; 32] {
    sha256(&[label.as_bytes(), &seed.to_be_bytes(), &index.to_be_bytes()].concat())
}

fn secret(seed: u64, index: u64) -> SecretKey {
    SecretKey::from_secret_bytes(bytes_of("key", seed, index))
        .expect("a hash is a key but once in 2^127")
}

fn signed(seed: u64, index: u64, is_schnorr: bool) -> Signed {
    let (secret, msg) = (secret(seed, index), bytes_of("message", seed, index));
    if is_schnorr {
        let keypair = Keypair::from_secret_key(&secret);
        let key = XOnlyPublicKey::from_keypair(&keypair).0.to_byte_array().to_vec();
        let sig = schnorr::sign_no_aux_rand(&msg, &keypair).to_byte_array().to_vec();
        return Signed { key, sig, msg };
    }
    let key = PublicKey::from_secret_key(&secret).serialize().to_vec();
    let sig = ecdsa::sign(Message::from_digest(msg), &secret).serialize_der().to_vec();
    Signed { key, sig, msg }
}

/// Compressed key, r and s, and message of each signature.
pub(super) fn ecdsa_inputs(seed: u64, count: usize) -> String {
    let one = |index: u64| {
        let (secret, msg) = (secret(seed, index), bytes_of("message", seed, index));
        let sig = ecdsa::sign(Message::from_digest(msg), &secret).serialize_compact();
        let key = PublicKey::from_secret_key(&secret).serialize();
        hex_string(&[&key[..], &sig, &msg].concat())
    };
    (0..count as u64).map(one).collect()
}

/// x coordinate of the key, r and s, and message of each signature.
pub(super) fn schnorr_inputs(seed: u64, count: usize) -> String {
    let one = |index: u64| {
        let Signed { key, sig, msg } = signed(seed, index, true);
        hex_string(&[&key[..], &sig, &msg].concat())
    };
    (0..count as u64).map(one).collect()
}

/// Message, r and s; the v of `ecrecover` may be either of two values.
pub(super) fn recover_input(seed: u64) -> String {
    let (secret, msg) = (secret(seed, 0), bytes_of("message", seed, 0));
    let sig = ecdsa::sign(Message::from_digest(msg), &secret).serialize_compact();
    hex_string(&[&msg[..], &sig].concat())
}
