//! Synthetic blocks, headers, transactions and lists, valid and invalid.

use assay_hash::{merkle_root, sha256d};
use assay_report::stats::random::SplitMix64;
use assay_wire::p2p::{
    CompactBlock, Inventory, InventoryKind, Item as _, NetAddress, Prefilled, ShortId, TimedAddress,
};
use assay_wire::{BlockHash, Header, OutPoint, TxBuilder, Txid, encode};

use super::SERVICES;

/// The easiest target, that of regtest.
const BITS: u32 = 0x207f_ffff;
/// Version without signals (BIP9).
pub(crate) const BLOCK_VERSION: i32 = 0x2000_0000;
const OP_TRUE: u8 = 0x51;

/// A header with valid regtest work if `is_mined`, otherwise with invalid work.
pub(crate) fn header(
    version: i32,
    prev_block: BlockHash,
    merkle_root: [u8; 32],
    time: u32,
    is_mined: bool,
) -> Header {
    let mut header = Header { version, prev_block, merkle_root, time, bits: BITS, nonce: 0 };
    // The target leaves the highest bit clear.
    while (header.hash().0[31] < 0x80) != is_mined {
        header.nonce += 1;
    }
    header
}

/// A block with valid work of these transactions, with the merkle root of `txids`.
pub(crate) fn block<'a>(
    version: i32,
    prev: BlockHash,
    time: u32,
    txids: Vec<[u8; 32]>,
    txs: impl Iterator<Item = &'a [u8]>,
) -> Vec<u8> {
    let count = txids.len() as u64;
    let mut block = header(version, prev, merkle_root(txids).0, time, true).to_bytes().to_vec();
    encode::compact_size(&mut block, count);
    txs.for_each(|tx| block.extend_from_slice(tx));
    block
}

fn block_of_one(prev: BlockHash, time: u32, tx: &[u8]) -> Vec<u8> {
    block(BLOCK_VERSION, prev, time, vec![sha256d(tx)], std::iter::once(tx))
}

/// A transaction that spends an unknown output, and pays to anyone.
pub(crate) fn orphan(random: &mut SplitMix64) -> Vec<u8> {
    let prevout = OutPoint { txid: Txid(random.bytes()), vout: 0 };
    // A witness program of version 0.
    let script_pubkey = [&[0, 20], &random.bytes::<20>()[..]].concat();
    TxBuilder::new(2).spend(prevout, &[], u32::MAX).output(100_000, &script_pubkey).bytes()
}

/// A block of one transaction that is no coinbase, with a matching merkle root.
pub(crate) fn invalid_block(prev: BlockHash, time: u32, random: &mut SplitMix64) -> Vec<u8> {
    block_of_one(prev, time, &orphan(random))
}

/// A block of a coinbase alone that pays `amount` satoshi to anyone.
pub(crate) fn coinbase_block(prev: BlockHash, height: u32, time: u32, amount: i64) -> Vec<u8> {
    block_of_one(prev, time, &coinbase(height, amount))
}

/// A coinbase that pays `amount` satoshi to anyone.
pub(crate) fn coinbase(height: u32, amount: i64) -> Vec<u8> {
    // The height (BIP34), up to 16 as a one-byte opcode, followed by an arbitrary byte.
    let mut script_sig = if height <= 16 { vec![0x50 + height as u8] } else { Vec::new() };
    if height > 16 {
        encode::var_bytes(&mut script_sig, &script_number(height));
    }
    script_sig.push(0);
    let tx = TxBuilder::new(2).spend(OutPoint::NULL, &script_sig, u32::MAX);
    tx.output(amount, &[OP_TRUE]).bytes()
}

/// A minimally encoded script number.
fn script_number(value: u32) -> Vec<u8> {
    let mut bytes: Vec<u8> = value.to_le_bytes().to_vec();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    if bytes.last().is_some_and(|byte| byte & 0x80 != 0) {
        bytes.push(0);
    }
    bytes
}

/// Payload of a compact block (BIP152) with valid work and identical short ids.
pub(crate) fn colliding_compact_block(
    prev: BlockHash,
    time: u32,
    count: usize,
    random: &mut SplitMix64,
) -> Vec<u8> {
    let (orphan, short_ids) = (orphan(random), vec![ShortId::read(&[1, 2, 3, 4, 5, 6]); count]);
    let mut payload = Vec::new();
    let block = CompactBlock {
        header: header(BLOCK_VERSION, prev, random.bytes(), time, true),
        nonce: random.next(),
        short_ids: short_ids[..].into(),
        prefilled: vec![Prefilled { index: 0, raw: &orphan }],
    };
    block.encode(&mut payload);
    payload
}

/// A chain of headers; the first already lacks work.
pub(crate) fn headers_without_work(
    prev: BlockHash,
    time: u32,
    count: usize,
    random: &mut SplitMix64,
) -> Vec<Header> {
    let mut prev = prev;
    let next = |_| {
        let header = header(BLOCK_VERSION, prev, random.bytes(), time, false);
        prev = header.hash();
        header
    };
    (0..count).map(next).collect()
}

/// Unknown hashes for `inv` and `getdata`.
pub(crate) fn unknown_inventory(
    kind: InventoryKind,
    count: usize,
    random: &mut SplitMix64,
) -> Vec<Inventory> {
    (0..count).map(|_| Inventory { kind, hash: random.bytes() }).collect()
}

/// Unused IPv4 addresses.
pub(crate) fn addresses(count: usize, time: u32, random: &mut SplitMix64) -> Vec<TimedAddress> {
    let address = |_| {
        let [first, second, third, fourth] = random.bytes();
        let mut ip = [0; 16];
        // Mapped into IPv6; 11.0.0.0/8 to 99.0.0.0/8 contains no local range.
        ip[10..].copy_from_slice(&[0xff, 0xff, 11 + first % 89, second, third, fourth]);
        TimedAddress { time, address: NetAddress { services: SERVICES, ip, port: 8333 } }
    };
    (0..count).map(address).collect()
}

#[cfg(test)]
mod tests {
    use assay_wire::{Block, Encoding};

    use super::*;
    use crate::p2p::GENESIS;

    #[test]
    fn heights_are_script_numbers() {
        for (height, expected) in
            [(17, vec![17]), (127, vec![127]), (128, vec![128, 0]), (400, vec![0x90, 1])]
        {
            assert_eq!(script_number(height), expected);
        }
    }

    #[test]
    fn headers_have_work_or_not() {
        for is_mined in [true, false] {
            let header = header(BLOCK_VERSION, GENESIS, [7; 32], 1, is_mined);
            assert_eq!(header.hash().0[31] < 0x80, is_mined);
        }
    }

    #[test]
    fn blocks_commit_to_their_transactions() {
        for height in [1, 16, 17, 500] {
            let block = coinbase_block(GENESIS, height, 9, 1_000);
            let block = Block::parse(block, Encoding::Segwit).unwrap();
            let coinbase = block.tx(0);
            assert!(coinbase.is_coinbase() && coinbase.output(0).value == 1_000);
            assert_eq!(block.header().merkle_root, coinbase.txid().0);
        }
        let block = invalid_block(GENESIS, 9, &mut SplitMix64::new(1));
        assert!(!Block::parse(block, Encoding::Segwit).unwrap().tx(0).is_coinbase());
    }
}
