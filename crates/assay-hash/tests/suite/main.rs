//! Published vectors, every backend against the portable one, slow oracles; and Merkle roots against the definition, with the
//! ambiguity of CVE-2012-2459.

mod backends;
mod muhash;
mod siphash;
mod vectors;

use assay_hash::{merkle_root, sha256d};
use proptest::collection::vec;
use proptest::prelude::{any, proptest};

/// Hexadecimal text of vectors.
mod hex {
    pub(crate) fn encode(bytes: &[u8]) -> String {
        let digit = |value: u8| char::from_digit(value.into(), 16).expect("four bits");
        bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }

    pub(crate) fn decode(text: &str) -> Vec<u8> {
        let digit = |c: u8| char::from(c).to_digit(16).expect("a hexadecimal digit") as u8;
        text.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
    }

    /// A hash in display order, as in RPC and block explorers.
    pub(crate) fn decode_reversed(text: &str) -> [u8; 32] {
        let mut bytes: [u8; 32] = decode(text).try_into().expect("32 bytes");
        bytes.reverse();
        bytes
    }

    #[test]
    fn round_trip() {
        assert_eq!(encode(&decode("00ff1a")), "00ff1a");
        assert_eq!(decode_reversed(&format!("{:064x}", 1))[0], 1);
    }
}

/// The definition, top down: a node is the hash of its halves, the right one repeated if missing.
fn oracle(leaves: &[[u8; 32]], width: usize) -> [u8; 32] {
    if width == 1 {
        return leaves[0];
    }
    let left = oracle(&leaves[..leaves.len().min(width / 2)], width / 2);
    let right =
        if leaves.len() > width / 2 { oracle(&leaves[width / 2..], width / 2) } else { left };
    sha256d(&[left, right].concat())
}

fn leaves(numbers: &[u8]) -> Vec<[u8; 32]> {
    numbers.iter().map(|&number| [number; 32]).collect()
}

/// Mainnet block 100 000.
#[test]
fn real_block() {
    let txids = [
        "8c14f0db3df150123e6f3dbbf30f8b955a8249b62ac1d1ff16284aefa3d06d87",
        "fff2525b8931402dd09222c50775608f75787bd2b87e56995a7bdd30f79702c4",
        "6359f0868171b1d194cbee1af2f16ea598ae8fad666d9b012c8ed2b79a236ec4",
        "e9a66845e05d5abc0ad04ec80f774a7e585c6e8db975962d069a522137b80c1d",
    ];
    let root = "f3e94742aca4b5ef85488dc37c06c3282295ffec960994b2c0d5ac2a25a95766";
    let txids = txids.map(hex::decode_reversed).to_vec();
    assert_eq!(merkle_root(txids), (hex::decode_reversed(root), false));
}

#[test]
fn small_trees() {
    assert_eq!(merkle_root(vec![]), ([0; 32], false));
    assert_eq!(merkle_root(leaves(&[7])), ([7; 32], false));
    let pair = sha256d(&[[1; 32], [2; 32]].concat());
    assert_eq!(merkle_root(leaves(&[1, 2])), (pair, false));
    let repeated = sha256d(&[[3; 32], [3; 32]].concat());
    let root = sha256d(&[pair, repeated].concat());
    assert_eq!(merkle_root(leaves(&[1, 2, 3])), (root, false));
}

#[test]
fn mutations_are_seen() {
    let check = |honest: &[u8], mutant: &[u8]| {
        let (root, mutated) = merkle_root(leaves(honest));
        assert!(!mutated, "{honest:?}");
        assert_eq!(merkle_root(leaves(mutant)), (root, true), "{mutant:?}");
    };
    // A repeated leaf, and a repeated inner node one and two levels up.
    check(&[1, 2, 3], &[1, 2, 3, 3]);
    check(&[1, 2, 3, 4, 5, 6], &[1, 2, 3, 4, 5, 6, 5, 6]);
    check(&[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5, 5, 5, 5]);
    check(&[1, 2, 3, 4, 5, 6, 7, 8, 9], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 9]);
    // Equal neighbours that are not siblings are not a mutation.
    assert!(!merkle_root(leaves(&[1, 2, 2, 3])).1);
    assert!(merkle_root(leaves(&[1, 1])).1);
}

proptest! {
    #[test]
    fn equals_the_definition(seeds in vec(any::<[u8; 32]>(), 1..150)) {
        let expected = oracle(&seeds, seeds.len().next_power_of_two());
        assert_eq!(merkle_root(seeds), (expected, false));
    }
}
