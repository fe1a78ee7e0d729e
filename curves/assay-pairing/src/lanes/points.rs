//! Points on `y^2 = x^3 + b` in lanes, in Jacobian coordinates, by formulas that yield Z = 0
//! wherever they do not hold: at infinity, and in sums of equal or opposite points. Every later
//! step preserves Z = 0, so an exception is visible in the result.

#![expect(clippy::needless_range_loop, reason = "limbs of several elements go by one index")]

use core::ops::{Mul, Sub};

use super::field::LaneFe;
use super::{Lanes, Words};
use crate::limbs;
use crate::tower::{Fp2, TowerModulus};

/// Coordinates in lanes: of the base field or of Fp2.
pub(crate) trait Coordinate: Copy + Sub<Output = Self> + Mul<Output = Self> {
    fn square(&self) -> Self;
    /// `A self + B other`, for factors with a result between -16 p and 47 p.
    fn combined<const A: i32, const B: i32>(&self, other: &Self) -> Self;
    fn select(mask: u8, yes: &Self, no: &Self) -> Self;
}

impl<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize> Coordinate
    for LaneFe<L, M, N, K>
{
    #[inline(always)]
    fn square(&self) -> Self {
        self.squared()
    }

    #[inline(always)]
    fn combined<const A: i32, const B: i32>(&self, other: &Self) -> Self {
        let mut limbs = *self.limbs();
        for i in 0..K {
            let zero = L::splat(0);
            limbs[i] =
                plus_multiple::<L, B>(plus_multiple::<L, A>(zero, limbs[i]), other.limbs()[i]);
        }
        Self::settle(&limbs)
    }

    #[inline(always)]
    fn select(mask: u8, yes: &Self, no: &Self) -> Self {
        Self::select(mask, yes, no)
    }
}

/// `sum + FACTOR x`.
#[inline(always)]
fn plus_multiple<L: Lanes, const FACTOR: i32>(sum: L, x: L) -> L {
    let multiple = match FACTOR.unsigned_abs() {
        0 => return sum,
        1 => x,
        2 => x.shl::<1>(),
        3 => x.shl::<1>().add(x),
        4 => x.shl::<2>(),
        8 => x.shl::<3>(),
        _ => unreachable!("factors of the formulas below"),
    };
    if FACTOR < 0 { sum.sub(multiple) } else { sum.add(multiple) }
}

