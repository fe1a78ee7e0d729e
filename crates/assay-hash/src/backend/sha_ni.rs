//! SHA-256 with the x86 SHA extensions: one message, and two independent messages interleaved.
//!
//! `sha256rnds2` takes four cycles but a new one can start every two, so a single message leaves
//! half of the unit idle; two interleaved messages fill it.

#![expect(unsafe_code, reason = "vector loads and stores, entry into target-feature functions")]

use core::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_loadu_si128, _mm_set_epi32, _mm_set_epi64x,
    _mm_sha256msg1_epu32, _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32, _mm_shuffle_epi8,
    _mm_shuffle_epi32, _mm_storeu_si128, _mm_unpackhi_epi64, _mm_unpacklo_epi64,
};

use super::portable::sha256::{K, PADDING_64};
use crate::cpu::{CpuFeature, has};
use crate::many::Padded;
use crate::sha256::INITIAL;

/// Whether this CPU has what the kernels need.
pub(super) fn available() -> bool {
    has(CpuFeature::Sha) && has(CpuFeature::Ssse3) && has(CpuFeature::Sse41)
}

/// Absorbs whole blocks into `state`. The caller has seen [`available`] return true.
#[inline]
pub(super) fn compress(state: &mut [u32; 8], blocks: &[[u8; 64]]) {
    // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
    unsafe { compress_kernel(state, blocks) }
}

/// Double SHA-256 of each message. The caller has seen [`available`] return true.
#[inline]
pub(super) fn double_64(messages: &[[u8; 64]], digests: &mut [[u8; 32]]) {
    // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
    unsafe { double_64_kernel(messages, digests) }
}

/// SHA-256, double if `TWICE`, of two messages, the first one of no fewer blocks. The caller has
/// seen [`available`] return true.
#[inline]
pub(super) fn pair<const TWICE: bool>([longer, shorter]: &[&[u8]; 2], digests: &mut [[u8; 32]; 2]) {
    // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
    unsafe { pair_kernel::<TWICE>([Padded::new(longer), Padded::new(shorter)], digests) }
}

/// Absorbs the same blocks into states. The caller has seen [`available`] return true.
#[inline]
pub(super) fn shared(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
    let (pairs, last) = states.as_chunks_mut::<2>();
    for pair in pairs {
        // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
        unsafe { shared_kernel(pair, blocks) }
    }
    for state in last {
        compress(state, blocks);
    }
}

/// The SHA-256 of the digest that `state` stands for. The caller has seen [`available`] return
/// true.
#[inline]
pub(super) fn rehash(state: &[u32; 8]) -> [u8; 32] {
    // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
    unsafe { rehash_kernel(state) }
}

/// The working variables of one message, arranged as `sha256rnds2` wants them.
#[derive(Clone, Copy)]
struct State {
    /// a, b, e, f from the highest lane down.
    abef: __m128i,
    /// c, d, g, h from the highest lane down.
    cdgh: __m128i,
}

#[target_feature(enable = "sha,ssse3,sse4.1")]
fn compress_kernel(words: &mut [u32; 8], blocks: &[[u8; 64]]) {
    let mut state = [State::from_words(words)];
    for block in blocks {
        absorb(&mut state, [message(block)]);
    }
    state[0].store_words(words);
}

#[target_feature(enable = "sha,ssse3,sse4.1")]
fn shared_kernel([first, second]: &mut [[u32; 8]; 2], blocks: &[[u8; 64]]) {
    let mut states = [State::from_words(first), State::from_words(second)];
    for block in blocks {
        absorb(&mut states, [message(block); 2]);
    }
    states[0].store_words(first);
    states[1].store_words(second);
}

#[target_feature(enable = "sha,ssse3,sse4.1")]
fn double_64_kernel(messages: &[[u8; 64]], digests: &mut [[u8; 32]]) {
    let (pairs, last) = messages.as_chunks::<2>();
    let (digest_pairs, digest_last) = digests.as_chunks_mut::<2>();
    for (pair, digest) in pairs.iter().zip(digest_pairs) {
        double_64_lanes(pair, digest);
    }
    for (one, digest) in last.iter().zip(digest_last) {
        double_64_lanes(core::array::from_ref(one), core::array::from_mut(digest));
    }
}

