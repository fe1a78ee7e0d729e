//! A block prepared for sending by a peer.

use std::collections::HashMap;
use std::ops::Range;

use crate::wire::tx::{BlockTx, transactions};
use crate::wire::{HEADER_BYTES, Hash, RawHeader, compact, double_sha256};

/// A block with positions and ids of its transactions.
pub(crate) struct Ready {
    pub(crate) raw: Vec<u8>,
    pub(crate) hash: Hash,
    pub(crate) txs: Vec<BlockTx>,
    by_name: HashMap<Hash, usize>,
    is_cash: bool,
}

impl Ready {
    /// Parses the transactions; `None` if the block is malformed.
    pub(crate) fn new(raw: Vec<u8>, is_cash: bool) -> Option<Self> {
        let txs = transactions(&raw)?;
        let hash = double_sha256(&raw[..HEADER_BYTES]);
        let mut by_name = HashMap::with_capacity(2 * txs.len());
        for (at, tx) in txs.iter().enumerate() {
            by_name.insert(tx.txid, at);
            by_name.insert(tx.wtxid, at);
        }
        Some(Self { raw, hash, txs, by_name, is_cash })
    }

    pub(crate) fn header(&self) -> RawHeader {
        *self.raw.first_chunk().expect("a block begins with its header")
    }

    /// Position of a transaction in the block, by txid or wtxid.
    pub(crate) fn find(&self, name: &Hash) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(crate) fn tx(&self, at: usize) -> &[u8] {
        let Range { start, end } = self.txs[at].place;
        &self.raw[start..end]
    }

    /// Id in announcements: the wtxid on chains with witnesses (BIP339).
    pub(crate) fn name(&self, at: usize) -> Hash {
        if self.is_cash { self.txs[at].txid } else { self.txs[at].wtxid }
    }

    /// The compact block; the coinbase and the `prefilled` transactions are included in full.
    pub(crate) fn compact(&self, nonce: u64, prefilled: &[usize]) -> Vec<u8> {
        let name = |tx: &BlockTx| if self.is_cash { tx.txid } else { tx.wtxid };
        compact::compact_block(&self.raw, &self.txs, name, nonce, prefilled)
    }
}
