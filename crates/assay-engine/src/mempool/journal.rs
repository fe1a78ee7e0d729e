//! The mempool's changes, numbered, as far back as there is room: for those who follow it.

use std::collections::VecDeque;
use std::sync::Arc;

use assay_store::CoinStore;
use assay_wire::{Coin, Transaction, Txid};

use super::{Mempool, UNCONFIRMED_HEIGHT};
use crate::error::EngineError;
use crate::news::Signal;
use crate::types::Tip;

#[derive(Clone, Debug)]
pub struct MempoolDelta {
    /// The tip at that moment.
    pub tip: Tip,
    /// Number of the last change.
    pub sequence: u64,
    /// Whether `added` begins with an empty mempool.
    pub from_scratch: bool,
    /// What has left, possibly to come back with `added`.
    pub removed: Vec<Txid>,
    /// What has come and is still there, parents before children.
    pub added: Vec<UnconfirmedTx>,
}

/// An unconfirmed transaction with what it spends.
#[derive(Clone, Debug)]
pub struct UnconfirmedTx {
    pub txid: Txid,
    pub tx: Arc<Transaction>,
    /// What it spends, input by input.
    pub spent: Vec<Coin>,
    /// Its fee in satoshi.
    pub fee_sat: i64,
    /// Virtual size in bytes (BIP141); plain size where there are no witnesses.
    pub vsize: u32,
}

/// What has happened in the mempool, as far back as there is room.
pub(crate) struct Journal {
    signal: Arc<Signal>,
    /// Number of the first change kept; changes count from 1.
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

    /// The changes after number `since`; `None` when some of them have been forgotten.
    fn since(&self, since: u64) -> Option<impl Iterator<Item = (Change, Txid)> + '_> {
        let skipped = (since + 1).checked_sub(self.first)?;
        Some(self.changes.iter().skip(usize::try_from(skipped).ok()?).copied())
    }
}

impl Mempool {
    /// What has happened since change number `since`; `None` asks for everything. `coins` are those of the chain at `tip`.
    ///
    /// # Errors
    /// When a coin that a transaction spends cannot be read.
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

/// Changes that the journal keeps: 35 MB.
const CHANGES_MAX: usize = 1 << 20;
