//! Parses the bytes of checks into numbers.
//!
//! Unusual operands become `None` and are left to libsecp256k1: numbers out of range, encodings other than plain DER, keys that
//! do not parse. This code therefore needs to agree with the library on the plain cases only.

use assay_hash::{Sha256, TaggedHasher};
use secp256k1::PublicKey;

use super::Check;
use super::table::coordinates;
use crate::lanes::group::{Key, Question};
use crate::scalar::{Scalar, is_below, words};

/// The field prime in words.
const PRIME: [u64; 4] = [0xffff_fffe_ffff_fc2f, u64::MAX, u64::MAX, u64::MAX];

/// A check in the form: does `u1 G + u2 Q` have the x coordinate r?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Job {
    /// Index of the check in the batch.
    pub(super) index: usize,
    /// Q.
    pub(super) key: Key,
    /// Below the prime.
    pub(super) r: [u64; 4],
    /// Required parity of the y coordinate, if relevant.
    pub(super) is_r_odd: bool,
    /// For ECDSA the message, until the batch has been multiplied by the inverses of s.
    pub(super) u1: Scalar,
    /// For ECDSA s, until then. Not used for tweaks.
    pub(super) u2: Scalar,
}

/// Prepares a check; `None` to leave it to libsecp256k1.
#[inline]
pub(super) fn prepare(index: usize, check: &Check<'_>) -> Option<(Question, Job)> {
    match *check {
        Check::Ecdsa { pubkey, der_sig, msg } => {
            let key = key(pubkey)?;
            let (r, s) = plain_der(der_sig)?;
            let (r, s) = (Scalar::from_bytes(&r)?, Scalar::from_bytes(&s)?);
            if r.is_zero() || s.is_zero() {
                return None;
            }
            // The result is the same for s and -s, so a high S needs no special case.
            let job = Job { index, key, r: r.0, is_r_odd: false, u1: Scalar::reduced(msg), u2: s };
            Some((Question::Ecdsa, job))
        }
        Check::Schnorr { xonly, sig, msg } => {
            let (r, s) = halves(sig);
            let mut hasher = TaggedHasher::BIP340_CHALLENGE.start();
            hasher.update(&r);
            hasher.update(xonly);
            hasher.update(msg);
            let key = Key { x: coordinate(xonly)?, is_odd: false };
            let job = schnorr(index, key, &r, &s, &hasher.finalize())?;
            Some((Question::Schnorr, job))
        }
        Check::SchnorrBch { pubkey, sig, msg } => {
            let key = key(pubkey)?;
            let (r, s) = halves(sig);
            let mut hasher = Sha256::new();
            hasher.update(&r);
            hasher.update(&[2 | u8::from(key.is_odd)]);
            hasher.update(&pubkey[1..33]);
            hasher.update(msg);
            let job = schnorr(index, key, &r, &s, &hasher.finalize())?;
            Some((Question::SchnorrBch, job))
        }
        Check::TaprootTweak { internal, tweak, output, parity } => {
            let job = Job {
                index,
                key: Key { x: coordinate(internal)?, is_odd: false },
                r: coordinate(output)?,
                is_r_odd: parity,
                u1: Scalar::from_bytes(tweak)?,
                u2: Scalar::ONE,
            };
            Some((Question::Tweak, job))
        }
    }
}

/// `s G - e Q` with the x coordinate r and an even y coordinate.
#[inline]
fn schnorr(
    index: usize,
    key: Key,
    r: &[u8; 32],
    s: &[u8; 32],
    challenge: &[u8; 32],
) -> Option<Job> {
    let u2 = Scalar::reduced(challenge).negate();
    Some(Job { index, key, r: coordinate(r)?, is_r_odd: false, u1: Scalar::from_bytes(s)?, u2 })
}

#[inline]
fn halves(sig: &[u8; 64]) -> ([u8; 32], [u8; 32]) {
    let (mut r, mut s) = ([0; 32], [0; 32]);
    r.copy_from_slice(&sig[..32]);
    s.copy_from_slice(&sig[32..]);
    (r, s)
}

/// A number below the field prime.
#[inline]
fn coordinate(bytes: &[u8; 32]) -> Option<[u64; 4]> {
    let words = words(bytes);
    is_below(&words, &PRIME).then_some(words)
}

#[inline]
fn key(bytes: &[u8]) -> Option<Key> {
    match bytes {
        [2 | 3, x @ ..] => {
            let x = coordinate(x.try_into().ok()?)?;
            Some(Key { x, is_odd: bytes[0] & 1 == 1 })
        }
        // Both coordinates are present, so the library needs no square root.
        [4 | 6 | 7, ..] => {
            let (x, y) = coordinates(&PublicKey::from_slice(bytes).ok()?);
            Some(Key { x, is_odd: y[0] & 1 == 1 })
        }
        _ => None,
    }
}

/// r and s of a signature with one-byte lengths and no extra bytes. Parsed as by Core's lax parser: leading zeros and the sign
/// bit are ignored.
#[inline]
fn plain_der(sig: &[u8]) -> Option<([u8; 32], [u8; 32])> {
    let [0x30, total, 2, r_len, rest @ ..] = sig else { return None };
    if usize::from(*total) + 2 != sig.len() || *total >= 0x80 {
        return None;
    }
    let (r, rest) = rest.split_at_checked(usize::from(*r_len))?;
    let [2, s_len, s @ ..] = rest else { return None };
    if usize::from(*s_len) != s.len() {
        return None;
    }
    Some((integer(r)?, integer(s)?))
}

#[inline]
fn integer(mut bytes: &[u8]) -> Option<[u8; 32]> {
    while let [0, rest @ ..] = bytes {
        bytes = rest;
    }
    let mut number = [0; 32];
    number[32usize.checked_sub(bytes.len())?..].copy_from_slice(bytes);
    Some(number)
}
