//! Black-box client of Electrum servers: connection, tip watch, and comparison of responses with the chain.
//!
//! The protocol is one JSON object per line over TCP. Assay's server is queried like any other.

pub mod check;
mod client;
pub mod expected;
pub(crate) mod watch;

pub use self::client::{Client, ElectrumError, HeaderTip, Reply, ServerName};
