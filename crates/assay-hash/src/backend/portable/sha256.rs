//! SHA-256 compression in portable Rust: the oracle of the other backends.

/// The state before any block, FIPS 180-4 section 5.3.3.
pub(crate) const INITIAL: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// Round constants, FIPS 180-4 section 4.2.2.
pub(crate) const K: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

/// Schedule plus round constants of the second block of any 64-byte message, which is padding only.
pub(crate) const PADDING_64: [u32; 64] = {
    let mut w = [0u32; 16];
    w[0] = 0x8000_0000;
    w[15] = 512;
    schedule(w)
};

/// The schedule of a block, plus the round constants.
const fn schedule(mut w: [u32; 16]) -> [u32; 64] {
    let mut kw = [0u32; 64];
    let mut i = 0;
    while i < 64 {
        if i >= 16 {
            w[i % 16] = next_word(&w, i % 16);
        }
        kw[i] = K[i].wrapping_add(w[i % 16]);
        i += 1;
    }
    kw
}

/// The digest: state words in big-endian order.
#[inline]
pub(crate) fn to_bytes(state: [u32; 8]) -> [u8; 32] {
    let mut out = [0u8; 32];
    for (bytes, word) in out.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    out
}

/// Absorbs whole blocks into `state`.
pub(crate) fn compress(state: &mut [u32; 8], blocks: &[[u8; 64]]) {
    for block in blocks {
        compress_words(state, words(block));
    }
}

/// Absorbs the same blocks into states.
pub(crate) fn shared(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
    for block in blocks {
        let kw = schedule(words(block));
        for state in &mut *states {
            compress_scheduled(state, &kw);
        }
    }
}

/// Double SHA-256 of each message.
pub(crate) fn double_64(messages: &[[u8; 64]], digests: &mut [[u8; 32]]) {
    for (message, digest) in messages.iter().zip(digests) {
        let mut state = INITIAL;
        compress_words(&mut state, words(message));
        compress_scheduled(&mut state, &PADDING_64);
        *digest = rehash(&state);
    }
}

/// Hashes the digest of `state`.
pub(crate) fn rehash(state: &[u32; 8]) -> [u8; 32] {
    let mut words = [0u32; 16];
    words[..8].copy_from_slice(state);
    words[8] = 0x8000_0000;
    words[15] = 256;
    let mut outer = INITIAL;
    compress_words(&mut outer, words);
    to_bytes(outer)
}

/// The compression function on one block of big-endian words, FIPS 180-4 section 6.2.2.
#[inline]
pub(crate) const fn compress_words(state: &mut [u32; 8], mut w: [u32; 16]) {
    let mut vars = *state;
    let (k, _) = K.as_chunks::<16>();
    // A macro, because constant indices let the variables live in registers. Each schedule word is computed just before its
    // round: computing all sixteen at once would stall the rounds.
    macro_rules! steps {
        ($k:expr, $expand:literal, $($index:literal)*) => {$(
            if $expand {
                w[$index] = next_word(&w, $index);
            }
            step::<$index>(&mut vars, w[$index].wrapping_add($k[$index]));
        )*};
    }
    steps!(k[0], false, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    let mut group = 1;
    while group < 4 {
        steps!(k[group], true, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        group += 1;
    }
    let mut i = 0;
    while i < 8 {
        state[i] = state[i].wrapping_add(vars[i]);
        i += 1;
    }
}

/// The same for a block with schedule plus constants `kw`.
#[inline]
fn compress_scheduled(state: &mut [u32; 8], kw: &[u32; 64]) {
    let mut vars = *state;
    for kw in kw.as_chunks::<8>().0 {
        step::<0>(&mut vars, kw[0]);
        step::<1>(&mut vars, kw[1]);
        step::<2>(&mut vars, kw[2]);
        step::<3>(&mut vars, kw[3]);
        step::<4>(&mut vars, kw[4]);
        step::<5>(&mut vars, kw[5]);
        step::<6>(&mut vars, kw[6]);
        step::<7>(&mut vars, kw[7]);
    }
    for (word, add) in state.iter_mut().zip(vars) {
        *word = word.wrapping_add(add);
    }
}

/// The sixteen words of a block.
#[inline]
fn words(block: &[u8; 64]) -> [u32; 16] {
    let (quads, _) = block.as_chunks::<4>();
    core::array::from_fn(|i| u32::from_be_bytes(quads[i]))
}

/// Round `I` modulo 8; the eight variables stay in place and their names rotate instead.
#[inline(always)]
pub(crate) const fn step<const I: usize>(vars: &mut [u32; 8], kw: u32) {
    let [a, b, c] = [vars[place(I, 0)], vars[place(I, 1)], vars[place(I, 2)]];
    let [e, f, g] = [vars[place(I, 4)], vars[place(I, 5)], vars[place(I, 6)]];
    let sigma1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
    let choose = (e & f) ^ (!e & g);
    let t1 = vars[place(I, 7)].wrapping_add(kw).wrapping_add(choose).wrapping_add(sigma1);
    let sigma0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
    // The last factor is the first one of the previous round.
    let majority = b ^ ((a ^ b) & (b ^ c));
    vars[place(I, 3)] = vars[place(I, 3)].wrapping_add(t1);
    vars[place(I, 7)] = t1.wrapping_add(sigma0).wrapping_add(majority);
}

/// Index in round `round` of the variable that started at `variable`.
#[inline(always)]
pub(crate) const fn place(round: usize, variable: usize) -> usize {
    (variable + 8 - round % 8) % 8
}

/// The schedule word that replaces word `i` of the previous sixteen.
#[inline(always)]
const fn next_word(w: &[u32; 16], i: usize) -> u32 {
    let (x, y) = (w[(i + 1) % 16], w[(i + 14) % 16]);
    let sigma0 = x.rotate_right(7) ^ x.rotate_right(18) ^ (x >> 3);
    let sigma1 = y.rotate_right(17) ^ y.rotate_right(19) ^ (y >> 10);
    w[i].wrapping_add(sigma0).wrapping_add(w[(i + 9) % 16]).wrapping_add(sigma1)
}
