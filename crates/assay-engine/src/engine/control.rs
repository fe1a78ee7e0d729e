//! Operator decisions about branches, and the list of chain tips.

use assay_store::defect::{Point, point};
use assay_wire::BlockHash;

use super::Chain;
use crate::chainstate::State;
use crate::error::{ControlError, EngineError};
use crate::mempool::DisconnectedTxs;
use crate::tree::{Node, NodeId};
use crate::types::{ChainTip, ChainTipStatus};

/// Maximum number of disconnected blocks whose transactions return to the mempool after `invalidate_block` (Core,
/// `InvalidateBlock`).
const READMITTED_BLOCKS_MAX: u32 = 10;

impl Chain<'_> {
    /// Marks a block and its descendants as invalid, until [`Chain::reconsider_block`]. The genesis block cannot be invalidated:
    /// the call has no effect then, as in Core.
    ///
    /// # Errors
    /// The block is unknown, or the engine fails.
    pub fn invalidate_block(self, hash: &BlockHash) -> Result<(), ControlError> {
        let mut state = self.0.lock();
        let id = find(&state, hash)?;
        if id == NodeId::GENESIS {
            return Ok(());
        }
        check_removable(&state, id)?;
        let outcome = self.invalidate(&mut state, id);
        state.poison(outcome)?;
        self.0.chainstate.activate(&mut state, None)?;
        Ok(())
    }

    fn invalidate(self, state: &mut State, id: NodeId) -> Result<(), EngineError> {
        let changed = state.tree.set_failed(id);
        point(Point::MarkInvalid);
        // Write the mark before the coins move, so that no crash can bring the branch back.
        self.0.chainstate.put_records(state, &changed)?;
        self.0.chainstate.sync_records()?;
        let mut count = 0;
        while state.tree.tip_node().is_failed() {
            let mut disconnected = DisconnectedTxs::new(self.0.config().disconnected_bytes_max);
            self.0.chainstate.disconnect_tip(state, &mut disconnected)?;
            count += 1;
            let is_worth_it = count <= READMITTED_BLOCKS_MAX;
            self.0.chainstate.admission.readmit(&mut state.view(), disconnected, is_worth_it);
        }
        self.0.chainstate.invalid_chain_found(state, id, &changed);
        Ok(())
    }

    /// Removes the failure marks of a block, its ancestors and its descendants, whatever the cause; then activates the best
    /// branch.
    ///
    /// # Errors
    /// The block is unknown, or the engine fails.
    pub fn reconsider_block(self, hash: &BlockHash) -> Result<(), ControlError> {
        let mut state = self.0.lock();
        let id = find(&state, hash)?;
        let changed = state.tree.clear_failed(id);
        state.best_invalid_work = state.tree.best_failed_work();
        let outcome = self
            .0
            .chainstate
            .put_records(&state, &changed)
            .and_then(|()| self.0.chainstate.sync_records());
        state.poison(outcome)?;
        self.0.chainstate.activate(&mut state, None)?;
        Ok(())
    }

    /// Prefers a block to all others of equal work, as if it had been received first; only until the engine closes.
    ///
    /// # Errors
    /// The block is unknown, or the engine fails.
    pub fn precious_block(self, hash: &BlockHash) -> Result<(), ControlError> {
        let mut state = self.0.lock();
        let id = find(&state, hash)?;
        state.tree.prefer(id);
        self.0.chainstate.activate(&mut state, None)?;
        Ok(())
    }

    /// The tips of all known branches, highest first. The active tip is included even if headers above it are known.
    pub fn tips(self) -> Vec<ChainTip> {
        let state = self.0.lock_tree();
        let tree = &state.tree;
        let describe = |id: NodeId| {
            let node = tree.get(id);
            let fork = tree.get(tree.fork_with_active(id));
            ChainTip {
                height: node.height,
                hash: node.hash,
                branch_length: node.height - fork.height,
                status: status(node, tree.is_active(id)),
            }
        };
        tree.leaves().into_iter().map(describe).collect()
    }
}

/// Finds the block of a decision, unless the engine has failed.
fn find(state: &State, hash: &BlockHash) -> Result<NodeId, ControlError> {
    state.check()?;
    state.tree.find(hash).ok_or(ControlError::UnknownBlock { hash: *hash })
}

/// Succeeds if a block and all active ones above it can be disconnected: the blocks and their undo data must be stored.
fn check_removable(state: &State, id: NodeId) -> Result<(), ControlError> {
    let tree = &state.tree;
    let height = tree.get(id).height;
    match tree.prune_height().filter(|pruned| tree.is_active(id) && *pruned >= height) {
        Some(pruned) => Err(ControlError::Pruned { height: pruned }),
        None => Ok(()),
    }
}

/// Core's `getchaintips`, in its order.
fn status(node: &Node, is_active: bool) -> ChainTipStatus {
    if is_active {
        ChainTipStatus::Active
    } else if node.is_failed() {
        ChainTipStatus::Invalid
    } else if !node.is_linked() && !node.is_pruned() {
        ChainTipStatus::HeadersOnly
    } else if node.was_connected() {
        ChainTipStatus::ValidFork
    } else {
        ChainTipStatus::ValidHeaders
    }
}
