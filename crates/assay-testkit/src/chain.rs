//! Transactions and blocks without signatures.

pub use assay_wire::TxBuilder;
use assay_wire::{Block, BlockHash, Encoding, Header, OutPoint, Transaction, Txid, Wtxid, encode};

/// Pays to the hash of the script `OP_TRUE`, which relay policy accepts.
pub const P2SH_TRUE: [u8; 23] = [
    0xa9, 20, 0xda, 0x17, 0x45, 0xe9, 0xb5, 0x49, 0xbd, 0x0b, 0xfa, 0x1a, 0x56, 0x99, 0x71, 0xc7,
    0x7e, 0xba, 0x30, 0xcd, 0x5a, 0x4b, 0x87,
];

/// The input script that spends [`P2SH_TRUE`].
pub const SPEND_P2SH_TRUE: [u8; 2] = [1, 0x51];

/// Spends outputs 0, 1, … of the transaction whose txid is all `txid`, with these input scripts and witnesses.
pub fn unlocked(txid: u8, unlocking: &[(Vec<u8>, Vec<Vec<u8>>)]) -> TxBuilder {
    unlocking.iter().enumerate().fold(TxBuilder::new(2), |tx, (index, (script_sig, witness))| {
        tx.input(txid, index as u32, &[], u32::MAX).unlock(index, script_sig, witness)
    })
}

/// A coinbase without outputs; `script_sig` makes it unique.
pub fn coinbase_with(script_sig: &[u8]) -> TxBuilder {
    TxBuilder::new(1).spend(OutPoint::NULL, script_sig, u32::MAX)
}

/// A coinbase for `height` (16 to 32767) that pays `value` to anyone.
pub fn coinbase(height: u16, value: i64) -> TxBuilder {
    let [low, high] = height.to_le_bytes();
    let script_sig =
        if height < 0x80 { vec![1, low, 0x51, 0x51] } else { vec![2, low, high, 0x51] };
    coinbase_with(&script_sig).output(value, &[0x51])
}

/// A regtest header without merkle root and proof of work.
pub fn header_on(prev_block: BlockHash, time: u32) -> Header {
    Header {
        version: 0x2000_0000,
        prev_block,
        merkle_root: [0; 32],
        time,
        bits: 0x207f_ffff,
        nonce: 0,
    }
}

/// A serialised block of these transactions, with the correct merkle root instead of that of `header`.
pub fn block_bytes<'a>(
    header: Header,
    txs: impl IntoIterator<Item = &'a Transaction, IntoIter: Clone + ExactSizeIterator>,
) -> Vec<u8> {
    let txs = txs.into_iter();
    let ids = txs.clone().map(|tx| tx.view().txid().0).collect();
    let header = Header { merkle_root: assay_hash::merkle_root(ids).0, ..header };
    let mut bytes = header.to_bytes().to_vec();
    encode::compact_size(&mut bytes, txs.len() as u64);
    for tx in txs {
        bytes.extend_from_slice(tx.bytes());
    }
    bytes
}

/// The same, with proof of work for the regtest target, which half of all hashes meet.
pub fn mined_block_bytes<'a>(
    header: Header,
    txs: impl IntoIterator<Item = &'a Transaction, IntoIter: Clone + ExactSizeIterator>,
) -> Vec<u8> {
    let mut bytes = block_bytes(header, txs);
    for nonce in 0u32.. {
        bytes[76..80].copy_from_slice(&nonce.to_le_bytes());
        if assay_hash::sha256d(&bytes[..80])[31] < 0x7f {
            break;
        }
    }
    bytes
}

/// A block of these transactions without proof of work.
pub fn block_of(txs: &[Vec<u8>], encoding: Encoding) -> Block {
    let txs: Vec<_> = txs
        .iter()
        .map(|tx| Transaction::parse(tx.clone(), encoding).expect("a test transaction parses"))
        .collect();
    let header = Header { version: 4, ..header_on(BlockHash::ZERO, 1_600_000_000) };
    Block::parse(block_bytes(header, &txs), encoding).expect("a test block parses")
}

pub fn txids(block: &Block) -> Vec<Txid> {
    block.txs().map(|tx| tx.txid()).collect()
}

pub fn wtxids(block: &Block) -> Vec<Wtxid> {
    block.txs().map(|tx| tx.wtxid()).collect()
}
