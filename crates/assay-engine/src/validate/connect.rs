//! Connecting the blocks of the chosen branch, one after the other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use assay_consensus::block::BlockError;
use assay_store::{BlockFiles, CoinStore, Marker, Room};
use assay_wire::{Block, Coin};
use rayon::ThreadPool;

use super::datadir::{Datadir, DatadirError};
use super::headers::Chain;
use super::prefetch::{Fault, Prefetch, Ready};
use super::{
    ConnectState, End, FilePlace, InvalidBlock, Totals, ValidateConfig, ValidateError,
    ValidateProgress,
};
use crate::apply::{Applier, ApplyError, CoinbaseLog, first_overwrite};
use crate::config::READ_THREADS;
use crate::connect::{ConnectError, doubt, verify_sums};
use crate::scripts::{ScriptJob, ScriptQueue};

/// Blocks read ahead may take this much memory.
const AHEAD_BYTES_MAX: u64 = 64 << 20;

/// How long coins may go without being written out where an interruption should not cost more.
const FLUSH_INTERVAL: Duration = Duration::from_mins(10);

/// The coins at a height, and everything needed to go on from there.
pub(crate) struct Connector<'a> {
    config: &'a ValidateConfig,
    files: &'a BlockFiles,
    chain: &'a Chain<'a>,
    pool: &'a ThreadPool,
    datadir: Datadir,
    coins: CoinStore,
    coinbases: CoinbaseLog,
    totals: Totals,
    height: u32,
    /// Height on disk.
    flushed_height: u32,
    last_flush: Instant,
    /// Start of this run, and the time that earlier ones took.
    start: Instant,
    earlier_ms: u64,
}

/// Why a block was not connected.
enum Failure {
    Rule(BlockError),
    Validate(ValidateError),
}

impl From<assay_store::CoinError> for Failure {
    fn from(error: assay_store::CoinError) -> Self {
        Self::Validate(error.into())
    }
}

