//! The blocks below the base of a snapshot, validated with coins of their own while the active chain goes on from the snapshot
//! (Core's historical chainstate, `doc/design/assumeutxo.md`).
//!
//! These coins only move towards the base. Blocks go through a pipeline of their own, so that neither chain waits for the scripts
//! of the other.

use std::sync::Arc;

use assay_consensus::block::{BlockError, BlockRules};
use assay_store::CoinStore;

use super::{Chainstate, State};
use crate::apply::CoinbaseLog;
use crate::connect::{ConnectError, Connected, connect, disconnect, load_outputs};
use crate::error::EngineError;
use crate::flush::FlushPolicy;
use crate::log;
use crate::pipeline::{InFlight, Passed, Pipeline};
use crate::prepared::Prepared;
use crate::scripts::Verifier;
use crate::tree::{BlockTree, NodeId};

/// Coins of validated blocks, on their way to the base of a snapshot.
pub(crate) struct Historical {
    pub(crate) coins: CoinStore,
    coinbases: CoinbaseLog,
    flushes: FlushPolicy,
    pipeline: Pipeline<NodeId>,
    /// The block up to which everything is valid.
    pub(crate) tip: NodeId,
    /// The block that the coins are at: the tip, or one above it.
    coins_at: NodeId,
    /// The block whose coins were loaded.
    pub(crate) base: NodeId,
    /// Whether the coins are to be written as soon as the scripts of their blocks have passed.
    is_flush_due: bool,
}

/// What there is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistoricalStep {
    More,
    /// To wait for scripts, which takes long, and needs no lock: [`Chainstate::wait_for_historical_scripts`].
    Scripts,
    /// To wait: for a block, or for the active chain, which comes first.
    Wait,
    /// To compare the coins with those that were assumed: they are those of the base.
    Compare,
    /// Nothing: there is no such chain.
    Nothing,
}

impl Historical {
    pub(crate) fn new(
        (coins, coinbases): (CoinStore, CoinbaseLog),
        flushes: FlushPolicy,
        verifier: Arc<Verifier>,
        (tip, base): (NodeId, NodeId),
    ) -> Self {
        let pipeline = Pipeline::new(verifier);
        Self { coins, coinbases, flushes, pipeline, tip, coins_at: tip, base, is_flush_due: false }
    }
}

impl Chainstate {
    /// One block further towards the base.
    ///
    /// # Errors
    /// When the engine fails, or a block below the base is invalid; it then refuses to go on.
    pub(crate) fn step_historical(&self, state: &mut State) -> Result<HistoricalStep, EngineError> {
        state.check()?;
        // Coins of the active chain come first, as long as there are blocks for it.
        if state.way.is_some() || state.tree.best_candidate() != state.tree.tip() {
            return Ok(HistoricalStep::Wait);
        }
        let outcome = with_historical(state, |state, historical| self.step_of(state, historical));
        let Some(outcome) = outcome else { return Ok(HistoricalStep::Nothing) };
        let step = outcome.and_then(|step| {
            if self.is_pruning_due(state) {
                self.flush(state)?;
            }
            Ok(step)
        });
        state.poison(step)
    }

    /// Writes the historical coins out with everything up to them, where there are any.
    pub(crate) fn flush_historical(&self, state: &mut State) -> Result<(), EngineError> {
        // After a failure coins may have moved by half a block, and a second sync may succeed without what the first has dropped.
        state.check()?;
        let outcome = with_historical(state, |state, historical| {
            self.drain_historical(state, historical)?;
            self.commit_historical(state, historical)
        });
        state.poison(outcome.unwrap_or(Ok(())))
    }

    /// Waits until the scripts of the blocks that are in the pipeline are decided.
    pub(crate) fn wait_for_historical_scripts(&self) {
        self.historical_verifier.drain();
    }

