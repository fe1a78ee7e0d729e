//! Modular exponentiation with a modulus known at run time only, odd (Montgomery) or even (by its
//! odd part and its power of two). Variable time.

#[cfg(test)]
mod tests;

use crate::limbs::{add_carry, multiply_add, negated_inverse_64, sub_borrow};

/// A number as limbs, least significant first; leading zeros are allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Natural(Vec<u64>);

impl Natural {
    pub(super) fn from_be_bytes(bytes: &[u8]) -> Self {
        let limb = |bytes: &[u8]| bytes.iter().fold(0, |limb, byte| limb << 8 | u64::from(*byte));
        Self(bytes.rchunks(8).map(limb).collect())
    }

    /// Writes the low bytes of the number, padded with zeros.
    pub(super) fn write_be_bytes(&self, bytes: &mut [u8]) {
        for (bytes, limb) in bytes.rchunks_mut(8).zip(&self.0) {
            let limb = limb.to_be_bytes();
            bytes.copy_from_slice(&limb[8 - bytes.len()..]);
        }
    }

    pub(super) fn is_zero(&self) -> bool {
        self.0.iter().all(|limb| *limb == 0)
    }

    fn trimmed(mut self) -> Self {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    fn trailing_zeros(&self) -> usize {
        let limb = self.0.iter().position(|limb| *limb != 0).expect("not zero");
        64 * limb + self.0[limb].trailing_zeros() as usize
    }

    fn shifted_right(&self, bits: usize) -> Self {
        let (skip, bits) = (bits / 64, bits % 64);
        let limb = |i: usize| {
            let above = self.0.get(i + 1).copied().unwrap_or(0);
            if bits == 0 { self.0[i] } else { self.0[i] >> bits | above << (64 - bits) }
        };
        Self((skip..self.0.len()).map(limb).collect()).trimmed()
    }

    /// The lowest bits, in as few limbs as possible.
    fn low_bits(&self, bits: usize) -> Self {
        let mut limbs = self.0.clone();
        limbs.resize(bits.div_ceil(64), 0);
        if !bits.is_multiple_of(64)
            && let Some(top) = limbs.last_mut()
        {
            *top &= (1 << (bits % 64)) - 1;
        }
        Self(limbs)
    }
}

/// `base^exponent mod modulus` for a nonzero modulus; the exponent is big-endian.
pub(super) fn power(base: &Natural, exponent: &[u8], modulus: &Natural) -> Natural {
    let twos = modulus.trailing_zeros();
    let odd = modulus.shifted_right(twos);
    let of_odd = match odd.0[..] {
        [1] => Natural(vec![0]),
        _ => power_modulo_odd(base, exponent, &odd.0),
    };
    if twos == 0 {
        return of_odd;
    }
    // Garner: x = x_odd + odd ((x_twos - x_odd) / odd mod 2^twos).
    let of_twos = power_modulo_two(&base.low_bits(twos), exponent, twos);
    let mut difference = of_twos.0;
    subtract_low(&mut difference, &of_odd.0);
    let inverse = inverse_modulo_two(&odd.0, difference.len());
    let mut factor = vec![0; difference.len()];
    multiply_low(&mut factor, &difference, &inverse);
    let factor = Natural(factor).low_bits(twos);
    let mut result = vec![0; odd.0.len() + factor.0.len() + 1];
    result[..of_odd.0.len()].copy_from_slice(&of_odd.0);
    for (i, limb) in factor.0.iter().enumerate() {
        let carry = add_product(&mut result[i..i + odd.0.len()], *limb, &odd.0);
        let top = i + odd.0.len();
        (result[top], _) = add_carry(result[top], carry, 0);
    }
    Natural(result)
}

/// Steps of a window method over an exponent: a window, or a single squaring.
struct Windows<'e> {
    exponent: &'e [u8],
    width: usize,
}

impl<'e> Windows<'e> {
    fn new(exponent: &'e [u8]) -> Self {
        let first = exponent.iter().position(|byte| *byte != 0).unwrap_or(exponent.len());
        let exponent = &exponent[first..];
        let width = match 8 * exponent.len() {
            0..=24 => 1,
            25..=80 => 3,
            81..=256 => 4,
            257..=768 => 5,
            _ => 6,
        };
        Self { exponent, width }
    }

    fn bit(&self, index: usize) -> bool {
        self.exponent[self.exponent.len() - 1 - index / 8] >> (index % 8) & 1 == 1
    }

    /// Number of odd multiples that windows need.
    fn table_length(&self) -> usize {
        1 << (self.width - 1)
    }

