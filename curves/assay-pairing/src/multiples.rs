//! Products of points of the first group of BLS12-381 and as many numbers of any size, in eight lanes.
//!
//! For `lambda = -x^2`, the eigenvalue of the endomorphism, a number is `a + b lambda` with a from
//! 2^129 to `2^129 + 2^128` and b below 2^128. Adding vectors of the lattice of pairs that
//! represent zero, `(x^2, 1)` and `(1, 1 - x^2)`, moves a into that range, so every product starts
//! with the point itself and takes the same number of doublings.

use crate::backend::on_backend;
use crate::bls12_381::{FpModulus, X};
use crate::curve::{Affine, BlsG1, Jacobian};
use crate::lanes::field::LaneFe;
use crate::lanes::groups::{self, finite};
use crate::lanes::points::{Coordinate as _, LanePoint, double_product};
use crate::lanes::{LANES, Lanes, Task};
use crate::msm::Backend;

/// The square of the parameter.
const X2: u128 = X as u128 * X as u128;

/// Number of bits of a below its highest one.
const PLACES: usize = 129;

/// A scalar in split form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Multiplier {
    number: [u64; 4],
    /// a minus 2^129.
    a: u128,
    b: u128,
}

impl Multiplier {
    /// Splits a number below the order of the group.
    pub(crate) fn new(number: [u64; 4]) -> Self {
        // k = k1 x^2 + k0. Adding 3 (x^2, 1) - (1, 1 - x^2) to (k0, -k1) leaves a = k0 + 3 x^2 - 1 and b = x^2 + 2 - k1;
        // 3 x^2 is between 2^129 and 2^129 + 2^122.
        let (k1, k0) = crate::curve::divide_by_square(&number, X2);
        let a = (3u128.wrapping_mul(X2) - 1).wrapping_add(k0);
        Self { number, a, b: X2 + 2 - k1 }
    }
}

/// Products of points of the group with as many numbers.
pub(crate) fn products(
    backend: Backend,
    points: &[Jacobian<BlsG1>],
    multipliers: &[&Multiplier],
) -> Vec<Jacobian<BlsG1>> {
    let in_words = || {
        let pairs = points.iter().zip(multipliers);
        pairs.map(|(point, multiplier)| point.multiply(&multiplier.number)).collect()
    };
    on_backend!(backend; in_words(), L => in_lanes::<L>(points, multipliers))
}

fn in_lanes<L: Lanes>(
    points: &[Jacobian<BlsG1>],
    multipliers: &[&Multiplier],
) -> Vec<Jacobian<BlsG1>> {
    let affine = Jacobian::all_to_affine(points);
    let are_infinite: Vec<bool> = affine.iter().map(|point| point.is_infinity).collect();
    let in_lanes = |places: [usize; LANES]| {
        L::run(Product::<L> {
            points: places.map(|place| finite(&affine[place])),
            a: masks(&places.map(|place| multipliers[place].a)),
            b: masks(&places.map(|place| multipliers[place].b)),
            lanes: core::marker::PhantomData,
        })
    };
    let slow = |index: usize| points[index].multiply(&multipliers[index].number);
    groups::products(&are_infinite, in_lanes, slow)
}

/// Mask of lanes with each bit.
fn masks(numbers: &[u128; LANES]) -> [u8; PLACES] {
    let mut masks = [0; PLACES];
    for (lane, number) in numbers.iter().enumerate() {
        for (bit, mask) in masks.iter_mut().enumerate().take(128) {
            *mask |= ((number >> bit & 1) as u8) << lane;
        }
    }
    masks
}

/// Products of eight points.
struct Product<L> {
    points: [Affine<BlsG1>; LANES],
    a: [u8; PLACES],
    b: [u8; PLACES],
    lanes: core::marker::PhantomData<L>,
}

impl<L: Lanes> Task for Product<L> {
    type Result = [Jacobian<BlsG1>; LANES];

    #[inline(always)]
    fn run(self) -> Self::Result {
        let x = LaneFe::<L, FpModulus, 6, 8>::from_scalars(&self.points.map(|point| point.x));
        let y = LaneFe::from_scalars(&self.points.map(|point| point.y));
        let beta = LaneFe::from_scalars(&[BlsG1::BETA; LANES]);
        let other = x * beta;
        // 1 + lambda + lambda^2 = 0, so the sum of both is the third with the sign changed.
        let points = [[x, y], [other, y], [other * beta, y.combined::<-1, 0>(&y)]];
        let LanePoint { x, y, z } = double_product(&points, &LaneFe::one(), &self.a, &self.b);
        let (x, y, z) = (x.to_scalars(), y.to_scalars(), z.to_scalars());
        core::array::from_fn(|lane| Jacobian { x: x[lane], y: y[lane], z: z[lane] })
    }
}

/// On every backend against multiplication bit by bit.
#[cfg(test)]
mod tests {
    use super::{Multiplier, X2, products};
    use crate::curve::{BlsG1, Curve as _, Jacobian};
    use crate::limbs;
    use crate::msm::Backend;
    use crate::testing::Rng;

    #[test]
    fn as_bit_by_bit() {
        let mut rng = Rng::new(31);
        let order = BlsG1::ORDER;
        let mut numbers = vec![[0; 4], [1, 0, 0, 0], [2, 0, 0, 0], [3, 0, 0, 0]];
        numbers.extend([1, 2, 3].map(|below| limbs::minus_small(&order, below)));
        // Around x^2, where the split changes.
        let x2 = X2;
        numbers.extend([x2 - 1, x2, x2 + 1].map(|n| [n as u64, (n >> 64) as u64, 0, 0]));
        numbers.extend((0..25).map(|_| rng.fe::<crate::bls12_381::FrModulus, 4>().to_limbs()));
        let multipliers: Vec<_> = numbers.iter().map(|number| Multiplier::new(*number)).collect();
        let all: Vec<_> = multipliers.iter().collect();
        let mut point = Jacobian::from(BlsG1::GENERATOR).multiply_slowly(&[rng.word(), rng.word()]);
        let mut points = Vec::new();
        for index in 0..numbers.len() {
            points.push(if index % 11 == 7 { Jacobian::INFINITY } else { point });
            point = point.double() + BlsG1::GENERATOR.into();
        }
        for backend in Backend::ALL.into_iter().filter(|backend| backend.is_available()) {
            for count in [0, 1, 7, 8, 9, numbers.len()] {
                let found = products(backend, &points[..count], &all[..count]);
                for (index, product) in found.iter().enumerate() {
                    let right = points[index].multiply_slowly(&numbers[index]);
                    assert_eq!(*product, right, "{backend:?}: {:x?}", numbers[index]);
                }
            }
        }
    }
}
