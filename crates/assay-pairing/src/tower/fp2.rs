//! `Fp2 = Fp[u] / (u^2 + 1)`.

use super::{TowerField, operators};
use crate::field::Field;

/// `c0 + c1 u`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fp2<F> {
    /// The real part.
    pub c0: F,
    /// The factor of u.
    pub c1: F,
}

impl<F: TowerField> Fp2<F> {
    /// `xi`, of which the tower takes a sixth root.
    pub fn xi() -> Self {
        Self { c0: F::ONE, c1: F::ZERO }.times_xi()
    }

    #[inline(always)]
    fn zip(&self, other: &Self, of: impl Fn(F, F) -> F) -> Self {
        Self { c0: of(self.c0, other.c0), c1: of(self.c1, other.c1) }
    }

    #[inline(always)]
    fn map(&self, of: impl Fn(F) -> F) -> Self {
        Self { c0: of(self.c0), c1: of(self.c1) }
    }

    #[inline]
    fn product(&self, other: &Self) -> Self {
        Self {
            c0: F::two_products([self.c0, self.c1], [other.c0, -other.c1]),
            c1: F::crossed_products([self.c0, self.c1], [other.c0, other.c1]),
        }
    }

    /// `c0 - c1 u`, which is the p-th power.
    #[must_use]
    #[inline]
    pub fn conjugate(&self) -> Self {
        Self { c0: self.c0, c1: -self.c1 }
    }

    /// The product with an element of the base field.
    #[must_use]
    #[inline]
    pub fn scale(&self, factor: F) -> Self {
        self.map(|c| c * factor)
    }

    /// The product with `xi`.
    #[must_use]
    #[inline]
    pub fn times_xi(&self) -> Self {
        let times = |x: F| match F::XI {
            1 => x,
            9 => x.double().double().double() + x,
            _ => (0..F::XI).fold(F::ZERO, |sum, _| sum + x),
        };
        Self { c0: times(self.c0) - self.c1, c1: self.c0 + times(self.c1) }
    }

    /// Half of the element.
    #[must_use]
    #[inline]
    pub fn halved(&self) -> Self {
        self.map(|c| c.halved())
    }

    /// The norm, `c0^2 + c1^2`.
    pub fn norm(&self) -> F {
        F::two_products([self.c0, self.c1], [self.c0, self.c1])
    }
}

impl<F: TowerField> Field for Fp2<F> {
    const ZERO: Self = Self { c0: F::ZERO, c1: F::ZERO };
    const ONE: Self = Self { c0: F::ONE, c1: F::ZERO };

    #[inline]
    fn square(&self) -> Self {
        let c0 = (self.c0 + self.c1) * (self.c0 - self.c1);
        Self { c0, c1: self.c0.double() * self.c1 }
    }

    fn inverse(&self) -> Option<Self> {
        let inverse = self.norm().inverse()?;
        Some(Self { c0: self.c0 * inverse, c1: -self.c1 * inverse })
    }

    /// By the norm: with `n^2 = c0^2 + c1^2`, one of `(c0 + n) / 2` and `(c0 - n) / 2` is the square of the
    /// root's real part.
    fn sqrt(&self) -> Option<Self> {
        if self.c1.is_zero() {
            // Either the real part or its negation is a square, for p = 3 modulo 4.
            return match self.c0.sqrt() {
                Some(root) => Some(Self { c0: root, c1: F::ZERO }),
                None => (-self.c0).sqrt().map(|root| Self { c0: F::ZERO, c1: root }),
            };
        }
        let norm_root = self.norm().sqrt()?;
        let c0 = match (self.c0 + norm_root).halved().sqrt() {
            Some(root) => root,
            None => (self.c0 - norm_root).halved().sqrt()?,
        };
        let root = Self { c0, c1: self.c1 * c0.double().inverse()? };
        (root.square() == *self).then_some(root)
    }

    fn is_largest(&self) -> bool {
        if self.c1.is_zero() { self.c0.is_largest() } else { self.c1.is_largest() }
    }
}

operators!(Fp2);
