//! Hash chains, and SHA-256 from given states: in lanes, generic over a word type.
//!
//! A chain's block is nearly constant. Its first five words are the same in every step, so five rounds and some words of the
//! schedule are computed once for all steps; six to two words are zero or padding. The functions are unrolled and inlined so that
//! the compiler can use this: on sixteen lanes a step has a tenth fewer instructions than a compression.

#![cfg_attr(
    not(any(target_arch = "x86_64", target_arch = "aarch64")),
    expect(dead_code, reason = "one message is all that is hashed at a time without vectors")
)]

use super::lanes::{LANES_MAX, Words, add, load_block, load_states, sha256_absorb, sha256_step};
use super::lanes::{sixteen, store_states};
use super::portable::sha256::K;

/// A chain of truncated hashes of `N` bytes: 16, 24 or 32.
///
/// Step `i` replaces `value` by the first `N` bytes of the state that follows `state` after a block
/// of `prefix`, `i` as two bytes in big-endian order, `value`, and the padding of a message whose
/// first 64 bytes led to `state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain<'a, const N: usize> {
    /// The state before the block of each step.
    pub state: &'a [u32; 8],
    /// Start of the block.
    pub prefix: [u8; 20],
    /// The number of the first step.
    pub start: u8,
    /// Input of the next step.
    pub value: [u8; N],
}

impl<const N: usize> Chain<'_, N> {
    /// The block of step `step`.
    #[inline]
    pub(crate) fn block(&self, step: u8) -> [u8; 64] {
        const { assert!(matches!(N, 16 | 24 | 32), "a value is 16, 24 or 32 bytes long") };
        let mut block = [0; 64];
        block[..20].copy_from_slice(&self.prefix);
        block[21] = step;
        block[22..22 + N].copy_from_slice(&self.value);
        block[22 + N] = 0x80;
        block[62..].copy_from_slice(&Self::BITS.to_be_bytes());
        block
    }

    /// Length of the hashed message in bits: the block before `state`, and the contents of `block`.
    pub(crate) const BITS: u16 = 8 * (64 + 22 + N as u16);
}

/// A path from a node of a binary hash tree to the root, with nodes of 16 bytes.
///
/// A parent is the first 16 bytes of the state that follows `state` after a block of `prefix`, the
/// parent's row as four bytes in big-endian order, its index likewise, its left child, its right
/// child, and the padding of a message whose first 64 bytes led to `state`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreePath<'a> {
    /// The state before the block of each parent.
    pub state: &'a [u32; 8],
    /// Start of each block.
    pub prefix: [u8; 14],
    /// The node's index in its row.
    pub index: u32,
    /// The node.
    pub node: [u8; 16],
    /// Sibling of each node on the path, the lowest first.
    pub siblings: &'a [u8],
}

impl TreePath<'_> {
    /// The block of the parent in row `row`; the node is in the row below.
    #[inline]
    pub(crate) fn block(&self, row: u32) -> [u8; 64] {
        let sibling = &self.siblings[16 * (row as usize - 1)..16 * row as usize];
        let node = &self.node[..];
        let [left, right] = if self.index & 1 == 1 { [sibling, node] } else { [node, sibling] };
        let mut block = [0; 64];
        block[..14].copy_from_slice(&self.prefix);
        block[14..18].copy_from_slice(&row.to_be_bytes());
        block[18..22].copy_from_slice(&(self.index >> 1).to_be_bytes());
        block[22..38].copy_from_slice(left);
        block[38..54].copy_from_slice(right);
        block[54] = 0x80;
        block[62..].copy_from_slice(&Self::BITS.to_be_bytes());
        block
    }

    const BITS: u16 = 8 * (64 + 22 + 32);
}

