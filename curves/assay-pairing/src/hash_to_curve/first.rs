//! The map to the first group of BLS12-381, with one power per element.
//!
//! For `p = 3 mod 4`, `r = g^((p+1)/4)` has `r^2 = g` if g is a square, else `r^2 = -g`. In the
//! latter case the other candidate of the map, `(Z u^2)^3 g`, is a square with the root
//! `sqrt(-Z^3) u^3 r`. The result is squared and compared.

use super::isogeny::{G1, G1_CURVE};
use super::{evaluate, simplified_swu};
use crate::bls12_381::Fp;
use crate::curve::{BlsG1, Jacobian};
use crate::field::Field as _;
use crate::limbs;

const Z: Fp = Fp::from_u64(11);

/// `(p + 1) / 4`.
const ROOT: [u64; 6] = limbs::plus_small(&limbs::half(&limbs::half(&Fp::MODULUS)), 1);

/// Root of `-Z^3`.
const ROOT_OF_MINUS_Z3: Fp = Z.multiply(&Z).multiply(&Z).negated().const_power(&ROOT);

/// Maps elements to points, [`map_slowly`] of each, with one common inversion.
pub(super) fn map<const COUNT: usize>(elements: &[Fp; COUNT]) -> [Jacobian<BlsG1>; COUNT] {
    let [a, b] = G1_CURVE;
    let parts = elements.map(|u| {
        let zu2 = Z * u.square();
        let sum = zu2.square() + zu2;
        if sum.is_zero() { (zu2, b, Z * a) } else { (zu2, -b * (sum + Fp::ONE), a * sum) }
    });
    let mut inverses = parts.map(|(_, _, denominator)| denominator);
    Fp::invert_all(&mut inverses);
    core::array::from_fn(|k| {
        let (u, (zu2, numerator, _)) = (&elements[k], parts[k]);
        let x = numerator * inverses[k];
        let g = (x.square() + a) * x + b;
        let root = g.power(&ROOT);
        let (x, y, g) = if root.square() == g {
            (x, root, g)
        } else {
            (zu2 * x, ROOT_OF_MINUS_Z3 * u.square() * *u * root, zu2.square() * zu2 * g)
        };
        if y.square() != g {
            return map_slowly(u);
        }
        evaluate(&G1, x, if u.is_odd() == y.is_odd() { y } else { -y })
    })
}

/// Maps one element, in the steps of the standard: the oracle.
pub(super) fn map_slowly(u: &Fp) -> Jacobian<BlsG1> {
    let [a, b] = G1_CURVE;
    let (x, y) = simplified_swu(u, a, b, Z, Fp::is_odd);
    evaluate(&G1, x, y)
}
