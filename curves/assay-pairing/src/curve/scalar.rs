//! Products of points and numbers split by an endomorphism: several short numbers at once (Straus's
//! method), with digits in non-adjacent form.

use super::{Affine, Curve, Jacobian};
use crate::limbs;

/// Bits of a digit; digits are odd and below 2^(WIDTH - 1) in magnitude.
const WIDTH: usize = 5;

/// Odd multiples: 1, 3, 5 and so on.
type Multiples<C> = [Jacobian<C>; 1 << (WIDTH - 2)];

/// Number of digits of numbers below 2^129.
const PLACES: usize = 130;

/// A number of at most 129 bits and its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Short {
    pub(super) magnitude: u128,
    pub(super) is_negative: bool,
}

impl Short {
    pub(super) const ZERO: Self = Self::new(0);

    pub(super) const fn new(magnitude: u128) -> Self {
        Self { magnitude, is_negative: false }
    }

    /// Digits of the width-w non-adjacent form, least significant first.
    fn digits(self) -> [i8; PLACES] {
        let number = [self.magnitude as u64, (self.magnitude >> 64) as u64];
        let digits = limbs::non_adjacent(&number, WIDTH);
        if self.is_negative { digits.map(|digit: i8| -digit) } else { digits }
    }
}

fn odd_multiples<C: Curve>(point: &Jacobian<C>) -> Multiples<C> {
    let twice = point.double();
    let mut multiples = [*point; 1 << (WIDTH - 2)];
    for k in 1..multiples.len() {
        multiples[k] = multiples[k - 1] + twice;
    }
    multiples
}

/// Product of a point of the group and a number.
pub(super) fn product<C: Curve>(point: &Jacobian<C>, scalar: &[u64; 4]) -> Jacobian<C> {
    let digits = C::split(&reduced(scalar, &C::ORDER)).map(Short::digits);
    let mut multiples = [odd_multiples(point); 4];
    for part in 1..C::PARTS {
        multiples[part] = multiples[part - 1].map(|multiple| C::times_lambda(&multiple));
    }
    let parts = || digits.iter().zip(&multiples).take(C::PARTS);
    let mut sum = Jacobian::INFINITY;
    for place in (0..PLACES).rev() {
        if !sum.is_infinity() {
            sum = sum.double();
        }
        for (digits, multiples) in parts() {
            let digit = digits[place];
            if digit != 0 {
                let multiple = multiples[usize::from(digit.unsigned_abs()) / 2];
                sum = sum + if digit < 0 { -multiple } else { multiple };
            }
        }
    }
    sum
}

/// Product of any point of the curve and a number that is not sparse.
pub(super) fn by_windows<C: Curve>(point: &Jacobian<C>, number: u64) -> Jacobian<C> {
    let multiples = odd_multiples(point);
    let digits = Short::new(u128::from(number)).digits();
    digits.iter().rev().fold(Jacobian::INFINITY, |sum, &digit| {
        let twice = if sum.is_infinity() { sum } else { sum.double() };
        let multiple = multiples[usize::from(digit.unsigned_abs()) / 2];
        match digit {
            0 => twice,
            1.. => twice + multiple,
            _ => twice + -multiple,
        }
    })
}

/// Odd multiples of a part of a number, and its digits.
type Part<C> = (Vec<Affine<C>>, [i8; PLACES]);

/// Sum of the products of few points of the group and numbers, with common doublings.
pub(crate) fn sum_of_few<C: Curve>(points: &[Affine<C>], scalars: &[[u64; 4]]) -> Jacobian<C> {
    if let ([point], [scalar]) = (points, scalars) {
        return point.multiply(scalar);
    }
    let multiples: Vec<_> =
        points.iter().flat_map(|point| odd_multiples(&Jacobian::from(*point))).collect();
    let multiples = Jacobian::all_to_affine(&multiples);
    let mut parts: Vec<Part<C>> = Vec::with_capacity(C::PARTS * points.len());
    for (multiples, scalar) in multiples.chunks_exact(1 << (WIDTH - 2)).zip(scalars) {
        let mut multiples = multiples.to_vec();
        for (part, number) in
            C::split(&reduced(scalar, &C::ORDER)).iter().take(C::PARTS).enumerate()
        {
            if part != 0 {
                for multiple in &mut multiples {
                    *multiple = image(multiple);
                }
            }
            parts.push((multiples.clone(), number.digits()));
        }
    }
    let mut sum = Jacobian::INFINITY;
    for place in (0..PLACES).rev() {
        if !sum.is_infinity() {
            sum = sum.double();
        }
        for (multiples, digits) in &parts {
            let digit = digits[place];
            if digit != 0 {
                let multiple = &multiples[usize::from(digit.unsigned_abs()) / 2];
                sum = sum.add_affine(&if digit < 0 { -*multiple } else { *multiple });
            }
        }
    }
    sum
}

/// The endomorphism on affine points.
fn image<C: Curve>(point: &Affine<C>) -> Affine<C> {
    if point.is_infinity {
        return *point;
    }
    let image = C::times_lambda(&(*point).into());
    Affine::new(image.x, image.y)
}

/// Points and numbers of [`Curve::PART_BITS`] bits with the same sum of products, [`Curve::PARTS`] times as many.
pub(crate) fn parts<C: Curve>(
    points: &[Affine<C>],
    scalars: &[[u64; 4]],
) -> (Vec<Affine<C>>, Vec<[u64; 4]>) {
    let mut all = (Vec::new(), Vec::new());
    for (point, scalar) in points.iter().zip(scalars) {
        let mut point = *point;
        for (part, number) in
            C::split(&reduced(scalar, &C::ORDER)).iter().take(C::PARTS).enumerate()
        {
            if part != 0 {
                point = image(&point);
            }
            all.0.push(if number.is_negative { -point } else { point });
            all.1.push([number.magnitude as u64, (number.magnitude >> 64) as u64, 0, 0]);
        }
    }
    all
}

/// Quotient, below 2^192, and remainder by a number below 2^128, bit by bit from the quotient's top.
pub(super) fn divide(number: &[u64; 4], by: u128) -> ([u64; 4], u128) {
    let (mut quotient, mut rest) = ([0; 4], 0u128);
    for index in (0..limbs::bits(number)).rev() {
        let is_above = rest >> 127 == 1;
        rest = rest << 1 | u128::from(limbs::bit(number, index));
        if is_above || rest >= by {
            rest = rest.wrapping_sub(by);
            quotient[index / 64] |= 1 << (index % 64);
        }
    }
    (quotient, rest)
}

/// Quotient and remainder of a number below the fourth power of x by its square, which is below 2^128.
pub(crate) fn divide_by_square(number: &[u64; 4], square: u128) -> (u128, u128) {
    let (quotient, rest) = divide(number, square);
    (low(&quotient), rest)
}

/// A number of at most 128 bits.
pub(super) fn low(limbs: &[u64; 4]) -> u128 {
    debug_assert!(limbs[2] == 0 && limbs[3] == 0);
    u128::from(limbs[1]) << 64 | u128::from(limbs[0])
}

/// The number modulo the order.
pub(super) fn reduced(number: &[u64; 4], order: &[u64; 4]) -> [u64; 4] {
    let mut number = *number;
    while !limbs::less(&number, order) {
        number = limbs::sub(&number, order).0;
    }
    number
}
