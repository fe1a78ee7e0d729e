//! Writing the changes down, and what stays in memory afterwards.

use std::collections::BTreeMap;
use std::time::Instant;

use assay_wire::BlockHash;

use crate::codec;

use super::arena::{Arena, DIRTY, Record, SPENT};
use super::hints::prefetch;
use super::table::Table;
use super::tier::{CoinTier, MARKER_KEY, TierBatch, coin_key};
use super::{CoinError, CoinStore, Marker};

/// What a flush did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlushStats {
    /// Coins written.
    pub added: u64,
    /// Coins deleted, some of which the disk may not have had.
    pub deleted: u64,
    /// Bytes of keys and values handed to the tier.
    pub bytes: u64,
    /// Coins dropped from the cache, to keep it within its limit.
    pub evicted: u64,
    /// Coins still cached.
    pub kept: u64,
    /// Time taken.
    pub elapsed_ns: u64,
}

/// A changed record, with the start of its key, which decides nearly all comparisons without touching the record.
#[derive(Clone, Copy)]
struct Change {
    txid_high: u64,
    txid_next: u32,
    vout: u32,
    locator: u64,
}

impl Change {
    fn new(locator: u64, record: &Record<'_>) -> Self {
        let outpoint = record.outpoint();
        let (high, rest) = outpoint.txid.0.split_first_chunk::<8>().expect("a txid has 32 bytes");
        let (next, _) = rest.split_first_chunk::<4>().expect("a txid has 32 bytes");
        Self {
            txid_high: u64::from_be_bytes(*high),
            txid_next: u32::from_be_bytes(*next),
            vout: outpoint.vout,
            locator,
        }
    }

    fn txid_start(&self) -> (u64, u32) {
        (self.txid_high, self.txid_next)
    }
}

impl CoinStore {
    /// Writes all changes and the marker `(height, hash)` as one atomic batch that survives a power cut when this
    /// returns. Sync the blocks and the index first, or use [`commit`](crate::commit), which does.
    ///
    /// Afterwards the cache is kept if it is at most half of its limit, and otherwise cut to its youngest coins, because
    /// young coins are the likeliest to be spent.
    ///
    /// # Errors
    /// A failure of the tier; the changes are still in memory then and can be flushed again.
    pub fn flush(&mut self, height: u32, hash: &BlockHash) -> Result<FlushStats, CoinError> {
        let start = Instant::now();
        let mut stats = FlushStats::default();
        let marker = Marker { height, hash: *hash };
        let mut batch = self.tier.batch(self.dirty + 1)?;
        batch.put(MARKER_KEY, &write_marker(&marker))?;
        let mut value = Vec::with_capacity(64);
        self.for_each_change(|record| write_change(&mut *batch, record, &mut value, &mut stats))?;
        batch.commit()?;
        self.marker = Some(marker);
        self.forget_changes();
        stats.evicted = self.shrink();
        stats.kept = self.unspent as u64;
        stats.elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(stats)
    }

    /// Visits the changed records in the order of their keys.
    pub(super) fn for_each_change<E>(
        &self,
        mut visit: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut changes = Vec::with_capacity(self.dirty);
        let dirty = self.arena.iter().filter(|(_, record)| record.flags() & DIRTY != 0);
        changes.extend(dirty.map(|(locator, record)| Change::new(locator, &record)));
        changes.sort_unstable_by_key(|change| (change.txid_start(), change.vout));
        let ahead: Vec<u64> = changes.iter().map(|change| change.locator).collect();
        let mut done = 0;
        for run in changes.chunk_by_mut(|a, b| a.txid_start() == b.txid_start()) {
            // Different txids with 12 equal leading bytes take deliberate work to find; then the order above is not enough.
            let txid = |change: &Change| self.arena.record(change.locator).outpoint().txid;
            if run.len() > 1 && run.iter().any(|change| txid(change) != txid(&run[0])) {
                run.sort_unstable_by_key(|change| {
                    coin_key(&self.arena.record(change.locator).outpoint())
                });
            }
            for change in &*run {
                if let Some(&later) = ahead.get(done + PREFETCH_AHEAD) {
                    prefetch(self.arena.start(later));
                    prefetch(self.arena.end_of_head(later));
                }
                visit(self.arena.record(change.locator))?;
                done += 1;
            }
        }
        Ok(())
    }

