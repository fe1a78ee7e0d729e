//! SHA-256 and RIPEMD-160 of sixteen messages at once, one per 32-bit lane of AVX-512.
//!
//! A rotation is one instruction and so is every three-input function, which brings a round of
//! SHA-256 down to about 28 instructions for sixteen messages.

#![expect(unsafe_code, reason = "intrinsics, entry into target-feature functions")]

use core::arch::x86_64::{
    __m512i, _mm256_loadu_si256, _mm256_storeu_si256, _mm512_add_epi32, _mm512_castsi256_si512,
    _mm512_castsi512_si256, _mm512_extracti64x4_epi64, _mm512_inserti64x4, _mm512_mask_mov_epi32,
    _mm512_permutex2var_epi64, _mm512_rolv_epi32, _mm512_set_epi64, _mm512_set1_epi32,
    _mm512_set4_epi32, _mm512_shuffle_epi8, _mm512_srlv_epi32, _mm512_storeu_si512,
    _mm512_ternarylogic_epi32, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32,
    _mm512_unpacklo_epi64,
};

use super::lanes::{self, LANES_MAX, Words};
use crate::cpu::{CpuFeature, has};
use crate::many::Padded;
use crate::sha256::sha256;

/// Messages per batch.
pub(super) const LANES: usize = 16;

/// Blocks the SHA unit compresses, two messages interleaved, in the time of one batch of blocks.
pub(super) const LANES_BREAK_EVEN: usize = 9;

