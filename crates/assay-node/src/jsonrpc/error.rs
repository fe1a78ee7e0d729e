//! JSON-RPC error codes, with Bitcoin Core's numbers (`rpc/protocol.h`).

use std::borrow::Cow;

/// Error of one call: a machine-readable code and a human-readable message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (code {})", code.number())]
pub struct RpcError {
    pub code: Code,
    /// Message, in Bitcoin Core's wording where clients are known to match it.
    pub message: Cow<'static, str>,
}

impl RpcError {
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    /// The request object violates JSON-RPC; HTTP 400.
    InvalidRequest = -32600,
    /// HTTP 404.
    MethodNotFound = -32601,
    /// Inconsistent arguments.
    InvalidParams = -32602,
    /// Internal failure, such as unreadable data.
    InternalError = -32603,
    ParseError = -32700,
    /// Everything without its own code, including a wrong number of arguments.
    Misc = -1,
    /// An argument has the wrong JSON type.
    Type = -3,
    /// Unknown block, transaction or address.
    InvalidAddressOrKey = -5,
    /// An argument is out of range, malformed, missing or duplicated.
    InvalidParameter = -8,
    /// The node is stopping.
    ClientNotConnected = -9,
    ClientInInitialDownload = -10,
    /// Blocks, coins or index could not be read or written.
    Database = -20,
    /// Hexadecimal data that does not decode as a block or transaction.
    Deserialization = -22,
    /// The submission failed for a reason other than the rules (missing inputs, the caller's fee limit).
    Verify = -25,
    /// Consensus rules or policy reject the submission.
    VerifyRejected = -26,
    VerifyAlreadyInUtxoSet = -27,
    InWarmup = -28,
    NodeAlreadyAdded = -23,
    NodeNotAdded = -24,
    NodeNotConnected = -29,
    /// Not an address or subnet, or not a banned one.
    InvalidIpOrSubnet = -30,
    PeersDisabled = -31,
}

impl Code {
    pub const fn number(self) -> i32 {
        self as i32
    }
}
