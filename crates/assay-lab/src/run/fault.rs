//! The reasons for which a run is invalid.

use assay_report::atomic_file::WriteError;

use crate::chain::ChainError;
use crate::electrum::ElectrumError;
use crate::electrum::check::CheckError;
use crate::feed::FeedError;
use crate::process::ProcessError;
use crate::process::rpc::RpcError;

/// Reason for which a run is invalid.
#[derive(Debug, thiserror::Error)]
pub enum RunFault {
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The target did not start or stop as it should.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The target ended in mid-run.
    #[error("at block {height} of {of} ({phase})")]
    Died {
        /// The block that was being fed.
        height: u32,
        /// Height of the chain.
        of: u32,
        /// Its phase.
        phase: String,
        source: ProcessError,
    },
    /// The caller ended the run.
    #[error("interrupted at block {height}")]
    Interrupted {
        /// The block that would have been next, or was being fed.
        height: u32,
    },
    #[error(transparent)]
    Chain(ChainError),
    #[error(transparent)]
    Feed(#[from] FeedError),
    /// The end state could not be asked for.
    #[error("the end state could not be read")]
    EndState { source: RpcError },
    /// The index could not be started, or ended.
    #[error("the index")]
    IndexProcess { source: ProcessError },
    #[error("the index failed when {doing}")]
    Index {
        /// What was going on.
        doing: &'static str,
        source: ElectrumError,
    },
    #[error("the index is at height {at}, {seconds} s after the node reached {height}")]
    IndexBehind {
        at: u32,
        /// The node's.
        height: u32,
        /// How long it was given.
        seconds: u64,
    },
    /// The index could not be compared with the chain.
    #[error("the answers of the index could not be compared")]
    IndexCheck {
        #[from]
        source: CheckError,
    },
    /// The node that has the blocks did not do its part.
    #[error("the source of blocks")]
    Source { source: ProcessError },
    /// The target made no progress.
    #[error("no block after height {height} in {seconds} s; the target's last words:\n{log_tail}")]
    Stalled {
        height: u32,
        /// How long it was given.
        seconds: u64,
        /// End of its log.
        log_tail: String,
    },
    /// The target could not be asked for its height.
    #[error("after height {height}")]
    Height {
        /// The height seen last.
        height: u32,
        source: RpcError,
    },
    /// What the target printed at its end is not what it should be.
    #[error("the target printed no such JSON as expected")]
    Output {
        /// What the JSON library says; absent where nothing was printed.
        source: Option<serde_json::Error>,
    },
    /// The target ended while its end state was compared.
    #[error("while the end state was compared")]
    DiedAtEnd { source: ProcessError },
}

impl From<serde_json::Error> for RunFault {
    fn from(source: serde_json::Error) -> Self {
        Self::Output { source: Some(source) }
    }
}
