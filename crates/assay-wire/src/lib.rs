//! Transactions, blocks, headers and P2P messages as views over their bytes.
//!
//! A block is parsed in one pass without copies: the parser walks the bytes once, checks every length against the remaining
//! bytes, and records the offset of each transaction, input, output and witness. Everything else ([`Tx`], [`TxIn`], [`TxOut`],
//! [`Witness`]) is a `Copy` view that decodes fields on demand.
//!
//! ```
//! use assay_wire::{Encoding, Transaction};
//! // One input without script, one output of 1 satoshi with an empty script.
//! let mut raw = vec![2, 0, 0, 0, 1];
//! raw.extend([7u8; 32]);
//! raw.extend([0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1]);
//! raw.extend(1i64.to_le_bytes());
//! raw.extend([0, 0, 0, 0, 0]);
//! let tx = Transaction::parse(raw, Encoding::Segwit)?;
//! assert_eq!(tx.view().output(0).value, 1);
//! # Ok::<(), assay_wire::ParseError>(())
//! ```
//!
//! Deliberately absent: consensus rules (amounts in a view may be invalid), and any I/O.

#![warn(missing_docs)]

mod block;
mod build;
mod coin;
pub mod encode;
mod error;
pub mod filter;
mod header;
mod id;
mod layout;
pub mod p2p;
mod reader;
mod script;
mod transaction;
mod witness;

pub use block::{Block, first_tx};
pub use build::TxBuilder;
pub use coin::Coin;
pub use error::{ParseError, ParseErrorKind};
pub use header::Header;
pub use id::{BlockHash, IdParseError, OutPoint, Txid, Wtxid};
pub use reader::Reader;
pub use script::Script;
pub use transaction::{Transaction, Tx, TxIn, TxOut};
pub use witness::{Witness, WitnessItems};

/// Serialisation of transactions on a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Bitcoin since BIP144: an empty input vector followed by a non-zero flag announces witnesses.
    Segwit,
    /// The original format, still used by Bitcoin Cash: an empty input vector has no special meaning.
    Legacy,
}
