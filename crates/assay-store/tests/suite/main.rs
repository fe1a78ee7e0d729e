//! Integration tests of the store: crashes, files, rot.

mod crash;
mod files;
mod rot;

use assay_store::BlockRecord;
use assay_wire::{BlockHash, Header};

fn header(n: u32) -> Header {
    Header {
        version: 4,
        prev_block: BlockHash([n as u8; 32]),
        merkle_root: [7; 32],
        time: n,
        bits: 0x207f_ffff,
        nonce: n,
    }
}

/// The record of a block with header and height alone.
fn record(n: u32) -> BlockRecord {
    BlockRecord {
        header: header(n),
        height: n,
        status: 0,
        tx_count: 0,
        chain_tx_count: 0,
        sequence: 1,
        block: None,
        undo: None,
        was_pruned: false,
    }
}
