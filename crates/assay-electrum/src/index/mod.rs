//! The index: what has happened to every script, transaction and output of the active chain.
//!
//! Blocks come in with the coins that they spent, so nothing is ever looked up to index them. Each becomes sorted rows in
//! memory; when these are many they are written as one sorted run, and runs of like size are merged later. A row says which
//! transaction it is about, so taking blocks back means to leave out all rows from a transaction on, and no undo data is
//! kept. The whole index is a function of the chain: after a crash it is what its manifest says, and the blocks above are
//! indexed again. Byte layouts: `docs/formats.md`; why this and no database: `docs/adr/0010-index-of-sorted-runs.md`.

mod cache;
mod files;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod manifest;
mod memory;
mod merge;
mod page;
mod prepare;
mod reader;
mod row;
mod run;
mod store;
mod types;
mod view;

pub use manifest::OpenError;
pub(crate) use prepare::is_unspendable;
pub use prepare::{BlockRows, Counts, PrepareError};
pub use store::{Index, IndexConfig, Scope, UpdateError, Usage};
pub use types::{
    BlockTxs, HistoryEntry, Limits, QueryError, ScriptHash, Spender, TxPosition, Unspent,
};
pub use view::View;

#[cfg(test)]
pub(crate) mod made;
#[cfg(test)]
mod tests;
