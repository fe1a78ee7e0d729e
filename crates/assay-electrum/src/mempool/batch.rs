//! Mempool changes, preprocessed without a lock.

use std::collections::{HashMap, VecDeque};

use assay_wire::Txid;
use rayon::prelude::*;

use crate::chain::{MempoolChange, MempoolChanges, MempoolTx};
use crate::index::{ScriptHash, is_unspendable};

/// Transactions per hashing task: shorter lists do not justify a second thread.
const PARALLEL_MIN: usize = 256;

/// Net effect of a list of changes, with scripts already hashed.
///
/// Only the last change of each transaction matters: a transaction added and removed within the list is absent.
#[derive(Debug, Default)]
pub struct Batch {
    pub(super) from_scratch: bool,
    /// Consumed from the front.
    pub(super) added: VecDeque<Incoming>,
    pub(super) removed: Vec<Txid>,
}

/// A new transaction and its effect on scripts.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) tx: MempoolTx,
    /// Scripts that it pays to or spends from, without duplicates, with the change of their balance.
    pub(super) touches: Vec<(ScriptHash, i64)>,
}

impl Batch {
    pub fn new(changes: MempoolChanges) -> Self {
        let mut last: HashMap<Txid, usize> = HashMap::with_capacity(changes.changes.len());
        for (at, change) in changes.changes.iter().enumerate() {
            last.insert(txid(change), at);
        }
        let mut added = Vec::new();
        let mut removed = Vec::new();
        for (at, change) in changes.changes.into_iter().enumerate() {
            if last.get(&txid(&change)) != Some(&at) {
                continue;
            }
            match change {
                MempoolChange::Added(tx) => added.push(tx),
                MempoolChange::Removed(txid) => removed.push(txid),
            }
        }
        let added = if added.len() < PARALLEL_MIN {
            added.into_iter().map(Incoming::new).collect()
        } else {
            added.into_par_iter().with_min_len(PARALLEL_MIN).map(Incoming::new).collect()
        };
        Self { from_scratch: changes.from_scratch, added, removed }
    }

    /// True if this batch replaces the whole mempool.
    pub fn is_from_scratch(&self) -> bool {
        self.from_scratch
    }

    pub fn is_empty(&self) -> bool {
        !self.from_scratch && self.added.is_empty() && self.removed.is_empty()
    }
}

fn txid(change: &MempoolChange) -> Txid {
    match change {
        MempoolChange::Added(tx) => tx.txid,
        MempoolChange::Removed(txid) => *txid,
    }
}

impl Incoming {
    fn new(tx: MempoolTx) -> Self {
        let view = tx.tx.view();
        let mut touches = Vec::with_capacity(view.output_count() + tx.spent.len());
        let spendable = view.outputs().filter(|output| !is_unspendable(output.script_pubkey));
        touches
            .extend(spendable.map(|output| (ScriptHash::of(output.script_pubkey), output.value)));
        touches
            .extend(tx.spent.iter().map(|coin| (ScriptHash::of(&coin.script_pubkey), -coin.value)));
        touches.sort_unstable_by_key(|(script, _)| *script);
        touches.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        touches.shrink_to_fit();
        Self { tx, touches }
    }
}