    /// Calls back with a number of squarings, and the index of the table entry to multiply by afterwards, if any.
    fn each(&self, mut call: impl FnMut(usize, Option<usize>)) {
        let mut next = 8 * self.exponent.len();
        let mut squarings = 0;
        while next > 0 {
            if !self.bit(next - 1) {
                (next, squarings) = (next - 1, squarings + 1);
                continue;
            }
            // The window ends in a set bit.
            let mut end = next.saturating_sub(self.width);
            while !self.bit(end) {
                end += 1;
            }
            let window =
                (end..next).rev().fold(0, |window, i| window << 1 | usize::from(self.bit(i)));
            call(squarings + next - end, Some(window / 2));
            (next, squarings) = (end, 0);
        }
        if squarings > 0 {
            call(squarings, None);
        }
    }
}

/// Power for an odd modulus above one, without leading zeros.
fn power_modulo_odd(base: &Natural, exponent: &[u8], modulus: &[u64]) -> Natural {
    let size = modulus.len();
    let mut montgomery = Montgomery::new(modulus);
    let base = montgomery.reduced(&base.0);
    let windows = Windows::new(exponent);
    let mut table = vec![base; windows.table_length()];
    if table.len() > 1 {
        let square = montgomery.product(&table[0], &table[0]);
        for k in 1..table.len() {
            table[k] = montgomery.product(&table[k - 1], &square);
        }
    }
    let mut result: Option<Vec<u64>> = None;
    windows.each(|squarings, factor| {
        let Some(power) = &mut result else {
            result = factor.map(|factor| table[factor].clone());
            return;
        };
        for _ in 0..squarings {
            montgomery.square_in_place(power);
        }
        if let Some(factor) = factor {
            montgomery.multiply_in_place(power, &table[factor]);
        }
    });
    let result = result.unwrap_or_else(|| montgomery.one.clone());
    let mut one = vec![0; size];
    one[0] = 1;
    Natural(montgomery.product(&result, &one))
}

/// An odd modulus with the constants of Montgomery multiplication.
struct Montgomery<'m> {
    modulus: &'m [u64],
    negated_inverse: u64,
    /// R modulo the modulus.
    one: Vec<u64>,
    /// R^2 modulo the modulus.
    square: Vec<u64>,
    /// Buffer of two numbers and a limb.
    wide: Vec<u64>,
}

impl<'m> Montgomery<'m> {
    fn new(modulus: &'m [u64]) -> Self {
        let size = modulus.len();
        let mut this = Self {
            modulus,
            negated_inverse: negated_inverse_64(modulus[0]),
            one: Vec::new(),
            square: Vec::new(),
            wide: vec![0; 2 * size + 1],
        };
        // The power of two above the modulus minus the modulus, doubled up to R.
        let spare = modulus[size - 1].leading_zeros();
        let mut one = vec![0; size];
        if spare > 0 {
            one[size - 1] = 1 << (64 - spare);
        }
        subtract_low(&mut one, modulus);
        (0..spare).for_each(|_| this.double(&mut one));
        // R 2^k is 2^k in Montgomery form, and its square is 2^(2 k). From the highest bits of 64 n down.
        let target = 64 * size;
        let mut power = one.clone();
        for bit in (0..usize::BITS - target.leading_zeros()).rev() {
            this.square_in_place(&mut power);
            if target >> bit & 1 == 1 {
                this.double(&mut power);
            }
        }
        (this.one, this.square) = (one, power);
        this
    }

    fn double(&self, number: &mut [u64]) {
        let is_above = number[number.len() - 1] >> 63 == 1;
        for i in (0..number.len()).rev() {
            number[i] = number[i] << 1 | if i > 0 { number[i - 1] >> 63 } else { 0 };
        }
        if is_above || !is_less(number, self.modulus) {
            subtract_low(number, self.modulus);
        }
    }

    /// Converts any number to Montgomery form.
    fn reduced(&mut self, number: &[u64]) -> Vec<u64> {
        let size = self.modulus.len();
        let mut sum = vec![0; size];
        for chunk in number.chunks(size).rev() {
            // The accumulator times R, which is R^2 in Montgomery form, plus the part times R.
            let square = core::mem::take(&mut self.square);
            self.multiply_in_place(&mut sum, &square);
            let mut part = chunk.to_vec();
            part.resize(size, 0);
            self.multiply_in_place(&mut part, &square);
            self.square = square;
            let mut carry = 0;
            for (sum, part) in sum.iter_mut().zip(&part) {
                (*sum, carry) = add_carry(*sum, *part, carry);
            }
            if carry == 1 || !is_less(&sum, self.modulus) {
                subtract_low(&mut sum, self.modulus);
            }
        }
        sum
    }

    fn product(&mut self, a: &[u64], b: &[u64]) -> Vec<u64> {
        let mut product = a.to_vec();
        self.multiply_in_place(&mut product, b);
        product
    }

    /// Product; one factor may be above the modulus.
    fn multiply_in_place(&mut self, a: &mut [u64], b: &[u64]) {
        let size = a.len();
        self.wide.fill(0);
        for (i, limb) in b.iter().enumerate() {
            self.wide[i + size] = add_product(&mut self.wide[i..i + size], *limb, a);
        }
        self.reduce_into(a);
    }

