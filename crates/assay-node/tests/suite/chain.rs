//! Makes regtest blocks and transactions that need no signatures.

use assay_wire::{Block, BlockHash, Encoding, Header, OutPoint, Transaction, Txid, encode};
use sha2::{Digest, Sha256};

/// Pays to the hash of a script that is just true, which relay policy accepts.
pub(crate) const P2SH_TRUE: [u8; 23] = [
    0xa9, 20, 0xda, 0x17, 0x45, 0xe9, 0xb5, 0x49, 0xbd, 0x0b, 0xfa, 0x1a, 0x56, 0x99, 0x71, 0xc7,
    0x7e, 0xba, 0x30, 0xcd, 0x5a, 0x4b, 0x87,
];
pub(crate) const SUBSIDY: i64 = 5_000_000_000;

/// A block on top of `parent` with a coinbase that pays `SUBSIDY`, and `txs`.
pub(crate) fn block(parent: &Block, height: u32, txs: &[Transaction]) -> Block {
    let coinbase = coinbase(height);
    let mut ids = vec![coinbase.view().txid()];
    ids.extend(txs.iter().map(|tx| tx.view().txid()));
    let header = Header {
        version: 0x2000_0000,
        prev_block: parent.hash(),
        merkle_root: merkle_root(ids),
        time: parent.header().time + 600,
        bits: 0x207f_ffff,
        nonce: 0,
    };
    let mut raw = mine(header).to_bytes().to_vec();
    encode::compact_size(&mut raw, txs.len() as u64 + 1);
    raw.extend_from_slice(coinbase.bytes());
    for tx in txs {
        raw.extend_from_slice(tx.bytes());
    }
    Block::parse(raw, Encoding::Segwit).unwrap()
}

/// Half of all hashes meet the target.
fn mine(mut header: Header) -> Header {
    while header.hash().0[31] > 0x7f {
        header.nonce += 1;
    }
    header
}

fn coinbase(height: u32) -> Transaction {
    let mut script_sig = vec![3];
    script_sig.extend_from_slice(&height.to_le_bytes()[..3]);
    // BIP34 wants the shortest form of the height.
    if height <= 16 {
        script_sig = vec![0x50 + height as u8, 0];
    } else if height < 128 {
        script_sig = vec![1, height as u8];
    } else if height < 32_768 {
        script_sig = vec![2, height as u8, (height >> 8) as u8];
    }
    // It halves every 150 blocks here.
    tx(&[(OutPoint::NULL, &script_sig)], &[SUBSIDY >> (height / 150)])
}

/// Spends `inputs` in order to one output per value.
pub(crate) fn spend(inputs: &[(Txid, u32)], values: &[i64]) -> Transaction {
    let script_sig: &[u8] = &[1, 0x51];
    let inputs: Vec<_> =
        inputs.iter().map(|&(txid, vout)| (OutPoint { txid, vout }, script_sig)).collect();
    tx(&inputs, values)
}

fn tx(inputs: &[(OutPoint, &[u8])], values: &[i64]) -> Transaction {
    let mut raw = 2i32.to_le_bytes().to_vec();
    encode::compact_size(&mut raw, inputs.len() as u64);
    for (outpoint, script_sig) in inputs {
        raw.extend_from_slice(&outpoint.to_bytes());
        encode::compact_size(&mut raw, script_sig.len() as u64);
        raw.extend_from_slice(script_sig);
        raw.extend_from_slice(&u32::MAX.to_le_bytes());
    }
    encode::compact_size(&mut raw, values.len() as u64);
    for value in values {
        raw.extend_from_slice(&value.to_le_bytes());
        encode::compact_size(&mut raw, P2SH_TRUE.len() as u64);
        raw.extend_from_slice(&P2SH_TRUE);
    }
    raw.extend_from_slice(&0u32.to_le_bytes());
    Transaction::parse(raw, Encoding::Segwit).unwrap()
}

fn merkle_root(ids: Vec<Txid>) -> [u8; 32] {
    let mut level: Vec<[u8; 32]> = ids.into_iter().map(|id| id.0).collect();
    while level.len() > 1 {
        if level.len() % 2 == 1 {
            level.extend(level.last().copied());
        }
        level = level
            .chunks(2)
            .map(|pair| Sha256::digest(Sha256::digest(pair.concat())).into())
            .collect();
    }
    level[0]
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    faster_hex::hex_string(bytes)
}

/// The hash of the genesis block of regtest.
pub(crate) fn regtest_genesis() -> BlockHash {
    "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206".parse().unwrap()
}
