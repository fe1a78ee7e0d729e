//! Consistency check of the tables (Core `addrman.cpp`, `CheckAddrman`, with its fault numbers).

use std::collections::BTreeMap;

use super::entry::{Entry, NEW_PER_ADDRESS};
use super::tables::{Count, Id, NONE, Tables};

impl Tables {
    /// Core's number of the first fault found.
    pub(super) fn fault(&self) -> Option<i32> {
        let total = self.count(None);
        if self.all.len() != total.new + total.tried {
            return Some(-7);
        }
        let mut counts = BTreeMap::<_, Count>::new();
        for (id, entry) in &self.entries {
            let count = counts.entry(entry.host().network()).or_default();
            if entry.is_tried {
                count.tried += 1;
            } else {
                count.new += 1;
            }
            if let Some(fault) = self.fault_of(*id, entry) {
                return Some(fault);
            }
        }
        let of_all = |pick: fn(&Count) -> usize| counts.values().map(pick).sum::<usize>();
        if of_all(|count| count.tried) != total.tried {
            return Some(-9);
        }
        if of_all(|count| count.new) != total.new {
            return Some(-10);
        }
        let faults = [self.fault_of_tried(), self.fault_of_new()];
        if let Some(fault) = faults.into_iter().flatten().next() {
            return Some(fault);
        }
        if self.key == [0; 32] {
            return Some(-16);
        }
        let mut counted = self.counts.iter();
        let is_right = counted
            .all(|(network, count)| counts.get(network).copied().unwrap_or_default() == *count);
        (!is_right).then_some(-21)
    }

    fn fault_of(&self, id: Id, entry: &Entry) -> Option<i32> {
        if entry.is_tried && entry.success_s == 0 {
            return Some(-1);
        }
        if entry.is_tried && entry.references > 0 {
            return Some(-2);
        }
        if entry.references > NEW_PER_ADDRESS {
            return Some(-3);
        }
        if !entry.is_tried && entry.references == 0 {
            return Some(-4);
        }
        if self.find(&entry.address.endpoint) != Some(id) {
            return Some(-5);
        }
        if self.all.get(entry.position) != Some(&id) {
            return Some(-14);
        }
        if entry.try_s < 0 {
            return Some(-6);
        }
        (entry.success_s < 0).then_some(-8)
    }

    fn fault_of_tried(&self) -> Option<i32> {
        let mut left = self.entries.values().filter(|entry| entry.is_tried).count();
        for (bucket, place, id) in held(&self.tried) {
            let entry = self.entries.get(&id).filter(|entry| entry.is_tried);
            let Some(entry) = entry else { return Some(-11) };
            if entry.tried_bucket(&self.key) != bucket {
                return Some(-17);
            }
            if entry.place(&self.key, false, bucket) != place {
                return Some(-18);
            }
            let Some(fewer) = left.checked_sub(1) else { return Some(-11) };
            left = fewer;
        }
        (left > 0).then_some(-13)
    }

    fn fault_of_new(&self) -> Option<i32> {
        let new = self.entries.iter().filter(|(_, entry)| !entry.is_tried);
        let mut left: BTreeMap<Id, usize> =
            new.map(|(id, entry)| (*id, entry.references)).collect();
        for (bucket, place, id) in held(&self.new) {
            let Some(references) = left.get_mut(&id).filter(|references| **references > 0) else {
                return Some(-12);
            };
            *references -= 1;
            let entry = self.entries.get(&id)?;
            if entry.place(&self.key, true, bucket) != place {
                return Some(-19);
            }
        }
        left.values().any(|references| *references > 0).then_some(-15)
    }
}

/// Bucket, position and id of each entry.
pub(super) fn held(buckets: &super::tables::Buckets) -> impl Iterator<Item = (usize, usize, Id)> {
    buckets.iter().enumerate().flat_map(|(bucket, places)| {
        let held = places.iter().enumerate().filter(|(_, id)| **id != NONE);
        held.map(move |(place, id)| (bucket, place, *id))
    })
}
