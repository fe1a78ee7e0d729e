//! The 24-byte header of every message.

use std::fmt;

use assay_hash::{Sha256, sha256d};

/// Message type: up to twelve printable characters, padded with zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Command([u8; 12]);

impl Command {
    /// The command `name`.
    ///
    /// # Panics
    /// When the name is longer than twelve characters or not printable: names are constants of the program.
    pub const fn new(name: &str) -> Self {
        let name = name.as_bytes();
        assert!(name.len() <= 12, "a command has at most twelve characters");
        let mut bytes = [0; 12];
        let mut index = 0;
        while index < name.len() {
            assert!(is_printable(name[index]), "a command is printable");
            bytes[index] = name[index];
            index += 1;
        }
        Self(bytes)
    }

    /// Parses a command: printable characters, then only zeros (Core `protocol.cpp`, `IsMessageTypeValid`).
    pub fn parse(bytes: &[u8; 12]) -> Option<Self> {
        let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(12);
        let (name, padding) = bytes.split_at(length);
        let is_valid =
            name.iter().all(|byte| is_printable(*byte)) && padding.iter().all(|byte| *byte == 0);
        is_valid.then_some(Self(*bytes))
    }

    /// The twelve bytes of the wire format.
    pub fn to_bytes(self) -> [u8; 12] {
        self.0
    }

    /// The name without padding.
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(12);
        str::from_utf8(&self.0[..length]).expect("printable characters are ASCII")
    }
}

const fn is_printable(byte: u8) -> bool {
    byte >= b' ' && byte <= b'~'
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Command({})", self.as_str())
    }
}

/// The header that precedes a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Magic bytes of the chain.
    pub magic: [u8; 4],
    /// Message type.
    pub command: Command,
    /// Length of the payload in bytes.
    pub length: u32,
    /// First bytes of the payload's double SHA-256.
    pub checksum: [u8; 4],
}

/// The bytes are not a message of this chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Wrong magic: another chain or protocol, or a lost message boundary.
    #[error("magic {:08x} instead of {:08x}", u32::from_be_bytes(*found), u32::from_be_bytes(*expected))]
    Magic {
        /// Magic in the message.
        found: [u8; 4],
        /// Magic of the chain.
        expected: [u8; 4],
    },
    /// The command is not printable, or its padding is not zero.
    #[error("the name of a message is not printable")]
    Command,
    /// The message exceeds the reader's limit.
    #[error("a message {command} of {length} bytes, more than {length_max}")]
    TooLong {
        /// Message type.
        command: Command,
        /// Announced length in bytes.
        length: u32,
        /// Maximum length in bytes.
        length_max: u32,
    },
    /// The payload does not match the checksum.
    #[error("the checksum of a message {command} is wrong")]
    Checksum {
        /// Message type.
        command: Command,
    },
}

impl FrameError {
    /// Offset of the fault in the message, in bytes.
    pub fn offset(&self) -> usize {
        match self {
            Self::Magic { .. } => 0,
            Self::Command => 4,
            Self::TooLong { .. } => 16,
            Self::Checksum { .. } => 20,
        }
    }
}

impl FrameHeader {
    /// Serialised length.
    pub const SIZE: usize = 24;

    /// The header of a message with this payload.
    ///
    /// # Panics
    /// When the payload is longer than 4 GiB; no block is.
    pub fn of(magic: [u8; 4], command: Command, payload: &[u8]) -> Self {
        let length = u32::try_from(payload.len()).expect("a payload is shorter than 4 GiB");
        Self { magic, command, length, checksum: checksum(payload) }
    }

    /// Parses a header of the chain with `magic`, for a payload of at most `length_max` bytes.
    ///
    /// # Errors
    /// When it belongs to another chain, is malformed, or announces a longer payload.
    pub fn parse(bytes: &[u8; 24], magic: [u8; 4], length_max: u32) -> Result<Self, FrameError> {
        let four = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        if four(0) != magic {
            return Err(FrameError::Magic { found: four(0), expected: magic });
        }
        let mut name = [0; 12];
        name.copy_from_slice(&bytes[4..16]);
        let command = Command::parse(&name).ok_or(FrameError::Command)?;
        let length = u32::from_le_bytes(four(16));
        if length > length_max {
            return Err(FrameError::TooLong { command, length, length_max });
        }
        Ok(Self { magic, command, length, checksum: four(20) })
    }

    /// Inverse of [`FrameHeader::parse`].
    pub fn to_bytes(&self) -> [u8; 24] {
        let mut out = [0; 24];
        out[..4].copy_from_slice(&self.magic);
        out[4..16].copy_from_slice(&self.command.0);
        out[16..20].copy_from_slice(&self.length.to_le_bytes());
        out[20..].copy_from_slice(&self.checksum);
        out
    }

    /// Compares the payload's hash with the checksum.
    ///
    /// # Errors
    /// When they differ.
    pub fn check(&self, payload: &[u8]) -> Result<(), FrameError> {
        self.check_hash(&sha256d(payload))
    }

    /// [`FrameHeader::check`] for a payload hashed incrementally.
    ///
    /// # Errors
    /// When hash and header differ.
    pub fn check_hash(&self, payload_sha256d: &[u8; 32]) -> Result<(), FrameError> {
        let is_right = payload_sha256d.starts_with(&self.checksum);
        is_right.then_some(()).ok_or(FrameError::Checksum { command: self.command })
    }
}

/// First four bytes of the double SHA-256.
pub fn checksum(payload: &[u8]) -> [u8; 4] {
    let hash = sha256d(payload);
    [hash[0], hash[1], hash[2], hash[3]]
}

/// Hashes a payload that is processed in pieces.
#[derive(Clone, Debug, Default)]
pub struct PayloadHasher(Sha256);

impl PayloadHasher {
    /// Adds the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The double SHA-256 of the payload; its first four bytes are the checksum.
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize_double()
    }
}
