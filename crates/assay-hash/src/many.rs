//! Hashes of many messages of different lengths: the txids of a block, the keys of its inputs.
//!
//! Messages are sorted by their number of 64-byte blocks, and neighbours share the lanes of a vector or the idle slots of the SHA
//! unit. Finished lanes idle until the longest message of their group is done; sorting makes this rare.

use core::cmp::Reverse;

use crate::backend::Backend;
use crate::backend::padded::Padded;
use crate::ripemd160::ripemd160;

/// Block counts above this share one bucket and are sorted by comparison.
const BUCKETS: usize = 64;

/// Double SHA-256 of each of many messages.
///
/// `digests[i]` receives the hash of `messages[i]`. Faster than one call of [`sha256d`](crate::sha256d) per message, from two
/// messages on.
///
/// # Panics
///
/// If the slices differ in length.
pub fn sha256d_many_with(backend: Backend, messages: &[&[u8]], digests: &mut [[u8; 32]]) {
    hash_many::<true>(backend, messages, digests);
}

/// SHA-256 of each of many messages.
///
/// `digests[i]` receives the hash of `messages[i]`.
///
/// # Panics
///
/// If the slices differ in length.
pub fn sha256_many_with(backend: Backend, messages: &[&[u8]], digests: &mut [[u8; 32]]) {
    hash_many::<false>(backend, messages, digests);
}

/// RIPEMD-160 of the SHA-256 of each of many messages.
///
/// `digests[i]` receives the hash of `messages[i]`.
///
/// # Panics
///
/// If the slices differ in length.
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
pub fn ripemd160_32_many_with(backend: Backend, messages: &[[u8; 32]], digests: &mut [[u8; 20]]) {
    assert_eq!(messages.len(), digests.len(), "one digest per message");
    let groups = messages.chunks(Backend::GROUP_MAX);
    for (messages, digests) in groups.zip(digests.chunks_mut(Backend::GROUP_MAX)) {
        // A single message is slower in lanes than by itself, two are faster.
        if messages.len() > 1 && backend.ripemd160_32(messages, digests) {
            continue;
        }
        for (message, digest) in messages.iter().zip(digests) {
            *digest = ripemd160(message);
        }
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

/// Indices of `messages`, sorted by descending number of blocks.
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
