//! Reasons for invalid runs.

use assay_report::atomic_file::WriteError;

use crate::chain::ChainError;
use crate::electrum::ElectrumError;
use crate::electrum::check::CheckError;
use crate::feed::FeedError;
use crate::process::ProcessError;
use crate::process::rpc::RpcError;

#[derive(Debug, thiserror::Error)]
pub enum RunFault {
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The target did not start or stop properly.
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error("at block {height} of {of} ({phase})")]
    Died {
        /// Block in flight.
        height: u32,
        of: u32,
        phase: String,
        source: ProcessError,
    },
    #[error("interrupted at block {height}")]
    Interrupted {
        /// Next block, or block in flight.
        height: u32,
    },
    #[error(transparent)]
    Chain(ChainError),
    #[error(transparent)]
    Feed(#[from] FeedError),
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
        seconds: u64,
    },
    #[error("the answers of the index could not be compared")]
    IndexCheck {
        #[from]
        source: CheckError,
    },
    #[error("the source of blocks")]
    Source { source: ProcessError },
    #[error("no block after height {height} in {seconds} s; the target's last words:\n{log_tail}")]
    Stalled {
        height: u32,
        seconds: u64,
        /// Last log lines.
        log_tail: String,
    },
    #[error("after height {height}")]
    Height {
        /// Last observed height.
        height: u32,
        source: RpcError,
    },
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
