//! A hash map in shards, so that several threads can remove the transactions of a large block.

use std::collections::HashMap;
use std::hash::Hash;

use assay_wire::{OutPoint, Txid};

/// Number of shards; more threads would not help.
pub(super) const SHARDS: usize = 16;

pub(super) trait Key: Copy + Eq + Hash {
    /// Evenly distributed bits.
    fn spread(&self) -> u8;

    fn shard(&self) -> usize {
        usize::from(self.spread()) % SHARDS
    }
}

impl Key for Txid {
    fn spread(&self) -> u8 {
        self.0[0]
    }
}

impl Key for OutPoint {
    fn spread(&self) -> u8 {
        self.txid.0[0] ^ self.vout as u8
    }
}

/// The map; the shard of a key only matters for [`Shards::parts_mut`].
pub(super) struct Shards<K, V>([HashMap<K, V>; SHARDS]);

impl<K: Key, V> Default for Shards<K, V> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| HashMap::new()))
    }
}

impl<K: Key, V> Shards<K, V> {
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(HashMap::len).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.iter().all(HashMap::is_empty)
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.0[key.shard()].get(key)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.0[key.shard()].get_mut(key)
    }

    pub(super) fn get_key_value(&self, key: &K) -> Option<(&K, &V)> {
        self.0[key.shard()].get_key_value(key)
    }

    pub(super) fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        self.0[key.shard()].insert(key, value)
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        self.0[key.shard()].remove(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().flatten()
    }

    /// The shards, in the order of [`Key::shard`].
    pub(super) fn parts_mut(&mut self) -> &mut [HashMap<K, V>] {
        &mut self.0
    }
}
