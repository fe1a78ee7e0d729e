//! Eight lanes of AVX-512 with IFMA, the 52-bit multiply and add.
//!
//! The methods are inlined into the two kernels, the only functions that enable the target
//! features; outside of it they are never called. Code over [`Lanes`] keeps to loops for that: a
//! closure given to the standard library is a function of its own, without the features.

#![expect(unsafe_code, reason = "intrinsics, entry into a target-feature function")]

use core::arch::x86_64::{
    __m512i, _mm256_loadu_si256, _mm512_add_epi64, _mm512_and_si512, _mm512_castsi256_si512,
    _mm512_inserti64x4, _mm512_loadu_si512, _mm512_madd52hi_epu64, _mm512_madd52lo_epu64,
    _mm512_mask_blend_epi64, _mm512_or_si512, _mm512_set1_epi64, _mm512_shuffle_i64x2,
    _mm512_slli_epi64, _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi64,
    _mm512_testn_epi64_mask, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};

use assay_hash::cpu::{CpuFeature, has};

use crate::lanes::group::{self, Group, Question};
use crate::lanes::msm::{self, Work};
#[cfg(test)]
use crate::lanes::small_groups::{self, Formulas, Raw};
use crate::lanes::{Lanes, Line};

#[derive(Clone, Copy)]
struct Ifma(__m512i);

/// One intrinsic as a method body.
macro_rules! intrinsic {
    ($call:expr) => {{
        // SAFETY: only code inlined into the kernels has values of this type, and its callers
        // have checked for AVX-512F and IFMA; memory operands are references to as many bytes as
        // the instruction reads.
        unsafe { $call }
    }};
}

impl Lanes for Ifma {
    #[inline(always)]
    fn splat(word: u64) -> Self {
        Self(intrinsic!(_mm512_set1_epi64(word as i64)))
    }

    #[inline(always)]
    fn load(words: &[u64; 8]) -> Self {
        Self(intrinsic!(_mm512_loadu_si512(words.as_ptr().cast())))
    }

    #[inline(always)]
    fn store(self, words: &mut [u64; 8]) {
        intrinsic!(_mm512_storeu_si512(words.as_mut_ptr().cast(), self.0));
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(intrinsic!(_mm512_add_epi64(self.0, other.0)))
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(intrinsic!(_mm512_sub_epi64(self.0, other.0)))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        Self(intrinsic!(_mm512_and_si512(self.0, other.0)))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(intrinsic!(_mm512_or_si512(self.0, other.0)))
    }

    #[inline(always)]
    fn shr<const BITS: u32>(self) -> Self {
        Self(intrinsic!(_mm512_srli_epi64::<BITS>(self.0)))
    }

    #[inline(always)]
    fn shl<const BITS: u32>(self) -> Self {
        Self(intrinsic!(_mm512_slli_epi64::<BITS>(self.0)))
    }

    #[inline(always)]
    fn add_mul_low(self, a: Self, b: Self) -> Self {
        Self(intrinsic!(_mm512_madd52lo_epu64(self.0, a.0, b.0)))
    }

    #[inline(always)]
    fn add_mul_high(self, a: Self, b: Self) -> Self {
        Self(intrinsic!(_mm512_madd52hi_epu64(self.0, a.0, b.0)))
    }

    #[inline(always)]
    fn select(mask: u8, yes: Self, no: Self) -> Self {
        Self(intrinsic!(_mm512_mask_blend_epi64(mask, no.0, yes.0)))
    }

    #[inline(always)]
    fn zeros(self) -> u8 {
        intrinsic!(_mm512_testn_epi64_mask(self.0, self.0))
    }

    #[inline(always)]
    fn load_columns<const FIRST: usize>(lines: [&Line; 8]) -> [Self; 4] {
        const { assert!(FIRST == 0 || FIRST == 4) };
        let [a, b, c, d, e, f, g, h] = lines;
        let even = [Self::two_halves::<FIRST>(a, c), Self::two_halves::<FIRST>(e, g)];
        let odd = [Self::two_halves::<FIRST>(b, d), Self::two_halves::<FIRST>(f, h)];
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
    fn transpose(rows: [Self; 8]) -> [Self; 8] {
        let [a, b, c, d, e, f, g, h] = rows;
        // Pairs of words, then of pairs, then of quadruples.
        let even = [a.low(b), c.low(d), e.low(f), g.low(h)];
        let odd = [a.high(b), c.high(d), e.high(f), g.high(h)];
        let (even, odd) = (Self::quarters(even), Self::quarters(odd));
        [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
    }

    #[inline(always)]
    fn expect_below(self, _bits: u32) {}
}

impl Ifma {
    #[inline(always)]
    fn low(self, other: Self) -> Self {
        Self(intrinsic!(_mm512_unpacklo_epi64(self.0, other.0)))
    }

    #[inline(always)]
    fn high(self, other: Self) -> Self {
        Self(intrinsic!(_mm512_unpackhi_epi64(self.0, other.0)))
    }

    /// Four words of each of two lines.
    #[inline(always)]
    fn two_halves<const FIRST: usize>(a: &Line, b: &Line) -> Self {
        let (a, b) = (a.0[FIRST..][..4].as_ptr(), b.0[FIRST..][..4].as_ptr());
        let a = intrinsic!(_mm256_loadu_si256(a.cast()));
        let b = intrinsic!(_mm256_loadu_si256(b.cast()));
        Self(intrinsic!(_mm512_inserti64x4::<1>(_mm512_castsi256_si512(a), b)))
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
        Self(intrinsic!(_mm512_shuffle_i64x2::<PARTS>(self.0, other.0)))
    }
}

/// Whether this CPU has what the kernels need.
pub(crate) fn available() -> bool {
    has(CpuFeature::Avx512f) && has(CpuFeature::Avx512ifma)
}

/// Answers all groups. The caller has seen [`available`] return true.
pub(crate) fn answer(question: Question, groups: &mut [Group], table: &[Line]) {
    debug_assert!(available());
    // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
    unsafe { answer_kernel(question, groups, table) }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn answer_kernel(question: Question, groups: &mut [Group], table: &[Line]) {
    group::answer::<Ifma>(question, groups, table);
}

/// Sums up a batch. The caller has seen [`available`] return true.
pub(crate) fn weighted_sum(work: &mut Work, table: &[Line]) -> bool {
    debug_assert!(available());
    // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
    unsafe { weighted_sum_kernel(work, table) }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn weighted_sum_kernel(work: &mut Work, table: &[Line]) -> bool {
    msm::sum::<Ifma>(work, table)
}

/// The formulas for tests of their own, which first see [`available`] return true.
#[cfg(test)]
pub(crate) const FORMULAS: Formulas = {
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn double(a: &Raw) -> Raw {
        small_groups::double::<Ifma>(a)
    }
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add(a: &Raw, b: &Raw) -> Raw {
        small_groups::add::<Ifma>(a, b)
    }
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn add_jacobian(a: &Raw, b: &Raw) -> Raw {
        small_groups::add_jacobian::<Ifma>(a, b)
    }
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn ladders(key: &Raw, digits: &Group, table: &[Line]) -> [Raw; 2] {
        small_groups::ladders::<Ifma>(key, digits, table)
    }
    Formulas {
        // SAFETY: tests ask for the features first.
        double: |a| unsafe { double(a) },
        // SAFETY: as above.
        add: |a, b| unsafe { add(a, b) },
        // SAFETY: as above.
        add_jacobian: |a, b| unsafe { add_jacobian(a, b) },
        // SAFETY: as above.
        ladders: |key, digits, table| unsafe { ladders(key, digits, table) },
    }
};
