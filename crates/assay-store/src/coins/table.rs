//! The index of the coin cache, from a hash to the locator of a record.
//!
//! One `u64` per slot: the upper 31 bits are the top of the salted hash, the lower 33 the record's locator. Collisions use the
//! next slots. Slots are sorted by their hash bits, so a search stops at the first greater one, a deletion shifts back instead of
//! leaving a tombstone, and growth is one sequential merge. The table does not wrap around: the array has spare slots at its end.

use super::pages::Pages;

/// Bits of the hash that a slot keeps.
const TAG_BITS: u32 = 31;

pub(super) const LOCATOR_BITS: u32 = 64 - TAG_BITS;

pub(super) const LOCATOR_MASK: u64 = (1 << LOCATOR_BITS) - 1;

/// Slots after the last home slot. A run of full slots longer than this is improbable; in that case the table grows.
const SPARE_SLOTS: usize = 1024;

const SIZE_LOG2_MIN: u32 = 10;

/// Slots released at a time while a larger table receives their contents.
const RELEASE_SLOTS: usize = 1 << 18;

/// The table grows when more than 13/16 of the home slots are full: short runs, under 10 bytes per coin at best.
const LOAD_NUMERATOR: usize = 13;
const LOAD_DENOMINATOR: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoMemory;

/// Sorted open addressing; see the module.
pub(super) struct Table {
    slots: Pages<u64>,
    size_log2: u32,
    length: usize,
}

impl Table {
    pub(super) fn new() -> Result<Self, NoMemory> {
        Self::with_size_log2(SIZE_LOG2_MIN)
    }

    /// A table for `entries` entries without growth.
    pub(super) fn with_room_for(entries: usize) -> Result<Self, NoMemory> {
        let mut size_log2 = SIZE_LOG2_MIN;
        while max_length(size_log2) < entries {
            size_log2 += 1;
        }
        Self::with_size_log2(size_log2)
    }

    fn with_size_log2(size_log2: u32) -> Result<Self, NoMemory> {
        Self::with_slots(size_log2, slots_of(size_log2))
    }

    fn with_slots(size_log2: u32, slots: usize) -> Result<Self, NoMemory> {
        let slots = Pages::zeroed(slots).ok_or(NoMemory)?;
        Ok(Self { slots, size_log2, length: 0 })
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<u64>()
    }

    /// Bytes of the table with `more` additional entries.
    pub(super) fn bytes_with(&self, more: usize) -> usize {
        let mut size_log2 = self.size_log2;
        while max_length(size_log2) < self.length + more {
            size_log2 += 1;
        }
        self.bytes().max(slots_of(size_log2) * size_of::<u64>())
    }

    /// First slot of a search for `hash`, for a prefetch.
    #[inline]
    pub(super) fn home_slot(&self, hash: u64) -> &u64 {
        &self.slots[self.home(hash)]
    }

    /// Locator of the first slot with the hash bits of `hash`, most likely the right one.
    #[inline]
    pub(super) fn first_candidate(&self, hash: u64) -> Option<u64> {
        self.find(hash, |_| true).map(|(_, locator)| locator)
    }

    /// Slot and locator of the record that satisfies `is_it`, among those with the hash bits of `hash`.
    #[inline]
    pub(super) fn find(
        &self,
        hash: u64,
        mut is_it: impl FnMut(u64) -> bool,
    ) -> Option<(usize, u64)> {
        let tag = hash >> LOCATOR_BITS;
        let mut at = self.home(hash);
        loop {
            let slot = *self.slots.get(at)?;
            // An empty slot is 0 and no locator is 0, so an empty slot cannot match the tag with a valid locator.
            if slot == 0 || slot >> LOCATOR_BITS > tag {
                return None;
            }
            if slot >> LOCATOR_BITS == tag && is_it(slot & LOCATOR_MASK) {
                return Some((at, slot & LOCATOR_MASK));
            }
            at += 1;
        }
    }

