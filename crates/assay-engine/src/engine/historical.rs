//! Validates the blocks below a snapshot while the engine continues from it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use assay_wire::BlockHash;

use super::Chain;
use crate::chainstate::{HistoricalStep, State};
use crate::error::EngineError;
use crate::stats::serialized_hash_while;
use crate::sync::{Condvar, Mutex};
use crate::types::Tip;

/// Progress of the validation below a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoricalChain {
    /// The highest validated block.
    pub tip: Tip,
    /// Base of the snapshot: when it is reached, the coins are compared.
    pub base: Tip,
}

/// A chain of blocks with its own coins (Core's chainstates).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainState {
    pub tip: Tip,
    /// Base of the snapshot that it started from, if any.
    pub snapshot: Option<BlockHash>,
    /// True if all of it is validated.
    pub is_validated: bool,
    /// Memory for the block cache of its coins on disk, bytes.
    pub tier_cache_bytes: usize,
    /// Memory for its coins cache, bytes.
    pub cache_bytes: usize,
}

/// Published state of the historical chain, so that readers need not wait for the state lock.
#[derive(Default)]
pub(super) struct Announced {
    chain: Mutex<(Option<HistoricalChain>, Signals)>,
    changed: Condvar,
}

#[derive(Default)]
struct Signals {
    /// True if the chain may be able to continue.
    has_news: bool,
    is_closing: bool,
}

impl Announced {
    fn set(&self, chain: Option<HistoricalChain>) {
        self.chain.lock().0 = chain;
        self.changed.notify_all();
    }

    fn get(&self) -> Option<HistoricalChain> {
        self.chain.lock().0
    }

    pub(super) fn wake(&self) {
        let mut chain = self.chain.lock();
        if chain.0.is_some() {
            chain.1.has_news = true;
            self.changed.notify_all();
        }
    }

    pub(super) fn close(&self) {
        self.chain.lock().1.is_closing = true;
        self.changed.notify_all();
    }

    fn is_closing(&self) -> bool {
        self.chain.lock().1.is_closing
    }

    /// Waits for something new, with a short timeout if there is a chain; `false` when the engine closes.
    fn wait(&self) -> bool {
        let mut chain = self.chain.lock();
        while !chain.1.is_closing && !chain.1.has_news {
            if chain.0.is_none() {
                self.changed.wait(&mut chain);
                if chain.0.is_some() {
                    break;
                }
            } else if self.changed.wait_for(&mut chain, LOOK_AROUND).timed_out() {
                break;
            }
        }
        chain.1.has_news = false;
        !chain.1.is_closing
    }
}

