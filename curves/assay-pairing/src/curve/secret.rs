//! Products of points and secret numbers: the same operations on the same addresses for every number.
//!
//! Complete formulas in homogeneous coordinates (Renes, Costello, Batina, "Complete addition formulas for prime order
//! elliptic curves", 2016, algorithms 7 and 9) hold for all points whose difference is not of order two, so for all
//! points of a group of odd order, without case distinctions. All entries of the table are read for each digit, and
//! the inversion at the end is a power.

use super::{Affine, BlsG2, Curve, Jacobian};
use crate::bls12_381::{Fp, X};
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
    #[inline]
    fn double(&self, times_b3: impl Fn(C::Base) -> C::Base) -> Self {
        let Self { x, y, z } = *self;
        let yy = y.square();
        let yy8 = yy.double().double().double();
        let bzz = times_b3(z.square());
        let difference = yy - (bzz.double() + bzz);
        Self {
            x: (difference * (x * y)).double(),
            y: bzz * yy8 + difference * (yy + bzz),
            z: y * z * yy8,
        }
    }

    /// Algorithm 7.
    #[inline]
    fn plus(&self, other: &Self, times_b3: impl Fn(C::Base) -> C::Base) -> Self {
        let (a, b) = (self, other);
        let (xx, yy, zz) = (a.x * b.x, a.y * b.y, a.z * b.z);
        let xy = (a.x + a.y) * (b.x + b.y) - (xx + yy);
        let yz = (a.y + a.z) * (b.y + b.z) - (yy + zz);
        let xz = times_b3((a.x + a.z) * (b.x + b.z) - (xx + zz));
        let (xx3, bzz) = (xx.double() + xx, times_b3(zz));
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

/// All ones if both numbers are equal: their difference minus one has borrowed.
fn equal(a: u64, b: u64) -> u64 {
    core::hint::black_box(((a ^ b).wrapping_sub(1) & !(a ^ b)) >> 63).wrapping_neg()
}

/// The entry of this index, after reading all entries.
fn entry<C: Curve>(table: &[Projective<C>], index: u64) -> Projective<C> {
    (0u64..).zip(table).fold(Projective::INFINITY, |chosen, (k, point)| {
        Projective::select(equal(k, index), point, &chosen)
    })
}

fn to_affine<C: Curve>(point: &Projective<C>) -> Affine<C> {
    let inverse = point.z.inverse_by_power();
    Affine::new(point.x * inverse, point.y * inverse)
}

/// Product of a finite point and a secret number below 2^256, four bits at a time.
pub(crate) fn multiply<C: Curve>(point: &Affine<C>, secret: &[u64; 4]) -> Affine<C> {
    let b3 = C::B.double() + C::B;
    let times_b3 = |x: C::Base| b3 * x;
    let point = Projective::<C> { x: point.x, y: point.y, z: C::Base::ONE };
    let mut multiples = [Projective::<C>::INFINITY; 16];
    for k in 1..16 {
        multiples[k] = multiples[k - 1].plus(&point, times_b3);
    }
    let mut sum = Projective::<C>::INFINITY;
    for place in (0..64).rev() {
        for _ in 0..4 {
            sum = sum.double(times_b3);
        }
        let digit = secret[place / 16] >> (4 * (place % 16)) & 15;
        sum = sum.plus(&entry(&multiples, digit), times_b3);
    }
    to_affine(&sum)
}

/// Number of parts without the sign-determining first one.
const OTHERS: usize = 3;

/// Product of a finite point of the second group of BLS12-381 and a secret number below the order.
///
/// The number is split by the endomorphism, which acts as `-|x|` (Galbraith, Lin, Scott, "Endomorphisms for faster
/// elliptic curve cryptography on a large class of curves", 2009), and the four parts have digits 0, 1 or -1 of the
/// same sign at each place (Faz-Hernández, Longa, Sánchez, "Efficient and secure algorithms for GLV-based scalar
/// multiplication", 2013, algorithm 1): 64 doublings, an addition after each, and a table of eight points.
pub(crate) fn multiply_g2(point: &Affine<BlsG2>, secret: &[u64; 4]) -> Affine<BlsG2> {
    type G2 = Projective<BlsG2>;
    let times_b3 = <Fp as crate::tower::TowerRing>::times_triple_b;
    // P, |x| P, |x|^2 P, |x|^3 P; the endomorphism preserves Z = 1.
    let next = |p: &Jacobian<BlsG2>| -BlsG2::endomorphism(p);
    let first = Jacobian::from(*point);
    let second = next(&first);
    let third = next(&second);
    let bases = [first, second, third, next(&third)].map(|p| G2 { x: p.x, y: p.y, z: p.z });
    let mut table = [bases[0]; 1 << OTHERS];
    for (index, base) in bases[1..].iter().enumerate() {
        for k in 0..1 << index {
            table[k + (1 << index)] = table[k].plus(base, times_b3);
        }
    }
    let parts = in_powers_of_x(secret);
    // The first part must be odd; an even one is increased by one.
    let is_even = (parts[0] & 1).wrapping_sub(1);
    let digits = Digits::new(parts[0] | 1, [parts[1], parts[2], parts[3]]);
    let mut sum = entry(&table, digits.top);
    for place in (0..64).rev() {
        sum = sum.double(times_b3);
        let mut chosen = entry(&table, digits.columns[place]);
        let is_negative = core::hint::black_box(digits.signs >> place & 1).wrapping_neg();
        chosen.y = Field::select(is_negative, &-chosen.y, &chosen.y);
        sum = sum.plus(&chosen, times_b3);
    }
    let minus = G2 { y: -bases[0].y, ..bases[0] };
    let without = sum.plus(&minus, times_b3);
    to_affine(&Projective::select(is_even, &without, &sum))
}

/// Digits of four numbers, at places 0 to 63 and the highest one.
struct Digits {
    /// Bit mask of places with negative digits.
    signs: u64,
    /// A bit for each number after the first one, set for a nonzero digit. The digit of the first one is never zero.
    columns: [u64; 64],
    /// The same at place 64, which is positive.
    top: u64,
}

impl Digits {
    /// An odd number and others, all below 2^64.
    fn new(odd: u64, mut others: [u64; OTHERS]) -> Self {
        // The digit at place i is 2 b - 1 for bit i + 1 of the odd number, and 1 at the top.
        let signs = !(odd >> 1);
        let mut columns = [0; 64];
        for (place, column) in columns.iter_mut().enumerate() {
            let is_negative = signs >> place & 1;
            for (index, other) in others.iter_mut().enumerate() {
                let digit = *other & 1;
                *column |= digit << index;
                // A negative digit carries one.
                *other = (*other >> 1) + (digit & is_negative);
            }
        }
        let top = (0..).zip(others).fold(0, |top, (index, other)| top | other << index);
        Self { signs, columns, top }
    }
}

/// Digits of a number below the order in base |x|: four below 2^64.
fn in_powers_of_x(secret: &[u64; 4]) -> [u64; 4] {
    let mut quotient = *secret;
    let [first, second, third] = core::array::from_fn(|_| divide_by_x(&mut quotient));
    [first, second, third, quotient[0]]
}

/// Returns the remainder; the number becomes the quotient. Bit by bit, since the time of division
/// instructions depends on their operands.
fn divide_by_x(number: &mut [u64; 4]) -> u64 {
    let mut rest = 0u128;
    for index in (0..256).rev() {
        let (limb, bit) = (index / 64, index % 64);
        rest = rest << 1 | u128::from(number[limb] >> bit & 1);
        let difference = rest.wrapping_sub(u128::from(X));
        let is_below = core::hint::black_box((difference >> 127) as u64);
        let mask = u128::from(is_below).wrapping_neg();
        rest = difference ^ (mask & (difference ^ rest));
        number[limb] = number[limb] & !(1 << bit) | (is_below ^ 1) << bit;
    }
    rest as u64
}
