//! Selection of addresses and resolution of collisions (Core `addrman.cpp`, `Select_`, `GetAddr_`,
//! `ResolveCollisions_`).

use assay_wire::p2p::{NetworkKind, PeerAddress};

use super::entry::{BUCKET_SIZE, Entry, NEW_BUCKETS, TRIED_BUCKETS};
use super::tables::{Count, Id, NONE, Tables};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    /// Maximum count; 0 for any.
    pub(crate) count_max: usize,
    /// Maximum share of the known addresses, percent; 0 for any.
    pub(crate) percent_max: usize,
    pub(crate) network: Option<NetworkKind>,
}

impl Tables {
    /// Random address, biased towards recent successes, on one of `networks` if not empty, and the time of its last attempt.
    pub(super) fn select(
        &mut self,
        only_new: bool,
        networks: &[NetworkKind],
        now_s: i64,
    ) -> Option<(PeerAddress, i64)> {
        let counted = networks.iter().map(|network| self.count(Some(*network)));
        let Count { new, tried } = if networks.is_empty() {
            self.count(None)
        } else {
            counted.fold(Count::default(), |sum, count| Count {
                new: sum.new + count.new,
                tried: sum.tried + count.tried,
            })
        };
        let from_tried = match (new, tried) {
            (0, 0) => return None,
            (0, _) if only_new => return None,
            (0, _) => true,
            (_, 0) => false,
            _ => !only_new && self.rng.below(2) == 1,
        };
        let mut factor = 1.0;
        loop {
            let Some(entry) = self.any_of_a_bucket(from_tried, networks) else { continue };
            let chance = factor * entry.chance(now_s) * f64::from(CHANCE_ONE);
            if (self.rng.below(CHANCE_ONE as usize) as f64) < chance {
                tracing::debug!(
                    target: "addrman",
                    "Selected {} from {}",
                    entry.address.endpoint,
                    if from_tried { "tried" } else { "new" }
                );
                return Some((entry.address, entry.try_s));
            }
            factor *= 1.2;
        }
    }

    /// Random entry of a random bucket, if any.
    fn any_of_a_bucket(&mut self, from_tried: bool, networks: &[NetworkKind]) -> Option<Entry> {
        let bucket = self.rng.below(if from_tried { TRIED_BUCKETS } else { NEW_BUCKETS });
        let start = self.rng.below(BUCKET_SIZE);
        let places = if from_tried { &self.tried[bucket] } else { &self.new[bucket] };
        let ids = (0..BUCKET_SIZE).map(|step| places[(start + step) % BUCKET_SIZE]);
        let mut held = ids.filter(|id| *id != NONE).filter_map(|id| self.entries.get(&id));
        held.find(|entry| networks.is_empty() || networks.contains(&entry.host().network()))
            .copied()
    }

    /// Random addresses without terrible ones.
    pub(super) fn list(&mut self, wanted: &Wanted, now_s: i64) -> Vec<PeerAddress> {
        let mut count = self.all.len();
        if wanted.percent_max != 0 {
            count = wanted.percent_max.min(100) * count / 100;
        }
        if wanted.count_max != 0 {
            count = count.min(wanted.count_max);
        }
        let mut found = Vec::with_capacity(count);
        for position in 0..self.all.len() {
            if found.len() == count {
                break;
            }
            let other = position + self.rng.below(self.all.len() - position);
            self.swap(position, other);
            let Some(entry) = self.entries.get(&self.all[position]) else { continue };
            let is_elsewhere =
                wanted.network.is_some_and(|network| entry.host().network_class() != network);
            if !is_elsewhere && !entry.is_terrible(now_s) {
                found.push(entry.address);
            }
        }
        tracing::debug!(target: "addrman", "GetAddr returned {} random addresses", found.len());
        found
    }

    /// Decides collisions among tried addresses whose test has a result.
    pub(super) fn resolve_collisions(&mut self, now_s: i64) {
        let ids: Vec<Id> = self.collisions.iter().copied().collect();
        for id in ids {
            if self.is_resolved(id, now_s) {
                self.collisions.remove(&id);
            }
        }
    }

    fn is_resolved(&mut self, id: Id, now_s: i64) -> bool {
        let Some(newer) = self.entries.get(&id).copied() else { return true };
        if newer.is_tried || !newer.host().is_valid() {
            return true;
        }
        let Some(older) = self.holder_for(&newer) else {
            // The position is free by now.
            self.good(&newer.address.endpoint, false, now_s);
            return true;
        };
        if now_s - older.success_s < REPLACEMENT_S {
            return true;
        }
        let is_replaced = if now_s - older.try_s < REPLACEMENT_S {
            // The attempt had time to complete.
            now_s - older.try_s > ANSWER_S
        } else {
            // The test was not possible in time.
            now_s - newer.success_s > TEST_WINDOW_S
        };
        if is_replaced {
            tracing::debug!(
                target: "addrman",
                "Replacing {} with {} in tried table",
                older.address.endpoint, newer.address.endpoint
            );
            self.good(&newer.address.endpoint, false, now_s);
        }
        is_replaced
    }

    /// Tried address to test, of a random collision, and the time of its last attempt.
    pub(super) fn select_collision(&mut self) -> Option<(PeerAddress, i64)> {
        let index = self.rng.below(self.collisions.len());
        let id = *self.collisions.iter().nth(index)?;
        let Some(newer) = self.entries.get(&id).copied() else {
            self.collisions.remove(&id);
            return None;
        };
        self.holder_for(&newer).map(|older| (older.address, older.try_s))
    }

    fn holder_for(&self, newer: &Entry) -> Option<Entry> {
        let (bucket, place) = self.location(newer, false);
        self.entries.get(&self.tried[bucket][place]).copied()
    }
}

/// Core uses 30 random bits.
const CHANCE_ONE: u32 = 1 << 30;
/// Core `addrman.cpp`, `ADDRMAN_REPLACEMENT`, `ADDRMAN_TEST_WINDOW`.
const REPLACEMENT_S: i64 = 4 * 3600;
const TEST_WINDOW_S: i64 = 40 * 60;
const ANSWER_S: i64 = 60;