/// Double SHA-256 of `N` interleaved messages.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn double_64_lanes<const N: usize>(messages: &[[u8; 64]; N], digests: &mut [[u8; 32]; N]) {
    let mut state = [State::from_words(&INITIAL); N];
    let mut words = [[_mm_set_epi32(0, 0, 0, 0); 4]; N];
    for (words, block) in words.iter_mut().zip(messages) {
        *words = message(block);
    }
    absorb(&mut state, words);
    absorb_scheduled(&mut state, &PADDING_64);
    second_hash(&state, digests);
}

#[target_feature(enable = "sha,ssse3,sse4.1")]
fn pair_kernel<const TWICE: bool>([longer, shorter]: [Padded<'_>; 2], digests: &mut [[u8; 32]; 2]) {
    let mut states = [State::from_words(&INITIAL); 2];
    for i in 0..shorter.blocks() {
        absorb(&mut states, [message(longer.block(i)), message(shorter.block(i))]);
    }
    let mut rest = [states[0]];
    for i in shorter.blocks()..longer.blocks() {
        absorb(&mut rest, [message(longer.block(i))]);
    }
    let states = [rest[0], states[1]];
    if TWICE {
        second_hash(&states, digests);
    } else {
        store_digests(&states, digests);
    }
}

#[target_feature(enable = "sha,ssse3,sse4.1")]
fn rehash_kernel(words: &[u32; 8]) -> [u8; 32] {
    let mut digest = [0; 32];
    second_hash(&[State::from_words(words)], core::array::from_mut(&mut digest));
    digest
}

/// The SHA-256 of the digest each state stands for.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn second_hash<const N: usize>(states: &[State; N], digests: &mut [[u8; 32]; N]) {
    let mut words = [[_mm_set_epi32(0, 0, 0, 0); 4]; N];
    for (words, state) in words.iter_mut().zip(states) {
        let (abcd, efgh) = state.rows();
        // FIPS 180-4 padding of a 32-byte message: one bit, zeros, length 256.
        let one = _mm_set_epi32(0, 0, 0, i32::MIN);
        let length = _mm_set_epi32(256, 0, 0, 0);
        *words = [abcd, efgh, one, length];
    }
    let mut outer = [State::from_words(&INITIAL); N];
    absorb(&mut outer, words);
    store_digests(&outer, digests);
}

/// The digests that states stand for.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn store_digests<const N: usize>(states: &[State; N], digests: &mut [[u8; 32]; N]) {
    for (digest, state) in digests.iter_mut().zip(states) {
        let (abcd, efgh) = state.rows();
        let halves = digest.as_chunks_mut::<16>().0;
        store_bytes(&mut halves[0], swap_bytes(abcd));
        store_bytes(&mut halves[1], swap_bytes(efgh));
    }
}

impl State {
    #[inline]
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    fn from_words(words: &[u32; 8]) -> Self {
        let quads = words.as_chunks::<4>().0;
        let badc = _mm_shuffle_epi32::<0xb1>(load_words(&quads[0]));
        let fehg = _mm_shuffle_epi32::<0xb1>(load_words(&quads[1]));
        Self { abef: _mm_unpacklo_epi64(fehg, badc), cdgh: _mm_unpackhi_epi64(fehg, badc) }
    }

    #[inline]
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    fn store_words(&self, words: &mut [u32; 8]) {
        let (abcd, efgh) = self.rows();
        let quads = words.as_chunks_mut::<4>().0;
        store_words(&mut quads[0], abcd);
        store_words(&mut quads[1], efgh);
    }

