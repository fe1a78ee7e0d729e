//! Warnings for the operator of the node.

use super::{Chainstate, State};
use crate::log;
use crate::notifier::Warning;
use crate::tree::NodeId;
use assay_consensus::pow::block_work;

impl Chainstate {
    /// Warns of active soft forks that are unknown here. Returns the log text for those that will become active (Core
    /// `validation.cpp`, `UpdateTip`).
    pub(super) fn warn_of_unknown_rules(&self, state: &mut State) -> String {
        if self.notifier.download().goes_on(&state.tree.tip_facts()) {
            return String::new();
        }
        let State { tree, unknown_rules, .. } = state;
        let bits = unknown_rules.after_tip(tree, self.params());
        let text = |bit: u32| format!("Unknown new rules activated (versionbit {bit})");
        let of = |mask: u32| (0..u32::BITS).filter(move |bit| mask >> bit & 1 != 0);
        for bit in of(bits.active) {
            self.notifier.warn(Warning::UnknownRules, text(bit));
        }
        of(bits.locked_in).map(text).collect::<Vec<_>>().join(", ")
    }

    /// Logs a branch that failed from `id` on, and warns if it is long.
    pub(crate) fn invalid_chain_found(&self, state: &mut State, id: NodeId, failed: &[NodeId]) {
        let most = failed.iter().map(|id| state.tree.get(*id).chain_work).max();
        state.best_invalid_work = state.best_invalid_work.max(most);
        log::invalid_chain_found(&state.tree, id);
        self.warn_of_invalid_branch(state);
    }

    /// Warns while the invalid branch with the most work is six blocks ahead (Core `validation.cpp`,
    /// `CheckForkWarningConditions`).
    pub(super) fn warn_of_invalid_branch(&self, state: &State) {
        let tip = state.tree.tip_node();
        let block = block_work(tip.header.bits);
        let enough = (0..6).fold(tip.chain_work, |work, _| work.wrapping_add(block));
        if state.best_invalid_work.is_some_and(|work| work > enough) {
            if self.notifier.warn(Warning::InvalidBranch, format!("Warning: {INVALID_BRANCH}")) {
                tracing::warn!("{INVALID_BRANCH}");
            }
        } else {
            self.notifier.end_warning(Warning::InvalidBranch);
        }
    }
}

const INVALID_BRANCH: &str = "Found invalid chain more than 6 blocks longer than our best chain. This could be due to database \
     corruption or consensus incompatibility with peers.";
