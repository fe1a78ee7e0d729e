//! Numbered changes of the mempool, with a limited history, for followers.

use std::collections::VecDeque;
use std::sync::Arc;

use assay_wire::{Coin, Transaction, Txid};

use super::changes::Change;
use crate::notifier::Signal;
use crate::types::Tip;

#[derive(Clone, Debug)]
pub struct MempoolDelta {
    /// The tip at that time.
    pub tip: Tip,
    /// Number of the last change.
    pub sequence: u64,
    /// True if `added` is the complete mempool.
    pub from_scratch: bool,
    /// Removed transactions, which may reappear in `added`.
    pub removed: Vec<Txid>,
    /// Added transactions that are still present, parents before children.
    pub added: Vec<UnconfirmedTx>,
}

/// An unconfirmed transaction with its spent coins.
#[derive(Clone, Debug)]
pub struct UnconfirmedTx {
    pub txid: Txid,
    pub tx: Arc<Transaction>,
    /// Spent coins, input by input.
    pub spent: Vec<Coin>,
    pub fee_sat: i64,
    /// Virtual size in bytes (BIP141); plain size without witnesses.
    pub vsize: u32,
}

/// Recent changes of the mempool.
pub(crate) struct Journal {
    signal: Arc<Signal>,
    /// Number of the first change kept; numbers start at 1.
    first: u64,
    changes: VecDeque<(Change, Txid)>,
}

impl Journal {
    pub(super) fn new(signal: Arc<Signal>) -> Self {
        Self { signal, first: 1, changes: VecDeque::new() }
    }

    pub(super) fn note(&mut self, change: Change, txid: Txid) {
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
            self.first += 1;
        }
        self.changes.push_back((change, txid));
        self.signal.mempool_changed(self.last());
    }

    /// Number of the last change.
    pub(super) fn last(&self) -> u64 {
        self.first + self.changes.len() as u64 - 1
    }

    /// The changes after number `since`; `None` if some of them are dropped.
    pub(super) fn since(&self, since: u64) -> Option<impl Iterator<Item = (Change, Txid)> + '_> {
        let skipped = (since + 1).checked_sub(self.first)?;
        Some(self.changes.iter().skip(usize::try_from(skipped).ok()?).copied())
    }
}

/// Limit of changes in the journal: 35 MB.
const CHANGES_MAX: usize = 1 << 20;
