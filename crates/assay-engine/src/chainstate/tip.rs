//! Connects a block to the tip, and disconnects it.

use std::sync::Arc;

use assay_consensus::block::{BlockError, BlockRules};
use assay_store::UndoPos;
use assay_store::defect::{Point, point};
use assay_wire::Coin;

use super::{Chainstate, State};
use crate::apply::ChainCoins;
use crate::connect::{ConnectError, Connected, connect, disconnect, load_outputs};
use crate::deferred::{Place, is_exact};
use crate::error::EngineError;
use crate::log;
use crate::mempool::{DisconnectedTxs, Mempool};
use crate::pipeline::{InFlight, Passed, Pipeline};
use crate::prepared::Prepared;
use crate::scripts::{ScriptQueue, ScriptsPassed};
use crate::tree::{BlockTree, Node, NodeId};

/// A block with its coins, to which a child is connected: the tip or one above it, or one below a snapshot.
pub(crate) struct Parent<'s> {
    pub(crate) tree: &'s BlockTree,
    pub(crate) id: NodeId,
    pub(crate) coins: &'s mut ChainCoins,
}

/// Scripts of a block that need not be verified.
pub(crate) enum KnownScripts<'s> {
    /// All: the block was validated before, or is assumed to be valid.
    All,
    /// Inputs with results in the mempool.
    Of(&'s Mempool),
    None,
}

/// Waits for the scripts of a block that is alone in its pipeline. Returns its undo data; the coins of an invalid block are
/// reverted.
pub(crate) fn settle_alone(
    mut pipeline: Pipeline<()>,
    connected: Result<Connected, ConnectError>,
    coins: &mut ChainCoins,
) -> Result<Result<Vec<u8>, BlockError>, EngineError> {
    let rejected = match connected {
        Ok(block) => {
            pipeline.push(InFlight { block, note: () });
            None
        }
        // Scripts that were handed over before are finished below.
        Err(ConnectError::Rule(error)) => Some(error),
        Err(ConnectError::Engine(error)) => return Err(error),
    };
    let mut undo = Vec::new();
    match pipeline.drain(|passed| undo = passed.undo) {
        Ok(()) => Ok(rejected.map_or(Ok(undo), Err)),
        Err(refuted) => refuted.unwind(coins).map(|((), error)| Err(error)),
    }
}

impl Chainstate {
    /// The next block of a path: from memory, or from the archive.
    pub(super) fn next_block(
        &self,
        state: &mut State,
        id: NodeId,
    ) -> Result<Arc<Prepared>, EngineError> {
        if let Some(block) = state.ready.take(id) {
            return Ok(block);
        }
        let block = self.load(state, id);
        Ok(Arc::new(block.map_err(|source| EngineError::ReadBlock(Box::new(source)))?))
    }

    /// Connects a block of the tree on top of the coins ([`Self::connect_on`]).
    pub(super) fn connect_block(
        &self,
        state: &mut State,
        pipeline: &Pipeline<NodeId>,
        id: NodeId,
        prepared: &Arc<Prepared>,
    ) -> Result<InFlight<NodeId>, ConnectError> {
        let node = state.tree.get(id);
        let was_valid = node.is_valid();
        let parent = node.parent.expect("the genesis block is never connected");
        let is_known = was_valid || !self.must_verify_scripts(state, id);
        let State { tree, coins, mempool, .. } = state;
        let known = if is_known { KnownScripts::All } else { KnownScripts::Of(mempool) };
        let parent = Parent { tree, id: parent, coins };
        let connected = self.connect_on(parent, pipeline, prepared, &known);
        point(Point::Connect);
        Ok(InFlight { block: connected?, note: id })
    }

