//! `Fp2 = Fp[u] / (u^2 + NON_RESIDUE)`.

use super::{TowerField, TowerModulus, TowerRing, times_small};
use crate::field::{Fe, Field};

/// `c0 + c1 u`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Fp2<F> {
    pub c0: F,
    pub c1: F,
}

impl<F: TowerField> Fp2<F> {
    /// `xi`, whose sixth root is w.
    pub fn xi() -> Self {
        Self { c0: F::ONE, c1: F::ZERO }.times_xi()
    }

    /// The norm, `c0^2 + NON_RESIDUE c1^2`.
    pub fn norm(&self) -> F {
        F::norm(self)
    }
}

impl<M: TowerModulus<N>, const N: usize> Fp2<Fe<M, N>> {
    /// Published constants, the real part of each first.
    pub(crate) const fn all_from_hex<const K: usize>(digits: [[&str; 2]; K]) -> [Self; K] {
        let (mut all, mut i) = ([Self { c0: Fe::ZERO, c1: Fe::ZERO }; K], 0);
        while i < K {
            let [c0, c1] = Fe::all_from_hex(digits[i]);
            all[i] = Self { c0, c1 };
            i += 1;
        }
        all
    }
}

impl<F: TowerRing> Fp2<F> {
    /// `c0 - c1 u`, which is the p-th power.
    #[must_use]
    #[inline(always)]
    pub fn conjugate(&self) -> Self {
        Self { c0: self.c0, c1: -self.c1 }
    }

    /// The product with an element of the base field.
    #[must_use]
    #[inline(always)]
    pub fn scale(&self, factor: F) -> Self {
        F::scaled(self, &factor)
    }

    #[must_use]
    #[inline(always)]
    pub fn square(&self) -> Self {
        F::square(self)
    }

    #[must_use]
    #[inline(always)]
    pub fn double(&self) -> Self {
        *self + *self
    }

    #[must_use]
    #[inline(always)]
    pub fn tripled(&self) -> Self {
        Self { c0: self.c0.tripled(), c1: self.c1.tripled() }
    }

    /// The product with `xi`.
    #[must_use]
    #[inline(always)]
    pub fn times_xi(&self) -> Self {
        if F::XI == 0 {
            return Self { c0: self.c1.times_u_square(), c1: self.c0 };
        }
        let multiple = if F::XI == 1 { *self } else { times_small(*self, F::XI) };
        let c0 = if F::NON_RESIDUE == 1 {
            multiple.c0 - self.c1
        } else {
            multiple.c0 + self.c1.times_u_square()
        };
        Self { c0, c1: self.c0 + multiple.c1 }
    }

    #[must_use]
    #[inline(always)]
    pub fn halved(&self) -> Self {
        Self { c0: self.c0.halved(), c1: self.c1.halved() }
    }
}

impl<F: TowerField> Field for Fp2<F> {
    const ZERO: Self = Self { c0: F::ZERO, c1: F::ZERO };
    const ONE: Self = Self { c0: F::ONE, c1: F::ZERO };

    #[inline(always)]
    fn half(&self) -> Self {
        self.halved()
    }

    #[inline(always)]
    fn square(&self) -> Self {
        Self::square(self)
    }

    fn inverse(&self) -> Option<Self> {
        let inverse = self.norm().inverse()?;
        Some(Self { c0: self.c0 * inverse, c1: -self.c1 * inverse })
    }

    fn inverse_by_power(&self) -> Self {
        let inverse = self.norm().inverse_by_power();
        Self { c0: self.c0 * inverse, c1: -self.c1 * inverse }
    }

    fn select(mask: u64, yes: &Self, no: &Self) -> Self {
        Self { c0: F::select(mask, &yes.c0, &no.c0), c1: F::select(mask, &yes.c1, &no.c1) }
    }

    /// By the norm ([`TowerField::sqrt_by_norm`]).
    fn sqrt(&self) -> Option<Self> {
        if self.c1.is_zero() {
            // Either the real part is a square in Fp, or its quotient by the square of u is.
            if let Some(root) = self.c0.sqrt() {
                return Some(Self { c0: root, c1: F::ZERO });
            }
            let square = self.c0 * F::ONE.times_u_square().inverse()?;
            return square.sqrt().map(|root| Self { c0: F::ZERO, c1: root });
        }
        let root = F::sqrt_by_norm(self, &self.norm().sqrt()?)?;
        (root.square() == *self).then_some(root)
    }

    fn is_largest(&self) -> bool {
        if self.c1.is_zero() { self.c0.is_largest() } else { self.c1.is_largest() }
    }
}

// Written out without closures: those would be functions without the target features of lanes.
impl<F: TowerRing> core::ops::Add for Fp2<F> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self { c0: self.c0 + other.c0, c1: self.c1 + other.c1 }
    }
}

impl<F: TowerRing> core::ops::Sub for Fp2<F> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self { c0: self.c0 - other.c0, c1: self.c1 - other.c1 }
    }
}

impl<F: TowerRing> core::ops::Mul for Fp2<F> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        F::product(&self, &other)
    }
}

impl<F: TowerRing> core::ops::Neg for Fp2<F> {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Self { c0: -self.c0, c1: -self.c1 }
    }
}
