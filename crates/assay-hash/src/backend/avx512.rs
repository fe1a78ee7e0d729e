//! Sixteen 32-bit or eight 64-bit lanes of AVX-512: hashes of sixteen messages at once, MuHash in
//! eight products.
//!
//! Rotations and three-input functions are single instructions, so a round of SHA-256 has about 28 instructions for sixteen
//! messages.

#![expect(unsafe_code, reason = "intrinsics, entry into target-feature functions")]

use core::arch::x86_64::{
    __m512i, _mm256_loadu_si256, _mm256_storeu_si256, _mm512_add_epi32, _mm512_add_epi64,
    _mm512_and_si512, _mm512_castsi256_si512, _mm512_castsi512_si256, _mm512_extracti64x4_epi64,
    _mm512_inserti64x4, _mm512_mask_mov_epi32, _mm512_mul_epu32, _mm512_permutex2var_epi64,
    _mm512_rolv_epi32, _mm512_set_epi64, _mm512_set1_epi32, _mm512_set1_epi64, _mm512_set4_epi32,
    _mm512_shuffle_epi8, _mm512_sllv_epi64, _mm512_srlv_epi32, _mm512_srlv_epi64,
    _mm512_storeu_si512, _mm512_sub_epi64, _mm512_ternarylogic_epi32, _mm512_unpackhi_epi32,
    _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64, _mm512_xor_si512,
};

use super::chains::{self, Chain, TreePath, chain_entries};
use super::lanes::{self, LANES_MAX, Words, entries, intrinsics};
use super::muhash::{self, Limbs, Wide, muhash_entries};
use crate::cpu::{CpuFeature, has};
use crate::num3072::Num3072;

/// True if this CPU has the features of the kernels.
pub(super) fn available() -> bool {
    has(CpuFeature::Avx512f) && has(CpuFeature::Avx512bw)
}

entries!(Lanes, "avx512f,avx512bw");
chain_entries!(Lanes, "avx512f,avx512bw");
muhash_entries!(Lanes28, "avx512f,avx512bw");

/// Numbers in limbs of 28 bits.
pub(super) struct Lanes28;

impl Limbs for Lanes28 {
    type Vector = Lanes;

    fn product(a: &[Lanes], b: &[Lanes], out: &mut [Lanes], scratch: &mut [Lanes]) {
        product(a, b, out, scratch);
    }
}

/// A vector; values exist only inside the kernels.
#[derive(Clone, Copy)]
pub(super) struct Lanes(pub(super) __m512i);

/// One intrinsic as a method body.
macro_rules! intrinsic {
    ($call:expr) => {{
        // SAFETY: only code inlined into the kernels has values of this type, and the kernels run
        // on CPUs for which `available` is true; memory operands are references of the right size.
        unsafe { $call }
    }};
}

impl Words for Lanes {
    const LANES: usize = 16;

    #[inline(always)]
    fn splat(word: u32) -> Self {
        Self(intrinsic!(_mm512_set1_epi32(word as i32)))
    }

    intrinsics! {
        add(other): _mm512_add_epi32;
        xor(other): _mm512_xor_si512;
        // The immediate of a three-input function is its truth table, for inputs 0xf0, 0xcc and 0xaa.
        xor3(y, z): _mm512_ternarylogic_epi32::<0x96>;
        choose(y, z): _mm512_ternarylogic_epi32::<0xca>;
        majority(y, z): _mm512_ternarylogic_epi32::<0xe8>;
        or_not_xor(y, z): _mm512_ternarylogic_epi32::<0x59>;
    }

    #[inline(always)]
    fn rotate_left(self, bits: u32) -> Self {
        Self(intrinsic!(_mm512_rolv_epi32(self.0, _mm512_set1_epi32(bits as i32))))
    }

    #[inline(always)]
    fn shift_right(self, bits: u32) -> Self {
        Self(intrinsic!(_mm512_srlv_epi32(self.0, _mm512_set1_epi32(bits as i32))))
    }