/// Generates the entry functions of the kernels of a word type. They are safe to call if the module's `available` is true.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
macro_rules! chain_entries {
    ($words:ty, $features:literal) => {
        /// Absorbs one block into each state, one state per lane.
        #[inline]
        pub(super) fn compress_each(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
            #[target_feature(enable = $features)]
            fn kernel(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
                chains::compress_each::<$words>(states, blocks);
            }
            let groups = states.chunks_mut(<$words>::LANES);
            for (states, blocks) in groups.zip(blocks.chunks(<$words>::LANES)) {
                // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
                unsafe { kernel(states, blocks) }
            }
        }

        /// Runs at most one chain per lane, the longest first, up to step `end`.
        #[inline]
        pub(super) fn iterate<const N: usize>(chains: &mut [Chain<'_, N>], end: u8) {
            #[target_feature(enable = $features)]
            fn kernel<const N: usize>(chains: &mut [Chain<'_, N>], end: u8) {
                chains::iterate::<$words, N>(chains, end);
            }
            // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
            unsafe { kernel(chains, end) }
        }

        /// Climbs at most one path per lane up to row `height`.
        #[inline]
        pub(super) fn climb(paths: &mut [TreePath<'_>], height: u32) {
            #[target_feature(enable = $features)]
            fn kernel(paths: &mut [TreePath<'_>], height: u32) {
                chains::climb::<$words>(paths, height);
            }
            // SAFETY: `Backend` selects this module only on CPUs for which `available` is true.
            unsafe { kernel(paths, height) }
        }
    };
}
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(super) use chain_entries;

/// Absorbs one block into each state, at most one state per lane.
#[inline(always)]
pub(super) fn compress_each<W: Words>(states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
    let mut rows = [&blocks[0]; LANES_MAX];
    for (row, block) in rows.iter_mut().zip(blocks) {
        *row = block;
    }
    let mut state = load_states::<W>(&*states);
    sha256_absorb(&mut state, &mut load_block(&rows));
    store_states(&state, states);
}

/// Runs at most one chain per lane, the longest first, up to step `end`.
#[inline(always)]
pub(super) fn iterate<W: Words, const N: usize>(chains: &mut [Chain<'_, N>], end: u8) {
    let mut states = [[0; 8]; LANES_MAX];
    let mut blocks = [[0; 64]; LANES_MAX];
    for ((state, block), chain) in states.iter_mut().zip(&mut blocks).zip(&*chains) {
        *state = *chain.state;
        block[..20].copy_from_slice(&chain.prefix);
        block[20..20 + N].copy_from_slice(&chain.value);
    }
    let state: [W; 8] = load_states(&states);
    let words: [W; 16] = load_block(&blocks.each_ref());
    let mut after_prefix = state;
    let (k, _) = K.as_chunks::<16>();
    sixteen!(I => sha256_step::<W, I>(&mut after_prefix, words[I].add(W::splat(k[0][I]))); 0 1 2 3 4);
    // Halves of words in block order, since the value starts in the middle of a word.
    let mut value = [W::splat(0); 8];
    for (half, word) in value.iter_mut().zip(&words[5..5 + N / 4]) {
        *half = word.rotate_left(16);
    }
    let all = (1 << chains.len()) - 1;
    for step in chains[0].start..end {
        let next = one_step::<W, N>(&state, &after_prefix, &words, step, &value);
        let mut busy = 0;
        for (lane, chain) in chains.iter().enumerate() {
            busy |= u32::from(chain.start <= step) << lane;
        }
        for (half, next) in value.iter_mut().zip(next).take(N / 4) {
            let next = next.rotate_left(16);
            *half = if busy == all { next } else { half.replace(next, busy) };
        }
    }
    for half in &mut value {
        *half = half.rotate_left(16).swap_bytes();
    }
    let mut rows = [[0; 32]; LANES_MAX];
    W::store(&value, &mut rows);
    for (chain, row) in chains.iter_mut().zip(&rows) {
        chain.value.copy_from_slice(&row[..N]);
    }
}

/// The state after the block of a step; `value` has the hashed words rotated by sixteen bits, and `after_prefix` the variables
/// after the five words of the prefix.
#[inline(always)]
fn one_step<W: Words, const N: usize>(
    state: &[W; 8],
    after_prefix: &[W; 8],
    prefix: &[W; 16],
    step: u8,
    value: &[W; 8],
) -> [W; 8] {
    let upper = W::splat(0xffff_0000);
    let mut words = [W::splat(0); 16];
    words[..5].copy_from_slice(&prefix[..5]);
    let mut before = W::splat(u32::from(step) << 16);
    for (word, half) in words[5..].iter_mut().zip(&value[..N / 4]) {
        *word = upper.choose(before, *half);
        before = *half;
    }
    words[5 + N / 4] = upper.choose(before, W::splat(0x8000));
    words[15] = W::splat(Chain::<N>::BITS.into());
    finish_block(state, after_prefix, words)
}

/// Climbs at most one path per lane up to row `height`.
#[inline(always)]
pub(super) fn climb<W: Words>(paths: &mut [TreePath<'_>], height: u32) {
    let mut states = [[0; 8]; LANES_MAX];
    let mut blocks = [[0; 64]; LANES_MAX];
    for ((state, block), path) in states.iter_mut().zip(&mut blocks).zip(&*paths) {
        *state = *path.state;
        block[..14].copy_from_slice(&path.prefix);
        block[16..20].copy_from_slice(&path.index.to_be_bytes());
        block[20..36].copy_from_slice(&path.node);
    }
    let state: [W; 8] = load_states(&states);
    let mut words: [W; 16] = load_block(&blocks.each_ref());
    let mut index = words[4];
    let mut after_prefix = state;
    let (k, _) = K.as_chunks::<16>();
    sixteen!(I => sha256_step::<W, I>(&mut after_prefix, words[I].add(W::splat(k[0][I]))); 0 1 2 3);
    let upper = W::splat(0xffff_0000);
    // Halves of words in block order, since the node starts in the middle of a word.
    let mut node = [words[5], words[6], words[7], words[8]];
    for word in &mut node {
        *word = word.rotate_left(16);
    }
    for row in 1..=height {
        let mut right = 0;
        for (lane, path) in paths.iter().enumerate() {
            right |= (path.index >> (row - 1) & 1) << lane;
        }
        index = index.shift_right(1);
        let siblings = load_siblings::<W>(paths, row);
        let halves = index.rotate_left(16);
        words[4] = upper.choose(W::splat(row << 16), halves);
        let mut before = halves;
        for i in 0..4 {
            let left = node[i].replace(siblings[i], right);
            words[5 + i] = upper.choose(before, left);
            before = left;
        }
        for i in 0..4 {
            let right = siblings[i].replace(node[i], right);
            words[9 + i] = upper.choose(before, right);
            before = right;
        }
        words[13] = upper.choose(before, W::splat(0x8000));
        words[14] = W::splat(0);
        words[15] = W::splat(TreePath::BITS.into());
        let mut vars = after_prefix;
        sha256_step::<W, 4>(&mut vars, words[4].add(W::splat(k[0][4])));
        let next = finish_block(&state, &vars, words);
        for (half, next) in node.iter_mut().zip(next) {
            *half = next.rotate_left(16);
        }
    }
    let mut out = [W::splat(0); 8];
    for (word, half) in out.iter_mut().zip(node) {
        *word = half.rotate_left(16).swap_bytes();
    }
    let mut rows = [[0; 32]; LANES_MAX];
    W::store(&out, &mut rows);
    for (path, row) in paths.iter_mut().zip(&rows) {
        path.node.copy_from_slice(&row[..16]);
        path.index >>= height;
    }
}

/// The siblings below row `row`, with words rotated by half a word.
#[inline(always)]
fn load_siblings<W: Words>(paths: &[TreePath<'_>], row: u32) -> [W; 4] {
    let mut rows = [[0; 32]; LANES_MAX];
    for (bytes, path) in rows.iter_mut().zip(paths) {
        bytes[..16].copy_from_slice(&path.siblings[16 * (row as usize - 1)..16 * row as usize]);
    }
    let words = W::load(&rows.each_ref(), 0);
    let mut siblings = [words[0]; 4];
    for (sibling, word) in siblings.iter_mut().zip(words) {
        *sibling = word.swap_bytes().rotate_left(16);
    }
    siblings
}

/// The state after a block; `vars` are the variables after its first five words.
#[inline(always)]
fn finish_block<W: Words>(state: &[W; 8], vars: &[W; 8], mut words: [W; 16]) -> [W; 8] {
    let mut vars = *vars;
    let (k, _) = K.as_chunks::<16>();
    sixteen!(I => sha256_step::<W, I>(&mut vars, words[I].add(W::splat(k[0][I])));
        5 6 7 8 9 10 11 12 13 14 15);
    // Three copies, not a loop: each has different constants.
    macro_rules! expand {
        ($($group:literal)*) => {$(
            sixteen!(I => {
                let [w1, w9, w14] = [words[(I + 1) % 16], words[(I + 9) % 16], words[(I + 14) % 16]];
                words[I] = next_word(words[I], w1, w9, w14);
                sha256_step::<W, I>(&mut vars, words[I].add(W::splat(k[$group][I])));
            });
        )*};
    }
    expand!(1 2 3);
    add(&mut vars, state);
    vars
}

/// The schedule word sixteen places after `w0`; the least variable terms are added first.
#[inline(always)]
fn next_word<W: Words>(w0: W, w1: W, w9: W, w14: W) -> W {
    let sigma0 = w1.rotate_left(25).xor3(w1.rotate_left(14), w1.shift_right(3));
    let sigma1 = w14.rotate_left(15).xor3(w14.rotate_left(13), w14.shift_right(10));
    w0.add(sigma0).add(sigma1).add(w9)
}
