//! A coin tier in memory that fails on command, together with its simulated file system.

use super::mem_tier::MemTier;
use super::tier::{CoinTier, TierBatch, TierError, TierSnapshot};
use crate::io::SimIo;

/// A durable map on the disk of a [`SimIo`]. A commit is two of its steps. A fault at the first step discards the batch. At the
/// second step the batch is durable, but the commit fails or the process is dead.
#[derive(Clone)]
pub struct SimTier {
    io: SimIo,
    disk: MemTier,
}

impl SimTier {
    /// An empty tier on the disk of `io`.
    pub fn new(io: &SimIo) -> Self {
        Self { io: io.clone(), disk: MemTier::new() }
    }

    /// The tier as the next process finds it on the disk of `io`, independent of this one. Committed data are never lost.
    #[must_use]
    pub fn restart(&self, io: &SimIo) -> Self {
        Self { io: io.clone(), disk: self.disk.fork() }
    }

    /// The map itself, for tests that damage it.
    pub fn disk(&self) -> &MemTier {
        &self.disk
    }
}

impl CoinTier for SimTier {
    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, TierError> {
        self.io.alive().map_err(|e| TierError::new("read", e))?;
        self.disk.get(key, found)
    }

    fn batch(&self, changes: usize) -> Result<Box<dyn TierBatch + '_>, TierError> {
        self.io.alive().map_err(|e| TierError::new("start a batch", e))?;
        Ok(Box::new(SimBatch { io: &self.io, batch: self.disk.batch(changes)? }))
    }

    fn snapshot(&self) -> Result<Box<dyn TierSnapshot>, TierError> {
        self.disk.snapshot()
    }

    fn disk_bytes(&self) -> u64 {
        self.disk.disk_bytes()
    }

    fn coins_estimate(&self) -> u64 {
        self.disk.coins_estimate()
    }
}

struct SimBatch<'t> {
    io: &'t SimIo,
    batch: Box<dyn TierBatch + 't>,
}

impl TierBatch for SimBatch<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), TierError> {
        self.batch.put(key, value)
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), TierError> {
        self.batch.delete(key)
    }

    fn commit(self: Box<Self>) -> Result<(), TierError> {
        let failed = |e| TierError::new("commit", e);
        self.io.foreign_step().map_err(failed)?;
        self.batch.commit()?;
        self.io.foreign_step().map_err(failed)
    }
}
