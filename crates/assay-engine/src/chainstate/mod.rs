//! The chain's state and its changes, with Core's verbs: accept, connect, disconnect, flush, activate.
//!
//! [`Chainstate`] has the constant parts, [`State`] the parts that change together. The engine owns the lock and the
//! announcements.

mod accept;
mod activate;
mod archive;
mod assume;
mod historical;
mod prune;
mod tip;
mod unknown_rules;
mod validity;
mod warn;

use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_consensus::uint256::U256;
use assay_store::defect::{Point, point};
use assay_store::{BlockIndex, BlockStore};
use assay_wire::Block;
use rayon::ThreadPool;

use crate::apply::{ChainCoins, CoinbaseLog};
use crate::config::Config;
use crate::error::EngineError;
use crate::failure::Failure;
use crate::flush::FlushPolicy;
use crate::log;
use crate::mempool::{Admission, Mempool, View};
use crate::notifier::Notifier;
use crate::prepared::Prepared;
use crate::prune_lock::PruneLocks;
use crate::scripts::Verifier;
use crate::tree::{BlockTree, NodeId};
use crate::work::{Stage, Work};
pub(crate) use accept::AcceptError;
pub(crate) use activate::{BlockCache, ConnectResult, ReorgPath, Step};
pub(crate) use archive::{Archive, Archiving};
pub(crate) use assume::Cause;
pub(crate) use historical::{Historical, HistoricalStep};
pub(crate) use tip::{KnownScripts, Parent, settle_alone};
pub(crate) use unknown_rules::{UnknownRules, signals_after};
pub use validity::{TrialChecks, TrialError};

const RECORDS_PER_GROUP: usize = 4096;

/// The parts that change together, under one lock.
pub(crate) struct State {
    pub(crate) tree: BlockTree,
    /// Coins of the tip: those of a snapshot while a historical chain exists.
    pub(crate) coins: ChainCoins,
    /// Validates the blocks below a snapshot.
    pub(crate) historical: Option<Box<Historical>>,
    pub(crate) mempool: Mempool,
    pub(crate) flushes: FlushPolicy,
    /// Blocks that wait to be connected.
    pub(crate) ready: BlockCache,
    pub(crate) archiving: Option<Archiving>,
    /// True during a reindex: the contents of the block files are not known yet, and none is removed.
    pub(crate) is_importing: bool,
    /// Bytes of block and undo files at the last pruning check.
    pub(crate) pruned_at_bytes: u64,
    /// Reason of the last script verification; `None` at first.
    pub(crate) verify_cause: Option<Cause>,
    /// Path to the best branch in progress: the coins may be ahead of the tip.
    pub(crate) way: Option<ReorgPath>,
    /// Soft forks unknown to this program.
    pub(crate) unknown_rules: UnknownRules,
    pub(crate) best_invalid_work: Option<U256>,
    /// Error after which the engine rejects further work.
    pub(crate) poisoned: Option<String>,
    /// True once the mempool is saved for the last time.
    pub(crate) is_mempool_closed: bool,
    /// Notifies those that wait for a failure.
    pub(crate) failure: Arc<Failure>,
}

impl State {
    /// View of the state for mempool admission.
    pub(crate) fn view(&mut self) -> View<'_> {
        View { tree: &self.tree, coins: &mut self.coins.store, mempool: &mut self.mempool }
    }

    /// Fails if the engine has failed before.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        match &self.poisoned {
            Some(cause) => Err(EngineError::Poisoned(cause.clone())),
            None => Ok(()),
        }
    }

    /// Fails if no transaction may be admitted: the coins of a failed engine may not be those of its tip, and a closed mempool is
    /// not saved again.
    pub(crate) fn check_admission(&self) -> Result<(), EngineError> {
        self.check()?;
        if self.is_mempool_closed {
            return Err(EngineError::Poisoned("it is shut down".to_owned()));
        }
        Ok(())
    }

    /// Returns `outcome`; after an error the engine rejects further work.
    pub(crate) fn poison<T>(&mut self, outcome: Result<T, EngineError>) -> Result<T, EngineError> {
        outcome.map_err(|error| self.fail(error))
    }

    /// Returns the error; after it the engine rejects further work.
    pub(crate) fn fail(&mut self, error: EngineError) -> EngineError {
        self.poisoned.get_or_insert_with(|| error.to_string());
        let advice = error.advice().map_or_else(String::new, |advice| format!("; {advice}"));
        tracing::error!("the engine stops: {error}{advice}");
        self.failure.set(error.fatal_text());
        error
    }
}

