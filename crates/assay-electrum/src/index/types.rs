//! What the index answers: plain data.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use assay_wire::{BlockHash, IdParseError, Txid};

/// SHA-256 of an output script, in the order the hash function produces it; printed and parsed reversed, as the Electrum
/// protocol does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScriptHash(pub [u8; 32]);

impl ScriptHash {
    /// The hash of a script.
    pub fn of(script_pubkey: &[u8]) -> Self {
        Self(assay_hash::sha256(script_pubkey))
    }
}

impl fmt::Display for ScriptHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Txid(self.0).fmt(f)
    }
}

impl fmt::Debug for ScriptHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptHash({self})")
    }
}

impl FromStr for ScriptHash {
    type Err = IdParseError;

    fn from_str(text: &str) -> Result<Self, IdParseError> {
        text.parse::<Txid>().map(|id| Self(id.0))
    }
}

/// A confirmed transaction that pays to a script or spends from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Height of its block.
    pub height: u32,
    /// The transaction.
    pub txid: Txid,
}

/// A confirmed output that no confirmed transaction spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unspent {
    /// Height of its block.
    pub height: u32,
    /// The transaction that made it.
    pub txid: Txid,
    /// Its index there.
    pub vout: u32,
    /// Satoshi.
    pub value: u64,
}

/// Where a confirmed transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxPosition {
    /// Height of its block.
    pub height: u32,
    /// Hash of its block.
    pub block: BlockHash,
    /// Its index in the block.
    pub index: u32,
    /// Offset of its first byte in the serialised block.
    pub offset: u32,
    /// Its length in bytes.
    pub length: u32,
}

/// The confirmed input that spends an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spender {
    /// Height of its block.
    pub height: u32,
    /// The transaction.
    pub txid: Txid,
    /// Index of the input.
    pub vin: u32,
}

/// The transactions of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTxs {
    /// Hash of the block.
    pub hash: BlockHash,
    /// Its txids, in order.
    pub txids: Vec<Txid>,
}

/// How much one answer may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries that an answer may have at most: transactions of a history, outputs of an unspent list.
    pub entries_max: usize,
}

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The answer would have too many entries.
    #[error("history too large: more than {max} entries")]
    TooLarge {
        /// The limit.
        max: usize,
    },
    /// A view that reads at once ([`super::View::at_once`]) would have had to wait, or to read much.
    #[error("the answer takes longer than at once")]
    NotAtOnce,
    /// The chain was reorganised meanwhile; ask again with a new view.
    #[error("the chain was reorganised meanwhile")]
    Reorganised,
    /// A file of the index cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file of the index is damaged.
    #[error("{} is damaged at {offset}: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// The node behind the index failed.
    #[error(transparent)]
    Chain(#[from] crate::chain::ChainError),
}
