//! Valid signatures for tests and benchmarks, each at the cost of about one verification.
//!
//! A verifier sees one leaf of every tree. A test key contains only the highest tree. The lower layers are synthetic: values and
//! siblings are arbitrary for each signature, and the highest layer signs their root as in FIPS 205. Two signatures may therefore
//! disagree about a node. No verifier detects this, but such a key is insecure.

use assay_hash::sha256;

use crate::params::{CHAIN_END, ParameterSet, wots_digits};
use crate::serial::{Verifier, indices};
use crate::tweak::{Kind, address_prefix};
use crate::{Check, Message};

/// A key for tests and benchmarks.
///
/// ```
/// use assay_pq::{Check, Message, ParameterSet, TestKey, verify};
///
/// let set = ParameterSet::SHA2_128S;
/// let key = TestKey::new(set, 1);
/// let message = Message::Pure { context: b"", message: b"a transaction" };
/// let signature = key.sign(&message);
/// assert!(verify(&set, &Check { key: key.public(), message, signature: &signature }));
/// ```
#[derive(Debug)]
pub struct TestKey {
    set: ParameterSet,
    number: u64,
    public: Vec<u8>,
    /// Nodes of the highest tree, the leaves first, the root last.
    levels: Vec<Vec<Vec<u8>>>,
}

impl TestKey {
    pub fn new(set: ParameterSet, number: u64) -> Self {
        let mut seed = vec![0; set.n()];
        fill(&mut seed, &sha256(&[&b"seed"[..], &number.to_be_bytes()].concat()));
        let mut key = Self { set, number, public: Vec::new(), levels: Vec::new() };
        let mut hasher = Verifier::new(&set, &seed);
        let layer = set.layers() - 1;
        let leaf = |leaf: u32| {
            let secrets: Vec<u8> = (0..set.chains()).flat_map(|i| key.secret(leaf, i)).collect();
            hasher.wots_key_from([layer as u64, 0], leaf, &secrets, |_| 0)
        };
        let mut levels: Vec<Vec<Vec<u8>>> = vec![(0..1 << set.tree_height()).map(leaf).collect()];
        let nodes = address_prefix(layer, 0, Kind::Tree, 0);
        for height in 0..set.tree_height() {
            let pairs = levels[height].chunks_exact(2).enumerate();
            let parent = |(i, pair): (usize, &[Vec<u8>])| {
                hasher.parent(&nodes, height, &mut (2 * i as u32), &pair[0], &pair[1])
            };
            let level = pairs.map(parent).collect();
            levels.push(level);
        }
        key.public = [seed, levels[set.tree_height()].concat()].concat();
        key.levels = levels;
        key
    }

    /// `PK.seed` and `PK.root`.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// Deterministic signature of a message.
    ///
    /// # Panics
    /// If the context has more than 255 bytes.
    pub fn sign(&self, message: &Message<'_>) -> Vec<u8> {
        self.sign_with_long_chains(message, 0)
    }

    /// A signature that takes longer to verify: of `trials` siblings per layer, the one that leaves the most steps in the next.
    ///
    /// # Panics
    /// If the context has more than 255 bytes.
    pub fn sign_with_long_chains(&self, message: &Message<'_>, trials: u32) -> Vec<u8> {
        assert!(message.is_well_formed(), "a context of at most 255 bytes");
        let (set, n) = (&self.set, self.set.n());
        let mut prefix = [0; 2];
        let parts = message.parts(&mut prefix).concat();
        let mut signature = vec![0; set.signature_bytes()];
        fill(&mut signature, &sha256(&[&self.number.to_be_bytes()[..], &parts].concat()));
        let check = Check { key: &self.public, message: *message, signature: &signature };
        let indices = indices(set, &check, &signature[..n]);
        let mut hasher = Verifier::new(set, &self.public[..n]);
        let fors_bytes = set.fors_trees() * (set.fors_height() + 1) * n;
        let (fors, hypertree) = signature[n..].split_at_mut(fors_bytes);
        let mut node = hasher.fors_key(&indices, fors);
        let (height, wots_bytes) = (set.tree_height(), set.chains() * n);
        let mut layers = hypertree.chunks_mut(wots_bytes + height * n).enumerate();
        let highest = layers.next_back().map(|(_, part)| part);
        for (layer, part) in layers {
            let (tree, mut index) = indices.of_layer(layer, height);
            let (wots, siblings) = part.split_at_mut(wots_bytes);
            let (below, last) = siblings.split_at_mut((height - 1) * n);
            let nodes = address_prefix(layer, tree, Kind::Tree, 0);
            let key = hasher.wots_key([layer as u64, tree], index, wots, &node);
            let child = hasher.climb(&nodes, &mut index, key, below);
            let mut root = |number: u32| {
                last[..4].copy_from_slice(&number.to_be_bytes());
                let mut index = index;
                hasher.parent(&nodes, height - 1, &mut index, &child, last)
            };
            let best = (0..trials).max_by_key(|number| steps_left(set, &root(*number)));
            node = root(best.unwrap_or_default());
        }
        if let Some(part) = highest {
            let (_, leaf) = indices.of_layer(set.layers() - 1, height);
            part.copy_from_slice(&self.sign_root(&mut hasher, leaf, &node));
        }
        signature
    }

