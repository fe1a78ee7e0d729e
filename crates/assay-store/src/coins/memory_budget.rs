//! Memory budget of the coin cache: usage, eviction and flush decisions.
//!
//! Between two blocks [`CoinStore::make_room`] makes room for one more. As long as enough coins in the cache are also on disk, it
//! evicts these, oldest first, because young coins are most likely to be spent. Coins read from the disk lately are spared once.
//! It requests a flush only when most of the cache is changes. So the disk receives few and large batches, and most short-lived
//! coins are never written.

use std::path::PathBuf;

use super::arena::{ARENA_BYTES_MAX, Arena, DIRTY, LOADED, Record};
use super::flush::CHANGE_BYTES;
use super::snapshot::SNAPSHOT_BYTES;
use super::table::Table;
use super::{CoinError, CoinStore};
use crate::defect::{Point, Whole, point};

/// Upper bound of the cache limit: half of the addressable size. The other half is for the largest possible block, of 4 GiB
/// (positions in block files have 32 bits), whose outputs of nine bytes take 56 each in the cache. So [`CoinError::CacheFull`]
/// cannot happen if `make_room` runs after every block.
pub(super) const CACHE_BYTES_MAX: usize = ARENA_BYTES_MAX / 2;

/// Usage of the coins, in memory and on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoinUsage {
    pub coins: usize,
    /// Changes that the next flush writes.
    pub dirty: usize,
    /// Bytes of the records and of the table.
    pub bytes: usize,
    /// Additional bytes of a flush, for the sort of the changes.
    pub flush_bytes: usize,
    /// Limit of `bytes` and `flush_bytes` together.
    pub bytes_max: usize,
    pub coins_on_disk: u64,
    pub bytes_on_disk: u64,
}

impl CoinUsage {
    /// True if [`CoinStore::snapshot`] can copy the changes within the limit, or within the separate buffers for writing tables.
    pub fn has_room_for_snapshot(&self) -> bool {
        let copy = self.dirty * SNAPSHOT_BYTES;
        copy <= BUFFER_BYTES || self.bytes + self.flush_bytes + copy <= self.bytes_max
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// The cache has room for another block.
    Enough,
    /// Number of evicted coins, all of which are on disk.
    Evicted(u64),
    /// The cache holds little except changes: write them out ([`commit`](crate::commit)).
    FlushDue,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    bytes_before: usize,
    entries_before: usize,
    /// Recent maximum.
    bytes: usize,
    entries: usize,
}

impl Pace {
    fn note(&mut self, bytes: usize, entries: usize) {
        let fade = |most: usize| most - most / 8;
        self.bytes = fade(self.bytes).max(bytes.saturating_sub(self.bytes_before));
        self.entries = fade(self.entries).max(entries.saturating_sub(self.entries_before));
        self.rest(bytes, entries);
    }

    fn rest(&mut self, bytes: usize, entries: usize) {
        (self.bytes_before, self.entries_before) = (bytes, entries);
    }
}

impl CoinStore {
    pub fn usage(&self) -> CoinUsage {
        CoinUsage {
            coins: self.unspent,
            dirty: self.dirty,
            bytes: self.cache_bytes(),
            flush_bytes: self.dirty * CHANGE_BYTES,
            bytes_max: self.cache_bytes_max,
            coins_on_disk: self.tier.coins_estimate(),
            bytes_on_disk: self.tier.disk_bytes(),
        }
    }

    /// The first damaged place of the coins on disk, file and offset. Reads all of it.
    pub fn find_damage(&self) -> Option<(PathBuf, u64)> {
        self.tier.find_damage()
    }

    /// Makes room for another block like the last ones, if possible without a flush. Call after each connection or disconnection.
    #[must_use]
    pub fn make_room(&mut self) -> Room {
        self.pace.note(self.arena.live_bytes(), self.table.len());
        if self.has_room() {
            return Room::Enough;
        }
        if self.reclaimable_bytes() < self.cache_bytes_max / 4 {
            return Room::FlushDue;
        }
        let Some(evicted) = self.evict(self.cache_bytes_max / 8 * 5) else { return Room::FlushDue };
        if self.has_room() { Room::Evicted(evicted) } else { Room::FlushDue }
    }

    /// True if `coins` coins of common size can be loaded before the next block.
    pub fn has_room_to_load(&self, coins: usize) -> bool {
        let bytes = self.arena.used_bytes() + coins * LOADED_BYTES + self.table.bytes_with(coins);
        bytes + self.dirty * CHANGE_BYTES <= self.cache_bytes_max
    }

    /// After a flush every coin is evictable; half of the limit stays, to delay the next flush.
    pub(super) fn evict_after_flush(&mut self) -> u64 {
        if self.has_room() { 0 } else { self.evict(self.cache_bytes_max / 2).unwrap_or(0) }
    }

