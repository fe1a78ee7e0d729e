//! Electrum servers, seen from outside: a client, the watch on their tip, and the comparison of their answers with what the
//! chain says.
//!
//! The protocol is one JSON object per line over TCP. Nothing here knows how a server works: ours is asked as any other.

pub mod check;
mod client;
pub mod expected;
pub(crate) mod watch;

pub use self::client::{Client, ElectrumError, HeaderTip, Reply, ServerName};
