//! MuHash of many elements on 52-bit multipliers: numbers in 64 limbs of 48 bits, so that sums of
//! four limbs still fit the 52 bits that `vpmadd52` reads. Bounds: `docs/kernels/hashes.md`.

#![expect(unsafe_code, reason = "intrinsics, entry into target-feature functions")]

use core::arch::x86_64::{
    _mm512_madd52hi_epu64, _mm512_madd52lo_epu64, _mm512_set1_epi64, _mm512_srav_epi64,
};

use super::avx512::Lanes;
use super::lanes::Words;
use super::muhash::{self, Columns, Limbs, NumberWords, Numbers, Wide, muhash_entries};
use crate::num3072::{FOLD, Num3072};

/// Bits per limb.
const BITS: u32 = 48;

/// The low bits of a limb.
const MASK: u64 = (1 << BITS) - 1;

/// Compensates negative limbs, which are at least -2^13 factors.
const BIAS: u64 = 1 << 14;

/// Limb by limb, a representation of zero modulo p, less the contribution of [`BIAS`]: the sum of `2^48 - 1` over all limbs is
/// `2^3072 - 1`, which is `FOLD - 1`.
const CORRECTION: u64 = MASK - FOLD * BIAS;

muhash_entries!(Lanes48, "avx512f,avx512bw,avx512ifma");

/// Numbers in limbs of 48 bits.
pub(super) struct Lanes48;

impl Limbs for Lanes48 {
    type Vector = Lanes;
    const BITS: u32 = BITS;
    const LIMBS: usize = 64;
    const BASE: usize = 16;

    fn product(a: &[Lanes], b: &[Lanes], out: &mut [Lanes], scratch: &mut [Lanes]) {
        product(a, b, out, scratch);
    }

    #[inline(always)]
    fn split(words: &NumberWords<Lanes>, out: &mut Numbers<Lanes>) {
        let mask = Lanes::splat_64(MASK);
        for (limbs, [w0, w1, w2]) in out.as_chunks_mut::<4>().0.iter_mut().zip(words.as_chunks().0)
        {
            let second = w0.shift_right_64(48).xor(w1.shift_left_64(16));
            let third = w1.shift_right_64(32).xor(w2.shift_left_64(32));
            *limbs = [w0.and(mask), second.and(mask), third.and(mask), w2.shift_right_64(16)];
        }
    }

    /// Four columns at a time: with separate low and high halves there are eight independent sums.
    #[inline(always)]
    fn base(a: &[Lanes], b: &[Lanes], out: &mut [Lanes]) {
        let (a, b): (&[_; 16], &[_; 16]) = (a.try_into().expect("16"), b.try_into().expect("16"));
        let mut before = Lanes::splat(0);
        // Columns 0 to 15, then 16 to 30.
        for first in (0..16).step_by(4) {
            let mut sums = Sums::new();
            for i in 0..=first {
                sums.add_four(a[i], &b[first - i..]);
            }
            for i in 1..4 {
                for c in i..4 {
                    sums.add(c, a[first + i], b[c - i]);
                }
            }
            before = sums.finish(&mut out[first..], before);
        }
        for first in (16..32).step_by(4) {
            let mut sums = Sums::new();
            for i in 0..3 {
                for c in 0..=i {
                    sums.add(c, a[first - 15 + i], b[15 + c - i]);
                }
            }
            for i in first - 12..16 {
                sums.add_four(a[i], &b[first - i..]);
            }
            before = sums.finish(&mut out[first..], before);
        }
    }

