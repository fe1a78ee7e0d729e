//! Assembles signed transactions into a block: coinbase, order, merkle root, proof of work.

use assay_consensus::commitment::height_prefix;
use assay_hash::{merkle_root, sha256d};
use assay_wire::{BlockHash, Header, OutPoint, TxBuilder};
use rayon::{ThreadPool, slice::ParallelSliceMut as _};

use crate::{
    network::Network,
    sighash::{SEQUENCE, VERSION},
};

pub(crate) struct Coinbase {
    pub(crate) bytes: Vec<u8>,
    pub(crate) txid: [u8; 32],
    pub(crate) weight: u64,
}

impl Coinbase {
    /// Pays one output. `witness_root` is the root of the witness merkle tree, if the block commits to it (BIP141).
    pub(crate) fn new(
        (height, seed): (u32, u64),
        (amount, script): (u64, &[u8]),
        witness_root: Option<[u8; 32]>,
    ) -> Self {
        const RESERVED: [u8; 32] = [0; 32];
        let mut tx = TxBuilder::new(i32::from_le_bytes(VERSION))
            .spend(OutPoint::NULL, &script_sig(height, seed), u32::from_le_bytes(SEQUENCE))
            .output(amount as i64, script);
        if let Some(root) = witness_root {
            // BIP141: the commitment covers the root and the reserved value in the coinbase's witness.
            let commitment = sha256d(&[root, RESERVED].concat());
            let head = [0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed];
            tx = tx.output(0, &[&head[..], &commitment].concat());
        }
        let base = tx.bytes();
        let txid = sha256d(&base);
        // Bitcoin Cash rejected transactions below 100 bytes when it introduced canonical order.
        assert!(base.len() >= 100, "height, tag and seed make the coinbase long enough");
        let bytes = match witness_root {
            Some(_) => tx.witness(&[&RESERVED]).bytes(),
            None => base.clone(),
        };
        let weight = (3 * base.len() + bytes.len()) as u64;
        Self { bytes, txid, weight }
    }
}

/// The height (BIP34), a tag, and the seed, so that chains of different seeds share no block.
fn script_sig(height: u32, seed: u64) -> Vec<u8> {
    let (tag, seed) = ([&[TAG.len() as u8], TAG].concat(), seed.to_le_bytes());
    [&height_prefix(height)[..], &tag, &[8], &seed].concat()
}

/// Transactions in block order: by txid on Bitcoin Cash (canonical order, as numbers), else as generated.
pub(crate) fn block_order(network: Network, txids: &[[u8; 32]], threads: &ThreadPool) -> Vec<u32> {
    let generated = 0..txids.len() as u32;
    if network != Network::BchRegtest {
        return generated.collect();
    }
    let number = |txid: &[u8; 32]| {
        let mut number = *txid;
        number.reverse();
        number
    };
    let prefix = |txid: &[u8; 32]| u64::from_le_bytes(txid[24..].try_into().expect("eight bytes"));
    let mut keyed: Vec<(u64, u32)> =
        generated.skip(1).map(|tx| (prefix(&txids[tx as usize]), tx)).collect();
    threads.install(|| {
        keyed.par_sort_unstable_by(|a, b| {
            a.0.cmp(&b.0)
                .then_with(|| number(&txids[a.1 as usize]).cmp(&number(&txids[b.1 as usize])))
        });
    });
    std::iter::once(0).chain(keyed.into_iter().map(|(_, tx)| tx)).collect()
}

pub(crate) fn root(hashes: &[[u8; 32]], order: &[u32]) -> [u8; 32] {
    let leaves = order.iter().map(|tx| hashes[*tx as usize]).collect();
    let (root, mutated) = merkle_root(leaves);
    assert!(!mutated, "no two transactions of a block are equal");
    root
}

/// Header and hash with the lowest nonce whose hash meets the regtest target: on average the second.
pub(crate) fn mine(
    network: Network,
    previous: &[u8; 32],
    root: &[u8; 32],
    time: u32,
) -> ([u8; 80], [u8; 32]) {
    // Regtest has no retargeting: every block has the initial target.
    let bits = network.params().genesis.bits;
    let (prev_block, merkle_root) = (BlockHash(*previous), *root);
    let header = Header { version: BLOCK_VERSION, prev_block, merkle_root, time, bits, nonce: 0 };
    let mut bytes = header.to_bytes();
    for nonce in 0..=u32::MAX {
        bytes[76..].copy_from_slice(&nonce.to_le_bytes());
        let hash = sha256d(&bytes);
        // The target is 7fffff00…00: it suffices to compare the three leading bytes, since no hash ends in 29 zero bytes.
        let lead = u32::from_be_bytes([0, hash[31], hash[30], hash[29]]);
        if lead < bits & 0x00ff_ffff {
            return (bytes, hash);
        }
    }
    unreachable!("half of all hashes meet the target of regtest")
}

const BLOCK_VERSION: i32 = 0x2000_0000;
const TAG: &[u8] = b"/assay forge/";
