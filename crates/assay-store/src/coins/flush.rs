//! Writes the changes to the tier.

use std::time::Instant;

use assay_wire::BlockHash;

use crate::codec;
use crate::defect::{Point, Whole, point};

use super::arena::{Cursor, DIRTY, Record, SPENT};
use super::hints::prefetch;
use super::table::{LOCATOR_BITS, LOCATOR_MASK};
use super::tier::{CoinTier, MARKER_KEY, TierBatch, coin_key};
use super::{CoinError, CoinStore, Marker};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlushStats {
    pub added: u64,
    /// Coins deleted; the disk may not have had some of them.
    pub deleted: u64,
    /// Bytes of keys and values handed to the tier.
    pub bytes: u64,
    /// Coins evicted from the cache, to stay within its limit.
    pub evicted: u64,
    pub kept: u64,
    /// Bytes of the cache before the flush.
    pub cache_bytes: u64,
    pub elapsed_ns: u64,
}

/// A changed record as one sort word: the first bits of the txid, then the locator. These bits decide nearly all comparisons
/// without access to the record; more bits would take memory from the cache.
fn change(locator: u64, record: &Record<'_>) -> u64 {
    let outpoint = record.outpoint();
    let (first, _) = outpoint.txid.0.split_first_chunk::<8>().expect("a txid has 32 bytes");
    u64::from_be_bytes(*first) & !LOCATOR_MASK | locator
}

impl CoinStore {
    /// Writes all changes and the marker `(height, hash)` as one atomic batch that survives a power cut when this
    /// returns. Sync the blocks and the index first, or use [`commit`](crate::commit), which does.
    ///
    /// Afterwards all coins are clean. If the cache is full, it keeps only the youngest of them.
    ///
    /// # Errors
    /// A failure of the tier; the changes are still in memory then and can be flushed again.
    ///
    /// # Panics
    /// When the coins have moved ([`CoinStore::move_to`]) to another block: a defect. Nothing is written then.
    pub fn flush(&mut self, height: u32, hash: &BlockHash) -> Result<FlushStats, CoinError> {
        let flushed = self.flush_if(height, hash, || true)?;
        Ok(flushed.expect("nobody was against it"))
    }

    /// [`CoinStore::flush`] of changes that may still be revoked: `may_commit` is called after all writes except the commit, and
    /// may block. Returns `None` if it returns false; nothing changed then.
    ///
    /// # Errors
    /// As [`CoinStore::flush`]; `may_commit` may not have been called.
    pub fn flush_if(
        &mut self,
        height: u32,
        hash: &BlockHash,
        may_commit: impl FnOnce() -> bool,
    ) -> Result<Option<FlushStats>, CoinError> {
        let start = Instant::now();
        let mut stats =
            FlushStats { cache_bytes: self.cache_bytes() as u64, ..FlushStats::default() };
        assert!(
            self.at.is_none_or(|at| at == *hash),
            "the coins of another block are to be written under block {hash} at height {height}"
        );
        let marker = Marker { height, hash: *hash };
        let mut batch = self.tier.batch(self.dirty + 1)?;
        batch.put(MARKER_KEY, &write_marker(&marker))?;
        let mut value = Vec::with_capacity(64);
        self.for_each_change(|record| write_change(&mut *batch, record, &mut value, &mut stats))?;
        if !may_commit() {
            return Ok(None);
        }
        point(Point::CoinCommit);
        let whole = Whole::begin("the coins in memory after a flush");
        // From here on the disk differs from earlier read-ahead results, even if the commit fails.
        self.flushes += 1;
        batch.commit()?;
        point(Point::CoinCommitted);
        self.marker = Some(marker);
        self.forget_changes();
        drop(whole);
        self.start_pace();
        stats.evicted = self.evict_after_flush();
        stats.kept = self.unspent as u64;
        stats.elapsed_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Ok(Some(stats))
    }

    /// Visits the changed records in key order. Uses [`CHANGE_BYTES`] of memory per record.
    pub(super) fn for_each_change<E>(
        &self,
        mut visit: impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut changes: Vec<u64> = Vec::with_capacity(self.dirty);
        let dirty = self.arena.iter().filter(|(_, record)| record.flags() & DIRTY != 0);
        changes.extend(dirty.map(|(locator, record)| change(locator, &record)));
        changes.sort_unstable();
        let key = |change: u64| self.arena.record(change & LOCATOR_MASK).outpoint();
        let mut start = 0;
        while let Some(&first) = changes.get(start) {
            let same_bits = |&&other: &&u64| other >> LOCATOR_BITS == first >> LOCATOR_BITS;
            let end = start + changes[start..].iter().take_while(same_bits).count();
            if end - start > 1 {
                changes[start..end].sort_unstable_by_key(|&change| key(change));
            }
            for at in start..end {
                if let Some(&later) = changes.get(at + PREFETCH_AHEAD) {
                    prefetch(self.arena.start(later & LOCATOR_MASK));
                    prefetch(self.arena.end_of_head(later & LOCATOR_MASK));
                }
                visit(self.arena.record(changes[at] & LOCATOR_MASK))?;
            }
            start = end;
        }
        Ok(())
    }

    /// All changes are on disk: drops spent records and marks the rest clean.
    fn forget_changes(&mut self) {
        let mut cursor = Cursor::default();
        while let Some(locator) = self.arena.next(&mut cursor) {
            let record = self.arena.record(locator);
            if record.flags() & DIRTY == 0 {
                continue;
            }
            if record.flags() & SPENT == 0 {
                self.arena.set_flags(locator, 0);
                continue;
            }
            let hash = self.hash(&record.outpoint());
            let (slot, _) =
                self.table.find(hash, |l| l == locator).expect("every record is in the table");
            self.table.remove(slot);
            self.arena.free(locator);
        }
        self.dirty = 0;
    }
}

fn write_change(
    batch: &mut dyn TierBatch,
    record: Record<'_>,
    value: &mut Vec<u8>,
    stats: &mut FlushStats,
) -> Result<(), CoinError> {
    point(Point::CoinWrite);
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

/// Memory per change for the sort.
pub(super) const CHANGE_BYTES: usize = size_of::<u64>();

const MARKER_VERSION: u8 = 1;
const MARKER_BYTES: usize = 37;

/// Records prefetched ahead of use while walking in key order.
const PREFETCH_AHEAD: usize = 16;
