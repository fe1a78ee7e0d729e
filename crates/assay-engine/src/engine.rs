//! The engine itself: what it holds, how it opens and closes, what it can be asked.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use assay_consensus::params::ChainParams;
use assay_store::defect::Whole;
use assay_store::io::{Io, RealIo};
use assay_store::{
    BlockIndex, BlockStore, CoinStore, CoinTier, CoinUsage, Room, Store, StoreConfig, decode_undo,
};
use assay_wire::{Block, BlockHash, Coin, OutPoint, Transaction, Txid};
use parking_lot::{Condvar, Mutex, MutexGuard};
use rayon::ThreadPool;

use crate::activate::poison;
use crate::apply::CoinbaseLog;
use crate::config::Config;
use crate::deferred::configure_second_look;
use crate::follow::{Handover, Journal, Signal};
use crate::ibd::InitialDownload;
use crate::log;
use crate::mempool::{Pool, Turns, Verdicts};
use crate::scripts::Verifier;
use crate::tree::{BlockTree, NodeId};
use crate::types::{BlockEntry, EngineError, OpenError, Tip, big_endian};

/// A validating engine over one chain in one folder.
///
/// All methods take `&self` and may be called from any thread. Blocks and transactions are judged one after the other; the
/// scripts of each are verified on all threads of the engine.
pub struct Engine {
    pub(crate) config: Config,
    pub(crate) params: Arc<ChainParams>,
    pub(crate) pool: Arc<ThreadPool>,
    pub(crate) verifier: Arc<Verifier>,
    pub(crate) blocks: BlockStore,
    pub(crate) index: BlockIndex,
    pub(crate) io: Arc<dyn Io>,
    pub(crate) mempool_loaded: AtomicBool,
    pub(crate) saving_mempool: Mutex<()>,
    pub(crate) turns: Turns,
    pub(crate) policy_work: AtomicU64,
    state: Mutex<State>,
    announced: Mutex<Announced>,
    changed: Condvar,
    download: InitialDownload,
    pub(crate) signal: Arc<Signal>,
    pub(crate) handover: Mutex<Handover>,
}

/// What changes together, under one lock.
pub(crate) struct State {
    pub(crate) tree: BlockTree,
    pub(crate) coins: CoinStore,
    pub(crate) mempool: Pool,
    pub(crate) verdicts: Verdicts,
    pub(crate) coinbases: CoinbaseLog,
    pub(crate) flushed_at: Instant,
    /// Why the engine refuses to go on.
    pub(crate) poisoned: Option<String>,
}

/// The state, locked. Fields are dropped in order: a panic ends the process before anybody else gets the lock.
pub(crate) struct StateGuard<'a> {
    _whole: Whole,
    state: MutexGuard<'a, State>,
}

impl Deref for StateGuard<'_> {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl DerefMut for StateGuard<'_> {
    fn deref_mut(&mut self) -> &mut State {
        &mut self.state
    }
}

/// What waiting threads look at; apart from [`State`], so that asking for the tip never waits for a block.
struct Announced {
    tip: Tip,
    header_height: u32,
    is_closing: bool,
}

impl Engine {
    /// Opens the folder, makes it where it is missing, and connects what a crash left unconnected.
    ///
    /// # Errors
    /// When the folder cannot be used or holds something else or something damaged.
    pub fn open(config: Config) -> Result<Self, OpenError> {
        let store = Store::open(&store_config(&config))?;
        Self::over(config, store, Arc::new(RealIo))
    }

