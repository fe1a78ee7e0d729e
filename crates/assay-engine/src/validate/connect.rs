//! Connecting the blocks of a branch: coins one block after the other, scripts of many at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use assay_consensus::block::BlockError;
use assay_store::{BlockFiles, BlockPlace, CoinStore, Room};
use assay_wire::{BlockHash, Coin};
use rayon::ThreadPool;

use super::datadir::{Datadir, DatadirError};
use super::headers::Chain;
use super::prefetch::{Fault, Prefetch, Ready, Refused};
use super::{
    ConnectState, End, FilePlace, InvalidBlock, Totals, ValidateConfig, ValidateError,
    ValidateProgress,
};
use crate::apply::CoinbaseLog;
use crate::config::READ_THREADS;
use crate::connect::{ConnectError, move_block};
use crate::pipeline::{InFlight, Pipeline, Refuted};
use crate::scripts::{ScriptQueue, Verifier};
use crate::stats::snapshot_stats;
use crate::types::UtxoStats;

/// Blocks read ahead may take this much memory.
const AHEAD_BYTES_MAX: u64 = 64 << 20;

/// Blocks at the end of a branch whose undo data are kept, so that files with a better branch can follow (Core keeps as many
/// for its own reorganisations, `validation.h`, `MIN_BLOCKS_TO_KEEP`).
const UNDO_BLOCKS: u32 = 288;

/// How long coins may go without being written out where an interruption should not cost more.
const FLUSH_INTERVAL: Duration = Duration::from_mins(10);

/// The coins at a height, and everything needed to go on from there.
pub(crate) struct Connector<'a> {
    pub(super) config: &'a ValidateConfig,
    pub(super) files: &'a BlockFiles,
    /// The branch that the coins are on, up to `height`.
    pub(super) chain: Arc<Chain<'a>>,
    pool: &'a Arc<ThreadPool>,
    pub(super) datadir: Datadir,
    pub(super) coins: CoinStore,
    pub(super) coinbases: CoinbaseLog,
    pub(super) totals: Totals,
    pub(super) height: u32,
    /// The block on disk.
    flushed: BlockHash,
    last_flush: Instant,
    /// What has been counted already, and when the last script had passed.
    stats: Option<UtxoStats>,
    settled_at: Option<Instant>,
    /// Start of this run, and the time that earlier ones took.
    start: Instant,
    earlier_ms: u64,
}

/// What is kept with a block while its scripts are verified.
struct Moved {
    /// Sums and height without it.
    totals_before: Totals,
    height_before: u32,
    /// The copy that was read.
    place: BlockPlace,
    /// Sums with it, and the size of the cache.
    totals: Totals,
    cache_bytes: usize,
}

impl<'a> Connector<'a> {
    /// Goes on from the coins of `datadir`, whose block is on `chain`.
    pub(crate) fn new(
        config: &'a ValidateConfig,
        files: &'a BlockFiles,
        chain: Arc<Chain<'a>>,
        pool: &'a Arc<ThreadPool>,
        (datadir, coins, totals): (Datadir, CoinStore, Totals),
    ) -> Result<Self, ValidateError> {
        let height = coins.tip().map_or(0, |marker| marker.height);
        if let Some(stop_height) = config.stop_height.filter(|stop| *stop < height) {
            return Err(ValidateError::PastStop { height, stop_height });
        }
        let mut connector = Self {
            config,
            files,
            flushed: chain.hash(height),
            chain,
            pool,
            datadir,
            coins,
            coinbases: CoinbaseLog::default(),
            totals,
            height,
            last_flush: Instant::now(),
            stats: None,
            settled_at: None,
            start: Instant::now(),
            earlier_ms: totals.elapsed_ms,
        };
        connector.rebuild_coinbase_log()?;
        Ok(connector)
    }

    /// Height of the last connected block.
    pub(crate) fn height(&self) -> u32 {
        self.height
    }

    /// Hash of that block.
    pub(crate) fn hash(&self) -> BlockHash {
        self.chain.hash(self.height)
    }

