//! Activates the best branch: disconnects and connects blocks, and updates the mempool.
//!
//! A path from tip to tip is processed block by block. Between two blocks of a path that only connects, the state lock may be
//! released: threads that need only the tree (headers, blocks for the archive) proceed, and threads that need coins settle the
//! path first ([`Chainstate::settle`]).

use std::collections::HashMap;
use std::sync::Arc;

use assay_consensus::block::BlockError;
use assay_wire::BlockHash;

use super::{Chainstate, State};
use crate::connect::ConnectError;
use crate::error::EngineError;
use crate::mempool::DisconnectedTxs;
use crate::pipeline::{Passed, Pipeline};
use crate::prepared::Prepared;
use crate::tree::{BlockTree, NodeId};
use crate::work::Stage;

/// Result of connecting a block; `None` if it was not tried.
pub(crate) type Verdict = Option<Result<(), BlockError>>;

/// A partly processed path from tip to tip.
///
/// Coins move ahead of scripts ([`Pipeline`]); the tip is the last block with verified scripts.
pub(crate) struct ReorgPath {
    pipeline: Pipeline<NodeId>,
    /// Remaining blocks, highest first.
    path: Vec<NodeId>,
    /// Block of the coins: the tip, or one above it.
    coins_at: NodeId,
    disconnected: DisconnectedTxs,
    is_reorg: bool,
    start: NodeId,
}

impl ReorgPath {
    /// Number of blocks whose scripts are being verified, and their bytes with the spent coins.
    pub(crate) fn unverified(&self) -> (usize, usize) {
        self.pipeline.size()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// More steps remain, at any time.
    More,
    /// More steps must follow at once: blocks were disconnected, and the mempool waits for their transactions.
    MoreAtOnce,
    /// Only scripts are pending ([`Chainstate::settle`]), unless more blocks arrive.
    Open,
    Done,
}

/// Results of the blocks tried.
#[derive(Default)]
pub(crate) struct ConnectResult {
    /// Block whose verdict the caller requires.
    candidate: Option<NodeId>,
    has_passed: bool,
    rejected: Vec<(NodeId, BlockError)>,
}

impl ConnectResult {
    /// The blocks that broke a rule, with the rule.
    pub(crate) fn into_rejected(self, tree: &BlockTree) -> Vec<(BlockHash, BlockError)> {
        self.rejected.into_iter().map(|(id, error)| (tree.get(id).hash, error)).collect()
    }

    fn verdict(self) -> Verdict {
        let Self { candidate, has_passed, rejected } = self;
        let failed = rejected.into_iter().find(|(id, _)| Some(*id) == candidate);
        match failed {
            Some((_, error)) => Some(Err(error)),
            None => has_passed.then_some(Ok(())),
        }
    }
}

/// Blocks in memory that need not be read from the archive.
#[derive(Default)]
pub(crate) struct BlockCache {
    blocks: HashMap<NodeId, Arc<Prepared>>,
    bytes: usize,
}

impl BlockCache {
    /// Keeps a block until it is connected, if there is room. Returns true if it was kept.
    pub(crate) fn keep(&mut self, id: NodeId, block: Arc<Prepared>) -> bool {
        let bytes = block.memory_bytes();
        let has_room = self.blocks.is_empty() || self.bytes + bytes <= READY_BYTES_MAX;
        if has_room {
            self.bytes += bytes;
            self.blocks.insert(id, block);
        }
        has_room
    }

    /// Number of blocks, and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.blocks.len(), self.bytes)
    }

    pub(super) fn take(&mut self, id: NodeId) -> Option<Arc<Prepared>> {
        let block = self.blocks.remove(&id)?;
        self.bytes -= block.memory_bytes();
        Some(block)
    }

    /// Drops connectable blocks that chain selection passed over.
    fn drop_passed_over(&mut self, tree: &BlockTree) {
        self.blocks.retain(|id, _| !tree.get(*id).is_linked() && !tree.get(*id).is_failed());
        self.bytes = self.blocks.values().map(|block| block.memory_bytes()).sum();
    }
}

impl Chainstate {
    /// Activates the branch with the most work. Marks blocks that break a rule and tries the next best branch. Returns the
    /// verdict on `offered`, a block just archived.
    ///
    /// # Errors
    /// The engine fails; it then rejects further work, since memory may not agree with the disk.
    pub(crate) fn activate(
        &self,
        state: &mut State,
        offered: Option<(NodeId, Arc<Prepared>)>,
    ) -> Result<Verdict, EngineError> {
        let candidate = offered.as_ref().map(|(id, _)| *id);
        let mut judged = ConnectResult { candidate, ..ConnectResult::default() };
        if let Some((id, block)) = offered
            && !state.ready.keep(id, block)
        {
            // The archive has it.
            let settled = self.settle_archive(state);
            state.poison(settled)?;
        }
        let outcome = loop {
            match self.step(state, &mut judged) {
                Ok(Step::Done) => break Ok(()),
                Ok(Step::Open) => self.settle(state, &mut judged)?,
                Ok(Step::More | Step::MoreAtOnce) => {}
                Err(error) => break Err(error),
            }
        };
        // The block was not tried, or was rejected because of its coins.
        let settled = self.settle_archive(state);
        let outcome = outcome.and_then(|()| state.poison(settled));
        #[cfg(feature = "slowed")]
        crate::test_slowdown::block_ends();
        self.notifier.announce(&state.tree);
        outcome?;
        Ok(judged.verdict())
    }

