//! The first block of a chain, built from the few facts in which they differ.

use assay_hash::sha256d;
use assay_wire::{BlockHash, Header, OutPoint, TxBuilder, encode};

use crate::amount::COIN;
use crate::script::opcode::op;

/// The data from which a genesis block is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenesisSpec {
    /// The newspaper line in the coinbase.
    pub message: &'static str,
    /// The key that the coinbase pays to.
    pub pubkey: &'static [u8],
    pub time: u32,
    pub nonce: u32,
    pub bits: u32,
}

impl GenesisSpec {
    /// The serialised block: a header and a coinbase that pays 50 coins.
    pub fn block(&self) -> Vec<u8> {
        let coinbase = self.coinbase();
        let header = Header {
            version: 1,
            prev_block: BlockHash::ZERO,
            merkle_root: sha256d(&coinbase),
            time: self.time,
            bits: self.bits,
            nonce: self.nonce,
        };
        let mut block = header.to_bytes().to_vec();
        encode::compact_size(&mut block, 1);
        block.extend_from_slice(&coinbase);
        block
    }

    fn coinbase(&self) -> Vec<u8> {
        // Two numbers that the first client put before its line: the target of block 0 and 4.
        let mut script_sig = vec![0x04, 0xff, 0xff, 0x00, 0x1d, 0x01, 0x04];
        let length = self.message.len() as u8;
        if length > 0x4b {
            script_sig.push(op::PUSHDATA1);
        }
        script_sig.push(length);
        script_sig.extend_from_slice(self.message.as_bytes());

        let mut script_pubkey = vec![self.pubkey.len() as u8];
        script_pubkey.extend_from_slice(self.pubkey);
        script_pubkey.push(op::CHECKSIG);

        let tx = TxBuilder::new(1).spend(OutPoint::NULL, &script_sig, u32::MAX);
        tx.output(50 * COIN, &script_pubkey).bytes()
    }
}
