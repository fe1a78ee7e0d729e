//! A block prepared for sending by a peer.

use std::collections::HashMap;

use assay_wire::p2p::{BlockTxs, CompactBlock, Prefilled, ShortId, ShortIdKey};
use assay_wire::{Block, BlockHash, Encoding, Header, Txid, Wtxid};

use crate::p2p::Hash;

/// A block with positions and ids of its transactions.
pub(crate) struct Ready {
    block: Block,
    pub(crate) hash: BlockHash,
    /// Ids in announcements: wtxids on chains with witnesses (BIP339), otherwise txids.
    names: Vec<Wtxid>,
    by_name: HashMap<Hash, usize>,
}

impl Ready {
    /// Parses the transactions; `None` if the block is malformed.
    pub(crate) fn new(raw: Vec<u8>, is_cash: bool) -> Option<Self> {
        let block = Block::parse(raw, Encoding::Segwit).ok()?;
        let all = 0..block.tx_count();
        let txids = block.txids(all.clone());
        let wtxids = block.wtxids(all, &txids);
        let mut by_name = HashMap::with_capacity(2 * txids.len());
        for (at, (txid, wtxid)) in txids.iter().zip(&wtxids).enumerate() {
            by_name.insert(txid.0, at);
            by_name.insert(wtxid.0, at);
        }
        let names = if is_cash { txids.iter().map(|txid| Wtxid(txid.0)).collect() } else { wtxids };
        Some(Self { hash: block.hash(), block, names, by_name })
    }

    pub(crate) fn header(&self) -> Header {
        *self.block.header()
    }

    /// The serialized block.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.block.bytes()
    }

    pub(crate) fn tx_count(&self) -> usize {
        self.names.len()
    }

    /// Position of a transaction in the block, by txid or wtxid.
    pub(crate) fn find(&self, name: &Hash) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    /// The serialized transaction at a position.
    pub(crate) fn tx(&self, at: usize) -> &[u8] {
        self.block.tx(at).raw()
    }

    /// Txid of every output that a transaction spends.
    pub(crate) fn parents(&self, at: usize) -> impl Iterator<Item = Txid> {
        self.block.tx(at).inputs().map(|input| input.prevout.txid)
    }

    /// Id in announcements.
    pub(crate) fn name(&self, at: usize) -> Hash {
        self.names[at].0
    }

    /// Payload of the compact block (BIP152); the `prefilled` transactions (ascending) are included in full.
    pub(crate) fn compact(&self, nonce: u64, prefilled: &[usize]) -> Vec<u8> {
        let header = self.header();
        let key = ShortIdKey::new(&header, nonce);
        let is_short = |at: &usize| prefilled.binary_search(at).is_err();
        let short_ids: Vec<ShortId> =
            (0..self.tx_count()).filter(is_short).map(|at| key.short_id(&self.names[at])).collect();
        let whole = |at: &usize| Prefilled { index: *at as u32, raw: self.tx(*at) };
        let prefilled = prefilled.iter().map(whole).collect();
        let mut payload = Vec::new();
        CompactBlock { header, nonce, short_ids: short_ids[..].into(), prefilled }
            .encode(&mut payload);
        payload
    }

    /// Payload of the transactions that a compact block lacks.
    pub(crate) fn missing(&self, indexes: &[u32]) -> Vec<u8> {
        let txs = indexes.iter().map(|at| self.tx(*at as usize)).collect();
        let mut payload = Vec::new();
        BlockTxs { block: self.hash, txs }.encode(&mut payload);
        payload
    }
}

#[cfg(test)]
mod tests {
    use assay_wire::p2p::COMPACT_TXS_MAX;

    use super::*;
    use crate::p2p::GENESIS;
    use crate::p2p::synthetic::{BLOCK_VERSION, block, coinbase};

    fn ready(count: u32) -> Ready {
        let txs: Vec<Vec<u8>> = (0..count).map(|at| coinbase(1000 + at, 1)).collect();
        let txids = vec![[0; 32]; txs.len()];
        let raw = block(BLOCK_VERSION, GENESIS, 9, txids, txs.iter().map(|tx| &tx[..]));
        Ready::new(raw, false).unwrap()
    }

    #[test]
    fn short_ids_or_prefilled() {
        let ready = ready(5);
        let payload = ready.compact(5, &[0, 3]);
        let compact = CompactBlock::parse(&payload, Encoding::Segwit, COMPACT_TXS_MAX).unwrap();
        assert!(compact.is_whole() && compact.header == ready.header());
        let key = ShortIdKey::new(&compact.header, 5);
        let names = [1, 2, 4].map(|at| key.short_id(&Wtxid(ready.name(at))));
        assert!(compact.short_ids.iter().eq(names));
        let whole = [0, 3].map(|at| Prefilled { index: at, raw: ready.tx(at as usize) });
        assert_eq!(compact.prefilled, whole);
    }

    #[test]
    fn serves_requested_transactions() {
        let ready = ready(5);
        let payload = ready.missing(&[1, 4]);
        let given = BlockTxs::parse(&payload, Encoding::Segwit).unwrap();
        assert_eq!((given.block, given.txs), (ready.hash, vec![ready.tx(1), ready.tx(4)]));
    }
}
