//! Eight 32-bit or four 64-bit lanes of AVX2: hashes of eight messages at once, MuHash in four products.

#![expect(unsafe_code, reason = "intrinsics, entry into target-feature functions")]

use core::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_add_epi64, _mm256_and_si256, _mm256_andnot_si256,
    _mm256_blendv_epi8, _mm256_cmpeq_epi32, _mm256_loadu_si256, _mm256_mul_epu32, _mm256_or_si256,
    _mm256_permute2x128_si256, _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setr_epi32,
    _mm256_shuffle_epi8, _mm256_sllv_epi32, _mm256_sllv_epi64, _mm256_srlv_epi32,
    _mm256_srlv_epi64, _mm256_storeu_si256, _mm256_sub_epi64, _mm256_unpackhi_epi32,
    _mm256_unpackhi_epi64, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_xor_si256,
};

use super::chains::{self, Chain, TreePath, chain_entries};
use super::lanes::{self, LANES_MAX, Words, entries, intrinsics};
use super::muhash::{self, Limbs, Wide, muhash_entries};
use crate::cpu::{CpuFeature, has};
use crate::num3072::Num3072;

/// True if this CPU has the features of the kernels.
pub(super) fn available() -> bool {
    has(CpuFeature::Avx2)
}

entries!(Lanes, "avx2");
chain_entries!(Lanes, "avx2");
muhash_entries!(Lanes28, "avx2");

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
pub(super) struct Lanes(__m256i);

/// One intrinsic as a method body.
macro_rules! intrinsic {
    ($call:expr) => {{
        // SAFETY: only code inlined into the kernels has values of this type, and the kernels run
        // on CPUs for which `available` is true; memory operands are references of the right size.
        unsafe { $call }
    }};
}

impl Lanes {
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(intrinsic!(_mm256_or_si256(self.0, other.0)))
    }

    /// Permutes the bytes of each word as in `order`.
    #[inline(always)]
    fn shuffle(self, order: i32) -> Self {
        let [a, b, c, d] = [0, 0x04040404, 0x08080808, 0x0c0c0c0c].map(|first| first + order);
        let order = intrinsic!(_mm256_setr_epi32(a, b, c, d, a, b, c, d));
        Self(intrinsic!(_mm256_shuffle_epi8(self.0, order)))
    }
}

impl Words for Lanes {
    const LANES: usize = 8;

    #[inline(always)]
    fn splat(word: u32) -> Self {
        Self(intrinsic!(_mm256_set1_epi32(word as i32)))
    }

    intrinsics! {
        add(other): _mm256_add_epi32;
        xor(other): _mm256_xor_si256;
    }

    #[inline(always)]
    fn rotate_left(self, bits: u32) -> Self {
        match bits {
            8 => self.shuffle(0x02010003),
            16 => self.shuffle(0x01000302),
            _ => {
                let (left, right) = (Self::splat(bits), Self::splat(32 - bits));
                let left = Self(intrinsic!(_mm256_sllv_epi32(self.0, left.0)));
                left.or(Self(intrinsic!(_mm256_srlv_epi32(self.0, right.0))))
            }
        }
    }

    #[inline(always)]
    fn shift_right(self, bits: u32) -> Self {
        Self(intrinsic!(_mm256_srlv_epi32(self.0, _mm256_set1_epi32(bits as i32))))
    }

    #[inline(always)]
    fn xor3(self, y: Self, z: Self) -> Self {
        self.xor(y).xor(z)
    }

    #[inline(always)]
    fn choose(self, y: Self, z: Self) -> Self {
        z.xor(self.and(y.xor(z)))
    }

    #[inline(always)]
    fn majority(self, y: Self, z: Self) -> Self {
        self.and(y).or(z.and(self.or(y)))
    }

    #[inline(always)]
    fn or_not_xor(self, y: Self, z: Self) -> Self {
        // x | !y = !(!x & y)
        let inverse = Self(intrinsic!(_mm256_andnot_si256(self.0, y.0)));
        inverse.xor(z).xor(Self::splat(u32::MAX))
    }

