//! Lanes and words against libsecp256k1, and against the signing keys.

use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, PublicKey, Scalar as Tweak, SecretKey};

use super::super::tests::proving_backends;
use super::*;
use crate::bch::generator;

#[derive(Clone)]
struct Owned {
    msg: [u8; 32],
    r: [u8; 32],
    s: [u8; 32],
    is_y_odd: bool,
}

impl Owned {
    fn signed(&self) -> Signed<'_> {
        Signed { msg: &self.msg, r: &self.r, s: &self.s, is_y_odd: self.is_y_odd }
    }
}

fn hash(seed: u32, tag: u8) -> [u8; 32] {
    let [a, b, c, d] = seed.to_le_bytes();
    assay_hash::sha256(&[a, b, c, d, tag])
}

/// A signature, and its key.
fn made(seed: u32) -> (Owned, [u8; 64]) {
    let secret = SecretKey::from_secret_bytes(hash(seed, 1)).expect("a key");
    let msg = hash(seed, 2);
    let signature =
        RecoverableSignature::sign_ecdsa_recoverable(Message::from_digest(msg), &secret);
    let (id, compact) = signature.serialize_compact();
    let (r, s) = compact.split_at(32);
    let is_y_odd = id == RecoveryId::One;
    let owned =
        Owned { msg, r: r.try_into().expect("half"), s: s.try_into().expect("half"), is_y_odd };
    let key = PublicKey::from_secret_key(&secret).serialize_uncompressed();
    (owned, key[1..].try_into().expect("64 bytes follow"))
}

/// The result of libsecp256k1.
fn right(one: &Owned) -> Option<[u8; 64]> {
    let id = if one.is_y_odd { RecoveryId::One } else { RecoveryId::Zero };
    let signature = RecoverableSignature::from_compact(&[one.r, one.s].concat(), id).ok()?;
    let key = signature.recover_ecdsa(Message::from_digest(one.msg)).ok()?;
    key.serialize_uncompressed()[1..].try_into().ok()
}

fn check(all: &[Owned]) {
    let signed: Vec<Signed<'_>> = all.iter().map(Owned::signed).collect();
    let right: Vec<Option<[u8; 64]>> = all.iter().map(right).collect();
    let words: Vec<Option<[u8; 64]>> = signed.iter().map(Signed::recover).collect();
    assert_eq!(words, right, "in words");
    for backend in proving_backends() {
        let mut recoverer = Recoverer::with_backend(backend);
        assert!(recoverer.kernels.is_some());
        let mut keys = Vec::new();
        recoverer.recover(&signed, &mut keys);
        assert_eq!(keys, right, "{backend:?}");
    }
}

#[test]
fn recovers_the_signing_key() {
    for count in [0, 1, 2, 3, 7, 8, 9, 17, 40] {
        let made: Vec<(Owned, [u8; 64])> = (0..count).map(made).collect();
        let all: Vec<Owned> = made.iter().map(|(owned, _)| owned.clone()).collect();
        let signed: Vec<Signed<'_>> = all.iter().map(Owned::signed).collect();
        let keys: Vec<Option<[u8; 64]>> = made.iter().map(|(_, key)| Some(*key)).collect();
        for backend in proving_backends() {
            let mut found = Vec::new();
            Recoverer::with_backend(backend).recover(&signed, &mut found);
            assert_eq!(found, keys, "{backend:?}, {count}");
        }
        check(&all);
    }
    // More signatures than share an inversion.
    if Backend::detect() != Backend::Libsecp {
        let all: Vec<Owned> = (0..AT_ONCE as u32 + 3).map(|seed| made(seed).0).collect();
        let signed: Vec<Signed<'_>> = all.iter().map(Owned::signed).collect();
        let mut keys = Vec::new();
        Recoverer::with_backend(Backend::detect()).recover(&signed, &mut keys);
        assert!(keys.iter().zip(&signed).all(|(key, signed)| *key == signed.recover()));
    }
}

/// Numbers at the ends of their ranges, r that is not a coordinate, the other parity, each among others.
#[test]
fn edges() {
    const ORDER: [u8; 32] = secp256k1::constants::CURVE_ORDER;
    let mut below = ORDER;
    below[31] -= 1;
    let small = |number: u8| {
        let mut bytes = [0; 32];
        bytes[31] = number;
        bytes
    };
    let numbers = [[0; 32], small(1), small(2), small(5), below, ORDER, [0xff; 32]];
    let mut all = Vec::new();
    for (seed, number) in numbers.iter().enumerate() {
        for is_y_odd in [false, true] {
            let (one, _) = made(seed as u32);
            all.push(Owned { is_y_odd, ..one.clone() });
            all.push(Owned { r: *number, is_y_odd, ..one.clone() });
            all.push(Owned { s: *number, is_y_odd, ..one.clone() });
            all.push(Owned { msg: *number, is_y_odd, ..one.clone() });
            all.push(Owned { msg: *number, r: small(1), s: small(1), is_y_odd });
        }
    }
    check(&all);
}

/// R is a small multiple of G or of its image under the endomorphism, so that sums encounter equal or opposite points, and the
/// key is infinity or a small multiple too.
#[test]
fn exceptional_additions() {
    let generator = generator().expect("on the curve");
    let mut all = Vec::new();
    for factor in 1..=33u8 {
        let mut number = [0; 32];
        number[31] = factor;
        let tweak = Tweak::from_be_bytes(number).expect("small");
        let point = generator.mul_tweak(&tweak).expect("not infinity").serialize();
        let r: [u8; 32] = point[1..].try_into().expect("32 bytes follow");
        for is_y_odd in [false, true] {
            // Q = (s k - m) / r G for R = k G: s and m small.
            for s in [1, 2, 3, factor] {
                for m in [0, 1, factor, factor.wrapping_mul(s)] {
                    let [mut msg, mut small] = [[0; 32]; 2];
                    (msg[31], small[31]) = (m, s);
                    all.push(Owned { msg, r, s: small, is_y_odd });
                }
            }
        }
    }
    check(&all);
    let none = all.iter().filter(|one| right(one).is_none()).count();
    assert!(none > 30, "{none} keys are infinity");
}
