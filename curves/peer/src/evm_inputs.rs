//! Inputs of precompiles that are made by other libraries than `assay_pairing`.

use anyhow::{Result, ensure};
use p256::ecdsa::signature::hazmat::PrehashSigner as _;
use p256::ecdsa::{Signature, SigningKey};
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, SecretKey};
use sha2::{Digest as _, Sha256};

use crate::derive::expand;
use crate::kzg;
use crate::table::Work;

/// The given signature with v 28 and 27.
pub(crate) fn recovery_inputs(work: &Work) -> Result<[Vec<u8>; 2]> {
    let given = work.given()?;
    ensure!(given.len() == 96, "96 bytes of inputs are wanted");
    Ok([28, 27].map(|v| {
        let mut word = [0; 32];
        word[31] = v;
        [&given[..32], &word, &given[32..]].concat()
    }))
}

/// Number of signatures without a given size.
const RECOVERIES: usize = 256;

/// Inputs of `ecrecover`: hash, v, r and s.
pub(crate) fn recoveries(work: &Work) -> Result<Vec<Vec<u8>>> {
    let count = if work.size == 0 { RECOVERIES } else { work.size };
    (0..count).map(|index| recovery(work, index)).collect()
}

/// Signature (RFC 6979) of the message with this index by its own secret.
pub(crate) fn recovery(work: &Work, index: usize) -> Result<Vec<u8>> {
    let secret = expand("ecrecover", work.seed, index as u64, 32);
    let secret = SecretKey::from_secret_bytes(secret.try_into().expect("32 bytes"))?;
    let message = work.message(index);
    let sig = RecoverableSignature::sign_ecdsa_recoverable(Message::from_digest(message), &secret);
    let (id, compact) = sig.serialize_compact();
    let mut v = [0; 32];
    v[31] = if id == RecoveryId::One { 28 } else { 27 };
    Ok([&message[..], &v, &compact].concat())
}

/// Hash of a commitment, then the result of [`kzg::point_evaluation`].
pub(crate) fn point_evaluation(work: &Work) -> Result<Vec<u8>> {
    let (commitment, rest) = kzg::point_evaluation(work)?;
    let mut hash = Sha256::digest(commitment).to_vec();
    hash[0] = 1;
    Ok([hash, rest].concat())
}

/// Twelve rounds, as in `BLAKE2b`, on random words; the last block.
pub(crate) fn blake2f(work: &Work) -> Vec<u8> {
    [&[0, 0, 0, 12][..], &expand("blake2f", work.seed, 0, 208), &[1]].concat()
}

/// A valid signature: hash, r and s, key.
pub(crate) fn p256_verify(work: &Work) -> Result<Vec<u8>> {
    let key = SigningKey::from_slice(&expand("p256", work.seed, 0, 32))?;
    let hash = work.message(0);
    let signature: Signature = key.sign_prehash(&hash)?;
    let point = key.verifying_key().to_encoded_point(false);
    Ok([&hash[..], &signature.to_bytes()[..], &point.as_bytes()[1..]].concat())
}

pub(crate) fn modexp(work: &Work) -> Vec<u8> {
    let mut length = [0; 32];
    length[24..].copy_from_slice(&(work.size as u64).to_be_bytes());
    let part = |label| expand(label, work.seed, 0, work.size);
    let mut modulus = part("modulus");
    modulus[0] |= 0x80;
    modulus[work.size - 1] |= 1;
    [length.repeat(3), part("base"), part("exponent"), modulus].concat()
}
