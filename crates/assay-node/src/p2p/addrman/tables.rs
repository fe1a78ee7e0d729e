//! Bucket tables of addresses (Core `addrman.cpp`, `AddrManImpl`).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use assay_wire::p2p::{Endpoint, Host, NetworkKind, PeerAddress};

use super::entry::{BUCKET_SIZE, Entry, Key, NEW_BUCKETS, NEW_PER_ADDRESS, TRIED_BUCKETS};
use crate::p2p::rng::Rng;

/// Ascending from 0; never reused.
pub(super) type Id = u64;

/// Buckets of one kind; [`NONE`] is an empty position.
pub(super) type Buckets = Vec<[Id; BUCKET_SIZE]>;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) new: usize,
    pub(crate) tried: usize,
}

impl Count {
    pub(crate) fn total(self) -> usize {
        self.new + self.tried
    }
}

/// Unsynchronized address manager.
pub(super) struct Tables {
    pub(super) key: Key,
    pub(super) rng: Rng,
    pub(super) next_id: Id,
    pub(super) entries: BTreeMap<Id, Entry>,
    pub(super) ids: HashMap<Endpoint, Id>,
    /// All ids in random order.
    pub(super) all: Vec<Id>,
    pub(super) new: Buckets,
    pub(super) tried: Buckets,
    pub(super) counts: BTreeMap<NetworkKind, Count>,
    /// Last successful connection to any address.
    pub(super) good_s: i64,
    /// New addresses that collide with a tried one, which is tested first.
    pub(super) collisions: BTreeSet<Id>,
}

impl Tables {
    pub(super) fn new(key: Key, rng: Rng) -> Self {
        Self {
            key,
            rng,
            next_id: 0,
            entries: BTreeMap::new(),
            ids: HashMap::new(),
            all: Vec::new(),
            new: vec![[NONE; BUCKET_SIZE]; NEW_BUCKETS],
            tried: vec![[NONE; BUCKET_SIZE]; TRIED_BUCKETS],
            counts: BTreeMap::new(),
            good_s: 1,
            collisions: BTreeSet::new(),
        }
    }

    pub(super) fn find(&self, endpoint: &Endpoint) -> Option<Id> {
        self.ids.get(endpoint).copied()
    }

    pub(super) fn find_mut(&mut self, endpoint: &Endpoint) -> Option<&mut Entry> {
        self.entries.get_mut(self.ids.get(endpoint)?)
    }

    pub(super) fn count(&self, network: Option<NetworkKind>) -> Count {
        let is_meant = |kind: NetworkKind| network.is_none_or(|network| network == kind);
        let counts = self.counts.iter().filter(|(kind, _)| is_meant(**kind));
        counts.fold(Count::default(), |sum, (_, count)| Count {
            new: sum.new + count.new,
            tried: sum.tried + count.tried,
        })
    }

    /// Bucket and position of an entry: by its first source, or among the tried ones.
    pub(super) fn location(&self, entry: &Entry, is_new: bool) -> (usize, usize) {
        let bucket = if is_new {
            entry.new_bucket(&self.key, &entry.source)
        } else {
            entry.tried_bucket(&self.key)
        };
        (bucket, entry.place(&self.key, is_new, bucket))
    }

    pub(super) fn count_mut(&mut self, entry: &Entry) -> &mut Count {
        self.counts.entry(entry.host().network()).or_default()
    }

    fn create(&mut self, address: PeerAddress, source: Host) -> Id {
        let id = self.next_id;
        self.next_id += 1;
        let entry = Entry { position: self.all.len(), ..Entry::new(address, source) };
        self.count_mut(&entry).new += 1;
        self.ids.insert(address.endpoint, id);
        self.entries.insert(id, entry);
        self.all.push(id);
        id
    }

