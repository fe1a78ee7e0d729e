//! Numbers of several 64-bit limbs, least significant first, for the derivation of constants.
//!
//! Everything here may run at compile time. Nothing is constant time.

/// A published number of at most 16 N hexadecimal digits.
pub(crate) const fn from_hex<const N: usize>(digits: &str) -> [u64; N] {
    let (digits, mut limbs, mut i) = (digits.as_bytes(), [0; N], 0);
    while i < digits.len() {
        let digit = match digits[digits.len() - 1 - i] {
            digit @ b'0'..=b'9' => digit - b'0',
            digit @ b'a'..=b'f' => digit - b'a' + 10,
            _ => panic!("no hexadecimal digit"),
        };
        limbs[i / 16] |= (digit as u64) << (4 * (i % 16));
        i += 1;
    }
    limbs
}

/// `a + b + carry` as the low word and the carry.
#[inline(always)]
pub(crate) const fn add_carry(a: u64, b: u64, carry: u64) -> (u64, u64) {
    let sum = a as u128 + b as u128 + carry as u128;
    (sum as u64, (sum >> 64) as u64)
}

/// `a - b - borrow` as the low word and the borrow, 0 or 1.
#[inline(always)]
pub(crate) const fn sub_borrow(a: u64, b: u64, borrow: u64) -> (u64, u64) {
    let difference = (a as u128).wrapping_sub(b as u128).wrapping_sub(borrow as u128);
    (difference as u64, (difference >> 127) as u64)
}

/// `a + b c + carry` as the low and the high word.
#[inline(always)]
pub(crate) const fn multiply_add(a: u64, b: u64, c: u64, carry: u64) -> (u64, u64) {
    let sum = a as u128 + b as u128 * c as u128 + carry as u128;
    (sum as u64, (sum >> 64) as u64)
}

/// The sum modulo 2^(64 N), and true on overflow.
#[inline(always)]
pub(crate) const fn add<const N: usize>(a: &[u64; N], b: &[u64; N]) -> ([u64; N], bool) {
    let (mut sum, mut carry, mut i) = ([0; N], 0, 0);
    while i < N {
        (sum[i], carry) = add_carry(a[i], b[i], carry);
        i += 1;
    }
    (sum, carry != 0)
}

/// The difference modulo 2^(64 N), and true if it is negative.
#[inline(always)]
pub(crate) const fn sub<const N: usize>(a: &[u64; N], b: &[u64; N]) -> ([u64; N], bool) {
    let (mut difference, mut borrow, mut i) = ([0; N], 0, 0);
    while i < N {
        (difference[i], borrow) = sub_borrow(a[i], b[i], borrow);
        i += 1;
    }
    (difference, borrow != 0)
}

#[inline(always)]
pub(crate) const fn less<const N: usize>(a: &[u64; N], b: &[u64; N]) -> bool {
    sub(a, b).1
}

pub(crate) const fn half<const N: usize>(a: &[u64; N]) -> [u64; N] {
    let (mut half, mut i) = ([0; N], 0);
    while i < N {
        let above = if i + 1 < N { a[i + 1] << 63 } else { 0 };
        half[i] = a[i] >> 1 | above;
        i += 1;
    }
    half
}

/// `a + small`, which must be below 2^(64 N).
pub(crate) const fn plus_small<const N: usize>(a: &[u64; N], small: u64) -> [u64; N] {
    let mut other = [0; N];
    other[0] = small;
    let (sum, is_above) = add(a, &other);
    assert!(!is_above);
    sum
}

/// `a - small`, which must not be below zero.
pub(crate) const fn minus_small<const N: usize>(a: &[u64; N], small: u64) -> [u64; N] {
    let mut other = [0; N];
    other[0] = small;
    let (difference, is_below) = sub(a, &other);
    assert!(!is_below);
    difference
}

/// Quotient and remainder by a small number.
pub(crate) const fn divide_small<const N: usize>(a: &[u64; N], by: u64) -> ([u64; N], u64) {
    let (mut quotient, mut rest, mut i) = ([0; N], 0u64, N);
    while i > 0 {
        i -= 1;
        let part = (rest as u128) << 64 | a[i] as u128;
        quotient[i] = (part / by as u128) as u64;
        rest = (part % by as u128) as u64;
    }
    (quotient, rest)
}

/// Bit `index`; zero above the highest limb.
#[inline(always)]
pub(crate) const fn bit(a: &[u64], index: usize) -> bool {
    index / 64 < a.len() && a[index / 64] >> (index % 64) & 1 == 1
}

pub(crate) const fn bits(a: &[u64]) -> usize {
    let mut i = a.len();
    while i > 0 {
        i -= 1;
        if a[i] != 0 {
            return 64 * i + 64 - a[i].leading_zeros() as usize;
        }
    }
    0
}

/// Digits of a number, lowest first, that are zero, or odd and below `2^(width - 1)` in magnitude
/// with at least width - 1 zeros after each (non-adjacent form of that width, from 2 to 8). One
/// more place than the number has bits is enough.
pub(crate) fn non_adjacent<const PLACES: usize>(number: &[u64], width: usize) -> [i8; PLACES] {
    let mut digits = [0; PLACES];
    let (mut place, mut carry) = (0, false);
    while place < PLACES {
        if bit(number, place) == carry {
            place += 1;
            continue;
        }
        let bits = (0..width).rev().fold(0, |sum, k| sum << 1 | i16::from(bit(number, place + k)));
        let window = bits + i16::from(carry);
        carry = window >= 1 << (width - 1);
        digits[place] = (window - (i16::from(carry) << width)) as i8;
        place += width;
    }
    digits
}

/// `2^exponent mod modulus` by doubling; the modulus must have its highest bit clear.
pub(crate) const fn power_of_two<const N: usize>(exponent: usize, modulus: &[u64; N]) -> [u64; N] {
    let mut power = [0; N];
    power[0] = 1;
    let mut i = 0;
    while i < exponent {
        let (twice, _) = add(&power, &power);
        let (reduced, is_below) = sub(&twice, modulus);
        power = if is_below { twice } else { reduced };
        i += 1;
    }
    power
}

/// `-1 / a mod 2^64` for odd `a`.
#[expect(clippy::cast_possible_truncation, reason = "the lowest word is meant")]
pub(crate) const fn negated_inverse_64(a: u64) -> u64 {
    negated_inverse_128(a as u128) as u64
}

/// `-1 / a mod 2^128` for odd `a`, by Newton's iteration.
pub(crate) const fn negated_inverse_128(a: u128) -> u128 {
    let (mut inverse, mut i) = (1u128, 0);
    while i < 7 {
        inverse = inverse.wrapping_mul(2u128.wrapping_sub(a.wrapping_mul(inverse)));
        i += 1;
    }
    inverse.wrapping_neg()
}

/// The limbs of a big-endian number; the slice has 8 N bytes.
pub(crate) fn from_be_bytes<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut limbs = [0; N];
    for (limb, word) in limbs.iter_mut().zip(bytes.rchunks_exact(8)) {
        *limb = word.iter().fold(0, |limb, byte| limb << 8 | u64::from(*byte));
    }
    limbs
}

/// Writes the limbs as a big-endian number of 8 N bytes.
pub(crate) fn to_be_bytes<const N: usize>(limbs: &[u64; N], bytes: &mut [u8]) {
    for (limb, word) in limbs.iter().zip(bytes.rchunks_exact_mut(8)) {
        word.copy_from_slice(&limb.to_be_bytes());
    }
}
