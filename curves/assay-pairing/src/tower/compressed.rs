//! Squares in the cyclotomic subgroup by four of six coefficients (Karabina, "Squaring in
//! cyclotomic subgroups", 2013; formulas of Aranha et al., 2011, section 5.2): two squares in Fp4
//! each instead of three, and one inversion for decompression.

use super::{Fp2, Fp6, Fp12, TowerField};
use crate::field::Field as _;

/// Number of squares from which this is faster, including the inversion.
pub(super) const WORTH_FROM: usize = 14;

/// Coefficients of `w`, `w^2`, `w^4` and `w^5` of an element of the subgroup.
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
