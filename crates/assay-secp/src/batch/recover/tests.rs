//! Against libsecp256k1, and against the keys that signed.

use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, PublicKey, Scalar as Tweak, SecretKey};

use super::*;
use crate::bch::generator;

#[derive(Clone, Debug)]
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

/// A signature, and the key that made it.
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

/// What libsecp256k1 recovers.
fn right(one: &Owned) -> Option<[u8; 64]> {
    let id = if one.is_y_odd { RecoveryId::One } else { RecoveryId::Zero };
    let signature = RecoverableSignature::from_compact(&[one.r, one.s].concat(), id).ok()?;
    let key = signature.recover_ecdsa(Message::from_digest(one.msg)).ok()?;
    key.serialize_uncompressed()[1..].try_into().ok()
}

fn check(all: &[Owned]) {
    for one in all {
        assert_eq!(one.signed().recover(), right(one), "{one:x?}");
    }
}

#[test]
fn the_key_that_signed() {
    for seed in 0..200 {
        let (one, key) = made(seed);
        assert_eq!(one.signed().recover(), Some(key), "{one:x?}");
        assert_eq!(right(&one), Some(key));
    }
}

/// Numbers at the ends of their ranges, r that is no coordinate, the other parity, each among others.
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

/// R is a small multiple of G or of its endomorphism's image, so that sums meet points that are equal or opposite, and the key
/// is infinity or a small multiple as well.
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
