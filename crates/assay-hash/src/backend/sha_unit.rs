//! SHA-256 on a CPU's SHA-256 instructions, generic over them: one message, or two independent messages interleaved.
//!
//! The latency of the instructions is about twice their issue interval, so a single message leaves half of the unit idle; two
//! interleaved messages fill it. As in [`lanes`](super::lanes) all code is inlined into the kernels, which [`entries`] generates.

use super::padded::Padded;
use super::portable::sha256::{INITIAL, K, PADDING_64};

/// The working variables of one message, and the instructions on them.
pub(super) trait Unit: Copy {
    /// Four words of a message or of a state, the first one lowest.
    type Four: Copy;

    fn load(words: &[u32; 4]) -> Self::Four;
    fn load_big_endian(bytes: &[u8; 16]) -> Self::Four;
    fn store(four: Self::Four, words: &mut [u32; 4]);
    fn store_big_endian(four: Self::Four, bytes: &mut [u8; 16]);
    fn add_four(a: Self::Four, b: Self::Four) -> Self::Four;
    /// From a, b, c, d and e, f, g, h.
    fn from_rows(rows: [Self::Four; 2]) -> Self;
    fn rows(self) -> [Self::Four; 2];
    fn add(self, other: Self) -> Self;
    /// Four rounds; `kw` has schedule words plus their round constants.
    fn four_rounds(self, kw: Self::Four) -> Self;
    /// The four schedule words after the sixteen given, FIPS 180-4 section 6.2.2 step 1.
    fn next_words(w: [Self::Four; 4]) -> Self::Four;
}

/// Generates the entry functions of the kernels. They are safe to call if the module's `available` is true.
macro_rules! entries {
    ($unit:ty, $features:literal) => {
        /// Absorbs whole blocks into `state`.
        #[inline]
        pub(super) fn compress(state: &mut [u32; 8], blocks: &[[u8; 64]]) {
            #[target_feature(enable = $features)]
            fn kernel(state: &mut [u32; 8], blocks: &[[u8; 64]]) {
                sha_unit::shared::<$unit, 1>(core::array::from_mut(state), blocks);
            }
            // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
            unsafe { kernel(state, blocks) }
        }

        /// Absorbs the same blocks into states.
        #[inline]
        pub(super) fn shared(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
            #[target_feature(enable = $features)]
            fn kernel(states: &mut [[u32; 8]; 2], blocks: &[[u8; 64]]) {
                sha_unit::shared::<$unit, 2>(states, blocks);
            }
            let (pairs, last) = states.as_chunks_mut();
            for pair in pairs {
                // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
                unsafe { kernel(pair, blocks) }
            }
            for state in last {
                compress(state, blocks);
            }
        }

        /// Absorbs a block into each state.
        #[inline]
        pub(super) fn compress_each(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
            #[target_feature(enable = $features)]
            fn kernel(states: &mut [[u32; 8]; 2], blocks: &[[u8; 64]; 2]) {
                sha_unit::each::<$unit, 2>(states, blocks);
            }
            let (pairs, last) = states.as_chunks_mut();
            let (block_pairs, block_last) = blocks.as_chunks();
            for (pair, blocks) in pairs.iter_mut().zip(block_pairs) {
                // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
                unsafe { kernel(pair, blocks) }
            }
            for (state, block) in last.iter_mut().zip(block_last) {
                compress(state, core::slice::from_ref(block));
            }
        }

        /// Double SHA-256 of each message.
        #[inline]
        pub(super) fn double_64(messages: &[[u8; 64]], digests: &mut [[u8; 32]]) {
            #[target_feature(enable = $features)]
            fn kernel(messages: &[[u8; 64]], digests: &mut [[u8; 32]]) {
                sha_unit::double_64::<$unit>(messages, digests);
            }
            // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
            unsafe { kernel(messages, digests) }
        }

        /// SHA-256, double if `TWICE`, of two messages; the first must have at least as many blocks.
        #[inline]
        pub(super) fn pair<const TWICE: bool>(messages: &[&[u8]; 2], digests: &mut [[u8; 32]; 2]) {
            #[target_feature(enable = $features)]
            fn kernel<const TWICE: bool>(messages: &[&[u8]; 2], digests: &mut [[u8; 32]; 2]) {
                sha_unit::pair::<$unit, TWICE>(messages, digests);
            }
            // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
            unsafe { kernel::<TWICE>(messages, digests) }
        }

        /// Hashes the digest of `state`.
        #[inline]
        pub(super) fn rehash(state: &[u32; 8]) -> [u8; 32] {
            #[target_feature(enable = $features)]
            fn kernel(state: &[u32; 8]) -> [u8; 32] {
                sha_unit::rehash::<$unit>(state)
            }
            // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
            unsafe { kernel(state) }
        }
    };
}
pub(super) use entries;