    /// All changes are on disk: drops the graves and marks the rest clean.
    fn forget_changes(&mut self) {
        let changed: Vec<(u64, u32)> = self
            .arena
            .iter()
            .filter(|(_, record)| record.flags() & DIRTY != 0)
            .map(|(locator, record)| (locator, record.flags()))
            .collect();
        for (locator, flags) in changed {
            if flags & SPENT == 0 {
                self.arena.set_flags(locator, 0);
                continue;
            }
            let hash = self.hash(&self.arena.record(locator).outpoint());
            let (slot, _) =
                self.table.find(hash, |l| l == locator).expect("every record is in the table");
            self.table.remove(slot);
            self.arena.free(locator);
        }
        self.dirty = 0;
    }

    /// Brings a clean cache down to half of its limit if it exceeds that; returns the number of coins dropped.
    fn shrink(&mut self) -> u64 {
        let budget = self.cache_bytes_max / 2;
        let wasteful = self.arena.used_bytes() > 2 * self.arena.live_bytes() + WASTE_BYTES_MAX;
        if self.cache_bytes() <= budget && !wasteful {
            return 0;
        }
        let youngest = self.height_that_fits(budget);
        let before = self.unspent;
        let old = std::mem::replace(&mut self.arena, Arena::new());
        self.table = Table::new();
        self.unspent = 0;
        old.drain(|record| {
            if youngest.is_some_and(|height| record.height() >= height) {
                let outpoint = record.outpoint();
                // A clean coin that finds no room is on disk anyway.
                if let Some(locator) = self.arena.add(&outpoint, record.coin(), 0) {
                    let hash = self.hash(&outpoint);
                    self.table.insert(hash, locator);
                    self.unspent += 1;
                }
            }
        });
        (before - self.unspent) as u64
    }

    /// The least height such that all coins from it on fit into `budget` bytes; `None` if not even the highest do.
    fn height_that_fits(&self, budget: usize) -> Option<u32> {
        let mut bytes_by_height: BTreeMap<u32, usize> = BTreeMap::new();
        for (_, record) in self.arena.iter() {
            *bytes_by_height.entry(record.height()).or_default() += record.bytes() + SLOT_BYTES;
        }
        let mut bytes = 0;
        let fits = |&(_, &of_height): &(&u32, &usize)| {
            bytes += of_height;
            bytes <= budget
        };
        bytes_by_height.iter().rev().take_while(fits).last().map(|(&height, _)| height)
    }
}

fn write_change(
    batch: &mut dyn TierBatch,
    record: Record<'_>,
    value: &mut Vec<u8>,
    stats: &mut FlushStats,
) -> Result<(), CoinError> {
    let key = coin_key(&record.outpoint());
    stats.bytes += key.len() as u64;
    if record.flags() & SPENT != 0 {
        stats.deleted += 1;
        return Ok(batch.delete(&key)?);
    }
    value.clear();
    codec::write_coin(value, record.coin());
    stats.added += 1;
    stats.bytes += value.len() as u64;
    Ok(batch.put(&key, value)?)
}

fn write_marker(marker: &Marker) -> [u8; MARKER_BYTES] {
    let mut bytes = [0u8; MARKER_BYTES];
    bytes[0] = MARKER_VERSION;
    bytes[1..5].copy_from_slice(&marker.height.to_le_bytes());
    bytes[5..].copy_from_slice(&marker.hash.0);
    bytes
}

pub(super) fn read_marker(tier: &dyn CoinTier) -> Result<Option<Marker>, CoinError> {
    let mut marker = Ok(None);
    tier.get(MARKER_KEY, &mut |bytes| {
        marker = match bytes.split_first_chunk::<5>() {
            Some((&[MARKER_VERSION, a, b, c, d], hash)) if hash.len() == 32 => {
                let mut block_hash = BlockHash::ZERO;
                block_hash.0.copy_from_slice(hash);
                Ok(Some(Marker { height: u32::from_le_bytes([a, b, c, d]), hash: block_hash }))
            }
            _ => {
                let version = bytes.first().copied().unwrap_or_default();
                Err(CoinError::Marker { bytes: bytes.len(), version })
            }
        };
    })?;
    marker
}

const MARKER_VERSION: u8 = 1;
const MARKER_BYTES: usize = 37;

/// Records asked for ahead of use while walking in key order.
const PREFETCH_AHEAD: usize = 16;

/// What a coin's slot in the table takes at worst, for estimates.
const SLOT_BYTES: usize = 20;

/// Freed records that are not worth a rebuild.
const WASTE_BYTES_MAX: usize = 64 << 20;
