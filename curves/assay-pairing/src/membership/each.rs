//! Points checked separately, one per lane.
//!
//! A point is in its group if two points derived from it are equal, a multiple and its image under
//! an endomorphism. Both are computed in lanes and compared in words. Formulas in lanes yield Z = 0
//! if they do not hold; such points, and those with both sides infinite, are checked in words.

use core::marker::PhantomData;

use crate::backend::on_backend;
use crate::curve::{Affine, Curve, Jacobian, bls12, bn};
use crate::lanes::groups::{Frobenius, InLanes};
use crate::lanes::points::{AffineLanes, LanePoint};
use crate::lanes::{LANES, Lanes, Task};
use crate::msm::Backend;

/// Minimum number of points; one point is faster in words.
const LEAST: usize = 2;

/// Both sides of a group's equation, as in [`Curve::is_in_group`].
pub(super) trait Sides: InLanes {
    fn sides<L: Lanes>(
        point: &AffineLanes<Self::Coordinate<L>>,
        one: &Self::Coordinate<L>,
    ) -> [LanePoint<Self::Coordinate<L>>; 2];
}

impl<F: bls12::Parameters> Sides for bls12::G1<F> {
    #[inline(always)]
    fn sides<L: Lanes>(
        point: &AffineLanes<Self::Coordinate<L>>,
        one: &Self::Coordinate<L>,
    ) -> [LanePoint<Self::Coordinate<L>>; 2] {
        let [x, y] = *point;
        let beta = Self::load::<L>(&[Self::BETA; LANES]);
        let square = LanePoint::affine_multiple(point, one, F::X).multiple(F::X);
        [LanePoint { x: x * beta, y, z: *one }, square.negated()]
    }
}

impl<F: bls12::Parameters> Sides for bls12::G2<F> {
    #[inline(always)]
    fn sides<L: Lanes>(
        point: &AffineLanes<Self::Coordinate<L>>,
        one: &Self::Coordinate<L>,
    ) -> [LanePoint<Self::Coordinate<L>>; 2] {
        let [x, y] = *point;
        let multiple = LanePoint::affine_multiple(point, one, F::X);
        let multiple = if F::IS_NEGATIVE { multiple.negated() } else { multiple };
        [Frobenius::load().of(&LanePoint { x, y, z: *one }), multiple]
    }
}

impl<F: bn::Parameters> Sides for bn::G2<F> {
    #[inline(always)]
    fn sides<L: Lanes>(
        point: &AffineLanes<Self::Coordinate<L>>,
        one: &Self::Coordinate<L>,
    ) -> [LanePoint<Self::Coordinate<L>>; 2] {
        let [x, y] = *point;
        let psi = Frobenius::load();
        let multiple = LanePoint::affine_multiple(point, one, F::X);
        let multiple = if F::IS_NEGATIVE { multiple.negated() } else { multiple };
        let once = psi.of(&multiple);
        let sum = multiple.add_affine(&x, &y).plus(&once).plus(&psi.of(&once));
        [sum, psi.of(&psi.of(&psi.of(&multiple.double())))]
    }
}

/// Both sides for eight points.
struct Check<'p, C: Curve, L>(&'p [Affine<C>; LANES], PhantomData<L>);

impl<C: Sides, L: Lanes> Task for Check<'_, C, L> {
    type Result = [[Jacobian<C>; LANES]; 2];

    #[inline(always)]
    fn run(self) -> Self::Result {
        let point = C::load_points::<L>(self.0);
        let one = C::load::<L>(&[crate::field::Field::ONE; LANES]);
        let [left, right] = C::sides::<L>(&point, &one);
        [C::points::<L>(&left), C::points::<L>(&right)]
    }
}

/// True if each point of the curve is in the group.
pub(super) fn all<C: Sides>(backend: Backend, points: &[Affine<C>]) -> bool {
    on_backend!(backend; points.iter().all(C::is_in_group), L => in_lanes::<C, L>(points))
}

fn in_lanes<C: Sides, L: Lanes>(points: &[Affine<C>]) -> bool {
    points.chunks(LANES).all(|some| {
        if some.len() < LEAST {
            return some.iter().all(C::is_in_group);
        }
        let mut eight = [C::GENERATOR; LANES];
        for (lane, point) in eight.iter_mut().zip(some) {
            if !point.is_infinity {
                *lane = *point;
            }
        }
        let [left, right] = L::run(Check::<C, L>(&eight, PhantomData));
        left.iter().zip(&right).zip(&eight).all(|((left, right), point)| {
            if left.is_infinity() || right.is_infinity() {
                C::is_in_group(point)
            } else {
                left == right
            }
        })
    })
}
