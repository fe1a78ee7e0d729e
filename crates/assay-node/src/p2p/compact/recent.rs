//! Latest blocks in the forms that peers request.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use assay_engine::{Block, FreshBlock, RelayId};
use assay_wire::p2p::{CompactBlock, Prefilled, ShortIdKey};
use assay_wire::{BlockHash, Header, Transaction, Txid, Wtxid};

/// Block at or on top of the tip.
pub(in super::super) struct Recent {
    block: FreshBlock,
    /// Indexes of transactions that were not in the mempool.
    lacked: Vec<u32>,
    nonce: u64,
    payload: OnceLock<Vec<u8>>,
    places: OnceLock<HashMap<[u8; 32], u32>>,
}

impl Recent {
    pub(super) fn new(block: FreshBlock, lacked: Vec<u32>, nonce: u64) -> Self {
        Self { block, lacked, nonce, payload: OnceLock::new(), places: OnceLock::new() }
    }

    pub(in super::super) fn hash(&self) -> &BlockHash {
        self.block.hash()
    }

    pub(in super::super) fn block(&self) -> &Block {
        self.block.block()
    }

    pub(in super::super) fn header(&self) -> &Header {
        self.block().header()
    }

    /// Payload of the `cmpctblock` message.
    pub(in super::super) fn payload(&self) -> &[u8] {
        self.payload.get_or_init(|| {
            compact(self.block(), |place| self.block.wtxid(place), &self.lacked, self.nonce)
        })
    }

    pub(in super::super) fn tx(&self, id: &RelayId) -> Option<Arc<Transaction>> {
        let places = self.places.get_or_init(|| {
            let places = 0..self.block().tx_count();
            let names = |place| [self.block.txid(place).0, self.block.wtxid(place).0];
            places.flat_map(|place| names(place).map(|name| (name, place as u32))).collect()
        });
        let place = *places.get(&id.hash())? as usize;
        let is_named = match id {
            RelayId::Txid(txid) => self.block.txid(place) == *txid,
            RelayId::Wtxid(wtxid) => self.block.wtxid(place) == *wtxid,
        };
        is_named.then(|| Arc::new(self.block().tx(place).to_owned_transaction()))
    }
}

/// Payload of the `cmpctblock` message of any block.
pub(in super::super) fn compact_of(block: &Block, nonce: u64) -> Vec<u8> {
    let txids: Vec<Txid> = block.txids(0..block.tx_count());
    let wtxids = block.wtxids(0..block.tx_count(), &txids);
    compact(block, |place| wtxids[place], &[], nonce)
}

/// Prefills the coinbase, and of the transactions that others probably lack as many as fit into the same round trip.
fn compact(block: &Block, wtxid: impl Fn(usize) -> Wtxid, lacked: &[u32], nonce: u64) -> Vec<u8> {
    let key = ShortIdKey::new(block.header(), nonce);
    let mut room = PREFILLED_BYTES_MAX;
    let mut chosen = vec![0];
    for place in lacked.iter().filter(|place| **place != 0) {
        let size = block.tx(*place as usize).total_size();
        if size <= room {
            room -= size;
            chosen.push(*place);
        }
    }
    let skipped: HashSet<u32> = chosen.iter().copied().collect();
    let named = (0..block.tx_count()).filter(|place| !skipped.contains(&(*place as u32)));
    let short_ids: Vec<_> = named.map(|place| key.short_id(&wtxid(place))).collect();
    let prefilled = chosen.iter().map(|index| {
        let raw = block.tx(*index as usize).raw();
        Prefilled { index: *index, raw }
    });
    let compact = CompactBlock {
        header: *block.header(),
        nonce,
        short_ids: short_ids[..].into(),
        prefilled: prefilled.collect(),
    };
    let mut payload = Vec::new();
    compact.encode(&mut payload);
    payload
}

/// Prefilled bytes without the coinbase: usually they and the short txids fit TCP's initial window of ten segments (RFC 6928).
const PREFILLED_BYTES_MAX: usize = 8_000;
