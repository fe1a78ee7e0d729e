//! The 6144-bit product of two 3072-bit numbers on 64-bit multipliers.
//!
//! Two levels of Karatsuba's method over a schoolbook product of 12 limbs: 9 * 144 = 1296
//! multiplications instead of 2304.

use crate::num3072::LIMBS;

/// The product, least significant limb first.
pub(crate) fn mul_wide(a: &[u64; LIMBS], b: &[u64; LIMBS]) -> [u64; 2 * LIMBS] {
    karatsuba(a, b, |a: &[u64; 24], b: &[u64; 24]| karatsuba(a, b, schoolbook::<12, 24>))
}

/// The product of numbers of `N` limbs from three products of half their length.
///
/// With `a = a0 + a1 B` and `b = b0 + b1 B` the middle coefficient `a0 b1 + a1 b0` equals
/// `a0 b0 + a1 b1 - (a0 - a1) (b0 - b1)`. `HALF`, `N` and `WIDE` are in the ratio 1 : 2 : 4.
#[inline]
fn karatsuba<const HALF: usize, const N: usize, const WIDE: usize>(
    a: &[u64; N],
    b: &[u64; N],
    multiply: impl Fn(&[u64; HALF], &[u64; HALF]) -> [u64; N],
) -> [u64; WIDE] {
    const { assert!(N == 2 * HALF && WIDE == 2 * N) };
    let (a, _) = a.as_chunks::<HALF>();
    let (b, _) = b.as_chunks::<HALF>();
    let low = multiply(&a[0], &b[0]);
    let high = multiply(&a[1], &b[1]);
    let (a_difference, a_negative) = difference(&a[0], &a[1]);
    let (b_difference, b_negative) = difference(&b[0], &b[1]);
    let cross = multiply(&a_difference, &b_difference);

    let mut middle = low;
    // The middle part is never negative and has at most N limbs plus one bit.
    let mut top = u64::from(add(&mut middle, &high));
    if a_negative == b_negative {
        top -= u64::from(subtract(&mut middle, &cross));
    } else {
        top += u64::from(add(&mut middle, &cross));
    }

    let mut out = [0; WIDE];
    out[..N].copy_from_slice(&low);
    out[N..].copy_from_slice(&high);
    top += u64::from(add(&mut out[HALF..HALF + N], &middle));
    for limb in &mut out[HALF + N..] {
        let (sum, overflow) = limb.overflowing_add(top);
        *limb = sum;
        top = u64::from(overflow);
    }
    out
}

/// The product row by row; `WIDE` is twice `N`.
#[inline]
fn schoolbook<const N: usize, const WIDE: usize>(a: &[u64; N], b: &[u64; N]) -> [u64; WIDE] {
    let mut out = [0; WIDE];
    for (i, &x) in a.iter().enumerate() {
        let mut carry = 0;
        for (limb, &y) in out[i..i + N].iter_mut().zip(b) {
            let sum = u128::from(x) * u128::from(y) + u128::from(*limb) + u128::from(carry);
            *limb = sum as u64;
            carry = (sum >> 64) as u64;
        }
        out[i + N] = carry;
    }
    out
}

/// `|a - b|`, and true if `a < b`.
#[inline]
fn difference<const N: usize>(a: &[u64; N], b: &[u64; N]) -> ([u64; N], bool) {
    let mut out = *a;
    let negative = subtract(&mut out, b);
    if negative {
        let mut carry = true;
        for limb in &mut out {
            (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
        }
    }
    (out, negative)
}

/// `to += x`; returns the carry.
#[inline]
fn add(to: &mut [u64], x: &[u64]) -> bool {
    let mut carry = false;
    for (limb, x) in to.iter_mut().zip(x) {
        (*limb, carry) = limb.carrying_add(*x, carry);
    }
    carry
}

/// `to -= x`; returns the borrow.
#[inline]
fn subtract(to: &mut [u64], x: &[u64]) -> bool {
    let mut borrow = false;
    for (limb, x) in to.iter_mut().zip(x) {
        (*limb, borrow) = limb.borrowing_sub(*x, borrow);
    }
    borrow
}
