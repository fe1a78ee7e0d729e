//! State of deployments by the signals of blocks (BIP9).

use assay_consensus::chain::Ancestors;
use assay_consensus::versionbits::{Deployment, DeploymentState};
use assay_wire::BlockHash;

use super::Chain;
use crate::tree::{BlockTree, NodeId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentInfo {
    pub deployment: Deployment,
    /// State for the requested block.
    pub state: DeploymentState,
    /// State for the block after it.
    pub next_state: DeploymentState,
    /// Height of the first block of its state.
    pub since: u32,
    /// For each block of the period so far, true if it signals; empty if signals are irrelevant.
    pub signals: Vec<bool>,
}

impl Chain<'_> {
    /// State of these deployments (BIP9) for a block, even if their rules no longer depend on signals; `None` for an unknown block.
    pub fn deployments(
        self,
        hash: &BlockHash,
        deployments: &[Deployment],
    ) -> Option<Vec<DeploymentInfo>> {
        let state = self.0.lock();
        let id = state.tree.find(hash)?;
        Some(deployments.iter().map(|one| deployment_info(&state.tree, id, one)).collect())
    }
}

fn deployment_info(tree: &BlockTree, id: NodeId, deployment: &Deployment) -> DeploymentInfo {
    let branch = tree.ancestors(id);
    let height = branch.tip_height();
    let version_at = |height| tree.get(tree.ancestor_at(id, height)).header.version;
    let state_after = |parent| deployment.state_after(&branch, parent, version_at);
    let parent = height.checked_sub(1);
    let state = state_after(parent);
    let first = height - height % deployment.period;
    let signals = (first..=height).map(|height| deployment.is_signal(version_at(height)));
    DeploymentInfo {
        deployment: *deployment,
        state,
        next_state: state_after(Some(height)),
        since: deployment.state_since(&branch, parent, version_at),
        signals: if state.is_signalled() { signals.collect() } else { Vec::new() },
    }
}
