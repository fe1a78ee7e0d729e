//! The engine itself: opening and closing, and its interface in parts.
//!
//! The modules below it do the work: the engine takes the locks and calls them. The files of this folder have the methods of its
//! parts [`Chain`], [`Blocks`], [`Mempool`] and [`Mining`].

mod accept;
mod check;
mod control;
mod deployments;
mod download;
mod dump;
mod follow;
mod gauges;
mod headers;
mod historical;
mod import;
mod load;
mod mempool_file;
mod mining;
#[cfg(all(test, feature = "model"))]
mod model;
mod packages;
mod prune;
mod query;
mod relay;
mod serve;
mod submit;
mod transactions;
mod verify_data;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use assay_consensus::block::BlockError;
use assay_consensus::params::ChainParams;
use assay_store::defect::Whole;
use assay_store::io::{Io, RealIo};
use assay_store::{BlockRecord, CoinStore, CoinTier, Store, StoreConfig};
use assay_wire::{Block, BlockHash};

use crate::apply::{ChainCoins, CoinbaseLog};
use crate::chainstate::{BlockCache, Chainstate, ConnectResult, State, UnknownRules};
use crate::clock::Clock;
use crate::config::Config;
use crate::deferred;
use crate::error::{EngineError, OpenError};
use crate::failure::Failure;
use crate::flush::FlushPolicy;
use crate::mempool::{self, Admission, LockPriority};
use crate::mining::LastTemplate;
use crate::notifier::Notifier;
use crate::prune_lock::PruneLocks;
use crate::scripts::{Verifier, verify_threads};
use crate::sync::{Mutex, MutexGuard};
use crate::tree::{BlockTree, NodeId};
use crate::work::Work;
pub use accept::{
    BlockFault, BlockOffer, ConnectReport, FaultKind, HeadersError, Taken, WorkShown,
};
pub use check::Checked;
pub use deployments::DeploymentInfo;
pub use download::{FetchPlan, FetchWish, Wanted};
pub use dump::{CoinsAt, DumpError};
pub use gauges::Gauges;
pub use headers::{BranchStart, HeaderPlace};
pub use historical::{ChainState, HistoricalChain};
pub use import::Imported;
pub use load::LoadError;
pub use mining::TemplateError;
pub use serve::ArchivedBlock;
pub use verify_data::{DataReport, MarkFinding, MarkReport, VerifyDataError};

/// A validating engine over one chain in one folder.
///
/// All methods take `&self` and may be called from any thread. Blocks and transactions are validated one after the other; the
/// scripts of each run on all threads of the engine.
pub struct Engine {
    chainstate: Chainstate,
    state: Mutex<State>,
    turns: LockPriority,
    io: Arc<dyn Io>,
    mempool_loaded: AtomicBool,
    saving_mempool: Mutex<()>,
    /// Invalid blocks since the last query.
    rejected: Mutex<Vec<(BlockHash, BlockError)>>,
    last_template: Mutex<Option<LastTemplate>>,
    is_reindexing: bool,
    failure: Arc<Failure>,
    historical: historical::Announced,
    /// True if IBD was active when memory was last divided.
    was_downloading: AtomicBool,
    /// Held during the load of a snapshot.
    loading_snapshot: Mutex<()>,
    /// Base of the snapshot validated since the start.
    loaded_base: Mutex<Option<BlockHash>>,
}

/// The tree of headers and blocks with its marks, the active chain, its coins and figures, and their checks.
#[derive(Clone, Copy)]
pub struct Chain<'e>(&'e Engine);

/// Blocks with their bytes and undo data: their submission, download, import and relay, and reads of stored ones.
#[derive(Clone, Copy)]
pub struct Blocks<'e>(&'e Engine);

/// Unconfirmed transactions: their submission, tests, queries, relay and file.
#[derive(Clone, Copy)]
pub struct Mempool<'e>(&'e Engine);

/// Block templates, trial validation of blocks, and data for miners.
#[derive(Clone, Copy)]
pub struct Mining<'e>(&'e Engine);

/// The locked state. Fields are dropped in order: a panic ends the process before another thread gets the lock.
struct StateGuard<'a> {
    _whole: Whole,
    /// Present until it is unlocked.
    state: Option<MutexGuard<'a, State>>,
}

impl StateGuard<'_> {
    /// Unlocks in favour of the longest waiting thread.
    fn unlock_fair(mut self) {
        self.mempool.settle_changes();
        if let Some(state) = self.state.take() {
            MutexGuard::unlock_fair(state);
        }
    }
}

impl Drop for StateGuard<'_> {
    fn drop(&mut self) {
        if let Some(state) = &mut self.state {
            state.mempool.settle_changes();
        }
    }
}

impl Deref for StateGuard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        self.state.as_ref().expect("it is held")
    }
}

