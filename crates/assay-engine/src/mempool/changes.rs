//! Changes of the mempool under one lock, numbered when they are final.
//!
//! Transactions enter before their scripts are verified and are removed after a failure, and trials leave no trace. So a
//! transaction added and removed under one lock was never visible, and has no number (Core's `CTxMemPool::m_sequence_number`).

use std::collections::HashMap;
use std::sync::Arc;

use assay_wire::Txid;

use super::Mempool;
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
}

impl Mempool {
    /// Number of changes so far, including changes by blocks.
    pub(crate) fn change_count(&self) -> u64 {
        self.changes.count
    }

    /// Numbers the pending changes and reports them to event queue and journal.
    pub(crate) fn settle_changes(&mut self) {
        if self.changes.pending.is_empty() {
            return;
        }
        self.changes.added.clear();
        let pending = std::mem::take(&mut self.changes.pending);
        for (change, txid) in pending.into_iter().flatten() {
            self.changes.count += 1;
            let sequence = self.changes.count;
            let Some(events) = &self.changes.events else { continue };
            match (change, self.get(&txid)) {
                (Change::Removed, _) => events.push(Event::Removed { txid, sequence }),
                (Change::Added, Some(entry)) => {
                    events.push(Event::Added { tx: Arc::clone(&entry.tx), txid, sequence });
                }
                (Change::Added, None) | (Change::Mined, _) => {}
            }
        }
    }
}
