//! Common parts of the second groups of pairings: the equation of the twist, and the Frobenius map on it.

use super::{Curve, Jacobian};
use crate::field::Fe;
use crate::tower::{Fp2, TowerField, TowerModulus, Twist};

/// Constant of the twist: b times xi, or divided by xi.
pub(super) const fn constant<M: TowerModulus<N>, const N: usize>() -> Fp2<Fe<M, N>> {
    let b = Fe::from_u64(M::B);
    let Fp2 { c0, c1 } = match M::TWIST {
        Twist::M => Fp2 { c0: Fe::from_u64(M::XI), c1: Fe::ONE },
        Twist::D => Fe::<M, N>::XI_INVERSE,
    };
    Fp2 { c0: c0.multiply(&b), c1: c1.multiply(&b) }
}

/// Factors of x and y in [`frobenius`].
pub(crate) const fn frobenius_factors<M: TowerModulus<N>, const N: usize>() -> [Fp2<Fe<M, N>>; 2] {
    match M::TWIST {
        Twist::M => [Fe::<M, N>::FROBENIUS_INVERSES[2], Fe::<M, N>::FROBENIUS_INVERSES[3]],
        Twist::D => [Fe::<M, N>::FROBENIUS[2], Fe::<M, N>::FROBENIUS[3]],
    }
}

/// Untwist, Frobenius, twist.
pub(super) fn frobenius<M: TowerModulus<N>, const N: usize, C: Curve<Base = Fp2<Fe<M, N>>>>(
    point: &Jacobian<C>,
) -> Jacobian<C> {
    let [x, y] = const { frobenius_factors::<M, N>() };
    Jacobian { x: point.x.conjugate() * x, y: point.y.conjugate() * y, z: point.z.conjugate() }
}