impl DerefMut for StateGuard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        self.state.as_mut().expect("it is held")
    }
}

impl Engine {
    /// Opens or creates the folder, and connects the blocks that a crash left unconnected.
    ///
    /// # Errors
    /// The folder cannot be used, has other contents, or is damaged.
    pub fn open(config: Config) -> Result<Self, OpenError> {
        let store = Store::open(&store_config(&config))?;
        Self::over(config, store, Arc::new(RealIo))
    }

    /// [`Engine::open`] on another file system and another tier for the coins.
    ///
    /// # Errors
    /// As [`Engine::open`].
    pub fn open_with(
        config: Config,
        io: &Arc<dyn Io>,
        tier: Box<dyn CoinTier>,
    ) -> Result<Self, OpenError> {
        let store = Store::open_with(&store_config(&config), io, tier)?;
        Self::over(config, store, Arc::clone(io))
    }

    fn over(config: Config, store: Store, io: Arc<dyn Io>) -> Result<Self, OpenError> {
        deferred::configure(deferred::Settings {
            sample_signatures: config.sample_signatures,
            schnorr: config.schnorr,
            evidence_dir: Some(config.datadir.clone()),
        });
        let pool = verify_threads(config.threads).map_err(OpenError::Threads)?;
        let params = Arc::clone(&config.params);
        let config = Arc::new(config);
        let mut tree = block_tree(&params, &store)?;
        let (mut failed, mut valid) = (Vec::new(), Vec::new());
        if config.rebuild_coins {
            (failed, valid) = (tree.clear_stored_failures(), tree.clear_all_valid());
        }
        log_recovery(&store);
        check_stored(&params, &tree, config.clock.now_s())?;
        if config.prune.is_none() && tree.had_removals() {
            return Err(OpenError::Pruned);
        }
        let best_invalid_work = tree.best_failed_work();
        let notifier = Notifier::new(tree.tip_facts(), &config);
        let signal = config.is_followed.then(|| Arc::clone(notifier.signal()));
        let events = notifier.events().cloned();
        let failure = Arc::<Failure>::default();
        let mempool = mempool::Mempool::new(config.cluster_count_max.is_some(), signal, events);
        let engine = Self {
            mempool_loaded: AtomicBool::new(!config.persist_mempool),
            state: Mutex::new(State {
                tree,
                coins: ChainCoins { store: store.coins, coinbases: CoinbaseLog::default() },
                historical: None,
                mempool,
                flushes: FlushPolicy::new(Some(config.flush_interval)),
                ready: BlockCache::default(),
                is_importing: store.recovery.is_reindexing,
                pruned_at_bytes: 0,
                verify_cause: None,
                way: None,
                unknown_rules: UnknownRules::default(),
                best_invalid_work,
                archiving: None,
                poisoned: None,
                is_mempool_closed: false,
                failure: Arc::clone(&failure),
            }),
            chainstate: Chainstate {
                verifier: Verifier::new(Arc::clone(&pool), config.script_batch),
                historical_verifier: Verifier::new(Arc::clone(&pool), config.script_batch),
                blocks: Arc::new(store.blocks),
                index: store.index,
                admission: Admission::new(Arc::clone(&config), Arc::clone(&pool)),
                notifier,
                prune_locks: PruneLocks::default(),
                pool,
                work: Work::default(),
                coin_cache_bytes: store_config(&config).cache_bytes_max,
                tier_cache_bytes: store_config(&config).tier_cache_bytes,
                config,
            },
            turns: LockPriority::default(),
            io,
            saving_mempool: Mutex::new(()),
            rejected: Mutex::default(),
            last_template: Mutex::default(),
            is_reindexing: store.recovery.is_reindexing,
            failure,
            historical: historical::Announced::default(),
            was_downloading: AtomicBool::new(true),
            loading_snapshot: Mutex::default(),
            loaded_base: Mutex::default(),
        };
        engine.put_cleared(&failed, &valid)?;
        if store.base.is_none() {
            engine.drop_assumed()?;
        }
        engine.resume_historical(store.historical, store.base)?;
        engine.begin_files(&store.records)?;
        engine.chain().check_at_start()?;
        engine.recover(&store.recovery.unindexed)?;
        engine.chainstate.notifier.download().log_start(&engine.chain().tip(), &params);
        Ok(engine)
    }

    /// Clears all verdicts before the coins are rebuilt: a defect may have marked blocks as invalid, or as valid. Runs before any
    /// coin moves, so that another start without the option does not trust them either.
    fn put_cleared(&self, failed: &[NodeId], valid: &[NodeId]) -> Result<(), OpenError> {
        if !failed.is_empty() {
            let count = failed.len();
            tracing::info!("{count} blocks marked as invalid, or built on one, are judged again");
        }
        if !valid.is_empty() {
            tracing::info!("{} blocks marked as valid are verified again", valid.len());
        }
        if failed.is_empty() && valid.is_empty() {
            return Ok(());
        }
        let state = self.lock_tree();
        self.chainstate.put_records(&state, failed)?;
        self.chainstate.put_records(&state, valid)?;
        Ok(self.chainstate.sync_records()?)
    }