/// Absorbs the same blocks into `N` states.
#[inline(always)]
pub(super) fn shared<U: Unit, const N: usize>(words: &mut [[u32; 8]; N], blocks: &[[u8; 64]]) {
    let mut states = load::<U, N>(words);
    for block in blocks {
        absorb(&mut states, [message::<U>(block); N]);
    }
    store(&states, words);
}

/// Absorbs a block into each of `N` states.
#[inline(always)]
pub(super) fn each<U: Unit, const N: usize>(words: &mut [[u32; 8]; N], blocks: &[[u8; 64]; N]) {
    let mut states = load::<U, N>(words);
    let mut messages = [message::<U>(&blocks[0]); N];
    for (message_words, block) in messages.iter_mut().zip(blocks) {
        *message_words = message::<U>(block);
    }
    absorb(&mut states, messages);
    store(&states, words);
}

#[inline(always)]
fn load<U: Unit, const N: usize>(words: &[[u32; 8]; N]) -> [U; N] {
    let mut states = [initial::<U>(); N];
    for (state, words) in states.iter_mut().zip(words) {
        *state = from_words(words);
    }
    states
}

#[inline(always)]
fn store<U: Unit, const N: usize>(states: &[U; N], words: &mut [[u32; 8]; N]) {
    for (state, words) in states.iter().zip(words) {
        for (row, words) in state.rows().into_iter().zip(words.as_chunks_mut().0) {
            U::store(row, words);
        }
    }
}

/// Double SHA-256 of each message.
#[inline(always)]
pub(super) fn double_64<U: Unit>(messages: &[[u8; 64]], digests: &mut [[u8; 32]]) {
    let (pairs, last) = messages.as_chunks::<2>();
    let (digest_pairs, digest_last) = digests.as_chunks_mut::<2>();
    for (pair, digest) in pairs.iter().zip(digest_pairs) {
        double_64_of::<U, 2>(pair, digest);
    }
    for (one, digest) in last.iter().zip(digest_last) {
        double_64_of::<U, 1>(core::array::from_ref(one), core::array::from_mut(digest));
    }
}

/// Double SHA-256 of `N` interleaved messages.
#[inline(always)]
fn double_64_of<U: Unit, const N: usize>(messages: &[[u8; 64]; N], digests: &mut [[u8; 32]; N]) {
    let mut states = [initial::<U>(); N];
    let mut words = [message::<U>(&messages[0]); N];
    for (words, block) in words.iter_mut().zip(messages) {
        *words = message::<U>(block);
    }
    absorb(&mut states, words);
    absorb_scheduled(&mut states, &PADDING_64);
    second_hash(&states, digests);
}

/// SHA-256, double if `TWICE`, of two messages; the first must have at least as many blocks.
#[inline(always)]
pub(super) fn pair<U: Unit, const TWICE: bool>(
    [longer, shorter]: &[&[u8]; 2],
    digests: &mut [[u8; 32]; 2],
) {
    let (longer, shorter) = (Padded::new(longer), Padded::new(shorter));
    let mut states = [initial::<U>(); 2];
    for i in 0..shorter.blocks() {
        absorb(&mut states, [message::<U>(longer.block(i)), message::<U>(shorter.block(i))]);
    }
    let mut rest = [states[0]];
    for i in shorter.blocks()..longer.blocks() {
        absorb(&mut rest, [message::<U>(longer.block(i))]);
    }
    let states = [rest[0], states[1]];
    if TWICE {
        second_hash(&states, digests);
    } else {
        store_digests(&states, digests);
    }
}

