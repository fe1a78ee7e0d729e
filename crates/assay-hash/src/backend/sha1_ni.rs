//! SHA-1 with the x86 SHA extensions.

#![expect(unsafe_code, reason = "vector loads and stores, entry into target-feature functions")]

use core::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_loadu_si128, _mm_set_epi32, _mm_set_epi64x, _mm_sha1msg1_epu32,
    _mm_sha1msg2_epu32, _mm_sha1nexte_epu32, _mm_sha1rnds4_epu32, _mm_shuffle_epi8,
    _mm_shuffle_epi32, _mm_storeu_si128, _mm_xor_si128,
};

/// Absorbs whole blocks into `state`. `sha_ni::available` must be true.
#[inline]
pub(super) fn compress(state: &mut [u32; 5], blocks: &[[u8; 64]]) {
    // SAFETY: `Backend` selects this module only on CPUs for which `sha_ni::available` is true.
    unsafe { compress_kernel(state, blocks) }
}

/// The working variables between groups of four steps.
#[derive(Clone, Copy)]
struct Vars {
    /// a, b, c, d from the highest lane down.
    abcd: __m128i,
    /// The same before the last group; its a yields the next e.
    before: __m128i,
}

#[target_feature(enable = "sha,ssse3,sse4.1")]
fn compress_kernel(state: &mut [u32; 5], blocks: &[[u8; 64]]) {
    let mut words = [state[3], state[2], state[1], state[0]];
    // SAFETY: `words` has sixteen bytes, and the load takes any alignment.
    let mut abcd = unsafe { _mm_loadu_si128(words.as_ptr().cast()) };
    let mut e = _mm_set_epi32(state[4].cast_signed(), 0, 0, 0);
    for block in blocks {
        let mut message = load(block);
        // The first group uses e directly, the others the a of the previous group.
        let first = _mm_add_epi32(e, message[0]);
        let mut vars = Vars { abcd: _mm_sha1rnds4_epu32::<0>(abcd, first), before: abcd };
        group::<0>(&mut vars, message[1]);
        group::<0>(&mut vars, message[2]);
        group::<0>(&mut vars, message[3]);
        let next = expand(&mut message, 0);
        group::<0>(&mut vars, next);
        quarter::<1>(&mut vars, &mut message, 1);
        quarter::<2>(&mut vars, &mut message, 2);
        quarter::<3>(&mut vars, &mut message, 3);
        e = _mm_sha1nexte_epu32(vars.before, e);
        abcd = _mm_add_epi32(vars.abcd, abcd);
    }
    // SAFETY: `words` has sixteen bytes, and the store takes any alignment.
    unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), abcd) }
    let mut last = [0u32; 4];
    // SAFETY: `last` has sixteen bytes, and the store takes any alignment.
    unsafe { _mm_storeu_si128(last.as_mut_ptr().cast(), e) }
    *state = [words[3], words[2], words[1], words[0], last[3]];
}

/// The words of a block in groups of four, the first one highest.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn load(block: &[u8; 64]) -> [__m128i; 4] {
    let reverse = _mm_set_epi64x(0x0001_0203_0405_0607, 0x0809_0a0b_0c0d_0e0f);
    let (quarters, _) = block.as_chunks::<16>();
    let mut message = [_mm_shuffle_epi32::<0>(reverse); 4];
    for (four, bytes) in message.iter_mut().zip(quarters) {
        // SAFETY: `bytes` has sixteen bytes, and the load takes any alignment.
        let raw = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
        *four = _mm_shuffle_epi8(raw, reverse);
    }
    message
}

/// The next four words of the schedule, which replace the oldest four at `at`.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn expand(message: &mut [__m128i; 4], at: usize) -> __m128i {
    let [oldest, second, third, newest] =
        [0, 1, 2, 3].map(|offset: usize| message[(at + offset) % 4]);
    let mixed = _mm_xor_si128(_mm_sha1msg1_epu32(oldest, second), third);
    message[at % 4] = _mm_sha1msg2_epu32(mixed, newest);
    message[at % 4]
}

/// Four steps.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn group<const QUARTER: i32>(vars: &mut Vars, message: __m128i) {
    let e = _mm_sha1nexte_epu32(vars.before, message);
    vars.before = vars.abcd;
    vars.abcd = _mm_sha1rnds4_epu32::<QUARTER>(vars.abcd, e);
}

/// Twenty steps with a common constant and mixing function; the oldest words are at `at`.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn quarter<const QUARTER: i32>(vars: &mut Vars, message: &mut [__m128i; 4], at: usize) {
    for offset in 0..5 {
        let next = expand(message, at + offset);
        group::<QUARTER>(vars, next);
    }
}
