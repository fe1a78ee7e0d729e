//! Schnorr signatures of Bitcoin Cash (upgrade of May 2019).
//!
//! A signature `(r, s)` of `m` by `P` is valid if `R = s*G - e*P` is not infinity, has the x coordinate `r`, and a y coordinate
//! that is a square, with `e = SHA-256(r || compressed P || m) mod n`. Unlike in BIP-0340 the challenge has no tag and covers the
//! whole key, and R is selected by squareness, not by parity.

use assay_hash::Sha256;
use secp256k1::constants::{CURVE_ORDER, GENERATOR_X, GENERATOR_Y};
use secp256k1::{PublicKey, Scalar};

use crate::jacobi::is_square;

/// Verifies a Schnorr signature by the specification of May 2019.
///
/// `pubkey` is compressed, uncompressed or hybrid; the challenge always covers the compressed form.
pub fn verify_schnorr_bch(pubkey: &[u8], sig: &[u8; 64], msg: &[u8; 32]) -> bool {
    let Ok(key) = PublicKey::from_slice(pubkey) else { return false };
    let mut r = [0; 32];
    let mut s = [0; 32];
    r.copy_from_slice(&sig[..32]);
    s.copy_from_slice(&sig[32..]);
    let Ok(s) = Scalar::from_be_bytes(s) else { return false };

    let mut hasher = Sha256::new();
    hasher.update(&r);
    hasher.update(&key.serialize());
    hasher.update(msg);
    let Some(point) = nonce_point(key, hasher.finalize(), &s) else { return false };

    // Coordinates are below the field prime, so an r at or above it matches nothing.
    let point = point.serialize_uncompressed();
    let mut y = [0; 32];
    y.copy_from_slice(&point[33..]);
    point[1..33] == r && is_square(&y)
}

/// `s*G - e*P`, or `None` for infinity.
fn nonce_point(key: PublicKey, e: [u8; 32], s: &Scalar) -> Option<PublicKey> {
    match negate(e) {
        Some(minus_e) => key.mul_tweak(&minus_e).ok()?.add_exp_tweak(s).ok(),
        // The library cannot add to infinity. No known hash leads here.
        None => generator()?.mul_tweak(s).ok(),
    }
}

/// The base point.
pub(crate) fn generator() -> Option<PublicKey> {
    let mut bytes = [4; 65];
    bytes[1..33].copy_from_slice(&GENERATOR_X);
    bytes[33..].copy_from_slice(&GENERATOR_Y);
    PublicKey::from_slice(&bytes).ok()
}

/// `-e mod n`, or `None` for zero.
fn negate(mut e: [u8; 32]) -> Option<Scalar> {
    // A hash is below 2n, so one subtraction reduces it.
    if e >= CURVE_ORDER {
        e = subtract(&e, &CURVE_ORDER);
    }
    if e == [0; 32] {
        return None;
    }
    Scalar::from_be_bytes(subtract(&CURVE_ORDER, &e)).ok()
}

/// `a - b` of big endian numbers, for `a >= b`.
fn subtract(a: &[u8; 32], b: &[u8; 32]) -> [u8; 32] {
    let mut difference = [0; 32];
    let mut borrow = false;
    for index in (0..32).rev() {
        let (partial, first) = a[index].overflowing_sub(b[index]);
        let (digit, second) = partial.overflowing_sub(u8::from(borrow));
        difference[index] = digit;
        borrow = first || second;
    }
    difference
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negation_wraps_at_the_order() {
        assert!(negate([0; 32]).is_none());
        assert!(negate(CURVE_ORDER).is_none());
        let mut one = [0; 32];
        one[31] = 1;
        let minus_one = negate(one).expect("not zero").to_be_bytes();
        assert_eq!(minus_one, subtract(&CURVE_ORDER, &one));
        assert_eq!(negate(minus_one).expect("not zero").to_be_bytes(), one);
        // 2^256 - 1 is n + (2^256 - 1 - n).
        let reduced = subtract(&[0xff; 32], &CURVE_ORDER);
        assert_eq!(
            negate([0xff; 32]).expect("not zero").to_be_bytes(),
            subtract(&CURVE_ORDER, &reduced)
        );
    }

    /// The branch that no hash reaches must agree with the general one.
    #[test]
    fn zero_challenge_gives_the_generator_multiple() {
        let mut seven = [0; 32];
        seven[31] = 7;
        let seven = Scalar::from_be_bytes(seven).expect("below the order");
        let key = generator().expect("on the curve");
        let point = nonce_point(key, [0; 32], &seven).expect("not infinity");
        // 7G = (8 - 1)G, that is e = 1 for P = G and s = 8.
        let mut eight = [0; 32];
        eight[31] = 8;
        let mut one = [0; 32];
        one[31] = 1;
        let eight = Scalar::from_be_bytes(eight).expect("below the order");
        assert_eq!(nonce_point(key, one, &eight), Some(point));
        let one_scalar = Scalar::from_be_bytes(one).expect("below the order");
        assert_eq!(nonce_point(key, one, &one_scalar), None, "G - G is infinity");
        assert_eq!(nonce_point(key, [0; 32], &Scalar::ZERO), None);
    }
}
