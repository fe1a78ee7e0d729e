//! Pairings of curves of Barreto and Naehrig.

use core::marker::PhantomData;

use super::{Multiple, Pair, Pairing, easy_part, in_lanes, miller_loop_in_words};
use crate::backend::on_backend;
use crate::curve::bn::{G2, Parameters};
use crate::curve::prime_order::PrimeOrder;
use crate::curve::{Affine, Jacobian};
use crate::field::Fe;
use crate::msm::Backend;
use crate::tower::Fp12;
use crate::tower::cyclotomic::Cyclotomic;

/// A curve, by its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bn<F>(PhantomData<F>);

/// Number of digits of a 65-bit number in non-adjacent form, after the highest one.
const DIGITS: usize = 66;

impl<F: Parameters> Bn<F> {
    /// The absolute value of `6 x + 2`.
    const LOOP: u128 = if F::IS_NEGATIVE { 6 * F::X as u128 - 2 } else { 6 * F::X as u128 + 2 };

    /// The digits of the loop parameter in non-adjacent form are differences of the bits of three
    /// times it and of itself. From the top, with zeros before the highest one.
    const ALL_DIGITS: [i8; DIGITS] = {
        let (mut digits, mut i) = ([0; DIGITS], 0);
        while i < DIGITS {
            let place = DIGITS - i;
            digits[i] = ((3 * Self::LOOP) >> place & 1) as i8 - (Self::LOOP >> place & 1) as i8;
            i += 1;
        }
        digits
    };

    /// The power -x.
    fn to_minus_x<G: Cyclotomic>(y: &G) -> G {
        let power = y.power_of(F::X);
        if F::IS_NEGATIVE { power } else { power.conjugate() }
    }
}

impl<F: Parameters> Pairing for Bn<F> {
    type Base = Fe<F::Base, 4>;
    type G1 = PrimeOrder<F>;
    type G2 = G2<F>;
    const DIGITS: &'static [i8] = {
        // The loop starts at the highest digit, at the place of the highest bit of three times the parameter.
        let count = (3 * Self::LOOP).ilog2() as usize - 1;
        const { &Self::ALL_DIGITS }.split_at(DIGITS - count).1
    };
    const IS_NEGATIVE: bool = F::IS_NEGATIVE;
    const LAST_POINTS: usize = 2;

    /// `psi(Q)`, then `-psi^2(Q)`; for negative x their negations, since everything is conjugated
    /// afterwards, which negates points of the second group.
    fn last_point(q: &Affine<Self::G2>, index: usize) -> Affine<Self::G2> {
        let first = G2::endomorphism(&Jacobian::from(*q));
        let point = if index == 0 { first } else { -G2::endomorphism(&first) };
        // The endomorphism preserves Z = 1.
        let point = Affine::new(point.x, point.y);
        if F::IS_NEGATIVE { -point } else { point }
    }

    /// `-psi^3(Q)`, since `6 x + 2 + p - p^2 + p^3` is zero modulo the order; its negation for negative x.
    fn end(q: &Affine<Self::G2>) -> Affine<Self::G2> {
        let psi = G2::endomorphism;
        let end = psi(&psi(&psi(&Jacobian::from(*q))));
        let end = Affine::new(end.x, end.y);
        if F::IS_NEGATIVE { end } else { -end }
    }

    /// The power `2 x (6 x^2 + 3 x + 1) (p^4 - p^2 + 1) / r`.
    fn hard_part<G: Cyclotomic>(x: &G) -> G {
        let a = Self::to_minus_x(x).squared(1);
        let b = a.squared(1).times(&a);
        let c = Self::to_minus_x(&b);
        let d = Self::to_minus_x(&c.squared(1)).conjugate();
        // The powers 6 x + 6 x^2 + 12 x^3 and 4 x + 6 x^2 + 12 x^3, with the sign of -x so far.
        let e = d.times(&c).times(&b.conjugate());
        let g = e.times(&a);
        let h = e.times(&c).times(x);
        let i = g.frobenius(1).times(&h);
        let j = e.frobenius(2).times(&i);
        x.conjugate().times(&g).frobenius(3).times(&j)
    }

    fn miller_loop_to_ends(
        backend: Backend,
        pairs: &[Pair<Self>],
    ) -> (Fp12<Self::Base>, Vec<Multiple<Self>>) {
        on_backend!(
            backend;
            miller_loop_in_words::<Self>(pairs),
            L => in_lanes::miller_loop::<Self, L, F::Base, 4, 5>(pairs)
        )
    }

    fn final_exponentiation(backend: Backend, x: &Fp12<Self::Base>) -> Fp12<Self::Base> {
        let x = easy_part(x);
        on_backend!(
            backend;
            Self::hard_part(&x),
            L => in_lanes::hard_part::<Self, L, F::Base, 4, 5>(&x)
        )
    }
}