    /// True if another block like the last ones, and a flush after it, stay within the limit.
    fn has_room(&self) -> bool {
        // One block of extreme size must not keep the cache empty for long.
        let most = self.cache_bytes_max / 4;
        let (bytes, entries) = (self.pace.bytes.min(most), self.pace.entries.min(most / 64));
        let changes = (self.dirty + entries) * CHANGE_BYTES;
        self.arena.used_bytes() + bytes + self.table.bytes_with(entries) + changes
            <= self.cache_bytes_max
    }

    /// Estimate of the bytes that an eviction of all clean coins would free.
    fn reclaimable_bytes(&self) -> usize {
        let live = self.arena.live_bytes();
        let wasted = self.arena.used_bytes() - live;
        let clean = self.table.len() - self.dirty;
        // 128 bits: bytes times coins may exceed 64.
        let share = live as u128 * clean as u128 / (self.table.len() as u128).max(1);
        wasted + share as usize
    }

    /// Moves the changes, and the youngest clean coins that fit into `budget` bytes, to a new arena and table. Their memory grows
    /// as the memory of the old ones is released. Returns the number of evicted coins; `None`, and nothing changed, if the
    /// allocation of another table fails.
    fn evict(&mut self, budget: usize) -> Option<u64> {
        let selection = self.select(budget);
        let mut counted = selection;
        let staying = self.arena.iter().filter(|(_, record)| counted.takes(record)).count();
        let dropped = self.table.len() - staying;
        // Its pages are touched after those of the old table are released.
        let table = Table::with_room_for(staying).ok()?;
        let _whole = Whole::begin("the coin cache");
        let old = std::mem::replace(&mut self.arena, Arena::new());
        self.table = table;
        point(Point::CoinEvict);
        let mut selection = selection;
        old.drain(|record| {
            if selection.takes(&record) {
                let outpoint = record.outpoint();
                let flags = record.flags() & !LOADED;
                let moved = self.arena.add(&outpoint, record.coin(), flags);
                let locator = moved.expect("the system has memory for a part of what was there");
                let entered = self.table.insert(self.hash(&outpoint), locator);
                entered.expect("the table has room for all that stay");
            }
        });
        self.unspent -= dropped;
        self.is_complete &= dropped == 0;
        self.start_pace();
        Some(dropped as u64)
    }

    pub(super) fn start_pace(&mut self) {
        self.pace.rest(self.arena.live_bytes(), self.table.len());
    }

    /// Selects the coins to keep in `budget` bytes.
    fn select(&self, budget: usize) -> Selection {
        let mut staying_bytes = 0;
        let mut bytes_by_age: Vec<usize> = Vec::new();
        for (_, record) in self.arena.iter() {
            let bytes = record.bytes() + SLOT_BYTES;
            if Selection::is_exempt(&record) {
                staying_bytes += bytes;
                continue;
            }
            let bucket = bucket_of(record.height());
            if bucket >= bytes_by_age.len() {
                bytes_by_age.resize(bucket + 1, 0);
            }
            bytes_by_age[bucket] += bytes;
        }
        let mut room = budget.saturating_sub(staying_bytes);
        let mut least_bucket = bytes_by_age.len();
        while let Some(bucket) = least_bucket.checked_sub(1)
            && let Some(rest) = room.checked_sub(bytes_by_age[bucket])
        {
            least_bucket = bucket;
            room = rest;
        }
        Selection { least_bucket, room }
    }

    #[cold]
    pub(super) fn full(&self) -> CoinError {
        CoinError::CacheFull { bytes: self.cache_bytes() }
    }
}

/// Coins kept by an eviction. Repeated passes over the same records give the same result.
#[derive(Clone, Copy)]
struct Selection {
    /// Clean coins of these and greater heights stay.
    least_bucket: usize,
    /// Bytes left for coins of the next older bucket.
    room: usize,
}

impl Selection {
    /// True for changes and recently loaded coins.
    fn is_exempt(record: &Record<'_>) -> bool {
        record.flags() & (DIRTY | LOADED) != 0
    }

    fn takes(&mut self, record: &Record<'_>) -> bool {
        let bucket = bucket_of(record.height());
        if Self::is_exempt(record) || bucket >= self.least_bucket {
            return true;
        }
        if bucket + 1 < self.least_bucket {
            return false;
        }
        let rest = self.room.checked_sub(record.bytes() + SLOT_BYTES);
        self.room = rest.unwrap_or(self.room);
        rest.is_some()
    }
}

fn bucket_of(height: u32) -> usize {
    (height / HEIGHTS_PER_BUCKET).min(BUCKET_MAX) as usize
}

/// Number of heights evicted together.
const HEIGHTS_PER_BUCKET: u32 = 4;

/// Heights beyond any chain share this bucket.
const BUCKET_MAX: u32 = 1 << 20;

/// Share of the buffers for writing tables that a snapshot may use.
const BUFFER_BYTES: usize = 16 << 20;

/// Worst average size of a loaded coin, script included.
const LOADED_BYTES: usize = 128;

/// Worst size of a coin's slot in the table.
const SLOT_BYTES: usize = 20;