    #[inline(always)]
    fn swap_bytes(self) -> Self {
        let order = intrinsic!(_mm512_set4_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203));
        Self(intrinsic!(_mm512_shuffle_epi8(self.0, order)))
    }

    #[inline(always)]
    fn replace(self, new: Self, lanes: u32) -> Self {
        Self(intrinsic!(_mm512_mask_mov_epi32(self.0, lanes as u16, new.0)))
    }

    #[inline(always)]
    fn load<const ROW: usize>(rows: &[&[u8; ROW]; LANES_MAX], at: usize) -> [Self; 8] {
        // Rows 0 to 7 in the lower halves and 8 to 15 in the upper ones; then each half is
        // transposed as four blocks of four words.
        let mut pairs = [Self::splat(0); 8];
        for (i, pair) in pairs.iter_mut().enumerate() {
            *pair = load_pair(&rows[i][at..], &rows[i + 8][at..]);
        }
        transpose(&pairs)
    }

    #[inline(always)]
    fn store(words: &[Self; 8], rows: &mut [[u8; 32]; LANES_MAX]) {
        let (low, high) = rows.split_at_mut(Self::LANES / 2);
        let pairs = transpose(words);
        for i in 0..8 {
            let (low, high) = (low[i].as_mut_ptr().cast(), high[i].as_mut_ptr().cast());
            intrinsic!(_mm256_storeu_si256(low, _mm512_castsi512_si256(pairs[i].0)));
            intrinsic!(_mm256_storeu_si256(high, _mm512_extracti64x4_epi64::<1>(pairs[i].0)));
        }
    }

    #[inline(always)]
    fn lanes(self) -> [u32; LANES_MAX] {
        let mut lanes = [0; LANES_MAX];
        intrinsic!(_mm512_storeu_si512(lanes.as_mut_ptr().cast(), self.0));
        lanes
    }
}

impl Wide for Lanes {
    intrinsics! {
        and(other): _mm512_and_si512;
        add_64(other): _mm512_add_epi64;
        sub_64(other): _mm512_sub_epi64;
        multiply(other): _mm512_mul_epu32;
    }

    #[inline(always)]
    fn splat_64(word: u64) -> Self {
        Self(intrinsic!(_mm512_set1_epi64(word as i64)))
    }

    #[inline(always)]
    fn shift_left_64(self, bits: u32) -> Self {
        Self(intrinsic!(_mm512_sllv_epi64(self.0, _mm512_set1_epi64(bits.into()))))
    }

    #[inline(always)]
    fn shift_right_64(self, bits: u32) -> Self {
        Self(intrinsic!(_mm512_srlv_epi64(self.0, _mm512_set1_epi64(bits.into()))))
    }

    #[inline(always)]
    fn interleave(self, high: Self) -> [Self; 2] {
        [
            Self(intrinsic!(_mm512_unpacklo_epi32(self.0, high.0))),
            Self(intrinsic!(_mm512_unpackhi_epi32(self.0, high.0))),
        ]
    }
}

/// Two rows of eight words, one in each half.
#[inline(always)]
fn load_pair(low: &[u8], high: &[u8]) -> Lanes {
    let low: &[u8; 32] = low.first_chunk().expect("rows have whole quarters of a block");
    let high: &[u8; 32] = high.first_chunk().expect("rows have whole quarters of a block");
    let low = intrinsic!(_mm256_loadu_si256(low.as_ptr().cast()));
    let high = intrinsic!(_mm256_loadu_si256(high.as_ptr().cast()));
    Lanes(intrinsic!(_mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)))
}

/// Transposes eight words of eight rows, in both halves.
#[inline(always)]
fn transpose(rows: &[Lanes; 8]) -> [Lanes; 8] {
    let mut fours = [[Lanes::splat(0); 4]; 2];
    for (columns, rows) in fours.iter_mut().zip(rows.as_chunks::<4>().0) {
        let [low01, high01] = rows[0].interleave(rows[1]);
        let [low23, high23] = rows[2].interleave(rows[3]);
        *columns = [
            Lanes(intrinsic!(_mm512_unpacklo_epi64(low01.0, low23.0))),
            Lanes(intrinsic!(_mm512_unpackhi_epi64(low01.0, low23.0))),
            Lanes(intrinsic!(_mm512_unpacklo_epi64(high01.0, high23.0))),
            Lanes(intrinsic!(_mm512_unpackhi_epi64(high01.0, high23.0))),
        ];
    }
    // Of each half: the first or the second 128 bits of both vectors.
    let first = intrinsic!(_mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0));
    let second = intrinsic!(_mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2));
    let mut out = [Lanes::splat(0); 8];
    for i in 0..4 {
        let (upper, lower) = (fours[0][i].0, fours[1][i].0);
        out[i] = Lanes(intrinsic!(_mm512_permutex2var_epi64(upper, first, lower)));
        out[i + 4] = Lanes(intrinsic!(_mm512_permutex2var_epi64(upper, second, lower)));
    }
    out
}
