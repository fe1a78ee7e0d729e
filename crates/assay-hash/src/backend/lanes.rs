//! SHA-256 and RIPEMD-160, generic over a word type: a `u32` for one message, or a vector with the same word of several messages.
//!
//! All code here is inlined into the kernels, the functions that enable the target features of the vectors; [`entries`] generates
//! those for a word type. The code therefore uses loops but no closures around vectors, which would be separate functions without
//! the features.

#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    expect(dead_code, reason = "one message is all that is hashed at a time without vectors")
)]

use super::padded::Padded;
use super::portable::sha256::{INITIAL, K, PADDING_64, place};
use super::ripemd160::{self, LEFT_ADD, LEFT_ROTATE, LEFT_WORD};
use super::ripemd160::{RIGHT_ADD, RIGHT_ROTATE, RIGHT_WORD};

/// Maximum lanes of any word type.
pub(super) const LANES_MAX: usize = 16;

/// One word of several messages.
pub(crate) trait Words: Copy {
    /// Number of messages.
    const LANES: usize;

    fn splat(word: u32) -> Self;
    fn add(self, other: Self) -> Self;
    /// By 1 to 31 bits.
    fn rotate_left(self, bits: u32) -> Self;
    fn shift_right(self, bits: u32) -> Self;
    fn xor(self, other: Self) -> Self;
    fn xor3(self, y: Self, z: Self) -> Self;
    /// The bits of `y` where `self` is set, else those of `z`.
    fn choose(self, y: Self, z: Self) -> Self;
    /// The bits set in at least two of the three.
    fn majority(self, y: Self, z: Self) -> Self;
    /// `(self | !y) ^ z`
    fn or_not_xor(self, y: Self, z: Self) -> Self;
    fn swap_bytes(self) -> Self;
    /// The lanes of `new` whose bit is set in `lanes`, else those of `self`.
    fn replace(self, new: Self, lanes: u32) -> Self;
    /// Result `i` is word `i`, little endian, of the rows from byte `at` on; one row per lane.
    fn load<const ROW: usize>(rows: &[&[u8; ROW]; LANES_MAX], at: usize) -> [Self; 8];
    /// The inverse of `load`.
    fn store(words: &[Self; 8], rows: &mut [[u8; 32]; LANES_MAX]);
    /// The lanes as an array.
    fn lanes(self) -> [u32; LANES_MAX];
}

impl Words for u32 {
    const LANES: usize = 1;