/// The constant parts of the chain state.
pub(crate) struct Chainstate {
    pub(crate) config: Arc<Config>,
    pub(crate) pool: Arc<ThreadPool>,
    pub(crate) verifier: Arc<Verifier>,
    /// For blocks below a snapshot, which neither wait for those of the tip nor delay them.
    pub(crate) historical_verifier: Arc<Verifier>,
    pub(crate) blocks: Arc<BlockStore>,
    pub(crate) index: BlockIndex,
    pub(crate) admission: Admission,
    pub(crate) notifier: Notifier,
    pub(crate) work: Work,
    pub(crate) prune_locks: PruneLocks,
    /// Memory for coins of both chains, bytes.
    pub(crate) coin_cache_bytes: usize,
    /// Memory for the block cache of the coins on disk, bytes.
    pub(crate) tier_cache_bytes: usize,
}

impl Chainstate {
    pub(crate) fn params(&self) -> &ChainParams {
        &self.config.params
    }

    /// Block cache of one chain, alone or one of two.
    pub(crate) fn tier_cache_bytes(&self, is_shared: bool) -> usize {
        self.tier_cache_bytes / if is_shared { 2 } else { 1 }
    }

    /// Reads an archived block and computes its hashes.
    fn load(&self, state: &State, id: NodeId) -> Result<Prepared, EngineError> {
        let node = state.tree.get(id);
        let (hash, height) = (node.hash, node.height);
        let missing = EngineError::MissingData { hash, height, what: "block" };
        let raw = self.blocks.read_block(node.block.ok_or(missing)?)?;
        let block = Block::parse(raw, self.params().encoding)
            .map_err(|source| EngineError::StoredBlock { hash, source })?;
        Ok(Prepared::in_parallel(block, hash, &self.pool))
    }

    /// Reads the coinbases up to `tip` without a mandatory height.
    pub(crate) fn coinbase_log(
        &self,
        state: &State,
        tip: NodeId,
    ) -> Result<CoinbaseLog, EngineError> {
        /// Header, count, and the largest coinbase of a single read.
        const PREFIX_BYTES: u32 = 4096;
        let mut log = CoinbaseLog::default();
        let bip34 = self.params().activation.bip34;
        let last = state.tree.get(tip).height.min(bip34.saturating_sub(1));
        let last = state.tree.ancestor_at(tip, last);
        for id in state.tree.path(NodeId::GENESIS, last).into_iter().rev() {
            let Some(pos) = state.tree.get(id).block else {
                // Pruned or missing, so possibly repeated.
                log.note_gap();
                continue;
            };
            let prefix = self.blocks.read_block_part(pos, 0, pos.size.min(PREFIX_BYTES))?;
            let txid = match assay_wire::first_tx(&prefix, self.params().encoding) {
                Some(txid) => txid,
                None => self.load(state, id)?.txids[0],
            };
            log.connect(txid, false);
        }
        // Repeats above that height are not searched for: assume one. Only blocks subject to BIP30 read this.
        if bip34 > 1 && state.tree.get(tip).height >= bip34 {
            log.note_gap();
        }
        Ok(log)
    }

    /// Flushes the coins of the tip and everything before them.
    pub(crate) fn flush(&self, state: &mut State) -> Result<(), EngineError> {
        state.check()?;
        let settled = self.settle_archive(state);
        state.poison(settled)?;
        let node = state.tree.tip_node();
        let (height, hash) = (node.height, node.hash);
        let committed = self.work.time(Stage::Flush, || {
            assay_store::commit(&mut state.coins.store, &self.blocks, &self.index, height, &hash)
        });
        // A retry might succeed without the data that the failed sync dropped.
        let stats = state.poison(committed.map_err(EngineError::from))?;
        state.flushes.flushed();
        log::flushed(height, &stats, &state.coins.store.usage());
        let pruned = self.prune_to_target(state);
        state.poison(pruned)
    }

    /// Marks a block and its descendants as failed, in memory and in the index.
    pub(crate) fn mark_failed(&self, state: &mut State, id: NodeId) -> Result<(), EngineError> {
        self.settle_archive(state)?;
        state.tree.clear_valid(id);
        let changed = state.tree.set_failed(id);
        point(Point::MarkInvalid);
        self.put_records(state, &changed)?;
        self.invalid_chain_found(state, id, &changed);
        Ok(())
    }

    /// Writes the index records of blocks, in this order.
    pub(crate) fn put_records(&self, state: &State, ids: &[NodeId]) -> Result<(), EngineError> {
        for group in ids.chunks(RECORDS_PER_GROUP) {
            let records: Vec<_> = group.iter().map(|id| state.tree.get(*id).to_record()).collect();
            self.index.put(&records)?;
        }
        Ok(())
    }

    /// Makes blocks and index survive a power cut.
    pub(crate) fn sync_records(&self) -> Result<(), EngineError> {
        self.blocks.sync()?;
        self.index.sync()?;
        Ok(())
    }
}
