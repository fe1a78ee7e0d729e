//! Double SHA-256 of sixteen 64-byte messages at once, one message per 32-bit lane of AVX-512.
//!
//! A rotation is one instruction and so is every three-input function, which brings a round down
//! to about 28 instructions for sixteen messages.

#![expect(unsafe_code, reason = "vector loads and stores, entry into target-feature functions")]

use core::arch::x86_64::{
    __m256i, __m512i, _mm256_storeu_si256, _mm512_add_epi32, _mm512_castsi512_si256,
    _mm512_extracti64x4_epi64, _mm512_loadu_si512, _mm512_mask_mov_epi32,
    _mm512_permutex2var_epi64, _mm512_ror_epi32, _mm512_set_epi64, _mm512_set1_epi32,
    _mm512_set4_epi32, _mm512_shuffle_epi8, _mm512_shuffle_i32x4, _mm512_srli_epi32,
    _mm512_ternarylogic_epi32, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32,
    _mm512_unpacklo_epi64,
};

use super::portable::sha256::{K, PADDING_64, place};
use crate::many::Padded;
use crate::sha256::{INITIAL, sha256};

/// Messages per batch.
pub(super) const LANES: usize = 16;

/// Blocks the SHA unit compresses, two messages interleaved, in the time of one batch of blocks.
const LANES_BREAK_EVEN: usize = 9;

/// Whether this CPU has what the kernels need.
pub(super) fn available() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("avx512bw")
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
        unsafe { double_64_batch(batch, output) }
    }
    batches.len() * LANES
}

/// Double SHA-256 of all messages, those with the most blocks first; returns how many, or 0 if it
/// would not pay.
///
/// The caller has seen [`available`] return true.
#[inline]
pub(super) fn double_group(messages: &[&[u8]], digests: &mut [[u8; 32]]) -> usize {
    let blocks = |message: &&[u8]| Padded::count(message.len());
    let all: usize = messages.iter().map(blocks).sum();
    // Every lane takes as long as the longest; the second hash is a block more for each.
    if (blocks(&messages[0]) + 1) * LANES_BREAK_EVEN > all + messages.len() {
        return 0;
    }
    let padded: [Padded<'_>; LANES] =
        core::array::from_fn(|lane| Padded::new(messages.get(lane).copied().unwrap_or(&[])));
    let mut out = [[0; 32]; LANES];
    // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
    unsafe { double_group_kernel(&padded, &mut out) }
    digests.copy_from_slice(&out[..digests.len()]);
    digests.len()
}

#[target_feature(enable = "avx512f,avx512bw")]
fn double_group_kernel(messages: &[Padded<'_>; LANES], digests: &mut [[u8; 32]; LANES]) {
    second_hash(&hash_group(messages), digests);
}

/// The SHA-256 digests of sixteen messages as words in little-endian order: word `i` of all of them
/// in result `i`. These are the `ChaCha20` keys of MuHash.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(super) fn keys(messages: &[&[u8]; LANES]) -> [__m512i; 8] {
    let padded = messages.map(Padded::new);
    let all: usize = padded.iter().map(Padded::blocks).sum();
    let longest = padded.iter().map(Padded::blocks).max().unwrap_or(0);
    if longest * LANES_BREAK_EVEN > all {
        return transposed_keys(messages);
    }
    let mut key = hash_group(&padded);
    for word in &mut key {
        *word = swap_bytes(*word);
    }
    key
}

/// [`keys`] where one message is much longer than the others, so that most lanes would idle.
#[cold]
#[target_feature(enable = "avx512f,avx512bw")]
fn transposed_keys(messages: &[&[u8]; LANES]) -> [__m512i; 8] {
    let mut rows = [[0u32; LANES]; 8];
    for (lane, message) in messages.iter().enumerate() {
        let digest = sha256(message);
        for (row, word) in rows.iter_mut().zip(digest.as_chunks::<4>().0) {
            row[lane] = u32::from_le_bytes(*word);
        }
    }
    let mut key = [splat(0); 8];
    for (word, row) in key.iter_mut().zip(&rows) {
        // SAFETY: `row` is 64 readable bytes; the load has no alignment requirement.
        *word = unsafe { _mm512_loadu_si512(row.as_ptr().cast()) };
    }
    key
}

/// The states after whole messages.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn hash_group(messages: &[Padded<'_>; LANES]) -> [__m512i; 8] {
    let mut state = INITIAL.map(|word| splat(word));
    let shortest = messages.iter().map(Padded::blocks).min().unwrap_or(0);
    let longest = messages.iter().map(Padded::blocks).max().unwrap_or(0);
    for i in 0..longest {
        let before = state;
        absorb(&mut state, &mut load_blocks(&messages.each_ref().map(|m| m.block(i))));
        if i >= shortest {
            let mut busy = 0u16;
            for (lane, message) in messages.iter().enumerate() {
                busy |= u16::from(i < message.blocks()) << lane;
            }
            for (word, before) in state.iter_mut().zip(before) {
                *word = _mm512_mask_mov_epi32(before, busy, *word);
            }
        }
    }
    state
}

