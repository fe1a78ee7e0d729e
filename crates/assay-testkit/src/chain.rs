//! Transactions and blocks without signatures.

use assay_wire::{Block, BlockHash, Encoding, Header, OutPoint, Transaction, Txid, Wtxid, encode};

/// Pays to the hash of the script `OP_TRUE`, which relay policy accepts.
pub const P2SH_TRUE: [u8; 23] = [
    0xa9, 20, 0xda, 0x17, 0x45, 0xe9, 0xb5, 0x49, 0xbd, 0x0b, 0xfa, 0x1a, 0x56, 0x99, 0x71, 0xc7,
    0x7e, 0xba, 0x30, 0xcd, 0x5a, 0x4b, 0x87,
];

/// The input script that spends [`P2SH_TRUE`].
pub const SPEND_P2SH_TRUE: [u8; 2] = [1, 0x51];

#[derive(Clone, Debug, Default)]
pub struct TxBuilder {
    version: i32,
    inputs: Vec<(OutPoint, Vec<u8>, u32)>,
    outputs: Vec<(i64, Vec<u8>)>,
    witnesses: Vec<Vec<Vec<u8>>>,
    lock_time: u32,
}

impl TxBuilder {
    /// Without inputs, outputs and lock time.
    pub fn new(version: i32) -> Self {
        Self { version, ..Self::default() }
    }

    /// Spends output `vout` of the transaction whose txid is all `txid`.
    #[must_use]
    pub fn input(self, txid: u8, vout: u32, script_sig: &[u8], sequence: u32) -> Self {
        self.spend(OutPoint { txid: Txid([txid; 32]), vout }, script_sig, sequence)
    }

    #[must_use]
    pub fn spend(mut self, prevout: OutPoint, script_sig: &[u8], sequence: u32) -> Self {
        self.inputs.push((prevout, script_sig.to_vec(), sequence));
        self
    }

    /// Spends outputs 0, 1, … of that transaction, with these input scripts and, if there are any, witnesses.
    #[must_use]
    pub fn inputs(mut self, txid: u8, inputs: &[(Vec<u8>, Vec<Vec<u8>>)]) -> Self {
        for (vout, (script_sig, _)) in (0..).zip(inputs) {
            self = self.input(txid, vout, script_sig, u32::MAX);
        }
        if inputs.iter().any(|(_, witness)| !witness.is_empty()) {
            self.witnesses = inputs.iter().map(|(_, witness)| witness.clone()).collect();
        }
        self
    }

    /// Adds an output of `value` satoshi.
    #[must_use]
    pub fn output(mut self, value: i64, script_pubkey: &[u8]) -> Self {
        self.outputs.push((value, script_pubkey.to_vec()));
        self
    }

    /// Sets the witness of the next input without one.
    #[must_use]
    pub fn witness(mut self, items: &[&[u8]]) -> Self {
        self.witnesses.push(items.iter().map(|item| item.to_vec()).collect());
        self
    }

    #[must_use]
    pub fn lock_time(mut self, lock_time: u32) -> Self {
        self.lock_time = lock_time;
        self
    }

    /// Serialised, with witnesses if there are any.
    pub fn bytes(&self) -> Vec<u8> {
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

    pub fn build(&self) -> Transaction {
        let encoding = if self.inputs.is_empty() { Encoding::Legacy } else { Encoding::Segwit };
        Transaction::parse(self.bytes(), encoding).expect("the builder writes what parses")
    }
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
    let header = Header {
        version: 4,
        prev_block: BlockHash::ZERO,
        merkle_root: [0; 32],
        time: 1_600_000_000,
        bits: 0x207f_ffff,
        nonce: 0,
    };
    Block::parse(block_bytes(header, &txs), encoding).expect("a test block parses")
}

pub fn txids(block: &Block) -> Vec<Txid> {
    block.txs().map(|tx| tx.txid()).collect()
}

pub fn wtxids(block: &Block) -> Vec<Wtxid> {
    block.txs().map(|tx| tx.wtxid()).collect()
}
