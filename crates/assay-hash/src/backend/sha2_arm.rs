//! The SHA-256 instructions of aarch64.

#![expect(unsafe_code, reason = "intrinsics, entry into target-feature functions")]
#![expect(
    inline_always_mismatching_target_features,
    reason = "they are inlined once the methods are inlined into the kernels"
)]

use core::arch::aarch64::{
    uint32x4_t, vaddq_u32, vld1q_u8, vld1q_u32, vreinterpretq_u8_u32, vreinterpretq_u32_u8,
    vrev32q_u8, vsha256h2q_u32, vsha256hq_u32, vsha256su0q_u32, vsha256su1q_u32, vst1q_u8,
    vst1q_u32,
};

use super::sha_unit::{self, Unit, entries};
use crate::cpu::{CpuFeature, has};

/// True if this CPU has the features of the kernels.
pub(super) fn available() -> bool {
    has(CpuFeature::Sha2)
}

entries!(State, "neon,sha2");

/// The working variables of one message: a, b, c, d and e, f, g, h from the lowest lane up; values
/// exist only inside the kernels.
#[derive(Clone, Copy)]
struct State([uint32x4_t; 2]);

/// One or more intrinsics as a method body.
macro_rules! intrinsic {
    ($call:expr) => {{
        // SAFETY: only code inlined into the kernels has values of this type, and the kernels run
        // on CPUs for which `available` is true; memory operands are references of the right size.
        unsafe { $call }
    }};
}

impl Unit for State {
    type Four = uint32x4_t;

    #[inline(always)]
    fn load(words: &[u32; 4]) -> uint32x4_t {
        intrinsic!(vld1q_u32(words.as_ptr()))
    }

    #[inline(always)]
    fn load_big_endian(bytes: &[u8; 16]) -> uint32x4_t {
        intrinsic!(vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(bytes.as_ptr()))))
    }

    #[inline(always)]
    fn store(four: uint32x4_t, words: &mut [u32; 4]) {
        intrinsic!(vst1q_u32(words.as_mut_ptr(), four));
    }

    #[inline(always)]
    fn store_big_endian(four: uint32x4_t, bytes: &mut [u8; 16]) {
        intrinsic!(vst1q_u8(bytes.as_mut_ptr(), vrev32q_u8(vreinterpretq_u8_u32(four))));
    }

    #[inline(always)]
    fn add_four(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        intrinsic!(vaddq_u32(a, b))
    }

    #[inline(always)]
    fn from_rows(rows: [uint32x4_t; 2]) -> Self {
        Self(rows)
    }

    #[inline(always)]
    fn rows(self) -> [uint32x4_t; 2] {
        self.0
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        let ([abcd, efgh], [other_abcd, other_efgh]) = (self.0, other.0);
        Self([Self::add_four(abcd, other_abcd), Self::add_four(efgh, other_efgh)])
    }

    #[inline(always)]
    fn four_rounds(self, kw: uint32x4_t) -> Self {
        let [abcd, efgh] = self.0;
        Self([
            intrinsic!(vsha256hq_u32(abcd, efgh, kw)),
            intrinsic!(vsha256h2q_u32(efgh, abcd, kw)),
        ])
    }

    #[inline(always)]
    fn next_words([w0, w4, w8, w12]: [uint32x4_t; 4]) -> uint32x4_t {
        intrinsic!(vsha256su1q_u32(vsha256su0q_u32(w0, w4), w8, w12))
    }
}