impl<L: Lanes, M: TowerModulus<N>, const N: usize, const K: usize> Coordinate
    for Fp2<LaneFe<L, M, N, K>>
{
    #[inline(always)]
    fn square(&self) -> Self {
        self.square()
    }

    #[inline(always)]
    fn combined<const A: i32, const B: i32>(&self, other: &Self) -> Self {
        Self { c0: self.c0.combined::<A, B>(&other.c0), c1: self.c1.combined::<A, B>(&other.c1) }
    }

    #[inline(always)]
    fn select(mask: u8, yes: &Self, no: &Self) -> Self {
        Self {
            c0: LaneFe::select(mask, &yes.c0, &no.c0),
            c1: LaneFe::select(mask, &yes.c1, &no.c1),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LanePoint<E> {
    pub(crate) x: E,
    pub(crate) y: E,
    pub(crate) z: E,
}

impl<E: Coordinate> LanePoint<E> {
    /// Doubling (2009, Lange: dbl-2009-l, with `d = 4 x y^2` as a product).
    #[inline(always)]
    pub(crate) fn double(&self) -> Self {
        let a = self.x.square();
        let b = self.y.square();
        let c = b.square();
        let d = (self.x * b).combined::<4, 0>(&c);
        let e = a.combined::<3, 0>(&c);
        let x = e.square().combined::<1, -2>(&d);
        let y = (e * (d - x)).combined::<1, -8>(&c);
        Self { x, y, z: (self.y * self.z).combined::<2, 0>(&c) }
    }

    /// Sum with an affine point: Z3 = Z1 H.
    #[inline(always)]
    pub(crate) fn add_affine(&self, x: &E, y: &E) -> Self {
        let z2 = self.z.square();
        let h = *x * z2 - self.x;
        let r = *y * (self.z * z2) - self.y;
        Self::sum_by(h, r, self.x, self.y, self.z * h)
    }

    /// The sum: Z3 = Z1 Z2 H.
    #[inline(always)]
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let (z1, z2) = (self.z.square(), other.z.square());
        let u = self.x * z2;
        let s = self.y * (other.z * z2);
        let h = other.x * z1 - u;
        let r = other.y * (self.z * z1) - s;
        Self::sum_by(h, r, u, s, self.z * other.z * h)
    }

    /// `x = r^2 - h^3 - 2 u h^2`, `y = r (u h^2 - x) - s h^3`.
    #[inline(always)]
    fn sum_by(h: E, r: E, u: E, s: E, z: E) -> Self {
        let h2 = h.square();
        let h3 = h * h2;
        let v = u * h2;
        let x = (r.square() - h3).combined::<1, -2>(&v);
        let y = r * (v - x) - s * h3;
        Self { x, y, z }
    }

    /// Product with a nonzero number.
    #[inline(always)]
    pub(crate) fn multiple(&self, number: u64) -> Self {
        let (mut sum, negated) = (*self, self.negated());
        let (digits, highest) = signed_digits(number);
        for &digit in digits[..highest].iter().rev() {
            sum = sum.double();
            if digit != 0 {
                sum = sum.plus(if digit > 0 { self } else { &negated });
            }
        }
        sum
    }

    /// The same for an affine point.
    #[inline(always)]
    pub(crate) fn affine_multiple([x, y]: &AffineLanes<E>, one: &E, number: u64) -> Self {
        let mut sum = Self { x: *x, y: *y, z: *one };
        let negated = sum.negated().y;
        let (digits, highest) = signed_digits(number);
        for &digit in digits[..highest].iter().rev() {
            sum = sum.double();
            if digit != 0 {
                sum = sum.add_affine(x, if digit > 0 { y } else { &negated });
            }
        }
        sum
    }

    #[inline(always)]
    pub(crate) fn negated(&self) -> Self {
        Self { y: self.y.combined::<-1, 0>(&self.y), ..*self }
    }

    #[inline(always)]
    pub(crate) fn select(mask: u8, yes: &Self, no: &Self) -> Self {
        Self {
            x: E::select(mask, &yes.x, &no.x),
            y: E::select(mask, &yes.y, &no.y),
            z: E::select(mask, &yes.z, &no.z),
        }
    }
}

/// Digits 1, 0 and -1 of a number, lowest first, and the place of the highest one: its bits, or the
/// form with the fewest nonzero digits if it has fewer. That form may be longer.
fn signed_digits(number: u64) -> ([i8; 65], usize) {
    let mut digits = limbs::non_adjacent(&[number], 2);
    if digits.iter().filter(|digit| **digit != 0).count() >= number.count_ones() as usize {
        digits = core::array::from_fn(|place| i8::from(limbs::bit(&[number], place)));
    }
    let highest = digits.iter().rposition(|digit| *digit != 0).expect("a number above zero");
    (digits, highest)
}

/// Numbers of up to 64 bits in lanes, as one mask per bit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits(pub(crate) [u8; 64]);

impl Bits {
    pub(crate) fn new(numbers: &Words) -> Self {
        let mut masks = [0; 64];
        for (lane, number) in numbers.iter().enumerate() {
            for (bit, mask) in masks.iter_mut().enumerate() {
                *mask |= ((number >> bit & 1) as u8) << lane;
            }
        }
        Self(masks)
    }
}

/// Affine points in lanes.
pub(crate) type AffineLanes<E> = [E; 2];

/// `(2^n + a) P + b Q` for affine points P, Q and P + Q, in that order, and numbers of n bits, given as masks of lanes.
#[inline(always)]
pub(crate) fn double_product<E: Coordinate>(
    points: &[AffineLanes<E>; 3],
    one: &E,
    a: &[u8],
    b: &[u8],
) -> LanePoint<E> {
    let [p, q, both] = points;
    let mut sum = LanePoint { x: p[0], y: p[1], z: *one };
    for (&has_a, &has_b) in a.iter().zip(b).rev() {
        sum = sum.double();
        let x = E::select(has_b, &E::select(has_a, &both[0], &q[0]), &p[0]);
        let y = E::select(has_b, &E::select(has_a, &both[1], &q[1]), &p[1]);
        let added = sum.add_affine(&x, &y);
        sum = LanePoint::select(has_a | has_b, &added, &sum);
    }
    sum
}
