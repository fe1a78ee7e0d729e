//! Script hash index and Electrum protocol server.
//!
//! Modules:
//!
//! - [`address`]: IP address ranges, and the grouping of addresses by client;
//! - [`index`]: an [`Index`] on disk of script hashes, txids, spenders and headers, read through immutable [`View`]s;
//! - [`filters`]: an index of basic block filters, one record per block;
//! - [`chain`]: the interface to the node, [`Chain`];
//! - [`follow`]: syncs indexes with the active chain;
//! - [`mempool`]: unconfirmed transactions by script and outpoint;
//! - [`places`]: connection slots, limited by address;
//! - [`server`]: the protocol over TCP and TLS;
//! - [`prometheus`]: metrics in text format, and their HTTP server.
//!
//! Deliberately absent: validation. The [`Chain`] must supply valid blocks only.
#![expect(
    clippy::missing_errors_doc,
    reason = "the error types list the causes; a section says what is left behind"
)]

pub mod address;
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
pub use chain::Chain;
pub use filters::{FilterIndex, RecordsError};
pub use index::{Index, ScriptHash, View};
pub use server::Server;