#[target_feature(enable = "avx512f,avx512bw")]
fn double_64_batch(messages: &[[u8; 64]; LANES], digests: &mut [[u8; 32]; LANES]) {
    let mut state = INITIAL.map(|word| splat(word));
    absorb(&mut state, &mut load_blocks(&messages.each_ref()));
    absorb_scheduled(&mut state, &PADDING_64);
    second_hash(&state, digests);
}

/// The SHA-256 of the digest each lane of `state` stands for.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn second_hash(state: &[__m512i; 8], digests: &mut [[u8; 32]; LANES]) {
    // The digest padded as a 32-byte message, FIPS 180-4 section 5.1.1.
    let mut words = [splat(0); 16];
    words[..8].copy_from_slice(state);
    words[8] = splat(0x8000_0000);
    words[15] = splat(256);
    let mut outer = INITIAL.map(|word| splat(word));
    absorb(&mut outer, &mut words);
    store_digests(&outer, digests);
}

/// Compresses one block per lane and leaves `words` spent.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn absorb(state: &mut [__m512i; 8], words: &mut [__m512i; 16]) {
    let start = *state;
    let (k, _) = K.as_chunks::<16>();
    // Macros, because an index must be a constant for its array to live in registers.
    macro_rules! steps {
        ($k:expr, $($index:literal)*) => {$(
            step::<$index>(state, _mm512_add_epi32(words[$index], splat($k[$index])));
        )*};
    }
    macro_rules! expanding_steps {
        ($k:expr, $($index:literal)*) => {$(
            words[$index] = next_word(
                words[$index],
                words[($index + 1) % 16],
                words[($index + 9) % 16],
                words[($index + 14) % 16],
            );
            step::<$index>(state, _mm512_add_epi32(words[$index], splat($k[$index])));
        )*};
    }
    steps!(k[0], 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    for k in &k[1..] {
        expanding_steps!(k, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    }
    add(state, &start);
}

/// Compresses the same constant block in each lane; `kw` is its schedule plus constants.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn absorb_scheduled(state: &mut [__m512i; 8], kw: &[u32; 64]) {
    let start = *state;
    macro_rules! steps {
        ($kw:expr, $($index:literal)*) => {$( step::<$index>(state, splat($kw[$index])); )*};
    }
    for kw in kw.as_chunks::<8>().0 {
        steps!(kw, 0 1 2 3 4 5 6 7);
    }
    add(state, &start);
}

/// Round `I` modulo 8; the eight variables stay in place and their names rotate instead.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn step<const I: usize>(state: &mut [__m512i; 8], kw: __m512i) {
    let at = |variable| place(I, variable);
    let [a, b, c] = [state[at(0)], state[at(1)], state[at(2)]];
    let [e, f, g, h] = [state[at(4)], state[at(5)], state[at(6)], state[at(7)]];
    let sigma1 =
        xor3(_mm512_ror_epi32::<6>(e), _mm512_ror_epi32::<11>(e), _mm512_ror_epi32::<25>(e));
    let choose = _mm512_ternarylogic_epi32::<0xca>(e, f, g);
    let t1 = _mm512_add_epi32(_mm512_add_epi32(h, kw), _mm512_add_epi32(choose, sigma1));
    let sigma0 =
        xor3(_mm512_ror_epi32::<2>(a), _mm512_ror_epi32::<13>(a), _mm512_ror_epi32::<22>(a));
    let majority = _mm512_ternarylogic_epi32::<0xe8>(a, b, c);
    state[at(3)] = _mm512_add_epi32(state[at(3)], t1);
    state[at(7)] = _mm512_add_epi32(t1, _mm512_add_epi32(sigma0, majority));
}