    #[inline(always)]
    fn swap_bytes(self) -> Self {
        self.shuffle(0x00010203)
    }

    #[inline(always)]
    fn replace(self, new: Self, lanes: u32) -> Self {
        let bits = Self(intrinsic!(_mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128)));
        let chosen = Self::splat(lanes).and(bits);
        let mask = intrinsic!(_mm256_cmpeq_epi32(chosen.0, bits.0));
        Self(intrinsic!(_mm256_blendv_epi8(self.0, new.0, mask)))
    }

    #[inline(always)]
    fn load<const ROW: usize>(rows: &[&[u8; ROW]; LANES_MAX], at: usize) -> [Self; 8] {
        let mut words = [Self::splat(0); 8];
        for (word, row) in words.iter_mut().zip(rows) {
            let row: &[u8; 32] = row[at..].first_chunk().expect("rows have whole quarters");
            *word = Self(intrinsic!(_mm256_loadu_si256(row.as_ptr().cast())));
        }
        transpose(&words)
    }

    #[inline(always)]
    fn store(words: &[Self; 8], rows: &mut [[u8; 32]; LANES_MAX]) {
        for (row, word) in rows.iter_mut().zip(transpose(words)) {
            intrinsic!(_mm256_storeu_si256(row.as_mut_ptr().cast(), word.0));
        }
    }

    #[inline(always)]
    fn lanes(self) -> [u32; LANES_MAX] {
        let mut lanes = [0; LANES_MAX];
        intrinsic!(_mm256_storeu_si256(lanes.as_mut_ptr().cast(), self.0));
        lanes
    }
}

impl Wide for Lanes {
    intrinsics! {
        and(other): _mm256_and_si256;
        add_64(other): _mm256_add_epi64;
        sub_64(other): _mm256_sub_epi64;
        multiply(other): _mm256_mul_epu32;
    }

    #[inline(always)]
    fn splat_64(word: u64) -> Self {
        Self(intrinsic!(_mm256_set1_epi64x(word as i64)))
    }

    #[inline(always)]
    fn shift_left_64(self, bits: u32) -> Self {
        Self(intrinsic!(_mm256_sllv_epi64(self.0, _mm256_set1_epi64x(bits.into()))))
    }

    #[inline(always)]
    fn shift_right_64(self, bits: u32) -> Self {
        Self(intrinsic!(_mm256_srlv_epi64(self.0, _mm256_set1_epi64x(bits.into()))))
    }

    #[inline(always)]
    fn interleave(self, high: Self) -> [Self; 2] {
        [
            Self(intrinsic!(_mm256_unpacklo_epi32(self.0, high.0))),
            Self(intrinsic!(_mm256_unpackhi_epi32(self.0, high.0))),
        ]
    }
}

/// Transposes eight words of eight rows.
#[inline(always)]
fn transpose(rows: &[Lanes; 8]) -> [Lanes; 8] {
    let mut fours = [[Lanes::splat(0); 4]; 2];
    for (columns, rows) in fours.iter_mut().zip(rows.as_chunks::<4>().0) {
        let [low01, high01] = rows[0].interleave(rows[1]);
        let [low23, high23] = rows[2].interleave(rows[3]);
        *columns = [
            Lanes(intrinsic!(_mm256_unpacklo_epi64(low01.0, low23.0))),
            Lanes(intrinsic!(_mm256_unpackhi_epi64(low01.0, low23.0))),
            Lanes(intrinsic!(_mm256_unpacklo_epi64(high01.0, high23.0))),
            Lanes(intrinsic!(_mm256_unpackhi_epi64(high01.0, high23.0))),
        ];
    }
    let mut out = [Lanes::splat(0); 8];
    for i in 0..4 {
        let (upper, lower) = (fours[0][i].0, fours[1][i].0);
        out[i] = Lanes(intrinsic!(_mm256_permute2x128_si256::<0x20>(upper, lower)));
        out[i + 4] = Lanes(intrinsic!(_mm256_permute2x128_si256::<0x31>(upper, lower)));
    }
    out
}