    /// Inserts a nonzero locator under `hash`. If the growth of the table fails, nothing changed.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, locator: u64) -> Result<(), NoMemory> {
        debug_assert!(locator != 0 && locator <= LOCATOR_MASK);
        if self.length >= max_length(self.size_log2) {
            self.grow()?;
        }
        let slot = (hash & !LOCATOR_MASK) | locator;
        while !self.try_insert(slot) {
            self.grow()?;
        }
        self.length += 1;
        Ok(())
    }

    #[inline]
    fn try_insert(&mut self, slot: u64) -> bool {
        let mut at = self.home(slot);
        while at < self.slots.len() && self.slots[at] != 0 && self.slots[at] < slot {
            at += 1;
        }
        let Some(free) = self.slots[at..].iter().position(|&s| s == 0) else { return false };
        self.slots.copy_within(at..at + free, at + 1);
        self.slots[at] = slot;
        true
    }

    /// Changes the locator of the entry `at`, from [`Table::find`].
    #[inline]
    pub(super) fn set_locator(&mut self, at: usize, hash: u64, locator: u64) {
        // Entries with equal hash bits are sorted by locator; keep that.
        if self.slots[at] & LOCATOR_MASK != locator {
            self.remove(at);
            // The search for a free slot ends at the latest at the slot just freed.
            let entered = self.try_insert((hash & !LOCATOR_MASK) | locator);
            assert!(entered, "there is room for what was there");
            self.length += 1;
        }
    }

    /// Removes the entry `at`, from [`Table::find`].
    #[inline]
    pub(super) fn remove(&mut self, at: usize) {
        let mut hole = at;
        while let Some(&next) = self.slots.get(hole + 1) {
            // An entry in its home slot must stay, and all entries after it.
            if next == 0 || self.home(next) == hole + 1 {
                break;
            }
            self.slots[hole] = next;
            hole += 1;
        }
        self.slots[hole] = 0;
        self.length -= 1;
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        home_of(hash, self.size_log2)
    }

    /// Doubles the table; old slots are released on the way, so that both never take more memory than the new one.
    fn grow(&mut self) -> Result<(), NoMemory> {
        assert!(self.size_log2 < TAG_BITS, "the arena is full long before the table");
        let size_log2 = self.size_log2 + 1;
        // A run may overflow the spare slots: then allocate as many as it needs.
        let occupied = self.slots.iter().filter(|&&slot| slot != 0);
        let end = occupied.fold(0, |next, &slot| home_of(slot, size_log2).max(next) + 1);
        let larger = Self::with_slots(size_log2, end.max(slots_of(size_log2)))?;
        let mut old = std::mem::replace(self, larger);
        self.length = old.length;
        let mut next = 0;
        for start in (0..old.slots.len()).step_by(RELEASE_SLOTS) {
            let part = start..(start + RELEASE_SLOTS).min(old.slots.len());
            // This part will fill two of the same length; the ones after them should be populated by then.
            self.slots.expect(next + 2 * RELEASE_SLOTS..next + 4 * RELEASE_SLOTS);
            for &slot in old.slots[part.clone()].iter().filter(|&&slot| slot != 0) {
                let at = home_of(slot, size_log2).max(next);
                self.slots[at] = slot;
                next = at + 1;
            }
            old.slots.release(part);
        }
        Ok(())
    }
}

/// First slot of a search for a hash, or for a slot with its bits.
#[inline]
fn home_of(hash: u64, size_log2: u32) -> usize {
    (hash >> (64 - size_log2)) as usize
}

fn slots_of(size_log2: u32) -> usize {
    (1 << size_log2) + SPARE_SLOTS
}

fn max_length(size_log2: u32) -> usize {
    (1usize << size_log2) / LOAD_DENOMINATOR * LOAD_NUMERATOR
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn check(table: &Table, model: &BTreeSet<(u64, u64)>) {
        let entries: Vec<u64> = table.slots.iter().copied().filter(|&s| s != 0).collect();
        let expected: Vec<u64> =
            model.iter().map(|&(hash, locator)| (hash & !LOCATOR_MASK) | locator).collect();
        let mut sorted = expected.clone();
        sorted.sort_unstable();
        assert_eq!(entries, sorted);
        assert_eq!(table.len(), model.len());
        for &(hash, locator) in model {
            let found = table.find(hash, |l| l == locator);
            assert_eq!(found.map(|(_, l)| l), Some(locator));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        // Few distinct hash bits, most at the end of the table: long runs, equal tags, use of spare slots.
        #[test]
        fn agrees_with_a_map(steps in proptest::collection::vec((any::<u8>(), any::<bool>(), any::<bool>()), 0..1500)) {
            let mut table = Table::new().expect("there is memory");
            let mut model = BTreeSet::new();
            for (i, (byte, high, remove)) in steps.into_iter().enumerate() {
                let base = if high { u64::MAX << 40 } else { 0 };
                let hash = base | u64::from(byte % 32) << 33;
                if remove {
                    if let Some(&(hash, locator)) = model.range((hash, 0)..).next() {
                        let (at, _) = table.find(hash, |l| l == locator).expect("the model has it");
                        table.remove(at);
                        model.remove(&(hash, locator));
                    }
                } else {
                    let locator = i as u64 + 1;
                    table.insert(hash, locator).expect("there is memory");
                    model.insert((hash, locator));
                }
            }
            check(&table, &model);
        }
    }

    #[test]
    fn grows_in_order() {
        let mut table = Table::new().expect("there is memory");
        let mut model = BTreeSet::new();
        for i in 1..20_000u64 {
            let hash = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            table.insert(hash, i).expect("there is memory");
            model.insert((hash, i));
        }
        check(&table, &model);
        assert_eq!(table.find(5, |_| true), None);
        assert!(table.bytes() < 20_000 * 8 * 4);
    }
}
