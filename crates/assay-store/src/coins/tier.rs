//! Interface of the coin cache to the database engine.

use std::error::Error;
use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;

use assay_wire::{OutPoint, Txid};

pub const KEY_BYTES: usize = 36;

/// The key of a coin: txid, then output index in big endian, so that keys sort by (txid, vout).
pub type CoinKey = [u8; KEY_BYTES];

#[derive(Debug, thiserror::Error)]
#[error("coin tier: cannot {operation}: {source}{}", Place(place.as_ref()))]
pub struct TierError {
    pub operation: &'static str,
    pub source: Box<dyn Error + Send + Sync>,
    /// File and offset of the damage, if found.
    pub place: Option<(PathBuf, u64)>,
}

struct Place<'a>(Option<&'a (PathBuf, u64)>);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |(path, offset)| {
            write!(f, " ({} is damaged at {offset})", path.display())
        })
    }
}

impl TierError {
    pub(crate) fn new(
        operation: &'static str,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self { operation, source: source.into(), place: None }
    }
}

/// A persistent ordered map with atomic sorted batches and snapshots.
///
/// Keys are coin keys, and [`MARKER_KEY`], which sorts before all of them.
pub trait CoinTier: Send + Sync {
    /// Calls `found` with the value of `key`; returns true if the key exists.
    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, TierError>;

    /// Starts a batch of about `changes` changes.
    fn batch(&self, changes: usize) -> Result<Box<dyn TierBatch + '_>, TierError>;

    /// The current map, unaffected by later batches.
    fn snapshot(&self) -> Result<Box<dyn TierSnapshot>, TierError>;

    /// The first damaged place on disk, file and offset, among all data with checksums.
    fn find_damage(&self) -> Option<(PathBuf, u64)> {
        None
    }

    fn disk_bytes(&self) -> u64;

    /// Estimated number of entries.
    fn coins_estimate(&self) -> u64;
}

/// Changes in strictly ascending key order; without [`TierBatch::commit`] none takes effect.
pub trait TierBatch {
    /// Sets a value.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), TierError>;

    /// Removes a key, present or not.
    fn delete(&mut self, key: &[u8]) -> Result<(), TierError>;

    /// Applies all changes atomically. When this returns they survive a power cut.
    ///
    /// # Errors
    /// A failure of the engine; then none of the changes is visible.
    fn commit(self: Box<Self>) -> Result<(), TierError>;
}

/// Callback of a scan with key and value; it may stop the scan.
pub type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'v;

pub trait TierSnapshot: Send + Sync {
    /// Visits the entries with `from <= key < to` in order; without `to`, to the end.
    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: &mut Visit<'_>) -> Result<(), TierError>;
}

/// Key of the marker: one zero byte is less than every 36-byte key.
pub const MARKER_KEY: &[u8] = &[0];

pub(crate) fn coin_key(outpoint: &OutPoint) -> CoinKey {
    let mut key = [0u8; KEY_BYTES];
    key[..32].copy_from_slice(&outpoint.txid.0);
    key[32..].copy_from_slice(&outpoint.vout.to_be_bytes());
    key
}

/// Inverse of [`coin_key`]; `None` for other keys.
pub(crate) fn outpoint_of(key: &[u8]) -> Option<OutPoint> {
    let (txid, vout) = key.split_first_chunk::<32>()?;
    Some(OutPoint { txid: Txid(*txid), vout: u32::from_be_bytes(vout.try_into().ok()?) })
}