    pub(super) fn swap(&mut self, one: usize, other: usize) {
        self.all.swap(one, other);
        for position in [one, other] {
            if let Some(entry) = self.entries.get_mut(&self.all[position]) {
                entry.position = position;
            }
        }
    }

    /// Deletes an address that is in no bucket.
    pub(super) fn delete(&mut self, id: Id) {
        let Some(entry) = self.entries.get(&id).copied() else { return };
        debug_assert!(!entry.is_tried && entry.references == 0);
        self.swap(entry.position, self.all.len() - 1);
        self.all.pop();
        self.count_mut(&entry).new -= 1;
        self.ids.remove(&entry.address.endpoint);
        self.entries.remove(&id);
    }

    /// Clears a position among the new ones; deletes an address that has no other.
    fn clear_new(&mut self, bucket: usize, place: usize) {
        let id = std::mem::replace(&mut self.new[bucket][place], NONE);
        let Some(entry) = self.entries.get_mut(&id) else { return };
        entry.references -= 1;
        tracing::debug!(
            target: "addrman", "Removed {} from new[{bucket}][{place}]", entry.address.endpoint
        );
        if entry.references == 0 {
            self.delete(id);
        }
    }

    /// Adds an address named by `source`; `false` if at most its times changed.
    pub(super) fn add(
        &mut self,
        address: &PeerAddress,
        source: &Host,
        penalty_s: i64,
        now_s: i64,
    ) -> bool {
        let Endpoint { host, .. } = address.endpoint;
        if !host.is_routable() {
            return false;
        }
        // A node's own time of its address is exact.
        let penalty_s = if host == *source { 0 } else { penalty_s };
        let id = if let Some(id) = self.find(&address.endpoint) {
            if !self.take_news(id, address, penalty_s, now_s) {
                return false;
            }
            id
        } else {
            let time = less(address.time, penalty_s);
            self.create(PeerAddress { time, ..*address }, *source)
        };
        self.put_into_new(id, source, now_s)
    }

