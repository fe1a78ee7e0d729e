//! Making the best branch the active one: blocks off, blocks on, and what the mempool makes of it.

use std::sync::Arc;

use assay_consensus::block::BlockError;
use assay_store::defect::{Point, point};

use crate::connect::{ConnectError, Prepared};
use crate::engine::{Engine, State, tip_of};
use crate::log;
use crate::mempool::DisconnectedTxs;
use crate::pipeline::{InFlight, Pipeline};
use crate::tree::NodeId;
use crate::types::EngineError;

/// What connecting a block said about it; `None` as long as it was not tried.
pub(crate) type Verdict = Option<Result<(), BlockError>>;

/// Index records that are written as one group.
const RECORDS_PER_GROUP: usize = 4096;

/// One move from tip to tip.
struct Walk {
    /// A block that need not be read from the archive.
    offered: Option<(NodeId, Prepared)>,
    /// Whose verdict is wanted.
    candidate: Option<NodeId>,
    verdict: Verdict,
    disconnected: DisconnectedTxs,
    is_reorg: bool,
    start: NodeId,
}

impl Engine {
    /// Makes the branch with the most work active. Blocks on the way that break a rule are marked, and the next best branch
    /// is tried. Returns the verdict over `offered`, a block that has just been archived.
    ///
    /// # Errors
    /// When the engine fails; it then refuses to go on, since memory may not agree with the disk.
    pub(crate) fn activate(
        &self,
        state: &mut State,
        offered: Option<(NodeId, Prepared)>,
    ) -> Result<Verdict, EngineError> {
        let mut walk = Walk {
            candidate: offered.as_ref().map(|(id, _)| *id),
            offered,
            verdict: None,
            disconnected: DisconnectedTxs::new(self.config.disconnected_bytes_max),
            is_reorg: false,
            start: state.tree.tip(),
        };
        let outcome = self.walk(state, &mut walk);
        if walk.is_reorg {
            self.settle_mempool(state, walk.disconnected, outcome.is_ok());
        }
        #[cfg(feature = "slowed")]
        crate::slowed::block_ends();
        self.announce(state);
        poison(state, outcome)?;
        Ok(walk.verdict)
    }

    /// Core's `ActivateBestChain`.
    fn walk(&self, state: &mut State, walk: &mut Walk) -> Result<(), EngineError> {
        loop {
            let target = state.tree.best_candidate();
            if target == state.tree.tip() {
                return Ok(());
            }
            let fork = state.tree.fork_with_active(target);
            while state.tree.tip() != fork {
                self.step_back(state, &mut walk.disconnected)?;
                walk.is_reorg = true;
            }
            let path = state.tree.path(fork, target);
            self.connect_path(state, walk, path)?;
        }
    }

    /// Disconnects the tip and keeps its transactions in `disconnected`, as far as there is room.
    pub(crate) fn step_back(
        &self,
        state: &mut State,
        disconnected: &mut DisconnectedTxs,
    ) -> Result<(), EngineError> {
        let block = self.disconnect_tip(state)?;
        let order = self.topological_order(&block);
        for left_out in disconnected.add_block(&block, &order) {
            state.mempool.remove_spenders(&left_out);
        }
        self.after_step_back(state)
    }

