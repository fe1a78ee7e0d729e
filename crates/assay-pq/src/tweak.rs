//! The tweakable hashes of FIPS 205 section 11.2, many at a time.
//!
//! Each begins with a block of `PK.seed` and zeros, whose state is computed once for a signature.

use assay_hash::{Backend, Chain, Sha256, Sha512, sha256_compress_many_with};

use crate::address::{Place, address};

/// The states after the block of `PK.seed`.
#[derive(Clone, Debug)]
pub(crate) struct Seed {
    /// SHA-256: `F`, and in category 1 all others.
    narrow: [u32; 8],
    /// SHA-512: `H` and `T_l` above category 1, unused in it.
    wide: Sha512,
}

/// The states for each of `seeds`, which have `N` bytes.
pub(crate) fn seeds<'a, const N: usize>(
    backend: Backend,
    seeds: impl Iterator<Item = &'a [u8]>,
) -> Vec<Seed> {
    let blocks: Vec<[u8; 64]> = seeds
        .map(|seed| {
            let mut block = [0; 64];
            block[..N].copy_from_slice(seed);
            block
        })
        .collect();
    let mut states = vec![Sha256::INITIAL_STATE; blocks.len()];
    sha256_compress_many_with(backend, &mut states, &blocks);
    let with_wide = |(narrow, block): (_, &[u8; 64])| {
        let mut wide = Sha512::new();
        if N > 16 {
            wide.update(block);
            wide.update(&[0; 64]);
        }
        Seed { narrow, wide }
    };
    states.into_iter().zip(&blocks).map(with_wide).collect()
}

/// A chain that starts with `value` at step `start`; `F` with chain number `number`.
pub(crate) fn chain<'a, const N: usize>(
    seed: &'a Seed,
    place: &Place,
    number: u32,
    start: u8,
    value: &[u8],
) -> Chain<'a, N> {
    let [prefix @ .., _, _] = address(place, [number, 0]);
    Chain { state: &seed.narrow, prefix, start, value: value.try_into().expect("N bytes") }
}

/// A walk from a node of a tree to the root.
pub(crate) struct Path<'a, const N: usize> {
    pub(crate) seed: &'a Seed,
    /// The tree.
    pub(crate) place: Place,
    /// The node's index in its row.
    pub(crate) index: u32,
    pub(crate) node: [u8; N],
    /// The sibling of each node on the way, the lowest first.
    pub(crate) siblings: &'a [u8],
}

impl<const N: usize> Path<'_, N> {
    /// The address of the parent at `height`, and the children.
    fn step(&self, height: usize) -> ([u8; 22], [&[u8]; 2]) {
        let sibling = &self.siblings[(height - 1) * N..height * N];
        let node = &self.node[..];
        let pair = if self.index & 1 == 1 { [sibling, node] } else { [node, sibling] };
        (address(&self.place, [height as u32, self.index >> 1]), pair)
    }
}

