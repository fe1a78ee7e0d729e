//! The cyclotomic subgroup of Fp12, which contains the results of pairings: in the tower, or in lanes.

use super::{Fp2, Fp6, Fp12, TowerField};
use crate::field::Field as _;
use crate::limbs;

/// Operations of the final exponentiation on elements of the subgroup.
pub trait Cyclotomic: Copy {
    fn one() -> Self;
    #[must_use]
    fn times(&self, other: &Self) -> Self;
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
        let compressed = if count < WORTH_FROM { None } else { squared(self, count) };
        compressed.unwrap_or_else(|| (0..count).fold(*self, |power, _| power.cyclotomic_square()))
    }
}

impl<F: TowerField> Fp12<F> {
    /// The square of an element of the cyclotomic subgroup (Granger and Scott, 2010).
    #[must_use]
    pub fn cyclotomic_square(&self) -> Self {
        // 3 t - 2 z and 3 t + 2 z.
        let minus = |t: Fp2<F>, z: Fp2<F>| (t - z).double() + t;
        let plus = |t: Fp2<F>, z: Fp2<F>| (t + z).double() + t;
        let (x, y) = (&self.c0, &self.c1);
        let [t0, t1] = F::square_4(&x.c0, &y.c1);
        let [t2, t3] = F::square_4(&y.c0, &x.c2);
        let [t4, t5] = F::square_4(&x.c1, &y.c2);
        Self {
            c0: Fp6 { c0: minus(t0, x.c0), c1: minus(t2, x.c1), c2: minus(t4, x.c2) },
            c1: Fp6 { c0: plus(t5.times_xi(), y.c0), c1: plus(t1, y.c1), c2: plus(t3, y.c2) },
        }
    }
}

/// Number of squares from which this is faster, including the inversion.
const WORTH_FROM: usize = 14;

/// An element by four of six coefficients (Karabina, "Squaring in cyclotomic subgroups", 2013; formulas of Aranha et al.,
/// 2011, section 5.2): two squares in Fp4 each instead of three, and one inversion for decompression. The coefficients are those
/// of `w`, `w^2`, `w^4` and `w^5`.
struct Compressed<F> {
    w1: Fp2<F>,
    w2: Fp2<F>,
    w4: Fp2<F>,
    w5: Fp2<F>,
}

impl<F: TowerField> Compressed<F> {
    fn new(x: &Fp12<F>) -> Self {
        Self { w1: x.c1.c0, w2: x.c0.c1, w4: x.c0.c2, w5: x.c1.c2 }
    }

    /// As in [`Fp12::cyclotomic_square`], which computes these four independently of the others.
    fn square(&self) -> Self {
        let [t2, t3] = F::square_4(&self.w1, &self.w4);
        let [t4, t5] = F::square_4(&self.w2, &self.w5);
        // 3 t - 2 z and 3 t + 2 z.
        let minus = |t: Fp2<F>, z: Fp2<F>| (t - z).double() + t;
        let plus = |t: Fp2<F>, z: Fp2<F>| (t + z).double() + t;
        Self {
            w1: plus(t5.times_xi(), self.w1),
            w2: minus(t2, self.w2),
            w4: minus(t4, self.w4),
            w5: plus(t3, self.w5),
        }
    }

    /// Decompression; `None` if the coefficient of w is zero.
    fn to_tower(&self) -> Option<Fp12<F>> {
        let Self { w1, w2, w4, w5 } = *self;
        let inverse = w1.double().double().inverse()?;
        let w3 = (w5.square().times_xi() + w2.square().tripled() - w4.double()) * inverse;
        let w0 = (w3.square().double() + w1 * w5 - (w4 * w2).tripled()).times_xi() + Fp2::ONE;
        Some(Fp12 { c0: Fp6 { c0: w0, c1: w2, c2: w4 }, c1: Fp6 { c0: w1, c1: w3, c2: w5 } })
    }
}

/// The power 2^`count` of an element of the subgroup; `None` if its four coefficients are not enough.
pub(super) fn squared<F: TowerField>(x: &Fp12<F>, count: usize) -> Option<Fp12<F>> {
    (0..count).fold(Compressed::new(x), |power, _| power.square()).to_tower()
}
