//! The x86 SHA extensions.

#![expect(unsafe_code, reason = "intrinsics, entry into target-feature functions")]

use core::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_loadu_si128, _mm_set_epi64x, _mm_sha256msg1_epu32,
    _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32, _mm_shuffle_epi8, _mm_shuffle_epi32,
    _mm_storeu_si128, _mm_unpackhi_epi64, _mm_unpacklo_epi64,
};

use super::sha_unit::{self, Unit, entries};
use crate::cpu::{CpuFeature, has};

/// True if this CPU has the features of the kernels.
pub(super) fn available() -> bool {
    has(CpuFeature::Sha) && has(CpuFeature::Ssse3) && has(CpuFeature::Sse41)
}

entries!(State, "sha,ssse3,sse4.1");

/// The working variables of one message in the layout of `sha256rnds2`; values exist only inside the kernels.
#[derive(Clone, Copy)]
struct State {
    /// a, b, e, f from the highest lane down.
    abef: __m128i,
    /// c, d, g, h from the highest lane down.
    cdgh: __m128i,
}

/// One or more intrinsics as a method body.
macro_rules! intrinsic {
    ($call:expr) => {{
        // SAFETY: only code inlined into the kernels has values of this type, and the kernels run
        // on CPUs for which `available` is true; memory operands are references of the right size.
        unsafe { $call }
    }};
}

impl Unit for State {
    type Four = __m128i;

    #[inline(always)]
    fn load(words: &[u32; 4]) -> __m128i {
        intrinsic!(_mm_loadu_si128(words.as_ptr().cast()))
    }

    #[inline(always)]
    fn load_big_endian(bytes: &[u8; 16]) -> __m128i {
        swap_bytes(intrinsic!(_mm_loadu_si128(bytes.as_ptr().cast())))
    }

    #[inline(always)]
    fn store(four: __m128i, words: &mut [u32; 4]) {
        intrinsic!(_mm_storeu_si128(words.as_mut_ptr().cast(), four));
    }

    #[inline(always)]
    fn store_big_endian(four: __m128i, bytes: &mut [u8; 16]) {
        intrinsic!(_mm_storeu_si128(bytes.as_mut_ptr().cast(), swap_bytes(four)));
    }

    #[inline(always)]
    fn add_four(a: __m128i, b: __m128i) -> __m128i {
        intrinsic!(_mm_add_epi32(a, b))
    }

    #[inline(always)]
    fn from_rows([abcd, efgh]: [__m128i; 2]) -> Self {
        let badc = intrinsic!(_mm_shuffle_epi32::<0xb1>(abcd));
        let fehg = intrinsic!(_mm_shuffle_epi32::<0xb1>(efgh));
        let abef = intrinsic!(_mm_unpacklo_epi64(fehg, badc));
        Self { abef, cdgh: intrinsic!(_mm_unpackhi_epi64(fehg, badc)) }
    }

    #[inline(always)]
    fn rows(self) -> [__m128i; 2] {
        let badc = intrinsic!(_mm_unpackhi_epi64(self.abef, self.cdgh));
        let fehg = intrinsic!(_mm_unpacklo_epi64(self.abef, self.cdgh));
        [intrinsic!(_mm_shuffle_epi32::<0xb1>(badc)), intrinsic!(_mm_shuffle_epi32::<0xb1>(fehg))]
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let abef = Self::add_four(self.abef, other.abef);
        Self { abef, cdgh: Self::add_four(self.cdgh, other.cdgh) }
    }

    #[inline(always)]
    fn four_rounds(self, kw: __m128i) -> Self {
        let cdgh = intrinsic!(_mm_sha256rnds2_epu32(self.cdgh, self.abef, kw));
        let high = intrinsic!(_mm_shuffle_epi32::<0x0e>(kw));
        Self { abef: intrinsic!(_mm_sha256rnds2_epu32(self.abef, cdgh, high)), cdgh }
    }

    #[inline(always)]
    fn next_words([w0, w4, w8, w12]: [__m128i; 4]) -> __m128i {
        let older = intrinsic!(_mm_sha256msg1_epu32(w0, w4));
        let sum = Self::add_four(older, intrinsic!(_mm_alignr_epi8::<4>(w12, w8)));
        intrinsic!(_mm_sha256msg2_epu32(sum, w12))
    }
}

/// Reverses the bytes of each 32-bit lane.
#[inline(always)]
fn swap_bytes(x: __m128i) -> __m128i {
    let order = intrinsic!(_mm_set_epi64x(0x0c0d0e0f_08090a0b, 0x04050607_00010203));
    intrinsic!(_mm_shuffle_epi8(x, order))
}
