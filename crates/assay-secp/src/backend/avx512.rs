//! Eight lanes in a register of AVX-512.

#![expect(unsafe_code, reason = "intrinsics")]

use core::arch::x86_64::{
    __m512i, _mm256_loadu_si256, _mm512_add_epi64, _mm512_and_si512, _mm512_castsi256_si512,
    _mm512_inserti64x4, _mm512_loadu_si512, _mm512_mask_blend_epi64, _mm512_or_si512,
    _mm512_set1_epi64, _mm512_shuffle_i64x2, _mm512_slli_epi64, _mm512_srli_epi64,
    _mm512_storeu_si512, _mm512_sub_epi64, _mm512_testn_epi64_mask, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi64,
};
use std::marker::PhantomData;

use super::multiplier::{Multiplier, intrinsic, intrinsics, multiplied_by};
use crate::lanes::{LANES, Lanes, Line};

/// Eight lanes with their multiplier.
#[derive(Clone, Copy)]
pub(super) struct Octet<M>(__m512i, PhantomData<M>);

#[inline(always)]
const fn octet<M>(vector: __m512i) -> Octet<M> {
    Octet(vector, PhantomData)
}

impl<M: Multiplier<__m512i>> Lanes for Octet<M> {
    const WIDTH: usize = 8;
    // SAFETY: a register may have any bits.
    const ZERO: Self = octet(unsafe { std::mem::zeroed() });

    multiplied_by!(M, octet);

    #[inline(always)]
    fn splat(word: u64) -> Self {
        octet(intrinsic!(_mm512_set1_epi64(word as i64)))
    }

    #[inline(always)]
    fn load(words: &[u64; LANES], first: usize) -> Self {
        debug_assert_eq!(first, 0);
        octet(intrinsic!(_mm512_loadu_si512(words.as_ptr().cast())))
    }

    #[inline(always)]
    fn store(self, words: &mut [u64; LANES], first: usize) {
        debug_assert_eq!(first, 0);
        intrinsic!(_mm512_storeu_si512(words.as_mut_ptr().cast(), self.0));
    }

    intrinsics! {
        octet;
        add(other): _mm512_add_epi64;
        sub(other): _mm512_sub_epi64;
        and(other): _mm512_and_si512;
        or(other): _mm512_or_si512;
    }

    #[inline(always)]
    fn shr<const BITS: u32>(self) -> Self {
        octet(intrinsic!(_mm512_srli_epi64::<BITS>(self.0)))
    }

    #[inline(always)]
    fn shl<const BITS: u32>(self) -> Self {
        octet(intrinsic!(_mm512_slli_epi64::<BITS>(self.0)))
    }

    #[inline(always)]
    fn select(mask: u8, yes: Self, no: Self) -> Self {
        octet(intrinsic!(_mm512_mask_blend_epi64(mask, no.0, yes.0)))
    }

    #[inline(always)]
    fn zeros(self) -> u8 {
        intrinsic!(_mm512_testn_epi64_mask(self.0, self.0))
    }

    #[inline(always)]
    fn load_columns<'l, const FIRST: usize>(line: &impl Fn(usize) -> &'l Line) -> [Self; 4] {
        const { assert!(FIRST == 0 || FIRST == 4) };
        let even = [
            Self::two_halves::<FIRST>(line(0), line(2)),
            Self::two_halves::<FIRST>(line(4), line(6)),
        ];
        let odd = [
            Self::two_halves::<FIRST>(line(1), line(3)),
            Self::two_halves::<FIRST>(line(5), line(7)),
        ];
        // Words 0 and 2 of four lines each, and words 1 and 3.
        let (low, low_2) = (even[0].low(odd[0]), even[1].low(odd[1]));
        let (high, high_2) = (even[0].high(odd[0]), even[1].high(odd[1]));
        [
            low.halves::<0x88>(low_2),
            high.halves::<0x88>(high_2),
            low.halves::<0xdd>(low_2),
            high.halves::<0xdd>(high_2),
        ]
    }

    #[inline(always)]
    fn transpose(columns: [Self; 8]) -> [Self; 8] {
        let [a, b, c, d, e, f, g, h] = columns;
        // Pairs of words, then of pairs, then of quadruples.
        let even = [a.low(b), c.low(d), e.low(f), g.low(h)];
        let odd = [a.high(b), c.high(d), e.high(f), g.high(h)];
        let (even, odd) = (Self::quarters(even), Self::quarters(odd));
        [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
    }

    #[inline(always)]
    fn expect_below(self, _bits: u32) {}
}

impl<M: Multiplier<__m512i>> Octet<M> {
    intrinsics! {
        octet;
        low(other): _mm512_unpacklo_epi64;
        high(other): _mm512_unpackhi_epi64;
    }

    /// Four words of each of two lines.
    #[inline(always)]
    fn two_halves<const FIRST: usize>(a: &Line, b: &Line) -> Self {
        let (a, b) = (a.0[FIRST..][..4].as_ptr(), b.0[FIRST..][..4].as_ptr());
        let a = intrinsic!(_mm256_loadu_si256(a.cast()));
        let b = intrinsic!(_mm256_loadu_si256(b.cast()));
        octet(intrinsic!(_mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b)))
    }

    /// Transposes 128-bit parts.
    #[inline(always)]
    fn quarters([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let (low, high) = (a.halves::<0x88>(b), a.halves::<0xdd>(b));
        let (low_2, high_2) = (c.halves::<0x88>(d), c.halves::<0xdd>(d));
        [
            low.halves::<0x88>(low_2),
            high.halves::<0x88>(high_2),
            low.halves::<0xdd>(low_2),
            high.halves::<0xdd>(high_2),
        ]
    }

    /// Two of the four 128-bit parts of each.
    #[inline(always)]
    fn halves<const PARTS: i32>(self, other: Self) -> Self {
        octet(intrinsic!(_mm512_shuffle_i64x2::<PARTS>(self.0, other.0)))
    }
}
