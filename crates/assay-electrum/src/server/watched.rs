//! Watched items, which are the scripts and outputs that clients subscribed to, and the queue of those to look up again.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use assay_wire::{OutPoint, Tx, Txid};
use parking_lot::{Mutex, RwLock};

use super::send_queue::SendQueue;
use super::status::{Status, StatusHasher};
use super::workers::SLICE;
use crate::index::ScriptHash;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Item {
    Script(ScriptHash),
    /// An output, which need not exist.
    Outpoint(OutPoint),
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Script(script) => write!(f, "script {script}"),
            Self::Outpoint(OutPoint { txid, vout }) => write!(f, "output {txid}:{vout}"),
        }
    }
}

#[derive(Clone)]
pub(super) struct Subscriber {
    pub(super) send_queue: Arc<SendQueue>,
    /// True for protocol 1.7 or later, where script notifications have another name.
    pub(super) by_script: bool,
}

/// Subscribers of an item, sorted by client number. Most items have one, some have every client.
#[derive(Default)]
pub(super) struct Subscribers(Vec<Subscriber>);

/// Number of subscribers searched for the one with the fewest subscriptions.
const WEIGHED: usize = 16;
/// Weight of a record that is locked.
const WEIGHT_UNKNOWN: usize = 0;

impl Subscribers {
    pub(super) fn as_slice(&self) -> &[Subscriber] {
        &self.0
    }

    /// Idempotent.
    pub(super) fn add(&mut self, new: Subscriber) {
        if let Err(at) = self.find(new.send_queue.client) {
            if self.0.is_empty() {
                self.0.reserve_exact(1);
            }
            self.0.insert(at, new);
        }
    }

    pub(super) fn remove(&mut self, client: u64) {
        if let Ok(at) = self.find(client) {
            self.0.remove(at);
        }
    }

    fn find(&self, client: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&client, |subscriber| subscriber.send_queue.client)
    }

    /// Subscriptions of the address that has the fewest.
    fn weight(&self) -> usize {
        let some = self.0.iter().take(WEIGHED);
        some.map(|subscriber| subscriber.send_queue.account.subscriptions()).min().unwrap_or(0)
    }
}

/// An item; its status is computed once for all subscribers.
pub(super) struct Record {
    pub(super) item: Item,
    pub(super) state: Mutex<RecordState>,
    /// True while it is in the notification queue.
    is_queued: AtomicBool,
}

#[derive(Default)]
pub(super) struct RecordState {
    /// Of a script that was looked up.
    pub(super) hasher: Option<Box<StatusHasher>>,
    /// Last status sent to subscribers; `None` before the first computation.
    pub(super) status: Option<Status>,
    pub(super) subscribers: Subscribers,
    /// True once the record has been removed from the set.
    pub(super) dead: bool,
}

impl Record {
    fn new(item: Item) -> Arc<Self> {
        Arc::new(Self { item, state: Mutex::default(), is_queued: AtomicBool::new(false) })
    }

    /// Subscriptions of the watching address that has the fewest.
    fn weight(&self) -> usize {
        self.state.try_lock().map_or(WEIGHT_UNKNOWN, |state| state.subscribers.weight())
    }
}

/// Lock shards of the set. The follower queries every script of a block.
const SHARDS: usize = 64;

pub(super) struct Watched {
    shards: Vec<RwLock<Shard>>,
    scripts: AtomicUsize,
    outpoints: AtomicUsize,
    /// Items added since the last [`Watched::take_new`] and not removed.
    new: Mutex<HashSet<Item>>,
    /// Randomised, so that clients cannot choose the shard of an output.
    hasher: RandomState,
}

#[derive(Default)]
struct Shard {
    scripts: HashMap<ScriptHash, Arc<Record>>,
    /// Sorted, so that those of one transaction are adjacent.
    outpoints: BTreeMap<OutPoint, Arc<Record>>,
}

impl Shard {
    fn get(&self, item: &Item) -> Option<Arc<Record>> {
        match item {
            Item::Script(script) => self.scripts.get(script).map(Arc::clone),
            Item::Outpoint(outpoint) => self.outpoints.get(outpoint).map(Arc::clone),
        }
    }
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            scripts: AtomicUsize::new(0),
            outpoints: AtomicUsize::new(0),
            new: Mutex::default(),
            hasher: RandomState::new(),
        }
    }
}

