//! Four lanes in a register of AVX2.

#![expect(unsafe_code, reason = "intrinsics")]

use core::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm256_add_epi64, _mm256_and_si256, _mm256_blendv_epi8,
    _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_movemask_pd,
    _mm256_or_si256, _mm256_permute2x128_si256, _mm256_set1_epi64x, _mm256_setzero_si256,
    _mm256_sll_epi64, _mm256_srl_epi64, _mm256_storeu_si256, _mm256_sub_epi64,
    _mm256_unpackhi_epi64, _mm256_unpacklo_epi64,
};
use std::marker::PhantomData;

use super::multiplier::{Multiplier, intrinsic, intrinsics, multiplied_by};
use crate::lanes::{LANES, Lanes, Line};

/// Four lanes with their multiplier.
#[derive(Clone, Copy)]
pub(super) struct Quad<M>(__m256i, PhantomData<M>);

/// Masks of bits as masks of lanes.
static LANES_OF_MASK: [[u64; 4]; 16] = {
    let mut masks = [[0; 4]; 16];
    let mut place = 0;
    while place < 64 {
        if ((place / 4) >> (place % 4)) & 1 == 1 {
            masks[place / 4][place % 4] = u64::MAX;
        }
        place += 1;
    }
    masks
};

#[inline(always)]
const fn quad<M>(vector: __m256i) -> Quad<M> {
    Quad(vector, PhantomData)
}

impl<M: Multiplier<__m256i>> Lanes for Quad<M> {
    const WIDTH: usize = 4;
    // SAFETY: a register may have any bits.
    const ZERO: Self = quad(unsafe { std::mem::zeroed() });

    multiplied_by!(M, quad);

    #[inline(always)]
    fn splat(word: u64) -> Self {
        quad(intrinsic!(_mm256_set1_epi64x(word as i64)))
    }

    #[inline(always)]
    fn load(words: &[u64; LANES], first: usize) -> Self {
        Self::read(&words[first..])
    }

    #[inline(always)]
    fn store(self, words: &mut [u64; LANES], first: usize) {
        let words = words[first..][..4].as_mut_ptr();
        intrinsic!(_mm256_storeu_si256(words.cast(), self.0));
    }

    intrinsics! {
        quad;
        add(other): _mm256_add_epi64;
        sub(other): _mm256_sub_epi64;
        and(other): _mm256_and_si256;
        or(other): _mm256_or_si256;
    }

    #[inline(always)]
    fn shr<const BITS: u32>(self) -> Self {
        // Of the two shift intrinsics this one accepts any count; the compiler makes it a constant.
        let count = intrinsic!(_mm_cvtsi32_si128(BITS as i32));
        quad(intrinsic!(_mm256_srl_epi64(self.0, count)))
    }

    #[inline(always)]
    fn shl<const BITS: u32>(self) -> Self {
        let count = intrinsic!(_mm_cvtsi32_si128(BITS as i32));
        quad(intrinsic!(_mm256_sll_epi64(self.0, count)))
    }

    #[inline(always)]
    fn select(mask: u8, yes: Self, no: Self) -> Self {
        let mask = Self::read(&LANES_OF_MASK[usize::from(mask & Self::ALL)]);
        quad(intrinsic!(_mm256_blendv_epi8(no.0, yes.0, mask.0)))
    }

    #[inline(always)]
    fn zeros(self) -> u8 {
        let mask = intrinsic!(_mm256_cmpeq_epi64(self.0, _mm256_setzero_si256()));
        intrinsic!(_mm256_movemask_pd(_mm256_castsi256_pd(mask))) as u8
    }

    #[inline(always)]
    fn load_columns<'l, const FIRST: usize>(line: &impl Fn(usize) -> &'l Line) -> [Self; 4] {
        Self::square([
            Self::read(&line(0).0[FIRST..]),
            Self::read(&line(1).0[FIRST..]),
            Self::read(&line(2).0[FIRST..]),
            Self::read(&line(3).0[FIRST..]),
        ])
    }

    #[inline(always)]
    fn transpose(columns: [Self; 8]) -> [Self; 8] {
        let [a, b, c, d, e, f, g, h] = columns;
        let (first, second) = (Self::square([a, b, c, d]), Self::square([e, f, g, h]));
        [first[0], second[0], first[1], second[1], first[2], second[2], first[3], second[3]]
    }

    #[inline(always)]
    fn expect_below(self, _bits: u32) {}
}

impl<M: Multiplier<__m256i>> Quad<M> {
    #[inline(always)]
    fn read(words: &[u64]) -> Self {
        quad(intrinsic!(_mm256_loadu_si256(words[..4].as_ptr().cast())))
    }

    /// Transposes four by four words.
    #[inline(always)]
    fn square([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let (even, even_2) = (a.low(b), c.low(d));
        let (odd, odd_2) = (a.high(b), c.high(d));
        [
            even.halves::<0x20>(even_2),
            odd.halves::<0x20>(odd_2),
            even.halves::<0x31>(even_2),
            odd.halves::<0x31>(odd_2),
        ]
    }

    intrinsics! {
        quad;
        low(other): _mm256_unpacklo_epi64;
        high(other): _mm256_unpackhi_epi64;
    }

    /// One half of each.
    #[inline(always)]
    fn halves<const PARTS: i32>(self, other: Self) -> Self {
        quad(intrinsic!(_mm256_permute2x128_si256::<PARTS>(self.0, other.0)))
    }
}