    /// The state words in order: a, b, c, d from the lowest lane up, then e, f, g, h.
    #[inline]
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    fn rows(&self) -> (__m128i, __m128i) {
        let badc = _mm_unpackhi_epi64(self.abef, self.cdgh);
        let fehg = _mm_unpacklo_epi64(self.abef, self.cdgh);
        (_mm_shuffle_epi32::<0xb1>(badc), _mm_shuffle_epi32::<0xb1>(fehg))
    }

    /// Four rounds; each lane of `kw` is a schedule word plus its round constant.
    #[inline]
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    fn four_rounds(&mut self, kw: __m128i) {
        self.cdgh = _mm_sha256rnds2_epu32(self.cdgh, self.abef, kw);
        let high = _mm_shuffle_epi32::<0x0e>(kw);
        self.abef = _mm_sha256rnds2_epu32(self.abef, self.cdgh, high);
    }

    #[inline]
    #[target_feature(enable = "sha,ssse3,sse4.1")]
    fn add(&mut self, other: &Self) {
        self.abef = _mm_add_epi32(self.abef, other.abef);
        self.cdgh = _mm_add_epi32(self.cdgh, other.cdgh);
    }
}

/// Compresses one block of each of `N` messages.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn absorb<const N: usize>(states: &mut [State; N], mut words: [[__m128i; 4]; N]) {
    let start = *states;
    // A macro, because the slot number must be a constant for `words` to live in registers.
    macro_rules! group {
        ($($index:literal)*) => {$(
            let k = load_words(&K.as_chunks::<4>().0[$index]);
            for lane in 0..N {
                let w = &mut words[lane];
                states[lane].four_rounds(_mm_add_epi32(w[$index % 4], k));
                if $index < 12 {
                    w[$index % 4] = next_words(
                        w[$index % 4],
                        w[($index + 1) % 4],
                        w[($index + 2) % 4],
                        w[($index + 3) % 4],
                    );
                }
            }
        )*};
    }
    group!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    for (state, start) in states.iter_mut().zip(&start) {
        state.add(start);
    }
}

/// Compresses the same constant block into each state; `kw` is its schedule plus constants.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn absorb_scheduled<const N: usize>(states: &mut [State; N], kw: &[u32; 64]) {
    let start = *states;
    for kw in kw.as_chunks::<4>().0 {
        let kw = load_words(kw);
        for state in states.iter_mut() {
            state.four_rounds(kw);
        }
    }
    for (state, start) in states.iter_mut().zip(&start) {
        state.add(start);
    }
}

/// The four schedule words after the sixteen given, FIPS 180-4 section 6.2.2 step 1.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn next_words(w0: __m128i, w4: __m128i, w8: __m128i, w12: __m128i) -> __m128i {
    let sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w4), _mm_alignr_epi8::<4>(w12, w8));
    _mm_sha256msg2_epu32(sum, w12)
}

/// The sixteen words of a block.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn message(block: &[u8; 64]) -> [__m128i; 4] {
    let rows = block.as_chunks::<16>().0;
    [
        swap_bytes(load_bytes(&rows[0])),
        swap_bytes(load_bytes(&rows[1])),
        swap_bytes(load_bytes(&rows[2])),
        swap_bytes(load_bytes(&rows[3])),
    ]
}

/// Reverses the bytes of each 32-bit lane.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn swap_bytes(x: __m128i) -> __m128i {
    _mm_shuffle_epi8(x, _mm_set_epi64x(0x0c0d0e0f_08090a0b, 0x04050607_00010203))
}

#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn load_words(words: &[u32; 4]) -> __m128i {
    // SAFETY: `words` is 16 readable bytes; the load has no alignment requirement.
    unsafe { _mm_loadu_si128(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn load_bytes(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: `bytes` is 16 readable bytes; the load has no alignment requirement.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn store_words(words: &mut [u32; 4], value: __m128i) {
    // SAFETY: `words` is 16 writable bytes; the store has no alignment requirement.
    unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), value) }
}

#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn store_bytes(bytes: &mut [u8; 16], value: __m128i) {
    // SAFETY: `bytes` is 16 writable bytes; the store has no alignment requirement.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), value) }
}
