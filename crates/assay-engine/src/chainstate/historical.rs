//! The blocks below the base of a snapshot, validated with separate coins while the active chain continues from the snapshot
//! (Core's historical chainstate, `doc/design/assumeutxo.md`).
//!
//! These coins only move towards the base. The blocks have a separate pipeline, so that neither chain waits for the scripts of
//! the other.

use std::sync::Arc;

use assay_consensus::block::BlockError;

use super::tip::{KnownScripts, Parent};
use super::{Chainstate, State};
use crate::apply::ChainCoins;
use crate::connect::{ConnectError, disconnect, load_outputs};
use crate::error::EngineError;
use crate::flush::FlushPolicy;
use crate::log;
use crate::pipeline::{InFlight, Passed, Pipeline};
use crate::scripts::Verifier;
use crate::tree::{BlockTree, NodeId};

/// Coins of validated blocks below the base of a snapshot.
pub(crate) struct Historical {
    pub(crate) coins: ChainCoins,
    flushes: FlushPolicy,
    pipeline: Pipeline<NodeId>,
    /// The last validated block.
    pub(crate) tip: NodeId,
    /// Block of the coins: the tip, or one above it.
    coins_at: NodeId,
    pub(crate) base: NodeId,
    /// True if the coins must be flushed as soon as the scripts of their blocks are verified.
    is_flush_due: bool,
}

/// Next action of the historical chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistoricalStep {
    More,
    /// Wait for scripts; this takes long and needs no lock: [`Chainstate::wait_for_historical_scripts`].
    Scripts,
    /// Wait for a block, or for the active chain, which has priority.
    Wait,
    /// The coins are at the base: compare them with the snapshot.
    Compare,
    /// There is no historical chain.
    Nothing,
}

impl Historical {
    pub(crate) fn new(
        coins: ChainCoins,
        flushes: FlushPolicy,
        verifier: Arc<Verifier>,
        (tip, base): (NodeId, NodeId),
    ) -> Self {
        let pipeline = Pipeline::new(verifier);
        Self { coins, flushes, pipeline, tip, coins_at: tip, base, is_flush_due: false }
    }
}

impl Chainstate {
    /// Connects one block towards the base.
    ///
    /// # Errors
    /// The engine fails, or a block below the base is invalid; the engine then rejects further work.
    pub(crate) fn step_historical(&self, state: &mut State) -> Result<HistoricalStep, EngineError> {
        state.check()?;
        // The active chain has priority, as long as it has blocks.
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

    /// Flushes the historical coins and everything before them, if they exist.
    pub(crate) fn flush_historical(&self, state: &mut State) -> Result<(), EngineError> {
        // After a failure half a block's coins may have moved, and a second sync may succeed without the data that the first one
        // dropped.
        state.check()?;
        let outcome = with_historical(state, |state, historical| {
            self.drain_historical(state, historical)?;
            self.commit_historical(state, historical)
        });
        state.poison(outcome.unwrap_or(Ok(())))
    }

    /// Waits for the scripts of the blocks in the pipeline.
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
                // The snapshot is on another branch than the old tip.
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

    /// Connects the next block, except its scripts.
    fn advance_coins(
        &self,
        state: &mut State,
        historical: &mut Historical,
        next: NodeId,
    ) -> Result<(), EngineError> {
        let block = self.next_block(state, next)?;
        let tree = &state.tree;
        let is_known = tree.get(next).is_valid() || self.cause_to_verify(tree, next).is_none();
        let known = if is_known { KnownScripts::All } else { KnownScripts::None };
        let Historical { coins, pipeline, coins_at, .. } = historical;
        let parent = Parent { tree, id: *coins_at, coins };
        match self.connect_on(parent, pipeline, &block, &known) {
            Ok(block) => historical.pipeline.push(InFlight { block, note: next }),
            Err(ConnectError::Rule(error)) => {
                // Of two invalid blocks the lower one is reported.
                self.drain_historical(state, historical)?;
                return Err(self.invalid_historical(state, historical, next, &error));
            }
            Err(ConnectError::Engine(error)) => return Err(error),
        }
        historical.coins_at = next;
        historical.is_flush_due = historical.flushes.is_due(&mut historical.coins.store);
        Ok(())
    }

    /// Takes the blocks with verified scripts out of the pipeline, without waiting.
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

    /// Waits for the scripts of all blocks whose coins have moved.
    fn drain_historical(
        &self,
        state: &mut State,
        historical: &mut Historical,
    ) -> Result<(), EngineError> {
        let mut passed = Vec::new();
        let outcome = historical.pipeline.drain(|block| passed.push(block));
        self.pass_historical(state, historical, passed)?;
        let Err(refuted) = outcome else {
            assert!(historical.coins_at == historical.tip, "the coins are above the validated tip");
            return Ok(());
        };
        let (id, error) = refuted.unwind(&mut historical.coins)?;
        historical.coins_at = historical.tip;
        Err(self.invalid_historical(state, historical, id, &error))
    }

    /// Records that all scripts of these blocks are valid.
    fn pass_historical(
        &self,
        state: &mut State,
        historical: &mut Historical,
        blocks: Vec<Passed<NodeId>>,
    ) -> Result<(), EngineError> {
        for Passed { scripts, undo, note: id } in blocks {
            let prepared = scripts.prepared();
            self.keep_valid(state, id, &undo, false)?;
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
        let coins = &mut coins.store;
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
        let (prepared, undo) = self.read_with_undo(state, id)?;
        let coins = &mut historical.coins;
        load_outputs(&prepared, &mut coins.store, self.config.read_threads)?;
        disconnect(&prepared, &undo, self.params().cash.is_some(), coins)?;
        historical.tip = state.tree.get(id).parent.expect("the genesis block is below every base");
        historical.coins_at = historical.tip;
        if historical.flushes.is_due(&mut historical.coins.store) {
            self.commit_historical(state, historical)?;
        }
        Ok(())
    }

    /// A block below the base is invalid: the chain built on the snapshot is worthless.
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

    /// Invalidates the coins of the snapshot (Core `validation.cpp`, `MaybeValidateSnapshot`).
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

    /// Divides the memory for coins between both chains, as Core does (`MaybeRebalanceCaches`): the chain with more work left
    /// gets most.
    pub(crate) fn divide_cache(&self, state: &mut State) {
        let total = self.coin_cache_bytes;
        let Some(historical) = &mut state.historical else {
            state.coins.store.set_cache_bytes_max(total);
            return;
        };
        let small = total / 20;
        let large = total - small;
        let (active, other) = if self.notifier.download().goes_on(&state.tree.tip_facts()) {
            (large, small)
        } else {
            (small, large)
        };
        state.coins.store.set_cache_bytes_max(active);
        historical.coins.store.set_cache_bytes_max(other);
    }
}

/// Runs `action` on the state and the historical chain, if it exists. No block of the active chain is connected meanwhile.
fn with_historical<T>(
    state: &mut State,
    work: impl FnOnce(&mut State, &mut Historical) -> T,
) -> Option<T> {
    let mut historical = state.historical.take()?;
    let outcome = work(state, &mut historical);
    state.historical = Some(historical);
    Some(outcome)
}
