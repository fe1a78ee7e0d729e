//! Saves and loads the mempool.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use assay_store::defect::{Point, point};
use assay_store::{ReplaceError, read_file, replace_file};

use super::Mempool;
use crate::mempool::{
    AcceptOptions, Candidate, MempoolFileError, MempoolImport, MempoolLoad, Reader, Saved, write,
};

/// Name of the file in the chain's folder.
const FILE_NAME: &str = "mempool.dat";
/// Transactions admitted per lock.
const BATCH_TXS: usize = 500;

impl MempoolImport {
    /// Settings for the node's own file.
    const OWN: Self =
        Self { use_current_time: false, apply_fee_deltas: true, apply_unbroadcast: true };
}

impl Mempool<'_> {
    /// The file that keeps the mempool across restarts.
    pub fn path(self) -> PathBuf {
        self.0.config().datadir.join(FILE_NAME)
    }

    /// True if the mempool file is loaded as far as possible, or need not be.
    pub fn is_loaded(self) -> bool {
        self.0.mempool_loaded.load(Ordering::Acquire)
    }

    /// Admits the saved transactions in small steps, so that other work continues meanwhile.
    /// [`Engine::shutdown`](super::Engine::shutdown) does not overwrite the file before the load is complete.
    ///
    /// # Errors
    /// The file exists but cannot be read; the engine continues without it.
    pub fn load(self) -> Result<MempoolLoad, MempoolFileError> {
        let path = self.path();
        let outcome = match read_file(&*self.0.io, &path) {
            Ok(None) => Ok(MempoolLoad::default()),
            Ok(Some(bytes)) => self.load_from(&path, bytes, MempoolImport::OWN),
            Err(error) => Err(error.into()),
        };
        if !matches!(&outcome, Ok(load) if load.is_interrupted) {
            self.0.mempool_loaded.store(true, Ordering::Release);
        }
        outcome
    }

    /// Admits the transactions of a mempool file. `import` selects the other data to import.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn import(
        self,
        path: &Path,
        import: MempoolImport,
    ) -> Result<MempoolLoad, MempoolFileError> {
        // Not through the store's files: this file is external and may be read-only.
        let bytes = std::fs::read(path)
            .map_err(|source| ReplaceError { path: path.to_path_buf(), source })?;
        self.load_from(path, bytes, import)
    }

    fn load_from(
        self,
        path: &Path,
        bytes: Vec<u8>,
        import: MempoolImport,
    ) -> Result<MempoolLoad, MempoolFileError> {
        let mut load = MempoolLoad::default();
        match Reader::new(path, bytes, self.0.params().encoding)? {
            Ok(reader) => self.admit_saved(reader, import, &mut load),
            Err(damage) => load.damage = Some(damage),
        }
        let MempoolLoad { admitted, refused, expired, known, unbroadcast, damage, .. } = &load;
        if let Some(damage) = damage {
            tracing::warn!("{damage}; what comes before that is taken");
        }
        tracing::info!(
            "Imported mempool transactions from file: {admitted} succeeded, {refused} failed, {expired} expired, \
             {known} already there, {unbroadcast} waiting for initial broadcast"
        );
        Ok(load)
    }

    fn admit_saved(self, mut reader: Reader, import: MempoolImport, load: &mut MempoolLoad) {
        tracing::info!("Loading {} mempool transactions from file...", reader.count);
        let mut batch = Vec::with_capacity(BATCH_TXS);
        loop {
            let next = reader.next();
            let is_end = next.is_none();
            match next {
                Some(Ok(Saved { tx, time, fee_delta_sat })) => {
                    let now = self.0.config().clock.now_s() as i64;
                    let time = if import.use_current_time { now } else { time };
                    if import.apply_fee_deltas && fee_delta_sat != 0 {
                        self.0.lock().mempool.prioritise(tx.view().txid(), fee_delta_sat);
                    }
                    if time > now.saturating_sub_unsigned(self.0.config().mempool_expiry_s) {
                        batch.push((tx, time));
                    } else {
                        load.expired += 1;
                    }
                }
                Some(Err(damage)) => load.damage = Some(damage),
                None => {}
            }
            if batch.len() == BATCH_TXS || is_end {
                if self.0.chainstate.notifier.is_closing() {
                    load.is_interrupted = true;
                    return;
                }
                self.admit_batch(&mut batch, load);
                // Also if it closed during the batch, which it then rejected.
                if self.0.chainstate.notifier.is_closing()
                    || self.0.lock_tree().check_admission().is_err()
                {
                    load.is_interrupted = true;
                    return;
                }
            }
            if is_end {
                break;
            }
        }
        if load.damage.is_some() {
            return;
        }
        let (deltas_sat, unbroadcast) = reader.rest();
        let mut state = self.0.lock();
        if import.apply_fee_deltas {
            for (txid, delta_sat) in deltas_sat {
                state.mempool.prioritise(txid, delta_sat);
            }
        }
        if import.apply_unbroadcast && self.0.config().has_peers {
            let restored = unbroadcast.into_iter();
            let restored = restored.filter(|txid| state.mempool.restore_unbroadcast(*txid));
            load.unbroadcast = restored.count() as u64;
        }
    }

    fn admit_batch(self, batch: &mut Vec<(assay_wire::Transaction, i64)>, load: &mut MempoolLoad) {
        let mut txids = Vec::with_capacity(batch.len());
        let mut candidates = Vec::with_capacity(batch.len());
        for (tx, time) in batch.drain(..) {
            let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
            txids.push(txid);
            let candidate = Candidate::new(Arc::new(tx), txid, wtxid).at(time as u64);
            candidates.push(candidate.checked(self.0.config()));
        }
        let (verdicts, _) = self.admit_in_turn(candidates, AcceptOptions::ADMIT);
        let state = self.0.lock();
        for (txid, verdict) in txids.iter().zip(verdicts) {
            match verdict {
                Ok(admitted) if admitted.is_new => load.admitted += 1,
                Ok(_) => load.known += 1,
                Err(_) if state.mempool.get(txid).is_some() => load.known += 1,
                Err(_) => load.refused += 1,
            }
        }
    }

    /// Writes the mempool file atomically: after a crash it is the old or the new one. Returns its path.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(self) -> Result<PathBuf, MempoolFileError> {
        let start = Instant::now();
        // One save at a time, since all use the same file.
        let _saving = self.0.saving_mempool.lock();
        let (txs, deltas_sat, unbroadcast) = {
            let state = self.0.lock();
            let pool = &state.mempool;
            let unbroadcast = pool.unbroadcast().iter().copied().collect();
            (pool.in_topological_order(), pool.absent_fee_deltas_sat(), unbroadcast)
        };
        point(Point::MempoolSave);
        let copied = start.elapsed();
        let path = self.path();
        tracing::info!("Writing {} mempool transactions to file...", txs.len());
        // No secret: the key prevents virus scanners from matching the contents.
        let key = RandomState::new().build_hasher().finish().to_le_bytes();
        let key = self.0.params().cash.is_none().then_some(key);
        let bytes = replace_file(&*self.0.io, &path, write(txs, deltas_sat, unbroadcast, key))?;
        tracing::info!(
            "Dumped mempool: {:.3}s to copy, {:.3}s to dump, {bytes} bytes dumped to file",
            copied.as_secs_f64(),
            start.elapsed().saturating_sub(copied).as_secs_f64(),
        );
        Ok(path)
    }

    /// Closes the mempool, and saves it if enabled and if it was loaded: no transaction is admitted and then missing in the file.
    pub(super) fn save_at_shutdown(self) {
        self.0.lock_tree().is_mempool_closed = true;
        if self.0.config().persist_mempool
            && self.is_loaded()
            && let Err(error) = self.save()
        {
            tracing::warn!("the mempool is not kept: {error}");
        }
    }
}