    /// The branch that it is on.
    pub(crate) fn chain(&self) -> &Chain<'a> {
        &self.chain
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// Reads the coinbases of connected blocks that did not have to begin with their height.
    fn rebuild_coinbase_log(&mut self) -> Result<(), ValidateError> {
        /// Header, count, and the largest coinbase that one read covers.
        const PREFIX_BYTES: u32 = 4096;
        let params = &self.config.params;
        let last = self.height.min(params.activation.bip34.saturating_sub(1));
        for height in 1..=last {
            if self.chain.copies(height).nth(1).is_some() {
                // The first copy need not be the one that was connected.
                let txid = self.read_connected(height)?.txids[0];
                self.coinbases.connect(txid, false);
                continue;
            }
            let place = &self.chain.entry(height).place;
            let prefix = self.files.read_part(place, PREFIX_BYTES)?;
            let first_tx = assay_wire::first_tx(&prefix, params.encoding);
            let txid = match first_tx {
                Some(txid) => Some(txid),
                None => assay_wire::first_tx(&self.files.read(place)?, params.encoding),
            };
            // A block that no longer parses has been connected once; its damage is not this run's concern.
            if let Some(txid) = txid {
                self.coinbases.connect(txid, false);
            }
        }
        Ok(())
    }

    /// Connects up to the end of the chain or where it is to stop. What it says holds once [`Connector::finish`] has been called.
    pub(crate) fn run(
        &mut self,
        assumed_height: u32,
        stop: &AtomicBool,
        progress: &dyn ValidateProgress,
    ) -> Result<End, ValidateError> {
        let chain = Arc::clone(&self.chain);
        let last = self.last_height();
        let bytes_total = chain.bytes(1..=last);
        let mut bytes_done = chain.bytes(1..=self.height);
        let range = (self.height + 1, last);
        let params = &*self.config.params;
        let prefetch = Prefetch::new(params, self.files, &chain, range, AHEAD_BYTES_MAX);
        let readers = (self.config.threads / 4).clamp(1, 4);
        std::thread::scope(|scope| {
            // Also when this thread unwinds, so that the scope ends.
            let _ending = Ending(&prefetch);
            for _ in 0..readers {
                let reader = std::thread::Builder::new().name("read-blocks".to_owned());
                reader
                    .spawn_scoped(scope, || prefetch.work())
                    .map_err(|error| no_thread(&error))?;
            }
            #[cfg(feature = "slowed")]
            let mut since = Instant::now();
            let mut landed = |block: InFlight<Moved>| {
                #[cfg(feature = "slowed")]
                {
                    crate::slowed::spin(since.elapsed());
                    since = Instant::now();
                }
                let Moved { totals, cache_bytes, .. } = block.note;
                let height = block.scripts.rules.height;
                // As in the sum of all: a copy may be longer or shorter.
                bytes_done += chain.bytes(height..=height);
                progress.connected(&ConnectState {
                    height,
                    last_height: last,
                    bytes_done,
                    bytes_total,
                    totals,
                    cache_bytes,
                });
            };
            let mut pipeline =
                Pipeline::new(Verifier::new(Arc::clone(self.pool), self.config.script_batch));
            // What ended the way, as far as it is about the next block or none.
            let mut fault = None;
            while self.height < last && !stop.load(Ordering::Relaxed) && !pipeline.has_failure() {
                let height = self.height + 1;
                let is_assumed = height <= assumed_height;
                let moved =
                    prefetch.next().and_then(|ready| self.move_coins(ready, is_assumed, &pipeline));
                match moved {
                    Ok(block) => {
                        self.keep_undo(&block, is_assumed)?;
                        pipeline.push(block);
                    }
                    Err(found) => {
                        fault = Some(found);
                        break;
                    }
                }
                pipeline.make_room(&mut landed);
                let is_due = self.config.is_lasting && self.last_flush.elapsed() > FLUSH_INTERVAL;
                if self.coins.make_room() == Room::FlushDue || is_due {
                    // Coins are written while the last scripts are verified; what is written counts when those have passed.
                    let mut outcome = Ok(());
                    self.flush_if(progress, || {
                        outcome = pipeline.settle(&mut landed);
                        outcome.is_ok()
                    })?;
                    if let Err(refuted) = outcome {
                        return self.refute(refuted);
                    }
                }
            }
            // Of two invalid blocks the lower one counts.
            let is_last = fault.is_none() && self.height == last;
            if let Err(refuted) = self.settle(&mut pipeline, &mut landed, is_last, progress)? {
                return self.refute(refuted);
            }
            if let Some(fault) = fault {
                return self.fault(fault);
            }
            Ok(if self.height < last {
                End::Interrupted
            } else if last == chain.height() {
                End::Complete
            } else {
                End::StopHeight
            })
        })
    }