impl Chain<'_> {
    /// Progress of the validation below a snapshot; `None` without a snapshot, or after its validation. Never waits for a block
    /// being connected.
    pub fn historical(self) -> Option<HistoricalChain> {
        self.0.historical.get()
    }

    /// The highest block with all blocks up to it validated: below the tip while there is a historical chain.
    pub fn validated_tip(self) -> Tip {
        self.0.historical.get().map_or_else(|| self.tip(), |chain| chain.tip)
    }

    /// Hash of the block at `height`, if it and all blocks below it are validated.
    pub fn validated_hash_at(self, height: u32) -> Option<BlockHash> {
        let state = self.0.lock_tree();
        let tree = &state.tree;
        let Some(historical) = &state.historical else {
            return tree.active_at(height).map(|id| tree.get(id).hash);
        };
        let is_below = height <= tree.get(historical.tip).height;
        is_below.then(|| tree.get(tree.ancestor_at(historical.tip, height)).hash)
    }

    /// Waits until [`Chain::validated_tip`] differs from `seen`, the timeout expires, or the engine closes.
    pub fn wait_for_validated(self, seen: &BlockHash, timeout: Duration) -> Tip {
        let mut chain = self.0.historical.chain.lock();
        if chain.0.is_some_and(|chain| chain.tip.hash == *seen) && !chain.1.is_closing {
            self.0.historical.changed.wait_for(&mut chain, timeout);
        }
        let now = chain.0;
        drop(chain);
        now.map_or_else(|| self.tip(), |chain| chain.tip)
    }

    /// All chains, the one with the least work first.
    pub fn states(self) -> Vec<ChainState> {
        let state = self.0.lock_tree();
        let tree = &state.tree;
        let base = state.historical.as_ref().map(|historical| tree.get(historical.base).hash);
        let tier_cache_bytes = self.0.chainstate.tier_cache_bytes(base.is_some());
        let mut states = Vec::new();
        if let Some(historical) = &state.historical {
            states.push(ChainState {
                tip: tree.facts(historical.tip),
                snapshot: None,
                is_validated: true,
                tier_cache_bytes,
                cache_bytes: historical.coins.store.usage().bytes_max,
            });
        }
        states.push(ChainState {
            tip: tree.tip_facts(),
            snapshot: base.or_else(|| *self.0.loaded_base.lock()),
            is_validated: base.is_none(),
            tier_cache_bytes,
            cache_bytes: state.coins.store.usage().bytes_max,
        });
        states
    }

    /// Validates the blocks below a snapshot, if there is one, until the engine closes: for a separate thread. Blocks of the
    /// active chain have priority.
    ///
    /// # Errors
    /// The engine fails, or the snapshot is wrong.
    pub fn validate_historical(self) -> Result<(), EngineError> {
        while !self.0.historical.is_closing() {
            if !self.advance_historical()? && !self.0.historical.wait() {
                break;
            }
        }
        Ok(())
    }

    /// Validates one block below a snapshot, or compares the coins after the last one; `false` if there is nothing to do yet.
    ///
    /// # Errors
    /// As [`Chain::validate_historical`].
    pub fn advance_historical(self) -> Result<bool, EngineError> {
        if self.0.historical.get().is_none() {
            return Ok(false);
        }
        let step = {
            let mut state = self.0.lock_tree();
            self.divide_cache_by_phase(&mut state);
            let step = self.0.chainstate.step_historical(&mut state)?;
            self.announce_historical(&state);
            state.unlock_fair();
            step
        };
        match step {
            HistoricalStep::More => Ok(true),
            HistoricalStep::Scripts => {
                self.0.chainstate.wait_for_historical_scripts();
                Ok(true)
            }
            HistoricalStep::Compare => self.compare_historical(),
            HistoricalStep::Wait | HistoricalStep::Nothing => Ok(false),
        }
    }

    /// After IBD of the active chain most memory is for the historical one.
    fn divide_cache_by_phase(self, state: &mut State) {
        let is_downloading = self.is_initial_block_download();
        if self.0.was_downloading.swap(is_downloading, Ordering::Relaxed) != is_downloading {
            self.0.chainstate.divide_cache(state);
        }
    }

    pub(super) fn announce_historical(self, state: &State) {
        let chain = state.historical.as_ref().map(|historical| HistoricalChain {
            tip: state.tree.facts(historical.tip),
            base: state.tree.facts(historical.base),
        });
        if chain != self.0.historical.get() {
            self.0.historical.set(chain);
        }
    }

    /// Compares the coins at the base with the snapshot; `false` if the engine closes before.
    fn compare_historical(self) -> Result<bool, EngineError> {
        let snapshot = {
            let mut state = self.0.lock_tree();
            self.0.chainstate.flush_historical(&mut state)?;
            let Some(historical) = &state.historical else { return Ok(false) };
            historical.coins.store.snapshot()?
        };
        // In Core's words (`validation.cpp`, `MaybeValidateSnapshot`).
        tracing::info!(
            "[snapshot] computing UTXO stats for background chainstate to validate snapshot - this could take a few minutes"
        );
        let hash = serialized_hash_while(&snapshot, &|| !self.0.historical.is_closing())?;
        drop(snapshot);
        let Some(hash) = hash else { return Ok(false) };
        let mut state = self.0.lock();
        state.check()?;
        let outcome = self.end_historical(&mut state, BlockHash(hash));
        state.poison(outcome)?;
        self.announce_historical(&state);
        drop(state);
        // Followers of validated blocks may continue to the tip.
        self.0.chainstate.notifier.announce(&self.0.lock_tree().tree);
        Ok(true)
    }

    fn end_historical(self, state: &mut State, actual: BlockHash) -> Result<(), EngineError> {
        let Some(historical) = &state.historical else { return Ok(()) };
        let base = state.tree.get(historical.base).hash;
        let known = self.0.params().assume_utxo.iter().find(|known| known.block == base);
        let expected = known.map(|known| known.hash_serialized);
        if expected != Some(actual) {
            let expected = expected.map_or_else(|| "nothing".to_owned(), |hash| hash.to_string());
            tracing::warn!("[snapshot] hash mismatch: actual={actual}, expected={expected}");
            return Err(self.0.chainstate.invalid_snapshot(&state.tree, historical));
        }
        // First the result, then the change of its effect: a crash in between costs only the comparison.
        let confirmed = state.tree.confirm_assumed();
        self.0.chainstate.put_records(state, &confirmed)?;
        self.0.chainstate.sync_records()?;
        assay_store::mark_validated(&self.0.config().datadir)?;
        *self.0.loaded_base.lock() = Some(base);
        state.historical = None;
        self.0.chainstate.divide_cache(state);
        tracing::info!("[snapshot] snapshot beginning at {base} has been fully validated");
        Ok(())
    }
}

/// Timeout of the wait, since nothing announces that the active chain has reached its end.
const LOOK_AROUND: Duration = Duration::from_millis(200);
