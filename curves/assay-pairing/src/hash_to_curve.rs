//! Hashing to BLS12-381 (RFC 9380): the suites `BLS12381G1_XMD:SHA-256_SSWU_RO_` and
//! `BLS12381G2_XMD:SHA-256_SSWU_RO_`. Variable time.

mod first;
mod in_lanes;
mod isogeny;
mod second;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vectors;

use assay_hash::Sha256;

use crate::backend::on_backend;
use crate::bls12_381::{Fp, X};
use crate::curve::{Affine, BlsG1, BlsG2, Curve, Jacobian};
use crate::field::Field;
use crate::msm::Backend;
use crate::tower::Fp2;
use isogeny::Isogeny;

/// `expand_message_xmd` with SHA-256 (section 5.3.1).
///
/// # Panics
/// If more than 255 hashes would be needed (8,160 bytes).
pub fn expand_message(message: &[u8], dst: &[u8], output: &mut [u8]) {
    let blocks = output.len().div_ceil(32);
    assert!(blocks <= 255, "at most 8160 bytes");
    // Tags of more than 255 bytes are hashed (section 5.3.3).
    let long_tag;
    let dst = if dst.len() > 255 {
        let mut hash = Sha256::new();
        hash.update(b"H2C-OVERSIZE-DST-");
        hash.update(dst);
        long_tag = hash.finalize();
        &long_tag
    } else {
        dst
    };
    let finish = |mut hash: Sha256, number: u8| {
        hash.update(&[number]);
        hash.update(dst);
        hash.update(&[dst.len() as u8]);
        hash.finalize()
    };
    let mut hash = Sha256::new();
    hash.update(&[0; 64]);
    hash.update(message);
    hash.update(&(output.len() as u16).to_be_bytes());
    let first = finish(hash, 0);
    let mut last = [0; 32];
    for (number, chunk) in (1..=255).zip(output.chunks_mut(32)) {
        let mut hash = Sha256::new();
        hash.update(&core::array::from_fn::<u8, 32, _>(|i| first[i] ^ last[i]));
        last = finish(hash, number);
        chunk.copy_from_slice(&last[..chunk.len()]);
    }
}

/// Groups with a suite.
pub trait HashToCurve: Curve {
    /// Hashes a message to a point of the group, under a domain separation tag.
    #[must_use]
    fn hash(message: &[u8], dst: &[u8]) -> Affine<Self>;
    /// Maps an element of the field to a point of the group (`map_to_curve`, then `clear_cofactor`), as in EIP-2537.
    #[must_use]
    fn map(element: &Self::Base) -> Affine<Self>;
}

/// Length of a number before its reduction.
const WIDE: usize = 64;

impl HashToCurve for BlsG1 {
    fn hash(message: &[u8], dst: &[u8]) -> Affine<Self> {
        let mut bytes = [0; 2 * WIDE];
        expand_message(message, dst, &mut bytes);
        let (u, v) = bytes.split_at(WIDE);
        let points = first::map(&[u, v].map(Fp::from_be_bytes_reduced));
        clear_g1(&(points[0] + points[1])).to_affine()
    }

    fn map(element: &Fp) -> Affine<Self> {
        clear_g1(&first::map(&[*element])[0]).to_affine()
    }
}

impl HashToCurve for BlsG2 {
    fn hash(message: &[u8], dst: &[u8]) -> Affine<Self> {
        let points = second::map_in_words(&field_elements(message, dst));
        clear_g2(&(points[0] + points[1])).to_affine()
    }

    fn map(element: &Fp2<Fp>) -> Affine<Self> {
        clear_g2(&second::map_in_words(&[*element])[0]).to_affine()
    }
}

/// Constants of the curve isogenous to that of the second group: A, B, and Z of the map.
const G2_CURVE: [Fp2<Fp>; 3] = {
    let small = Fp::from_u64;
    [
        Fp2 { c0: Fp::ZERO, c1: small(240) },
        Fp2 { c0: small(1012), c1: small(1012) },
        Fp2 { c0: small(2).negated(), c1: small(1).negated() },
    ]
};

