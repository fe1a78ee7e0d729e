//! SHA-256 of one message on CPUs without a SHA unit: rounds in general registers with BMI2, whose rotations do not overwrite
//! their operands, and the schedule in vectors, four words at a time.

#![expect(unsafe_code, reason = "vector loads and stores, entry into a target-feature function")]

use core::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_blend_epi32, _mm_loadu_si128, _mm_or_si128,
    _mm_set_epi64x, _mm_setzero_si128, _mm_shuffle_epi8, _mm_shuffle_epi32, _mm_slli_epi32,
    _mm_srli_epi32, _mm_srli_epi64, _mm_storeu_si128, _mm_xor_si128,
};

use super::portable::sha256::{INITIAL, K, step, to_bytes};
use crate::cpu::{CpuFeature, has};

/// True if this CPU has the features of the kernels.
pub(super) fn available() -> bool {
    has(CpuFeature::Avx2) && has(CpuFeature::Bmi2)
}

/// Absorbs whole blocks into `state`. [`available`] must be true.
#[inline]
pub(super) fn compress(state: &mut [u32; 8], blocks: &[[u8; 64]]) {
    // SAFETY: `Backend` calls this module only on CPUs for which `available` is true.
    unsafe { compress_kernel(state, blocks) }
}

/// Hashes the digest of `state`. [`available`] must be true.
pub(super) fn rehash(state: &[u32; 8]) -> [u8; 32] {
    // FIPS 180-4 padding of a 32-byte message: one bit, zeros, length 256.
    let mut block = [0; 64];
    block[..32].copy_from_slice(&to_bytes(*state));
    block[32] = 0x80;
    block[62] = 1;
    let mut outer = INITIAL;
    compress(&mut outer, &[block]);
    to_bytes(outer)
}

#[target_feature(enable = "bmi1,bmi2,avx2")]
fn compress_kernel(state: &mut [u32; 8], blocks: &[[u8; 64]]) {
    let (k, _) = K.as_chunks::<16>();
    let mut kw = [0; 16];
    for block in blocks {
        let mut w = message(block);
        for (i, four) in w.iter().enumerate() {
            store(&mut kw, i, _mm_add_epi32(*four, load(&k[0], i)));
        }
        let mut vars = *state;
        for k in &k[1..] {
            // The words of a later round are computed between rounds that do not depend on them. A macro, because constant
            // indices let the variables live in registers.
            macro_rules! four_rounds {
                ($($index:literal)*) => {$(
                    let next = [w[($index + 1) % 4], w[($index + 2) % 4], w[($index + 3) % 4]];
                    w[$index] = next_words(w[$index], next);
                    step::<{ 4 * $index }>(&mut vars, kw[4 * $index]);
                    step::<{ 4 * $index + 1 }>(&mut vars, kw[4 * $index + 1]);
                    step::<{ 4 * $index + 2 }>(&mut vars, kw[4 * $index + 2]);
                    step::<{ 4 * $index + 3 }>(&mut vars, kw[4 * $index + 3]);
                    store(&mut kw, $index, _mm_add_epi32(w[$index], load(k, $index)));
                )*};
            }
            four_rounds!(0 1 2 3);
        }
        macro_rules! rounds {
            ($($index:literal)*) => {$(step::<$index>(&mut vars, kw[$index]);)*};
        }
        rounds!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        for (word, add) in state.iter_mut().zip(vars) {
            *word = word.wrapping_add(add);
        }
    }
}

/// The sixteen words of a block.
#[inline]
#[target_feature(enable = "bmi1,bmi2,avx2")]
fn message(block: &[u8; 64]) -> [__m128i; 4] {
    let order = _mm_set_epi64x(0x0c0d0e0f_08090a0b, 0x04050607_00010203);
    let mut words = [order; 4];
    for (words, bytes) in words.iter_mut().zip(block.as_chunks::<16>().0) {
        // SAFETY: `bytes` is 16 readable bytes; the load has no alignment requirement.
        let bytes = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
        *words = _mm_shuffle_epi8(bytes, order);
    }
    words
}

/// The four schedule words after the sixteen given, FIPS 180-4 section 6.2.2 step 1.
#[inline]
#[target_feature(enable = "bmi1,bmi2,avx2")]
fn next_words(w0: __m128i, [w4, w8, w12]: [__m128i; 3]) -> __m128i {
    let x = _mm_alignr_epi8::<4>(w4, w0);
    let by_7 = _mm_or_si128(_mm_srli_epi32::<7>(x), _mm_slli_epi32::<25>(x));
    let by_18 = _mm_or_si128(_mm_srli_epi32::<18>(x), _mm_slli_epi32::<14>(x));
    let sigma0 = _mm_xor_si128(_mm_xor_si128(by_7, by_18), _mm_srli_epi32::<3>(x));
    let sum = _mm_add_epi32(_mm_add_epi32(w0, _mm_alignr_epi8::<4>(w12, w8)), sigma0);
    // The last two words depend on the first two.
    let low = sigma1(_mm_shuffle_epi32::<0xfa>(w12));
    let low = _mm_blend_epi32::<0b0011>(_mm_setzero_si128(), _mm_shuffle_epi32::<0x08>(low));
    let sum = _mm_add_epi32(sum, low);
    let high = sigma1(_mm_shuffle_epi32::<0x50>(sum));
    let high = _mm_blend_epi32::<0b1100>(_mm_setzero_si128(), _mm_shuffle_epi32::<0x80>(high));
    _mm_add_epi32(sum, high)
}

/// Input: two words, each in both halves of a 64-bit lane, so that a shift of the lane is a rotation. The results are in lanes 0
/// and 2.
#[inline]
#[target_feature(enable = "bmi1,bmi2,avx2")]
fn sigma1(y: __m128i) -> __m128i {
    let rotated = _mm_xor_si128(_mm_srli_epi64::<17>(y), _mm_srli_epi64::<19>(y));
    _mm_xor_si128(rotated, _mm_srli_epi32::<10>(y))
}

/// Words `4 * i` to `4 * i + 3`.
#[inline]
#[target_feature(enable = "bmi1,bmi2,avx2")]
fn load(words: &[u32; 16], i: usize) -> __m128i {
    let four = &words.as_chunks::<4>().0[i];
    // SAFETY: `four` is 16 readable bytes; the load has no alignment requirement.
    unsafe { _mm_loadu_si128(four.as_ptr().cast()) }
}

/// Writes words `4 * i` to `4 * i + 3`.
#[inline]
#[target_feature(enable = "bmi1,bmi2,avx2")]
fn store(words: &mut [u32; 16], i: usize, value: __m128i) {
    let four = &mut words.as_chunks_mut::<4>().0[i];
    // SAFETY: `four` is 16 writable bytes; the store has no alignment requirement.
    unsafe { _mm_storeu_si128(four.as_mut_ptr().cast(), value) }
}