    fn square_in_place(&mut self, a: &mut [u64]) {
        let size = a.len();
        self.wide.fill(0);
        // Products of different limbs are computed once and doubled; then the squares are added.
        for i in 0..size {
            self.wide[i + size] =
                add_product(&mut self.wide[2 * i + 1..i + size], a[i], &a[i + 1..]);
        }
        let (mut above, mut carry) = (0, 0);
        for (limb, pair) in a.iter().zip(self.wide.chunks_exact_mut(2)) {
            let (low, high) = (pair[0] << 1 | above, pair[1] << 1 | pair[0] >> 63);
            above = pair[1] >> 63;
            let square = u128::from(*limb) * u128::from(*limb);
            (pair[0], carry) = add_carry(low, square as u64, carry);
            (pair[1], carry) = add_carry(high, (square >> 64) as u64, carry);
        }
        self.reduce_into(a);
    }

    /// Divides `wide`, below R times the modulus, by R.
    fn reduce_into(&mut self, out: &mut [u64]) {
        let size = out.len();
        let mut above = 0;
        for i in 0..size {
            let quotient = self.wide[i].wrapping_mul(self.negated_inverse);
            let carry = add_product(&mut self.wide[i..i + size], quotient, self.modulus);
            (self.wide[i + size], above) = add_carry(self.wide[i + size], carry, above);
        }
        out.copy_from_slice(&self.wide[size..2 * size]);
        if above == 1 || !is_less(out, self.modulus) {
            subtract_low(out, self.modulus);
        }
    }
}

/// Adds the product of a limb and a number to as many limbs, and returns the carry.
#[inline]
fn add_product(sum: &mut [u64], limb: u64, number: &[u64]) -> u64 {
    let mut carry = 0;
    let (sums, sums_left) = sum.as_chunks_mut::<4>();
    let (numbers, numbers_left) = number.as_chunks::<4>();
    for (sum, number) in sums.iter_mut().zip(numbers) {
        for k in 0..4 {
            (sum[k], carry) = multiply_add(sum[k], limb, number[k], carry);
        }
    }
    for (sum, number) in sums_left.iter_mut().zip(numbers_left) {
        (*sum, carry) = multiply_add(*sum, limb, *number, carry);
    }
    carry
}

/// True if `a < b`, for equal lengths.
fn is_less(a: &[u64], b: &[u64]) -> bool {
    a.iter().rev().lt(b.iter().rev())
}

/// `a - b` modulo 2^64 to the length of a; b is truncated.
fn subtract_low(a: &mut [u64], b: &[u64]) {
    let mut borrow = 0;
    for (i, limb) in a.iter_mut().enumerate() {
        (*limb, borrow) = sub_borrow(*limb, b.get(i).copied().unwrap_or(0), borrow);
    }
}

/// The lowest limbs of a product, as many as `out` has, which must be zero.
fn multiply_low(out: &mut [u64], a: &[u64], b: &[u64]) {
    for (i, limb) in a.iter().enumerate().take(out.len()) {
        let count = (out.len() - i).min(b.len());
        let carry = add_product(&mut out[i..i + count], *limb, &b[..count]);
        if let Some(next) = out.get_mut(i + count) {
            *next = carry;
        }
    }
}

/// `1 / odd` modulo 2^64 to this length, by Newton's iteration, which doubles the number of correct bits.
fn inverse_modulo_two(odd: &[u64], length: usize) -> Vec<u64> {
    let mut inverse = vec![negated_inverse_64(odd[0]).wrapping_neg()];
    while inverse.len() < length {
        let size = (2 * inverse.len()).min(length);
        let mut product = vec![0; size];
        multiply_low(&mut product, &inverse, odd);
        // 2 - product.
        let mut two = vec![0; size];
        two[0] = 2;
        subtract_low(&mut two, &product);
        let mut next = vec![0; size];
        multiply_low(&mut next, &inverse, &two);
        inverse = next;
    }
    inverse
}

fn power_modulo_two(base: &Natural, exponent: &[u8], bits: usize) -> Natural {
    let size = bits.div_ceil(64);
    let product = |a: &[u64], b: &[u64]| {
        let mut product = vec![0; size];
        multiply_low(&mut product, a, b);
        product
    };
    let windows = Windows::new(exponent);
    let mut table = vec![base.0.clone(); windows.table_length()];
    if table.len() > 1 {
        let square = product(&base.0, &base.0);
        for k in 1..table.len() {
            table[k] = product(&table[k - 1], &square);
        }
    }
    let mut result: Option<Vec<u64>> = None;
    windows.each(|squarings, factor| {
        let Some(power) = &mut result else {
            result = factor.map(|factor| table[factor].clone());
            return;
        };
        for _ in 0..squarings {
            *power = product(power, power);
        }
        if let Some(factor) = factor {
            *power = product(power, &table[factor]);
        }
    });
    let one = || {
        let mut one = vec![0; size];
        one[0] = 1;
        one
    };
    Natural(result.unwrap_or_else(one)).low_bits(bits)
}