    fn step_of(
        &self,
        state: &mut State,
        historical: &mut Historical,
    ) -> Result<HistoricalStep, EngineError> {
        self.collect_historical(state, historical)?;
        let is_open = historical.pipeline.size().0 > 0;
        if is_open && (historical.pipeline.is_full() || historical.is_flush_due) {
            return Ok(HistoricalStep::Scripts);
        }
        if historical.is_flush_due {
            self.commit_historical(state, historical)?;
            return Ok(HistoricalStep::More);
        }
        let Historical { coins_at, base, .. } = *historical;
        let fork = state.tree.common(coins_at, base);
        let next = state.tree.ancestor_at(base, state.tree.get(fork).height + 1);
        if coins_at != base && state.tree.get(next).has_data() {
            if fork == coins_at {
                self.advance_coins(state, historical, next)?;
            } else {
                // The snapshot is on another branch than the tip was.
                self.disconnect_historical(state, historical)?;
            }
            return Ok(HistoricalStep::More);
        }
        Ok(match coins_at == base {
            _ if is_open => HistoricalStep::Scripts,
            true => HistoricalStep::Compare,
            false => HistoricalStep::Wait,
        })
    }

    /// Connects the block after the one that the coins are at, its scripts apart.
    fn advance_coins(
        &self,
        state: &mut State,
        historical: &mut Historical,
        next: NodeId,
    ) -> Result<(), EngineError> {
        let block = if let Some(block) = state.ready.take(next) {
            block
        } else {
            let block = self.load(state, next);
            Arc::new(block.map_err(|source| EngineError::ReadBlock(Box::new(source)))?)
        };
        match self.connect_historical(state, historical, next, &block) {
            Ok(block) => historical.pipeline.push(InFlight { block, note: next }),
            Err(ConnectError::Rule(error)) => {
                // Of two invalid blocks the lower one counts.
                self.drain_historical(state, historical)?;
                return Err(self.invalid_historical(state, historical, next, &error));
            }
            Err(ConnectError::Engine(error)) => return Err(error),
        }
        historical.coins_at = next;
        historical.is_flush_due = historical.flushes.is_due(&mut historical.coins);
        Ok(())
    }

    /// Takes the blocks out of the pipeline whose scripts have passed, without waiting for others.
    fn collect_historical(
        &self,
        state: &mut State,
        historical: &mut Historical,
    ) -> Result<(), EngineError> {
        if historical.pipeline.has_failure() {
            return self.drain_historical(state, historical);
        }
        let mut passed = Vec::new();
        historical.pipeline.take_passed(|block| passed.push(block));
        self.pass_historical(state, historical, passed)
    }

    /// Moves the coins of a block and hands its scripts over.
    fn connect_historical(
        &self,
        state: &State,
        historical: &mut Historical,
        id: NodeId,
        prepared: &Arc<Prepared>,
    ) -> Result<Connected, ConnectError> {
        let tree = &state.tree;
        let branch = tree.ancestors(historical.coins_at);
        let rules =
            BlockRules::new(self.params(), &branch, prepared.block.header(), &prepared.hash);
        let Historical { coins, coinbases, pipeline, .. } = historical;
        let mut queue = pipeline.queue(prepared, rules);
        if self.is_exact(tree, rules.height, prepared) {
            queue.verify_at_once();
        }
        let was_valid = tree.get(id).is_valid();
        let is_known = was_valid || self.cause_to_verify(tree, id).is_none();
        let threads = self.config.read_threads;
        connect(queue, (coins, coinbases, &branch), threads, |queue, tx_index, spent| {
            if tx_index > 0 && !is_known {
                queue.push(tx_index, spent);
            }
        })
    }

    /// Waits for the scripts of all blocks whose coins have moved.
    fn drain_historical(
        &self,
        state: &mut State,
        historical: &mut Historical,
    ) -> Result<(), EngineError> {
        let mut passed = Vec::new();
        let outcome = historical.pipeline.drain(|block| passed.push(block));
        self.pass_historical(state, historical, passed)?;
        let Historical { coins, coinbases, .. } = historical;
        let Err(refuted) = outcome else {
            assert!(historical.coins_at == historical.tip, "the coins are above the validated tip");
            return Ok(());
        };
        let (id, error) = refuted.unwind(coins, coinbases)?;
        historical.coins_at = historical.tip;
        Err(self.invalid_historical(state, historical, id, &error))
    }

