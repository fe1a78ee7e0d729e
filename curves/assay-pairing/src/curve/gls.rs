//! Splitting of numbers in four by the Frobenius map on the twist of a curve of Barreto and
//! Naehrig, which acts as `lambda = 6 x^2` (Galbraith, Scott, "Exponentiation in pairing-friendly
//! groups using homomorphisms", 2008). Signed numbers are modulo 2^256.

use super::glv::{lower, per_order, product, wide};
use super::scalar::{Short, low};
use crate::limbs;

/// Bits of the numbers that [`Rows::split`] returns, for `|x| < 2^63`.
pub(super) const PART_BITS: usize = 67;

/// Rows `(a, b, c, d)` of small numbers with `a + b lambda + c lambda^2 + d lambda^3 = 0` modulo the order r, of
/// determinant `-3 r`, and the first column of their inverse, which maps a number (k, 0, 0, 0).
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    rows: [[[u64; 4]; 4]; 4],
    /// Magnitudes of the column times 2^256, rounded down, with true for negative ones.
    inverse: [([u64; 4], bool); 4],
}

impl Rows {
    /// From the order and the parameter's absolute value and sign.
    pub(super) const fn new(order: &[u64; 4], x: u64, is_negative: bool) -> Self {
        assert!(x >> 63 == 0);
        let x = if is_negative { limbs::sub(&[0; 4], &[x, 0, 0, 0]).0 } else { [x, 0, 0, 0] };
        Self {
            rows: [
                row(&x, [[1, 1], [0, 1], [0, 1], [0, -2]]),
                row(&x, [[1, 2], [0, -1], [-1, -1], [0, -1]]),
                row(&x, [[0, 2], [1, 2], [1, 2], [1, 2]]),
                row(&x, [[-1, 1], [2, 4], [1, -2], [-1, 1]]),
            ],
            inverse: [
                by_order(at(&x, [1, 3, 2, 0]), order),
                by_order(at(&x, [0, 1, 8, 12]), order),
                by_order(at(&x, [0, 1, 4, 6]), order),
                by_order(at(&x, [0, -1, -2, 0]), order),
            ],
        }
    }

    /// `k = k0 + k1 lambda + k2 lambda^2 + k3 lambda^3` modulo the order, for k below the order. Each quotient is less than 2 below
    /// the exact one in magnitude (1 by its own rounding and k / 2^256 by that of the column), so a part is less than twice the
    /// sum of the magnitudes of a column of the rows: of the second, `8 |x| + 3`, which is the largest.
    pub(super) fn split(&self, k: &[u64; 4]) -> [Short; 4] {
        let mut parts = [*k, [0; 4], [0; 4], [0; 4]];
        for (row, (by_order, is_negative)) in self.rows.iter().zip(&self.inverse) {
            let [.., a, b, c, d] = product(k, by_order);
            for (part, entry) in parts.iter_mut().zip(row) {
                let multiple = lower(&product(&[a, b, c, d], entry));
                let take = if *is_negative { limbs::add } else { limbs::sub };
                *part = take(part, &multiple).0;
            }
        }
        parts.map(|part| {
            let (magnitude, is_negative) = magnitude(part);
            Short { magnitude: low(&magnitude), is_negative }
        })
    }
}

/// Evaluates the polynomial with these coefficients, constant one first.
const fn at(x: &[u64; 4], coefficients: [i8; 4]) -> [u64; 4] {
    let (mut value, mut i) = ([0; 4], 4);
    while i > 0 {
        i -= 1;
        let small = wide(coefficients[i].unsigned_abs() as u128);
        value = lower(&product(&value, x));
        let sum = if coefficients[i] < 0 {
            limbs::sub(&value, &small)
        } else {
            limbs::add(&value, &small)
        };
        value = sum.0;
    }
    value
}

/// Four polynomials of degree one.
const fn row(x: &[u64; 4], [a, b, c, d]: [[i8; 2]; 4]) -> [[u64; 4]; 4] {
    [
        at(x, [a[0], a[1], 0, 0]),
        at(x, [b[0], b[1], 0, 0]),
        at(x, [c[0], c[1], 0, 0]),
        at(x, [d[0], d[1], 0, 0]),
    ]
}

/// Magnitude of a number, and true if it is negative.
const fn magnitude(number: [u64; 4]) -> ([u64; 4], bool) {
    let is_negative = number[3] >> 63 == 1;
    (if is_negative { limbs::sub(&[0; 4], &number).0 } else { number }, is_negative)
}

/// Magnitude of a number divided by the order, times 2^256, and true if it is negative.
const fn by_order(number: [u64; 4], order: &[u64; 4]) -> ([u64; 4], bool) {
    let (magnitude, is_negative) = magnitude(number);
    (per_order(&magnitude, order), is_negative)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::{Fe, Field as _, Modulus};
    use crate::testing::Rng;
    use crate::{bn254, bn254_nogami};

    fn check<M: Modulus<4>>(x: u64, is_negative: bool) {
        let rows = Rows::new(&M::MODULUS, x, is_negative);
        let x = Fe::<M, 4>::from_u64(x);
        let lambda = Fe::from_u64(6) * x.square();
        let mut rng = Rng::new(9);
        let mut numbers: Vec<[u64; 4]> = (0..64)
            .map(|bit| limbs::minus_small(&M::MODULUS, 1 + bit))
            .chain((0..64).map(|small| [small, 0, 0, 0]))
            .collect();
        numbers.extend((0..250).map(|bit| {
            let mut power = [0; 4];
            power[bit / 64] = 1 << (bit % 64);
            power
        }));
        numbers.extend((0..20_000).map(|_| {
            let limbs: [u64; 4] = core::array::from_fn(|_| rng.word());
            Fe::<M, 4>::from_be_bytes_reduced(&limbs.map(u64::to_be_bytes).concat()).to_limbs()
        }));
        for number in numbers {
            let parts = rows.split(&number);
            let sum = parts.iter().rev().fold(Fe::<M, 4>::ZERO, |sum, part| {
                assert!(part.magnitude >> PART_BITS == 0, "{number:x?}: {part:x?}");
                let magnitude = [part.magnitude as u64, (part.magnitude >> 64) as u64, 0, 0];
                let part_value = Fe::from_limbs(magnitude).expect("below the order");
                sum * lambda + if part.is_negative { -part_value } else { part_value }
            });
            assert_eq!(sum.to_limbs(), number);
        }
    }

    #[test]
    fn parts_make_the_number() {
        check::<bn254::FrModulus>(bn254::X, false);
        check::<bn254_nogami::FrModulus>(bn254_nogami::X, true);
    }
}
