//! The chain's state and the ways it changes, by Core's verbs: accept, connect, disconnect, flush, activate.
//!
//! [`Chainstate`] holds what does not change, [`State`] what changes together; who locks it, and what is announced to others
//! meanwhile, is the engine's business.

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
use assay_store::{BlockIndex, BlockStore, CoinStore};
use assay_wire::Block;
use rayon::ThreadPool;

use crate::apply::CoinbaseLog;
use crate::config::Config;
use crate::error::EngineError;
use crate::failure::Failure;
use crate::flush::FlushPolicy;
use crate::keeper::Keepers;
use crate::log;
use crate::mempool::{Admission, Mempool, View};
use crate::news::News;
use crate::prepared::Prepared;
use crate::scripts::Verifier;
use crate::tree::{BlockTree, NodeId};
use crate::work::{Stage, Work};
pub(crate) use accept::AcceptError;
pub(crate) use activate::{Judged, Ready, Step, Way};
pub(crate) use archive::{Archive, Archiving};
pub(crate) use assume::Cause;
pub(crate) use historical::{Historical, HistoricalStep};
pub(crate) use unknown_rules::{UnknownRules, signals_after};
pub use validity::{TrialChecks, TrialError};

const RECORDS_PER_GROUP: usize = 4096;

/// What changes together, under one lock.
pub(crate) struct State {
    pub(crate) tree: BlockTree,
    /// Coins of the tip: of a snapshot, as long as there is a historical chain.
    pub(crate) coins: CoinStore,
    /// The chain that validates the blocks below a snapshot.
    pub(crate) historical: Option<Box<Historical>>,
    pub(crate) mempool: Mempool,
    pub(crate) coinbases: CoinbaseLog,
    pub(crate) flushes: FlushPolicy,
    /// Blocks that wait to be connected.
    pub(crate) ready: Ready,
    /// The block that is being written to the archive.
    pub(crate) archiving: Option<Archiving>,
    /// Whether the block files are being read again: until that is done, what they hold is not known, and none is removed.
    pub(crate) is_importing: bool,
    /// Bytes of block and undo files when it was last looked at whether any have to go.
    pub(crate) pruned_at_bytes: u64,
    /// Why scripts were verified the last time; `None` at first.
    pub(crate) verify_cause: Option<Cause>,
    /// The way to the best branch, while it is walked: the coins may be ahead of the tip.
    pub(crate) way: Option<Way>,
    /// Soft forks that only others know.
    pub(crate) unknown_rules: UnknownRules,
    /// Most work of a branch that failed.
    pub(crate) best_invalid_work: Option<U256>,
    /// Why the engine refuses to go on.
    pub(crate) poisoned: Option<String>,
    /// Who waits for that to happen.
    pub(crate) failure: Arc<Failure>,
}

impl State {
    /// What admission to the mempool needs of it.
    pub(crate) fn view(&mut self) -> View<'_> {
        View { tree: &self.tree, coins: &mut self.coins, mempool: &mut self.mempool }
    }

    /// An error once the engine refuses to go on.
    pub(crate) fn check(&self) -> Result<(), EngineError> {
        match &self.poisoned {
            Some(cause) => Err(EngineError::Poisoned(cause.clone())),
            None => Ok(()),
        }
    }

    /// Passes an outcome on; after a failure the engine refuses to go on.
    pub(crate) fn poison<T>(&mut self, outcome: Result<T, EngineError>) -> Result<T, EngineError> {
        if let Err(error) = &outcome {
            self.poisoned.get_or_insert_with(|| error.to_string());
            let advice = error.advice().map_or_else(String::new, |advice| format!("; {advice}"));
            tracing::error!("the engine stops: {error}{advice}");
            self.failure.set(error.fatal_text());
        }
        outcome
    }
}

/// What the state is changed with, and where it is kept.
pub(crate) struct Chainstate {
    pub(crate) config: Arc<Config>,
    pub(crate) pool: Arc<ThreadPool>,
    pub(crate) verifier: Arc<Verifier>,
    /// For blocks below a snapshot, which neither wait for those of the tip nor keep them waiting.
    pub(crate) historical_verifier: Arc<Verifier>,
    pub(crate) blocks: Arc<BlockStore>,
    pub(crate) index: BlockIndex,
    pub(crate) admission: Admission,
    pub(crate) news: News,
    pub(crate) work: Work,
    /// Those who still need old blocks.
    pub(crate) keepers: Keepers,
    /// Memory for coins of both chains.
    pub(crate) coin_cache_bytes: usize,
    /// Memory for the files of coins.
    pub(crate) tier_cache_bytes: usize,
}

impl Chainstate {
    pub(crate) fn params(&self) -> &ChainParams {
        &self.config.params
    }

    /// Memory for the files of coins of one chain, of one or two.
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

    /// Reads the coinbases of blocks up to `tip` that did not have to begin with their height.
    pub(crate) fn coinbase_log(
        &self,
        state: &State,
        tip: NodeId,
    ) -> Result<CoinbaseLog, EngineError> {
        /// Header, count, and the largest coinbase that one read covers.
        const PREFIX_BYTES: u32 = 4096;
        let mut log = CoinbaseLog::default();
        let bip34 = self.params().activation.bip34;
        let last = state.tree.get(tip).height.min(bip34.saturating_sub(1));
        let last = state.tree.ancestor_at(tip, last);
        for id in state.tree.path(NodeId::GENESIS, last).into_iter().rev() {
            let Some(pos) = state.tree.get(id).block else {
                // It was removed or never there, and may have been repeated.
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
        // Repeats above that height are not searched for: assume one. Only blocks that BIP30 applies to read this.
        if bip34 > 1 && state.tree.get(tip).height >= bip34 {
            log.note_gap();
        }
        Ok(log)
    }

    /// Writes the coins of the tip out, with everything up to it.
    pub(crate) fn flush(&self, state: &mut State) -> Result<(), EngineError> {
        state.check()?;
        let settled = self.settle_archive(state);
        state.poison(settled)?;
        let node = state.tree.tip_node();
        let (height, hash) = (node.height, node.hash);
        let committed = self.work.time(Stage::Flush, || {
            assay_store::commit(&mut state.coins, &self.blocks, &self.index, height, &hash)
        });
        // Trying again might succeed without what the failed sync has dropped.
        let stats = state.poison(committed.map_err(EngineError::from))?;
        state.flushes.flushed();
        log::flushed(height, &stats, &state.coins.usage());
        let pruned = self.prune_to_target(state);
        state.poison(pruned)
    }

    /// Marks a block and all that build on it as failed, in memory and in the index.
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
