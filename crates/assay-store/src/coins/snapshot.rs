//! A consistent view of all coins, independent of later changes.

use std::ops::ControlFlow;
use std::sync::Arc;

use assay_wire::OutPoint;

use crate::codec::{self, CoinRef, TEMPLATE_MAX};

use super::arena::SPENT;
use super::tier::{
    CoinTier, KEY_BYTES, MARKER_KEY, TierBatch, TierError, TierSnapshot, Visit, coin_key,
    outpoint_of,
};
use super::{CoinError, CoinStore};

/// The coins at one time: a snapshot of the disk, and a copy of the unflushed changes.
pub struct CoinSnapshot {
    disk: Box<dyn TierSnapshot>,
    overlay: Overlay,
    disk_bytes: u64,
}

/// Changes in ascending key order: a key and an encoded coin, or no coin for "spent".
#[derive(Default)]
struct Overlay {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Overlay {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn entry(&self, index: usize) -> (&[u8], &[u8]) {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        self.bytes[start..self.ends[index]].split_at(KEY_BYTES)
    }

    /// Index of the first key not less than `key`.
    fn lower_bound(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.entry(middle).0 < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

impl CoinStore {
    /// The current coins, in memory and on disk. Copies the unflushed changes; the store may change afterwards.
    pub fn snapshot(&self) -> Result<CoinSnapshot, CoinError> {
        let mut overlay = Overlay::default();
        overlay.ends.reserve(self.dirty);
        overlay.bytes.reserve(self.dirty * ENTRY_BYTES);
        self.for_each_change(|record| {
            overlay.bytes.extend_from_slice(&coin_key(&record.outpoint()));
            if record.flags() & SPENT == 0 {
                codec::write_coin(&mut overlay.bytes, record.coin());
            }
            overlay.ends.push(overlay.bytes.len());
            Ok::<(), CoinError>(())
        })?;
        Ok(CoinSnapshot {
            disk: self.tier.snapshot()?,
            overlay,
            disk_bytes: self.tier.disk_bytes(),
        })
    }
}

/// A snapshot as the tier of a scratch store.
struct SnapshotTier(Arc<CoinSnapshot>);

impl TierSnapshot for Arc<CoinSnapshot> {
    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: &mut Visit<'_>) -> Result<(), TierError> {
        self.scan_entries(from, to, visit)
    }
}

impl CoinTier for SnapshotTier {
    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, TierError> {
        // The coins of a snapshot belong to no written block.
        if key == MARKER_KEY {
            return Ok(false);
        }
        let overlay = &self.0.overlay;
        let at = overlay.lower_bound(key);
        if at < overlay.len() && overlay.entry(at).0 == key {
            let value = overlay.entry(at).1;
            if !value.is_empty() {
                found(value);
            }
            return Ok(!value.is_empty());
        }
        // The next greater key.
        let mut to = key.to_vec();
        to.push(0);
        let mut is_there = false;
        self.0.disk.scan(key, Some(&to), &mut |_, value| {
            found(value);
            is_there = true;
            ControlFlow::Break(())
        })?;
        Ok(is_there)
    }

    fn batch(&self, _: usize) -> Result<Box<dyn TierBatch + '_>, TierError> {
        Err(TierError::new("batch", "a snapshot is not changed"))
    }

    fn snapshot(&self) -> Result<Box<dyn TierSnapshot>, TierError> {
        Ok(Box::new(Arc::clone(&self.0)))
    }

    fn disk_bytes(&self) -> u64 {
        self.0.disk_bytes
    }

    fn coins_estimate(&self) -> u64 {
        0
    }
}

impl CoinSnapshot {
    /// A store that starts with these coins, for trial changes. It cannot be flushed.
    pub fn into_scratch(self, cache_bytes_max: usize) -> Result<CoinStore, CoinError> {
        let mut store = CoinStore::open(Box::new(SnapshotTier(Arc::new(self))), cache_bytes_max)?;
        store.is_complete = false;
        Ok(store)
    }

    /// Bytes of the coins on disk when the snapshot was made.
    pub fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }

    /// Visits each coin once, ordered by txid (as stored) and then by output index.
    ///
    /// # Errors
    /// A failure of the tier, or damage; coins may have been visited.
    pub fn for_each(&self, visit: impl FnMut(&OutPoint, CoinRef<'_>)) -> Result<(), CoinError> {
        self.for_each_in_shard(0, 1, visit)
    }

    /// Visits one of `of` parts of the coins. The parts `0..of`, at most 65,536, hold each coin once, and in this order they keep
    /// the order of [`CoinSnapshot::for_each`]. Several threads may each visit a part.
    ///
    /// # Panics
    /// If `shard` is not less than `of`, or `of` exceeds 65,536.
    pub fn for_each_in_shard(
        &self,
        shard: u32,
        of: u32,
        mut visit: impl FnMut(&OutPoint, CoinRef<'_>),
    ) -> Result<(), CoinError> {
        assert!(shard < of && of <= 1 << 16, "no shard {shard} of {of}");
        let bound = |shard: u32| ((u64::from(shard) << 16) / u64::from(of)) as u16;
        // Two bytes sort after the one-byte marker, and not after any coin key with the same prefix.
        let from = bound(shard).to_be_bytes();
        let to = (shard + 1 < of).then(|| bound(shard + 1).to_be_bytes());
        let to = to.as_ref().map(<[u8; 2]>::as_slice);

        let mut result = Ok(());
        self.scan_entries(&from, to, &mut |key, value| {
            result = emit((key, value), &mut visit);
            if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        result
    }

    /// Visits keys and encoded coins with `from <= key < to` in order; without `to`, to the end.
    fn scan_entries(
        &self,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), TierError> {
        let overlay = &self.overlay;
        let mut next = overlay.lower_bound(from);
        let end = to.map_or(overlay.len(), |to| overlay.lower_bound(to));
        let mut is_over = false;
        // In the changes, no coin means "spent".
        let show = |visit: &mut Visit<'_>, (key, value): (&[u8], &[u8])| {
            if value.is_empty() { ControlFlow::Continue(()) } else { visit(key, value) }
        };
        self.disk.scan(from, to, &mut |key, value| {
            while next < end && overlay.entry(next).0 < key {
                next += 1;
                if show(visit, overlay.entry(next - 1)).is_break() {
                    is_over = true;
                    return ControlFlow::Break(());
                }
            }
            let covered = next < end && overlay.entry(next).0 == key;
            next += usize::from(covered);
            let flow =
                if covered { show(visit, overlay.entry(next - 1)) } else { visit(key, value) };
            is_over = flow.is_break();
            flow
        })?;
        if !is_over {
            let _ = (next..end).try_for_each(|index| show(visit, overlay.entry(index)));
        }
        Ok(())
    }
}

/// Estimated bytes of a snapshot per change.
pub(super) const SNAPSHOT_BYTES: usize = ENTRY_BYTES + size_of::<usize>();

/// Estimated bytes of an overlay entry: a key and a P2PKH coin.
const ENTRY_BYTES: usize = KEY_BYTES + 30;

fn emit(
    (key, value): (&[u8], &[u8]),
    visit: &mut impl FnMut(&OutPoint, CoinRef<'_>),
) -> Result<(), CoinError> {
    let outpoint = outpoint_of(key).ok_or(CoinError::UnknownEntry { key_bytes: key.len() })?;
    let mut scratch = [0; TEMPLATE_MAX];
    let coin = codec::decode_coin(value, &mut scratch)
        .map_err(|source| CoinError::Damaged { outpoint, source })?;
    visit(&outpoint, coin);
    Ok(())
}
