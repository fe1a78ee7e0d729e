//! `Fp6 = Fp2[v] / (v^3 - xi)`.

use super::{Fp2, TowerField, operators};
use crate::field::Field;

/// `c0 + c1 v + c2 v^2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fp6<F> {
    pub c0: Fp2<F>,
    pub c1: Fp2<F>,
    pub c2: Fp2<F>,
}

impl<F: TowerField> Fp6<F> {
    pub const ZERO: Self = Self { c0: Fp2::ZERO, c1: Fp2::ZERO, c2: Fp2::ZERO };
    pub const ONE: Self = Self { c0: Fp2::ONE, c1: Fp2::ZERO, c2: Fp2::ZERO };

    #[inline(always)]
    fn zip(&self, other: &Self, of: impl Fn(Fp2<F>, Fp2<F>) -> Fp2<F>) -> Self {
        Self { c0: of(self.c0, other.c0), c1: of(self.c1, other.c1), c2: of(self.c2, other.c2) }
    }

    #[inline(always)]
    fn map(&self, of: impl Fn(Fp2<F>) -> Fp2<F>) -> Self {
        Self { c0: of(self.c0), c1: of(self.c1), c2: of(self.c2) }
    }

    #[inline]
    fn product(&self, other: &Self) -> Self {
        F::product_6(self, other)
    }

    /// The product with an element of Fp2.
    #[must_use]
    #[inline]
    pub fn scale(&self, factor: Fp2<F>) -> Self {
        self.map(|c| c * factor)
    }

    #[must_use]
    #[inline]
    pub fn times_v(&self) -> Self {
        Self { c0: self.c2.times_xi(), c1: self.c0, c2: self.c1 }
    }

    #[must_use]
    #[inline]
    pub fn square(&self) -> Self {
        // Chung and Hasan, SQR2.
        let s0 = self.c0.square();
        let s1 = (self.c0 * self.c1).double();
        let s2 = (self.c0 - self.c1 + self.c2).square();
        let s3 = (self.c1 * self.c2).double();
        let s4 = self.c2.square();
        Self { c0: s0 + s3.times_xi(), c1: s1 + s4.times_xi(), c2: s1 + s2 + s3 - s0 - s4 }
    }

    pub fn inverse(&self) -> Option<Self> {
        let Self { c0, c1, c2 } = *self;
        let adjoint = Self {
            c0: c0.square() - (c1 * c2).times_xi(),
            c1: c2.square().times_xi() - c0 * c1,
            c2: c1.square() - c0 * c2,
        };
        let norm = c0 * adjoint.c0 + (c2 * adjoint.c1 + c1 * adjoint.c2).times_xi();
        Some(adjoint.scale(norm.inverse()?))
    }
}

operators!(Fp6);
