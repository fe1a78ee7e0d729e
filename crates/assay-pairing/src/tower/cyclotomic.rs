//! The cyclotomic subgroup of Fp12, where the results of pairings are: in the tower, or in lanes.

use super::{Fp12, TowerField, compressed};

/// What a final exponentiation does with elements of the subgroup.
pub trait Cyclotomic: Copy {
    /// One.
    fn one() -> Self;
    /// The product.
    #[must_use]
    fn times(&self, other: &Self) -> Self;
    /// The inverse.
    #[must_use]
    fn conjugate(&self) -> Self;
    /// The power p^`times`.
    #[must_use]
    fn frobenius(&self, times: usize) -> Self;
    /// The power 2^`count`.
    #[must_use]
    fn squared(&self, count: usize) -> Self;

    /// The power, by digits of the non-adjacent form: those of three times the exponent less those of the exponent.
    #[must_use]
    fn power_of(&self, exponent: u64) -> Self {
        let (triple, single) = (3 * u128::from(exponent), u128::from(exponent));
        let Some(top) = triple.checked_ilog2() else { return Self::one() };
        let inverse = self.conjugate();
        let (mut power, mut squarings) = (*self, 0);
        for index in (1..top).rev() {
            squarings += 1;
            let digit = (triple >> index & 1) as i8 - (single >> index & 1) as i8;
            if digit != 0 {
                let factor = if digit > 0 { self } else { &inverse };
                power = power.squared(squarings).times(factor);
                squarings = 0;
            }
        }
        power.squared(squarings)
    }
}

impl<F: TowerField> Cyclotomic for Fp12<F> {
    fn one() -> Self {
        Self::ONE
    }

    fn times(&self, other: &Self) -> Self {
        *self * *other
    }

    fn conjugate(&self) -> Self {
        self.conjugate()
    }

    fn frobenius(&self, times: usize) -> Self {
        self.frobenius(times)
    }

    fn squared(&self, count: usize) -> Self {
        let compressed =
            if count < compressed::WORTH_FROM { None } else { compressed::squared(self, count) };
        compressed.unwrap_or_else(|| (0..count).fold(*self, |power, _| power.cyclotomic_square()))
    }
}
