//! Result types of index queries.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use assay_wire::{BlockHash, IdParseError, Txid};

/// SHA-256 of an output script, in hash output order; printed and parsed reversed, as in the Electrum protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScriptHash(pub [u8; 32]);

impl ScriptHash {
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
    pub height: u32,
    pub txid: Txid,
}

/// A confirmed output that no confirmed transaction spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unspent {
    pub height: u32,
    pub txid: Txid,
    pub vout: u32,
    /// In satoshi.
    pub value: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxPosition {
    pub height: u32,
    pub block: BlockHash,
    pub index: u32,
    /// Offset of the first byte in the serialised block.
    pub offset: u32,
    /// In bytes.
    pub length: u32,
}

/// The confirmed input that spends an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spender {
    pub height: u32,
    pub txid: Txid,
    pub vin: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTxs {
    pub hash: BlockHash,
    /// In block order.
    pub txids: Vec<Txid>,
}

#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error("history too large: more than {max} entries")]
    TooLarge { max: usize },
    /// A non-blocking view ([`super::View::at_once`]) would have had to wait or read too much.
    #[error("the answer takes longer than at once")]
    NotAtOnce,
    /// A reorg happened meanwhile; retry with a new view.
    #[error("the chain was reorganised meanwhile")]
    Reorganised,
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{} is damaged at {offset}: {what}", path.display())]
    Damaged { path: PathBuf, offset: u64, what: &'static str },
}
