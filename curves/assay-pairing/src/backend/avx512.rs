//! Eight lanes in an AVX-512 register, with IFMA multiplication.

#![expect(unsafe_code, reason = "intrinsics")]

use core::arch::x86_64::{
    __m512i, _MM_HINT_T0, _mm_prefetch, _mm512_add_epi64, _mm512_and_si512,
    _mm512_cmpeq_epi64_mask, _mm512_cmplt_epi64_mask, _mm512_loadu_si512, _mm512_madd52hi_epu64,
    _mm512_madd52lo_epu64, _mm512_mask_add_epi64, _mm512_mask_blend_epi64, _mm512_or_si512,
    _mm512_permutex2var_epi64, _mm512_set1_epi64, _mm512_shuffle_i64x2, _mm512_slli_epi64,
    _mm512_srai_epi64, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi64,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};

use crate::lanes::{LANES, Lanes, Task, Words};

/// Calls an intrinsic as a safe expression.
macro_rules! intrinsic {
    ($call:expr) => {{
        // SAFETY: vectors are used in code that is inlined into `x86::run`, whose caller has checked the CPU for the
        // features (`Lanes::run`); memory operands are references to the 64 bytes that the instruction reads or writes.
        unsafe { $call }
    }};
}

/// Methods of a vector that are one intrinsic each.
macro_rules! intrinsics {
    ($($name:ident($($operand:ident),+): $intrinsic:path;)+) => {$(
        #[inline(always)]
        fn $name(self, $($operand: Self),+) -> Self {
            Self(intrinsic!($intrinsic(self.0, $($operand.0),+)))
        }
    )+};
}

/// Eight lanes.
#[derive(Clone, Copy)]
pub(crate) struct Ifma(__m512i);

impl Ifma {
    intrinsics! {
        low(other): _mm512_unpacklo_epi64;
        high(other): _mm512_unpackhi_epi64;
    }

    /// Selects two of the four 128-bit parts of each.
    #[inline(always)]
    fn halves<const PARTS: i32>(self, other: Self) -> Self {
        Self(intrinsic!(_mm512_shuffle_i64x2::<PARTS>(self.0, other.0)))
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

    #[inline(always)]
    fn transposed([a, b, c, d, e, f, g, h]: [Self; 8]) -> [Self; 8] {
        let even = Self::quarters([a.low(b), c.low(d), e.low(f), g.low(h)]);
        let odd = Self::quarters([a.high(b), c.high(d), e.high(f), g.high(h)]);
        [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
    }
}

impl Lanes for Ifma {
    #[inline(always)]
    fn splat(word: u64) -> Self {
        Self(intrinsic!(_mm512_set1_epi64(word as i64)))
    }

    #[inline(always)]
    fn load(words: &Words) -> Self {
        Self(intrinsic!(_mm512_loadu_si512(words.as_ptr().cast())))
    }

    #[inline(always)]
    fn store(self, words: &mut Words) {
        intrinsic!(_mm512_storeu_si512(words.as_mut_ptr().cast(), self.0));
    }

    intrinsics! {
        add(other): _mm512_add_epi64;
        sub(other): _mm512_sub_epi64;
        and(other): _mm512_and_si512;
        or(other): _mm512_or_si512;
        add_mul_low(a, b): _mm512_madd52lo_epu64;
        add_mul_high(a, b): _mm512_madd52hi_epu64;
    }

    #[inline(always)]
    fn add_where(self, mask: u8, other: Self) -> Self {
        Self(intrinsic!(_mm512_mask_add_epi64(self.0, mask, self.0, other.0)))
    }

    #[inline(always)]
    fn shr<const BITS: u32>(self) -> Self {
        Self(intrinsic!(_mm512_srli_epi64::<BITS>(self.0)))
    }

    #[inline(always)]
    fn sar<const BITS: u32>(self) -> Self {
        Self(intrinsic!(_mm512_srai_epi64::<BITS>(self.0)))
    }

    #[inline(always)]
    fn shl<const BITS: u32>(self) -> Self {
        Self(intrinsic!(_mm512_slli_epi64::<BITS>(self.0)))
    }

    #[inline(always)]
    fn select(mask: u8, yes: Self, no: Self) -> Self {
        Self(intrinsic!(_mm512_mask_blend_epi64(mask, no.0, yes.0)))
    }

    #[inline(always)]
    fn pick(self, other: Self, places: &Words) -> Self {
        Self(intrinsic!(_mm512_permutex2var_epi64(self.0, Self::load(places).0, other.0)))
    }

    #[inline(always)]
    fn equals(self, other: Self) -> u8 {
        intrinsic!(_mm512_cmpeq_epi64_mask(self.0, other.0))
    }

    #[inline(always)]
    fn less_signed(self, other: Self) -> u8 {
        intrinsic!(_mm512_cmplt_epi64_mask(self.0, other.0))
    }

    #[inline(always)]
    fn load_transposed<'l>(line: &impl Fn(usize) -> &'l Words) -> [Self; 8] {
        let mut lines = [Self::splat(0); 8];
        for (lane, vector) in lines.iter_mut().enumerate() {
            *vector = Self::load(line(lane));
        }
        Self::transposed(lines)
    }

    #[inline(always)]
    fn store_transposed(vectors: [Self; 8], lines: &mut [Words; LANES]) {
        let transposed = Self::transposed(vectors);
        for (vector, line) in transposed.into_iter().zip(lines) {
            vector.store(line);
        }
    }

    #[inline(always)]
    fn prefetch(line: &Words) {
        intrinsic!(_mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()));
    }

    #[inline(always)]
    fn expect_below(self, _bits: u32) {}

    #[inline(always)]
    fn run<T: Task>(task: T) -> T::Result {
        super::x86::run_checked(task)
    }
}
