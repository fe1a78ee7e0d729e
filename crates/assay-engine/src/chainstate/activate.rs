//! Making the best branch the active one: blocks off, blocks on, and what the mempool makes of it.

use std::sync::Arc;

use assay_consensus::block::BlockError;

use super::{Chainstate, State};
use crate::connect::ConnectError;
use crate::error::EngineError;
use crate::mempool::DisconnectedTxs;
use crate::pipeline::{InFlight, Pipeline};
use crate::prepared::Prepared;
use crate::tree::NodeId;

/// What connecting a block said about it; `None` as long as it was not tried.
pub(crate) type Verdict = Option<Result<(), BlockError>>;

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

impl Chainstate {
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
        let outcome = self.activate_best_chain(state, &mut walk);
        if walk.is_reorg {
            self.admission.readmit(&mut state.view(), walk.disconnected, outcome.is_ok());
        }
        #[cfg(feature = "slowed")]
        crate::slowed::block_ends();
        self.news.announce(&state.tree);
        state.poison(outcome)?;
        Ok(walk.verdict)
    }

    /// Core's `ActivateBestChain`.
    fn activate_best_chain(&self, state: &mut State, walk: &mut Walk) -> Result<(), EngineError> {
        loop {
            let target = state.tree.best_candidate();
            if target == state.tree.tip() {
                return Ok(());
            }
            let fork = state.tree.fork_with_active(target);
            while state.tree.tip() != fork {
                self.disconnect_tip(state, &mut walk.disconnected)?;
                walk.is_reorg = true;
            }
            let path = state.tree.path(fork, target);
            self.connect_path(state, walk, path)?;
        }
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
        let mut rejected = None;
        while let Some(id) = path.pop() {
            let block = match walk.offered.take_if(|(offered, _)| *offered == id) {
                Some((_, block)) => block,
                None => self.load(state, id)?,
            };
            match self.connect_block(state, id, &Arc::new(block)) {
                Ok(block) => pipeline.push(block),
                Err(ConnectError::Rule(error)) => {
                    rejected = Some((id, error));
                    break;
                }
                Err(ConnectError::Engine(error)) => return Err(error),
            }
            let mut passed = Vec::new();
            pipeline.make_room(|block| passed.push(block));
            self.connect_tips(state, walk, passed)?;
            if pipeline.has_failure() {
                break;
            }
            if state.flushes.is_due(&mut state.coins) {
                if let Some(first) = self.drain(state, walk, &mut pipeline)? {
                    return self.reject(state, walk, first);
                }
                self.flush(state)?;
            }
        }
        // Of two invalid blocks the lower one counts.
        let first = self.drain(state, walk, &mut pipeline)?.or(rejected);
        first.map_or(Ok(()), |first| self.reject(state, walk, first))
    }

    /// Waits for the scripts of all blocks whose coins have moved; gives the lowest that is invalid, if one is.
    fn drain(
        &self,
        state: &mut State,
        walk: &mut Walk,
        pipeline: &mut Pipeline<NodeId>,
    ) -> Result<Option<(NodeId, BlockError)>, EngineError> {
        let mut passed = Vec::new();
        let outcome = pipeline.drain(|block| passed.push(block));
        self.connect_tips(state, walk, passed)?;
        let Err(refuted) = outcome else { return Ok(None) };
        refuted.unwind(&mut state.coins, &mut state.coinbases).map(Some)
    }

    /// Makes each of these blocks the tip, one after the other.
    fn connect_tips(
        &self,
        state: &mut State,
        walk: &mut Walk,
        blocks: Vec<InFlight<NodeId>>,
    ) -> Result<(), EngineError> {
        for block in blocks {
            let id = block.note;
            let scripts = self.connect_tip(state, block)?;
            walk.disconnected.remove_block(&scripts.prepared.txids);
            // Who waits for blocks need not wait for the end of a long way.
            if state.tree.tip_node().chain_work > state.tree.get(walk.start).chain_work {
                self.news.announce(&state.tree);
            }
            if walk.candidate == Some(id) {
                walk.verdict = Some(Ok(()));
            }
        }
        Ok(())
    }

    /// Marks a block that has been found invalid; its coins have been taken back.
    fn reject(
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
}
