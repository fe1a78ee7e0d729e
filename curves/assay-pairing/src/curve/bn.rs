//! The second groups of curves of Barreto and Naehrig. The first ones are [`prime_order`](super::prime_order).

use core::marker::PhantomData;

use super::glv::Lattice;
use super::scalar::{Short, by_windows};
use super::{Affine, Curve, Jacobian, gls, prime_order, twist_constant, twist_frobenius};
use crate::field::{Fe, Modulus as _};
use crate::tower::{Fp2, TowerModulus};

/// Parameters of the second group and the pairing.
pub trait Parameters: prime_order::Parameters<Base: TowerModulus<4>> {
    /// The absolute value of the parameter x.
    const X: u64;
    /// True if x is negative.
    const IS_NEGATIVE: bool;
    /// The generator of the second group.
    const G2: [Fp2<Fe<Self::Base, 4>>; 2];
}

/// Lattice of the first group: `6 x^2 + 2 x` and `2 x + 1`, for `lambda = (36 x^3 + 18 x^2 + 6 x + 1)^2`.
pub(super) const fn lattice(order: &[u64; 4], x: u64, is_negative: bool) -> Lattice {
    let (square, twice) = (6 * x as u128 * x as u128, 2 * x as u128);
    if is_negative {
        Lattice::new(order, square - twice, twice - 1, true)
    } else {
        Lattice::new(order, square + twice, twice + 1, false)
    }
}

/// The group over Fp2, on the twist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct G2<F>(PhantomData<F>);

impl<F: Parameters> G2<F> {
    /// Untwist, Frobenius, twist: acts as `6 x^2` on the group.
    pub(crate) fn endomorphism(point: &Jacobian<Self>) -> Jacobian<Self> {
        twist_frobenius(point)
    }
}

impl<F: Parameters> Curve for G2<F> {
    type Base = Fp2<Fe<F::Base, 4>>;
    const ORDER: [u64; 4] = F::Scalar::MODULUS;
    const B: Self::Base = twist_constant();
    const GENERATOR: Affine<Self> = Affine::new(F::G2[0], F::G2[1]);

    /// `(x + 1) P + psi(x P) + psi^2(x P) = psi^3(2 x P)` (Dai, Lin, Zhao, Zhou, "Fast subgroup membership testings
    /// for G1, G2 and GT on pairing-friendly curves", 2022, section 3).
    fn is_in_group(point: &Affine<Self>) -> bool {
        let point = Jacobian::from(*point);
        let psi = Self::endomorphism;
        // A table costs as much as eight additions.
        let multiple = if const { F::X.count_ones() > 18 } {
            by_windows(&point, F::X)
        } else {
            point.multiply_slowly(&[F::X])
        };
        let multiple = if F::IS_NEGATIVE { -multiple } else { multiple };
        let left = point + multiple + psi(&multiple) + psi(&psi(&multiple));
        left == psi(&psi(&psi(&multiple.double())))
    }

    const PARTS: usize = 4;
    const PART_BITS: usize = gls::PART_BITS;

    fn split(number: &[u64; 4]) -> [Short; 4] {
        const { &gls::Rows::new(&Self::ORDER, F::X, F::IS_NEGATIVE) }.split(number)
    }

    fn times_lambda(point: &Jacobian<Self>) -> Jacobian<Self> {
        Self::endomorphism(point)
    }
}
