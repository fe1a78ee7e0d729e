//! Pairings of curves of Barreto, Lynn and Scott with embedding degree 12.

use core::marker::PhantomData;

use super::{Multiple, Pair, Pairing, easy_part, in_lanes, miller_loop_in_words};
use crate::backend::on_backend;
use crate::curve::bls12::{G1, G2, Parameters};
use crate::curve::{Affine, Jacobian};
use crate::field::Fe;
use crate::msm::Backend;
use crate::tower::Fp12;
use crate::tower::cyclotomic::Cyclotomic;

/// A curve, by its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bls12<F>(PhantomData<F>);

impl<F: Parameters> Bls12<F> {
    /// The power x.
    fn to_x<G: Cyclotomic>(y: &G) -> G {
        let power = y.power_of(F::X);
        if F::IS_NEGATIVE { power.conjugate() } else { power }
    }
}

impl<F: Parameters> Pairing for Bls12<F> {
    type Base = Fe<F::Base, 6>;
    type G1 = G1<F>;
    type G2 = G2<F>;
    /// Bits of the absolute value of x, few of which are set.
    const DIGITS: &'static [i8] = &{
        assert!(F::X >> 63 == 1);
        let (mut digits, mut i) = ([0; 63], 0);
        while i < 63 {
            digits[i] = (F::X >> (62 - i) & 1) as i8;
            i += 1;
        }
        digits
    };
    const IS_NEGATIVE: bool = F::IS_NEGATIVE;
    const LAST_POINTS: usize = 0;

    fn last_point(q: &Affine<Self::G2>, _: usize) -> Affine<Self::G2> {
        *q
    }

    /// `|x| Q` by the endomorphism, which acts as x.
    fn end(q: &Affine<Self::G2>) -> Affine<Self::G2> {
        let end = G2::endomorphism(&Jacobian::from(*q));
        // The endomorphism preserves Z = 1.
        let end = Affine::new(end.x, end.y);
        if F::IS_NEGATIVE { -end } else { end }
    }

    /// The power `3 (p^4 - p^2 + 1) / r = (x - 1)^2 (x + p) (x^2 + p^2 - 1) + 3`.
    fn hard_part<G: Cyclotomic>(x: &G) -> G {
        let a = Self::to_x(x).times(&x.conjugate());
        let a = Self::to_x(&a).times(&a.conjugate());
        let b = Self::to_x(&a).times(&a.frobenius(1));
        let c = Self::to_x(&Self::to_x(&b)).times(&b.frobenius(2)).times(&b.conjugate());
        c.times(x).times(&x.squared(1))
    }

    fn miller_loop_to_ends(
        backend: Backend,
        pairs: &[Pair<Self>],
    ) -> (Fp12<Self::Base>, Vec<Multiple<Self>>) {
        on_backend!(
            backend;
            miller_loop_in_words::<Self>(pairs),
            L => in_lanes::miller_loop::<Self, L, F::Base, 6, 8>(pairs)
        )
    }

    fn final_exponentiation(backend: Backend, x: &Fp12<Self::Base>) -> Fp12<Self::Base> {
        let x = easy_part(x);
        on_backend!(
            backend;
            Self::hard_part(&x),
            L => in_lanes::hard_part::<Self, L, F::Base, 6, 8>(&x)
        )
    }
}
