//! Outputs that clients subscribed to, with the state of each.
//!
//! They are found by the transactions that a change names: what becomes of an output depends on the
//! transaction that makes it and on those that spend it, and on nothing else.

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use assay_wire::{OutPoint, Tx, Txid};
use parking_lot::{Mutex, RwLock};

use super::subscribers::{Subscribers, WEIGHT_UNKNOWN};
use crate::server::snapshot::outpoint_status::OutpointStatus;

/// An output that somebody subscribed to.
#[derive(Debug)]
pub(in crate::server) struct OutpointRecord {
    pub(in crate::server) outpoint: OutPoint,
    pub(in crate::server) state: Mutex<OutpointState>,
    /// Whether it is in the queue of what is to be looked up.
    pub(in crate::server) is_queued: AtomicBool,
}

impl OutpointRecord {
    pub(in crate::server) fn new(outpoint: OutPoint) -> Self {
        Self { outpoint, state: Mutex::default(), is_queued: AtomicBool::new(false) }
    }

    /// Subscriptions of the address that has the fewest.
    pub(in crate::server) fn weight(&self) -> usize {
        self.state.try_lock().map_or(WEIGHT_UNKNOWN, |state| state.subscribers.weight())
    }
}

#[derive(Debug, Default)]
pub(in crate::server) struct OutpointState {
    /// The status that subscribers have.
    pub(in crate::server) status: Option<OutpointStatus>,
    pub(in crate::server) subscribers: Subscribers,
    /// Whether the record is no longer in the set.
    pub(in crate::server) dead: bool,
}

/// Locks that the set is spread over.
const SHARDS: usize = 64;

type Shard = BTreeMap<OutPoint, Arc<OutpointRecord>>;

/// The outputs that somebody subscribed to, sorted, so that those of one transaction are found
/// together.
#[derive(Debug)]
pub(in crate::server) struct Outpoints {
    shards: Vec<RwLock<Shard>>,
    count: AtomicUsize,
    /// Outputs that were added since the last [`Outpoints::take_new`] and not removed.
    new: Mutex<HashSet<OutPoint>>,
    /// Keeps clients from choosing who shares a lock.
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
    /// Number of outputs.
    pub(in crate::server) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    fn shard(&self, txid: &Txid) -> &RwLock<Shard> {
        &self.shards[self.hasher.hash_one(txid) as usize % SHARDS]
    }

    pub(in crate::server) fn get(&self, outpoint: &OutPoint) -> Option<Arc<OutpointRecord>> {
        self.shard(&outpoint.txid).read().get(outpoint).map(Arc::clone)
    }

    /// The record of an output, created if there is none. It may be removed before it is locked:
    /// then call again.
    pub(in crate::server) fn enter(&self, outpoint: &OutPoint) -> Arc<OutpointRecord> {
        let mut shard = self.shard(&outpoint.txid).write();
        if let Some(record) = shard.get(outpoint) {
            return Arc::clone(record);
        }
        let record = Arc::new(OutpointRecord::new(*outpoint));
        // Counted before it is in the set, so that a reader of the count never misses it.
        self.count.fetch_add(1, Ordering::Release);
        self.new.lock().insert(*outpoint);
        shard.insert(*outpoint, Arc::clone(&record));
        record
    }

    /// Removes a record without subscribers; `state` is what it is locked with.
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
            // Under the same lock: an entry from now on is new again.
            self.new.lock().remove(outpoint);
            self.count.fetch_sub(1, Ordering::Release);
        }
    }

    /// Appends the outputs of the set that a transaction makes or spends. Cheap where there are
    /// none.
    pub(in crate::server) fn add_named(&self, txid: &Txid, tx: &Tx<'_>, found: &mut Vec<OutPoint>) {
        if self.len() == 0 {
            return;
        }
        let outputs = tx.output_count() as u32;
        if let Some(last) = outputs.checked_sub(1) {
            // No other output of it will ever exist, so none can change.
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

    /// The outputs that were added since the last call.
    pub(in crate::server) fn take_new(&self) -> Vec<OutPoint> {
        std::mem::take(&mut *self.new.lock()).into_iter().collect()
    }

    /// Every output, a part at a time.
    pub(in crate::server) fn all(&self) -> impl Iterator<Item = Vec<Arc<OutpointRecord>>> {
        self.shards.iter().map(|shard| shard.read().values().map(Arc::clone).collect())
    }
}