    /// [`Engine::open`] over another file system and another tier for the coins.
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
        configure_second_look(config.sample_signatures, Some(config.datadir.clone()));
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(config.threads.max(1))
            .thread_name(|index| format!("verify-{index}"))
            .build()
            .map_err(|error| OpenError::Threads(error.to_string()))?;
        let pool = Arc::new(pool);
        let params = Arc::clone(&config.params);
        let genesis = Block::parse(params.genesis_block(), params.encoding)
            .expect("the genesis block of known parameters parses");
        let mut tree = BlockTree::new(*genesis.header());
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
        let tip = tip_of(&tree);
        let signal = Arc::new(Signal::default());
        let mut mempool = Pool::new(config.cluster_count_max.is_some());
        mempool.journal = config.is_followed.then(|| Journal::new(Arc::clone(&signal)));
        let announced = Announced { tip, header_height: tip.height, is_closing: false };
        let engine = Self {
            params,
            verifier: Verifier::new(Arc::clone(&pool), config.script_batch),
            pool,
            blocks: store.blocks,
            index: store.index,
            io,
            mempool_loaded: AtomicBool::new(!config.persist_mempool),
            saving_mempool: Mutex::new(()),
            turns: Turns::default(),
            policy_work: AtomicU64::new(0),
            state: Mutex::new(State {
                tree,
                coins: store.coins,
                mempool,
                verdicts: Verdicts::default(),
                coinbases: CoinbaseLog::default(),
                flushed_at: Instant::now(),
                poisoned: None,
            }),
            announced: Mutex::new(announced),
            changed: Condvar::new(),
            download: InitialDownload::new(&config.params),
            signal,
            handover: Mutex::default(),
            config,
        };
        engine.recover(&store.recovery.unindexed)?;
        engine.download.log_start(&engine.tip(), &engine.params);
        Ok(engine)
    }

    /// Brings the coins from where they were last written to where the archived blocks go.
    fn recover(&self, unindexed: &[assay_store::BlockPos]) -> Result<(), OpenError> {
        let start = Instant::now();
        let mut state = self.lock();
        self.rebuild_coinbase_log(&mut state)?;
        let from = state.tree.tip_node().height;
        self.activate(&mut state, None)?;
        let to = state.tree.tip_node().height;
        drop(state);
        for pos in unindexed {
            let raw = self.blocks.read_block(*pos).map_err(EngineError::from)?;
            let outcome = self.submit_block(raw);
            tracing::info!("archived block without index record at {pos:?}: {outcome:?}");
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

    /// Reads the coinbases of active blocks that did not have to begin with their height.
    fn rebuild_coinbase_log(&self, state: &mut State) -> Result<(), EngineError> {
        /// Header, count, and the largest coinbase that one read covers.
        const PREFIX_BYTES: u32 = 4096;
        let last = state.tree.tip_node().height.min(self.params.activation.bip34.saturating_sub(1));
        for height in 1..=last {
            let Some(id) = state.tree.active_at(height) else { break };
            let Some(pos) = state.tree.get(id).block else { continue };
            let prefix = self.blocks.read_block_part(pos, 0, pos.size.min(PREFIX_BYTES))?;
            let txid = match assay_wire::first_tx(&prefix, self.params.encoding) {
                Some(txid) => txid,
                None => self.load(state, id)?.txids[0],
            };
            state.coinbases.connect(txid, false);
        }
        Ok(())
    }

    /// The state. A panic while it is held ends the process: nobody sees it half changed.
    pub(crate) fn lock(&self) -> StateGuard<'_> {
        StateGuard { _whole: Whole::begin("the chain's state"), state: self.state.lock() }
    }

    /// Lets waiting threads see the tip.
    pub(crate) fn announce(&self, state: &State) {
        let header_height = state.tree.get(state.tree.best_header()).height;
        let tip = tip_of(&state.tree);
        self.download.goes_on(&tip);
        let mut announced = self.announced.lock();
        (announced.tip, announced.header_height) = (tip, header_height);
        drop(announced);
        self.changed.notify_all();
        self.signal.wake();
    }

    /// The chain's parameters.
    pub fn params(&self) -> &ChainParams {
        &self.params
    }

    /// How the engine was set up.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The tip; never waits for a block that is being connected.
    pub fn tip(&self) -> Tip {
        self.announced.lock().tip
    }

    /// Height of the header with the most work that nothing speaks against; never waits either.
    pub fn header_height(&self) -> u32 {
        self.announced.lock().header_height
    }

    /// Waits until `is_reached` holds of the tip, the time is over, or the engine closes; returns the tip then.
    pub fn wait_for(&self, timeout: Option<Duration>, is_reached: impl Fn(&Tip) -> bool) -> Tip {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut announced = self.announced.lock();
        while !is_reached(&announced.tip) && !announced.is_closing {
            match deadline {
                None => self.changed.wait(&mut announced),
                Some(deadline) => {
                    if self.changed.wait_until(&mut announced, deadline).timed_out() {
                        break;
                    }
                }
            }
        }
        announced.tip
    }

    /// Waits for a tip of at least this height.
    pub fn wait_for_height(&self, height: u32, timeout: Option<Duration>) -> Tip {
        self.wait_for(timeout, |tip| tip.height >= height)
    }

    /// Waits for another tip than `from`.
    pub fn wait_for_tip_change(&self, from: BlockHash, timeout: Option<Duration>) -> Tip {
        self.wait_for(timeout, |tip| tip.hash != from)
    }

    /// Hash of the active block at `height`.
    pub fn block_hash_at(&self, height: u32) -> Option<BlockHash> {
        let state = self.lock();
        state.tree.active_at(height).map(|id| state.tree.get(id).hash)
    }

    /// What is known of a block.
    pub fn block_entry(&self, hash: &BlockHash) -> Option<BlockEntry> {
        let state = self.lock();
        state.tree.find(hash).map(|id| block_entry(&state.tree, id, &self.params))
    }

    /// The serialised block, when it is stored.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read_block(&self, hash: &BlockHash) -> Result<Option<Vec<u8>>, EngineError> {
        if *hash == self.params.genesis_hash {
            return Ok(Some(self.params.genesis_block()));
        }
        let pos = {
            let state = self.lock();
            state.tree.find(hash).and_then(|id| state.tree.get(id).block)
        };
        pos.map(|pos| self.blocks.read_block(pos).map_err(EngineError::from)).transpose()
    }

    /// The coins that a connected block spent, transaction by transaction, without the coinbase.
    ///
    /// # Errors
    /// When block or undo data cannot be read.
    pub fn read_spent(&self, hash: &BlockHash) -> Result<Option<Vec<Vec<Coin>>>, EngineError> {
        let pos = {
            let state = self.lock();
            state.tree.find(hash).and_then(|id| state.tree.get(id).undo)
        };
        let (Some(pos), Some(raw)) = (pos, self.read_block(hash)?) else { return Ok(None) };
        let undo = self.blocks.read_undo(pos, hash)?;
        let mut coins = decode_undo(&undo)
            .map_err(|source| EngineError::Undo { hash: *hash, source })?
            .into_iter();
        let block = Block::parse(raw, self.params.encoding)
            .map_err(|source| EngineError::StoredBlock { hash: *hash, source })?;
        let spent: Vec<Vec<Coin>> =
            block.txs().skip(1).map(|tx| coins.by_ref().take(tx.input_count()).collect()).collect();
        let is_whole = coins.next().is_none()
            && spent
                .iter()
                .zip(block.txs().skip(1))
                .all(|(coins, tx)| coins.len() == tx.input_count());
        if is_whole { Ok(Some(spent)) } else { Err(EngineError::UndoMismatch { hash: *hash }) }
    }

    /// An unspent output and the tip it was looked up at. With `include_mempool`, outputs of unconfirmed transactions
    /// count and outputs that they spend do not.
    ///
    /// # Errors
    /// When the coins cannot be read.
    pub fn coin(
        &self,
        outpoint: &OutPoint,
        include_mempool: bool,
    ) -> Result<Option<(Coin, Tip)>, EngineError> {
        let state = self.lock();
        let tip = tip_of(&state.tree);
        if include_mempool {
            if state.mempool.spender(outpoint).is_some() {
                return Ok(None);
            }
            if let Some(coin) = state.mempool.output(outpoint, UNCONFIRMED_HEIGHT) {
                return Ok(Some((coin, tip)));
            }
        }
        Ok(state.coins.get(outpoint)?.map(|coin| (coin, tip)))
    }

    /// An unconfirmed transaction.
    pub fn mempool_tx(&self, txid: &Txid) -> Option<Arc<Transaction>> {
        self.lock().mempool.get(txid).map(|entry| Arc::clone(&entry.tx))
    }

    /// A transaction of a block, by its txid.
    ///
    /// # Errors
    /// When the block cannot be read.
    pub fn find_transaction(
        &self,
        txid: &Txid,
        block: &BlockHash,
    ) -> Result<Option<Transaction>, EngineError> {
        let Some(raw) = self.read_block(block)? else { return Ok(None) };
        let block = Block::parse(raw, self.params.encoding)
            .map_err(|source| EngineError::StoredBlock { hash: *block, source })?;
        Ok(block.txs().find(|tx| tx.txid() == *txid).map(|tx| tx.to_owned_transaction()))
    }

    /// Coins in memory and the bytes they take.
    pub fn cache(&self) -> (usize, usize) {
        let state = self.lock();
        (state.coins.cached_coins(), state.coins.cache_bytes())
    }

    /// What the coins take, in memory and on disk.
    pub fn coin_usage(&self) -> CoinUsage {
        self.lock().coins.usage()
    }

    /// Bytes that blocks, undo data and coins take on disk.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn disk_bytes(&self) -> Result<u64, EngineError> {
        Ok(self.blocks.disk_bytes()? + self.lock().coins.disk_bytes())
    }

    /// Whether the chain is still being caught up with: no tip since the start had the minimum chain work and was at most a
    /// day old (Core `validation.cpp`, `IsInitialBlockDownload`).
    pub fn is_initial_block_download(&self) -> bool {
        self.download.goes_on(&self.tip())
    }

    /// Writes everything out.
    ///
    /// # Errors
    /// When the disk refuses; what was acknowledged before is still there after a restart.
    pub fn flush(&self) -> Result<(), EngineError> {
        self.flush_state(&mut self.lock())
    }

    pub(crate) fn flush_state(&self, state: &mut State) -> Result<(), EngineError> {
        if let Some(cause) = &state.poisoned {
            return Err(EngineError::Poisoned(cause.clone()));
        }
        let node = state.tree.tip_node();
        let (height, hash) = (node.height, node.hash);
        let committed =
            assay_store::commit(&mut state.coins, &self.blocks, &self.index, height, &hash);
        // Trying again might succeed without what the failed sync has dropped.
        let stats = poison(state, committed.map_err(EngineError::from))?;
        state.flushed_at = Instant::now();
        log::flushed(height, &stats, &state.coins.usage());
        Ok(())
    }

    /// Makes room for the next block; call it after every block whose coins have moved. Gives whether the coins should be
    /// written out: because there is no other way to make room, or to bound what a crash would have to connect again.
    pub(crate) fn is_flush_due(&self, state: &mut State) -> bool {
        let room = state.coins.make_room();
        if let Room::Evicted(coins) = room {
            log::evicted(coins, &state.coins.usage());
        }
        room == Room::FlushDue || state.flushed_at.elapsed() >= self.config.flush_interval
    }

    /// Whether [`Engine::shutdown`] has begun.
    pub(crate) fn is_closing(&self) -> bool {
        self.announced.lock().is_closing
    }

    /// Writes everything out, the mempool included, and wakes all waiting threads; the engine takes nothing afterwards.
    ///
    /// # Errors
    /// As [`Engine::flush`].
    pub fn shutdown(&self) -> Result<(), EngineError> {
        self.announced.lock().is_closing = true;
        self.changed.notify_all();
        self.signal.wake();
        self.save_mempool_at_shutdown();
        let mut state = self.lock();
        let flushed = self.flush_state(&mut state);
        if state.poisoned.is_none() {
            state.poisoned = Some("it is shut down".to_owned());
        }
        flushed
    }
}

