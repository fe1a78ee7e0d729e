//! Batch verification, stage by stage.
//!
//! All signatures of a group pass each stage together: the leaves and paths of their FORS trees, then for each layer of the
//! hypertree the WOTS+ chains, their compression, and the path. Steps that are sequential within one signature thus fill the
//! lanes across signatures.

use assay_hash::{Backend, Chain, run_chains_with};

use crate::Check;
use crate::digest::{Indices, indices_of};
use crate::params::{CHAIN_END, ParameterSet, wots_digits};
use crate::tweak::{Kind, address_prefix};
use crate::tweak::{Path, Seed, chain, climb, compress_values, hash_leaves, seeds};

/// Signatures per group: enough to fill sixteen lanes with chains of equal length, and few enough for the second-level cache.
const GROUP: usize = 64;

/// True if the signature is valid, on the fastest backend of this machine.
pub fn verify(set: &ParameterSet, check: &Check<'_>) -> bool {
    verify_many(set, core::slice::from_ref(check)) == [true]
}

/// Verdict per signature; the keys may all differ.
pub fn verify_many(set: &ParameterSet, checks: &[Check<'_>]) -> Vec<bool> {
    verify_many_with(Backend::detect(), set, checks)
}

pub fn verify_many_with(backend: Backend, set: &ParameterSet, checks: &[Check<'_>]) -> Vec<bool> {
    let well_formed: Vec<usize> =
        (0..checks.len()).filter(|&i| checks[i].is_well_formed(set)).collect();
    let mut valid = vec![false; checks.len()];
    for group in well_formed.chunks(GROUP) {
        let checks: Vec<Check<'_>> = group.iter().map(|&i| checks[i]).collect();
        let answers = match set.n() {
            16 => verify_group::<16>(backend, set, &checks),
            24 => verify_group::<24>(backend, set, &checks),
            _ => verify_group::<32>(backend, set, &checks),
        };
        for (&i, answer) in group.iter().zip(answers) {
            valid[i] = answer;
        }
    }
    valid
}

/// All must be well formed, and `N` must be the set's.
fn verify_group<const N: usize>(
    backend: Backend,
    set: &ParameterSet,
    checks: &[Check<'_>],
) -> Vec<bool> {
    let seeds = seeds::<N>(backend, checks.iter().map(|check| &check.key[..N]));
    let indices = indices_of(backend, set, checks);
    let fors_bytes = set.fors_trees() * (set.fors_height() + 1) * N;
    let jobs: Vec<Job<'_>> = checks
        .iter()
        .zip(&seeds)
        .zip(indices)
        .map(|((check, seed), indices)| {
            let (fors, hypertree) = check.signature[N..].split_at(fors_bytes);
            Job { seed, indices, fors, hypertree }
        })
        .collect();
    let group = Group { backend, set, jobs };
    let mut nodes: Vec<[u8; N]> = group.fors_keys();
    for layer in 0..set.layers() {
        group.layer(layer, &mut nodes);
    }
    nodes.iter().zip(checks).map(|(node, check)| node[..] == check.key[N..]).collect()
}

struct Job<'a> {
    seed: &'a Seed,
    indices: Indices,
    fors: &'a [u8],
    hypertree: &'a [u8],
}

struct Group<'a> {
    backend: Backend,
    set: &'a ParameterSet,
    jobs: Vec<Job<'a>>,
}

impl Group<'_> {
    /// The FORS public keys, FIPS 205 algorithm 17.
    fn fors_keys<const N: usize>(&self) -> Vec<[u8; N]> {
        let (a, k) = (self.set.fors_height(), self.set.fors_trees());
        let mut paths: Vec<Path<'_, N>> = Vec::with_capacity(k * self.jobs.len());
        for Job { seed, indices, fors, .. } in &self.jobs {
            let place = address_prefix(0, indices.tree, Kind::ForsTree, indices.leaf);
            for (i, part) in fors.chunks((a + 1) * N).enumerate() {
                let (secret, siblings) = part.split_first_chunk().expect("longer than a value");
                let index = (i << a) as u32 + indices.fors_leaf(self.set, i);
                paths.push(Path { seed, place, index, node: *secret, siblings });
            }
        }
        hash_leaves(self.backend, &mut paths);
        climb(self.backend, &mut paths, a);
        let roots: Vec<[u8; N]> = paths.iter().map(|path| path.node).collect();
        let items: Vec<_> = self
            .jobs
            .iter()
            .map(|Job { seed, indices, .. }| {
                (*seed, address_prefix(0, indices.tree, Kind::ForsRoots, indices.leaf))
            })
            .collect();
        compress_values(self.backend, &items, &roots)
    }

    /// One layer of FIPS 205 algorithm 13: replaces the messages of WOTS+ signatures in `nodes` by the roots of the trees.
    fn layer<const N: usize>(&self, layer: usize, nodes: &mut [[u8; N]]) {
        let (height, count) = (self.set.tree_height(), self.set.chains());
        let bytes = (count + height) * N;
        let mut chains: Vec<Chain<'_, N>> = Vec::with_capacity(count * self.jobs.len());
        let mut items = Vec::with_capacity(self.jobs.len());
        let mut paths = Vec::with_capacity(self.jobs.len());
        for (Job { seed, indices, hypertree, .. }, node) in self.jobs.iter().zip(&*nodes) {
            let (tree, leaf) = indices.of_layer(layer, height);
            let (wots, siblings) = hypertree[layer * bytes..][..bytes].split_at(count * N);
            let place_of_chains = address_prefix(layer, tree, Kind::WotsHash, leaf);
            let digits = wots_digits(node);
            for (i, value) in wots.chunks(N).enumerate() {
                chains.push(chain(seed, &place_of_chains, i as u32, digits[i], value));
            }
            items.push((*seed, address_prefix(layer, tree, Kind::WotsKey, leaf)));
            let place = address_prefix(layer, tree, Kind::Tree, 0);
            paths.push(Path { seed, place, index: leaf, node: [0; N], siblings });
        }
        run_chains_with(self.backend, &mut chains, CHAIN_END);
        let ends: Vec<[u8; N]> = chains.iter().map(|chain| chain.value).collect();
        for (path, key) in paths.iter_mut().zip(compress_values(self.backend, &items, &ends)) {
            path.node = key;
        }
        climb(self.backend, &mut paths, height);
        for (node, path) in nodes.iter_mut().zip(&paths) {
            *node = path.node;
        }
    }
}