/// Whether this CPU has what the kernels need.
pub(super) fn available() -> bool {
    has(CpuFeature::Avx512f) && has(CpuFeature::Avx512bw)
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

/// SHA-256, double if `TWICE`, of all messages, those with the most blocks first; returns how many,
/// or 0 if it would not pay.
///
/// The caller has seen [`available`] return true.
#[inline]
pub(super) fn group<const TWICE: bool>(messages: &[&[u8]], digests: &mut [[u8; 32]]) -> usize {
    let blocks = |message: &&[u8]| Padded::count(message.len());
    let all: usize = messages.iter().map(blocks).sum();
    let more = usize::from(TWICE);
    // Every lane takes as long as the longest; the second hash is a block more for each.
    if (blocks(&messages[0]) + more) * LANES_BREAK_EVEN > all + more * messages.len() {
        return 0;
    }
    let mut out = [[0; 32]; LANES];
    // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
    unsafe { group_kernel::<TWICE>(messages, &mut out) }
    digests.copy_from_slice(&out[..digests.len()]);
    digests.len()
}

/// RIPEMD-160 of up to sixteen messages. The caller has seen [`available`] return true.
#[inline]
pub(super) fn ripemd160_32(messages: &[[u8; 32]], digests: &mut [[u8; 20]]) {
    // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
    unsafe { ripemd160_32_kernel(messages, digests) }
}

/// Absorbs the same blocks into up to sixteen states. The caller has seen [`available`] return true.
#[inline]
pub(super) fn shared(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
    // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
    unsafe { shared_kernel(states, blocks) }
}

#[target_feature(enable = "avx512f,avx512bw")]
fn shared_kernel(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
    lanes::sha256_shared::<Lanes>(states, blocks);
}

#[target_feature(enable = "avx512f,avx512bw")]
fn double_64_kernel(messages: &[[u8; 64]; LANES], digests: &mut [[u8; 32]; LANES]) {
    lanes::double_64::<Lanes>(messages, digests);
}

#[target_feature(enable = "avx512f,avx512bw")]
fn group_kernel<const TWICE: bool>(messages: &[&[u8]], digests: &mut [[u8; 32]; LANES]) {
    let mut state = padded_states(messages);
    if TWICE {
        state = lanes::sha256_again(&state);
    }
    lanes::store_digests(&state, digests);
}

#[target_feature(enable = "avx512f,avx512bw")]
fn ripemd160_32_kernel(messages: &[[u8; 32]], digests: &mut [[u8; 20]]) {
    lanes::ripemd160_32::<Lanes>(messages, digests);
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn padded_states(messages: &[&[u8]]) -> [Lanes; 8] {
    let mut padded = [const { Padded::NONE }; LANES];
    for (padded, message) in padded.iter_mut().zip(messages) {
        *padded = Padded::new(message);
    }
    lanes::sha256_states(&padded[..messages.len()])
}

/// The SHA-256 digests of sixteen messages as words in little-endian order: word `i` of all of them
/// in result `i`. These are the `ChaCha20` keys of MuHash.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn keys(messages: &[&[u8]; LANES]) -> [__m512i; 8] {
    let (mut all, mut longest) = (0, 0);
    for message in messages {
        let blocks = Padded::count(message.len());
        all += blocks;
        longest = longest.max(blocks);
    }
    let words = if longest * LANES_BREAK_EVEN > all {
        // One message is much longer than the others, and most lanes would idle.
        let digests = messages.map(sha256);
        Lanes::load(&digests.each_ref(), 0)
    } else {
        let mut words = padded_states(messages);
        for word in &mut words {
            *word = word.swap_bytes();
        }
        words
    };
    let mut key = [words[0].0; 8];
    for (key, word) in key.iter_mut().zip(words) {
        *key = word.0;
    }
    key
}

/// Sixteen lanes; values exist only inside the kernels.
#[derive(Clone, Copy)]
struct Lanes(__m512i);

/// One intrinsic as a method body.
macro_rules! intrinsic {
    ($call:expr) => {{
        // SAFETY: only code inlined into the kernels has values of this type, and the kernels run
        // on CPUs for which `available` is true; memory operands are references of the right size.
        unsafe { $call }
    }};
}

impl Words for Lanes {
    const LANES: usize = LANES;

    #[inline(always)]
    fn splat(word: u32) -> Self {
        Self(intrinsic!(_mm512_set1_epi32(word as i32)))
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(intrinsic!(_mm512_add_epi32(self.0, other.0)))
    }

    #[inline(always)]
    fn rotate_left(self, bits: u32) -> Self {
        Self(intrinsic!(_mm512_rolv_epi32(self.0, _mm512_set1_epi32(bits as i32))))
    }

    #[inline(always)]
    fn shift_right(self, bits: u32) -> Self {
        Self(intrinsic!(_mm512_srlv_epi32(self.0, _mm512_set1_epi32(bits as i32))))
    }

    // The immediate of a three-input function is its truth table, for inputs 0xf0, 0xcc and 0xaa.

    #[inline(always)]
    fn xor3(self, y: Self, z: Self) -> Self {
        Self(intrinsic!(_mm512_ternarylogic_epi32::<0x96>(self.0, y.0, z.0)))
    }

    #[inline(always)]
    fn choose(self, y: Self, z: Self) -> Self {
        Self(intrinsic!(_mm512_ternarylogic_epi32::<0xca>(self.0, y.0, z.0)))
    }

    #[inline(always)]
    fn majority(self, y: Self, z: Self) -> Self {
        Self(intrinsic!(_mm512_ternarylogic_epi32::<0xe8>(self.0, y.0, z.0)))
    }

    #[inline(always)]
    fn or_not_xor(self, y: Self, z: Self) -> Self {
        Self(intrinsic!(_mm512_ternarylogic_epi32::<0x59>(self.0, y.0, z.0)))
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
        let (low, high) = rows.split_at_mut(LANES / 2);
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
        let [r0, r1, r2, r3] = [rows[0].0, rows[1].0, rows[2].0, rows[3].0];
        let low01 = intrinsic!(_mm512_unpacklo_epi32(r0, r1));
        let high01 = intrinsic!(_mm512_unpackhi_epi32(r0, r1));
        let low23 = intrinsic!(_mm512_unpacklo_epi32(r2, r3));
        let high23 = intrinsic!(_mm512_unpackhi_epi32(r2, r3));
        *columns = [
            Lanes(intrinsic!(_mm512_unpacklo_epi64(low01, low23))),
            Lanes(intrinsic!(_mm512_unpackhi_epi64(low01, low23))),
            Lanes(intrinsic!(_mm512_unpacklo_epi64(high01, high23))),
            Lanes(intrinsic!(_mm512_unpackhi_epi64(high01, high23))),
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