/// Hashes the digest of the state.
#[inline(always)]
pub(super) fn rehash<U: Unit>(words: &[u32; 8]) -> [u8; 32] {
    let mut digest = [0; 32];
    second_hash(&[from_words::<U>(words)], core::array::from_mut(&mut digest));
    digest
}

#[inline(always)]
fn second_hash<U: Unit, const N: usize>(states: &[U; N], digests: &mut [[u8; 32]; N]) {
    // FIPS 180-4 padding of a 32-byte message: one bit, zeros, length 256.
    let (one, length) = (U::load(&[1 << 31, 0, 0, 0]), U::load(&[0, 0, 0, 256]));
    let mut words = [[one, one, one, length]; N];
    for (words, state) in words.iter_mut().zip(states) {
        [words[0], words[1]] = state.rows();
    }
    let mut outer = [initial::<U>(); N];
    absorb(&mut outer, words);
    store_digests(&outer, digests);
}

#[inline(always)]
fn store_digests<U: Unit, const N: usize>(states: &[U; N], digests: &mut [[u8; 32]; N]) {
    for (digest, state) in digests.iter_mut().zip(states) {
        for (row, bytes) in state.rows().into_iter().zip(digest.as_chunks_mut().0) {
            U::store_big_endian(row, bytes);
        }
    }
}

#[inline(always)]
fn initial<U: Unit>() -> U {
    from_words(&INITIAL)
}

#[inline(always)]
fn from_words<U: Unit>(words: &[u32; 8]) -> U {
    let (rows, _) = words.as_chunks();
    U::from_rows([U::load(&rows[0]), U::load(&rows[1])])
}

/// The sixteen words of a block.
#[inline(always)]
fn message<U: Unit>(block: &[u8; 64]) -> [U::Four; 4] {
    let (rows, _) = block.as_chunks();
    [
        U::load_big_endian(&rows[0]),
        U::load_big_endian(&rows[1]),
        U::load_big_endian(&rows[2]),
        U::load_big_endian(&rows[3]),
    ]
}

/// Compresses one block of each of `N` messages.
#[inline(always)]
fn absorb<U: Unit, const N: usize>(states: &mut [U; N], mut words: [[U::Four; 4]; N]) {
    let start = *states;
    // A macro, because `words` live in registers only with a constant slot number.
    macro_rules! group {
        ($($index:literal)*) => {$(
            let k = U::load(&K.as_chunks().0[$index]);
            for lane in 0..N {
                let w = &mut words[lane];
                states[lane] = states[lane].four_rounds(U::add_four(w[$index % 4], k));
                if $index < 12 {
                    let [w0, w4, w8, w12] = [$index, $index + 1, $index + 2, $index + 3];
                    w[$index % 4] = U::next_words([w[w0 % 4], w[w4 % 4], w[w8 % 4], w[w12 % 4]]);
                }
            }
        )*};
    }
    group!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    add(states, &start);
}

/// Compresses the same constant block into each state; `kw` is its schedule plus constants.
#[inline(always)]
fn absorb_scheduled<U: Unit, const N: usize>(states: &mut [U; N], kw: &[u32; 64]) {
    let start = *states;
    for kw in kw.as_chunks().0 {
        let kw = U::load(kw);
        for state in states.iter_mut() {
            *state = state.four_rounds(kw);
        }
    }
    add(states, &start);
}

#[inline(always)]
fn add<U: Unit, const N: usize>(states: &mut [U; N], other: &[U; N]) {
    for (state, other) in states.iter_mut().zip(other) {
        *state = state.add(*other);
    }
}
