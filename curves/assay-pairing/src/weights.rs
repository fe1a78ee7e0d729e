//! Products of points of BLS12-381 and random weights of 128 bits, for the verification of batches.
//!
//! A weight is `2^64 + a + b lambda` for random a and b below 2^64 and `lambda = -x^2`, the eigenvalue of
//! endomorphisms of both groups. Different pairs are different weights: otherwise their difference would be a vector
//! of the lattice of pairs that represent zero, which has none below 2^127. A product takes 64 doublings, and no
//! intermediate sum has equal or opposite operands.

#[cfg(test)]
mod tests;

use crate::backend::on_backend;
use crate::curve::{Affine, BlsG1, BlsG2, Curve, Jacobian};
use crate::field::Field as _;
use crate::lanes::groups::{self, InLanes, finite};
use crate::lanes::points::{Bits, double_product};
use crate::lanes::{LANES, Lanes, Task};
use crate::msm::Backend;

/// `2^64 + a + b lambda`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Weight {
    pub(crate) a: u64,
    pub(crate) b: u64,
}

/// Groups of BLS12-381.
pub(crate) trait Weighted: InLanes {
    /// `lambda P`.
    fn lambda(point: &Jacobian<Self>) -> Jacobian<Self>;
}

impl Weighted for BlsG1 {
    fn lambda(point: &Jacobian<Self>) -> Jacobian<Self> {
        Self::endomorphism(point)
    }
}

impl Weighted for BlsG2 {
    fn lambda(point: &Jacobian<Self>) -> Jacobian<Self> {
        -Self::endomorphism(&Self::endomorphism(point))
    }
}

/// Products of points of the group with as many weights.
pub(crate) fn products<C: Weighted>(
    backend: Backend,
    points: &[Affine<C>],
    weights: &[Weight],
) -> Vec<Jacobian<C>> {
    on_backend!(
        backend;
        points.iter().zip(weights).map(|(point, weight)| slow_product(point, *weight)).collect(),
        L => products_in_lanes::<C, L>(points, weights)
    )
}

fn slow_product<C: Weighted>(point: &Affine<C>, weight: Weight) -> Jacobian<C> {
    let Weight { a, b } = weight;
    let point = Jacobian::from(*point);
    point.multiply(&[a, 1, 0, 0]) + C::lambda(&point.multiply(&[b, 0, 0, 0]))
}

fn products_in_lanes<C: Weighted, L: Lanes>(
    points: &[Affine<C>],
    weights: &[Weight],
) -> Vec<Jacobian<C>> {
    // P, lambda P and their sum for all points. Infinity is replaced here, and restored at the end.
    let others: Vec<_> = points.iter().map(|point| C::lambda(&finite(point).into())).collect();
    let sums: Vec<_> =
        points.iter().zip(&others).map(|(point, other)| other.add_affine(&finite(point))).collect();
    let (others, sums) = (Jacobian::all_to_affine(&others), Jacobian::all_to_affine(&sums));
    let are_infinite: Vec<bool> = points.iter().map(|point| point.is_infinity).collect();
    let in_lanes = |places: [usize; LANES]| {
        let of = |list: &[Affine<C>]| places.map(|place| finite(&list[place]));
        L::run(Product::<C, L> {
            points: [of(points), of(&others), of(&sums)],
            a: Bits::new(&places.map(|place| weights[place].a)),
            b: Bits::new(&places.map(|place| weights[place].b)),
            lanes: core::marker::PhantomData,
        })
    };
    let slow = |index: usize| slow_product(&points[index], weights[index]);
    groups::products(&are_infinite, in_lanes, slow)
}

/// Products of eight points.
struct Product<C: Curve, L> {
    points: [[Affine<C>; LANES]; 3],
    a: Bits,
    b: Bits,
    lanes: core::marker::PhantomData<L>,
}

impl<C: Weighted, L: Lanes> Task for Product<C, L> {
    type Result = [Jacobian<C>; LANES];

    #[inline(always)]
    fn run(self) -> Self::Result {
        let one = C::load::<L>(&[C::Base::ONE; LANES]);
        let mut points = [[one; 2]; 3];
        for (lanes, points) in points.iter_mut().zip(&self.points) {
            *lanes = C::load_points::<L>(points);
        }
        C::points::<L>(&double_product(&points, &one, &self.a.0, &self.b.0))
    }
}
