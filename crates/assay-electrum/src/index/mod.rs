//! The index: history of every script, transaction and output of the active chain.
//!
//! Blocks arrive with their spent coins, so indexing needs no lookups. Each block becomes sorted rows in memory; when enough have
//! accumulated they are written as one sorted run, and runs of similar size are merged later. Each row contains its transaction
//! number, so disconnecting blocks drops all rows from a transaction on, and no undo data is kept. The whole index is a function
//! of the chain: after a crash the manifest defines its state, and the blocks above are indexed again. Byte layouts:
//! `docs/formats.md`; rationale: `docs/adr/0010-index-of-sorted-runs.md`.

mod cache;
mod files;
#[cfg(any(fuzzing, test))]
pub mod fuzzing;
mod manifest;
mod memory;
mod page;
mod prepare;
mod row;
mod run;
mod store;
mod types;
mod view;

pub(crate) use files::{RecordFile, SUM_BYTES, record_sum};
pub use manifest::OpenError;
pub(crate) use prepare::is_unspendable;
pub use prepare::{BlockRows, Counts, PrepareError, Scope};
pub use store::{Index, IndexConfig, UpdateError, Usage};
pub use types::{BlockTxs, HistoryEntry, QueryError, ScriptHash, Spender, TxPosition, Unspent};
pub use view::View;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod tests;