/// `sgn0` (section 4.1).
fn is_odd_2(x: &Fp2<Fp>) -> bool {
    if x.c0.is_zero() { x.c1.is_odd() } else { x.c0.is_odd() }
}

/// `hash_to_field` (section 5.2) for the second group.
fn field_elements(message: &[u8], dst: &[u8]) -> [Fp2<Fp>; 2] {
    let mut bytes = [0; 4 * WIDE];
    expand_message(message, dst, &mut bytes);
    let (u, v) = bytes.split_at(2 * WIDE);
    [u, v].map(|bytes| {
        let (c0, c1) = bytes.split_at(WIDE);
        Fp2 { c0: Fp::from_be_bytes_reduced(c0), c1: Fp::from_be_bytes_reduced(c1) }
    })
}

/// Hashes messages to points of the second group under a tag: [`HashToCurve::hash`] of each.
///
/// # Panics
/// If this CPU does not support it.
pub fn hash_all(backend: Backend, messages: &[&[u8]], dst: &[u8]) -> Vec<Affine<BlsG2>> {
    assert!(backend.is_available(), "a backend that this CPU runs");
    on_backend!(
        backend;
        messages.iter().map(|message| BlsG2::hash(message, dst)).collect(),
        L => in_lanes::hash_all::<L>(messages, dst)
    )
}

/// The simplified map of Shallue, van de Woestijne and Ulas (section 6.6.2) to `y^2 = x^3 + a x + b`.
fn simplified_swu<F: Field>(u: &F, a: F, b: F, z: F, is_odd: impl Fn(&F) -> bool) -> (F, F) {
    let zu2 = z * u.square();
    let sum = zu2.square() + zu2;
    // x1 = -b / a (1 + 1 / sum), or b / (z a) if the sum is zero, over one denominator.
    let (numerator, denominator) =
        if sum.is_zero() { (b, z * a) } else { (-b * (sum + F::ONE), a * sum) };
    let x1 = numerator * denominator.inverse().expect("a, z and the sum are not zero");
    let cubic = |x: F| (x.square() + a) * x + b;
    let (x, y) = if let Some(y) = cubic(x1).sqrt() {
        (x1, y)
    } else {
        let x2 = zu2 * x1;
        (x2, cubic(x2).sqrt().expect("one of both values is a square"))
    };
    (x, if is_odd(u) == is_odd(&y) { y } else { -y })
}

/// Evaluates the isogeny at a point, with one denominator for both coordinates and no inversion.
fn evaluate<C: Curve>(isogeny: &Isogeny<C::Base>, x: C::Base, y: C::Base) -> Jacobian<C> {
    let at = |coefficients: &[C::Base]| {
        coefficients.iter().rev().fold(C::Base::ZERO, |sum, c| sum * x + *c)
    };
    let ([x_top, x_bottom], [y_top, y_bottom]) = (isogeny.x.map(at), isogeny.y.map(at));
    // Z = x_bottom y_bottom; zero exactly for points that map to infinity.
    let z = x_bottom * y_bottom;
    let z_y = z * y_bottom;
    Jacobian { x: x_top * z_y, y: y * y_top * z.square() * x_bottom, z }
}

/// Multiplies by `1 - x` (section 8.8.1); x is negative.
fn clear_g1(point: &Jacobian<BlsG1>) -> Jacobian<BlsG1> {
    point.multiply_slowly(&[X]) + *point
}

/// Method of Budroni and Pintore (appendix G.3): `(x^2 - x - 1) P + (x - 1) psi(P) + psi^2(2 P)`.
fn clear_g2(point: &Jacobian<BlsG2>) -> Jacobian<BlsG2> {
    let psi = BlsG2::endomorphism;
    // With |x|: (x^2 - x) P = |x| (|x| P + P), x psi(P) = -|x| psi(P).
    let multiple = point.multiply_slowly(&[X]);
    let left = (multiple + *point - psi(point)).multiply_slowly(&[X]);
    left - psi(point) - *point + psi(&psi(&point.double()))
}