    #[inline(always)]
    fn splat(word: u32) -> Self {
        word
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn rotate_left(self, bits: u32) -> Self {
        self.rotate_left(bits)
    }

    #[inline(always)]
    fn shift_right(self, bits: u32) -> Self {
        self >> bits
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn xor3(self, y: Self, z: Self) -> Self {
        self ^ y ^ z
    }

    #[inline(always)]
    fn choose(self, y: Self, z: Self) -> Self {
        z ^ (self & (y ^ z))
    }

    #[inline(always)]
    fn majority(self, y: Self, z: Self) -> Self {
        (self & y) | (z & (self | y))
    }

    #[inline(always)]
    fn or_not_xor(self, y: Self, z: Self) -> Self {
        (self | !y) ^ z
    }

    #[inline(always)]
    fn swap_bytes(self) -> Self {
        self.swap_bytes()
    }

    #[inline(always)]
    fn replace(self, new: Self, lanes: u32) -> Self {
        if lanes & 1 == 1 { new } else { self }
    }

    #[inline(always)]
    fn load<const ROW: usize>(rows: &[&[u8; ROW]; LANES_MAX], at: usize) -> [Self; 8] {
        let (words, _) = rows[0][at..].as_chunks::<4>();
        core::array::from_fn(|i| Self::from_le_bytes(words[i]))
    }

    #[inline(always)]
    fn store(words: &[Self; 8], rows: &mut [[u8; 32]; LANES_MAX]) {
        for (bytes, word) in rows[0].as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
    }

    #[inline(always)]
    fn lanes(self) -> [u32; LANES_MAX] {
        [self; LANES_MAX]
    }
}

/// Repeats a statement with a constant index from 0 to 15, so that arrays live in registers.
macro_rules! sixteen {
    ($index:ident => $body:expr) => {
        sixteen!($index => $body; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    ($index:ident => $body:expr; $($literal:literal)*) => {$({
        const $index: usize = $literal;
        $body;
    })*};
}

pub(super) use sixteen;

/// Methods of a vector that are one intrinsic each.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! intrinsics {
    ($($name:ident($($operand:ident),+): $intrinsic:path;)+) => {$(
        #[inline(always)]
        fn $name(self, $($operand: Self),+) -> Self {
            Self(intrinsic!($intrinsic(self.0, $($operand.0),+)))
        }
    )+};
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use intrinsics;

/// Generates the entry functions of the kernels of a word type. They are safe to call if the module's `available` is true.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! entries {
    ($words:ty, $features:literal) => {
        /// Double SHA-256 of the first messages: all, or as many as fill all lanes if at most `break_even` would be left. Returns
        /// the number hashed.
        #[inline]
        pub(super) fn double_64(
            messages: &[[u8; 64]],
            digests: &mut [[u8; 32]],
            break_even: usize,
        ) -> usize {
            #[target_feature(enable = $features)]
            fn kernel(messages: &[[u8; 64]], digests: &mut [[u8; 32]]) {
                lanes::double_64::<$words>(messages, digests);
            }
            let left = messages.len() % <$words>::LANES;
            let done = messages.len() - if left > break_even { 0 } else { left };
            // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
            unsafe { kernel(&messages[..done], &mut digests[..done]) }
            done
        }

        /// SHA-256, double if `TWICE`, of the first messages, one per lane, sorted by descending number of blocks. Returns the
        /// number hashed, or 0 if sequential hashing is faster: it hashes `break_even` blocks in the time of one block in every
        /// lane.
        #[inline]
        pub(super) fn group<const TWICE: bool>(
            messages: &[&[u8]],
            digests: &mut [[u8; 32]],
            break_even: usize,
        ) -> usize {
            #[target_feature(enable = $features)]
            fn kernel<const TWICE: bool>(messages: &[&[u8]], digests: &mut [[u8; 32]]) {
                lanes::group::<$words, TWICE>(messages, digests);
            }
            let messages = &messages[..messages.len().min(<$words>::LANES)];
            if !lanes::pays::<TWICE>(messages, break_even) {
                return 0;
            }
            // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
            unsafe { kernel::<TWICE>(messages, digests) }
            messages.len()
        }

        /// Absorbs the same blocks into SHA-256 states.
        #[inline]
        pub(super) fn shared(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
            #[target_feature(enable = $features)]
            fn kernel(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
                lanes::sha256_shared::<$words>(states, blocks);
            }
            for states in states.chunks_mut(<$words>::LANES) {
                // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
                unsafe { kernel(states, blocks) }
            }
        }

        /// RIPEMD-160 of messages of 32 bytes.
        #[inline]
        pub(super) fn ripemd160_32(messages: &[[u8; 32]], digests: &mut [[u8; 20]]) {
            #[target_feature(enable = $features)]
            fn kernel(messages: &[[u8; 32]], digests: &mut [[u8; 20]]) {
                lanes::ripemd160_32::<$words>(messages, digests);
            }
            let groups = messages.chunks(<$words>::LANES);
            for (messages, digests) in groups.zip(digests.chunks_mut(<$words>::LANES)) {
                // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
                unsafe { kernel(messages, digests) }
            }
        }
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use entries;

/// True if lanes are faster for all messages, the longest first, than sequential hashing.
pub(super) fn pays<const TWICE: bool>(messages: &[&[u8]], break_even: usize) -> bool {
    let blocks = |message: &&[u8]| Padded::count(message.len()) + usize::from(TWICE);
    // Every lane takes the time of the longest.
    blocks(&messages[0]) * break_even <= messages.iter().map(blocks).sum()
}

/// Double SHA-256 of messages of 64 bytes.
#[inline(always)]
pub(super) fn double_64<W: Words>(messages: &[[u8; 64]], digests: &mut [[u8; 32]]) {
    for (messages, digests) in messages.chunks(W::LANES).zip(digests.chunks_mut(W::LANES)) {
        let mut rows = [&messages[0]; LANES_MAX];
        for (row, message) in rows.iter_mut().zip(messages) {
            *row = message;
        }
        let mut state = initial::<W>();
        sha256_absorb(&mut state, &mut load_block(&rows));
        sha256_absorb_scheduled(&mut state, &PADDING_64);
        store_digests(&sha256_again(&state), digests);
    }
}

/// SHA-256, double if `TWICE`, of at most one message per lane.
#[inline(always)]
pub(super) fn group<W: Words, const TWICE: bool>(messages: &[&[u8]], digests: &mut [[u8; 32]]) {
    let mut padded = [const { Padded::NONE }; LANES_MAX];
    for (padded, message) in padded.iter_mut().zip(messages) {
        *padded = Padded::new(message);
    }
    let mut state = sha256_states::<W>(&padded[..messages.len()]);
    if TWICE {
        state = sha256_again(&state);
    }
    store_digests(&state, &mut digests[..messages.len()]);
}

/// The SHA-256 state after each message; at most one message per lane, the other lanes are unspecified.
#[inline(always)]
fn sha256_states<W: Words>(messages: &[Padded<'_>]) -> [W; 8] {
    let (mut shortest, mut longest) = (usize::MAX, 0);
    for message in messages {
        shortest = shortest.min(message.blocks());
        longest = longest.max(message.blocks());
    }
    let mut state = initial::<W>();
    for i in 0..longest {
        let mut rows = [messages[0].block(i); LANES_MAX];
        for (row, message) in rows.iter_mut().zip(messages) {
            *row = message.block(i);
        }
        let before = state;
        sha256_absorb(&mut state, &mut load_block(&rows));
        if i >= shortest {
            let mut busy = 0;
            for (lane, message) in messages.iter().enumerate() {
                busy |= u32::from(i < message.blocks()) << lane;
            }
            for (word, before) in state.iter_mut().zip(before) {
                *word = before.replace(*word, busy);
            }
        }
    }
    state
}

/// Absorbs the same blocks into SHA-256 states, at most one per lane.
///
/// The schedule depends on the block alone. It is computed for as many blocks as there are lanes, one per lane, and then each of
/// its words is added to all states.
#[inline(always)]
pub(super) fn sha256_shared<W: Words>(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
    let mut state = load_states::<W>(states);
    for blocks in blocks.chunks(W::LANES) {
        let mut rows = [&blocks[0]; LANES_MAX];
        for (row, block) in rows.iter_mut().zip(blocks) {
            *row = block;
        }
        let schedule = sha256_schedule::<W>(&rows);
        for block in 0..blocks.len() {
            let start = state;
            for words in schedule.as_chunks::<16>().0 {
                sixteen!(I => sha256_step::<W, I>(&mut state, W::splat(words[I][block])));
            }
            add(&mut state, &start);
        }
    }
    store_states(&state, states);
}

/// States as words, at most one per lane.
#[inline(always)]
pub(super) fn load_states<W: Words>(states: &[[u32; 8]]) -> [W; 8] {
    let mut rows = [[0; 32]; LANES_MAX];
    for (row, state) in rows.iter_mut().zip(states) {
        for (bytes, word) in row.as_chunks_mut::<4>().0.iter_mut().zip(state) {
            *bytes = word.to_le_bytes();
        }
    }
    W::load(&rows.each_ref(), 0)
}

/// The inverse of [`load_states`].
#[inline(always)]
pub(super) fn store_states<W: Words>(words: &[W; 8], states: &mut [[u32; 8]]) {
    let mut rows = [[0; 32]; LANES_MAX];
    W::store(words, &mut rows);
    for (state, row) in states.iter_mut().zip(&rows) {
        for (word, bytes) in state.iter_mut().zip(row.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
    }
}

/// The schedules of blocks, with the round constants added: word by word, one block per lane.
#[inline(always)]
fn sha256_schedule<W: Words>(blocks: &[&[u8; 64]; LANES_MAX]) -> [[u32; LANES_MAX]; 64] {
    let mut schedule = [[0; LANES_MAX]; 64];
    let mut words: [W; 16] = load_block(blocks);
    for (group, (out, k)) in
        schedule.as_chunks_mut::<16>().0.iter_mut().zip(K.as_chunks::<16>().0).enumerate()
    {
        sixteen!(I => {
            if group > 0 {
                let [w1, w9, w14] = [words[(I + 1) % 16], words[(I + 9) % 16], words[(I + 14) % 16]];
                words[I] = next_word(words[I], w1, w9, w14);
            }
            out[I] = words[I].add(W::splat(k[I])).lanes();
        });
    }
    schedule
}

/// Hashes the digests of the states.
#[inline(always)]
fn sha256_again<W: Words>(state: &[W; 8]) -> [W; 8] {
    // A message of 32 bytes with its padding, FIPS 180-4 section 5.1.1.
    let mut words = [W::splat(0); 16];
    words[..8].copy_from_slice(state);
    words[8] = W::splat(0x8000_0000);
    words[15] = W::splat(256);
    let mut outer = initial::<W>();
    sha256_absorb(&mut outer, &mut words);
    outer
}

/// The digests of the states, at most one per lane.
#[inline(always)]
fn store_digests<W: Words>(state: &[W; 8], digests: &mut [[u8; 32]]) {
    let mut words = *state;
    for word in &mut words {
        *word = word.swap_bytes();
    }
    let mut rows = [[0; 32]; LANES_MAX];
    W::store(&words, &mut rows);
    digests.copy_from_slice(&rows[..digests.len()]);
}

/// RIPEMD-160 of messages of 32 bytes, at most one per lane.
#[inline(always)]
pub(super) fn ripemd160_32<W: Words>(messages: &[[u8; 32]], digests: &mut [[u8; 20]]) {
    let mut rows = [&messages[0]; LANES_MAX];
    for (row, message) in rows.iter_mut().zip(messages) {
        *row = message;
    }
    let mut words = [W::splat(0); 16];
    words[..8].copy_from_slice(&W::load(&rows, 0));
    words[8] = W::splat(0x80);
    words[14] = W::splat(256);
    let mut state = [W::splat(0); 5];
    for (word, initial) in state.iter_mut().zip(ripemd160::INITIAL) {
        *word = W::splat(initial);
    }
    ripemd160_absorb(&mut state, &words);
    words[..5].copy_from_slice(&state);
    let mut out = [[0; 32]; LANES_MAX];
    W::store(words.first_chunk().expect("eight of sixteen"), &mut out);
    for (digest, row) in digests.iter_mut().zip(&out) {
        digest.copy_from_slice(&row[..20]);
    }
}

#[inline(always)]
fn initial<W: Words>() -> [W; 8] {
    let mut state = [W::splat(0); 8];
    for (word, initial) in state.iter_mut().zip(INITIAL) {
        *word = W::splat(initial);
    }
    state
}

/// The big-endian words of one block per lane.
#[inline(always)]
pub(super) fn load_block<W: Words>(rows: &[&[u8; 64]; LANES_MAX]) -> [W; 16] {
    let mut words = [W::splat(0); 16];
    words[..8].copy_from_slice(&W::load(rows, 0));
    words[8..].copy_from_slice(&W::load(rows, 32));
    for word in &mut words {
        *word = word.swap_bytes();
    }
    words
}

/// SHA-256's compression of one block per message; overwrites `words`.
#[inline(always)]
pub(super) fn sha256_absorb<W: Words>(state: &mut [W; 8], words: &mut [W; 16]) {
    let start = *state;
    let (k, _) = K.as_chunks::<16>();
    sixteen!(I => sha256_step::<W, I>(state, words[I].add(W::splat(k[0][I]))));
    for k in &k[1..] {
        sixteen!(I => {
            let [w1, w9, w14] = [words[(I + 1) % 16], words[(I + 9) % 16], words[(I + 14) % 16]];
            words[I] = next_word(words[I], w1, w9, w14);
            sha256_step::<W, I>(state, words[I].add(W::splat(k[I])));
        });
    }
    add(state, &start);
}

/// The same if all messages have the same block; `kw` is its schedule plus constants.
#[inline(always)]
fn sha256_absorb_scheduled<W: Words>(state: &mut [W; 8], kw: &[u32; 64]) {
    let start = *state;
    for kw in kw.as_chunks::<16>().0 {
        sixteen!(I => sha256_step::<W, I>(state, W::splat(kw[I])));
    }
    add(state, &start);
}

/// Round `I` modulo 8; the eight variables stay in place and their names rotate instead.
#[inline(always)]
pub(super) fn sha256_step<W: Words, const I: usize>(state: &mut [W; 8], kw: W) {
    let [a, b, c] = [state[place(I, 0)], state[place(I, 1)], state[place(I, 2)]];
    let [e, f, g] = [state[place(I, 4)], state[place(I, 5)], state[place(I, 6)]];
    let sigma1 = e.rotate_left(26).xor3(e.rotate_left(21), e.rotate_left(7));
    let t1 = state[place(I, 7)].add(kw).add(e.choose(f, g).add(sigma1));
    let sigma0 = a.rotate_left(30).xor3(a.rotate_left(19), a.rotate_left(10));
    state[place(I, 3)] = state[place(I, 3)].add(t1);
    state[place(I, 7)] = t1.add(sigma0.add(a.majority(b, c)));
}

/// The schedule word sixteen places after `w0`.
#[inline(always)]
fn next_word<W: Words>(w0: W, w1: W, w9: W, w14: W) -> W {
    let sigma0 = w1.rotate_left(25).xor3(w1.rotate_left(14), w1.shift_right(3));
    let sigma1 = w14.rotate_left(15).xor3(w14.rotate_left(13), w14.shift_right(10));
    w0.add(w9).add(sigma0.add(sigma1))
}

#[inline(always)]
pub(super) fn add<W: Words>(state: &mut [W; 8], other: &[W; 8]) {
    for (word, other) in state.iter_mut().zip(other) {
        *word = word.add(*other);
    }
}

/// RIPEMD-160's compression of one block per message.
#[inline(always)]
pub(crate) fn ripemd160_absorb<W: Words>(state: &mut [W; 5], words: &[W; 16]) {
    let start = *state;
    let [mut left, mut right] = [start; 2];
    ripemd160_round::<W, 0>(&mut left, &mut right, words);
    ripemd160_round::<W, 1>(&mut left, &mut right, words);
    ripemd160_round::<W, 2>(&mut left, &mut right, words);
    ripemd160_round::<W, 3>(&mut left, &mut right, words);
    ripemd160_round::<W, 4>(&mut left, &mut right, words);
    for (i, word) in state.iter_mut().enumerate() {
        *word = start[(i + 1) % 5].add(left[(i + 2) % 5]).add(right[(i + 3) % 5]);
    }
}

/// Sixteen steps of both lines, which are independent.
#[inline(always)]
fn ripemd160_round<W: Words, const ROUND: usize>(
    left: &mut [W; 5],
    right: &mut [W; 5],
    words: &[W; 16],
) {
    sixteen!(I => {
        let word = words[LEFT_WORD[ROUND][I]].add(W::splat(LEFT_ADD[ROUND]));
        ripemd160_step(left, mix(ROUND, left), word, LEFT_ROTATE[ROUND][I]);
        let word = words[RIGHT_WORD[ROUND][I]].add(W::splat(RIGHT_ADD[ROUND]));
        ripemd160_step(right, mix(4 - ROUND, right), word, RIGHT_ROTATE[ROUND][I]);
    });
}

/// The mixing functions; the left line uses them in order, the right line in reverse.
#[inline(always)]
fn mix<W: Words>(function: usize, [_, x, y, z, _]: &[W; 5]) -> W {
    match function {
        0 => x.xor3(*y, *z),
        1 => x.choose(*y, *z),
        2 => x.or_not_xor(*y, *z),
        3 => z.choose(*x, *y),
        _ => y.or_not_xor(*z, *x),
    }
}

#[inline(always)]
fn ripemd160_step<W: Words>(line: &mut [W; 5], mixed: W, word: W, bits: u32) {
    let [a, b, c, d, e] = *line;
    *line = [e, a.add(mixed).add(word).rotate_left(bits).add(e), b, c.rotate_left(10), d];
}
