//! The groups of curves of Barreto, Lynn and Scott with embedding degree 12, with cofactors.

use core::marker::PhantomData;

use super::prime_order::cube_root_of_one;
use super::scalar::{Short, divide, low};
use super::{Affine, Curve, Jacobian, twist_constant, twist_frobenius};
use crate::field::{Fe, Modulus};
use crate::tower::{Fp2, TowerModulus};

/// Parameters of both groups and the pairing.
pub trait Parameters:
    Copy + Eq + core::fmt::Debug + core::hash::Hash + Send + Sync + 'static
{
    /// Base field.
    type Base: TowerModulus<6>;
    /// Scalar field: `r = x^4 - x^2 + 1`.
    type Scalar: Modulus<4>;
    /// The absolute value of the parameter x.
    const X: u64;
    /// True if x is negative.
    const IS_NEGATIVE: bool;
    /// A number whose power `(p - 1) / 3` is beta, the cube root of one with
    /// `(beta x, y) = -x^2 (x, y)` in the first group.
    const BETA_ROOT: u64;
    /// The generator of the first group.
    const G1: [Fe<Self::Base, 6>; 2];
    /// The generator of the second group.
    const G2: [Fp2<Fe<Self::Base, 6>>; 2];
}

/// The group over the base field, on `y^2 = x^3 + b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct G1<F>(PhantomData<F>);

/// The group over Fp2, on the twist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct G2<F>(PhantomData<F>);

/// The square of x.
const fn square<F: Parameters>() -> u128 {
    F::X as u128 * F::X as u128
}

impl<F: Parameters> G1<F> {
    /// A cube root of one, with `(beta x, y) = -x^2 (x, y)` for the parameter x and points of the group.
    pub(crate) const BETA: Fe<F::Base, 6> = cube_root_of_one(F::BETA_ROOT);

    pub(crate) fn endomorphism(point: &Jacobian<Self>) -> Jacobian<Self> {
        Jacobian { x: point.x * Self::BETA, ..*point }
    }
}

impl<F: Parameters> Curve for G1<F> {
    type Base = Fe<F::Base, 6>;
    const ORDER: [u64; 4] = F::Scalar::MODULUS;
    const B: Self::Base = Fe::from_u64(F::Base::B);
    const GENERATOR: Affine<Self> = Affine::new(F::G1[0], F::G1[1]);

    /// Scott, "A note on group membership tests for G1, G2 and GT on BLS pairing-friendly curves"
    /// (2021): the endomorphism acts as `-x^2`. It is a cube root of one on the whole curve, so
    /// such points are annihilated by `x^4 - x^2 + 1`, the order, for any cofactor.
    fn is_in_group(point: &Affine<Self>) -> bool {
        let point = Jacobian::from(*point);
        let x2 = point.multiply_slowly(&[F::X]).multiply_slowly(&[F::X]);
        Self::endomorphism(&point) == -x2
    }

    const PARTS: usize = 2;
    const PART_BITS: usize = 128;

    /// `k = k0 + k1 x^2`.
    fn split(number: &[u64; 4]) -> [Short; 4] {
        let (quotient, rest) = divide(number, const { square::<F>() });
        [Short::new(rest), Short::new(low(&quotient)), Short::ZERO, Short::ZERO]
    }

    fn times_lambda(point: &Jacobian<Self>) -> Jacobian<Self> {
        -Self::endomorphism(point)
    }
}

impl<F: Parameters> G2<F> {
    /// Untwist, Frobenius, twist: acts as the parameter x on the group.
    pub(crate) fn endomorphism(point: &Jacobian<Self>) -> Jacobian<Self> {
        twist_frobenius(point)
    }

    /// The product with the absolute value of x.
    fn times_x(point: &Jacobian<Self>) -> Jacobian<Self> {
        let multiple = Self::endomorphism(point);
        if F::IS_NEGATIVE { -multiple } else { multiple }
    }
}

impl<F: Parameters> Curve for G2<F> {
    type Base = Fp2<Fe<F::Base, 6>>;
    const ORDER: [u64; 4] = F::Scalar::MODULUS;
    const B: Self::Base = twist_constant();
    const GENERATOR: Affine<Self> = Affine::new(F::G2[0], F::G2[1]);

    /// Scott (2021): psi acts as x.
    fn is_in_group(point: &Affine<Self>) -> bool {
        let point = Jacobian::from(*point);
        Self::times_x(&point) == point.multiply_slowly(&[F::X])
    }

    const PARTS: usize = 4;
    const PART_BITS: usize = 64;

    /// `k = k0 + k1 |x| + k2 |x|^2 + k3 |x|^3`.
    fn split(number: &[u64; 4]) -> [Short; 4] {
        let (upper, lower) = divide(number, const { square::<F>() });
        let (upper, x) = (low(&upper), u128::from(F::X));
        [lower % x, lower / x, upper % x, upper / x].map(Short::new)
    }

    fn times_lambda(point: &Jacobian<Self>) -> Jacobian<Self> {
        Self::times_x(point)
    }
}