    /// Continues the validation of the blocks below a snapshot.
    fn resume_historical(
        &self,
        coins: Option<CoinStore>,
        base: Option<BlockHash>,
    ) -> Result<(), OpenError> {
        let (Some(coins), Some(base)) = (coins, base) else { return Ok(()) };
        let mut state = self.lock_tree();
        let unknown = |hash, height| OpenError::UnknownCoinTip { hash, height };
        let height = state.tree.tip_node().height;
        let base = state.tree.find(&base).ok_or(unknown(base, height))?;
        let tip = match coins.tip() {
            Some(marker) => {
                state.tree.find(&marker.hash).ok_or(unknown(marker.hash, marker.height))?
            }
            None => NodeId::GENESIS,
        };
        let coinbases = self.chainstate.coinbase_log(&state, tip)?;
        self.chain().begin_historical(
            &mut state,
            ChainCoins { store: coins, coinbases },
            (tip, base),
        );
        Ok(())
    }

    /// Removes marks that depend on the coins of a wrong snapshot.
    fn drop_assumed(&self) -> Result<(), EngineError> {
        let mut state = self.lock_tree();
        let changed = state.tree.drop_assumed();
        self.chainstate.put_records(&state, &changed)
    }

    /// Writes the genesis block to new block files. This program does not read it, but other programs expect it.
    fn begin_files(&self, records: &[BlockRecord]) -> Result<(), EngineError> {
        if records.is_empty() && self.chainstate.blocks.bytes() == 0 {
            self.chainstate.blocks.append_block(&self.chainstate.params().genesis_block())?;
        }
        Ok(())
    }

    /// Moves the coins from the last flushed block to the end of the archived blocks.
    fn recover(&self, unindexed: &[assay_store::BlockPos]) -> Result<(), OpenError> {
        let start = Instant::now();
        let mut state = self.lock();
        state.coins.coinbases = self.chainstate.coinbase_log(&state, state.tree.tip())?;
        let from = state.tree.tip_node().height;
        self.chainstate.activate(&mut state, None)?;
        if self.chainstate.is_pruning_due(&state) {
            self.chainstate.flush(&mut state)?;
        }
        let to = state.tree.tip_node().height;
        drop(state);
        for pos in unindexed {
            let raw = self.chainstate.blocks.read_block(*pos).map_err(EngineError::from)?;
            if raw == self.chainstate.params().genesis_block() {
                continue;
            }
            self.blocks().submit(raw);
            tracing::info!(
                "archived block without index record: file {}, offset {}",
                pos.file,
                pos.offset
            );
        }
        let blocks = to.abs_diff(from);
        if blocks > 0 {
            let elapsed_ms = start.elapsed().as_millis();
            tracing::info!(
                "recovered {blocks} blocks in {elapsed_ms} ms: the coins were at height {from}, the archived blocks go to {to}"
            );
        }
        Ok(())
    }

