//! Signatures created here, and published ones.

use super::{
    Batch, PublicKey, SecretKey, Signature, Signed, aggregate_verify, fast_aggregate_verify,
    verify, verify_batch, verify_possession,
};
use crate::curve::{Affine, BlsG1, BlsG2, Curve as _, Jacobian};
use crate::encoding::DecodeError;
use crate::msm::Backend;
use crate::testing::Rng;

fn secrets(count: usize) -> Vec<SecretKey> {
    let mut rng = Rng::new(13);
    let secret = |_| {
        let mut bytes = [0; 32];
        bytes[1..9].copy_from_slice(&rng.word().to_be_bytes());
        bytes[20..28].copy_from_slice(&rng.word().to_be_bytes());
        SecretKey::from_bytes(&bytes).expect("below the order")
    };
    (0..count).map(secret).collect()
}

#[test]
fn one_signature() {
    let [secret, other] = &secrets(2)[..] else { unreachable!("two") };
    let (key, signature) = (secret.public_key(), secret.sign(b"message"));
    assert!(verify(&key, b"message", &signature));
    assert!(!verify(&key, b"another", &signature));
    assert!(!verify(&key, b"message", &other.sign(b"message")));
    assert_eq!(PublicKey::from_bytes(&key.to_bytes()), Ok(key));
    assert_eq!(Signature::from_bytes(&signature.to_bytes()), Ok(signature));
    let infinity = Affine::<BlsG1>::INFINITY.to_compressed();
    assert_eq!(PublicKey::from_bytes(&infinity), Err(DecodeError::NotInGroup));
}

#[test]
fn aggregates() {
    let secrets = secrets(5);
    let keys: Vec<_> = secrets.iter().map(SecretKey::public_key).collect();
    let same: Vec<_> = secrets.iter().map(|secret| secret.sign(b"same")).collect();
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
        secrets.iter().zip(messages).map(|(secret, message)| secret.sign(message)).collect();
    let aggregate = Signature::aggregate(&signatures);
    let mut signed: Vec<(PublicKey, &[u8])> =
        keys.iter().zip(messages).map(|(key, message)| (*key, &message[..])).collect();
    assert!(aggregate_verify(&signed, &aggregate));
    signed.swap(0, 1);
    assert!(aggregate_verify(&signed, &aggregate));
    signed[0].1 = b"x";
    assert!(!aggregate_verify(&signed, &aggregate));
    let proof = secrets[0].prove_possession();
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
        .map(|(secret, message)| (secret.public_key(), &message[..], secret.sign(message)))
        .collect();
    for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
        assert!(verify_batch(backend, &signed, &[7; 32]), "{}", backend.name());
    }
    let in_shares = |signed: &[Signed<'_>], places: &[usize]| {
        let batch = Batch::new(Backend::detect(), signed, &[7; 32]);
        let shares: Vec<_> = places.windows(2).map(|ends| batch.share(ends[0]..ends[1])).collect();
        batch.is_valid(&shares)
    };
    let count = signed.len();
    for places in [&[0, count][..], &[0, 1, count], &[0, 0, 5, count], &[0, count, count]] {
        assert!(in_shares(&signed, places), "{places:?}");
        // Swapped signatures: errors of two shares that would cancel each other without weights.
        let mut swapped = signed.clone();
        (swapped[0].2, swapped[count - 1].2) = (signed[count - 1].2, signed[0].2);
        assert!(!in_shares(&swapped, places), "{places:?}");
    }
    assert!(in_shares(&[], &[0]) && in_shares(&[], &[0, 0]));
    for places in [&[0, 3][..], &[1, count], &[0, 2, count - 1]] {
        let missing = std::panic::catch_unwind(|| in_shares(&signed, places));
        assert!(missing.is_err(), "{places:?}");
    }
    let batch = Batch::new(Backend::detect(), &signed, &[7; 32]);
    let half = count / 2;
    let others = [
        Batch::new(Backend::detect(), &signed, &[8; 32]).share(half..count),
        Batch::new(Backend::detect(), &signed[..count - 1], &[7; 32]).share(half..count - 1),
    ];
    for other in others {
        let mixed = [batch.share(0..half), other];
        let foreign = std::panic::catch_unwind(|| batch.is_valid(&mixed));
        assert!(foreign.is_err(), "a share of another batch");
    }
    assert!(verify_batch(Backend::detect(), &signed[..1], &[7; 32]));
    assert!(verify_batch(Backend::detect(), &[], &[7; 32]));
    // Two wrong signatures whose errors cancel in a plain sum.
    let shift = BlsG2::GENERATOR.multiply(&[9, 0, 0, 0]);
    let (first, second) = (signed[0].2, signed[1].2);
    signed[0].2 = Signature((Jacobian::from(first.0) + shift).to_affine());
    signed[1].2 = Signature((Jacobian::from(second.0) - shift).to_affine());
    assert!(!verify_batch(Backend::detect(), &signed, &[7; 32]));
    (signed[0].2, signed[1].2) = (second, first);
    assert!(!verify_batch(Backend::detect(), &signed, &[7; 32]));
}

#[test]
fn invalid_secrets_are_rejected() {
    let order = {
        let mut bytes = [0; 32];
        crate::limbs::to_be_bytes(&BlsG1::ORDER, &mut bytes);
        bytes
    };
    assert!(SecretKey::from_bytes(&order).is_none());
    assert!(SecretKey::from_bytes(&[0; 32]).is_none());
    assert!(SecretKey::from_bytes(&[0xff; 32]).is_none());
    let mut below = order;
    below[31] -= 1;
    let key = SecretKey::from_bytes(&below).expect("below the order").public_key();
    assert_eq!(*key.point(), -BlsG1::GENERATOR);
}
