//! The message digest, and the leaves that it selects.

use assay_hash::{Backend, Sha512, sha256_many_with};

use crate::Check;
use crate::params::ParameterSet;

/// The leaves of a signature, FIPS 205 algorithm 20 lines 6 to 12.
#[derive(Clone, Debug)]
pub(crate) struct Indices {
    /// One leaf per FORS tree, as concatenated bits.
    fors: [u8; ParameterSet::FORS_BYTES_MAX],
    /// Tree index in the lowest layer.
    pub(crate) tree: u64,
    pub(crate) leaf: u32,
}

impl Indices {
    /// Splits a message digest of [`digest_bytes`](ParameterSet::digest_bytes) bytes.
    pub(crate) fn new(set: &ParameterSet, digest: &[u8]) -> Self {
        let (md, rest) = digest.split_at(set.fors_bytes());
        let (tree, leaf) = rest.split_at(set.tree_bits().div_ceil(8));
        let mut fors = [0; ParameterSet::FORS_BYTES_MAX];
        fors[..md.len()].copy_from_slice(md);
        let tree = number(tree) & (u64::MAX >> (64 - set.tree_bits()));
        Self { fors, tree, leaf: number(leaf) as u32 & ((1 << set.tree_height()) - 1) }
    }

    /// Tree and leaf of a layer of the hypertree, FIPS 205 algorithm 13 lines 6 to 8.
    pub(crate) fn of_layer(&self, layer: usize, tree_height: usize) -> (u64, u32) {
        // The highest layer has a single tree and uses all bits.
        let above =
            |layers: usize| self.tree.checked_shr((layers * tree_height) as u32).unwrap_or(0);
        let leaf = match layer {
            0 => self.leaf,
            _ => above(layer - 1) as u32 & ((1 << tree_height) - 1),
        };
        (above(layer), leaf)
    }

    /// Leaf of FORS tree `i`, FIPS 205 algorithm 4 with the first bit the highest.
    pub(crate) fn fors_leaf(&self, set: &ParameterSet, i: usize) -> u32 {
        let first = i * set.fors_height();
        (first..first + set.fors_height())
            .fold(0, |leaf, bit| leaf << 1 | u32::from(self.fors[bit / 8] >> (7 - bit % 8) & 1))
    }
}

/// A big-endian number of at most eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// `H_msg` of FIPS 205 section 11.2 for each check; all must be well formed.
pub(crate) fn indices_of(
    backend: Backend,
    set: &ParameterSet,
    checks: &[Check<'_>],
) -> Vec<Indices> {
    let digests = match set.n() {
        16 => digests_256(backend, set, checks),
        _ => checks.iter().map(|check| digest_512(set, check)).collect(),
    };
    digests.iter().map(|digest| Indices::new(set, &digest[..set.digest_bytes()])).collect()
}

type Digest = [u8; 64];
const _: () = assert!(ParameterSet::DIGEST_BYTES_MAX <= 64);

/// MGF1 over SHA-256; its seed ends with a hash of the whole message.
fn digests_256(backend: Backend, set: &ParameterSet, checks: &[Check<'_>]) -> Vec<Digest> {
    let n = set.n();
    let mut bytes = Vec::new();
    let mut ends = Vec::new();
    for check in checks {
        let mut prefix = [0; 2];
        let [p, c, m] = check.message.parts(&mut prefix);
        for part in [&check.signature[..n], check.key, p, c, m] {
            bytes.extend_from_slice(part);
        }
        ends.push(bytes.len());
    }
    let inner = hash_parts(backend, &bytes, &ends);
    let mut digests = vec![[0; 64]; checks.len()];
    for counter in 0..set.digest_bytes().div_ceil(32) {
        bytes.clear();
        ends.clear();
        for (check, inner) in checks.iter().zip(&inner) {
            let counter = (counter as u32).to_be_bytes();
            for part in [&check.signature[..n], &check.key[..n], inner, &counter] {
                bytes.extend_from_slice(part);
            }
            ends.push(bytes.len());
        }
        let outer = hash_parts(backend, &bytes, &ends);
        for (digest, outer) in digests.iter_mut().zip(outer) {
            digest[32 * counter..32 * counter + 32].copy_from_slice(&outer);
        }
    }
    digests
}

/// SHA-256 of the messages that end at `ends`.
fn hash_parts(backend: Backend, bytes: &[u8], ends: &[usize]) -> Vec<[u8; 32]> {
    let mut start = 0;
    let mut messages = Vec::with_capacity(ends.len());
    for &end in ends {
        messages.push(&bytes[start..end]);
        start = end;
    }
    let mut digests = vec![[0; 32]; messages.len()];
    sha256_many_with(backend, &messages, &mut digests);
    digests
}

/// MGF1 over SHA-512; the first block suffices.
fn digest_512(set: &ParameterSet, check: &Check<'_>) -> Digest {
    let n = set.n();
    let mut prefix = [0; 2];
    let [p, c, m] = check.message.parts(&mut prefix);
    let mut inner = Sha512::new();
    for part in [&check.signature[..n], check.key, p, c, m] {
        inner.update(part);
    }
    let mut outer = Sha512::new();
    for part in [&check.signature[..n], &check.key[..n], &inner.finalize(), &[0; 4]] {
        outer.update(part);
    }
    outer.finalize()
}