impl Watched {
    /// True if a client subscribed to `script`. Cheap and thread-safe.
    pub(super) fn is_watched(&self, script: &ScriptHash) -> bool {
        self.scripts.load(Ordering::Acquire) > 0
            && self.script_shard(script).read().scripts.contains_key(script)
    }

    pub(super) fn counts(&self) -> (usize, usize) {
        (self.scripts.load(Ordering::Acquire), self.outpoints.load(Ordering::Acquire))
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.counts() == (0, 0)
    }

    fn count(&self, item: &Item) -> &AtomicUsize {
        match item {
            Item::Script(_) => &self.scripts,
            Item::Outpoint(_) => &self.outpoints,
        }
    }

    fn shard(&self, item: &Item) -> &RwLock<Shard> {
        match item {
            Item::Script(script) => self.script_shard(script),
            Item::Outpoint(outpoint) => self.tx_shard(&outpoint.txid),
        }
    }

    fn script_shard(&self, script: &ScriptHash) -> &RwLock<Shard> {
        &self.shards[usize::from(script.0[0]) % SHARDS]
    }

    fn tx_shard(&self, txid: &Txid) -> &RwLock<Shard> {
        &self.shards[self.hasher.hash_one(txid) as usize % SHARDS]
    }

    pub(super) fn get(&self, item: &Item) -> Option<Arc<Record>> {
        self.shard(item).read().get(item)
    }

    /// The record of an item, created if missing. It may be removed before the caller locks it: call again then.
    pub(super) fn enter(&self, item: &Item) -> Arc<Record> {
        let mut shard = self.shard(item).write();
        if let Some(record) = shard.get(item) {
            return record;
        }
        let record = Record::new(*item);
        // Counted before insertion, so that a reader of the count never misses it.
        self.count(item).fetch_add(1, Ordering::Release);
        self.new.lock().insert(*item);
        let new = Arc::clone(&record);
        match item {
            Item::Script(script) => _ = shard.scripts.insert(*script, new),
            Item::Outpoint(outpoint) => _ = shard.outpoints.insert(*outpoint, new),
        }
        record
    }

    /// Removes a record without subscribers; `state` is its lock guard.
    pub(super) fn remove_unused(&self, record: &Record, state: &mut RecordState) {
        if !state.subscribers.as_slice().is_empty() || state.dead {
            return;
        }
        state.dead = true;
        let item = &record.item;
        let mut shard = self.shard(item).write();
        match item {
            Item::Script(script) => _ = shard.scripts.remove(script),
            Item::Outpoint(outpoint) => _ = shard.outpoints.remove(outpoint),
        }
        // Under the same lock: a later subscription counts as new again.
        self.new.lock().remove(item);
        self.count(item).fetch_sub(1, Ordering::Release);
    }

    /// Appends the watched outputs that a transaction creates or spends. Cheap if there are none.
    pub(super) fn add_outputs(&self, txid: &Txid, tx: &Tx<'_>, found: &mut Vec<OutPoint>) {
        if self.outpoints.load(Ordering::Acquire) == 0 {
            return;
        }
        let outputs = tx.output_count() as u32;
        if let Some(last) = outputs.checked_sub(1) {
            // It has no other outputs.
            let made = OutPoint { txid: *txid, vout: 0 }..=OutPoint { txid: *txid, vout: last };
            let shard = self.tx_shard(txid).read();
            found.extend(shard.outpoints.range(made).map(|(outpoint, _)| *outpoint));
        }
        let spent = tx.inputs().map(|input| input.prevout);
        let is_watched =
            |spent: &OutPoint| self.tx_shard(&spent.txid).read().outpoints.contains_key(spent);
        found.extend(spent.filter(is_watched));
    }

    /// Looks up an item again with the next change.
    pub(super) fn retry_later(&self, item: &Item) {
        self.new.lock().insert(*item);
    }

    /// Items added since the last call.
    pub(super) fn take_new(&self) -> Vec<Item> {
        std::mem::take(&mut *self.new.lock()).into_iter().collect()
    }

    /// Every item, shard by shard.
    pub(super) fn all(&self) -> impl Iterator<Item = Vec<Arc<Record>>> {
        self.shards.iter().map(|shard| {
            let shard = shard.read();
            shard.scripts.values().chain(shard.outpoints.values()).map(Arc::clone).collect()
        })
    }
}

