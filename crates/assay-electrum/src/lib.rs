//! Indexes script hashes and speaks the Electrum protocol.
//!
//! Its parts:
//!
//! - [`address`]: ranges of internet addresses, and which of them count as one client;
//! - [`index`]: an [`Index`] on disk of script hashes, txids, spenders and headers, read through unchanging [`View`]s;
//! - [`filters`]: an index of basic block filters, a record for each block;
//! - [`chain`]: what index and server ask of the node behind them, the [`Chain`];
//! - [`follow`]: brings the index to where the chain is, and keeps it there;
//! - [`mempool`]: unconfirmed transactions by script and outpoint;
//! - [`places`]: places for connections, shared by address;
//! - [`server`]: the protocol over TCP and TLS;
//! - [`prometheus`]: metrics as text, and the HTTP server for them.
//!
//! Deliberately absent: validation. What is indexed has been found valid by whoever implements [`Chain`].

pub mod address;
mod by_height;
pub mod chain;
pub mod filters;
pub mod follow;
pub mod index;
pub mod mempool;
pub mod places;
pub mod prometheus;
pub mod server;
#[cfg(test)]
mod testing;

pub use assay_store::io::{Io, RealIo};
pub use by_height::RecordsError;
pub use chain::Chain;
pub use filters::FilterIndex;
pub use index::{Index, ScriptHash, View};
pub use server::Server;
