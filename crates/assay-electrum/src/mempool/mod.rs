//! The mempool, indexed by script and outpoint for Electrum queries.
//!
//! [`Mempool`] applies [`crate::chain::MempoolChanges`] through a [`Batch`] and serves queries from hash maps. No query walks
//! ancestors or descendants, so a chain of 44,000 unconfirmed transactions costs the same as 44,000 independent ones.
//! Transactions are shared with the node, not copied.
//!
//! Changes are staged in small steps and become visible at once: every transaction has the *epoch* of its arrival and of its
//! removal, readers see the transactions of the current epoch, and [`Mempool::turn`] advances it. A lock around a [`Mempool`] is
//! therefore never held for long, even when a block confirms many transactions.

mod fees;
mod pool;
mod read;
#[cfg(test)]
mod tests;

pub use fees::FeeHistogram;
pub use pool::{Affected, Batch, Mempool};
pub use read::{Created, RecentTx, ScriptMempool, TooMany, Unconfirmed, Unordered};
