//! Why bytes are not a transaction, a block or a message.

/// What was wrong and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct ParseError {
    /// Position in the parsed bytes.
    pub offset: usize,
    /// The rule that was broken.
    pub kind: ParseErrorKind,
}

/// The ways in which bytes fail to be a transaction, a block or a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    /// The bytes end inside a field.
    #[error("the data ends early")]
    Truncated,
    /// Bytes remain after the last field.
    #[error("there are bytes after the end")]
    TrailingBytes,
    /// A compact size that a shorter form could express (Core `serialize.h`, `ReadCompactSize`).
    #[error("a compact size is not in its shortest form")]
    NonCanonicalSize,
    /// A compact size above 32 MiB (Core `serialize.h`, `MAX_SIZE`).
    #[error("a compact size is above the limit")]
    OversizedCount,
    /// The witness flag is set, yet every witness is empty.
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
        /// How many there are.
        count: usize,
    },
    /// More addresses in a message than the protocol allows.
    #[error("{count} addresses are more than the protocol allows")]
    TooManyAddresses {
        /// How many there are.
        count: usize,
    },
    /// An address longer than any network's may be (BIP155); the words are Core's (`netaddress.h`).
    #[error("Address too long: {length} > 512")]
    AddressTooLong {
        /// Its length, bytes.
        length: u64,
    },
    /// An address whose length is not that of its network's (BIP155); the words are Core's (`netaddress.cpp`).
    #[error("BIP155 {network} address with length {length} (should be {expected})")]
    AddressLength {
        /// What the network is called.
        network: &'static str,
        /// The length, bytes.
        length: u64,
        /// What it would have to be.
        expected: u64,
    },
    /// A header in a message with a count of transactions other than 0.
    #[error("transactions are announced after a header")]
    HeaderWithTransactions,
}
