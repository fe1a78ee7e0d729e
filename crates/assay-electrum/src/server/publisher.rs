//! Publishes new state to clients and triggers notifications.

use std::collections::HashSet;
use std::sync::Arc;

use assay_wire::{OutPoint, Transaction, Tx, Txid};
use parking_lot::Mutex;

use super::snapshot::{Published, Snapshot};
use super::subscriptions::{Changes, Subscriptions};
use super::watched::{Item, Watched};
use crate::chain::{self, MempoolChange, MempoolChanges};
use crate::follow::{Listener, Touched, Update};
use crate::index::{QueryError, ScriptHash, View};
use crate::mempool::{Affected, Batch};

/// Publishing interface for the thread that follows the chain: the follower's [`Listener`].
///
/// One call of [`Publisher::publish`] is one atomic change: a transaction is always in exactly one of mempool and blocks.
pub struct Publisher {
    published: Arc<Published>,
    subscriptions: Arc<Subscriptions>,
    /// Received but unpublished changes. Its lock also serialises callers, although there should be only one.
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    from_scratch: bool,
    changes: Vec<MempoolChange>,
    items: HashSet<Item>,
    reorganised: bool,
    /// New subscriptions at the previous call: blocks may be searched for watched items while others are added.
    new: Vec<Item>,
}

/// Collects watched items that a mempool change affects.
struct Collector<'a> {
    watched: &'a Watched,
    changes: &'a mut Changes,
    found: Vec<OutPoint>,
}

impl Affected for Collector<'_> {
    fn script(&mut self, script: &ScriptHash) {
        if self.watched.is_watched(script) {
            self.changes.items.insert(Item::Script(*script));
        }
    }

    fn transaction(&mut self, txid: &Txid, tx: &Transaction) {
        self.watched.add_outputs(txid, &tx.view(), &mut self.found);
        self.changes.items.extend(self.found.drain(..).map(Item::Outpoint));
    }
}

impl Publisher {
    pub(super) fn new(published: Arc<Published>, subscriptions: Arc<Subscriptions>) -> Self {
        Self { published, subscriptions, pending: Mutex::default() }
    }

    pub(super) fn watched(&self) -> &Watched {
        &self.subscriptions.watched
    }

    /// Publishes `view` and the mempool after `mempool`, and notifies subscribers of changes.
    ///
    /// - `mempool`: the changes up to the state of `view`, or `None` if unknown: then transactions of the new blocks leave the
    ///   mempool, and the rest stays. A view without known changes that lost blocks is not published: the transactions of those
    ///   blocks would be missing from both.
    /// - `touched`: scripts and outputs with transactions in blocks connected since the last call; unwatched scripts are ignored.
    /// - `reorganised`: true if blocks were disconnected since the last call. Every watched item is looked up again then.
    ///
    /// Another thread notifies clients; this one returns at once. A view without blocks changes nothing.
    ///
    /// # Errors
    /// If headers or txids of new blocks cannot be read. Nothing has changed then, and the next call retries.
    pub fn publish(
        &self,
        view: View,
        mempool: Option<MempoolChanges>,
        touched: Touched,
        reorganised: bool,
    ) -> Result<(), QueryError> {
        let mut pending = self.pending.lock();
        let watched = self.watched();
        let scripts = touched.scripts.into_iter().filter(|script| watched.is_watched(script));
        pending.items.extend(scripts.map(Item::Script));
        pending.items.extend(touched.outpoints.into_iter().map(Item::Outpoint));
        pending.reorganised |= reorganised;
        let is_whole = mempool.is_some();
        let number = mempool.as_ref().map(|changes| changes.moment.mempool);
        if let Some(mempool) = mempool {
            if mempool.from_scratch {
                pending.from_scratch = true;
                pending.changes.clear();
            }
            pending.changes.extend(mempool.changes);
        }
        let Some(tip) = view.tip() else { return Ok(()) };
        let before = self.published.snapshot();
        if !is_whole && pending.reorganised && before.is_some() {
            return Ok(());
        }
        let Some(header) = view.header(tip.height)? else { return Ok(()) };
        if !is_whole && let Some(before) = &before {
            let confirmed = self.confirmed(&view, before.tip.height + 1, tip.height)?;
            pending.changes.extend(confirmed.into_iter().map(MempoolChange::Removed));
        }
        let reorganisations = before.as_ref().map_or(0, |snapshot| snapshot.reorganisations);
        let pending = &mut *pending;
        let snapshot = Arc::new(Snapshot {
            view,
            tip,
            header,
            reorganisations: reorganisations + u64::from(pending.reorganised),
        });
        let mut changes = Changes {
            tip: before.is_none_or(|before| before.tip != tip),
            all: std::mem::take(&mut pending.reorganised),
            items: std::mem::take(&mut pending.items),
        };
        let batch = Batch::new(MempoolChanges {
            moment: chain::SnapshotId { tip, mempool: 0 },
            from_scratch: std::mem::take(&mut pending.from_scratch),
            changes: std::mem::take(&mut pending.changes),
        });
        if batch.is_from_scratch() {
            changes.all = true;
            self.published.replace(batch, snapshot);
        } else {
            let mut affected = Collector { watched, changes: &mut changes, found: Vec::new() };
            self.published.change(batch, snapshot, &mut affected);
        }
        if let Some(number) = number {
            self.published.set_mempool(number);
        }
        // A subscription added during the block search may have been missed there: look it up as well.
        changes.items.extend(pending.new.drain(..));
        pending.new = watched.take_new();
        changes.items.extend(&pending.new);
        self.subscriptions.enqueue(changes);
        Ok(())
    }

    /// The mempool transactions that blocks from height `from` to `to` confirm.
    fn confirmed(&self, view: &View, from: u32, to: u32) -> Result<Vec<Txid>, QueryError> {
        let mut confirmed = Vec::new();
        for height in from..=to {
            if self.published.pool_is_empty() {
                break;
            }
            let Some(block) = view.block_txs(height)? else { break };
            confirmed.extend(self.published.in_pool(block.txids));
        }
        Ok(confirmed)
    }
}

impl Listener for Publisher {
    fn wants_mempool(&self) -> bool {
        true
    }

    fn is_watched(&self, script: &ScriptHash) -> bool {
        self.watched().is_watched(script)
    }

    fn add_watched_outputs(&self, txid: &Txid, tx: &Tx<'_>, found: &mut Vec<OutPoint>) {
        self.watched().add_outputs(txid, tx, found);
    }

    fn publish(&self, update: Update) {
        let Update { view, mempool, touched, reorganised_to } = update;
        let reorganised = reorganised_to.is_some();
        if let Err(error) = Self::publish(self, view, mempool, touched, reorganised) {
            tracing::error!("Electrum clients do not see the latest blocks: {error}");
        }
    }
}
