//! FIPS 205 as written, hash by hash in portable code: the oracle of the lanes.
//!
//! Every hash is computed from its whole message, including the block of `PK.seed`.

use std::ops::Range;

use assay_hash::{Backend, Sha256, Sha512};

use crate::Check;
use crate::digest::Indices;
use crate::params::{CHAIN_END, ParameterSet, wots_digits};
use crate::tweak::{AddressPrefix, Kind, address, address_prefix};

/// True if the signature is valid: `slh_verify_internal`, FIPS 205 algorithm 20.
pub fn verify(set: &ParameterSet, check: &Check<'_>) -> bool {
    count_hashes(set, check).is_some_and(|(valid, _)| valid)
}

/// The same, with the number of hash computations. `None` if a length is wrong.
pub fn count_hashes(set: &ParameterSet, check: &Check<'_>) -> Option<(bool, Hashes)> {
    if !check.is_well_formed(set) {
        return None;
    }
    let n = set.n();
    let (seed, root) = check.key.split_at(n);
    let (randomizer, rest) = check.signature.split_at(n);
    let (fors, hypertree) = rest.split_at(set.fors_trees() * (set.fors_height() + 1) * n);
    let indices = indices(set, check, randomizer);
    let mut verifier = Verifier::new(set, seed);
    let node = verifier.fors_key(&indices, fors);
    let node = verifier.hypertree_root(&indices, hypertree, node);
    Some((node == root, verifier.hashes))
}

/// Number of hash computations of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hashes {
    /// Leaves of FORS trees and steps of chains: `F`.
    pub f: u64,
    /// Nodes of trees: `H`.
    pub h: u64,
    /// WOTS+ and FORS public keys: `T_l`.
    pub t: u64,
}

pub(crate) fn indices(set: &ParameterSet, check: &Check<'_>, randomizer: &[u8]) -> Indices {
    Indices::new(set, &message_digest(set, check, randomizer))
}

/// `H_msg`, FIPS 205 section 11.2.
fn message_digest(set: &ParameterSet, check: &Check<'_>, randomizer: &[u8]) -> Vec<u8> {
    let mut prefix = [0; 2];
    let seed = &check.key[..set.n()];
    let [p, c, m] = check.message.parts(&mut prefix);
    let inner = hash(set, &[randomizer, check.key, p, c, m]);
    let mut digest = Vec::new();
    for counter in 0u32.. {
        if digest.len() >= set.digest_bytes() {
            break;
        }
        digest.extend(hash(set, &[randomizer, seed, &inner, &counter.to_be_bytes()]));
    }
    digest.truncate(set.digest_bytes());
    digest
}

/// Functions common to signing and verification.
pub(crate) struct Verifier<'a> {
    set: &'a ParameterSet,
    seed: &'a [u8],
    hashes: Hashes,
}

impl<'a> Verifier<'a> {
    pub(crate) fn new(set: &'a ParameterSet, seed: &'a [u8]) -> Self {
        Self { set, seed, hashes: Hashes::default() }
    }

    /// `fors_pkFromSig`, algorithm 17.
    pub(crate) fn fors_key(&mut self, indices: &Indices, signature: &[u8]) -> Vec<u8> {
        let (n, a) = (self.set.n(), self.set.fors_height());
        let tree = address_prefix(0, indices.tree, Kind::ForsTree, indices.leaf);
        let mut roots = Vec::new();
        for (i, part) in signature.chunks((a + 1) * n).enumerate() {
            let mut index = (i << a) as u32 + indices.fors_leaf(self.set, i);
            let (secret, path) = part.split_at(n);
            let leaf = self.f(&tree, [0, index], secret);
            roots.extend(self.climb(&tree, &mut index, leaf, path));
        }
        self.t(&address_prefix(0, indices.tree, Kind::ForsRoots, indices.leaf), &roots)
    }

    /// `ht_verify`, algorithm 13, without the comparison.
    fn hypertree_root(
        &mut self,
        indices: &Indices,
        signature: &[u8],
        mut node: Vec<u8>,
    ) -> Vec<u8> {
        let (mut tree, mut leaf) = (indices.tree, indices.leaf);
        let (n, height) = (self.set.n(), self.set.tree_height());
        for (layer, part) in signature.chunks((self.set.chains() + height) * n).enumerate() {
            let (wots, path) = part.split_at(self.set.chains() * n);
            node = self.wots_key([layer as u64, tree], leaf, wots, &node);
            node = self.climb(&address_prefix(layer, tree, Kind::Tree, 0), &mut leaf, node, path);
            leaf = (tree & ((1 << height) - 1)) as u32;
            tree >>= height;
        }
        node
    }

