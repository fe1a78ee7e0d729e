//! Common parts of benchmark blocks: a coinbase, and a header with regtest proof of work.

use assay_consensus::commitment::{WITNESS_COMMITMENT_HEADER, height_prefix, witness_commitment};
use assay_hash::merkle_root;
use assay_wire::{BlockHash, Header, OutPoint, Wtxid, encode};

/// A coinbase without and with its witness; equal without a witness commitment.
#[derive(Clone, Debug)]
pub struct Coinbase {
    /// Serialization hashed to the txid.
    pub base: Vec<u8>,
    /// Serialization in the block.
    pub full: Vec<u8>,
}

impl Coinbase {
    /// For a block at `height`, with `tail` after the height in its script; pays the given satoshi to an output script. With
    /// wtxids, whose first is that of the coinbase itself, it commits to the witnesses.
    pub fn new(
        height: u32,
        tail: &[u8],
        (value_sat, script_pubkey): (i64, &[u8]),
        wtxids: Option<&[Wtxid]>,
    ) -> Self {
        const RESERVED: [u8; 32] = [0; 32];
        let mut body = vec![1];
        body.extend_from_slice(&OutPoint::NULL.to_bytes());
        encode::var_bytes(&mut body, &[&height_prefix(height)[..], tail].concat());
        // A non-final sequence number and a lock time of the previous height, which BIP54 requires; current rules ignore both.
        body.extend_from_slice(&[0xfe, 0xff, 0xff, 0xff]);
        body.push(if wtxids.is_some() { 2 } else { 1 });
        body.extend_from_slice(&value_sat.to_le_bytes());
        encode::var_bytes(&mut body, script_pubkey);
        if let Some(wtxids) = wtxids {
            body.extend_from_slice(&0i64.to_le_bytes());
            let commitment = witness_commitment(wtxids, &RESERVED);
            encode::var_bytes(&mut body, &[&WITNESS_COMMITMENT_HEADER[..], &commitment].concat());
        }
        let version = 2i32.to_le_bytes();
        let lock_time = height.saturating_sub(1).to_le_bytes();
        let base = [&version[..], &body, &lock_time].concat();
        let full = match wtxids {
            None => base.clone(),
            Some(_) => [&version[..], &[0, 1], &body, &[1, 32], &RESERVED, &lock_time].concat(),
        };
        Self { base, full }
    }
}

/// A regtest header with proof of work.
pub fn mined(prev_block: BlockHash, time: u32, txids: Vec<[u8; 32]>) -> Header {
    let mut header = Header {
        version: 0x2000_0000,
        prev_block,
        merkle_root: merkle_root(txids).0,
        time,
        bits: 0x207f_ffff,
        nonce: 0,
    };
    // Half of all hashes are below regtest's target; a smaller first byte is sufficient.
    while header.hash().0[31] >= 0x7f {
        header.nonce += 1;
    }
    header
}
