//! SHA-256 (FIPS 180-4): one-shot, streaming, double, and batches of 64-byte messages.

use crate::backend::Backend;
use crate::backend::portable::sha256::{INITIAL, to_bytes};

/// An incremental SHA-256 computation.
///
/// Pieces may have any length; whole 64-byte blocks inside a piece are compressed in place without being copied.
#[derive(Clone)]
pub struct Sha256 {
    state: [u32; 8],
    buffer: [u8; 64],
    /// Total message bytes so far; the last `bytes % 64` of them are in `buffer`.
    bytes: u64,
    backend: Backend,
}

/// Passes on the whole blocks of a message, whose last `used` bytes are in the buffer, and buffers the rest.
#[inline(always)]
pub(crate) fn absorb<const BLOCK: usize>(
    buffer: &mut [u8; BLOCK],
    used: usize,
    mut data: &[u8],
    mut compress: impl FnMut(&[[u8; BLOCK]]),
) {
    if used != 0 {
        let room = BLOCK - used;
        if data.len() < room {
            buffer[used..used + data.len()].copy_from_slice(data);
            return;
        }
        let (head, rest) = data.split_at(room);
        buffer[used..].copy_from_slice(head);
        compress(core::slice::from_ref(buffer));
        data = rest;
    }
    let (blocks, rest) = data.as_chunks::<BLOCK>();
    if !blocks.is_empty() {
        compress(blocks);
    }
    buffer[..rest.len()].copy_from_slice(rest);
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sha256").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Sha256 {
    /// The state before any block, FIPS 180-4 section 5.3.3.
    pub const INITIAL_STATE: [u32; 8] = INITIAL;

    /// Starts an empty message on the fastest backend of this machine.
    #[inline]
    pub fn new() -> Self {
        Self::with_backend(Backend::detect())
    }

    /// Starts an empty message on a given backend.
    #[inline]
    pub fn with_backend(backend: Backend) -> Self {
        Self { state: INITIAL, buffer: [0; 64], bytes: 0, backend }
    }

    /// Continues from a saved compression state.
    ///
    /// `bytes_hashed` is the number of message bytes already absorbed.
    ///
    /// # Panics
    ///
    /// If `bytes_hashed` is not a multiple of 64: a compression state exists only between blocks.
    #[inline]
    pub fn from_midstate(state: [u32; 8], bytes_hashed: u64) -> Self {
        assert!(bytes_hashed.is_multiple_of(64), "a midstate lies between two 64-byte blocks");
        Self { state, buffer: [0; 64], bytes: bytes_hashed, backend: Backend::detect() }
    }

    /// Absorbs `data`.
    #[inline]
    pub fn update(&mut self, data: &[u8]) {
        let used = (self.bytes % 64) as usize;
        self.bytes = self.bytes.wrapping_add(data.len() as u64);
        let Self { state, buffer, backend, .. } = self;
        absorb(buffer, used, data, |blocks| backend.compress(state, blocks));
    }

    /// Absorbs the same `data` into each of `hashers`, faster than one by one if all have absorbed the same number of bytes so
    /// far, modulo 64.
    ///
    /// The schedule, which depends on the block alone, is then computed once for all.
    pub fn update_all(hashers: &mut [Self], data: &[u8]) {
        let Some(first) = hashers.first() else { return };
        let (used, backend) = (first.bytes % 64, first.backend);
        let to_boundary = (64 - used as usize) % 64;
        let in_step = |hasher: &Self| hasher.bytes % 64 == used && hasher.backend == backend;
        let Some((head, rest)) = data.split_at_checked(to_boundary) else {
            return hashers.iter_mut().for_each(|hasher| hasher.update(data));
        };
        if !hashers.iter().all(in_step) {
            return hashers.iter_mut().for_each(|hasher| hasher.update(data));
        }
        let (blocks, tail) = rest.as_chunks::<64>();
        for hashers in hashers.chunks_mut(Backend::GROUP_MAX) {
            let mut states = [[0; 8]; Backend::GROUP_MAX];
            for (state, hasher) in states.iter_mut().zip(&mut *hashers) {
                hasher.update(head);
                *state = hasher.state;
            }
            backend.shared(&mut states[..hashers.len()], blocks);
            for (hasher, state) in hashers.iter_mut().zip(states) {
                hasher.state = state;
                hasher.bytes = hasher.bytes.wrapping_add(64 * blocks.len() as u64);
                hasher.update(tail);
            }
        }
    }

    /// Pads and returns the digest.
    #[inline]
    pub fn finalize(self) -> [u8; 32] {
        to_bytes(self.finish())
    }

    /// Pads and returns the SHA-256 of the digest, the family's usual "double" hash.
    #[inline]
    pub fn finalize_double(self) -> [u8; 32] {
        let backend = self.backend;
        backend.rehash(&self.finish())
    }

    /// Appends the padding of FIPS 180-4 section 5.1.1 and returns the state words.
    #[inline]
    fn finish(mut self) -> [u32; 8] {
        let used = (self.bytes % 64) as usize;
        self.buffer[used..].fill(0);
        self.backend.pad(&mut self.state, &mut self.buffer, used, self.bytes);
        self.state
    }
}

/// SHA-256 of `data`.
#[inline]
pub fn sha256(data: &[u8]) -> [u8; 32] {
    to_bytes(Backend::detect().one_shot(data))
}

/// SHA-256 of the SHA-256 of `data`: txids, block hashes, checksums.
pub fn sha256d(data: &[u8]) -> [u8; 32] {
    let backend = Backend::detect();
    backend.rehash(&backend.one_shot(data))
}

/// Double SHA-256 of each of many 64-byte messages.
///
/// `input` is `n` concatenated messages of 64 bytes, `output` receives `n` digests of 32 bytes in the same order, as for the
/// inner nodes of a merkle tree.
///
/// # Panics
///
/// If `input` is not a multiple of 64 bytes long or `output` is not half as long.
pub fn sha256d_64_many_with(backend: Backend, input: &[u8], output: &mut [u8]) {
    let (messages, rest) = input.as_chunks::<64>();
    assert!(rest.is_empty(), "input is a whole number of 64-byte messages");
    let (digests, rest) = output.as_chunks_mut::<32>();
    assert!(rest.is_empty() && digests.len() == messages.len(), "one 32-byte digest per message");
    backend.double_64(messages, digests);
}
