//! Keeping the cache within its limit: what it takes, when to act, and which coins go first.
//!
//! Between two blocks the cache makes room for one more ([`CoinStore::make_room`]). As long as there is enough in it that
//! the disk has too, that goes first, oldest coins before younger ones, because young coins are the likeliest to be spent.
//! What was read from the disk lately was asked for, and is spared once.
//! Only when most of it is changes does the cache ask for a flush. So the disk sees few and large batches, and most coins that
//! die young never.

use std::path::PathBuf;

use super::arena::{ARENA_BYTES_MAX, Arena, DIRTY, LOADED, Record};
use super::flush::CHANGE_BYTES;
use super::snapshot::SNAPSHOT_BYTES;
use super::table::Table;
use super::{CoinError, CoinStore};
use crate::defect::{Point, Whole, point};

/// What the cache can be told to keep to at most: half of what it can address. The other half is for the largest block
/// there can be, of 4 GiB (positions in block files have 32 bits), whose outputs of nine bytes take 56 each in the cache.
/// So [`CoinError::CacheFull`] cannot happen as long as someone makes room after every block.
pub(super) const CACHE_BYTES_MAX: usize = ARENA_BYTES_MAX / 2;

/// What the coins take, in memory and on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoinUsage {
    pub coins: usize,
    /// Changes that the next flush writes.
    pub dirty: usize,
    /// Bytes of the records and of the table.
    pub bytes: usize,
    /// Bytes that a flush takes besides, while it sorts the changes.
    pub flush_bytes: usize,
    /// Limit of both together.
    pub bytes_max: usize,
    pub coins_on_disk: u64,
    pub bytes_on_disk: u64,
}

impl CoinUsage {
    /// Whether [`CoinStore::snapshot`] can copy the changes within the limit, or at least in the buffers that are set aside
    /// beside it for writing tables.
    pub fn has_room_for_snapshot(&self) -> bool {
        let copy = self.dirty * SNAPSHOT_BYTES;
        copy <= BUFFER_BYTES || self.bytes + self.flush_bytes + copy <= self.bytes_max
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// There was room for another block.
    Enough,
    /// So many coins went that the disk has too.
    Evicted(u64),
    /// There is little but changes in the cache: write them out ([`commit`](crate::commit)).
    FlushDue,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    bytes_before: usize,
    entries_before: usize,
    /// The most of late.
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

    /// The first damaged place of the coins on disk, file and offset: reads all of it.
    pub fn find_damage(&self) -> Option<(PathBuf, u64)> {
        self.tier.find_damage()
    }

    /// Makes sure that another block like the last ones fits in, as far as that is possible without writing. Call it after
    /// every block that was connected or disconnected.
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

    /// Whether that many coins of common size can be loaded before the next block.
    pub fn has_room_to_load(&self, coins: usize) -> bool {
        let bytes = self.arena.used_bytes() + coins * LOADED_BYTES + self.table.bytes_with(coins);
        bytes + self.dirty * CHANGE_BYTES <= self.cache_bytes_max
    }

    /// After a flush everything may go; half of the limit stays, so that it is some time until the next.
    pub(super) fn evict_after_flush(&mut self) -> u64 {
        if self.has_room() { 0 } else { self.evict(self.cache_bytes_max / 2).unwrap_or(0) }
    }

    /// Whether another block like the last ones, and a flush after it, stay within the limit.
    fn has_room(&self) -> bool {
        // One block that is out of proportion must not keep the cache empty for long.
        let most = self.cache_bytes_max / 4;
        let (bytes, entries) = (self.pace.bytes.min(most), self.pace.entries.min(most / 64));
        let changes = (self.dirty + entries) * CHANGE_BYTES;
        self.arena.used_bytes() + bytes + self.table.bytes_with(entries) + changes
            <= self.cache_bytes_max
    }

    /// What evicting all clean coins would give back, about.
    fn reclaimable_bytes(&self) -> usize {
        let live = self.arena.live_bytes();
        let wasted = self.arena.used_bytes() - live;
        let clean = self.table.len() - self.dirty;
        // 128 bits: bytes times coins may exceed 64.
        let share = live as u128 * clean as u128 / (self.table.len() as u128).max(1);
        wasted + share as usize
    }

    /// Moves the changes, and of the clean coins the youngest that fit into `budget` bytes with them, to a new arena and
    /// table, whose memory grows as that of the old ones is given back. Returns the number of coins dropped; `None`, and
    /// nothing changed, where the system has no memory for another table.
    fn evict(&mut self, budget: usize) -> Option<u64> {
        let selection = self.select(budget);
        let mut counted = selection;
        let staying = self.arena.iter().filter(|(_, record)| counted.takes(record)).count();
        let dropped = self.table.len() - staying;
        // Its memory comes with use, after the old table's has been given back.
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

    /// Chooses what stays when the cache may keep `budget` bytes.
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

/// What stays in an eviction; decides the same each time it goes over the same records.
#[derive(Clone, Copy)]
struct Selection {
    /// Clean coins of these heights and younger ones stay.
    least_bucket: usize,
    /// Bytes left for some of the next older ones.
    room: usize,
}

impl Selection {
    /// Changes must stay, and what was loaded lately may.
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

/// Heights that are evicted together.
const HEIGHTS_PER_BUCKET: u32 = 4;

/// Heights beyond any chain share a bucket.
const BUCKET_MAX: u32 = 1 << 20;

/// What a snapshot may take of the buffers for writing tables.
const BUFFER_BYTES: usize = 16 << 20;

/// What a loaded coin takes, script included, on average at worst.
const LOADED_BYTES: usize = 128;

/// What a coin's slot in the table takes at worst.
const SLOT_BYTES: usize = 20;
