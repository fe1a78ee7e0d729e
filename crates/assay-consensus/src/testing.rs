//! Builds transactions and blocks for tests.

use std::path::PathBuf;

use assay_wire::{Block, BlockHash, Encoding, Header, OutPoint, Transaction, Txid, Wtxid, encode};

/// Puts a transaction together from its parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct TxBuilder {
    version: i32,
    inputs: Vec<(OutPoint, Vec<u8>, u32)>,
    outputs: Vec<(i64, Vec<u8>)>,
    witnesses: Vec<Vec<Vec<u8>>>,
    lock_time: u32,
}

impl TxBuilder {
    pub(crate) fn new(version: i32) -> Self {
        Self { version, ..Self::default() }
    }

    /// Spends output `vout` of the transaction whose txid is all `txid`.
    pub(crate) fn input(self, txid: u8, vout: u32, script_sig: &[u8], sequence: u32) -> Self {
        self.spend(OutPoint { txid: Txid([txid; 32]), vout }, script_sig, sequence)
    }

    pub(crate) fn spend(mut self, prevout: OutPoint, script_sig: &[u8], sequence: u32) -> Self {
        self.inputs.push((prevout, script_sig.to_vec(), sequence));
        self
    }

    pub(crate) fn output(mut self, value: i64, script_pubkey: &[u8]) -> Self {
        self.outputs.push((value, script_pubkey.to_vec()));
        self
    }

    /// The witness of the next input that has none yet.
    pub(crate) fn witness(mut self, items: &[&[u8]]) -> Self {
        self.witnesses.push(items.iter().map(|item| item.to_vec()).collect());
        self
    }

    pub(crate) fn lock_time(mut self, lock_time: u32) -> Self {
        self.lock_time = lock_time;
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let segwit = !self.witnesses.is_empty();
        let mut out = self.version.to_le_bytes().to_vec();
        if segwit {
            out.extend_from_slice(&[0, 1]);
        }
        encode::compact_size(&mut out, self.inputs.len() as u64);
        for (prevout, script_sig, sequence) in &self.inputs {
            out.extend_from_slice(&prevout.to_bytes());
            encode::var_bytes(&mut out, script_sig);
            out.extend_from_slice(&sequence.to_le_bytes());
        }
        encode::compact_size(&mut out, self.outputs.len() as u64);
        for (value, script_pubkey) in &self.outputs {
            out.extend_from_slice(&value.to_le_bytes());
            encode::var_bytes(&mut out, script_pubkey);
        }
        if segwit {
            for index in 0..self.inputs.len() {
                let items = self.witnesses.get(index).map_or(&[][..], Vec::as_slice);
                encode::compact_size(&mut out, items.len() as u64);
                for item in items {
                    encode::var_bytes(&mut out, item);
                }
            }
        }
        out.extend_from_slice(&self.lock_time.to_le_bytes());
        out
    }

    pub(crate) fn build(&self) -> Transaction {
        let encoding = if self.inputs.is_empty() { Encoding::Legacy } else { Encoding::Segwit };
        Transaction::parse(self.bytes(), encoding).expect("the builder writes what parses")
    }
}

/// A coinbase for `height` (16 to 32767) that pays `value` to anyone.
pub(crate) fn coinbase(height: u16, value: i64) -> TxBuilder {
    let [low, high] = height.to_le_bytes();
    let script_sig =
        if height < 0x80 { vec![1, low, 0x51, 0x51] } else { vec![2, low, high, 0x51] };
    TxBuilder::new(1).spend(OutPoint::NULL, &script_sig, u32::MAX).output(value, &[0x51])
}

/// A block of these transactions with the right merkle root and no work.
pub(crate) fn block_of(txs: &[Vec<u8>], encoding: Encoding) -> Block {
    let ids = txs
        .iter()
        .map(|tx| {
            let tx = Transaction::parse(tx.clone(), encoding).expect("a test transaction parses");
            tx.view().txid().0
        })
        .collect();
    let header = Header {
        version: 4,
        prev_block: BlockHash::ZERO,
        merkle_root: assay_hash::merkle_root(ids).0,
        time: 1_600_000_000,
        bits: 0x207f_ffff,
        nonce: 0,
    };
    let mut bytes = header.to_bytes().to_vec();
    encode::compact_size(&mut bytes, txs.len() as u64);
    for tx in txs {
        bytes.extend_from_slice(tx);
    }
    Block::parse(bytes, encoding).expect("a test block parses")
}

pub(crate) fn txids(block: &Block) -> Vec<Txid> {
    block.txs().map(|tx| tx.txid()).collect()
}

pub(crate) fn wtxids(block: &Block) -> Vec<Wtxid> {
    block.txs().map(|tx| tx.wtxid()).collect()
}

/// A file of the shared test data, or `None`, said aloud, when it is not there.
pub(crate) fn test_data(name: &str) -> Option<Vec<u8>> {
    let root = std::env::var_os("ASSAY_TEST_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"),
        PathBuf::from,
    );
    let bytes = std::fs::read(root.join(name)).ok();
    if bytes.is_none() {
        println!("skipped: {name} is not among the test data");
    }
    bytes
}

/// Decodes hexadecimal text.
pub(crate) fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .map(|digit| digit.to_digit(16).expect("test data is hexadecimal") as u8)
        .collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
