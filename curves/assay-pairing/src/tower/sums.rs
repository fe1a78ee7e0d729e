//! Products in Fp2 and with lines, and squares in Fp4: each coefficient of the result is a sum of
//! products in the field that is reduced once (Longa, 2022). `tower/tests.rs` has the oracle.
//!
//! Compared with `lazy.rs`: more multiplications of words, no additions of 2 N limbs and no sums of factors.

use super::{Fp2, Fp6, Fp12, TowerModulus, TowerRing as _};
use crate::field::Fe;

/// A factor, with its imaginary part times the square of u.
struct Factor<'a, M, const N: usize> {
    c0: &'a Fe<M, N>,
    c1: &'a Fe<M, N>,
    wrapped: Fe<M, N>,
}

impl<'a, M: TowerModulus<N>, const N: usize> Factor<'a, M, N> {
    #[inline(always)]
    fn new(x: &'a Fp2<Fe<M, N>>) -> Self {
        Self { c0: &x.c0, c1: &x.c1, wrapped: x.c1.times_u_square() }
    }

    #[inline(always)]
    fn times(&self, x: &Fp2<Fe<M, N>>) -> Fp2<Fe<M, N>> {
        Fp2 {
            c0: Fe::sum_of([self.c0, &self.wrapped], [&x.c0, &x.c1]),
            c1: Fe::sum_of([self.c0, self.c1], [&x.c1, &x.c0]),
        }
    }

    #[inline(always)]
    fn sum([a, b, c]: [&Self; 3], [x, y, z]: [&Fp2<Fe<M, N>>; 3]) -> Fp2<Fe<M, N>> {
        Fp2 {
            c0: Fe::sum_of(
                [a.c0, &a.wrapped, b.c0, &b.wrapped, c.c0, &c.wrapped],
                [&x.c0, &x.c1, &y.c0, &y.c1, &z.c0, &z.c1],
            ),
            c1: Fe::sum_of(
                [a.c0, a.c1, b.c0, b.c1, c.c0, c.c1],
                [&x.c1, &x.c0, &y.c1, &y.c0, &z.c1, &z.c0],
            ),
        }
    }
}

#[inline(never)]
pub(super) fn product_2<M: TowerModulus<N>, const N: usize>(
    a: &Fp2<Fe<M, N>>,
    b: &Fp2<Fe<M, N>>,
) -> Fp2<Fe<M, N>> {
    Factor::new(a).times(b)
}

/// `a^2 + b^2 xi` and `2 a b`: a square in Fp4.
#[inline(never)]
pub(super) fn square_4<M: TowerModulus<N>, const N: usize>(
    a: &Fp2<Fe<M, N>>,
    b: &Fp2<Fe<M, N>>,
) -> [Fp2<Fe<M, N>>; 2] {
    let (twice_a, xi_b) = (a.double(), b.times_xi());
    let b = Factor::new(b);
    let real = if M::NON_RESIDUE == 1 {
        // a0^2 - a1^2 as one product.
        let (sum, difference) = (a.c0 + a.c1, a.c0 - a.c1);
        Fe::sum_of([&sum, b.c0, &b.wrapped], [&difference, &xi_b.c0, &xi_b.c1])
    } else {
        let a = Factor::new(a);
        Fe::sum_of([a.c0, &a.wrapped, b.c0, &b.wrapped], [a.c0, a.c1, &xi_b.c0, &xi_b.c1])
    };
    let imaginary = Fe::sum_of([&twice_a.c0, b.c0, b.c1], [&a.c1, &xi_b.c1, &xi_b.c0]);
    [Fp2 { c0: real, c1: imaginary }, b.times(&twice_a)]
}

/// The product with `b0 + b3 w + b4 v w`.
pub(super) fn product_034<M: TowerModulus<N>, const N: usize>(
    x: &Fp12<Fe<M, N>>,
    b0: &Fp2<Fe<M, N>>,
    b3: &Fp2<Fe<M, N>>,
    b4: &Fp2<Fe<M, N>>,
) -> Fp12<Fe<M, N>> {
    let (xi_b3, xi_b4) = (b3.times_xi(), b4.times_xi());
    let [b0, b3, b4, xi_b3, xi_b4] = [b0, b3, b4, &xi_b3, &xi_b4].map(Factor::new);
    let Fp12 { c0: a, c1: b } = x;
    Fp12 {
        c0: Fp6 {
            c0: Factor::sum([&b0, &xi_b3, &xi_b4], [&a.c0, &b.c2, &b.c1]),
            c1: Factor::sum([&b0, &b3, &xi_b4], [&a.c1, &b.c0, &b.c2]),
            c2: Factor::sum([&b0, &b3, &b4], [&a.c2, &b.c1, &b.c0]),
        },
        c1: Fp6 {
            c0: Factor::sum([&b0, &b3, &xi_b4], [&b.c0, &a.c0, &a.c2]),
            c1: Factor::sum([&b0, &b3, &b4], [&b.c1, &a.c1, &a.c0]),
            c2: Factor::sum([&b0, &b3, &b4], [&b.c2, &a.c2, &a.c1]),
        },
    }
}
