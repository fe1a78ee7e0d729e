//! The contents of a coinbase that concern its block: the height, and the hash of all witnesses.

use assay_hash::{Sha256, merkle_root};
use assay_wire::{Tx, Txid, Wtxid};

/// Shortest script that can be a witness commitment (BIP141).
pub const WITNESS_COMMITMENT_BYTES_MIN: usize = 38;

/// `RETURN`, a push of 36 bytes, and the four bytes that mark a commitment (BIP141).
pub const WITNESS_COMMITMENT_HEADER: [u8; 6] = [0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed];

/// Index of the coinbase output that commits to the witnesses; of several, the last counts.
#[must_use]
pub fn witness_commitment_index(coinbase: Tx<'_>) -> Option<usize> {
    (0..coinbase.output_count()).rev().find(|index| {
        let script = coinbase.output(*index).script_pubkey;
        script.len() >= WITNESS_COMMITMENT_BYTES_MIN
            && script.starts_with(&WITNESS_COMMITMENT_HEADER)
    })
}

/// The root of the tree over the wtxids of a block, in which the coinbase counts as zero.
#[must_use]
pub fn witness_merkle_root(wtxids: &[Wtxid]) -> [u8; 32] {
    let mut leaves: Vec<[u8; 32]> = wtxids.iter().map(|wtxid| wtxid.0).collect();
    if let Some(coinbase) = leaves.first_mut() {
        *coinbase = [0; 32];
    }
    merkle_root(leaves).0
}

/// The hash that a commitment output carries, given the 32 bytes in the coinbase's witness.
#[must_use]
pub fn witness_commitment(wtxids: &[Wtxid], reserved_value: &[u8; 32]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(&witness_merkle_root(wtxids));
    hasher.update(reserved_value);
    hasher.finalize_double()
}

/// The root of the tree over the txids of a block, and whether the list is one that a shorter one
/// could stand for (CVE-2012-2459).
#[must_use]
pub fn txid_merkle_root(txids: &[Txid]) -> ([u8; 32], bool) {
    merkle_root(txids.iter().map(|txid| txid.0).collect())
}

/// The bytes with which a coinbase script at `height` begins (BIP34): the height as a script
/// pushes it, small numbers by their opcode.
#[must_use]
pub fn height_prefix(height: u32) -> Vec<u8> {
    match height {
        0 => vec![0],
        1..=16 => vec![0x50 + height as u8],
        _ => {
            let mut number = i64::from(height).to_le_bytes().to_vec();
            while number.len() > 1
                && number[number.len() - 1] == 0
                && number[number.len() - 2] & 0x80 == 0
            {
                number.pop();
            }
            number.insert(0, number.len() as u8);
            number
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_testkit::chain::TxBuilder;

    #[test]
    fn heights_as_scripts_push_them() {
        for (height, expected) in [
            (0, vec![0x00]),
            (1, vec![0x51]),
            (16, vec![0x60]),
            (17, vec![1, 17]),
            (127, vec![1, 127]),
            (128, vec![2, 128, 0]),
            (255, vec![2, 255, 0]),
            (256, vec![2, 0, 1]),
            (32767, vec![2, 0xff, 0x7f]),
            (32768, vec![3, 0, 0x80, 0]),
            (0x0007_ffff, vec![3, 0xff, 0xff, 0x07]),
            (0x0080_0000, vec![4, 0, 0, 0x80, 0]),
            (u32::MAX, vec![5, 0xff, 0xff, 0xff, 0xff, 0]),
        ] {
            assert_eq!(height_prefix(height), expected, "{height}");
        }
    }

    #[test]
    fn the_last_commitment_counts() {
        let mut script = WITNESS_COMMITMENT_HEADER.to_vec();
        script.extend([1; 32]);
        let mut longer = script.clone();
        longer.push(0);
        let tx = TxBuilder::new(1)
            .input(0, u32::MAX, &[0, 0], 0)
            .output(0, &script)
            .output(0, &longer)
            .output(0, &script[..37])
            .build();
        assert_eq!(witness_commitment_index(tx.view()), Some(1));
        let none = TxBuilder::new(1).input(0, 0, &[], 0).output(0, &[0x6a; 38]).build();
        assert_eq!(witness_commitment_index(none.view()), None);
    }

    #[test]
    fn repeating_the_last_transactions_is_noticed() {
        let ids = |numbers: &[u8]| -> Vec<Txid> {
            numbers.iter().map(|number| Txid([*number; 32])).collect()
        };
        let (root, mutated) = txid_merkle_root(&ids(&[1, 2, 3]));
        assert!(!mutated);
        assert_eq!(txid_merkle_root(&ids(&[1, 2, 3, 3])), (root, true));
        let (root, mutated) = txid_merkle_root(&ids(&[1, 2, 3, 4, 5, 6]));
        assert!(!mutated);
        assert_eq!(txid_merkle_root(&ids(&[1, 2, 3, 4, 5, 6, 5, 6])), (root, true));
        assert_eq!(txid_merkle_root(&[]), ([0; 32], false));
        assert_eq!(txid_merkle_root(&ids(&[9])), ([9; 32], false));
    }

    #[test]
    fn the_coinbase_leaf_is_zero() {
        let one = witness_merkle_root(&[Wtxid([1; 32]), Wtxid([2; 32])]);
        assert_eq!(one, witness_merkle_root(&[Wtxid([3; 32]), Wtxid([2; 32])]));
        assert_eq!(witness_merkle_root(&[Wtxid([3; 32])]), [0; 32]);
    }
}
