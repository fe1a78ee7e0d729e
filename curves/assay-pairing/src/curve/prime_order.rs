//! Groups that consist of all points of a curve `y^2 = x^3 + b` over a field of four limbs: the
//! first groups of curves of Barreto and Naehrig.

use core::marker::PhantomData;

use super::glv::Lattice;
use super::scalar::Short;
use super::{Affine, Curve, Jacobian};
use crate::field::{Fe, Modulus};
use crate::limbs;

/// Parameters of such a group.
pub trait Parameters:
    Copy + Eq + core::fmt::Debug + core::hash::Hash + Send + Sync + 'static
{
    type Base: Modulus<4>;
    type Scalar: Modulus<4>;
    /// The constant of the equation.
    const B: u64;
    /// A number whose power `(p - 1) / 3` is beta, the cube root of one by which the endomorphism multiplies x.
    const BETA_ROOT: u64;
    /// Lattice that splits numbers by that endomorphism.
    const LATTICE: Lattice;
    const GENERATOR: [Fe<Self::Base, 4>; 2];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PrimeOrder<F>(PhantomData<F>);

impl<F: Parameters> PrimeOrder<F> {
    /// A cube root of one, with `(beta x, y) = lambda (x, y)` for the lambda of the lattice.
    const BETA: Fe<F::Base, 4> = cube_root_of_one(F::BETA_ROOT);

    pub(crate) fn endomorphism(point: &Jacobian<Self>) -> Jacobian<Self> {
        Jacobian { x: point.x * Self::BETA, ..*point }
    }
}

/// The power `(p - 1) / 3` of a small number.
pub(super) const fn cube_root_of_one<M: Modulus<N>, const N: usize>(small: u64) -> Fe<M, N> {
    let third = limbs::divide_small(&limbs::minus_small(&M::MODULUS, 1), 3).0;
    Fe::from_u64(small).const_power(&third)
}

impl<F: Parameters> Curve for PrimeOrder<F> {
    type Base = Fe<F::Base, 4>;
    const ORDER: [u64; 4] = F::Scalar::MODULUS;
    const B: Self::Base = Fe::from_u64(F::B);
    const GENERATOR: Affine<Self> = Affine::new(F::GENERATOR[0], F::GENERATOR[1]);

    /// The curve has no other points.
    fn is_in_group(_: &Affine<Self>) -> bool {
        true
    }

    const PARTS: usize = 2;
    const PART_BITS: usize = 128;

    fn split(number: &[u64; 4]) -> [Short; 4] {
        let [k0, k1] = const { &F::LATTICE }.split(number);
        [k0, k1, Short::ZERO, Short::ZERO]
    }

    fn times_lambda(point: &Jacobian<Self>) -> Jacobian<Self> {
        Self::endomorphism(point)
    }
}