    /// Processes one block of the path to the best branch (Core's `ActivateBestChain`).
    ///
    /// # Errors
    /// As [`Chainstate::activate`].
    pub(crate) fn step(
        &self,
        state: &mut State,
        judged: &mut ConnectResult,
    ) -> Result<Step, EngineError> {
        state.check()?;
        let mut way = match state.way.take() {
            Some(way) => way,
            None if state.tree.best_candidate() == state.tree.tip() => {
                let State { ready, tree, .. } = state;
                ready.drop_passed_over(tree);
                return Ok(Step::Done);
            }
            None => self.set_out(state),
        };
        let outcome = self.walk(state, &mut way, judged);
        match outcome {
            // The tip is still below the old one and must not be visible: Core, too, releases its lock only on a better tip
            // (`ActivateBestChain`).
            Ok(Step::Open) if way.is_reorg => {
                state.way = Some(way);
                self.settle(state, judged)?;
                Ok(Step::MoreAtOnce)
            }
            Ok(step) => {
                state.way = Some(way);
                Ok(step)
            }
            Err(error) => {
                self.end(state, way, false);
                state.poison(Err(error))
            }
        }
    }

    /// Waits for the scripts of all blocks whose coins have moved. Afterwards the coins are at the tip, and no path is open.
    ///
    /// # Errors
    /// As [`Chainstate::activate`].
    pub(crate) fn settle(
        &self,
        state: &mut State,
        judged: &mut ConnectResult,
    ) -> Result<(), EngineError> {
        let Some(mut way) = state.way.take() else { return Ok(()) };
        let outcome = self.settle_way(state, &mut way, judged);
        self.end(state, way, outcome.is_ok());
        state.poison(outcome)
    }

    fn settle_way(
        &self,
        state: &mut State,
        way: &mut ReorgPath,
        judged: &mut ConnectResult,
    ) -> Result<(), EngineError> {
        while let Some(first) = self.drain(state, way, judged)? {
            way.path.clear();
            self.reject(state, judged, first)?;
            if !way.is_reorg {
                break;
            }
            // The mempool waits for the end of a reorg, wherever it is.
            while self.walk(state, way, judged)? != Step::Open {}
        }
        Ok(())
    }

    fn set_out(&self, state: &State) -> ReorgPath {
        let tip = state.tree.tip();
        ReorgPath {
            pipeline: Pipeline::new(Arc::clone(&self.verifier)),
            path: Vec::new(),
            coins_at: tip,
            disconnected: DisconnectedTxs::new(self.config.disconnected_bytes_max),
            is_reorg: false,
            start: tip,
        }
    }

    /// Ends the path: transactions that are no longer confirmed return to the mempool.
    fn end(&self, state: &mut State, way: ReorgPath, is_sound: bool) {
        if way.is_reorg {
            self.admission.readmit(&mut state.view(), way.disconnected, is_sound);
        }
        self.show_events(state, way.start);
        self.warn_of_invalid_branch(state);
        self.notifier.announce(&state.tree);
    }

    /// Emits events for the connected blocks, and for the tip unless it is unchanged since `start`.
    fn show_events(&self, state: &mut State, start: NodeId) {
        let Some(events) = self.notifier.events() else { return };
        state.mempool.settle_changes();
        let tip = state.tree.tip_facts();
        let is_new = state.tree.tip() != start;
        events.settled((is_new && !self.notifier.download().goes_on(&tip)).then_some(tip.hash));
    }

    fn walk(
        &self,
        state: &mut State,
        way: &mut ReorgPath,
        judged: &mut ConnectResult,
    ) -> Result<Step, EngineError> {
        if way.path.is_empty() && !self.look_ahead(state, way, judged)? {
            return Ok(Step::Open);
        }
        if let Some(id) = way.path.pop() {
            self.connect(state, way, judged, id)?;
        }
        Ok(if way.is_reorg { Step::MoreAtOnce } else { Step::More })
    }

