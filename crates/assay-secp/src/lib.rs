//! Verifies secp256k1 ECDSA and Schnorr signatures, one by one and in batches, and recovers keys.
//!
//! The README follows; its example is compiled and run as a test. Single verification allocates nothing and creates no context
//! per call (each thread creates one on first use). Deliberately absent: secret keys, signing, and any knowledge of scripts or
//! transactions.
//!
#![warn(missing_docs)]
#![doc = include_str!("../README.md")]

mod backend;
mod batch;
mod bch;
pub mod ethereum;
mod jacobi;
mod lanes;
mod measure;
mod scalar;
mod words;

pub use backend::Backend;
pub use batch::{
    BatchVerifier, Check, Disagreement, Proof, Recoverer, Sample, SampledVerifier, Signed,
};
pub use bch::verify_schnorr_bch;
pub use measure::Speed;

use secp256k1::{Message, Parity, PublicKey, Scalar, XOnlyPublicKey, ecdsa, schnorr};

/// Verifies an ECDSA signature with the rules of Bitcoin's oldest blocks.
///
/// `der` excludes the hash type and may be any "lax" DER; a high S counts as its negation; `pubkey` is compressed, uncompressed
/// or hybrid (Core `CPubKey::Verify`). The caller enforces stricter rules.
#[inline]
pub fn verify_ecdsa(pubkey: &[u8], der: &[u8], msg: &[u8; 32]) -> bool {
    let Ok(key) = PublicKey::from_slice(pubkey) else { return false };
    let Ok(mut sig) = ecdsa::Signature::from_der_lax(der) else { return false };
    sig.normalize_s();
    ecdsa::verify(&sig, Message::from_digest(*msg), &key).is_ok()
}

/// Verifies a Schnorr signature by BIP-0340. Bitcoin only signs messages of 32 bytes.
#[inline]
pub fn verify_schnorr(xonly: &[u8; 32], sig: &[u8; 64], msg: &[u8]) -> bool {
    let Ok(key) = XOnlyPublicKey::from_byte_array(*xonly) else { return false };
    schnorr::verify(&schnorr::Signature::from_byte_array(*sig), msg, &key).is_ok()
}

/// True if `internal + tweak * G` has the x coordinate `output` and a y coordinate of the given parity (`true` is odd), as
/// BIP-0341 requires of a Taproot output key.
#[inline]
pub fn taproot_tweak_ok(
    internal: &[u8; 32],
    tweak: &[u8; 32],
    output: &[u8; 32],
    output_parity: bool,
) -> bool {
    let Ok(key) = XOnlyPublicKey::from_byte_array(*internal) else { return false };
    let Ok(tweak) = Scalar::from_be_bytes(*tweak) else { return false };
    key.add_tweak(&tweak).is_ok_and(|(tweaked, parity)| {
        (parity == Parity::Odd) == output_parity && tweaked.to_byte_array() == *output
    })
}

#[cfg(test)]
mod tests;
