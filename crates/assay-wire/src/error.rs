//! Parse errors of transactions, blocks and messages.

/// A parse error and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct ParseError {
    /// Position in the parsed bytes.
    pub offset: usize,
    /// The violated rule.
    pub kind: ParseErrorKind,
}

/// Rules of the format that a transaction, a block or a message violates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    /// The bytes end inside a field.
    #[error("the data ends early")]
    Truncated,
    /// Bytes remain after the last field.
    #[error("there are bytes after the end")]
    TrailingBytes,
    /// A compact size with a shorter encoding (Core `serialize.h`, `ReadCompactSize`).
    #[error("a compact size is not in its shortest form")]
    NonCanonicalSize,
    /// A compact size above 32 MiB (Core `serialize.h`, `MAX_SIZE`).
    #[error("a compact size is above the limit")]
    OversizedCount,
    /// The witness flag is set, but every witness is empty.
    #[error("a witness is announced but every one is empty")]
    SuperfluousWitness,
    /// A flag byte other than 1 after the witness marker.
    #[error("unknown optional transaction data")]
    UnknownFlag,
    /// More than 4 GiB: offsets are 32 bits wide.
    #[error("the data is longer than 4 GiB")]
    TooLong,
    /// A list in a message with more entries than the protocol allows.
    #[error("{count} entries are more than the protocol allows")]
    TooMany {
        /// Number of entries in the message.
        count: usize,
    },
    /// More addresses in a message than the protocol allows.
    #[error("{count} addresses are more than the protocol allows")]
    TooManyAddresses {
        /// Number of addresses in the message.
        count: usize,
    },
    /// An address longer than the limit for any network (BIP155); Core's error text (`netaddress.h`).
    #[error("Address too long: {length} > 512")]
    AddressTooLong {
        /// Length of the address in bytes.
        length: u64,
    },
    /// An address with a wrong length for its network (BIP155); Core's error text (`netaddress.cpp`).
    #[error("BIP155 {network} address with length {length} (should be {expected})")]
    AddressLength {
        /// Core's name of the network.
        network: &'static str,
        /// Actual length in bytes.
        length: u64,
        /// Expected length in bytes.
        expected: u64,
    },
    /// A header in a message with a transaction count other than 0.
    #[error("transactions are announced after a header")]
    HeaderWithTransactions,
}
