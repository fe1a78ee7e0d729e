//! Transactions of disconnected blocks before their return to the mempool, in bounded memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use assay_wire::{OutPoint, Transaction, Txid, Wtxid};

use super::entry::usage_bytes;
use crate::prepared::Prepared;

/// A transaction that was confirmed.
pub(crate) struct Disconnected {
    pub(crate) tx: Arc<Transaction>,
    pub(crate) txid: Txid,
    pub(crate) wtxid: Wtxid,
}

impl Disconnected {
    /// Its outputs, spendable or not.
    pub(crate) fn outpoints(&self) -> impl Iterator<Item = OutPoint> + use<> {
        let txid = self.txid;
        (0..self.tx.view().output_count() as u32).map(move |vout| OutPoint { txid, vout })
    }
}

/// The transactions of disconnected blocks that no other block has confirmed since, coinbases included (Core
/// `kernel/disconnected_transactions.h`).
///
/// If there are too many, those confirmed last are dropped first, so that the parents of the others are kept.
pub(crate) struct DisconnectedTxs {
    bytes_max: u64,
    bytes: u64,
    /// By order of disconnection: the first was confirmed last.
    queue: BTreeMap<u64, Disconnected>,
    places: HashMap<Txid, u64>,
    next_place: u64,
}

impl DisconnectedTxs {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, bytes: 0, queue: BTreeMap::new(), places: HashMap::new(), next_place: 0 }
    }

    /// Adds a block that was disconnected after all blocks above it. Returns the transactions dropped because of the limit.
    pub(crate) fn add_block(&mut self, block: &Prepared, is_cash: bool) -> Vec<Disconnected> {
        self.add_in_order(block, &topological_order(block, is_cash))
    }

    /// [`Self::add_block`]; `order` lists the transactions without the coinbase, parents before children.
    fn add_in_order(&mut self, block: &Prepared, order: &[usize]) -> Vec<Disconnected> {
        for tx_index in order.iter().rev().copied().chain([0]) {
            let tx = Arc::new(block.block.tx(tx_index).to_owned_transaction());
            let (txid, wtxid) = (block.txids[tx_index], block.wtxid(tx_index));
            self.remove(&txid);
            self.bytes += u64::from(usage_bytes(&tx));
            self.places.insert(txid, self.next_place);
            self.queue.insert(self.next_place, Disconnected { tx, txid, wtxid });
            self.next_place += 1;
        }
        let mut dropped = Vec::new();
        while self.bytes > self.bytes_max {
            let Some((_, latest)) = self.queue.pop_first() else { break };
            self.places.remove(&latest.txid);
            self.bytes -= u64::from(usage_bytes(&latest.tx));
            dropped.push(latest);
        }
        dropped
    }

    /// Removes transactions that a block has confirmed again.
    pub(crate) fn remove_block(&mut self, txids: &[Txid]) {
        if !self.queue.is_empty() {
            for txid in txids {
                self.remove(txid);
            }
        }
    }

    fn remove(&mut self, txid: &Txid) {
        let place = self.places.remove(txid);
        if let Some(gone) = place.and_then(|place| self.queue.remove(&place)) {
            self.bytes -= u64::from(usage_bytes(&gone.tx));
        }
    }

    /// The remaining transactions in order of confirmation.
    pub(crate) fn into_confirmation_order(self) -> impl Iterator<Item = Disconnected> {
        self.queue.into_values().rev()
    }
}

/// Indices of the transactions of a block, without the coinbase, parents before children; Bitcoin Cash orders blocks by txid
/// (`is_cash`).
fn topological_order(block: &Prepared, is_cash: bool) -> Vec<usize> {
    let count = block.block.tx_count();
    if !is_cash {
        return (1..count).collect();
    }
    let index_of: HashMap<&Txid, usize> =
        block.txids.iter().enumerate().skip(1).map(|(index, txid)| (txid, index)).collect();
    let mut order = Vec::with_capacity(count);
    let mut is_placed = vec![false; count];
    for start in 1..count {
        let mut open = vec![start];
        while let Some(index) = open.last().copied() {
            let parent = block
                .block
                .tx(index)
                .inputs()
                .filter_map(|input| index_of.get(&input.prevout.txid).copied())
                .find(|parent| !is_placed[*parent]);
            match parent {
                Some(parent) if !is_placed[index] => open.push(parent),
                _ => {
                    open.pop();
                    if !std::mem::replace(&mut is_placed[index], true) {
                        order.push(index);
                    }
                }
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_consensus::params::ChainParams;
    use assay_wire::Block;

    /// A block that only defines transactions: a coinbase and `count` more, with ids from `first` on.
    fn block(first: u8, count: u8) -> Prepared {
        let params = ChainParams::by_name("regtest").unwrap();
        let genesis = params.genesis_block();
        let coinbase = &genesis[81..];
        let mut raw = genesis[..80].to_vec();
        raw.push(count + 1);
        for _ in 0..=count {
            raw.extend_from_slice(coinbase);
        }
        let block = Block::parse(raw, params.encoding).unwrap();
        let txids = (first..=first + count).map(|id| Txid([id; 32])).collect();
        let hash = block.hash();
        Prepared { txids, ..Prepared::new(block, hash) }
    }

    fn ids(txs: impl IntoIterator<Item = Disconnected>) -> Vec<u8> {
        txs.into_iter().map(|tx| tx.txid.0[0]).collect()
    }

    #[test]
    fn order_and_room() {
        let mut txs = DisconnectedTxs::new(u64::MAX);
        // The tip, then the block below it; in the lower one, 12 spends 13.
        assert!(txs.add_in_order(&block(20, 2), &[1, 2]).is_empty());
        assert!(txs.add_in_order(&block(10, 3), &[1, 3, 2]).is_empty());
        let each = txs.bytes / 7;
        txs.remove_block(&[Txid([21; 32]), Txid([99; 32])]);
        assert_eq!(txs.bytes, 6 * each);
        assert_eq!(ids(txs.into_confirmation_order()), [10, 11, 13, 12, 20, 22]);

        let mut txs = DisconnectedTxs::new(4 * each);
        assert!(txs.add_in_order(&block(20, 2), &[1, 2]).is_empty());
        assert_eq!(ids(txs.add_in_order(&block(10, 2), &[1, 2])), [22, 21]);
        assert_eq!(ids(txs.into_confirmation_order()), [10, 11, 12, 20]);
    }
}