    /// Moves the coins of a block, which need not be in the tree, and hands over its scripts ([`connect`]).
    pub(crate) fn connect_on<T>(
        &self,
        parent: Parent<'_>,
        pipeline: &Pipeline<T>,
        prepared: &Arc<Prepared>,
        known: &KnownScripts<'_>,
    ) -> Result<Connected, ConnectError> {
        let Parent { tree, id, coins } = parent;
        let branch = tree.ancestors(id);
        let header = prepared.block.header();
        let rules = BlockRules::new(self.params(), &branch, header, &prepared.hash);
        let mut queue = pipeline.queue(prepared, rules);
        if self.is_exact(tree, rules.height, prepared) {
            queue.verify_at_once();
        }
        let results = match known {
            KnownScripts::Of(mempool) => mempool.known_of_block(prepared, &self.pool, rules.flags),
            KnownScripts::All | KnownScripts::None => Vec::new(),
        };
        let is_verified = !matches!(known, KnownScripts::All);
        let verify = |queue: &mut ScriptQueue<'_>, tx_index: usize, spent: &mut Vec<Coin>| {
            // The coinbase spends nothing.
            if tx_index == 0 || !is_verified {
                return;
            }
            match results.get(tx_index).copied().flatten() {
                Some(sigchecks) => queue.add_known(sigchecks),
                None => queue.push(tx_index, spent),
            }
        };
        connect(queue, coins, &branch, self.config.read_threads, verify)
    }

    /// True if only libsecp256k1 verifies the signatures of a block.
    fn is_exact(&self, tree: &BlockTree, height: u32, prepared: &Prepared) -> bool {
        let place = Place {
            height,
            best_height: tree.get(tree.best_header()).height,
            time_s: prepared.block.header().time,
            now_s: self.config.clock.now_s(),
        };
        is_exact(self.config.exact_near_tip, &place, || {
            prepared.block.txs().map(|tx| tx.input_count()).sum()
        })
    }

    /// Appends undo data, unless the same are stored already; different stored data were wrong.
    fn put_undo(&self, node: &Node, undo: &[u8]) -> Result<UndoPos, EngineError> {
        let is_same = |pos: &UndoPos| {
            self.blocks.read_undo(*pos, &node.hash).is_ok_and(|stored| stored == undo)
        };
        if let Some(pos) = node.undo.filter(is_same) {
            return Ok(pos);
        }
        let block_file = node.block.map_or(0, |pos| pos.file);
        Ok(self.blocks.append_undo(block_file, &node.hash, undo)?)
    }

    /// Records that all scripts of a block are valid, and stores its undo data; `is_assumed`: on the coins of a snapshot.
    pub(super) fn keep_valid(
        &self,
        state: &mut State,
        id: NodeId,
        undo: &[u8],
        is_assumed: bool,
    ) -> Result<(), EngineError> {
        let node = state.tree.get(id);
        // A block always spends the same coins, so earlier undo data are as good. They are better: they may be synced, and the
        // coins on disk may be on a branch that only they lead back from.
        if !node.is_valid() || node.undo.is_none() {
            let undo_pos = self.put_undo(node, undo)?;
            state.tree.set_valid(id, undo_pos, is_assumed);
            self.index.put(&[state.tree.get(id).to_record()])?;
        }
        Ok(())
    }

    /// Makes a block with verified scripts the tip (Core's `ConnectTip`).
    pub(super) fn connect_tip(
        &self,
        state: &mut State,
        block: Passed<NodeId>,
    ) -> Result<ScriptsPassed, EngineError> {
        self.settle_archive(state)?;
        let Passed { scripts, undo, note: id } = block;
        let is_assumed = state.historical.is_some();
        self.keep_valid(state, id, &undo, is_assumed)?;
        state.tree.extend_active(id);
        point(Point::Connected);
        self.notifier.hand_over(state.tree.get(id).height, scripts.prepared(), undo);
        let now_s = self.config.clock.now_s();
        state.mempool.remove_confirmed(scripts.prepared(), &self.pool, now_s);
        if let Some(events) = self.notifier.events() {
            state.mempool.settle_changes();
            events.connected(scripts.prepared());
        }
        self.log_tip(state);
        Ok(scripts)
    }

    /// Disconnects the tip, restores its spent coins, and keeps its transactions in `disconnected`, as far as there is room
    /// (Core's `DisconnectTip`).
    pub(crate) fn disconnect_tip(
        &self,
        state: &mut State,
        disconnected: &mut DisconnectedTxs,
    ) -> Result<(), EngineError> {
        let block = self.disconnect_block(state);
        let block = block.map_err(|source| EngineError::Disconnect(Box::new(source)))?;
        let block = Arc::new(block);
        if let Some(events) = self.notifier.events() {
            state.mempool.settle_changes();
            events.disconnected(&block);
        }
        for left_out in disconnected.add_block(&block, self.params().cash.is_some()) {
            state.mempool.remove_spenders(&left_out);
        }
        self.log_tip(state);
        if state.flushes.is_due(&mut state.coins.store) { self.flush(state) } else { Ok(()) }
    }

    fn log_tip(&self, state: &mut State) {
        let warning = self.warn_of_unknown_rules(state);
        let genesis_time = self.params().genesis.time;
        let now_s = self.config.clock.now_s();
        log::update_tip(&state.tree, &state.coins.store, (genesis_time, now_s), &warning);
    }

    /// A block and its undo data.
    pub(super) fn read_with_undo(
        &self,
        state: &State,
        id: NodeId,
    ) -> Result<(Prepared, Vec<u8>), EngineError> {
        let prepared = self.load(state, id)?;
        let node = state.tree.get(id);
        let (hash, height) = (node.hash, node.height);
        let missing = EngineError::MissingData { hash, height, what: "undo data" };
        let undo_pos = node.undo.ok_or(missing)?;
        Ok((prepared, self.blocks.read_undo(undo_pos, &hash)?))
    }

    fn disconnect_block(&self, state: &mut State) -> Result<Prepared, EngineError> {
        let (prepared, undo) = match self.read_with_undo(state, state.tree.tip()) {
            Ok(read) => read,
            Err(error) => {
                // No coin has moved, so flush the state, as Core does before this fatal error.
                if let Err(error) = self.flush(state) {
                    tracing::error!("could not write the coins out: {error}");
                }
                return Err(error);
            }
        };
        load_outputs(&prepared, &mut state.coins.store, self.config.read_threads)?;
        let outputs_first = self.params().cash.is_some();
        disconnect(&prepared, &undo, outputs_first, &mut state.coins)?;
        point(Point::Disconnect);
        let height = state.tree.get(state.tree.tip()).height;
        self.prune_locks.moved_back(height.saturating_sub(1));
        state.tree.shrink_active();
        Ok(prepared)
    }
}
