//! Connects the blocks of a branch: coins block by block, scripts of many blocks in parallel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use assay_store::{BlockFiles, BlockPlace, CoinStore, SpentWriter};
use assay_wire::{BlockHash, Coin};
use rayon::ThreadPool;

use super::datadir::Datadir;
use super::prefetch::{BlockSource, Prefetch, Ready};
use super::window::Window;
use super::{ConnectState, End, Totals, ValidateConfig, ValidateError, ValidateProgress};
use crate::apply::{ChainCoins, CoinbaseLog};
use crate::config::READ_THREADS;
use crate::connect::{ConnectError, Connected, connect};
use crate::files::{Chain, Fault, Refused};
use crate::flush::{FlushPolicy, VALIDATE_INTERVAL};
use crate::pipeline::{FailedBlocks, InFlight, Passed, Pipeline};
use crate::scripts::{ScriptQueue, Verifier};
use crate::types::UtxoStats;

/// Limit of the records of blocks read ahead; with hashes and copies the blocks take about a third more.
const AHEAD_BYTES_MAX: u64 = 48 << 20;

/// The coins at a height, and the state for continuing from there.
pub(crate) struct Connector<'a> {
    pub(super) config: &'a ValidateConfig,
    pub(super) files: &'a BlockFiles,
    /// The branch of the coins, up to `height`.
    pub(super) chain: Arc<Chain<'a>>,
    pub(super) pool: &'a Arc<ThreadPool>,
    pub(super) datadir: Datadir,
    /// Also receives the spent coins of blocks.
    pub(super) spent: Option<SpentWriter>,
    pub(super) coins: ChainCoins,
    pub(super) totals: Totals,
    pub(super) height: u32,
    /// Block of the coins on disk.
    pub(super) flushed: BlockHash,
    pub(super) flushes: FlushPolicy,
    /// Statistics already computed, and the time when the last script had passed.
    pub(super) stats: Option<UtxoStats>,
    pub(super) settled_at: Option<Instant>,
    /// Start of this run, and the time of earlier ones.
    pub(super) start: Instant,
    pub(super) earlier_ms: u64,
}

/// Data of a block while its scripts are verified.
pub(super) struct Moved {
    /// Sums and height before it.
    totals_before: Totals,
    height_before: u32,
    /// The copy that was read.
    place: BlockPlace,
    /// Sums including it, and the size of the cache.
    totals: Totals,
    cache_bytes: usize,
}