    /// `wots_pkFromSig`, algorithm 8.
    pub(crate) fn wots_key(
        &mut self,
        [layer, tree]: [u64; 2],
        leaf: u32,
        wots: &[u8],
        node: &[u8],
    ) -> Vec<u8> {
        let digits = wots_digits(node);
        self.wots_key_from([layer, tree], leaf, wots, |i| digits[i])
    }

    /// The WOTS+ key from chains at the given steps.
    pub(crate) fn wots_key_from(
        &mut self,
        [layer, tree]: [u64; 2],
        leaf: u32,
        values: &[u8],
        step_of: impl Fn(usize) -> u8,
    ) -> Vec<u8> {
        let place_of_chains = address_prefix(layer as usize, tree, Kind::WotsHash, leaf);
        let mut ends = Vec::new();
        for (i, value) in values.chunks(self.set.n()).enumerate() {
            ends.extend(self.chain(&place_of_chains, i, step_of(i)..CHAIN_END, value));
        }
        self.t(&address_prefix(layer as usize, tree, Kind::WotsKey, leaf), &ends)
    }

    /// `chain`, algorithm 5.
    pub(crate) fn chain(
        &mut self,
        place: &AddressPrefix,
        i: usize,
        steps: Range<u8>,
        value: &[u8],
    ) -> Vec<u8> {
        steps.fold(value.to_vec(), |value, step| self.f(place, [i as u32, step.into()], &value))
    }

    /// Root computed from a node and its siblings, the lowest first; `index` becomes the root's.
    pub(crate) fn climb(
        &mut self,
        place: &AddressPrefix,
        index: &mut u32,
        mut node: Vec<u8>,
        siblings: &[u8],
    ) -> Vec<u8> {
        for (height, sibling) in siblings.chunks(self.set.n()).enumerate() {
            node = self.parent(place, height, index, &node, sibling);
        }
        node
    }

    /// One step of algorithms 11 and 17: a node's parent; `index` becomes the parent's.
    pub(crate) fn parent(
        &mut self,
        place: &AddressPrefix,
        height: usize,
        index: &mut u32,
        node: &[u8],
        sibling: &[u8],
    ) -> Vec<u8> {
        let is_right = *index & 1 == 1;
        *index >>= 1;
        let (left, right) = if is_right { (sibling, node) } else { (node, sibling) };
        self.hashes.h += 1;
        let address = address(place, [height as u32 + 1, *index]);
        self.tweaked(self.set.n() > 16, &[&address, left, right])
    }

    fn f(&mut self, place: &AddressPrefix, words: [u32; 2], value: &[u8]) -> Vec<u8> {
        self.hashes.f += 1;
        self.tweaked(false, &[&address(place, words), value])
    }

    fn t(&mut self, place: &AddressPrefix, values: &[u8]) -> Vec<u8> {
        self.hashes.t += 1;
        self.tweaked(self.set.n() > 16, &[&address(place, [0, 0]), values])
    }

    /// Tweakable hash of section 11.2: a block with the seed, an address, and values.
    fn tweaked(&self, wide: bool, parts: &[&[u8]]) -> Vec<u8> {
        let mut block = vec![0; if wide { 128 } else { 64 }];
        block[..self.seed.len()].copy_from_slice(self.seed);
        let mut message = block;
        message.extend(parts.concat());
        let mut digest = if wide { sha512(&[&message]) } else { sha256(&[&message]) };
        digest.truncate(self.set.n());
        digest
    }
}

/// Hash function of messages: SHA-256 in category 1, SHA-512 above.
fn hash(set: &ParameterSet, parts: &[&[u8]]) -> Vec<u8> {
    if set.n() > 16 { sha512(parts) } else { sha256(parts) }
}

fn sha256(parts: &[&[u8]]) -> Vec<u8> {
    let mut hasher = Sha256::with_backend(Backend::PORTABLE);
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().to_vec()
}

fn sha512(parts: &[&[u8]]) -> Vec<u8> {
    let mut hasher = Sha512::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().to_vec()
}
