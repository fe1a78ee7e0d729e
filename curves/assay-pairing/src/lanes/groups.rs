//! Groups with points in lanes: those of BLS12 curves, and the second ones of BN curves.

use super::field::LaneFe;
use super::points::{Coordinate, LanePoint};
use super::{LANES, Lanes};
use crate::curve::{Affine, Curve, Jacobian, bls12, bn, frobenius_factors};
use crate::field::{Fe, Field as _};
use crate::tower::{Fp2, TowerModulus};

/// A group with coordinates in lanes.
pub(crate) trait InLanes: Curve {
    type Coordinate<L: Lanes>: Coordinate;
    fn load<L: Lanes>(scalars: &[Self::Base; LANES]) -> Self::Coordinate<L>;
    fn scalars<L: Lanes>(lanes: &Self::Coordinate<L>) -> [Self::Base; LANES];

    /// Loads points other than infinity.
    #[inline(always)]
    fn load_points<L: Lanes>(points: &[Affine<Self>; LANES]) -> [Self::Coordinate<L>; 2] {
        let (mut x, mut y) = ([Self::Base::ZERO; LANES], [Self::Base::ZERO; LANES]);
        for lane in 0..LANES {
            (x[lane], y[lane]) = (points[lane].x, points[lane].y);
        }
        [Self::load::<L>(&x), Self::load::<L>(&y)]
    }

    #[inline(always)]
    fn points<L: Lanes>(lanes: &LanePoint<Self::Coordinate<L>>) -> [Jacobian<Self>; LANES] {
        let (x, y) = (Self::scalars::<L>(&lanes.x), Self::scalars::<L>(&lanes.y));
        let z = Self::scalars::<L>(&lanes.z);
        let mut points = [Jacobian::INFINITY; LANES];
        for lane in 0..LANES {
            points[lane] = Jacobian { x: x[lane], y: y[lane], z: z[lane] };
        }
        points
    }
}

/// A product for each point, eight at a time: `in_lanes` computes those of the points with eight indices, in which
/// infinity is replaced ([`finite`]), and `slow` one whose result in lanes is infinity: it may be, or an intermediate sum
/// that the formulas of lanes do not support.
pub(crate) fn products<C: Curve>(
    are_infinite: &[bool],
    in_lanes: impl Fn([usize; LANES]) -> [Jacobian<C>; LANES],
    slow: impl Fn(usize) -> Jacobian<C>,
) -> Vec<Jacobian<C>> {
    let count = are_infinite.len();
    let mut products = Vec::with_capacity(count);
    for first in (0..count).step_by(LANES) {
        let eight = in_lanes(core::array::from_fn(|lane| (first + lane).min(count - 1)));
        for (index, product) in (first..count).zip(eight) {
            products.push(if are_infinite[index] {
                Jacobian::INFINITY
            } else if product.is_infinity() {
                slow(index)
            } else {
                product
            });
        }
    }
    products
}

/// Replaces infinity, which has no coordinates.
pub(crate) fn finite<C: Curve>(point: &Affine<C>) -> Affine<C> {
    if point.is_infinity { C::GENERATOR } else { *point }
}

/// Implements coordinates of a group over the base field, or over Fp2: words, and limbs in lanes.
macro_rules! in_lanes {
    ($group:ty, $module:ident: base of $n:literal, $k:literal) => {
        impl<F: $module::Parameters> InLanes for $group {
            type Coordinate<L: Lanes> = LaneFe<L, F::Base, $n, $k>;

            #[inline(always)]
            fn load<L: Lanes>(scalars: &[Fe<F::Base, $n>; LANES]) -> Self::Coordinate<L> {
                LaneFe::from_scalars(scalars)
            }

            #[inline(always)]
            fn scalars<L: Lanes>(lanes: &Self::Coordinate<L>) -> [Fe<F::Base, $n>; LANES] {
                lanes.to_scalars()
            }
        }
    };
    ($group:ty, $module:ident: pairs of $n:literal, $k:literal) => {
        impl<F: $module::Parameters> InLanes for $group {
            type Coordinate<L: Lanes> = Fp2<LaneFe<L, F::Base, $n, $k>>;

            #[inline(always)]
            fn load<L: Lanes>(scalars: &[Fp2<Fe<F::Base, $n>>; LANES]) -> Self::Coordinate<L> {
                LaneFe::pairs_from_scalars(scalars)
            }

            #[inline(always)]
            fn scalars<L: Lanes>(lanes: &Self::Coordinate<L>) -> [Fp2<Fe<F::Base, $n>>; LANES] {
                LaneFe::pairs_to_scalars(lanes)
            }
        }
    };
}

in_lanes!(bls12::G1<F>, bls12: base of 6, 8);
in_lanes!(bls12::G2<F>, bls12: pairs of 6, 8);
in_lanes!(bn::G2<F>, bn: pairs of 4, 5);

/// The Frobenius map on a twist: factors of the coordinates.
pub(crate) struct Frobenius<L, M, const N: usize, const K: usize>([Fp2<LaneFe<L, M, N, K>>; 2]);

impl<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize> Frobenius<L, M, N, K> {
    #[inline(always)]
    pub(crate) fn load() -> Self {
        let [x, y] = frobenius_factors();
        Self([LaneFe::pairs_from_scalars(&[x; LANES]), LaneFe::pairs_from_scalars(&[y; LANES])])
    }

    #[inline(always)]
    pub(crate) fn of(
        &self,
        point: &LanePoint<Fp2<LaneFe<L, M, N, K>>>,
    ) -> LanePoint<Fp2<LaneFe<L, M, N, K>>> {
        LanePoint {
            x: point.x.conjugate() * self.0[0],
            y: point.y.conjugate() * self.0[1],
            z: point.z.conjugate(),
        }
    }
}
