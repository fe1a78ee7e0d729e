//! The mempool as the Electrum protocol asks for it: by script and by outpoint.
//!
//! [`Mempool`] is fed with [`crate::chain::MempoolChanges`] through a [`Batch`] and answers from hash maps; nothing walks over ancestors
//! or descendants, so a chain of 44,000 unconfirmed transactions costs as much as 44,000 lone ones. Transactions are shared
//! with the node, not copied.
//!
//! Changes become visible all at once although they are made in small steps: every transaction carries the *epoch* in which it
//! came and the one in which it went, readers see the transactions of the current epoch, and [`Mempool::turn`] moves on to the
//! next. A lock around a [`Mempool`] is therefore never held for long, however much a block confirms.

mod batch;
mod fees;
mod pool;
mod read;
mod slab;
#[cfg(test)]
mod tests;

pub use batch::Batch;
pub use fees::FeeHistogram;
pub use pool::{Affected, Mempool};
pub use read::{Created, RecentTx, ScriptMempool, TooMany, Unconfirmed, Unordered};