/// The schedule word sixteen places after `w0`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn next_word(w0: __m512i, w1: __m512i, w9: __m512i, w14: __m512i) -> __m512i {
    let sigma0 =
        xor3(_mm512_ror_epi32::<7>(w1), _mm512_ror_epi32::<18>(w1), _mm512_srli_epi32::<3>(w1));
    let sigma1 = xor3(
        _mm512_ror_epi32::<17>(w14),
        _mm512_ror_epi32::<19>(w14),
        _mm512_srli_epi32::<10>(w14),
    );
    _mm512_add_epi32(_mm512_add_epi32(w0, w9), _mm512_add_epi32(sigma0, sigma1))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn xor3(x: __m512i, y: __m512i, z: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0x96>(x, y, z)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn add(state: &mut [__m512i; 8], other: &[__m512i; 8]) {
    for (word, other) in state.iter_mut().zip(other) {
        *word = _mm512_add_epi32(*word, *other);
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn splat(word: u32) -> __m512i {
    _mm512_set1_epi32(word as i32)
}

/// Reverses the bytes of each 32-bit lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn swap_bytes(x: __m512i) -> __m512i {
    _mm512_shuffle_epi8(x, _mm512_set4_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203))
}

/// Word `i` of every block in result `i`: a 16 by 16 transposition of 32-bit words.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_blocks(blocks: &[&[u8; 64]; LANES]) -> [__m512i; 16] {
    let mut words = [splat(0); 16];
    // Column `4 * l + c` of four blocks ends up in 128-bit lane `l` of `columns[c]`.
    let mut quads = [[splat(0); 4]; 4];
    for (columns, rows) in quads.iter_mut().zip(blocks.as_chunks::<4>().0) {
        let [r0, r1, r2, r3] =
            [load_row(rows[0]), load_row(rows[1]), load_row(rows[2]), load_row(rows[3])];
        let low01 = _mm512_unpacklo_epi32(r0, r1);
        let high01 = _mm512_unpackhi_epi32(r0, r1);
        let low23 = _mm512_unpacklo_epi32(r2, r3);
        let high23 = _mm512_unpackhi_epi32(r2, r3);
        *columns = [
            _mm512_unpacklo_epi64(low01, low23),
            _mm512_unpackhi_epi64(low01, low23),
            _mm512_unpacklo_epi64(high01, high23),
            _mm512_unpackhi_epi64(high01, high23),
        ];
    }
    for c in 0..4 {
        let even01 = _mm512_shuffle_i32x4::<0x88>(quads[0][c], quads[1][c]);
        let odd01 = _mm512_shuffle_i32x4::<0xdd>(quads[0][c], quads[1][c]);
        let even23 = _mm512_shuffle_i32x4::<0x88>(quads[2][c], quads[3][c]);
        let odd23 = _mm512_shuffle_i32x4::<0xdd>(quads[2][c], quads[3][c]);
        words[c] = _mm512_shuffle_i32x4::<0x88>(even01, even23);
        words[c + 4] = _mm512_shuffle_i32x4::<0x88>(odd01, odd23);
        words[c + 8] = _mm512_shuffle_i32x4::<0xdd>(even01, even23);
        words[c + 12] = _mm512_shuffle_i32x4::<0xdd>(odd01, odd23);
    }
    words
}

/// The inverse arrangement for eight words per lane.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_digests(state: &[__m512i; 8], digests: &mut [[u8; 32]; LANES]) {
    // Words `4 * q ..` of message `4 * l + c` end up in 128-bit lane `l` of `halves[q][c]`.
    let mut halves = [[splat(0); 4]; 2];
    for (columns, rows) in halves.iter_mut().zip(state.as_chunks::<4>().0) {
        let [r0, r1, r2, r3] =
            [swap_bytes(rows[0]), swap_bytes(rows[1]), swap_bytes(rows[2]), swap_bytes(rows[3])];
        let low01 = _mm512_unpacklo_epi32(r0, r1);
        let high01 = _mm512_unpackhi_epi32(r0, r1);
        let low23 = _mm512_unpacklo_epi32(r2, r3);
        let high23 = _mm512_unpackhi_epi32(r2, r3);
        *columns = [
            _mm512_unpacklo_epi64(low01, low23),
            _mm512_unpackhi_epi64(low01, low23),
            _mm512_unpacklo_epi64(high01, high23),
            _mm512_unpackhi_epi64(high01, high23),
        ];
    }
    let front = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
    let back = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
    for c in 0..4 {
        let first = _mm512_permutex2var_epi64(halves[0][c], front, halves[1][c]);
        let second = _mm512_permutex2var_epi64(halves[0][c], back, halves[1][c]);
        store_digest(&mut digests[c], _mm512_castsi512_si256(first));
        store_digest(&mut digests[c + 4], _mm512_extracti64x4_epi64::<1>(first));
        store_digest(&mut digests[c + 8], _mm512_castsi512_si256(second));
        store_digest(&mut digests[c + 12], _mm512_extracti64x4_epi64::<1>(second));
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn load_row(block: &[u8; 64]) -> __m512i {
    // SAFETY: `block` is 64 readable bytes; the load has no alignment requirement.
    let row = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
    swap_bytes(row)
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_digest(digest: &mut [u8; 32], value: __m256i) {
    // SAFETY: `digest` is 32 writable bytes; the store has no alignment requirement.
    unsafe { _mm256_storeu_si256(digest.as_mut_ptr().cast(), value) }
}
