//! Protocol errors.

use crate::index::QueryError;
use crate::mempool::TooMany;

/// Error codes: those of JSON-RPC, then those of `ElectrumX`, known to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Code {
    Parse,
    InvalidRequest,
    /// The method does not exist in the negotiated protocol version.
    MethodNotFound,
    /// Too few, too many or unknown parameters.
    InvalidParams,
    Internal,
    Excessive,
    /// A parameter has the wrong type or value, or there is no result.
    BadRequest,
    /// The node failed.
    Daemon,
    /// The result exceeds the limit of entries (protocol 1.7).
    HistoryTooLarge,
}

impl Code {
    pub(in crate::server) const fn number(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::Excessive => -101,
            Self::BadRequest => 1,
            Self::Daemon => 2,
            Self::HistoryTooLarge => 10_001,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(in crate::server) struct RpcError {
    pub(in crate::server) code: Code,
    pub(in crate::server) message: String,
    /// True if the connection ends with this response.
    pub(in crate::server) fatal: bool,
}

impl RpcError {
    pub(in crate::server) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), fatal: false }
    }

    pub(in crate::server) fn bad(message: impl Into<String>) -> Self {
        Self::new(Code::BadRequest, message)
    }

    pub(in crate::server) fn daemon(message: impl Into<String>) -> Self {
        Self::new(Code::Daemon, message)
    }

    pub(in crate::server) fn fatal(self) -> Self {
        Self { fatal: true, ..self }
    }
}

/// A call failed: a client error, or a condition that requires a retry.
#[derive(Debug, thiserror::Error)]
pub(in crate::server) enum CallError {
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// A reorg below the view happened: retry.
    #[error("the chain was reorganised meanwhile")]
    Again,
    #[error("the answer takes longer than at once")]
    NotAtOnce,
}

impl From<QueryError> for CallError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Reorganised => Self::Again,
            QueryError::NotAtOnce => Self::NotAtOnce,
            QueryError::TooLarge { .. } => {
                Self::Rpc(RpcError::new(Code::HistoryTooLarge, error.to_string()))
            }
            error => {
                // Local paths belong in the log only.
                tracing::error!("The index cannot be read: {error}");
                Self::Rpc(RpcError::new(Code::Internal, "the index cannot be read"))
            }
        }
    }
}

impl From<crate::chain::ChainError> for CallError {
    fn from(error: crate::chain::ChainError) -> Self {
        tracing::error!("{error}");
        Self::Rpc(RpcError::daemon(format!("the node cannot {}", error.operation)))
    }
}

impl From<TooMany> for CallError {
    fn from(error: TooMany) -> Self {
        Self::Rpc(RpcError::new(Code::HistoryTooLarge, error.to_string()))
    }
}