    /// Limbs below 2^48 + 2^43.
    #[inline(always)]
    fn reduce(columns: &mut Columns<Lanes>, out: &mut Numbers<Lanes>) {
        let (mask, factor) = (Lanes::splat_64(MASK), Lanes::splat_64(FOLD));
        let (bias, correction) = (Lanes::splat_64(BIAS), Lanes::splat_64(CORRECTION));
        let zero = Lanes::splat(0);
        let (low, rest) = columns.split_at_mut(Self::LIMBS);
        let high = &mut rest[..Self::LIMBS];

        // One pass of independent carries; the rest of a limb is between -2^13 and 2^48 + 2^13. The top limb keeps everything.
        let carry = pass_carries(low, zero);
        let carry = pass_carries(high, carry);
        let top = &mut high[Self::LIMBS - 1];
        *top = top.add_64(carry.shift_left_64(BITS));

        // The upper half counts 2^3072 modulo p. The lowest limb of the representation of zero differs from the others.
        let mut from_below = Lanes::splat_64(1u64.wrapping_sub(FOLD));
        let mut carry = zero;
        for ((out, low), high) in out.iter_mut().zip(low).zip(high) {
            let high = high.add_64(bias);
            let sum = add_low(low.add_64(correction).add_64(from_below), factor, high);
            // The high half of the product has weight 2^52, four bits more than the next limb.
            from_below = add_high(zero, factor, high).shift_left_64(4);
            *out = sum.and(mask).add_64(carry);
            carry = sum.shift_right_64(BITS);
        }
        out[0] = add_low(out[0], factor, carry.add_64(from_below));
    }
}

/// Keeps 48 bits of each column and adds the excess of the column below; returns the excess of the last.
#[inline(always)]
fn pass_carries(columns: &mut [Lanes], mut carry: Lanes) -> Lanes {
    let mask = Lanes::splat_64(MASK);
    for column in columns {
        let above = shift_right_signed(*column, BITS);
        *column = column.and(mask).add_64(carry);
        carry = above;
    }
    carry
}

/// Low and high halves of products in four columns.
struct Sums {
    low: [Lanes; 4],
    high: [Lanes; 4],
}

impl Sums {
    #[inline(always)]
    fn new() -> Self {
        Self { low: [Lanes::splat(0); 4], high: [Lanes::splat(0); 4] }
    }

    #[inline(always)]
    fn add(&mut self, column: usize, a: Lanes, b: Lanes) {
        self.low[column] = add_low(self.low[column], a, b);
        self.high[column] = add_high(self.high[column], a, b);
    }

    /// Adds a product to each column.
    #[inline(always)]
    fn add_four(&mut self, a: Lanes, b: &[Lanes]) {
        let b: &[Lanes; 4] = b.first_chunk().expect("four limbs follow");
        self.add(0, a, b[0]);
        self.add(1, a, b[1]);
        self.add(2, a, b[2]);
        self.add(3, a, b[3]);
    }

    /// Writes four columns, given the high half of the one before; returns that of the last.
    ///
    /// A high half has weight 2^52, four bits more than the next column.
    #[inline(always)]
    fn finish(&self, out: &mut [Lanes], before: Lanes) -> Lanes {
        let out: &mut [Lanes; 4] = out.first_chunk_mut().expect("four columns follow");
        let shifted = [before, self.high[0], self.high[1], self.high[2]];
        for i in 0..4 {
            out[i] = self.low[i].add_64(shifted[i].shift_left_64(4));
        }
        self.high[3]
    }
}

/// One intrinsic as a function body.
macro_rules! intrinsic {
    ($call:expr) => {{
        // SAFETY: only code inlined into the kernels has vectors, and the kernels of this module
        // run on CPUs that have the features.
        unsafe { $call }
    }};
}

/// Adds the low half of the product of 52-bit factors.
#[inline(always)]
fn add_low(to: Lanes, a: Lanes, b: Lanes) -> Lanes {
    Lanes(intrinsic!(_mm512_madd52lo_epu64(to.0, a.0, b.0)))
}

/// Adds the high half of the product of 52-bit factors.
#[inline(always)]
fn add_high(to: Lanes, a: Lanes, b: Lanes) -> Lanes {
    Lanes(intrinsic!(_mm512_madd52hi_epu64(to.0, a.0, b.0)))
}

#[inline(always)]
fn shift_right_signed(value: Lanes, bits: u32) -> Lanes {
    Lanes(intrinsic!(_mm512_srav_epi64(value.0, _mm512_set1_epi64(bits.into()))))
}