/// Upper bound of the first class; each class has twice the bound of the previous one.
const FEW: usize = 128;
const CLASSES: usize = 14;
/// One of this many consecutive items comes from the last class, to prevent starvation.
const LAST_EVERY: u32 = 16;

/// Items to look up again, without duplicates, so its size is bounded by the number of watched items.
///
/// Clients with few subscriptions are notified first: an item's class is the number of subscriptions of the address that has the
/// fewest among its watchers. A change that affects fifty thousand subscriptions of one client is processed in short slices after
/// the others.
#[derive(Default)]
pub(super) struct NotifyQueue {
    classes: [VecDeque<Arc<Record>>; CLASSES],
    in_a_row: u32,
}

impl NotifyQueue {
    pub(super) fn len(&self) -> usize {
        self.classes.iter().map(VecDeque::len).sum()
    }

    /// Adds an item unless it is queued.
    pub(super) fn add(&mut self, record: Arc<Record>) {
        if !record.is_queued.swap(true, Ordering::Relaxed) {
            self.classes[class(record.weight())].push_back(record);
        }
    }

    /// Passes items to `refresh` for one time slice. On `false` the item is queued again and the slice ends with `false`.
    pub(super) fn run_slice(&mut self, mut refresh: impl FnMut(&Record) -> bool) -> bool {
        let start = Instant::now();
        while let Some(record) = self.next() {
            // First: any later change queues it again.
            record.is_queued.store(false, Ordering::Release);
            if !refresh(&record) {
                self.add(record);
                return false;
            }
            if start.elapsed() >= SLICE {
                break;
            }
        }
        true
    }

    fn next(&mut self) -> Option<Arc<Record>> {
        self.in_a_row += 1;
        let from_last = self.in_a_row >= LAST_EVERY;
        let mut classes = self.classes.iter_mut();
        let class = if from_last {
            self.in_a_row = 0;
            classes.rfind(|class| !class.is_empty())
        } else {
            classes.find(|class| !class.is_empty())
        };
        class?.pop_front()
    }
}

fn class(subscriptions: usize) -> usize {
    let doublings = (subscriptions / FEW).checked_ilog2().map_or(0, |log| log as usize + 1);
    doublings.min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outpoint(vout: u32) -> Item {
        Item::Outpoint(OutPoint { txid: Txid([7; 32]), vout })
    }

    #[test]
    fn items_are_watched_while_subscribed() {
        let script = ScriptHash([7; 32]);
        for item in [Item::Script(script), outpoint(2)] {
            let watched = Watched::default();
            assert!(!watched.is_watched(&script));
            let record = watched.enter(&item);
            assert_eq!(watched.is_watched(&script), item == Item::Script(script));
            assert!(Arc::ptr_eq(&record, &watched.enter(&item)));
            assert_eq!(watched.take_new(), [item]);
            assert_eq!(watched.take_new(), []);
            let all = watched.all().flatten().map(|record| record.item);
            assert_eq!(all.collect::<Vec<_>>(), [item]);
            watched.remove_unused(&record, &mut record.state.lock());
            assert!(!watched.is_watched(&script) && watched.is_empty());
        }
    }

    #[test]
    fn classes_double() {
        for (subscriptions, expected) in
            [(0, 0), (127, 0), (128, 1), (255, 1), (256, 2), (50_000, 9), (usize::MAX, 13)]
        {
            assert_eq!(class(subscriptions), expected, "{subscriptions}");
        }
    }

    #[test]
    fn last_class_progresses_without_duplicates() {
        let mut queue = NotifyQueue::default();
        for number in 0..100 {
            let class = if number < 10 { 9 } else { 0 };
            let record = Record::new(outpoint(number));
            record.is_queued.store(true, Ordering::Relaxed);
            queue.classes[class].push_back(record);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.next()).map(|record| record.item).collect();
        assert_eq!(order.len(), 100);
        let first = [10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 0];
        assert_eq!(order[..16], first.map(outpoint));
        let record = Record::new(outpoint(1));
        queue.add(Arc::clone(&record));
        queue.add(Arc::clone(&record));
        let mut seen = 0;
        while queue.len() > 0 {
            queue.run_slice(|_| {
                seen += 1;
                seen > 1
            });
        }
        assert_eq!(seen, 2, "once for each time that it was asked for, and again after a failure");
    }
}
