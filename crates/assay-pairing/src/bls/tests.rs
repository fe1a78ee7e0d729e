//! Signatures that are made here, for nothing in the crate signs.

use super::{
    MESSAGE_DST, PROOF_DST, PublicKey, Signature, aggregate_verify, fast_aggregate_verify, verify,
    verify_batch, verify_possession,
};
use crate::curve::{Affine, BlsG1, BlsG2, Curve as _, Jacobian};
use crate::encoding::DecodeError;
use crate::hash_to_curve::HashToCurve as _;
use crate::testing::Rng;

fn key(secret: &[u64; 4]) -> PublicKey {
    PublicKey(BlsG1::GENERATOR.multiply(secret).to_affine())
}

fn sign(secret: &[u64; 4], message: &[u8]) -> Signature {
    Signature(BlsG2::hash(message, MESSAGE_DST).multiply(secret).to_affine())
}

fn secrets(count: usize) -> Vec<[u64; 4]> {
    let mut rng = Rng::new(13);
    (0..count).map(|_| core::array::from_fn(|_| rng.word())).collect()
}

#[test]
fn one_signature() {
    let secret = secrets(1)[0];
    let (key, signature) = (key(&secret), sign(&secret, b"message"));
    assert!(verify(&key, b"message", &signature));
    assert!(!verify(&key, b"another", &signature));
    assert!(!verify(&key, b"message", &sign(&[5, 0, 0, 0], b"message")));
    assert_eq!(PublicKey::from_bytes(&key.to_bytes()), Ok(key));
    assert_eq!(Signature::from_bytes(&signature.to_bytes()), Ok(signature));
    let infinity = Affine::<BlsG1>::INFINITY.to_compressed();
    assert_eq!(PublicKey::from_bytes(&infinity), Err(DecodeError::NotInGroup));
}

#[test]
fn aggregates() {
    let secrets = secrets(5);
    let keys: Vec<_> = secrets.iter().map(key).collect();
    let same: Vec<_> = secrets.iter().map(|secret| sign(secret, b"same")).collect();
    let aggregate = Signature::aggregate(&same);
    assert!(fast_aggregate_verify(&keys, b"same", &aggregate));
    assert!(!fast_aggregate_verify(&keys[1..], b"same", &aggregate));
    assert!(!fast_aggregate_verify(&keys, b"other", &aggregate));
    let nobody = Signature::aggregate(&[]);
    assert!(!fast_aggregate_verify(&[], b"same", &nobody));
    assert!(!aggregate_verify(&[], &nobody));
    // Keys that cancel each other.
    let opposite = PublicKey(-keys[0].0);
    assert!(!fast_aggregate_verify(&[keys[0], opposite], b"same", &nobody));
    let messages = [b"a", b"b", b"c", b"d", b"e"];
    let signatures: Vec<_> =
        secrets.iter().zip(messages).map(|(secret, message)| sign(secret, message)).collect();
    let aggregate = Signature::aggregate(&signatures);
    let mut signed: Vec<(PublicKey, &[u8])> =
        keys.iter().zip(messages).map(|(key, message)| (*key, &message[..])).collect();
    assert!(aggregate_verify(&signed, &aggregate));
    signed.swap(0, 1);
    assert!(aggregate_verify(&signed, &aggregate));
    signed[0].1 = b"x";
    assert!(!aggregate_verify(&signed, &aggregate));
    let hash = BlsG2::hash(&keys[0].to_bytes(), PROOF_DST);
    let proof = Signature(hash.multiply(&secrets[0]).to_affine());
    assert!(verify_possession(&keys[0], &proof));
    assert!(!verify_possession(&keys[1], &proof));
}

#[test]
fn batches() {
    let secrets = secrets(6);
    let messages: Vec<[u8; 1]> = (0..6).map(|k| [k]).collect();
    let mut signed: Vec<_> = secrets
        .iter()
        .zip(&messages)
        .map(|(secret, message)| (key(secret), &message[..], sign(secret, message)))
        .collect();
    assert!(verify_batch(&signed, &[7; 32]));
    assert!(verify_batch(&signed[..1], &[7; 32]));
    assert!(verify_batch(&[], &[7; 32]));
    // Two wrong signatures whose errors cancel in a plain sum.
    let shift = BlsG2::GENERATOR.multiply(&[9, 0, 0, 0]);
    let (first, second) = (signed[0].2, signed[1].2);
    signed[0].2 = Signature((Jacobian::from(first.0) + shift).to_affine());
    signed[1].2 = Signature((Jacobian::from(second.0) - shift).to_affine());
    assert!(!verify_batch(&signed, &[7; 32]));
    (signed[0].2, signed[1].2) = (second, first);
    assert!(!verify_batch(&signed, &[7; 32]));
}
