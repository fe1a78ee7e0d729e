//! Skips script verification below a block that is known to be valid (Core `validation.cpp`, `ConnectBlock`; `-assumevalid`).

use assay_wire::BlockHash;

use super::{Chainstate, State};
use crate::tree::{BlockTree, NodeId};

/// Reason for script verification; `None` if it is skipped.
pub(crate) type Cause = Option<&'static str>;

impl Chainstate {
    /// True if the scripts of a block must be verified. Logs every change.
    pub(super) fn must_verify_scripts(&self, state: &mut State, id: NodeId) -> bool {
        let cause = self.cause_to_verify(&state.tree, id);
        if state.verify_cause != Some(cause) {
            state.verify_cause = Some(cause);
            let node = state.tree.get(id);
            let (height, hash) = (node.height, node.hash);
            match cause {
                Some(cause) => {
                    tracing::info!(
                        "Enabling script verification at block #{height} ({hash}): {cause}."
                    );
                }
                None => {
                    tracing::info!("Disabling script verification at block #{height} ({hash}).");
                }
            }
        }
        cause.is_some()
    }

    pub(super) fn cause_to_verify(&self, tree: &BlockTree, id: NodeId) -> Cause {
        let params = self.params();
        if params.assume_valid == BlockHash::ZERO {
            return Some("assumevalid=0 (always verify)");
        }
        let Some(assumed) = tree.find(&params.assume_valid) else {
            return Some("assumevalid hash not in headers");
        };
        let height = tree.get(id).height;
        if height > tree.get(assumed).height {
            return Some("block height above assumevalid height");
        }
        if tree.ancestor_at(assumed, height) != id {
            return Some("block not in assumevalid chain");
        }
        let best = tree.best_header();
        if tree.ancestor_at(best, height) != id {
            return Some("block not in best header chain");
        }
        if tree.get(best).chain_work < params.minimum_chain_work {
            return Some("best header chainwork below minimumchainwork");
        }
        // A chain with invalid scripts would have to be this long: it costs weeks of the whole network's work.
        if tree.equivalent_time_s(id, best, params.pow.target_spacing_s) <= TWO_WEEKS_S {
            return Some("block too recent relative to best header");
        }
        None
    }
}

const TWO_WEEKS_S: u64 = 14 * 24 * 3600;