/// Height that Core gives to coins of unconfirmed transactions (`MEMPOOL_HEIGHT`).
pub const UNCONFIRMED_HEIGHT: u32 = 0x7fff_ffff;

pub(crate) fn unix_time_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

pub(crate) fn tip_of(tree: &BlockTree) -> Tip {
    let node = tree.tip_node();
    Tip {
        height: node.height,
        hash: node.hash,
        time: node.header.time,
        median_time: node.median_time,
        bits: node.header.bits,
        chain_work: big_endian(node.chain_work),
        chain_txs: node.chain_tx_count,
    }
}

fn store_config(config: &Config) -> StoreConfig {
    let mut store = StoreConfig::new(&config.datadir, config.params.disk_magic)
        .with_coin_memory(config.cache_bytes_max);
    store.block_file_bytes_max = config.block_file_bytes_max;
    store
}

fn block_entry(tree: &BlockTree, id: NodeId, params: &ChainParams) -> BlockEntry {
    let node = tree.get(id);
    let in_active_chain = tree.is_active(id);
    let next = in_active_chain.then(|| tree.active_at(node.height + 1)).flatten();
    let size = match node.block {
        Some(pos) => pos.size,
        None if node.height == 0 => params.genesis_block().len() as u32,
        None => 0,
    };
    BlockEntry {
        header: node.header,
        hash: node.hash,
        height: node.height,
        chain_work: big_endian(node.chain_work),
        tx_count: node.tx_count,
        chain_txs: node.chain_tx_count,
        in_active_chain,
        next: next.map(|id| tree.get(id).hash),
        median_time: node.median_time,
        has_data: size > 0,
        size,
    }
}
