//! SHA-256 and RIPEMD-160 of eight messages at once, one per 32-bit lane of AVX2.

#![expect(unsafe_code, reason = "intrinsics, entry into target-feature functions")]

use core::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_andnot_si256, _mm256_blendv_epi8,
    _mm256_cmpeq_epi32, _mm256_loadu_si256, _mm256_or_si256, _mm256_permute2x128_si256,
    _mm256_set1_epi32, _mm256_setr_epi32, _mm256_shuffle_epi8, _mm256_sllv_epi32,
    _mm256_srlv_epi32, _mm256_storeu_si256, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi32, _mm256_unpacklo_epi64, _mm256_xor_si256,
};

use super::lanes::{self, LANES_MAX, Words};
use crate::cpu::{CpuFeature, has};
use crate::many::Padded;

/// Messages per batch.
const LANES: usize = 8;

/// Blocks that plain code compresses in the time of one batch of blocks.
const LANES_BREAK_EVEN: usize = 2;

/// Whether this CPU has what the kernels need.
pub(super) fn available() -> bool {
    has(CpuFeature::Avx2)
}

/// Hashes the whole batches at the front and returns how many messages they held.
///
/// The caller has seen [`available`] return true.
#[inline]
pub(super) fn double_64(messages: &[[u8; 64]], digests: &mut [[u8; 32]]) -> usize {
    let (batches, _) = messages.as_chunks::<LANES>();
    let (outputs, _) = digests.as_chunks_mut::<LANES>();
    for (batch, output) in batches.iter().zip(outputs) {
        // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
        unsafe { double_64_kernel(batch, output) }
    }
    batches.len() * LANES
}

/// SHA-256, double if `TWICE`, of up to eight of the first messages, those with the most blocks
/// first; returns how many, or 0 if it would not pay.
///
/// The caller has seen [`available`] return true.
#[inline]
pub(super) fn group<const TWICE: bool>(messages: &[&[u8]], digests: &mut [[u8; 32]]) -> usize {
    let messages = &messages[..messages.len().min(LANES)];
    let blocks = |message: &&[u8]| Padded::count(message.len());
    let all: usize = messages.iter().map(blocks).sum();
    let more = usize::from(TWICE);
    if (blocks(&messages[0]) + more) * LANES_BREAK_EVEN > all + more * messages.len() {
        return 0;
    }
    let mut out = [[0; 32]; LANES_MAX];
    // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
    unsafe { group_kernel::<TWICE>(messages, &mut out) }
    digests[..messages.len()].copy_from_slice(&out[..messages.len()]);
    messages.len()
}

/// RIPEMD-160 of up to sixteen messages. The caller has seen [`available`] return true.
#[inline]
pub(super) fn ripemd160_32(messages: &[[u8; 32]], digests: &mut [[u8; 20]]) {
    for (messages, digests) in messages.chunks(LANES).zip(digests.chunks_mut(LANES)) {
        // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
        unsafe { ripemd160_32_kernel(messages, digests) }
    }
}

/// Absorbs the same blocks into up to eight states. The caller has seen [`available`] return true.
#[inline]
pub(super) fn shared(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
    // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
    unsafe { shared_kernel(states, blocks) }
}

#[target_feature(enable = "avx2")]
fn shared_kernel(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
    lanes::sha256_shared::<Lanes>(states, blocks);
}

#[target_feature(enable = "avx2")]
fn double_64_kernel(messages: &[[u8; 64]; LANES], digests: &mut [[u8; 32]; LANES]) {
    lanes::double_64::<Lanes>(messages, digests);
}

#[target_feature(enable = "avx2")]
fn group_kernel<const TWICE: bool>(messages: &[&[u8]], digests: &mut [[u8; 32]; LANES_MAX]) {
    let mut padded = [const { Padded::NONE }; LANES];
    for (padded, message) in padded.iter_mut().zip(messages) {
        *padded = Padded::new(message);
    }
    let mut state = lanes::sha256_states::<Lanes>(&padded[..messages.len()]);
    if TWICE {
        state = lanes::sha256_again(&state);
    }
    lanes::store_digests(&state, digests);
}

#[target_feature(enable = "avx2")]
fn ripemd160_32_kernel(messages: &[[u8; 32]], digests: &mut [[u8; 20]]) {
    lanes::ripemd160_32::<Lanes>(messages, digests);
}

/// Eight lanes; values exist only inside the kernels.
#[derive(Clone, Copy)]
struct Lanes(__m256i);

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
    fn and(self, other: Self) -> Self {
        Self(intrinsic!(_mm256_and_si256(self.0, other.0)))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Self(intrinsic!(_mm256_or_si256(self.0, other.0)))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(intrinsic!(_mm256_xor_si256(self.0, other.0)))
    }
}

impl Words for Lanes {
    const LANES: usize = LANES;

    #[inline(always)]
    fn splat(word: u32) -> Self {
        Self(intrinsic!(_mm256_set1_epi32(word as i32)))
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(intrinsic!(_mm256_add_epi32(self.0, other.0)))
    }

    #[inline(always)]
    fn rotate_left(self, bits: u32) -> Self {
        let (left, right) = (Self::splat(bits), Self::splat(32 - bits));
        let left = Self(intrinsic!(_mm256_sllv_epi32(self.0, left.0)));
        left.or(Self(intrinsic!(_mm256_srlv_epi32(self.0, right.0))))
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
        let order = intrinsic!(_mm256_setr_epi32(
            0x00010203, 0x04050607, 0x08090a0b, 0x0c0d0e0f, 0x00010203, 0x04050607, 0x08090a0b,
            0x0c0d0e0f,
        ));
        Self(intrinsic!(_mm256_shuffle_epi8(self.0, order)))
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

/// Transposes eight words of eight rows.
#[inline(always)]
fn transpose(rows: &[Lanes; 8]) -> [Lanes; 8] {
    let mut fours = [[Lanes::splat(0); 4]; 2];
    for (columns, rows) in fours.iter_mut().zip(rows.as_chunks::<4>().0) {
        let [r0, r1, r2, r3] = [rows[0].0, rows[1].0, rows[2].0, rows[3].0];
        let low01 = intrinsic!(_mm256_unpacklo_epi32(r0, r1));
        let high01 = intrinsic!(_mm256_unpackhi_epi32(r0, r1));
        let low23 = intrinsic!(_mm256_unpacklo_epi32(r2, r3));
        let high23 = intrinsic!(_mm256_unpackhi_epi32(r2, r3));
        *columns = [
            Lanes(intrinsic!(_mm256_unpacklo_epi64(low01, low23))),
            Lanes(intrinsic!(_mm256_unpackhi_epi64(low01, low23))),
            Lanes(intrinsic!(_mm256_unpacklo_epi64(high01, high23))),
            Lanes(intrinsic!(_mm256_unpackhi_epi64(high01, high23))),
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
