//! Assembles signed transactions into a block: coinbase, order, merkle root, proof of work.

use assay_hash::{merkle_root, sha256d};
use assay_wire::encode::compact_size;
use rayon::{ThreadPool, slice::ParallelSliceMut as _};

use crate::{
    network::Network,
    sighash::{LOCK_TIME, SEQUENCE, VERSION},
};

pub(crate) struct Coinbase {
    pub(crate) bytes: Vec<u8>,
    pub(crate) txid: [u8; 32],
    pub(crate) weight: u64,
}

pub(crate) struct CoinbaseParts<'a> {
    /// True if the block commits to witnesses (BIP141).
    pub(crate) commits: bool,
    pub(crate) height: u32,
    pub(crate) seed: u64,
    pub(crate) amount: u64,
    pub(crate) script: &'a [u8],
    /// Root of the witness merkle tree (ignored if the block does not commit to it).
    pub(crate) witness_root: [u8; 32],
}

impl Coinbase {
    /// Pays one output.
    pub(crate) fn new(parts: &CoinbaseParts<'_>) -> Self {
        let segwit = parts.commits;
        let mut body = vec![1];
        body.extend_from_slice(&[0; 32]);
        body.extend_from_slice(&[0xff; 4]);
        let script_sig = script_sig(parts.height, parts.seed);
        body.push(script_sig.len() as u8);
        body.extend_from_slice(&script_sig);
        body.extend_from_slice(&SEQUENCE);
        body.push(if segwit { 2 } else { 1 });
        body.extend_from_slice(&parts.amount.to_le_bytes());
        body.push(parts.script.len() as u8);
        body.extend_from_slice(parts.script);
        if segwit {
            body.extend_from_slice(&[0; 8]);
            body.extend_from_slice(&[38, 0x6a, 0x24, 0xaa, 0x21, 0xa9, 0xed]);
            // BIP141: the commitment covers the root and the reserved value in the coinbase's witness, zero here.
            let mut committed = [0u8; 64];
            committed[..32].copy_from_slice(&parts.witness_root);
            body.extend_from_slice(&sha256d(&committed));
        }
        let base = [&VERSION[..], &body, &LOCK_TIME].concat();
        let txid = sha256d(&base);
        let base_len = base.len() as u64;
        // Bitcoin Cash rejected transactions below 100 bytes when it introduced canonical order.
        assert!(base_len >= 100, "height, tag and seed make the coinbase long enough");
        if !segwit {
            return Self { bytes: base, txid, weight: 4 * base_len };
        }
        let mut bytes = [&VERSION[..], &[0, 1], &body, &[1, 32]].concat();
        bytes.extend_from_slice(&[0; 32]);
        bytes.extend_from_slice(&LOCK_TIME);
        let weight = 3 * base_len + bytes.len() as u64;
        Self { bytes, txid, weight }
    }
}

/// The height (BIP34), a tag, and the seed, so that chains of different seeds share no block.
fn script_sig(height: u32, seed: u64) -> Vec<u8> {
    let mut script = Vec::with_capacity(32);
    if height <= 16 {
        script.push(0x50 + height as u8);
    } else {
        let mut number = height.to_le_bytes().to_vec();
        while number.len() > 1 && number[number.len() - 1] == 0 && number[number.len() - 2] < 0x80 {
            number.pop();
        }
        script.push(number.len() as u8);
        script.extend_from_slice(&number);
    }
    script.push(TAG.len() as u8);
    script.extend_from_slice(TAG);
    script.push(8);
    script.extend_from_slice(&seed.to_le_bytes());
    script
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

/// Merkle root of `hashes` in `order`.
pub(crate) fn root(hashes: &[[u8; 32]], order: &[u32]) -> [u8; 32] {
    let leaves = order.iter().map(|tx| hashes[*tx as usize]).collect();
    let (root, mutated) = merkle_root(leaves);
    assert!(!mutated, "no two transactions of a block are equal");
    root
}

pub(crate) struct Mined {
    pub(crate) bytes: [u8; 80],
    pub(crate) hash: [u8; 32],
}

/// Finds the lowest nonce whose hash meets the regtest target: on average the second.
pub(crate) fn mine(network: Network, previous: &[u8; 32], root: &[u8; 32], time: u32) -> Mined {
    // Regtest has no retargeting: every block has the initial target.
    let bits = network.params().genesis.bits;
    let mut bytes = [0u8; 80];
    bytes[..4].copy_from_slice(&BLOCK_VERSION.to_le_bytes());
    bytes[4..36].copy_from_slice(previous);
    bytes[36..68].copy_from_slice(root);
    bytes[68..72].copy_from_slice(&time.to_le_bytes());
    bytes[72..76].copy_from_slice(&bits.to_le_bytes());
    for nonce in 0..=u32::MAX {
        bytes[76..].copy_from_slice(&nonce.to_le_bytes());
        let hash = sha256d(&bytes);
        // The target is 7fffff00…00: it suffices to compare the three leading bytes, since no hash ends in 29 zero bytes.
        let lead = u32::from_be_bytes([0, hash[31], hash[30], hash[29]]);
        if lead < bits & 0x00ff_ffff {
            return Mined { bytes, hash };
        }
    }
    unreachable!("half of all hashes meet the target of regtest")
}

pub(crate) fn count_bytes(count: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(9);
    compact_size(&mut bytes, count);
    bytes
}

/// BIP9 version bits, all clear.
const BLOCK_VERSION: u32 = 0x2000_0000;
const TAG: &[u8] = b"/assay forge/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_as_bip34_pushes_them() {
        let cases: [(u32, &[u8]); 7] = [
            (1, &[0x51]),
            (16, &[0x60]),
            (17, &[1, 17]),
            (127, &[1, 127]),
            (128, &[2, 128, 0]),
            (255, &[2, 255, 0]),
            (256, &[2, 0, 1]),
        ];
        for (height, expected) in cases {
            assert!(script_sig(height, 0).starts_with(expected), "height {height}");
        }
    }
}
