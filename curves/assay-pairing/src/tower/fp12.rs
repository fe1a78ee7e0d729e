//! `Fp12 = Fp6[w] / (w^2 - v)`, the target field of pairings.

use super::{Fp2, Fp6, TowerField, operators};
use crate::limbs;

/// `c0 + c1 w`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fp12<F> {
    pub c0: Fp6<F>,
    pub c1: Fp6<F>,
}

impl<F: TowerField> Fp12<F> {
    pub const ZERO: Self = Self { c0: Fp6::ZERO, c1: Fp6::ZERO };
    pub const ONE: Self = Self { c0: Fp6::ONE, c1: Fp6::ZERO };

    #[inline(always)]
    fn zip(&self, other: &Self, of: impl Fn(Fp6<F>, Fp6<F>) -> Fp6<F>) -> Self {
        Self { c0: of(self.c0, other.c0), c1: of(self.c1, other.c1) }
    }

    #[inline(always)]
    fn map(&self, of: impl Fn(Fp6<F>) -> Fp6<F>) -> Self {
        Self { c0: of(self.c0), c1: of(self.c1) }
    }

    fn product(&self, other: &Self) -> Self {
        F::product_12(self, other)
    }

    /// The product with a line: `b0 + b1 v + b4 v w` for a twist of type M, `b0 + b1 w + b4 v w` for one of type D.
    #[must_use]
    pub fn line_product(&self, b0: &Fp2<F>, b1: &Fp2<F>, b4: &Fp2<F>) -> Self {
        F::line_product(self, b0, b1, b4)
    }

    #[must_use]
    pub fn square(&self) -> Self {
        let product = self.c0 * self.c1;
        let c0 = (self.c0 + self.c1) * (self.c0 + self.c1.times_v()) - product - product.times_v();
        Self { c0, c1: product + product }
    }

    pub fn inverse(&self) -> Option<Self> {
        let inverse = (self.c0.square() - self.c1.square().times_v()).inverse()?;
        Some(Self { c0: self.c0 * inverse, c1: -(self.c1 * inverse) })
    }

    /// `c0 - c1 w`, which is the power p^6, and the inverse of elements of the cyclotomic subgroup.
    #[must_use]
    pub fn conjugate(&self) -> Self {
        Self { c0: self.c0, c1: -self.c1 }
    }

    /// The power p^`times`.
    #[must_use]
    pub fn frobenius(&self, times: usize) -> Self {
        (0..times).fold(*self, |x, _| {
            let [a, b] = [(x.c0, 0), (x.c1, 1)].map(|(half, first)| {
                let part = |c: Fp2<F>, k: usize| c.conjugate() * F::FROBENIUS[k];
                Fp6 {
                    c0: part(half.c0, first),
                    c1: part(half.c1, first + 2),
                    c2: part(half.c2, first + 4),
                }
            });
            Self { c0: a, c1: b }
        })
    }

    /// The power; limbs of the exponent are least significant first.
    #[must_use]
    pub fn power(&self, exponent: &[u64]) -> Self {
        (0..limbs::bits(exponent)).rev().fold(Self::ONE, |power, index| {
            let square = power.square();
            if limbs::bit(exponent, index) { square * *self } else { square }
        })
    }
}

operators!(Fp12);
