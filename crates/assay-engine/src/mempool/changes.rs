//! Changes of the mempool under one lock, numbered when they are final.
//!
//! Transactions enter before their scripts are verified and are removed after a failure, and trials leave no trace. So a
//! transaction added and removed under one lock was never visible, and has no number (Core's `CTxMemPool::m_sequence_number`).

use std::collections::HashMap;
use std::sync::Arc;

use assay_wire::{Transaction, Txid};

use crate::events::{Event, Events};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Removed,
    /// Confirmed by a block: it takes a number, and the event of the block includes it.
    Mined,
}

/// Changes without a number, and the last number.
#[derive(Default)]
pub(super) struct Changes {
    pending: Vec<Option<(Change, Txid)>>,
    /// Indices of the added transactions in `pending`.
    added: HashMap<Txid, usize>,
    /// Number of changes so far.
    count: u64,
    events: Option<Arc<Events>>,
}

impl Changes {
    pub(super) fn new(events: Option<Arc<Events>>) -> Self {
        Self { events, ..Self::default() }
    }

    pub(super) fn note(&mut self, change: Change, txid: Txid) {
        if change == Change::Added {
            self.added.insert(txid, self.pending.len());
        } else if let Some(place) = self.added.remove(&txid) {
            self.pending[place] = None;
            return;
        }
        self.pending.push(Some((change, txid)));
    }
    /// Number of changes so far, including changes by blocks.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Numbers the pending changes and reports them to the event queue; `tx_of` returns the transactions that are present.
    pub(super) fn settle(&mut self, tx_of: impl Fn(&Txid) -> Option<Arc<Transaction>>) {
        if self.pending.is_empty() {
            return;
        }
        self.added.clear();
        for (change, txid) in std::mem::take(&mut self.pending).into_iter().flatten() {
            self.count += 1;
            let sequence = self.count;
            let Some(events) = &self.events else { continue };
            match change {
                Change::Removed => events.push(Event::Removed { txid, sequence }),
                Change::Added => {
                    if let Some(tx) = tx_of(&txid) {
                        events.push(Event::Added { tx, txid, sequence });
                    }
                }
                Change::Mined => {}
            }
        }
    }
}