impl<'a> Connector<'a> {
    pub(crate) fn new(
        config: &'a ValidateConfig,
        files: &'a BlockFiles,
        chain: &'a Chain<'a>,
        pool: &'a ThreadPool,
        (datadir, coins, totals): (Datadir, CoinStore, Totals),
    ) -> Result<Self, ValidateError> {
        let height = match coins.tip() {
            None => 0,
            Some(Marker { height, hash }) => {
                if height > chain.height() || chain.hash(height) != hash {
                    return Err(ValidateError::OtherBranch { hash, height });
                }
                height
            }
        };
        if let Some(stop_height) = config.stop_height.filter(|stop| *stop < height) {
            return Err(ValidateError::PastStop { height, stop_height });
        }
        let mut connector = Self {
            config,
            files,
            chain,
            pool,
            datadir,
            coins,
            coinbases: CoinbaseLog::default(),
            totals,
            height,
            flushed_height: height,
            last_flush: Instant::now(),
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

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    pub(crate) fn coins(&self) -> &CoinStore {
        &self.coins
    }

    /// Reads the coinbases of connected blocks that did not have to begin with their height.
    fn rebuild_coinbase_log(&mut self) -> Result<(), ValidateError> {
        /// Header, count, and the largest coinbase that one read covers.
        const PREFIX_BYTES: u32 = 4096;
        let params = &self.config.params;
        let last = self.height.min(params.activation.bip34.saturating_sub(1));
        for height in 1..=last {
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

    /// Connects up to the end of the chain or where it is to stop; writes the coins out in any case but an error.
    pub(crate) fn run(
        &mut self,
        assumed_height: u32,
        stop: &AtomicBool,
        progress: &dyn ValidateProgress,
    ) -> Result<End, ValidateError> {
        let chain = self.chain;
        let stop_height = self.config.stop_height.unwrap_or(u32::MAX);
        let last = chain.height().min(stop_height);
        let bytes_total = chain.bytes(1..=last);
        let mut bytes_done = chain.bytes(1..=self.height);
        let range = (self.height + 1, last);
        let params = &*self.config.params;
        let prefetch = Prefetch::new(params, self.files, chain, range, AHEAD_BYTES_MAX);
        let readers = (self.config.threads / 4).clamp(1, 4);
        let end = std::thread::scope(|scope| {
            // Also when this thread unwinds, so that the scope ends.
            let _ending = Ending(&prefetch);
            for _ in 0..readers {
                scope.spawn(|| prefetch.work());
            }
            while self.height < last {
                if stop.load(Ordering::Relaxed) {
                    return Ok(End::Interrupted);
                }
                let height = self.height + 1;
                let entry = chain.entry(height);
                match prefetch.next() {
                    Ok(ready) => match self.connect(&ready, height <= assumed_height) {
                        Ok(()) => {}
                        Err(Failure::Rule(error)) => return Ok(self.invalid(rule(&error))),
                        Err(Failure::Validate(error)) => return Err(error),
                    },
                    Err(fault) => return self.fault(fault),
                }
                bytes_done += u64::from(entry.place.size);
                progress.connected(&ConnectState {
                    height,
                    last_height: last,
                    bytes_done,
                    bytes_total,
                    totals: self.totals,
                    cache_bytes: self.coins.cache_bytes(),
                });
                let is_due = self.config.is_lasting && self.last_flush.elapsed() > FLUSH_INTERVAL;
                if self.coins.make_room() == Room::FlushDue || is_due {
                    self.flush(progress)?;
                }
            }
            let is_whole = last == chain.height();
            Ok(if is_whole { End::Complete } else { End::StopHeight })
        })?;
        self.flush(progress)?;
        Ok(end)
    }

    /// Writes the coins out.
    fn flush(&mut self, progress: &dyn ValidateProgress) -> Result<(), DatadirError> {
        if self.height == self.flushed_height {
            return Ok(());
        }
        progress.flushing(self.height);
        self.totals.elapsed_ms = self.earlier_ms + self.start.elapsed().as_millis() as u64;
        let hash = self.chain.hash(self.height);
        self.datadir.flush(&mut self.coins, &self.totals, self.height, &hash)?;
        self.flushed_height = self.height;
        self.last_flush = Instant::now();
        Ok(())
    }

    /// Moves the coins of the next block and verifies its scripts; changes nothing when it is invalid.
    fn connect(&mut self, ready: &Ready, is_assumed: bool) -> Result<(), Failure> {
        let Ready { prepared, rules } = ready;
        let block = &prepared.block;
        self.coinbases.connect(prepared.txids[0], rules.height_in_coinbase);
        let view = self.chain.up_to(rules.height - 1);
        let job = ScriptJob::new(block, rules, self.config.script_batch);
        let mut applier = Applier::new(block, &prepared.txids, rules, READ_THREADS);
        let (coins, coinbases) = (&mut self.coins, &self.coinbases);
        let moved = self.pool.in_place_scope(|scope| {
            let mut queue = ScriptQueue::new(scope, &job);
            let mut on_spend = |tx_index: usize, spent: &mut Vec<Coin>| {
                if tx_index > 0 && !is_assumed {
                    queue.push(tx_index, spent);
                }
            };
            let moved = applier.apply(coins, coinbases, &view, &mut on_spend);
            queue.send();
            moved
        });
        let verdict = match moved {
            Ok(()) => verify_sums(prepared, rules, &applier, (job, self.pool), 0),
            Err(ApplyError::Rule(error)) => Err(error),
            Err(ApplyError::Coin(error)) => return Err(error.into()),
        };
        if let Err(error) = verdict {
            self.coinbases.disconnect(&prepared.txids[0]);
            applier.unwind(&mut self.coins).map_err(|cause| match doubt(prepared.hash, cause) {
                ConnectError::Engine(error) => Failure::Validate(error.into()),
                ConnectError::Rule(error) => Failure::Rule(error),
            })?;
            // As in the engine: Core looks for outputs that would be overwritten before anything else.
            let overwrite = if rules.bip30 {
                first_overwrite(block, &prepared.txids, block.tx_count(), &self.coins)?
            } else {
                None
            };
            return Err(Failure::Rule(overwrite.unwrap_or(error)));
        }
        self.count(block, is_assumed);
        self.height = rules.height;
        Ok(())
    }

    fn count(&mut self, block: &Block, is_assumed: bool) {
        let totals = &mut self.totals;
        totals.blocks += 1;
        totals.txs += block.tx_count() as u64;
        totals.inputs += (block.input_count() - block.tx(0).input_count()) as u64;
        totals.outputs += block.output_count() as u64;
        totals.bytes += block.bytes().len() as u64;
        totals.assumed_blocks += u64::from(is_assumed);
        totals.elapsed_ms = self.earlier_ms + self.start.elapsed().as_millis() as u64;
    }

    fn fault(&self, fault: Fault) -> Result<End, ValidateError> {
        let unreadable = |debug: String| ("unreadable-block".to_owned(), debug);
        let entry = self.chain.entry(self.height + 1);
        Ok(self.invalid(match fault {
            Fault::Read(error) => return Err(error.into()),
            Fault::Rule(error) => rule(&error),
            Fault::Parse(error) => {
                let bytes = entry.place.size;
                unreadable(format!("its record of {bytes} bytes does not hold one block: {error}"))
            }
            Fault::Changed { found } => {
                unreadable(format!("the file has changed: block {found} is there now"))
            }
        }))
    }

    /// The verdict on the block after the last connected one.
    fn invalid(&self, (reason, debug): (String, String)) -> End {
        let height = self.height + 1;
        let entry = self.chain.entry(height);
        let place = FilePlace::new(self.files, &entry.place);
        End::Invalid(Box::new(InvalidBlock { hash: entry.hash, height, reason, debug, place }))
    }
}

/// Reject reason and evidence.
fn rule(error: &BlockError) -> (String, String) {
    let (reason, debug) = (error.reject_reason(), error.debug_message());
    // What Core says is for comparing; our own words have the evidence.
    let debug = if debug.is_empty() { error.to_string() } else { format!("{debug}: {error}") };
    (reason.into_owned(), debug)
}

/// Ends reading ahead when it goes out of scope.
struct Ending<'p, 'a>(&'p Prefetch<'a>);

impl Drop for Ending<'_, '_> {
    fn drop(&mut self) {
        self.0.end();
    }
}