    /// Locks the state, with the coins at the tip. A panic while it is held ends the process: no thread sees an inconsistent
    /// state.
    fn lock(&self) -> StateGuard<'_> {
        let mut state = self.lock_tree();
        let mut judged = ConnectResult::default();
        // After an error the engine rejects further work, so the caller sees it there.
        let _ = self.chainstate.settle(&mut state, &mut judged);
        let rejected = judged.into_rejected(&state.tree);
        self.rejected.lock().extend(rejected);
        state
    }

    /// Locks the state, with the coins at the tip or, while blocks are being connected, above it. For everything that needs only
    /// the tree; waits for one block at most.
    fn lock_tree(&self) -> StateGuard<'_> {
        StateGuard { _whole: Whole::begin("the chain's state"), state: Some(self.state.lock()) }
    }

    /// [`Engine::lock_tree`] without waiting; `None` if another thread has the lock.
    fn try_lock_tree(&self) -> Option<StateGuard<'_>> {
        let state = self.state.try_lock()?;
        Some(StateGuard { _whole: Whole::begin("the chain's state"), state: Some(state) })
    }

    pub fn chain(&self) -> Chain<'_> {
        Chain(self)
    }

    pub fn blocks(&self) -> Blocks<'_> {
        Blocks(self)
    }

    pub fn mempool(&self) -> Mempool<'_> {
        Mempool(self)
    }

    pub fn mining(&self) -> Mining<'_> {
        Mining(self)
    }

    pub fn params(&self) -> &ChainParams {
        self.chainstate.params()
    }

    pub fn config(&self) -> &Config {
        &self.chainstate.config
    }

    /// Warnings for the operator, in Core's words.
    pub fn warnings(&self) -> Vec<String> {
        self.chainstate.notifier.warnings()
    }

    /// Waits for the next new warning; `None` when the engine closes.
    pub fn next_alert(&self) -> Option<String> {
        self.chainstate.notifier.next_alert()
    }

    /// Waits until the engine fails, and returns the reason in Core's words; `None` when it closes.
    pub fn wait_for_failure(&self) -> Option<String> {
        self.failure.wait()
    }

    /// Reason of an engine failure, in Core's words.
    pub fn failure(&self) -> Option<String> {
        self.failure.cause()
    }

    /// Clock for headers, the mempool and IBD.
    pub fn clock(&self) -> &Clock {
        &self.chainstate.config.clock
    }

    /// Flushes everything.
    ///
    /// # Errors
    /// The disk fails; acknowledged data are still there after a restart.
    pub fn flush(&self) -> Result<(), EngineError> {
        let mut state = self.lock();
        self.chainstate.flush_historical(&mut state)?;
        self.chainstate.flush(&mut state)
    }

    /// Flushes everything, saves the mempool, and wakes all waiting threads; the engine accepts nothing afterwards.
    ///
    /// # Errors
    /// As [`Engine::flush`].
    pub fn shutdown(&self) -> Result<(), EngineError> {
        self.chainstate.notifier.close();
        self.failure.close();
        self.historical.close();
        self.mempool().save_at_shutdown();
        let mut state = self.lock();
        let flushed = self.chainstate.flush_historical(&mut state);
        let flushed = flushed.and_then(|()| self.chainstate.flush(&mut state));
        if state.poisoned.is_none() {
            state.poisoned = Some("it is shut down".to_owned());
        }
        flushed
    }
}

/// The tree of all blocks in the index, with the branch of the coins active.
fn block_tree(params: &ChainParams, store: &Store) -> Result<BlockTree, OpenError> {
    let genesis = Block::parse(params.genesis_block(), params.encoding)
        .expect("the genesis block of known parameters parses");
    let mut tree = BlockTree::new(*genesis.header());
    let known = |base| params.assume_utxo.iter().find(move |known| known.block == base);
    if let Some(known) = store.base.and_then(known) {
        tree.expect_assumed(known.block, known.chain_txs);
    }
    let orphans = store.records.iter().filter(|record| !tree.restore(record)).count();
    if orphans > 0 {
        tracing::warn!("{orphans} index records name unknown parents and are left out");
    }
    if let Some(marker) = store.coins.tip() {
        let id = tree
            .find(&marker.hash)
            .ok_or(OpenError::UnknownCoinTip { hash: marker.hash, height: marker.height })?;
        tree.set_active(id);
    }
    tree.unlink_removed();
    Ok(tree)
}

fn log_recovery(store: &Store) {
    if store.recovery.is_snapshot_promoted {
        // Core's words (`validation.cpp`, `ValidatedSnapshotCleanup`), which its tests expect.
        tracing::info!("[snapshot] cleaning up unneeded background chainstate");
    }
    if store.recovery.is_snapshot_removed {
        tracing::warn!("[snapshot] coins that were not loaded to their end have been removed");
    }
    if let Some(base) = &store.base {
        tracing::info!(
            "[snapshot] coins of block {base} are in use, and blocks below it are validated"
        );
    }
}

/// Checks that the active chain can continue under these rules and at this time (Core `node/chainstate.cpp`).
fn check_stored(params: &ChainParams, tree: &BlockTree, now_s: u64) -> Result<(), OpenError> {
    let segwit = params.activation.segwit;
    let tip = tree.tip_node();
    let mut active = (segwit..=tip.height).filter_map(|height| tree.active_at(height));
    if active.any(|id| tree.get(id).is_without_witness()) {
        return Err(OpenError::WitnessUnchecked { height: segwit });
    }
    if tip.height > 0 && u64::from(tip.header.time) > now_s.saturating_add(FUTURE_MAX_S) {
        return Err(OpenError::FromTheFuture);
    }
    Ok(())
}

/// Core's `MAX_FUTURE_BLOCK_TIME` (`chain.h`).
const FUTURE_MAX_S: u64 = 2 * 3600;

fn store_config(config: &Config) -> StoreConfig {
    let mut store = StoreConfig::new(&config.datadir, config.params.disk_magic)
        .with_coin_memory(config.cache_bytes_max);
    store.block_file_bytes_max = config.block_file_bytes_max;
    store.blocks_dir.clone_from(&config.blocks_dir);
    store.obfuscation = config.obfuscation;
    store.discard_coins = config.rebuild_coins;
    store.reindex = config.reindex;
    store.reindex_removes_gapped = config.prune.is_some();
    store.known_bases = config.params.assume_utxo.iter().map(|known| known.block).collect();
    store
}
