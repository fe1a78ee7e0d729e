//! Splitting of numbers in two by an endomorphism `(x, y) -> (beta x, y)` with eigenvalue lambda, a
//! cube root of one modulo the order (Gallant, Lambert, Vanstone, "Faster point multiplication on
//! elliptic curves with efficient endomorphisms", 2001).

use super::scalar::{Short, low};
use crate::limbs;

/// Pairs (a, b) with `a + b lambda = 0` modulo the order. With (L, -A) among them
/// `lambda (L - A lambda) = A + (L + A) lambda` is zero too, so both pairs are a basis, of
/// determinant `-(L^2 + L A + A^2)`, which is minus the order.
#[derive(Clone, Copy, Debug)]
pub struct Lattice {
    long: u128,
    /// The magnitude of A.
    short: u128,
    is_short_negative: bool,
    /// `L + A`.
    sum: u128,
    short_per_order: [u64; 4],
    sum_per_order: [u64; 4],
}

impl Lattice {
    /// From L, the magnitude of A and its sign.
    pub(super) const fn new(
        order: &[u64; 4],
        long: u128,
        short: u128,
        is_short_negative: bool,
    ) -> Self {
        let sum = if is_short_negative { long - short } else { long + short };
        // 1.5 times both together are below 2^128, see `split`.
        assert!(order[3] >> 63 == 0 && long / 2 + short / 2 < u128::MAX / 3);
        let (square, rest) = (product(&wide(long), &wide(long)), product(&wide(short), &wide(sum)));
        let (square, rest) = (lower(&square), lower(&rest));
        let (norm, _) =
            if is_short_negative { limbs::sub(&square, &rest) } else { limbs::add(&square, &rest) };
        assert!(!limbs::less(&norm, order) && !limbs::less(order, &norm));
        Self {
            long,
            short,
            is_short_negative,
            sum,
            short_per_order: per_order(&wide(short), order),
            sum_per_order: per_order(&wide(sum), order),
        }
    }

    /// `k = k0 + k1 lambda` modulo the order, for k below the order. The quotients are less than 1.5 below the exact ones (1 by
    /// their own rounding and k / 2^256 by that of the constants), so both numbers are less than 1.5 times L and the magnitude of
    /// A together, which is below 2^128.
    pub(super) fn split(&self, k: &[u64; 4]) -> [Short; 2] {
        let quotient = |per_order: &[u64; 4]| {
            let [.., a, b, c, d] = product(k, per_order);
            [a, b, c, d]
        };
        let (first, second) = (quotient(&self.short_per_order), quotient(&self.sum_per_order));
        // Modulo 2^256, with small signed results.
        let times = |a: &[u64; 4], b: u128| lower(&product(a, &wide(b)));
        let minus = |a: &[u64; 4], b: &[u64; 4]| limbs::sub(a, b).0;
        let k0 = minus(&minus(k, &times(&first, self.short)), &times(&second, self.long));
        let k1 = minus(&times(&second, self.short), &times(&first, self.sum));
        let [k0, mut k1] = [k0, k1].map(|number| {
            let is_negative = number[3] >> 63 == 1;
            let magnitude = if is_negative { minus(&[0; 4], &number) } else { number };
            Short { magnitude: low(&magnitude), is_negative }
        });
        k1.is_negative ^= self.is_short_negative;
        [k0, k1]
    }
}

/// `floor(2^256 number / r)` for a number below the order r.
pub(super) const fn per_order(number: &[u64; 4], order: &[u64; 4]) -> [u64; 4] {
    let (mut rest, mut quotient, mut i) = (*number, [0; 4], 0);
    while i < 256 {
        let (twice, _) = limbs::add(&rest, &rest);
        let (difference, is_below) = limbs::sub(&twice, order);
        rest = if is_below { twice } else { difference };
        quotient = limbs::add(&quotient, &quotient).0;
        quotient[0] |= !is_below as u64;
        i += 1;
    }
    quotient
}

pub(super) const fn wide(number: u128) -> [u64; 4] {
    [number as u64, (number >> 64) as u64, 0, 0]
}

pub(super) const fn lower(product: &[u64; 8]) -> [u64; 4] {
    let [a, b, c, d, ..] = *product;
    [a, b, c, d]
}

/// All eight limbs of the product.
pub(super) const fn product(a: &[u64; 4], b: &[u64; 4]) -> [u64; 8] {
    let (mut product, mut i) = ([0; 8], 0);
    while i < 4 {
        let (mut carry, mut j) = (0, 0);
        while j < 4 {
            (product[i + j], carry) = limbs::multiply_add(product[i + j], a[i], b[j], carry);
            j += 1;
        }
        product[i + 4] = carry;
        i += 1;
    }
    product
}
