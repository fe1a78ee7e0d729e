//! Blocks of benchmarks: a coinbase, and regtest's proof of work.

use assay_consensus::commitment::{WITNESS_COMMITMENT_HEADER, height_prefix, witness_commitment};
use assay_consensus::params::ChainParams;
use assay_hash::{merkle_root, sha256d};
use assay_wire::{BlockHash, Header, OutPoint, Transaction, TxBuilder, TxOut, Txid, Wtxid, encode};

/// A coinbase without and with its witness; equal without a witness commitment.
#[derive(Clone, Debug)]
pub(crate) struct Coinbase {
    /// Serialization hashed to the txid.
    pub(crate) base: Vec<u8>,
    /// Serialization in the block.
    pub(crate) full: Vec<u8>,
}

impl Coinbase {
    /// For a block at `height`, with `tail` after the height in its script; pays the given satoshi to an output script. With
    /// wtxids, whose first is that of the coinbase itself, it commits to the witnesses.
    pub(crate) fn new(
        height: u32,
        tail: &[u8],
        (value_sat, script_pubkey): (i64, &[u8]),
        wtxids: Option<&[Wtxid]>,
    ) -> Self {
        const RESERVED: [u8; 32] = [0; 32];
        // A non-final sequence number and a lock time of the previous height, which BIP54 requires; current rules ignore both.
        let mut tx = TxBuilder::new(2)
            .spend(OutPoint::NULL, &[&height_prefix(height)[..], tail].concat(), u32::MAX - 1)
            .output(value_sat, script_pubkey)
            .lock_time(height.saturating_sub(1));
        if let Some(wtxids) = wtxids {
            let commitment = witness_commitment(wtxids, &RESERVED);
            tx = tx.output(0, &[&WITNESS_COMMITMENT_HEADER[..], &commitment].concat());
        }
        let base = tx.bytes();
        let full = wtxids.map_or_else(|| base.clone(), |_| tx.witness(&[&RESERVED]).bytes());
        Self { base, full }
    }

    pub(crate) fn txid(&self) -> Txid {
        Txid(sha256d(&self.base))
    }
}

/// Spent outputs in the file format of `assay block verify --prevouts`.
pub(crate) fn prevouts<'a>(spent: impl IntoIterator<Item = TxOut<'a>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for TxOut { value, script_pubkey } in spent {
        bytes.extend_from_slice(&value.to_le_bytes());
        bytes.extend_from_slice(&(script_pubkey.len() as u32).to_le_bytes());
        bytes.extend_from_slice(script_pubkey);
    }
    bytes
}

/// Tip of a chain, to build on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tip {
    pub(crate) height: u32,
    pub(crate) hash: BlockHash,
    pub(crate) time: u32,
}

impl Tip {
    pub(crate) fn genesis(params: &ChainParams) -> Self {
        Self { height: 0, hash: params.genesis_hash, time: params.genesis.time }
    }

    /// The next block, `seconds` later.
    pub(crate) fn next<T: AsRef<[u8]>>(
        self,
        seconds: u32,
        coinbase: &Coinbase,
        txs: &[T],
        txids: impl IntoIterator<Item = [u8; 32]>,
    ) -> (Self, Vec<u8>) {
        let time = self.time + seconds;
        let (hash, raw) = assemble((self.hash, time), coinbase, txs, txids);
        (Self { height: self.height + 1, hash, time }, raw)
    }

    /// The same with parsed transactions.
    pub(crate) fn next_of(
        self,
        seconds: u32,
        coinbase: &Coinbase,
        txs: &[Transaction],
    ) -> (Self, Vec<u8>) {
        let raws: Vec<&[u8]> = txs.iter().map(Transaction::bytes).collect();
        self.next(seconds, coinbase, &raws, txs.iter().map(|tx| tx.view().txid().0))
    }
}

/// A regtest block with proof of work, and its hash: transactions as serialised, and their txids.
fn assemble<T: AsRef<[u8]>>(
    (prev_block, time): (BlockHash, u32),
    coinbase: &Coinbase,
    txs: &[T],
    txids: impl IntoIterator<Item = [u8; 32]>,
) -> (BlockHash, Vec<u8>) {
    let txids = std::iter::once(coinbase.txid().0).chain(txids).collect();
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
    let mut raw = header.to_bytes().to_vec();
    encode::compact_size(&mut raw, 1 + txs.len() as u64);
    raw.extend_from_slice(&coinbase.full);
    for tx in txs {
        raw.extend_from_slice(tx.as_ref());
    }
    (header.hash(), raw)
}
