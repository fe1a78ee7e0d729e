//! Connects a block to the tip, and disconnects it.

use std::sync::Arc;

use assay_consensus::block::BlockRules;
use assay_store::UndoPos;
use assay_store::defect::{Point, point};
use assay_wire::Coin;

use super::{Chainstate, State};
use crate::connect::{ConnectError, Connected, connect, disconnect, load_outputs};
use crate::deferred::{Place, is_exact};
use crate::error::EngineError;
use crate::log;
use crate::mempool::DisconnectedTxs;
use crate::pipeline::{InFlight, Passed, Pipeline};
use crate::prepared::Prepared;
use crate::scripts::{ScriptQueue, ScriptsPassed};
use crate::tree::{BlockTree, Node, NodeId};

impl Chainstate {
    /// Moves the coins of a block on top of their current block, and hands over its scripts, except those known to be valid
    /// ([`connect`]).
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
        let block = self.connect_on(state, pipeline, (parent, is_known), prepared)?;
        Ok(InFlight { block, note: id })
    }

    /// [`Self::connect_block`] for a block on `parent` that need not be in the tree; `was_valid`: its scripts are known to be
    /// valid.
    pub(super) fn connect_on<T>(
        &self,
        state: &mut State,
        pipeline: &Pipeline<T>,
        (parent, was_valid): (NodeId, bool),
        prepared: &Arc<Prepared>,
    ) -> Result<Connected, ConnectError> {
        let State { tree, coins, mempool, coinbases, .. } = state;
        let branch = tree.ancestors(parent);
        let header = prepared.block.header();
        let rules = BlockRules::new(self.params(), &branch, header, &prepared.hash);
        let mut queue = pipeline.queue(prepared, rules);
        if self.is_exact(tree, rules.height, prepared) {
            queue.verify_at_once();
        }
        let known = if was_valid {
            Vec::new()
        } else {
            mempool.known_of_block(prepared, &self.pool, rules.flags)
        };
        let verify = |queue: &mut ScriptQueue<'_>, tx_index: usize, spent: &mut Vec<Coin>| {
            // The coinbase spends nothing; a block validated before is not verified again.
            if tx_index == 0 || was_valid {
                return;
            }
            match known.get(tx_index).copied().flatten() {
                Some(sigchecks) => queue.add_known(sigchecks),
                None => queue.push(tx_index, spent),
            }
        };
        let moved = connect(queue, (coins, coinbases, &branch), self.config.read_threads, verify);
        point(Point::Connect);
        moved
    }

    /// True if only libsecp256k1 verifies the signatures of a block.
    pub(super) fn is_exact(&self, tree: &BlockTree, height: u32, prepared: &Prepared) -> bool {
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
    pub(super) fn put_undo(&self, node: &Node, undo: &[u8]) -> Result<UndoPos, EngineError> {
        let is_same = |pos: &UndoPos| {
            self.blocks.read_undo(*pos, &node.hash).is_ok_and(|stored| stored == undo)
        };
        if let Some(pos) = node.undo.filter(is_same) {
            return Ok(pos);
        }
        let block_file = node.block.map_or(0, |pos| pos.file);
        Ok(self.blocks.append_undo(block_file, &node.hash, undo)?)
    }

    /// Makes a block with verified scripts the tip (Core's `ConnectTip`).
    pub(super) fn connect_tip(
        &self,
        state: &mut State,
        block: Passed<NodeId>,
    ) -> Result<ScriptsPassed, EngineError> {
        self.settle_archive(state)?;
        let Passed { scripts, undo, note: id } = block;
        let node = state.tree.get(id);
        // A block always spends the same coins, so earlier undo data are as good. They are better: they may be synced, and the
        // coins on disk may be on a branch that only they lead back from.
        if !node.is_valid() || node.undo.is_none() {
            let undo_pos = self.put_undo(node, &undo)?;
            state.tree.set_valid(id, undo_pos, state.historical.is_some());
            self.index.put(&[state.tree.get(id).to_record()])?;
        }
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
        if state.flushes.is_due(&mut state.coins) { self.flush(state) } else { Ok(()) }
    }

    fn log_tip(&self, state: &mut State) {
        let warning = self.warn_of_unknown_rules(state);
        let genesis_time = self.params().genesis.time;
        let now_s = self.config.clock.now_s();
        log::update_tip(&state.tree, &state.coins, (genesis_time, now_s), &warning);
    }

    /// The tip block and its undo data.
    fn read_tip(&self, state: &State) -> Result<(Prepared, Vec<u8>), EngineError> {
        let id = state.tree.tip();
        let prepared = self.load(state, id)?;
        let node = state.tree.get(id);
        let (hash, height) = (node.hash, node.height);
        let missing = EngineError::MissingData { hash, height, what: "undo data" };
        let undo_pos = node.undo.ok_or(missing)?;
        Ok((prepared, self.blocks.read_undo(undo_pos, &hash)?))
    }

    fn disconnect_block(&self, state: &mut State) -> Result<Prepared, EngineError> {
        let (prepared, undo) = match self.read_tip(state) {
            Ok(read) => read,
            Err(error) => {
                // No coin has moved, so flush the state, as Core does before this fatal error.
                if let Err(error) = self.flush(state) {
                    tracing::error!("could not write the coins out: {error}");
                }
                return Err(error);
            }
        };
        load_outputs(&prepared, &mut state.coins, self.config.read_threads)?;
        let outputs_first = self.params().cash.is_some();
        disconnect(&prepared, &undo, outputs_first, (&mut state.coins, &mut state.coinbases))?;
        point(Point::Disconnect);
        let height = state.tree.get(state.tree.tip()).height;
        self.prune_locks.moved_back(height.saturating_sub(1));
        state.tree.shrink_active();
        Ok(prepared)
    }
}
