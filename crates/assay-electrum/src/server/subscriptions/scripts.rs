//! Subscribed scripts, with the status of each.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use super::subscribers::{Subscribers, WEIGHT_UNKNOWN};
use crate::index::ScriptHash;
use crate::server::protocol::error::CallError;
use crate::server::snapshot::published::Published;
use crate::server::snapshot::script_status::{Status, StatusHasher};

/// Lock shards of the set. The follower queries every script of a block.
const SHARDS: usize = 64;

/// Subscribed scripts; the status of each is computed once for all subscribers.
#[derive(Debug)]
pub struct Watched {
    shards: Vec<RwLock<HashMap<ScriptHash, Arc<ScriptRecord>>>>,
    count: AtomicUsize,
    /// Scripts added since the last [`Watched::take_new`] and not removed.
    new: Mutex<HashSet<ScriptHash>>,
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| RwLock::default()).collect(),
            count: AtomicUsize::new(0),
            new: Mutex::default(),
        }
    }
}

impl Watched {
    /// True if a client subscribed to `script`. Cheap and thread-safe.
    pub fn is_watched(&self, script: &ScriptHash) -> bool {
        !self.is_empty() && self.shard(script).read().contains_key(script)
    }

    pub fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn shard(&self, script: &ScriptHash) -> &RwLock<HashMap<ScriptHash, Arc<ScriptRecord>>> {
        &self.shards[usize::from(script.0[0]) % SHARDS]
    }

    /// The record of a script, created if missing. It may be removed before the caller locks it: call again then.
    pub(in crate::server) fn enter(&self, script: &ScriptHash) -> Arc<ScriptRecord> {
        let mut shard = self.shard(script).write();
        if let Some(record) = shard.get(script) {
            return Arc::clone(record);
        }
        let record = Arc::new(ScriptRecord::new(*script));
        // Counted before insertion, so that `is_watched` never misses it.
        self.count.fetch_add(1, Ordering::Release);
        self.new.lock().insert(*script);
        shard.insert(*script, Arc::clone(&record));
        record
    }

    pub(in crate::server) fn get(&self, script: &ScriptHash) -> Option<Arc<ScriptRecord>> {
        self.shard(script).read().get(script).map(Arc::clone)
    }

    /// Every script, shard by shard.
    pub(in crate::server) fn all(&self) -> impl Iterator<Item = Vec<Arc<ScriptRecord>>> {
        self.shards.iter().map(|shard| shard.read().values().map(Arc::clone).collect())
    }

    /// Looks up a script again with the next change.
    pub(in crate::server) fn retry_later(&self, script: &ScriptHash) {
        self.new.lock().insert(*script);
    }

    /// Scripts added since the last call.
    pub(in crate::server) fn take_new(&self) -> Vec<ScriptHash> {
        std::mem::take(&mut *self.new.lock()).into_iter().collect()
    }

    /// Removes a record without subscribers; `state` is its lock guard.
    pub(in crate::server) fn remove_unused(&self, record: &ScriptRecord, state: &mut ScriptState) {
        if state.subscribers.is_empty() && !state.dead {
            state.dead = true;
            let mut shard = self.shard(&record.script).write();
            shard.remove(&record.script);
            // Under the same lock: a later subscription counts as new again.
            self.new.lock().remove(&record.script);
            self.count.fetch_sub(1, Ordering::Release);
        }
    }
}

#[derive(Debug)]
pub(in crate::server) struct ScriptRecord {
    pub(in crate::server) script: ScriptHash,
    pub(in crate::server) state: Mutex<ScriptState>,
    /// True while it is in the notification queue.
    pub(in crate::server) is_queued: AtomicBool,
}

impl ScriptRecord {
    fn new(script: ScriptHash) -> Self {
        Self { script, state: Mutex::default(), is_queued: AtomicBool::new(false) }
    }

    /// Subscriptions of the watching address that has the fewest.
    pub(in crate::server) fn weight(&self) -> usize {
        self.state.try_lock().map_or(WEIGHT_UNKNOWN, |state| state.subscribers.weight())
    }
}

#[derive(Debug, Default)]
pub(in crate::server) struct ScriptState {
    hasher: StatusHasher,
    /// Last status sent to subscribers; `None` before the first computation.
    pub(in crate::server) status: Option<Status>,
    pub(in crate::server) subscribers: Subscribers,
    /// True once the record has been removed from the set.
    pub(in crate::server) dead: bool,
}

impl ScriptState {
    pub(in crate::server) fn compute(
        &mut self,
        published: &Published,
        script: &ScriptHash,
        entries_max: usize,
    ) -> Result<Status, CallError> {
        self.hasher.status(published, script, entries_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn script_is_watched_while_subscribed() {
        let watched = Watched::default();
        let script = ScriptHash([7; 32]);
        assert!(!watched.is_watched(&script));
        let record = watched.enter(&script);
        assert!(watched.is_watched(&script));
        assert!(Arc::ptr_eq(&record, &watched.enter(&script)));
        assert_eq!(watched.take_new(), [script]);
        assert_eq!(watched.take_new(), []);
        assert_eq!(
            watched.all().flatten().map(|record| record.script).collect::<Vec<_>>(),
            [script]
        );
        watched.remove_unused(&record, &mut record.state.lock());
        assert!(!watched.is_watched(&script) && watched.is_empty());
    }
}