    /// Updates a known address; `true` if it may get another position.
    fn take_news(&mut self, id: Id, address: &PeerAddress, penalty_s: i64, now_s: i64) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        let seen_s = i64::from(address.time);
        let interval_s = if now_s - seen_s < DAY_S { HOUR_S } else { DAY_S };
        if i64::from(entry.address.time) < seen_s - interval_s - penalty_s {
            entry.address.time = less(address.time, penalty_s);
        }
        entry.address.services |= address.services;
        let references = entry.references;
        if address.time <= entry.address.time || entry.is_tried || references == NEW_PER_ADDRESS {
            return false;
        }
        // Each further position is half as likely as the one before.
        references == 0 || self.rng.below(1 << references) == 0
    }

    fn put_into_new(&mut self, id: Id, source: &Host, now_s: i64) -> bool {
        let Some(entry) = self.entries.get(&id) else { return false };
        let bucket = entry.new_bucket(&self.key, source);
        let place = entry.place(&self.key, true, bucket);
        let holder = self.new[bucket][place];
        if holder == id {
            return false;
        }
        let references = entry.references;
        let is_free = match self.entries.get(&holder) {
            None => true,
            Some(held) => held.is_terrible(now_s) || (held.references > 1 && references == 0),
        };
        if !is_free {
            if references == 0 {
                self.delete(id);
            }
            return false;
        }
        self.clear_new(bucket, place);
        self.new[bucket][place] = id;
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.references += 1;
            let endpoint = entry.address.endpoint;
            tracing::debug!(target: "addrman", "Added {endpoint} to new[{bucket}][{place}]");
        }
        true
    }

    /// Records a successful connection. The address moves to the tried ones; on a collision the present entry is
    /// tested first if `is_patient`. True if it moved.
    pub(super) fn good(&mut self, endpoint: &Endpoint, is_patient: bool, now_s: i64) -> bool {
        self.good_s = now_s;
        let Some(id) = self.find(endpoint) else { return false };
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        entry.success_s = now_s;
        entry.try_s = now_s;
        entry.attempts = 0;
        // The last-seen time stays, as it would reveal current connections.
        if entry.is_tried || entry.references == 0 {
            return false;
        }
        let entry = *entry;
        let (bucket, place) = self.location(&entry, false);
        let holder = self.tried[bucket][place];
        if is_patient && holder != NONE {
            if self.collisions.len() < COLLISIONS_MAX {
                self.collisions.insert(id);
            }
            if let Some(held) = self.entries.get(&holder) {
                tracing::debug!(
                    target: "addrman",
                    "Collision with {} while attempting to move {endpoint} to tried table. Collisions={}",
                    held.address.endpoint,
                    self.collisions.len()
                );
            }
            return false;
        }
        self.make_tried(id);
        tracing::debug!(target: "addrman", "Moved {endpoint} to tried[{bucket}][{place}]");
        true
    }

    fn make_tried(&mut self, id: Id) {
        let Some(entry) = self.entries.get(&id).copied() else { return };
        let (start, mut left) = (entry.new_bucket(&self.key, &entry.source), entry.references);
        // Start at the bucket of the first source, which usually holds it.
        for bucket in (start..NEW_BUCKETS).chain(0..start) {
            if left == 0 {
                break;
            }
            let place = entry.place(&self.key, true, bucket);
            if self.new[bucket][place] == id {
                self.new[bucket][place] = NONE;
                left -= 1;
            }
        }
        self.count_mut(&entry).new -= 1;
        let (bucket, place) = self.location(&entry, false);
        self.make_new_again(bucket, place);
        self.tried[bucket][place] = id;
        self.count_mut(&entry).tried += 1;
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.references = 0;
            entry.is_tried = true;
        }
    }

    /// Moves a tried entry back to the new ones.
    fn make_new_again(&mut self, bucket: usize, place: usize) {
        let id = std::mem::replace(&mut self.tried[bucket][place], NONE);
        let Some(entry) = self.entries.get(&id).copied() else { return };
        self.count_mut(&entry).tried -= 1;
        let (new_bucket, new_place) = self.location(&entry, true);
        self.clear_new(new_bucket, new_place);
        self.new[new_bucket][new_place] = id;
        self.count_mut(&entry).new += 1;
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.is_tried = false;
            entry.references = 1;
        }
        tracing::debug!(
            target: "addrman",
            "Moved {} from tried[{bucket}][{place}] to new[{new_bucket}][{new_place}] to make space",
            entry.address.endpoint
        );
    }

    /// Records an attempt; `counts` adds it to the failures until a connection succeeds.
    pub(super) fn attempt(&mut self, endpoint: &Endpoint, counts: bool, now_s: i64) {
        let good_s = self.good_s;
        let Some(entry) = self.find_mut(endpoint) else { return };
        entry.try_s = now_s;
        if counts && entry.counted_try_s < good_s {
            entry.counted_try_s = now_s;
            entry.attempts = entry.attempts.saturating_add(1);
        }
    }

    /// Records that the connection to an address was alive until now.
    pub(super) fn connected(&mut self, endpoint: &Endpoint, now_s: i64) {
        let Some(entry) = self.find_mut(endpoint) else { return };
        if now_s - i64::from(entry.address.time) > 20 * 60 {
            entry.address.time = seconds(now_s);
        }
    }
}

pub(super) const NONE: Id = Id::MAX;
/// Core `ADDRMAN_SET_TRIED_COLLISION_SIZE`.
const COLLISIONS_MAX: usize = 10;
const HOUR_S: i64 = 3600;
const DAY_S: i64 = 24 * HOUR_S;

fn less(time: u32, penalty_s: i64) -> u32 {
    seconds(i64::from(time) - penalty_s)
}

pub(super) fn seconds(time_s: i64) -> u32 {
    u32::try_from(time_s.max(0)).unwrap_or(u32::MAX)
}
