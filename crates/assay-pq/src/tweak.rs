//! Tweakable hashes of FIPS 205 section 11.2, in batches, and their addresses in the compressed form for SHA2.
//!
//! Each starts with a block of `PK.seed` and zeros; its state is computed once per signature.

use assay_hash::{
    Backend, Chain, Sha256, Sha512, TreePath, climb_paths_with, sha256_compress_many_with,
};

/// An address without its last two words: layer, tree, type, key pair.
pub(crate) type AddressPrefix = [u8; 14];

/// Address types, FIPS 205 table 1.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    WotsHash = 0,
    WotsKey = 1,
    Tree = 2,
    ForsTree = 3,
    ForsRoots = 4,
}

/// `key_pair` is zero for tree nodes.
pub(crate) fn address_prefix(layer: usize, tree: u64, kind: Kind, key_pair: u32) -> AddressPrefix {
    let mut place = [0; 14];
    place[0] = layer as u8;
    place[1..9].copy_from_slice(&tree.to_be_bytes());
    place[9] = kind as u8;
    place[10..].copy_from_slice(&key_pair.to_be_bytes());
    place
}

/// The whole address; `words` are chain and hash number, or height and index, or zeros.
pub(crate) fn address(place: &AddressPrefix, words: [u32; 2]) -> [u8; 22] {
    let mut address = [0; 22];
    address[..14].copy_from_slice(place);
    address[14..18].copy_from_slice(&words[0].to_be_bytes());
    address[18..].copy_from_slice(&words[1].to_be_bytes());
    address
}

/// Hash states after the block of `PK.seed`.
#[derive(Clone, Debug)]
pub(crate) struct Seed {
    /// SHA-256: `F`, and in category 1 all others.
    narrow: [u32; 8],
    /// SHA-512: `H` and `T_l` above category 1; unused in category 1.
    wide: Sha512,
}

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

/// A chain from `value` at step `start`; `F` with chain number `number`.
pub(crate) fn chain<'a, const N: usize>(
    seed: &'a Seed,
    place: &AddressPrefix,
    number: u32,
    start: u8,
    value: &[u8],
) -> Chain<'a, N> {
    let [prefix @ .., _, _] = address(place, [number, 0]);
    Chain { state: &seed.narrow, prefix, start, value: value.try_into().expect("N bytes") }
}

/// A path from a tree node to the root.
pub(crate) struct Path<'a, const N: usize> {
    pub(crate) seed: &'a Seed,
    pub(crate) place: AddressPrefix,
    /// Index of the node in its row.
    pub(crate) index: u32,
    pub(crate) node: [u8; N],
    /// Sibling of each node on the path, the lowest first.
    pub(crate) siblings: &'a [u8],
}

impl<'a, const N: usize> Path<'a, N> {
    /// The path in the form of the lanes, in category 1.
    fn narrow(&self) -> TreePath<'a> {
        let Self { place, index, node, siblings, .. } = *self;
        let node = *node.first_chunk().expect("N is at least 16");
        TreePath { state: &self.seed.narrow, prefix: place, index, node, siblings }
    }

    /// Address and children of the parent at `height`.
    fn step(&self, height: usize) -> ([u8; 22], [&[u8]; 2]) {
        let sibling = &self.siblings[(height - 1) * N..height * N];
        let node = &self.node[..];
        let pair = if self.index & 1 == 1 { [sibling, node] } else { [node, sibling] };
        (address(&self.place, [height as u32, self.index >> 1]), pair)
    }
}

/// Replaces the secret in each node by its leaf: `F` in row zero.
pub(crate) fn hash_leaves<const N: usize>(backend: Backend, paths: &mut [Path<'_, N>]) {
    let mut states: Vec<[u32; 8]> = paths.iter().map(|path| path.seed.narrow).collect();
    let block = |path: &Path<'_, N>| {
        let mut block = [0; 64];
        block[..22].copy_from_slice(&address(&path.place, [0, path.index]));
        block[22..22 + N].copy_from_slice(&path.node);
        block[22 + N] = 0x80;
        block[62..].copy_from_slice(&(8 * (64 + 22 + N as u16)).to_be_bytes());
        block
    };
    let blocks: Vec<[u8; 64]> = paths.iter().map(block).collect();
    sha256_compress_many_with(backend, &mut states, &blocks);
    for (path, state) in paths.iter_mut().zip(&states) {
        path.node = truncated(state);
    }
}

/// Climbs `height` rows from row zero.
pub(crate) fn climb<const N: usize>(backend: Backend, paths: &mut [Path<'_, N>], height: usize) {
    if N > 16 {
        (1..=height).for_each(|row| climb_wide(paths, row));
        return;
    }
    let mut narrow: Vec<TreePath<'_>> = paths.iter().map(Path::narrow).collect();
    climb_paths_with(backend, &mut narrow, height as u32);
    for (path, narrow) in paths.iter_mut().zip(&narrow) {
        path.node.copy_from_slice(&narrow.node);
    }
}

/// Climbs one row with SHA-512.
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

/// `T_l` for each item: the address is `place` with zeros, the values are concatenated.
///
/// All items have the same number of values, at least one; `values` contains them item by item.
pub(crate) fn compress_values<const N: usize>(
    backend: Backend,
    items: &[(&Seed, AddressPrefix)],
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

fn wide_values<const N: usize>(
    (seed, place): &(&Seed, AddressPrefix),
    values: &[[u8; N]],
) -> [u8; N] {
    let mut hasher = seed.wide.clone();
    hasher.update(&address(place, [0, 0]));
    hasher.update(values.as_flattened());
    *hasher.finalize().first_chunk().expect("N is at most 32")
}

fn truncated<const N: usize>(state: &[u32; 8]) -> [u8; N] {
    let mut value = [0; N];
    for (bytes, word) in value.as_chunks_mut::<4>().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    value
}
