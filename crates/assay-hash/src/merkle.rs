//! The merkle root of a block, with the mutation test of CVE-2012-2459.

use crate::backend::Backend;

/// The merkle root of `leaves`, and true if the tree is ambiguous.
///
/// A level of odd length repeats its last node, so different leaf lists can share a root (CVE-2012-2459). The flag is `true` if
/// two sibling nodes at any level are equal before that repetition; such a block must be rejected without marking its hash as
/// invalid, since the unmutated block has the same hash (Bitcoin Core `consensus/merkle.cpp`).
///
/// An empty list has the all-zero root.
pub fn merkle_root(leaves: Vec<[u8; 32]>) -> ([u8; 32], bool) {
    merkle_root_with(Backend::detect(), leaves)
}

/// [`merkle_root`] on a given backend.
pub fn merkle_root_with(backend: Backend, mut level: Vec<[u8; 32]>) -> ([u8; 32], bool) {
    let mut mutated = false;
    let mut parents = vec![[0u8; 32]; level.len().div_ceil(2)];
    while level.len() > 1 {
        mutated |= level.as_chunks::<2>().0.iter().any(|[left, right]| left == right);
        if let Some(&last) = level.last()
            && level.len() % 2 == 1
        {
            level.push(last);
        }
        parents.truncate(level.len() / 2);
        backend.double_64(level.as_flattened().as_chunks::<64>().0, &mut parents);
        core::mem::swap(&mut level, &mut parents);
    }
    (level.first().copied().unwrap_or([0; 32]), mutated)
}
