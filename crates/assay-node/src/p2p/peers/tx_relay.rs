//! Transaction relay state of one peer.

use assay_engine::{RelayId, RelayTx};
use assay_wire::p2p::{Inventory, InventoryKind};
use assay_wire::{Block, Txid, Wtxid};

use crate::p2p::bloom::BloomFilter;
use crate::p2p::recent::Recent;

pub(crate) struct Relay {
    /// True for wtxid relay (BIP339).
    pub(in crate::p2p) names_wtxids: bool,
    pub(crate) is_wanted: bool,
    pub(in crate::p2p) known: Recent,
    pub(crate) to_send: Vec<Wtxid>,
    /// True after a mempool request (BIP35).
    pub(in crate::p2p) wants_all: bool,
    /// Next announcement, microseconds by the node's clock; 0 before the handshake is complete.
    pub(in crate::p2p) next_us: u64,
    /// Mempool sequence of the last announcement: the peer may fetch earlier entries.
    pub(in crate::p2p) announced_until: u64,
    /// Bloom filter, if set (BIP37).
    pub(in crate::p2p) filter: Option<BloomFilter>,
    pub(in crate::p2p) fee_filter_sent: Option<u64>,
    pub(in crate::p2p) next_fee_filter_us: u64,
}

impl Default for Relay {
    fn default() -> Self {
        Self {
            names_wtxids: false,
            is_wanted: false,
            known: Recent::new(KNOWN_MAX),
            to_send: Vec::new(),
            wants_all: false,
            next_us: 0,
            announced_until: 0,
            filter: None,
            fee_filter_sent: None,
            next_fee_filter_us: 0,
        }
    }
}

/// Matches of a block's transactions with a filter.
pub(in crate::p2p) struct Matches {
    pub(in crate::p2p) txids: Vec<Txid>,
    pub(in crate::p2p) matches: Vec<bool>,
}

impl Relay {
    /// Relay id of an inventory entry; `None` if the peer uses the other kind of id.
    pub(in crate::p2p) fn name(&self, entry: &Inventory) -> Option<RelayId> {
        match entry.kind {
            InventoryKind::WTX if self.names_wtxids => Some(RelayId::Wtxid(Wtxid(entry.hash))),
            InventoryKind::TX if !self.names_wtxids => Some(RelayId::Txid(Txid(entry.hash))),
            InventoryKind::WITNESS_TX => Some(RelayId::Txid(Txid(entry.hash))),
            _ => None,
        }
    }

    pub(in crate::p2p) fn entry(&self, tx: &RelayTx) -> Inventory {
        if self.names_wtxids {
            Inventory { kind: InventoryKind::WTX, hash: tx.wtxid.0 }
        } else {
            Inventory { kind: InventoryKind::TX, hash: tx.txid.0 }
        }
    }

    /// Mempool sequence up to which it may fetch; starts at 1 as in Core.
    pub(crate) fn sequence(&self) -> u64 {
        self.announced_until + 1
    }

    /// Sets or clears the filter and enables relay.
    pub(in crate::p2p) fn set_filter(&mut self, filter: Option<BloomFilter>) {
        self.filter = filter;
        self.is_wanted = true;
    }

    /// Adds an element to the filter; `false` without a filter.
    pub(in crate::p2p) fn add_to_filter(&mut self, data: &[u8]) -> bool {
        self.filter.as_mut().is_some_and(|filter| {
            filter.insert(data);
            true
        })
    }

    /// Matches each transaction of a block with the filter; `None` without one.
    pub(in crate::p2p) fn filter_block(&mut self, block: &Block, is_cash: bool) -> Option<Matches> {
        let filter = self.filter.as_mut()?;
        let txids: Vec<Txid> = block.txs().map(|tx| tx.txid()).collect();
        let matches = block.txs().zip(&txids);
        let matches = matches.map(|(tx, txid)| filter.matches_and_updates(tx, txid, is_cash));
        let matches = matches.collect();
        Some(Matches { txids, matches })
    }
}

/// Size of the filter of known transactions (Core `m_tx_inventory_known_filter`).
const KNOWN_MAX: usize = 50_000;