/// Replaces the secret that each node is by the leaf it stands for: `F` in row zero.
pub(crate) fn hash_leaves<const N: usize>(backend: Backend, paths: &mut [Path<'_, N>]) {
    for group in paths.chunks_mut(GROUP) {
        climb_narrow(backend, group, |path, block| {
            put(block, &address(&path.place, [0, path.index]), [&path.node, &[]]);
        });
    }
}

/// Walks `height` rows up, from row zero.
pub(crate) fn climb<const N: usize>(backend: Backend, paths: &mut [Path<'_, N>], height: usize) {
    for group in paths.chunks_mut(GROUP) {
        for row in 1..=height {
            if N > 16 {
                climb_wide(group, row);
                continue;
            }
            climb_narrow(backend, group, |path, block| {
                let (address, pair) = path.step(row);
                put(block, &address, pair);
                path.index >>= 1;
            });
        }
    }
}

/// Paths that walk together: as many as any vector has lanes.
const GROUP: usize = 16;

/// Replaces the node of each path by the hash of the block that `fill` makes of it.
#[inline(always)]
fn climb_narrow<const N: usize>(
    backend: Backend,
    paths: &mut [Path<'_, N>],
    fill: impl Fn(&mut Path<'_, N>, &mut [u8; 64]),
) {
    let mut states = [[0; 8]; GROUP];
    let mut blocks = [[0; 64]; GROUP];
    for ((state, block), path) in states.iter_mut().zip(&mut blocks).zip(&mut *paths) {
        *state = path.seed.narrow;
        fill(path, block);
    }
    let states = &mut states[..paths.len()];
    sha256_compress_many_with(backend, states, &blocks[..paths.len()]);
    for (path, state) in paths.iter_mut().zip(&*states) {
        path.node = truncated(state);
    }
}

/// Fills a block of zeros with an address, values, and the padding behind the block of the seed.
fn put(block: &mut [u8; 64], address: &[u8; 22], [left, right]: [&[u8]; 2]) {
    let (middle, end) = (22 + left.len(), 22 + left.len() + right.len());
    block[..22].copy_from_slice(address);
    block[22..middle].copy_from_slice(left);
    block[middle..end].copy_from_slice(right);
    block[end] = 0x80;
    block[62..].copy_from_slice(&(8 * (64 + end as u16)).to_be_bytes());
}

/// One row, with SHA-512.
fn climb_wide<const N: usize>(paths: &mut [Path<'_, N>], row: usize) {
    for path in paths {
        let (address, [left, right]) = path.step(row);
        let mut hasher = path.seed.wide.clone();
        hasher.update(&address);
        hasher.update(left);
        hasher.update(right);
        path.node.copy_from_slice(&hasher.finalize()[..N]);
        path.index >>= 1;
    }
}

/// `T_l` for each item: the address is `place` with zeros, the values come one after the other.
///
/// All items have as many values, at least one; `values` holds them item after item.
pub(crate) fn compress_values<const N: usize>(
    backend: Backend,
    items: &[(&Seed, Place)],
    values: &[[u8; N]],
) -> Vec<[u8; N]> {
    let count = values.len() / items.len().max(1);
    let values = values.chunks(count.max(1));
    if N > 16 {
        return items.iter().zip(values).map(|(item, values)| wide_values(item, values)).collect();
    }
    let length = 22 + N * count;
    let blocks_each = (length + 9).div_ceil(64);
    // Block `b` of item `i` is block `b * items.len() + i`: each row is compressed at once.
    let mut blocks = vec![[0; 64]; blocks_each * items.len()];
    let mut message = vec![0; 64 * blocks_each];
    for (i, ((_, place), values)) in items.iter().zip(values).enumerate() {
        message[..22].copy_from_slice(&address(place, [0, 0]));
        message[22..length].copy_from_slice(values.as_flattened());
        message[length] = 0x80;
        let bits = 8 * (64 + length as u64);
        message[64 * blocks_each - 8..].copy_from_slice(&bits.to_be_bytes());
        for (b, block) in message.as_chunks::<64>().0.iter().enumerate() {
            blocks[b * items.len() + i] = *block;
        }
    }
    let mut states: Vec<[u32; 8]> = items.iter().map(|(seed, _)| seed.narrow).collect();
    for row in blocks.chunks(items.len().max(1)) {
        sha256_compress_many_with(backend, &mut states, row);
    }
    states.iter().map(truncated).collect()
}

fn wide_values<const N: usize>((seed, place): &(&Seed, Place), values: &[[u8; N]]) -> [u8; N] {
    let mut hasher = seed.wide.clone();
    hasher.update(&address(place, [0, 0]));
    hasher.update(values.as_flattened());
    *hasher.finalize().first_chunk().expect("N is at most 32")
}

/// The first bytes of the digest that a state stands for.
fn truncated<const N: usize>(state: &[u32; 8]) -> [u8; N] {
    let mut value = [0; N];
    for (bytes, word) in value.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    value
}
