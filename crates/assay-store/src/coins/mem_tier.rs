//! A coin tier in memory: the model for tests, and a store without persistence.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::Mutex;

use super::tier::{CoinTier, MARKER_KEY, TierBatch, TierError, TierSnapshot, Visit};

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// Clones share their contents, so a clone can act as the disk of a reopened store.
#[derive(Clone, Debug, Default)]
pub struct MemTier {
    map: Arc<Mutex<Arc<Map>>>,
}

impl MemTier {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn fork(&self) -> Self {
        Self { map: Arc::new(Mutex::new(Arc::clone(&self.map.lock()))) }
    }

    /// Sets or removes a value outside of any batch, for tests with damaged entries.
    pub fn set(&self, key: &[u8], value: Option<&[u8]>) {
        let mut map = self.map.lock();
        let map = Arc::make_mut(&mut map);
        match value {
            Some(value) => map.insert(key.to_vec(), value.to_vec()),
            None => map.remove(key),
        };
    }

    pub fn entries(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        self.map.lock().iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

impl CoinTier for MemTier {
    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, TierError> {
        Ok(self.map.lock().get(key).map(|value| found(value)).is_some())
    }

    fn batch(&self, changes: usize) -> Result<Box<dyn TierBatch + '_>, TierError> {
        Ok(Box::new(MemBatch { tier: self, changes: Vec::with_capacity(changes) }))
    }

    fn snapshot(&self) -> Result<Box<dyn TierSnapshot>, TierError> {
        Ok(Box::new(MemSnapshot(Arc::clone(&self.map.lock()))))
    }

    fn disk_bytes(&self) -> u64 {
        self.map.lock().iter().map(|(key, value)| (key.len() + value.len()) as u64).sum()
    }

    fn coins_estimate(&self) -> u64 {
        self.map.lock().keys().filter(|key| key.as_slice() != MARKER_KEY).count() as u64
    }
}

struct MemBatch<'t> {
    tier: &'t MemTier,
    changes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl MemBatch<'_> {
    fn push(&mut self, key: &[u8], value: Option<Vec<u8>>) {
        let sorted = self.changes.last().is_none_or(|(last, _)| last.as_slice() < key);
        assert!(sorted, "the keys of a batch ascend");
        self.changes.push((key.to_vec(), value));
    }
}

impl TierBatch for MemBatch<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), TierError> {
        self.push(key, Some(value.to_vec()));
        Ok(())
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), TierError> {
        self.push(key, None);
        Ok(())
    }

    fn commit(self: Box<Self>) -> Result<(), TierError> {
        let mut map = self.tier.map.lock();
        let map = Arc::make_mut(&mut map);
        for (key, value) in self.changes {
            match value {
                Some(value) => map.insert(key, value),
                None => map.remove(&key),
            };
        }
        Ok(())
    }
}

struct MemSnapshot(Arc<Map>);

impl TierSnapshot for MemSnapshot {
    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: &mut Visit<'_>) -> Result<(), TierError> {
        let to = to.map_or(Bound::Unbounded, Bound::Excluded);
        for (key, value) in self.0.range::<[u8], _>((Bound::Included(from), to)) {
            if visit(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }
}
