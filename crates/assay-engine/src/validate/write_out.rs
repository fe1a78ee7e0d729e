//! Flushes the coins of a validation with the undo data below them, and counts them at the end.

use std::fs::File;
use std::io::BufWriter;
use std::time::Instant;

use assay_store::{CoinSnapshot, SnapshotHeader};

use super::connect::{Connector, Moved, no_thread};
use super::datadir::DatadirError;
use super::{ValidateError, ValidateProgress, WriteSpent};
use crate::connect::Connected;
use crate::pipeline::{FailedBlocks, InFlight, Passed, Pipeline};
use crate::snapshot_file::{WriteCoinsError, write_coins};
use crate::stats::snapshot_stats;
use crate::types::UtxoStats;

/// Blocks at the end of a branch with kept undo data, so that files with a better branch can follow (Core keeps as many for
/// reorgs, `validation.h`, `MIN_BLOCKS_TO_KEEP`).
const UNDO_BLOCKS: u32 = 288;

impl Connector<'_> {
    /// Waits for all scripts. If no more blocks follow, the coins are counted, hashed and written in parallel, which uses all
    /// cores; the result is valid if the scripts pass.
    pub(super) fn finish_scripts(
        &mut self,
        pipeline: &mut Pipeline<Moved>,
        passed: impl FnMut(Passed<Moved>),
        is_last: bool,
        progress: &dyn ValidateProgress,
    ) -> Result<Result<(), FailedBlocks<Moved>>, ValidateError> {
        if !is_last {
            return Ok(pipeline.drain(passed));
        }
        let (mut outcome, mut settled_at) = (Ok(()), None);
        let height = self.height;
        let stats = self.count_and_write(progress, || {
            outcome = pipeline.drain(passed);
            settled_at = Some(Instant::now());
            if outcome.is_ok() {
                progress.hashing(height);
            }
            outcome.is_ok()
        })?;
        if outcome.is_ok() {
            (self.stats, self.settled_at) = (stats, settled_at);
        }
        Ok(outcome)
    }

    /// Final step after [`Connector::run`]: writes the coins if the folder is kept, and counts and hashes them on request.
    /// Returns the statistics, and the time when the last script had passed if it was earlier.
    pub(crate) fn finish(
        &mut self,
        with_stats: bool,
        progress: &dyn ValidateProgress,
    ) -> Result<(Option<UtxoStats>, Option<Instant>), ValidateError> {
        if !with_stats {
            if self.flushes.is_due_at_end() {
                self.flush(progress)?;
            }
            return Ok((None, None));
        }
        if self.stats.is_none() {
            progress.hashing(self.height);
            self.stats = self.count_and_write(progress, || true)?;
        }
        Ok((self.stats.take(), self.settled_at))
    }

    /// Counts and hashes the coins on all cores, and writes them at the same time if the folder is kept. The result is valid only
    /// if `may_commit`, which waits for the scripts of these coins, returns true: `None` otherwise.
    fn count_and_write(
        &mut self,
        progress: &dyn ValidateProgress,
        may_commit: impl FnOnce() -> bool,
    ) -> Result<Option<UtxoStats>, ValidateError> {
        let mut is_good = false;
        let mut may_commit = Some(|| {
            is_good = may_commit();
            is_good
        });
        // A snapshot copies unflushed coins.
        if self.flushes.is_due_for_snapshot(&self.coins.store) {
            self.flush_if(progress, || may_commit.take().is_none_or(|may_commit| may_commit()))?;
        }
        let snapshot = self.coins.store.snapshot()?;
        let (pool, height, hash) = (self.pool, self.height, self.hash());
        let mut stats = std::thread::scope(|scope| {
            let hasher = std::thread::Builder::new().name("hash-coins".to_owned());
            let stats = || snapshot_stats(&snapshot, pool, height, hash, true);
            let stats = hasher.spawn_scoped(scope, stats).map_err(|error| no_thread(&error))?;
            let written = match may_commit.take() {
                Some(may_commit) if self.flushes.is_due_at_end() => {
                    self.flush_if(progress, may_commit)
                }
                Some(may_commit) => {
                    may_commit();
                    Ok(())
                }
                None => Ok(()),
            };
            let stats = stats.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            written.map(|()| stats)
        })?;
        stats.disk_size = self.coins.store.disk_bytes();
        if is_good && let Some(to) = &self.config.write_spent {
            self.write_left_over(to, &snapshot, stats.txouts)?;
        }
        if is_good && let Some(path) = &self.config.write_hints {
            self.write_hints(path, &snapshot)?;
        }
        Ok(is_good.then_some(stats))
    }

    /// Writes the unspent coins next to the spent ones.
    fn write_left_over(
        &mut self,
        WriteSpent { dir, keys }: &WriteSpent,
        snapshot: &CoinSnapshot,
        coins: u64,
    ) -> Result<(), ValidateError> {
        if let Some(spent) = &mut self.spent {
            spent.sync()?;
        }
        let (path, fresh) = (dir.join(LEFT_OVER), dir.join(format!("{LEFT_OVER}.new")));
        let failed = |source| DatadirError::Io { path: path.clone(), source };
        let file = File::create(&fresh).map_err(failed)?;
        let header = SnapshotHeader { magic: self.config.params.magic, base: self.hash(), coins };
        let out = (BufWriter::with_capacity(1 << 20, file), *keys);
        let written =
            write_coins(snapshot, &header, out, &|| true).map_err(|error| match error {
                WriteCoinsError::Read(error) => ValidateError::from(error),
                WriteCoinsError::Write(error) => failed(error).into(),
                WriteCoinsError::Interrupted => unreachable!("nobody interrupts it"),
            })?;
        let file = written.into_inner().map_err(|error| failed(error.into_error()))?;
        let named = file.sync_all().and_then(|()| std::fs::rename(&fresh, &path));
        named.map_err(failed)?;
        Ok(())
    }

    /// Last height of the branch, or the stop height.
    pub(super) fn last_height(&self) -> u32 {
        self.chain.height().min(self.config.stop_height.unwrap_or(u32::MAX))
    }

    /// True if the block at `height` may have to be disconnected: for another branch of the files, or, in a kept folder, for a
    /// later one.
    fn wants_undo(&self, height: u32) -> bool {
        let is_near_end = height.saturating_add(UNDO_BLOCKS) > self.last_height();
        self.chain.has_rival(height) || self.config.is_lasting && is_near_end
    }

    /// Keeps the undo data of a block whose coins have moved. Pending scripts do not matter: the spent coins are known.
    pub(super) fn keep_undo(
        &mut self,
        block: &InFlight<Moved>,
        is_assumed: bool,
    ) -> Result<(), DatadirError> {
        let Connected { scripts, undo } = &block.block;
        if !self.wants_undo(scripts.rules.height) {
            return Ok(());
        }
        self.datadir.keep_undo(&scripts.prepared.hash, undo, is_assumed)
    }

    pub(super) fn flush(&mut self, progress: &dyn ValidateProgress) -> Result<(), ValidateError> {
        self.flush_if(progress, || true)
    }

    /// Flushes the coins if `may_commit`, which is called last, returns true.
    pub(super) fn flush_if(
        &mut self,
        progress: &dyn ValidateProgress,
        may_commit: impl FnOnce() -> bool,
    ) -> Result<(), ValidateError> {
        let hash = self.hash();
        if hash == self.flushed {
            may_commit();
            return Ok(());
        }
        // Blocks below the coins on disk are not connected again.
        if let Some(spent) = &mut self.spent {
            spent.sync()?;
        }
        progress.flushing(self.height);
        self.totals.elapsed_ms = self.earlier_ms + self.start.elapsed().as_millis() as u64;
        let block = (self.height, &hash);
        if self.datadir.flush_if(&mut self.coins.store, &self.totals, block, may_commit)? {
            self.flushed = hash;
            self.flushes.flushed();
            // If no rival has as much work, no branch leads back below this block.
            if !self.wants_undo(self.height) {
                self.datadir.clear_undo()?;
            }
        }
        Ok(())
    }
}

/// The snapshot of the UTXO set in the folder of spent coins.
const LEFT_OVER: &str = "utxo.dat";