    /// Notes of blocks that all of their scripts have passed.
    fn pass_historical(
        &self,
        state: &mut State,
        historical: &mut Historical,
        blocks: Vec<Passed<NodeId>>,
    ) -> Result<(), EngineError> {
        for Passed { scripts, undo, note: id } in blocks {
            let prepared = scripts.prepared();
            let node = state.tree.get(id);
            if !node.is_valid() || node.undo.is_none() {
                let undo = self.put_undo(node, &undo)?;
                state.tree.set_valid(id, undo, false);
                self.index.put(&[state.tree.get(id).to_record()])?;
            }
            historical.tip = id;
            self.work.connected(prepared.block.tx_count(), prepared.block.bytes().len());
        }
        Ok(())
    }

    fn commit_historical(
        &self,
        state: &State,
        historical: &mut Historical,
    ) -> Result<(), EngineError> {
        let node = state.tree.get(historical.tip);
        let Historical { coins, flushes, is_flush_due, .. } = historical;
        let stats = assay_store::commit(coins, &self.blocks, &self.index, node.height, &node.hash)?;
        flushes.flushed();
        *is_flush_due = false;
        log::flushed(node.height, &stats, &coins.usage());
        Ok(())
    }

    fn disconnect_historical(
        &self,
        state: &State,
        historical: &mut Historical,
    ) -> Result<(), EngineError> {
        let id = historical.tip;
        let prepared = self.load(state, id)?;
        let node = state.tree.get(id);
        let (hash, height) = (node.hash, node.height);
        let missing = EngineError::MissingData { hash, height, what: "undo data" };
        let undo = self.blocks.read_undo(node.undo.ok_or(missing)?, &hash)?;
        let Historical { coins, coinbases, .. } = historical;
        load_outputs(&prepared, coins, self.config.read_threads)?;
        disconnect(&prepared, &undo, self.params().cash.is_some(), (&mut *coins, coinbases))?;
        historical.tip = node.parent.expect("the genesis block is below every base");
        historical.coins_at = historical.tip;
        if historical.flushes.is_due(&mut historical.coins) {
            self.commit_historical(state, historical)?;
        }
        Ok(())
    }

    /// A block below the base breaks a rule: what was built on the snapshot is worth nothing.
    fn invalid_historical(
        &self,
        state: &mut State,
        historical: &Historical,
        id: NodeId,
        error: &BlockError,
    ) -> EngineError {
        let node = state.tree.get(id);
        let (hash, height, reason) = (node.hash, node.height, error.reject_reason());
        tracing::error!(
            "[snapshot] block {hash} at height {height}, below the base, is invalid: {reason}"
        );
        if let Err(error) = self.mark_failed(state, id).and_then(|()| self.sync_records()) {
            return error;
        }
        self.invalid_snapshot(&state.tree, historical)
    }

    /// Puts the coins of the snapshot out of use (Core `validation.cpp`, `MaybeValidateSnapshot`).
    pub(crate) fn invalid_snapshot(
        &self,
        tree: &BlockTree,
        historical: &Historical,
    ) -> EngineError {
        let kept = match assay_store::mark_invalid(&self.config.datadir) {
            Ok(kept) => kept.display().to_string(),
            Err(error) => {
                tracing::error!(
                    "[snapshot] cannot put the coins of the snapshot out of use: {error}"
                );
                "their folder".to_owned()
            }
        };
        let (tip, validated) = (tree.tip_node().height, tree.get(historical.tip).height);
        EngineError::SnapshotInvalid { tip, validated, kept }
    }

    /// Divides the memory for coins between both chains, as Core does (`MaybeRebalanceCaches`): most is for the one that has
    /// most to do.
    pub(crate) fn divide_cache(&self, state: &mut State) {
        let total = self.coin_cache_bytes;
        let Some(historical) = &mut state.historical else {
            state.coins.set_cache_bytes_max(total);
            return;
        };
        let small = total / 20;
        let large = total - small;
        let (active, other) = if self.news.download().goes_on(&state.tree.tip_facts()) {
            (large, small)
        } else {
            (small, large)
        };
        state.coins.set_cache_bytes_max(active);
        historical.coins.set_cache_bytes_max(other);
    }
}

/// Does something with state and historical chain, where there is one. Blocks of the active chain are not connected meanwhile.
fn with_historical<T>(
    state: &mut State,
    work: impl FnOnce(&mut State, &mut Historical) -> T,
) -> Option<T> {
    let mut historical = state.historical.take()?;
    let outcome = work(state, &mut historical);
    state.historical = Some(historical);
    Some(outcome)
}
