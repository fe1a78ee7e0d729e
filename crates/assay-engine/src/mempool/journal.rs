//! Numbered changes of the mempool, with a limited history, for followers.

use std::collections::VecDeque;
use std::sync::Arc;

use assay_store::CoinStore;
use assay_wire::{Coin, Transaction, Txid};

use super::{Mempool, UNCONFIRMED_HEIGHT};
use crate::error::EngineError;
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Removed,
}

impl Journal {
    pub(crate) fn new(signal: Arc<Signal>) -> Self {
        Self { signal, first: 1, changes: VecDeque::new() }
    }

    pub(crate) fn note(&mut self, change: Change, txid: Txid) {
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
            self.first += 1;
        }
        self.changes.push_back((change, txid));
        self.signal.mempool_changed(self.last());
    }

    fn last(&self) -> u64 {
        self.first + self.changes.len() as u64 - 1
    }

    /// The changes after number `since`; `None` if some of them are dropped.
    fn since(&self, since: u64) -> Option<impl Iterator<Item = (Change, Txid)> + '_> {
        let skipped = (since + 1).checked_sub(self.first)?;
        Some(self.changes.iter().skip(usize::try_from(skipped).ok()?).copied())
    }
}

impl Mempool {
    /// Changes since number `since`; everything for `None`. `coins` are those of the chain at `tip`.
    ///
    /// # Errors
    /// A spent coin of a transaction cannot be read.
    pub(crate) fn changes_since(
        &self,
        since: Option<u64>,
        tip: Tip,
        coins: &CoinStore,
    ) -> Result<MempoolDelta, EngineError> {
        let journal = self.journal.as_ref();
        let changes = since.and_then(|since| journal?.since(since));
        let from_scratch = changes.is_none();
        let (mut removed, mut txids) = (Vec::new(), Vec::new());
        match changes {
            None => txids.extend(self.iter().map(|(txid, _)| *txid)),
            Some(changes) => {
                for (change, txid) in changes {
                    match change {
                        Change::Added => txids.push(txid),
                        Change::Removed => removed.push(txid),
                    }
                }
            }
        }
        let mut entries: Vec<_> =
            txids.iter().filter_map(|txid| Some((*txid, self.get(txid)?))).collect();
        entries.sort_unstable_by_key(|(_, entry)| entry.order);
        entries.dedup_by_key(|(_, entry)| entry.order);
        let mut added = Vec::with_capacity(entries.len());
        for (txid, entry) in entries {
            let mut spent = Vec::with_capacity(entry.tx.view().input_count());
            for input in entry.tx.view().inputs() {
                let coin = match self.output(&input.prevout, UNCONFIRMED_HEIGHT) {
                    Some(coin) => Some(coin),
                    None => coins.get(&input.prevout)?,
                };
                let outpoint = input.prevout;
                spent.push(coin.ok_or(EngineError::NoCoin { outpoint })?);
            }
            let (fee_sat, vsize) = (entry.fee_sat, entry.vsize);
            added.push(UnconfirmedTx { txid, tx: Arc::clone(&entry.tx), spent, fee_sat, vsize });
        }
        Ok(MempoolDelta {
            tip,
            sequence: journal.map_or(0, Journal::last),
            from_scratch,
            removed,
            added,
        })
    }
}

/// Limit of changes in the journal: 35 MB.
const CHANGES_MAX: usize = 1 << 20;
