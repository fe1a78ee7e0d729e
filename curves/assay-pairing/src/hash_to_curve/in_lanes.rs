//! Hashing of many messages to the second group of BLS12-381: square roots and the products that
//! clear the cofactor, which take nearly all of the time, run in lanes, the rest in words.

use super::{field_elements, second};
use crate::bls12_381::{Fp, FpModulus, X};
use crate::curve::{Affine, BlsG2, Jacobian};
use crate::field::Field as _;
use crate::lanes::field::LaneFe;
use crate::lanes::groups::{Frobenius, InLanes as _};
use crate::lanes::points::LanePoint;
use crate::lanes::{LANES, Lanes, Task};
use crate::tower::Fp2;

type Lane<L> = LaneFe<L, FpModulus, 6, 8>;

/// Number of elements per power: two vectors with independent steps.
const AT_ONCE: usize = 2 * LANES;

/// Powers of sixteen elements.
struct Power<'x, L>(&'x [Fp; AT_ONCE], &'static [u64; 6], core::marker::PhantomData<L>);

impl<L: Lanes> Task for Power<'_, L> {
    type Result = [Fp; AT_ONCE];

    /// Four bits of the exponent at a time.
    #[inline(always)]
    fn run(self) -> Self::Result {
        let (first, second) = self.0.split_at(LANES);
        let x: [Lane<L>; 2] = [
            LaneFe::from_scalars(first.first_chunk().expect("half of them")),
            LaneFe::from_scalars(second.first_chunk().expect("half of them")),
        ];
        let mut powers = [[LaneFe::one(); 2]; 16];
        for k in 1..16 {
            powers[k] = Lane::<L>::both_products(&powers[k - 1], &x);
        }
        let mut power = powers[(self.1[5] >> 60) as usize];
        for window in (0..95).rev() {
            for _ in 0..4 {
                power = Lane::<L>::both_products(&power, &power);
            }
            let digit = self.1[window / 16] >> (4 * (window % 16)) & 15;
            if digit != 0 {
                power = Lane::<L>::both_products(&power, &powers[digit as usize]);
            }
        }
        let mut all = [Fp::ZERO; AT_ONCE];
        all[..LANES].copy_from_slice(&power[0].to_scalars());
        all[LANES..].copy_from_slice(&power[1].to_scalars());
        all
    }
}

/// [`super::clear_g2`] in lanes.
struct Clear<'x, L>(&'x [Jacobian<BlsG2>; LANES], core::marker::PhantomData<L>);

type Point<L> = LanePoint<Fp2<Lane<L>>>;

impl<L: Lanes> Task for Clear<'_, L> {
    type Result = [Jacobian<BlsG2>; LANES];

    #[inline(always)]
    fn run(self) -> Self::Result {
        let (mut x, mut y, mut z) = ([Fp2::ZERO; LANES], [Fp2::ZERO; LANES], [Fp2::ZERO; LANES]);
        for lane in 0..LANES {
            (x[lane], y[lane], z[lane]) = (self.0[lane].x, self.0[lane].y, self.0[lane].z);
        }
        let point: Point<L> = LanePoint {
            x: Lane::pairs_from_scalars(&x),
            y: Lane::pairs_from_scalars(&y),
            z: Lane::pairs_from_scalars(&z),
        };
        let psi = Frobenius::load();
        let twice = point.double();
        let minus_psi = psi.of(&point).negated();
        let multiple = point.multiple(X);
        let left = multiple.plus(&point).plus(&minus_psi).multiple(X);
        let right = psi.of(&psi.of(&twice));
        let sum = left.plus(&minus_psi).plus(&point.negated()).plus(&right);
        BlsG2::points::<L>(&sum)
    }
}

/// Hashes messages to points.
pub(super) fn hash_all<L: Lanes>(messages: &[&[u8]], dst: &[u8]) -> Vec<Affine<BlsG2>> {
    let elements: Vec<Fp2<Fp>> =
        messages.iter().flat_map(|message| field_elements(message, dst)).collect();
    let power = |x: &[Fp], exponent: &'static [u64; 6]| {
        let mut all = [Fp::ZERO; AT_ONCE];
        all[..x.len()].copy_from_slice(x);
        L::run(Power::<L>(&all, exponent, core::marker::PhantomData))[..x.len()].to_vec()
    };
    let mapped: Vec<_> =
        elements.chunks(AT_ONCE).flat_map(|some| second::map(some, power)).collect();
    let points: Vec<Jacobian<BlsG2>> =
        mapped.chunks_exact(2).map(|pair| pair[0] + pair[1]).collect();
    let mut cleared = Vec::with_capacity(points.len());
    for some in points.chunks(LANES) {
        let mut lanes = [some[0]; LANES];
        lanes[..some.len()].copy_from_slice(some);
        let in_lanes = L::run(Clear::<L>(&lanes, core::marker::PhantomData));
        let exact = |(point, cleared): (&Jacobian<BlsG2>, &Jacobian<BlsG2>)| {
            // For exceptions of the formulas, and for infinity.
            if cleared.is_infinity() { super::clear_g2(point) } else { *cleared }
        };
        cleared.extend(some.iter().zip(&in_lanes).map(exact));
    }
    Jacobian::all_to_affine(&cleared)
}
