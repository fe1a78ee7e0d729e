//! Single recoveries in 64-bit words, variable time: for recoveries without a result in lanes.
//!
//! Formulas are complete: they handle additions of equal and opposite points. The sum uses Straus's method with digits in
//! non-adjacent form over both halves of both scalars (`lambda (x, y) = (beta x, y)`), which halves the number of doublings.

mod field;
mod point;
#[cfg(test)]
mod tests;

use assay_hash::division_steps::Modulus;

use crate::lanes::Line;
use crate::scalar::{ORDER, Scalar};
use field::Fe;
use point::{Affine, Multiples, Point};

const PRIME_FIELD: Modulus<4, 5> = Modulus::new(&field::PRIME);

const GROUP_ORDER: Modulus<4, 5> = Modulus::new(&ORDER);

/// Words of `x` and `y` of `u1 G + u2 R`, for the point R with the x coordinate and parity; `None` if there is no R or the sum is
/// infinity. `table` has the odd multiples of G from 1 on.
pub(crate) fn combine(
    x: &[u64; 4],
    is_y_odd: bool,
    u1: Scalar,
    u2: Scalar,
    table: &[Line],
) -> Option<[[u64; 4]; 2]> {
    let multiples = Multiples::new(&Affine::decompress(Fe::from_words(*x), is_y_odd)?);
    let generators = u1.halves().map(|half| Naf::new(half, table.len()));
    let others = u2.halves().map(|half| Naf::new(half, point::MULTIPLES));
    let mut sum = Point::INFINITY;
    for place in (0..PLACES).rev() {
        sum = sum.double();
        for (half, digits) in others.iter().enumerate() {
            if let Some((index, is_negative)) = digits.at(place) {
                let multiple = multiples.points[index].negate_if(is_negative).times_lambda(half);
                sum = sum.add(&multiple, None);
            }
        }
        for (half, digits) in generators.iter().enumerate() {
            if let Some((index, is_negative)) = digits.at(place) {
                let multiple = Affine::from_line(&table[index].0);
                let multiple = multiple.negate_if(is_negative).times_lambda(half);
                sum = sum.add(&multiple, Some(&multiples.scale));
            }
        }
    }
    let z = sum.z.mul(&multiples.scale).to_words();
    if z == [0; 4] {
        return None;
    }
    let inverse = Fe::from_words(PRIME_FIELD.inverse(&z));
    let square = inverse.square();
    Some([sum.x.mul(&square), sum.y.mul(&square.mul(&inverse))].map(Fe::to_words))
}

/// The inverse modulo the group order, and zero for zero.
pub(crate) fn inverse(scalar: Scalar) -> Scalar {
    Scalar(GROUP_ORDER.inverse(&scalar.0))
}

/// Halves of scalars are below 2^130, plus a carry of the digits.
const PLACES: usize = 131;

/// A half of a scalar as odd digits and zeros.
struct Naf([i16; PLACES]);

impl Naf {
    /// For digits with this number of odd magnitudes.
    fn new(half: [u64; 3], magnitudes: usize) -> Self {
        let is_negative = (half[2] as i64) < 0;
        let mut number = if is_negative { negated(half) } else { half };
        // Magnitudes are 1, 3, … to 2^(width - 1) - 1.
        let width = magnitudes.ilog2() + 2;
        let mut digits = [0; PLACES];
        let mut place = 0;
        while number != [0; 3] {
            let zeros = number[0].trailing_zeros();
            if zeros > 0 {
                let zeros = zeros.min(63);
                number = shifted(number, zeros);
                place += zeros as usize;
                continue;
            }
            let low = number[0] & ((1 << width) - 1);
            let is_above = low >> (width - 1) == 1;
            let digit = low as i16 - if is_above { 1 << width } else { 0 };
            digits[place] = if is_negative { -digit } else { digit };
            number[0] -= low;
            number = shifted(number, width);
            place += width as usize;
            if is_above {
                for word in &mut number {
                    let carry;
                    (*word, carry) = word.overflowing_add(1);
                    if !carry {
                        break;
                    }
                }
            }
        }
        Self(digits)
    }

    /// Index of the digit in a table of odd multiples, and true if it is negative.
    #[inline(always)]
    fn at(&self, place: usize) -> Option<(usize, bool)> {
        let digit = self.0[place];
        (digit != 0).then_some((usize::from(digit.unsigned_abs()) / 2, digit < 0))
    }
}

/// By 1 to 63 bits.
fn shifted([a, b, c]: [u64; 3], bits: u32) -> [u64; 3] {
    [a >> bits | b << (64 - bits), b >> bits | c << (64 - bits), c >> bits]
}

/// Of two's complement.
fn negated(number: [u64; 3]) -> [u64; 3] {
    let mut carry = true;
    number.map(|word| {
        let negated;
        (negated, carry) = (!word).overflowing_add(u64::from(carry));
        negated
    })
}