impl<'a> Connector<'a> {
    /// Continues from the coins of `datadir`, whose block is on `chain`.
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
        let spent = config.write_spent.as_ref();
        let spent = spent.map(|to| SpentWriter::open(&to.dir, config.params.disk_magic));
        let mut connector = Self {
            config,
            spent: spent.transpose()?,
            files,
            flushed: chain.hash(height),
            chain,
            pool,
            datadir,
            coins: ChainCoins { store: coins, coinbases: CoinbaseLog::default() },
            totals,
            height,
            flushes: FlushPolicy::new(config.is_lasting.then_some(VALIDATE_INTERVAL)),
            stats: None,
            settled_at: None,
            start: Instant::now(),
            earlier_ms: totals.elapsed_ms,
        };
        connector.rebuild_coinbase_log()?;
        Ok(connector)
    }

    pub(crate) fn height(&self) -> u32 {
        self.height
    }

    pub(crate) fn hash(&self) -> BlockHash {
        self.chain.hash(self.height)
    }

    /// The branch of the coins.
    pub(crate) fn chain(&self) -> &Chain<'a> {
        &self.chain
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    /// Reads the coinbases of connected blocks without a mandatory height.
    fn rebuild_coinbase_log(&mut self) -> Result<(), ValidateError> {
        /// Header, count, and the largest coinbase of a single read.
        const PREFIX_BYTES: u32 = 4096;
        let params = &self.config.params;
        let last = self.height.min(params.activation.bip34.saturating_sub(1));
        for height in 1..=last {
            if self.chain.copies(height).nth(1).is_some() {
                // The first copy may not be the connected one.
                let txid = self.read_connected(height)?.txids[0];
                self.coins.coinbases.connect(txid, false);
                continue;
            }
            let place = &self.chain.entry(height).place;
            let prefix = self.files.read_part(place, PREFIX_BYTES)?;
            let first_tx = assay_wire::first_tx(&prefix, params.encoding);
            let txid = match first_tx {
                Some(txid) => Some(txid),
                None => assay_wire::first_tx(&self.files.read(place)?, params.encoding),
            };
            // A damaged block was connected before; its damage does not matter in this run.
            if let Some(txid) = txid {
                self.coins.coinbases.connect(txid, false);
            }
        }
        // Repeats above that height are not searched for: assume one. Only blocks subject to BIP30 read this.
        if params.activation.bip34 > 1 && self.height >= params.activation.bip34 {
            self.coins.coinbases.note_gap();
        }
        Ok(())
    }

    /// Connects up to the end of the chain or the stop height. The result is valid after [`Connector::finish`].
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
        let source = BlockSource { params, files: self.files, chain: &chain };
        let prefetch = Prefetch::new(source, range, AHEAD_BYTES_MAX);
        let readers = (self.config.threads / 4).clamp(1, 4);
        prefetch.with_readers(readers, no_thread, || {
            #[cfg(feature = "slowed")]
            let mut since = Instant::now();
            let mut passed = |Passed { scripts, note, .. }: Passed<Moved>| {
                #[cfg(feature = "slowed")]
                {
                    crate::test_slowdown::spin(since.elapsed());
                    since = Instant::now();
                }
                let Moved { totals, cache_bytes, .. } = note;
                let height = scripts.height();
                // As in the total: a copy may be longer or shorter.
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
            let heights = (assumed_height, last);
            let fault = match self.connect_all(
                &prefetch,
                &mut pipeline,
                heights,
                &mut passed,
                (stop, progress),
            )? {
                Ok(fault) => fault,
                Err(refuted) => return self.refute(refuted),
            };
            // Of two invalid blocks the lower one is reported.
            let is_last = fault.is_none() && self.height == last;
            if let Err(refuted) =
                self.finish_scripts(&mut pipeline, &mut passed, is_last, progress)?
            {
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

    /// Connects the blocks of `prefetch` and calls `passed` for each with verified scripts. Ends before a block that cannot be
    /// connected, and returns it, or at one with failing scripts.
    fn connect_all(
        &mut self,
        prefetch: &Prefetch<BlockSource<'_>>,
        pipeline: &mut Pipeline<Moved>,
        (assumed_height, last): (u32, u32),
        mut passed: impl FnMut(Passed<Moved>),
        (stop, progress): (&AtomicBool, &dyn ValidateProgress),
    ) -> Result<Result<Option<Refused>, FailedBlocks<Moved>>, ValidateError> {
        let mut window = Window::default();
        while self.height < last && !stop.load(Ordering::Relaxed) && !pipeline.has_failure() {
            let is_assumed = self.height < assumed_height;
            let next = window.next(prefetch, &mut self.coins.store);
            let block = match next.and_then(|ready| self.connect_block(ready, is_assumed, pipeline))
            {
                Ok(block) => block,
                Err(fault) => return Ok(Ok(Some(fault))),
            };
            self.keep_undo(&block, is_assumed)?;
            if let Some(spent) = &mut self.spent {
                let Connected { scripts, undo } = &block.block;
                spent.push(&scripts.prepared.hash, undo)?;
            }
            pipeline.push(block);
            pipeline.make_room(&mut passed);
            if self.flushes.is_due(&mut self.coins.store) {
                // Coins are written while the last scripts are verified; the write is committed when those have passed.
                let mut outcome = Ok(());
                self.flush_if(progress, || {
                    outcome = pipeline.drain(&mut passed);
                    outcome.is_ok()
                })?;
                if let Err(refuted) = outcome {
                    return Ok(Err(refuted));
                }
            }
        }
        Ok(Ok(None))
    }

    /// Disconnects an invalid block and those above it, which ends this branch.
    fn refute(&mut self, refuted: FailedBlocks<Moved>) -> Result<End, ValidateError> {
        let (note, error) = refuted.unwind(&mut self.coins)?;
        self.totals = note.totals_before;
        self.height = note.height_before;
        let refused = Refused { fault: Fault::Rule(error), place: note.place, damaged: 0 };
        self.fault(refused)
    }

    /// Moves the coins of the next block and hands over its scripts; changes nothing if it breaks another rule.
    fn connect_block(
        &mut self,
        ready: Ready,
        is_assumed: bool,
        pipeline: &Pipeline<Moved>,
    ) -> Result<InFlight<Moved>, Refused> {
        let Ready { prepared, rules, place } = ready;
        let prepared = Arc::new(prepared);
        let view = self.chain.up_to(rules.height - 1);
        let verify = |queue: &mut ScriptQueue<'_>, tx_index: usize, spent: &mut Vec<Coin>| {
            if tx_index > 0 && !is_assumed {
                queue.push(tx_index, spent);
            }
        };
        let block =
            connect(pipeline.queue(&prepared, rules), &mut self.coins, &view, READ_THREADS, verify)
                .map_err(|error| {
                    let fault = match error {
                        ConnectError::Rule(error) => Fault::Rule(error),
                        ConnectError::Engine(error) => Fault::Engine(error),
                    };
                    Refused { fault, place, damaged: 0 }
                })?;
        let (totals_before, height_before) = (self.totals, self.height);
        self.totals.add(&prepared.block, is_assumed);
        self.totals.elapsed_ms = self.earlier_ms + self.start.elapsed().as_millis() as u64;
        self.height = rules.height;
        let note = Moved {
            totals_before,
            height_before,
            place,
            totals: self.totals,
            cache_bytes: self.coins.store.cache_bytes(),
        };
        Ok(InFlight { block, note })
    }

    /// The verdict on the next block, whose coins were not moved.
    fn fault(&self, refused: Refused) -> Result<End, ValidateError> {
        match refused.fault {
            Fault::Read(error) => Err(error.into()),
            Fault::Engine(error) => Err(error.into()),
            _ => {
                let height = self.height + 1;
                let block = refused.report(self.files, (self.chain.hash(height), height));
                Ok(End::Invalid(Box::new(block)))
            }
        }
    }
}

pub(super) fn no_thread(error: &std::io::Error) -> ValidateError {
    ValidateError::Threads(error.to_string())
}