    /// Connects blocks, the last of `path` first; ends before one that breaks a rule, and marks it.
    ///
    /// Coins move ahead of scripts ([`Pipeline`]); the tip is where all scripts have passed.
    fn connect_path(
        &self,
        state: &mut State,
        walk: &mut Walk,
        mut path: Vec<NodeId>,
    ) -> Result<(), EngineError> {
        let mut pipeline = Pipeline::new(Arc::clone(&self.verifier));
        let mut refused = None;
        while let Some(id) = path.pop() {
            let block = match walk.offered.take_if(|(offered, _)| *offered == id) {
                Some((_, block)) => block,
                None => self.load(state, id)?,
            };
            match self.move_coins(state, id, &Arc::new(block)) {
                Ok(block) => pipeline.push(block),
                Err(ConnectError::Rule(error)) => {
                    refused = Some((id, error));
                    break;
                }
                Err(ConnectError::Engine(error)) => return Err(error),
            }
            let mut landed = Vec::new();
            pipeline.make_room(|block| landed.push(block));
            self.land_all(state, walk, landed)?;
            if pipeline.has_failure() {
                break;
            }
            if self.is_flush_due(state) {
                if let Some(first) = self.settle(state, walk, &mut pipeline)? {
                    return self.refuse(state, walk, first);
                }
                self.flush_state(state)?;
            }
        }
        // Of two invalid blocks the lower one counts.
        let first = self.settle(state, walk, &mut pipeline)?.or(refused);
        first.map_or(Ok(()), |first| self.refuse(state, walk, first))
    }

    /// Waits for the scripts of all blocks whose coins have moved; gives the lowest that is invalid, if one is.
    fn settle(
        &self,
        state: &mut State,
        walk: &mut Walk,
        pipeline: &mut Pipeline<NodeId>,
    ) -> Result<Option<(NodeId, BlockError)>, EngineError> {
        let mut landed = Vec::new();
        let outcome = pipeline.settle(|block| landed.push(block));
        self.land_all(state, walk, landed)?;
        let Err(refuted) = outcome else { return Ok(None) };
        refuted.unwind(&mut state.coins, &mut state.coinbases).map(Some)
    }

    /// Makes each of these blocks the tip, one after the other.
    fn land_all(
        &self,
        state: &mut State,
        walk: &mut Walk,
        blocks: Vec<InFlight<NodeId>>,
    ) -> Result<(), EngineError> {
        for block in blocks {
            let id = block.note;
            let scripts = self.land(state, block)?;
            walk.disconnected.remove_block(&scripts.prepared.txids);
            log::update_tip(&tip_of(&state.tree), state, &self.params);
            // Whoever waits for blocks need not wait for the end of a long way.
            if state.tree.tip_node().chain_work > state.tree.get(walk.start).chain_work {
                self.announce(state);
            }
            if walk.candidate == Some(id) {
                walk.verdict = Some(Ok(()));
            }
        }
        Ok(())
    }

    /// Marks a block that has been found invalid; its coins have been taken back.
    fn refuse(
        &self,
        state: &mut State,
        walk: &mut Walk,
        (id, error): (NodeId, BlockError),
    ) -> Result<(), EngineError> {
        let node = state.tree.get(id);
        let (hash, height, reason) = (node.hash, node.height, error.reject_reason());
        tracing::warn!("invalid block {hash} at height {height}: {reason}: {error}");
        self.mark_failed(state, id)?;
        if walk.candidate == Some(id) {
            walk.verdict = Some(Err(error));
        }
        Ok(())
    }

    /// What follows every block that was disconnected.
    fn after_step_back(&self, state: &mut State) -> Result<(), EngineError> {
        log::update_tip(&tip_of(&state.tree), state, &self.params);
        if self.is_flush_due(state) { self.flush_state(state) } else { Ok(()) }
    }

    /// Marks a block and all that build on it as failed, in memory and in the index.
    pub(crate) fn mark_failed(&self, state: &mut State, id: NodeId) -> Result<(), EngineError> {
        let changed = state.tree.set_failed(id);
        point(Point::MarkInvalid);
        self.put_records(state, &changed)?;
        log::invalid_chain_found(state, id);
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
}

/// Passes an outcome on; after a failure the engine refuses to go on.
pub(crate) fn poison<T>(
    state: &mut State,
    outcome: Result<T, EngineError>,
) -> Result<T, EngineError> {
    if let Err(error) = &outcome {
        state.poisoned.get_or_insert_with(|| error.to_string());
        let advice = error.advice().map_or_else(String::new, |advice| format!("; {advice}"));
        tracing::error!("the engine stops: {error}{advice}");
    }
    outcome
}
