//! Indexes script hashes and speaks the Electrum protocol.
//!
//! Three parts:
//!
//! - [`index`]: an index on disk of script hashes, txids, spenders and headers, read through unchanging [`View`]s;
//! - [`chain`]: what index and server ask of the node behind them, the [`Chain`];
//! - server: the protocol over TCP and TLS.
//!
//! Deliberately absent: validation. What is indexed has been found valid by whoever implements [`Chain`].

pub mod chain;
pub mod index;

pub use chain::Chain;
pub use index::{ScriptHash, View};
