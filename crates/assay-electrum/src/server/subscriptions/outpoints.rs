//! Subscribed outputs, with the status of each.
//!
//! Changes name transactions, and outputs are looked up by them: the status of an output depends only on its funding transaction
//! and on those that spend it.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use assay_wire::{OutPoint, Tx, Txid};
use parking_lot::{Mutex, RwLock};

use super::subscribers::{Subscribers, WEIGHT_UNKNOWN};
use crate::server::snapshot::outpoint_status::OutpointStatus;

#[derive(Debug)]
pub(in crate::server) struct OutpointRecord {
    pub(in crate::server) outpoint: OutPoint,
    pub(in crate::server) state: Mutex<OutpointState>,
    /// True while it is in the notification queue.
    pub(in crate::server) is_queued: AtomicBool,
}

impl OutpointRecord {
    pub(in crate::server) fn new(outpoint: OutPoint) -> Self {
        Self { outpoint, state: Mutex::default(), is_queued: AtomicBool::new(false) }
    }

    /// Subscriptions of the watching address that has the fewest.
    pub(in crate::server) fn weight(&self) -> usize {
        self.state.try_lock().map_or(WEIGHT_UNKNOWN, |state| state.subscribers.weight())
    }
}

#[derive(Debug, Default)]
pub(in crate::server) struct OutpointState {
    /// Last status sent to subscribers.
    pub(in crate::server) status: Option<OutpointStatus>,
    pub(in crate::server) subscribers: Subscribers,
    /// True once the record has been removed from the set.
    pub(in crate::server) dead: bool,
}

/// Lock shards of the set.
const SHARDS: usize = 64;

type Shard = BTreeMap<OutPoint, Arc<OutpointRecord>>;

/// Subscribed outputs, sorted so that those of one transaction are adjacent.
#[derive(Debug)]
pub(in crate::server) struct Outpoints {
    shards: Vec<RwLock<Shard>>,
    count: AtomicUsize,
    /// Outputs added since the last [`Outpoints::take_new`] and not removed.
    new: Mutex<HashSet<OutPoint>>,
    /// Randomised, so that clients cannot choose the shard of an output.
    hasher: RandomState,
}

impl Default for Outpoints {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            count: AtomicUsize::new(0),
            new: Mutex::default(),
            hasher: RandomState::new(),
        }
    }
}

impl Outpoints {
    pub(in crate::server) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    fn shard(&self, txid: &Txid) -> &RwLock<Shard> {
        &self.shards[self.hasher.hash_one(txid) as usize % SHARDS]
    }

    pub(in crate::server) fn get(&self, outpoint: &OutPoint) -> Option<Arc<OutpointRecord>> {
        self.shard(&outpoint.txid).read().get(outpoint).map(Arc::clone)
    }

    /// The record of an output, created if missing. It may be removed before the caller locks it: call again then.
    pub(in crate::server) fn enter(&self, outpoint: &OutPoint) -> Arc<OutpointRecord> {
        let mut shard = self.shard(&outpoint.txid).write();
        if let Some(record) = shard.get(outpoint) {
            return Arc::clone(record);
        }
        let record = Arc::new(OutpointRecord::new(*outpoint));
        // Counted before insertion, so that a reader of the count never misses it.
        self.count.fetch_add(1, Ordering::Release);
        self.new.lock().insert(*outpoint);
        shard.insert(*outpoint, Arc::clone(&record));
        record
    }

    /// Removes a record without subscribers; `state` is its lock guard.
    pub(in crate::server) fn remove_unused(
        &self,
        record: &OutpointRecord,
        state: &mut OutpointState,
    ) {
        if state.subscribers.is_empty() && !state.dead {
            state.dead = true;
            let outpoint = &record.outpoint;
            let mut shard = self.shard(&outpoint.txid).write();
            shard.remove(outpoint);
            // Under the same lock: a later subscription counts as new again.
            self.new.lock().remove(outpoint);
            self.count.fetch_sub(1, Ordering::Release);
        }
    }

    /// Appends the subscribed outputs that a transaction creates or spends. Cheap if there are none.
    pub(in crate::server) fn add_named(&self, txid: &Txid, tx: &Tx<'_>, found: &mut Vec<OutPoint>) {
        if self.len() == 0 {
            return;
        }
        let outputs = tx.output_count() as u32;
        if let Some(last) = outputs.checked_sub(1) {
            // It has no other outputs.
            let made = OutPoint { txid: *txid, vout: 0 }..=OutPoint { txid: *txid, vout: last };
            found.extend(self.shard(txid).read().range(made).map(|(outpoint, _)| *outpoint));
        }
        let spent = tx.inputs().map(|input| input.prevout);
        found
            .extend(spent.filter(|prevout| self.shard(&prevout.txid).read().contains_key(prevout)));
    }

    /// Looks up an output again with the next change.
    pub(in crate::server) fn retry_later(&self, outpoint: &OutPoint) {
        self.new.lock().insert(*outpoint);
    }

    /// Outputs added since the last call.
    pub(in crate::server) fn take_new(&self) -> Vec<OutPoint> {
        std::mem::take(&mut *self.new.lock()).into_iter().collect()
    }

    /// Every output, shard by shard.
    pub(in crate::server) fn all(&self) -> impl Iterator<Item = Vec<Arc<OutpointRecord>>> {
        self.shards.iter().map(|shard| shard.read().values().map(Arc::clone).collect())
    }
}
