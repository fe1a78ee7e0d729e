//! SHA-256 for hash-based signatures: compressions from given states, and hash chains.
//!
//! The tweakable hashes of FIPS 205, section 11.2, begin with a block that depends on the key alone. Its state is computed once;
//! a short message is then one compression. A chain (FIPS 205, algorithm 5) iterates such a hash.

use crate::backend::{Backend, Chain, TreePath};

/// One compression of SHA-256 in each of many states: `states[i]` absorbs `blocks[i]`.
///
/// The caller adds the padding.
///
/// # Panics
///
/// If the slices differ in length.
pub fn sha256_compress_many_with(backend: Backend, states: &mut [[u32; 8]], blocks: &[[u8; 64]]) {
    assert_eq!(states.len(), blocks.len(), "one block per state");
    let groups = states.chunks_mut(Backend::GROUP_MAX);
    for (states, blocks) in groups.zip(blocks.chunks(Backend::GROUP_MAX)) {
        backend.compress_each(states, blocks);
    }
}

/// Runs each chain from its first step up to, but excluding, step `end`.
///
/// A chain that starts at or after `end` is unchanged. Chains of similar length share the lanes of a vector, independent of their
/// order.
pub fn run_chains_with<const N: usize>(backend: Backend, chains: &mut [Chain<'_, N>], end: u8) {
    let order = by_start(chains, end);
    let mut rest = &order[..];
    while !rest.is_empty() {
        let (indices, after) = rest.split_at(rest.len().min(backend.chains_at_once()));
        let Some(first) = chains.first().copied() else { return };
        let mut group = [first; Backend::GROUP_MAX];
        for (chain, &index) in group.iter_mut().zip(indices) {
            *chain = chains[index];
        }
        let group = &mut group[..indices.len()];
        backend.iterate(group, end);
        for (chain, &index) in group.iter().zip(indices) {
            chains[index].value = chain.value;
        }
        rest = after;
    }
}

/// Climbs each path by `height` rows, from a node of row zero.
///
/// # Panics
///
/// If `height` is above 31 or a path has fewer than `height` siblings.
pub fn climb_paths_with(backend: Backend, paths: &mut [TreePath<'_>], height: u32) {
    assert!(height < 32, "indices have 32 bits");
    let bytes = 16 * height as usize;
    assert!(paths.iter().all(|path| path.siblings.len() >= bytes), "a sibling for each row");
    for group in paths.chunks_mut(Backend::GROUP_MAX) {
        backend.climb(group, height);
    }
}

/// Indices of the chains with steps to run, the longest first.
fn by_start<const N: usize>(chains: &[Chain<'_, N>], end: u8) -> Vec<usize> {
    let mut starts = [0; 257];
    for chain in chains {
        starts[usize::from(chain.start) + 1] += 1;
    }
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut order = vec![0; starts[usize::from(end)]];
    for (index, chain) in chains.iter().enumerate() {
        if chain.start < end {
            let next = &mut starts[usize::from(chain.start)];
            order[*next] = index;
            *next += 1;
        }
    }
    order
}