    /// The highest layer: `wots_sign`, algorithm 7, and the path of the leaf.
    fn sign_root(&self, hasher: &mut Verifier<'_>, leaf: u32, node: &[u8]) -> Vec<u8> {
        let chains = address_prefix(self.set.layers() - 1, 0, Kind::WotsHash, leaf);
        let digits = wots_digits(node);
        let mut part = Vec::new();
        for (i, digit) in digits[..self.set.chains()].iter().enumerate() {
            part.extend(hasher.chain(&chains, i, 0..*digit, &self.secret(leaf, i)));
        }
        for (height, level) in self.levels[..self.set.tree_height()].iter().enumerate() {
            part.extend(&level[(leaf >> height ^ 1) as usize]);
        }
        part
    }

    /// Start value of chain `i` of a leaf of the highest tree.
    fn secret(&self, leaf: u32, i: usize) -> Vec<u8> {
        let place = [&self.number.to_be_bytes()[..], &leaf.to_be_bytes(), &[i as u8]].concat();
        sha256(&place)[..self.set.n()].to_vec()
    }
}

/// Chain steps needed to verify the signature of a node.
fn steps_left(set: &ParameterSet, node: &[u8]) -> u32 {
    wots_digits(node)[..set.chains()].iter().map(|digit| u32::from(CHAIN_END - digit)).sum()
}

/// Fills `bytes` pseudorandomly from a seed.
fn fill(bytes: &mut [u8], seed: &[u8; 32]) {
    for (number, chunk) in bytes.chunks_mut(32).enumerate() {
        let block = sha256(&[&seed[..], &(number as u32).to_be_bytes()].concat());
        chunk.copy_from_slice(&block[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serial::{count_hashes, verify};
    use crate::verify_many;

    #[test]
    fn signatures_are_valid_in_lanes_and_one_by_one() {
        for set in ParameterSet::ALL.into_iter().chain([ParameterSet::SHRINCS_STATELESS]) {
            let key = TestKey::new(set, 7);
            let texts = [&b"one"[..], b"two", b"", b"four"];
            let message = |text| Message::Pure { context: b"context", message: text };
            let signatures = texts.map(|text| key.sign(&message(text)));
            let check = |i: usize| Check {
                key: key.public(),
                message: message(texts[i]),
                signature: &signatures[i],
            };
            let checks = [0, 1, 2, 3].map(check);
            assert!(checks.iter().all(|check| verify(&set, check)), "{}", set.name());
            assert_eq!(verify_many(&set, &checks), [true; 4], "{}", set.name());
            assert_eq!(key.sign(&message(b"two")), signatures[1]);
            let other = Check { message: message(b"two"), ..checks[0] };
            let other_key = TestKey::new(set, 8);
            let foreign = Check { key: other_key.public(), ..checks[0] };
            assert_eq!(verify_many(&set, &[other, foreign]), [false; 2], "{}", set.name());
            for place in (0..signatures[0].len()).step_by(signatures[0].len() / 40) {
                let mut flipped = signatures[0].clone();
                flipped[place] ^= 1;
                let flipped = Check { signature: &flipped, ..checks[0] };
                assert_eq!(verify_many(&set, &[flipped]), [false], "{} {place}", set.name());
            }
        }
    }

    #[test]
    fn chains_are_made_longer() {
        let set = ParameterSet::SHA2_128S;
        let key = TestKey::new(set, 1);
        let message = Message::Internal(b"long");
        let steps = |signature: &[u8]| {
            let check = Check { key: key.public(), message, signature };
            let (valid, hashes) = count_hashes(&set, &check).expect("lengths that fit");
            assert!(valid);
            hashes.f
        };
        let (plain, long) =
            (steps(&key.sign(&message)), steps(&key.sign_with_long_chains(&message, 200)));
        // 35 chains of 7.5 steps in each of seven layers; the best of 200 is some two and a half deviations of 25 above.
        assert!(long > plain + 200, "{plain} {long}");
    }
}
