//! Error codes of the JSON-RPC interface, with the numbers Bitcoin Core gives them (`rpc/protocol.h`).

use std::borrow::Cow;

/// What went wrong with one call: a code that programs read and a text that people read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message} (code {})", code.number())]
pub struct RpcError {
    pub code: Code,
    /// The explanation, in Bitcoin Core's words where clients are known to match on them.
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
    /// The request object breaks JSON-RPC; HTTP 400.
    InvalidRequest = -32600,
    /// No such method; HTTP 404.
    MethodNotFound = -32601,
    /// Arguments that do not go together.
    InvalidParams = -32602,
    /// The node is broken inside (unreadable data, say).
    InternalError = -32603,
    /// The body is not JSON.
    ParseError = -32700,
    /// Anything that has no class of its own, wrong number of arguments included.
    Misc = -1,
    /// An argument has the wrong JSON type.
    Type = -3,
    /// An unknown block, transaction or address.
    InvalidAddressOrKey = -5,
    /// An argument is out of range, malformed, missing or given twice.
    InvalidParameter = -8,
    /// The node is stopping.
    ClientNotConnected = -9,
    /// The chain is still being caught up with.
    ClientInInitialDownload = -10,
    /// Blocks, coins or index could not be read or written.
    Database = -20,
    /// Hexadecimal data that is no block or transaction.
    Deserialization = -22,
    /// The submission failed for a reason other than the rules (missing inputs, fee limit of the caller).
    Verify = -25,
    /// The rules or the policy reject the submission.
    VerifyRejected = -26,
    /// The transaction is confirmed already.
    VerifyAlreadyInUtxoSet = -27,
    /// The node still starts.
    InWarmup = -28,
    /// The peer is among those to stay connected to already.
    NodeAlreadyAdded = -23,
    /// The peer is not among them.
    NodeNotAdded = -24,
    NodeNotConnected = -29,
    /// A text is no address or range of addresses, or none that is banned.
    InvalidIpOrSubnet = -30,
    /// The node has no peers.
    PeersDisabled = -31,
}

impl Code {
    /// The number on the wire.
    pub const fn number(self) -> i32 {
        self as i32
    }
}
