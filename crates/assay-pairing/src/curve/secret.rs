//! Products of points and secret numbers: the same operations on the same addresses whatever the number.
//!
//! Complete formulas in homogeneous coordinates (Renes, Costello, Batina, "Complete addition formulas for prime order
//! elliptic curves", 2016, algorithms 7 and 9) hold for all points of a curve of odd order, so nothing has to be asked. All
//! entries of the table are read for each digit, and the inversion at the end is a power.

use super::{Affine, Curve};
use crate::field::Field;

/// (X : Y : Z), x = X / Z.
#[derive(Clone, Copy)]
struct Projective<C: Curve> {
    x: C::Base,
    y: C::Base,
    z: C::Base,
}

impl<C: Curve> Projective<C> {
    const INFINITY: Self = Self { x: C::Base::ZERO, y: C::Base::ONE, z: C::Base::ZERO };

    /// Algorithm 9.
    fn double(&self, b3: C::Base) -> Self {
        let Self { x, y, z } = *self;
        let yy = y.square();
        let yy8 = yy.double().double().double();
        let bzz = b3 * z.square();
        let difference = yy - (bzz.double() + bzz);
        Self {
            x: (difference * (x * y)).double(),
            y: bzz * yy8 + difference * (yy + bzz),
            z: y * z * yy8,
        }
    }

    /// Algorithm 7.
    fn plus(&self, other: &Self, b3: C::Base) -> Self {
        let (a, b) = (self, other);
        let (xx, yy, zz) = (a.x * b.x, a.y * b.y, a.z * b.z);
        let xy = (a.x + a.y) * (b.x + b.y) - (xx + yy);
        let yz = (a.y + a.z) * (b.y + b.z) - (yy + zz);
        let xz = b3 * ((a.x + a.z) * (b.x + b.z) - (xx + zz));
        let (xx3, bzz) = (xx.double() + xx, b3 * zz);
        let (sum, difference) = (yy + bzz, yy - bzz);
        Self {
            x: xy * difference - yz * xz,
            y: difference * sum + xz * xx3,
            z: yz * sum + xx3 * xy,
        }
    }

    fn select(mask: u64, yes: &Self, no: &Self) -> Self {
        Self {
            x: C::Base::select(mask, &yes.x, &no.x),
            y: C::Base::select(mask, &yes.y, &no.y),
            z: C::Base::select(mask, &yes.z, &no.z),
        }
    }
}

/// The product of a point that is not infinity and a secret number below 2^256.
pub(crate) fn multiply<C: Curve>(point: &Affine<C>, secret: &[u64; 4]) -> Affine<C> {
    let b3 = C::B.double() + C::B;
    let point = Projective::<C> { x: point.x, y: point.y, z: C::Base::ONE };
    let mut multiples = [Projective::<C>::INFINITY; 16];
    for k in 1..16 {
        multiples[k] = multiples[k - 1].plus(&point, b3);
    }
    let mut sum = Projective::<C>::INFINITY;
    for place in (0..64).rev() {
        for _ in 0..4 {
            sum = sum.double(b3);
        }
        let digit = secret[place / 16] >> (4 * (place % 16)) & 15;
        let mut chosen = Projective::<C>::INFINITY;
        for (k, multiple) in (0u64..).zip(&multiples) {
            // All ones where k is the digit: the difference less one has borrowed.
            let mask = core::hint::black_box(((k ^ digit).wrapping_sub(1) >> 63).wrapping_neg());
            chosen = Projective::select(mask, multiple, &chosen);
        }
        sum = sum.plus(&chosen, b3);
    }
    let inverse = sum.z.inverse_by_power();
    Affine::new(sum.x * inverse, sum.y * inverse)
}
