//! The 24 bytes in front of every message.

use std::fmt;

use assay_hash::{Sha256, sha256d};

/// What a message is called: up to twelve printable characters, padded with zeros.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Command([u8; 12]);

impl Command {
    /// The command called `name`.
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

    /// Reads a command: printable characters, then nothing but zeros (Core `protocol.cpp`, `IsMessageTypeValid`).
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

    /// The name.
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

/// What stands in front of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Tells the chains apart.
    pub magic: [u8; 4],
    /// The kind of message.
    pub command: Command,
    /// Bytes of the payload.
    pub length: u32,
    /// First bytes of the payload's double SHA-256.
    pub checksum: [u8; 4],
}

/// Why bytes are not a message of this chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Another chain, another protocol, or out of step.
    #[error("magic {:08x} instead of {:08x}", u32::from_be_bytes(*found), u32::from_be_bytes(*expected))]
    Magic {
        /// What was there.
        found: [u8; 4],
        /// What the chain has.
        expected: [u8; 4],
    },
    /// The command is not printable, or something follows its padding.
    #[error("the name of a message is not printable")]
    Command,
    /// The message is longer than the reader takes.
    #[error("a message {command} of {length} bytes, more than {length_max}")]
    TooLong {
        /// What it is called.
        command: Command,
        /// How long it says it is.
        length: u32,
        /// What is taken.
        length_max: u32,
    },
    /// The payload is not what the sender hashed.
    #[error("the checksum of a message {command} is wrong")]
    Checksum {
        /// What it is called.
        command: Command,
    },
}

impl FrameError {
    /// Where in the message the fault is, bytes from its beginning.
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
    /// When the payload is longer than 4 GiB, which no block can be.
    pub fn of(magic: [u8; 4], command: Command, payload: &[u8]) -> Self {
        let length = u32::try_from(payload.len()).expect("a payload is shorter than 4 GiB");
        Self { magic, command, length, checksum: checksum(payload) }
    }

    /// Reads a header of the chain with `magic`, for a payload of at most `length_max` bytes.
    ///
    /// # Errors
    /// When it belongs to another chain, is malformed, or announces too much.
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

    /// Compares the payload's hash with what the header says.
    ///
    /// # Errors
    /// When they differ.
    pub fn check(&self, payload: &[u8]) -> Result<(), FrameError> {
        self.check_hash(&sha256d(payload))
    }

    /// [`FrameHeader::check`] for a payload that was hashed piece by piece.
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

/// Hashes a payload that comes or goes in pieces.
#[derive(Clone, Debug, Default)]
pub struct PayloadHasher(Sha256);

impl PayloadHasher {
    /// Adds the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The double SHA-256 of all of it, whose first four bytes are the checksum.
    pub fn finish(self) -> [u8; 32] {
        self.0.finalize_double()
    }
}
