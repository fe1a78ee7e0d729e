//! Hashes of many messages of different lengths: the txids of a block, the keys of its inputs.
//!
//! Messages are sorted by their number of 64-byte blocks, and neighbours share the lanes of a
//! vector or the idle slots of the SHA unit. Lanes that finish early idle until the longest of
//! their group is done, which the sorting keeps rare.

use core::cmp::Reverse;

use crate::backend::Backend;

/// Block counts above this share one bucket and are sorted by comparison.
const BUCKETS: usize = 64;

/// A message cut into blocks and padded, FIPS 180-4 section 5.1.1.
pub(crate) struct Padded<'a> {
    /// The blocks without padding.
    whole: &'a [[u8; 64]],
    /// The last bytes and the padding, in the first or in both.
    tail: [[u8; 64]; 2],
    blocks: usize,
}

impl<'a> Padded<'a> {
    /// No message.
    pub(crate) const NONE: Self = Self { whole: &[], tail: [[0; 64]; 2], blocks: 0 };

    #[inline]
    pub(crate) fn new(message: &'a [u8]) -> Self {
        let (whole, rest) = message.as_chunks::<64>();
        let mut tail = [[0; 64]; 2];
        tail[0][..rest.len()].copy_from_slice(rest);
        tail[0][rest.len()] = 0x80;
        let last = usize::from(rest.len() >= 56);
        tail[last][56..].copy_from_slice(&(message.len() as u64).wrapping_mul(8).to_be_bytes());
        Self { whole, tail, blocks: whole.len() + 1 + last }
    }

    /// Blocks of a message of `length` bytes.
    #[inline]
    pub(crate) fn count(length: usize) -> usize {
        // One byte of 0x80 and eight of length must fit behind the message.
        length / 64 + 1 + usize::from(length % 64 >= 56)
    }

    /// How many blocks there are; at least one.
    #[inline]
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// Block `index`; past the end some block, for lanes that are done.
    #[inline]
    pub(crate) fn block(&self, index: usize) -> &[u8; 64] {
        match self.whole.get(index) {
            Some(block) => block,
            None => &self.tail[(index - self.whole.len()).min(1)],
        }
    }
}

/// Double SHA-256 of each of many messages.
///
/// `digests[i]` receives the hash of `messages[i]`. Faster than one call of
/// [`sha256d`](crate::sha256d) per message, from two messages on.
///
/// # Panics
///
/// If the slices differ in length.
pub fn sha256d_many(messages: &[&[u8]], digests: &mut [[u8; 32]]) {
    sha256d_many_with(Backend::detect(), messages, digests);
}

/// [`sha256d_many`] on a given backend.
///
/// # Panics
///
/// As [`sha256d_many`].
pub fn sha256d_many_with(backend: Backend, messages: &[&[u8]], digests: &mut [[u8; 32]]) {
    hash_many::<true>(backend, messages, digests);
}

/// RIPEMD-160 of the SHA-256 of each of many messages.
///
/// `digests[i]` receives the hash of `messages[i]`.
///
/// # Panics
///
/// If the slices differ in length.
pub fn hash160_many(messages: &[&[u8]], digests: &mut [[u8; 20]]) {
    hash160_many_with(Backend::detect(), messages, digests);
}

/// [`hash160_many`] on a given backend.
///
/// # Panics
///
/// As [`hash160_many`].
pub fn hash160_many_with(backend: Backend, messages: &[&[u8]], digests: &mut [[u8; 20]]) {
    let mut inner = vec![[0; 32]; messages.len()];
    hash_many::<false>(backend, messages, &mut inner);
    ripemd160_32_many_with(backend, &inner, digests);
}

/// RIPEMD-160 of each of many messages of 32 bytes.
///
/// # Panics
///
/// If the slices differ in length.
pub fn ripemd160_32_many(messages: &[[u8; 32]], digests: &mut [[u8; 20]]) {
    ripemd160_32_many_with(Backend::detect(), messages, digests);
}

/// [`ripemd160_32_many`] on a given backend.
///
/// # Panics
///
/// As [`ripemd160_32_many`].
pub fn ripemd160_32_many_with(backend: Backend, messages: &[[u8; 32]], digests: &mut [[u8; 20]]) {
    assert_eq!(messages.len(), digests.len(), "one digest per message");
    let groups = messages.chunks(Backend::GROUP_MAX);
    for (messages, digests) in groups.zip(digests.chunks_mut(Backend::GROUP_MAX)) {
        backend.ripemd160_32(messages, digests);
    }
}

/// SHA-256, double if `TWICE`, of each message.
pub(crate) fn hash_many<const TWICE: bool>(
    backend: Backend,
    messages: &[&[u8]],
    digests: &mut [[u8; 32]],
) {
    assert_eq!(messages.len(), digests.len(), "one digest per message");
    let order = by_blocks(messages);
    let mut rest = &order[..];
    while !rest.is_empty() {
        let mut group = [&[][..]; Backend::GROUP_MAX];
        let candidates = rest.len().min(group.len());
        for (message, &index) in group.iter_mut().zip(rest) {
            *message = messages[index];
        }
        let mut hashed = [[0; 32]; Backend::GROUP_MAX];
        let done = backend.group::<TWICE>(&group[..candidates], &mut hashed[..candidates]);
        for (digest, &index) in hashed[..done].iter().zip(rest) {
            digests[index] = *digest;
        }
        rest = &rest[done..];
    }
}

/// Indices of `messages`, those with the most blocks first.
fn by_blocks(messages: &[&[u8]]) -> Vec<usize> {
    let bucket = |message: &[u8]| BUCKETS - Padded::count(message.len()).min(BUCKETS);
    let mut starts = [0; BUCKETS + 1];
    for message in messages {
        starts[bucket(message) + 1] += 1;
    }
    let long = starts[1];
    for i in 1..=BUCKETS {
        starts[i] += starts[i - 1];
    }
    let mut order = vec![0; messages.len()];
    for (index, message) in messages.iter().enumerate() {
        let next = &mut starts[bucket(message)];
        order[*next] = index;
        *next += 1;
    }
    order[..long].sort_unstable_by_key(|&index| Reverse(messages[index].len()));
    order
}
