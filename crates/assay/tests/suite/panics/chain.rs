//! Blocks of the scenario.

use std::path::Path;

use assay_hash::sha256d;
use assay_store::{BlockFiles, RecordRules};
use assay_wire::{Block, Encoding, Header};

/// Blocks of a forged chain in order of height, without genesis.
pub(crate) fn forge(out: &Path, seed: &str, scale: &str) -> Vec<Block> {
    let flags = format!("--scale {scale} --seed {seed} --out {}", out.display());
    let forged = crate::line(&format!("chain forge bch-scaling {flags}"));
    assert!(forged.status.success(), "{}", crate::stderr(&forged));
    let file = out.join("blocks/blk00000.dat");
    let files = BlockFiles::open(&file, MAGIC).expect("forged");
    let rules = RecordRules { bytes_max: u32::MAX, is_header: &|_| true };
    let found = files.search(1, &rules, &|place, _| place, &|_, _| ()).expect("forged");
    let raw = found.entries.iter().map(|place| files.read(place).expect("forged"));
    let parse = |raw| Block::parse(raw, Encoding::Legacy).expect("forged blocks parse");
    let mut blocks: Vec<Block> = raw.map(parse).collect();
    // The forge may write genesis as the first block.
    blocks.retain(|block| block.header().prev_block.0 != [0; 32]);
    blocks
}

/// The block with a coinbase that pays one satoshi too much.
pub(crate) fn overpaying(block: &Block) -> Block {
    assert_eq!(block.tx_count(), 1, "a block with a coinbase alone has a simple root");
    let value = block.tx(0).output(0).value;
    let mut raw = block.bytes().to_vec();
    let at = raw.windows(8).position(|window| window == value.to_le_bytes()).expect("it is there");
    raw[at..at + 8].copy_from_slice(&(value + 1).to_le_bytes());
    let mut header = *block.header();
    header.merkle_root = sha256d(&raw[Header::SIZE + 1..]);
    // Half of all hashes meet the target of this chain.
    while header.hash().0[31] > 0x7e {
        header.nonce += 1;
    }
    raw[..Header::SIZE].copy_from_slice(&header.to_bytes());
    Block::parse(raw, Encoding::Legacy).expect("it parses as the other did")
}

const MAGIC: [u8; 4] = [0xfa, 0xbf, 0xb5, 0xda];