    /// Chooses the next blocks; `false` if the coins are at the best block already.
    fn look_ahead(
        &self,
        state: &mut State,
        way: &mut ReorgPath,
        judged: &mut ConnectResult,
    ) -> Result<bool, EngineError> {
        let target = state.tree.best_candidate();
        let height = state.tree.get(way.coins_at).height;
        if target == way.coins_at {
            return Ok(false);
        }
        if state.tree.ancestor_at(target, height) == way.coins_at {
            way.path = state.tree.path(way.coins_at, target);
            return Ok(true);
        }
        // The best branch forks off below this block: that needs the coins of the tip.
        if let Some(first) = self.drain(state, way, judged)? {
            self.reject(state, judged, first)?;
            return Ok(true);
        }
        let fork = state.tree.fork_with_active(target);
        while state.tree.tip() != fork {
            way.is_reorg = true;
            self.disconnect_tip(state, &mut way.disconnected)?;
        }
        way.coins_at = fork;
        way.path = state.tree.path(fork, target);
        Ok(true)
    }

    /// Connects a block on top of the coins. If it breaks a rule, marks it and ends the path.
    fn connect(
        &self,
        state: &mut State,
        way: &mut ReorgPath,
        judged: &mut ConnectResult,
        id: NodeId,
    ) -> Result<(), EngineError> {
        let block = self.work.time(Stage::Read, || self.next_block(state, id))?;
        match self.work.time(Stage::Coins, || self.connect_block(state, &way.pipeline, id, &block))
        {
            Ok(block) => way.pipeline.push(block),
            Err(ConnectError::Rule(error)) => {
                // Of two invalid blocks the lower one is reported.
                let first = self.drain(state, way, judged)?.unwrap_or((id, error));
                way.path.clear();
                return self.reject(state, judged, first);
            }
            Err(ConnectError::Engine(error)) => return Err(error),
        }
        way.coins_at = id;
        let mut passed = Vec::new();
        self.work.time(Stage::Scripts, || way.pipeline.make_room(|block| passed.push(block)));
        self.connect_tips(state, way, judged, passed)?;
        let is_due = state.flushes.is_due(&mut state.coins.store) || self.is_pruning_due(state);
        if !(is_due || way.pipeline.has_failure()) {
            return Ok(());
        }
        if let Some(first) = self.drain(state, way, judged)? {
            way.path.clear();
            return self.reject(state, judged, first);
        }
        if is_due { self.flush(state) } else { Ok(()) }
    }

    /// Waits for the scripts of all blocks whose coins have moved; returns the lowest invalid block, if any.
    fn drain(
        &self,
        state: &mut State,
        way: &mut ReorgPath,
        judged: &mut ConnectResult,
    ) -> Result<Option<(NodeId, BlockError)>, EngineError> {
        let mut passed = Vec::new();
        let drain = || way.pipeline.drain(|block| passed.push(block));
        let outcome = self.work.time(Stage::Scripts, drain);
        self.connect_tips(state, way, judged, passed)?;
        let refuted = match outcome {
            Ok(()) => None,
            Err(refuted) => Some(refuted.unwind(&mut state.coins)?),
        };
        way.coins_at = state.tree.tip();
        Ok(refuted)
    }

    /// Makes each of these blocks the tip, in order.
    fn connect_tips(
        &self,
        state: &mut State,
        way: &mut ReorgPath,
        judged: &mut ConnectResult,
        blocks: Vec<Passed<NodeId>>,
    ) -> Result<(), EngineError> {
        for block in blocks {
            let id = block.note;
            let scripts = self.work.time(Stage::Tip, || self.connect_tip(state, block))?;
            let block = &scripts.prepared().block;
            self.work.connected(block.tx_count(), block.bytes().len());
            way.disconnected.remove_block(&scripts.prepared().txids);
            // Threads that wait for blocks need not wait for the end of a long path.
            if state.tree.tip_node().chain_work > state.tree.get(way.start).chain_work {
                self.notifier.announce(&state.tree);
            }
            if !way.is_reorg {
                self.show_events(state, way.start);
            }
            judged.has_passed |= judged.candidate == Some(id);
        }
        Ok(())
    }

    /// Marks an invalid block; its coins are already reverted.
    fn reject(
        &self,
        state: &mut State,
        judged: &mut ConnectResult,
        (id, error): (NodeId, BlockError),
    ) -> Result<(), EngineError> {
        let node = state.tree.get(id);
        let (hash, height, reason) = (node.hash, node.height, error.reject_reason());
        tracing::warn!("invalid block {hash} at height {height}: {reason}: {error}");
        // In Core's words (`validation.cpp`, `ConnectTip`); its tests expect them.
        tracing::error!("Block validation error: {}", evidence(&error));
        self.mark_failed(state, id)?;
        judged.rejected.push((id, error));
        Ok(())
    }
}

/// Reject reason and evidence, if any.
fn evidence(error: &BlockError) -> String {
    let (reason, debug) = (error.reject_reason(), error.debug_message());
    if debug.is_empty() { reason.into_owned() } else { format!("{reason}, {debug}") }
}

/// Limit of the bytes of blocks in memory that wait to be connected; others are read from the archive.
const READY_BYTES_MAX: usize = 64 << 20;
