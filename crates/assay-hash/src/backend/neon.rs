//! Four 32-bit lanes of NEON, which every aarch64 processor has: hashes of four messages at once.

#![expect(unsafe_code, reason = "intrinsics, entry into target-feature functions")]

use core::arch::aarch64::{
    uint32x4_t, vaddq_u32, vbslq_u32, vdupq_n_s32, vdupq_n_u32, veorq_u32, vld1q_u8, vld1q_u32,
    vornq_u32, vreinterpretq_u8_u32, vreinterpretq_u16_u32, vreinterpretq_u32_u8,
    vreinterpretq_u32_u16, vreinterpretq_u32_u64, vreinterpretq_u64_u32, vrev32q_u8, vrev32q_u16,
    vshlq_u32, vst1q_u8, vst1q_u32, vtrn1q_u32, vtrn1q_u64, vtrn2q_u32, vtrn2q_u64, vtstq_u32,
};

use super::chains::{self, Chain, TreePath, chain_entries};
use super::lanes::{self, LANES_MAX, Words, entries, intrinsics};

entries!(Lanes, "neon");
chain_entries!(Lanes, "neon");

/// A vector; values exist only inside the kernels.
#[derive(Clone, Copy)]
pub(super) struct Lanes(uint32x4_t);

/// One or more intrinsics as a method body.
macro_rules! intrinsic {
    ($call:expr) => {{
        // SAFETY: NEON is part of the architecture (Armv8-A); memory operands are references of the right size.
        unsafe { $call }
    }};
}

impl Lanes {
    /// Shifts by a constant after inlining; a negative number shifts right.
    #[inline(always)]
    fn shift(self, bits: i32) -> Self {
        Self(intrinsic!(vshlq_u32(self.0, vdupq_n_s32(bits))))
    }

    /// A mask of the lanes with a bit in `lanes`.
    #[inline(always)]
    fn mask(lanes: u32) -> Self {
        let bits = [1, 2, 4, 8_u32];
        Self(intrinsic!(vtstq_u32(vdupq_n_u32(lanes), vld1q_u32(bits.as_ptr()))))
    }

    #[inline(always)]
    fn load_row(bytes: &[u8; 16]) -> Self {
        Self(intrinsic!(vreinterpretq_u32_u8(vld1q_u8(bytes.as_ptr()))))
    }
}

impl Words for Lanes {
    const LANES: usize = 4;

    #[inline(always)]
    fn splat(word: u32) -> Self {
        Self(intrinsic!(vdupq_n_u32(word)))
    }

    intrinsics! {
        add(other): vaddq_u32;
        xor(other): veorq_u32;
        choose(y, z): vbslq_u32;
    }

    #[inline(always)]
    fn rotate_left(self, bits: u32) -> Self {
        if bits == 16 {
            let halves = intrinsic!(vrev32q_u16(vreinterpretq_u16_u32(self.0)));
            return Self(intrinsic!(vreinterpretq_u32_u16(halves)));
        }
        let bits = bits as i32;
        self.shift(bits).xor(self.shift(bits - 32))
    }

    #[inline(always)]
    fn shift_right(self, bits: u32) -> Self {
        self.shift(-(bits as i32))
    }

    #[inline(always)]
    fn xor3(self, y: Self, z: Self) -> Self {
        self.xor(y).xor(z)
    }

    #[inline(always)]
    fn majority(self, y: Self, z: Self) -> Self {
        // The bit of `self` and `z` if they agree; else that of `y`.
        self.xor(z).choose(y, z)
    }

    #[inline(always)]
    fn or_not_xor(self, y: Self, z: Self) -> Self {
        Self(intrinsic!(vornq_u32(self.0, y.0))).xor(z)
    }

    #[inline(always)]
    fn swap_bytes(self) -> Self {
        let bytes = intrinsic!(vrev32q_u8(vreinterpretq_u8_u32(self.0)));
        Self(intrinsic!(vreinterpretq_u32_u8(bytes)))
    }

    #[inline(always)]
    fn replace(self, new: Self, lanes: u32) -> Self {
        Self::mask(lanes).choose(new, self)
    }

    #[inline(always)]
    fn load<const ROW: usize>(rows: &[&[u8; ROW]; LANES_MAX], at: usize) -> [Self; 8] {
        let mut halves = [[Self::splat(0); 4]; 2];
        for (lane, row) in rows[..Self::LANES].iter().enumerate() {
            let quarters = row[at..].as_chunks::<16>().0;
            halves[0][lane] = Self::load_row(&quarters[0]);
            halves[1][lane] = Self::load_row(&quarters[1]);
        }
        let mut words = [Self::splat(0); 8];
        words[..4].copy_from_slice(&transpose(&halves[0]));
        words[4..].copy_from_slice(&transpose(&halves[1]));
        words
    }

    #[inline(always)]
    fn store(words: &[Self; 8], rows: &mut [[u8; 32]; LANES_MAX]) {
        for (half, words) in words.as_chunks::<4>().0.iter().enumerate() {
            for (row, lanes) in rows.iter_mut().zip(transpose(words)) {
                let bytes = &mut row.as_chunks_mut::<16>().0[half];
                intrinsic!(vst1q_u8(bytes.as_mut_ptr(), vreinterpretq_u8_u32(lanes.0)));
            }
        }
    }

    #[inline(always)]
    fn lanes(self) -> [u32; LANES_MAX] {
        let mut lanes = [0; LANES_MAX];
        intrinsic!(vst1q_u32(lanes.as_mut_ptr(), self.0));
        lanes
    }
}

/// Transposes four words of four rows.
#[inline(always)]
fn transpose(rows: &[Lanes; 4]) -> [Lanes; 4] {
    let [r0, r1, r2, r3] = rows.map(|row| row.0);
    // The even and the odd columns of two rows, then the same with pairs of words.
    let pairs = |upper, lower| {
        intrinsic!((
            vreinterpretq_u64_u32(vtrn1q_u32(upper, lower)),
            vreinterpretq_u64_u32(vtrn2q_u32(upper, lower)),
        ))
    };
    let ((even01, odd01), (even23, odd23)) = (pairs(r0, r1), pairs(r2, r3));
    intrinsic!([
        Lanes(vreinterpretq_u32_u64(vtrn1q_u64(even01, even23))),
        Lanes(vreinterpretq_u32_u64(vtrn1q_u64(odd01, odd23))),
        Lanes(vreinterpretq_u32_u64(vtrn2q_u64(even01, even23))),
        Lanes(vreinterpretq_u32_u64(vtrn2q_u64(odd01, odd23))),
    ])
}
