//! Reasons for invalid runs.

use assay_report::atomic_file::WriteError;

use crate::chain::ChainError;
use crate::electrum::ElectrumError;
use crate::electrum::check::CheckError;
use crate::feed::FeedError;
use crate::process::ProcessError;
use crate::process::rpc::RpcError;

/// Reason for an invalid run.
#[derive(Debug, thiserror::Error)]
pub enum RunFault {
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The target did not start or stop properly.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The target exited during the run.
    #[error("at block {height} of {of} ({phase})")]
    Died {
        /// Block in flight.
        height: u32,
        /// Height of the chain.
        of: u32,
        /// Phase of the block.
        phase: String,
        source: ProcessError,
    },
    /// The caller stopped the run.
    #[error("interrupted at block {height}")]
    Interrupted {
        /// Next block, or block in flight.
        height: u32,
    },
    #[error(transparent)]
    Chain(ChainError),
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// Querying the end state failed.
    #[error("the end state could not be read")]
    EndState { source: RpcError },
    /// The index did not start, or exited.
    #[error("the index")]
    IndexProcess { source: ProcessError },
    #[error("the index failed when {doing}")]
    Index {
        /// Current operation.
        doing: &'static str,
        source: ElectrumError,
    },
    #[error("the index is at height {at}, {seconds} s after the node reached {height}")]
    IndexBehind {
        at: u32,
        /// Height of the node.
        height: u32,
        /// Time limit.
        seconds: u64,
    },
    /// The comparison of the index with the chain failed.
    #[error("the answers of the index could not be compared")]
    IndexCheck {
        #[from]
        source: CheckError,
    },
    /// The node that serves the blocks failed.
    #[error("the source of blocks")]
    Source { source: ProcessError },
    /// The target made no progress.
    #[error("no block after height {height} in {seconds} s; the target's last words:\n{log_tail}")]
    Stalled {
        height: u32,
        /// Time limit.
        seconds: u64,
        /// Last log lines.
        log_tail: String,
    },
    /// Querying the height of the target failed.
    #[error("after height {height}")]
    Height {
        /// Last observed height.
        height: u32,
        source: RpcError,
    },
    /// The final output of the target is malformed.
    #[error("the target printed no such JSON as expected")]
    Output {
        /// Error of the JSON library; absent without output.
        source: Option<serde_json::Error>,
    },
    /// The target exited while its end state was compared.
    #[error("while the end state was compared")]
    DiedAtEnd { source: ProcessError },
}

impl From<serde_json::Error> for RunFault {
    fn from(source: serde_json::Error) -> Self {
        Self::Output { source: Some(source) }
    }
}
