//! The cyclotomic subgroup of Fp12, which contains the results of pairings: in the tower, or in lanes.

use super::{Fp12, TowerField, compressed};
use crate::limbs;

/// Operations of the final exponentiation on elements of the subgroup.
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

    /// The power, by digits in non-adjacent form of the width with the fewest products.
    #[must_use]
    fn power_of(&self, exponent: u64) -> Self {
        let forms = (2..=5).map(|width| limbs::non_adjacent::<65>(&[exponent], width));
        let digits = forms.min_by_key(|digits| products(digits)).expect("some widths");
        let mut odd = vec![*self];
        if largest(&digits) > 1 {
            let square = self.squared(1);
            for k in 0..largest(&digits) / 2 {
                odd.push(odd[k].times(&square));
            }
        }
        let (mut power, mut squarings) = (None::<Self>, 0);
        for digit in digits.iter().rev() {
            squarings += 1;
            if *digit != 0 {
                let factor = odd[digit.unsigned_abs() as usize / 2];
                let factor = if *digit > 0 { factor } else { factor.conjugate() };
                power = Some(power.map_or(factor, |power| power.squared(squarings).times(&factor)));
                squarings = 0;
            }
        }
        power.map_or_else(Self::one, |power| power.squared(squarings))
    }
}

/// Magnitude of the largest digit.
fn largest(digits: &[i8]) -> usize {
    digits.iter().map(|digit| digit.unsigned_abs()).max().unwrap_or(0).into()
}

/// Number of products of a power by these digits: for digits, and for odd multiples up to the largest.
fn products(digits: &[i8]) -> usize {
    let multiples = if largest(digits) > 1 { largest(digits).div_ceil(2) } else { 0 };
    digits.iter().filter(|digit| **digit != 0).count() + multiples
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
