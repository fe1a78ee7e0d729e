//! The index: what has happened to every script, transaction and output of the active chain.

mod types;
mod view;

pub use types::{
    BlockTxs, HistoryEntry, Limits, QueryError, ScriptHash, Spender, TxPosition, Unspent,
};
pub use view::View;