    /// Waits for all scripts. When no more blocks follow the coins are counted, hashed and written meanwhile, which keeps all
    /// cores busy; what came of it stands if the scripts pass.
    fn settle(
        &mut self,
        pipeline: &mut Pipeline<Moved>,
        landed: impl FnMut(InFlight<Moved>),
        is_last: bool,
        progress: &dyn ValidateProgress,
    ) -> Result<Result<(), Refuted<Moved>>, ValidateError> {
        if !is_last {
            return Ok(pipeline.settle(landed));
        }
        let (mut outcome, mut settled_at) = (Ok(()), None);
        let height = self.height;
        let stats = self.count_and_write(progress, || {
            outcome = pipeline.settle(landed);
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

    /// What remains after [`Connector::run`]: writes the coins out where the folder is kept, and counts and hashes them when
    /// asked to. Gives that, and when the last script had passed if it was before.
    pub(crate) fn finish(
        &mut self,
        with_stats: bool,
        progress: &dyn ValidateProgress,
    ) -> Result<(Option<UtxoStats>, Option<Instant>), ValidateError> {
        if !with_stats {
            if self.config.is_lasting {
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

    /// Counts and hashes the coins on all cores, and writes them out at the same time where the folder is kept. It counts
    /// only if `may_commit` says so, which waits for the scripts of these coins: `None` otherwise.
    fn count_and_write(
        &mut self,
        progress: &dyn ValidateProgress,
        may_commit: impl FnOnce() -> bool,
    ) -> Result<Option<UtxoStats>, ValidateError> {
        let is_lasting = self.config.is_lasting;
        let mut is_good = false;
        let mut may_commit = Some(|| {
            is_good = may_commit();
            is_good
        });
        // A snapshot copies what is not written out.
        if is_lasting && !self.coins.usage().has_room_for_snapshot() {
            self.flush_if(progress, || may_commit.take().is_none_or(|may_commit| may_commit()))?;
        }
        let snapshot = self.coins.snapshot()?;
        let (pool, height, hash) = (self.pool, self.height, self.hash());
        let mut stats = std::thread::scope(|scope| {
            let hasher = std::thread::Builder::new().name("hash-coins".to_owned());
            let stats = || snapshot_stats(&snapshot, pool, height, hash, true);
            let stats = hasher.spawn_scoped(scope, stats).map_err(|error| no_thread(&error))?;
            let written = match may_commit.take() {
                Some(may_commit) if is_lasting => self.flush_if(progress, may_commit),
                Some(may_commit) => {
                    may_commit();
                    Ok(())
                }
                None => Ok(()),
            };
            let stats = stats.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            written.map(|()| stats).map_err(ValidateError::from)
        })?;
        stats.disk_size = self.coins.disk_bytes();
        Ok(is_good.then_some(stats))
    }

    /// Height at which the branch ends, or validation is to stop.
    fn last_height(&self) -> u32 {
        self.chain.height().min(self.config.stop_height.unwrap_or(u32::MAX))
    }

    /// Whether the block at `height` may have to be taken back: for another branch of the files, or, in a folder that is
    /// kept, for one that comes later.
    fn wants_undo(&self, height: u32) -> bool {
        let is_near_end = height.saturating_add(UNDO_BLOCKS) > self.last_height();
        self.chain.has_rival(height) || self.config.is_lasting && is_near_end
    }

    /// Keeps the undo data of a block whose coins have moved. That its scripts are open does not matter: what it spent is
    /// known.
    fn keep_undo(&mut self, block: &InFlight<Moved>, is_assumed: bool) -> Result<(), DatadirError> {
        if !self.wants_undo(block.scripts.rules.height) {
            return Ok(());
        }
        self.datadir.keep_undo(&block.scripts.prepared.hash, &block.undo, is_assumed)
    }

    /// Takes back the blocks from an invalid one on, which is the end of this branch.
    fn refute(&mut self, refuted: Refuted<Moved>) -> Result<End, ValidateError> {
        let (note, error) = refuted.unwind(&mut self.coins, &mut self.coinbases)?;
        self.totals = note.totals_before;
        self.height = note.height_before;
        Ok(self.invalid(rule(&error), &note.place, false))
    }

    /// Writes the coins out.
    pub(super) fn flush(&mut self, progress: &dyn ValidateProgress) -> Result<(), DatadirError> {
        self.flush_if(progress, || true)
    }

    /// Writes the coins out if `may_commit` lets it, which is asked last.
    fn flush_if(
        &mut self,
        progress: &dyn ValidateProgress,
        may_commit: impl FnOnce() -> bool,
    ) -> Result<(), DatadirError> {
        let hash = self.hash();
        if hash == self.flushed {
            may_commit();
            return Ok(());
        }
        progress.flushing(self.height);
        self.totals.elapsed_ms = self.earlier_ms + self.start.elapsed().as_millis() as u64;
        let block = (self.height, &hash);
        if self.datadir.flush_if(&mut self.coins, &self.totals, block, may_commit)? {
            self.flushed = hash;
            self.last_flush = Instant::now();
            // Where no rival has as much work, nobody goes back below this block.
            if !self.wants_undo(self.height) {
                self.datadir.clear_undo()?;
            }
        }
        Ok(())
    }

    /// Moves the coins of the next block and hands its scripts over; changes nothing when it breaks another rule.
    fn move_coins(
        &mut self,
        ready: Ready,
        is_assumed: bool,
        pipeline: &Pipeline<Moved>,
    ) -> Result<InFlight<Moved>, Refused> {
        let Ready { prepared, rules, place } = ready;
        let prepared = Arc::new(prepared);
        self.coinbases.connect(prepared.txids[0], rules.height_in_coinbase);
        let view = self.chain.up_to(rules.height - 1);
        let mut queue = ScriptQueue::new(pipeline.verifier(), Arc::clone(&prepared), rules);
        let mut on_spend = |tx_index: usize, spent: &mut Vec<Coin>| {
            if tx_index > 0 && !is_assumed {
                queue.push(tx_index, spent);
            }
        };
        let moved = move_block(
            (&prepared, &rules, READ_THREADS),
            (&mut self.coins, &self.coinbases, &view),
            &mut on_spend,
        );
        // Also when the block is refused: what was handed over holds on to it.
        let scripts = queue.finish();
        let undo = match moved {
            Ok(undo) => undo,
            Err(error) => {
                self.coinbases.disconnect(&prepared.txids[0]);
                let fault = match error {
                    ConnectError::Rule(error) => Fault::Rule(error),
                    ConnectError::Engine(error) => Fault::Engine(error),
                };
                return Err(Refused { fault, place, damaged: 0 });
            }
        };
        let (totals_before, height_before) = (self.totals, self.height);
        self.totals.add(&prepared.block, is_assumed);
        self.totals.elapsed_ms = self.earlier_ms + self.start.elapsed().as_millis() as u64;
        self.height = rules.height;
        let note = Moved {
            totals_before,
            height_before,
            place,
            totals: self.totals,
            cache_bytes: self.coins.cache_bytes(),
        };
        Ok(InFlight { scripts, undo, note })
    }

    /// The verdict on the block after the last connected one, where its coins were not moved.
    fn fault(&self, refused: Refused) -> Result<End, ValidateError> {
        let Refused { fault, place, damaged } = refused;
        let unreadable = |debug: String| ("unreadable-block".to_owned(), debug);
        let is_damaged = fault.is_damage();
        let (reason, mut debug) = match fault {
            Fault::Read(error) => return Err(error.into()),
            Fault::Engine(error) => return Err(error.into()),
            Fault::Rule(error) => rule(&error),
            Fault::Parse(error) => {
                let bytes = place.size;
                unreadable(format!("its record of {bytes} bytes does not hold a block: {error}"))
            }
            Fault::Changed { found } => {
                unreadable(format!("the file has changed: block {found} is there now"))
            }
        };
        if let Some(others @ 1..) = damaged.checked_sub(1) {
            debug = format!("{debug}; {others} other copies are damaged too");
        }
        Ok(self.invalid((reason, debug), &place, is_damaged))
    }

    fn invalid(
        &self,
        (reason, debug): (String, String),
        place: &BlockPlace,
        is_damaged: bool,
    ) -> End {
        let height = self.height + 1;
        let hash = self.chain.hash(height);
        let place = FilePlace::new(self.files, place);
        End::Invalid(Box::new(InvalidBlock { hash, height, reason, debug, place, is_damaged }))
    }
}

/// Reject reason and evidence.
fn rule(error: &BlockError) -> (String, String) {
    let (reason, debug) = (error.reject_reason(), error.debug_message());
    // What Core says is for comparing; our own words have the evidence.
    let debug = if debug.is_empty() { error.to_string() } else { format!("{debug}: {error}") };
    (reason.into_owned(), debug)
}

fn no_thread(error: &std::io::Error) -> ValidateError {
    ValidateError::Threads(error.to_string())
}

/// Ends reading ahead when it goes out of scope.
struct Ending<'p, 'a>(&'p Prefetch<'a>);

impl Drop for Ending<'_, '_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
