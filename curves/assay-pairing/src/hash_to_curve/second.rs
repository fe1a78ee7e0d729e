//! The map to the second group of BLS12-381, with two powers in Fp per element.
//!
//! Roots in Fp2. For `p = 3 mod 4` and n the norm of g, `s = n^((p+1)/4)` has `s^2 = n` if g is a
//! square, else `s^2 = -n`. In the latter case the other candidate of the map, `(Z u^2)^3 g`, is a
//! square, and the root of its norm is `sqrt(-125) N(u)^3 s`, for N(Z) = 5 (its square is
//! `-125 N(u)^6 (-n)`). The rest is [`root_by_half`]. The result is squared and compared.

use super::isogeny::G2;
use super::{G2_CURVE, evaluate, is_odd_2, simplified_swu};
use crate::bls12_381::Fp;
use crate::curve::{BlsG2, Jacobian};
use crate::field::Field as _;
use crate::limbs;
use crate::tower::{Fp2, root_by_half};

/// `(p + 1) / 4`.
const ROOT: [u64; 6] = limbs::plus_small(&limbs::half(&limbs::half(&Fp::MODULUS)), 1);

const ROOT_OF_MINUS_125: Fp = Fp::from_u64(125).negated().const_power(&ROOT);

/// Intermediate values of the map for one element: x and g(x) of both candidates.
#[derive(Clone, Copy)]
struct Candidates {
    x: [Fp2<Fp>; 2],
    g: [Fp2<Fp>; 2],
}

/// Maps elements to points, [`map_slowly`] of each, with a function for many powers.
pub(super) fn map(
    elements: &[Fp2<Fp>],
    power: impl Fn(&[Fp], &'static [u64; 6]) -> Vec<Fp>,
) -> Vec<Jacobian<BlsG2>> {
    let candidates = candidates(elements);
    let numbers: Vec<_> = candidates.iter().map(|candidate| candidate.g[0].norm()).collect();
    let roots = power(&numbers, &ROOT);
    let mut chosen = Vec::with_capacity(elements.len());
    let mut halves = Vec::with_capacity(elements.len());
    for (k, (candidate, u)) in candidates.iter().zip(elements).enumerate() {
        let mut root = roots[k];
        let is_second = root.square() != numbers[k];
        if is_second {
            let norm = u.norm();
            root = root * ROOT_OF_MINUS_125 * norm.square() * norm;
        }
        let which = usize::from(is_second);
        chosen.push((candidate.x[which], candidate.g[which]));
        halves.push((candidate.g[which].c0 + root).halved());
    }
    let inverses = power(&halves, const { &Fp::ROOT_INVERSE });
    let point = |(k, u): (usize, &Fp2<Fp>)| {
        let ((x, g), t, r) = (chosen[k], halves[k], inverses[k]);
        let y = root_by_half(&g.c1, &t, &r);
        if y.square() != g {
            return map_slowly(u);
        }
        let y = if is_odd_2(u) == is_odd_2(&y) { y } else { -y };
        evaluate(&G2, x, y)
    };
    elements.iter().enumerate().map(point).collect()
}

/// As in `simplified_swu`, with one common inversion.
fn candidates(elements: &[Fp2<Fp>]) -> Vec<Candidates> {
    let [a, b, z] = G2_CURVE;
    let parts: Vec<_> = elements
        .iter()
        .map(|u| {
            let zu2 = z * u.square();
            let sum = zu2.square() + zu2;
            if sum.is_zero() { (zu2, b, z * a) } else { (zu2, -b * (sum + Fp2::ONE), a * sum) }
        })
        .collect();
    let mut inverses: Vec<_> = parts.iter().map(|(_, _, denominator)| *denominator).collect();
    Fp2::invert_all(&mut inverses);
    let candidate = |((zu2, numerator, _), inverse): (&(Fp2<Fp>, Fp2<Fp>, _), &Fp2<Fp>)| {
        let x = *numerator * *inverse;
        let g = (x.square() + a) * x + b;
        Candidates { x: [x, *zu2 * x], g: [g, zu2.square() * *zu2 * g] }
    };
    parts.iter().zip(&inverses).map(candidate).collect()
}

/// Maps one element, in the steps of the standard: the oracle.
pub(super) fn map_slowly(u: &Fp2<Fp>) -> Jacobian<BlsG2> {
    let [a, b, z] = G2_CURVE;
    let (x, y) = simplified_swu(u, a, b, z, is_odd_2);
    evaluate(&G2, x, y)
}

pub(super) fn map_in_words(elements: &[Fp2<Fp>]) -> Vec<Jacobian<BlsG2>> {
    map(elements, |x, exponent| x.iter().map(|x| x.power(exponent)).collect())
}
