//! What the second groups of pairings have in common: the equation of the twist, and the Frobenius map on it.

use super::{Curve, Jacobian};
use crate::field::Fe;
use crate::tower::{Fp2, TowerField, TowerModulus, Twist};

/// The constant of the twist: b times xi, or divided by it.
pub(super) const fn constant<M: TowerModulus<N>, const N: usize>() -> Fp2<Fe<M, N>> {
    let b = Fe::from_u64(M::B);
    let Fp2 { c0, c1 } = match M::TWIST {
        Twist::M => Fp2 { c0: Fe::from_u64(M::XI), c1: Fe::ONE },
        Twist::D => Fe::<M, N>::XI_INVERSE,
    };
    Fp2 { c0: c0.multiply(&b), c1: c1.multiply(&b) }
}

/// Untwist, Frobenius, twist.
pub(super) fn frobenius<F: TowerField, C: Curve<Base = Fp2<F>>>(
    point: &Jacobian<C>,
) -> Jacobian<C> {
    let [x, y] = match F::TWIST {
        Twist::M => [F::FROBENIUS_INVERSES[2], F::FROBENIUS_INVERSES[3]],
        Twist::D => [F::FROBENIUS[2], F::FROBENIUS[3]],
    };
    Jacobian { x: point.x.conjugate() * x, y: point.y.conjugate() * y, z: point.z.conjugate() }
}
