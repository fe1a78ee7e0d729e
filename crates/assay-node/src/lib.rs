//! Connects the engine to users over JSON-RPC and the Electrum protocol, and serves its blocks to peers.
//!
//! A node is an [`Engine`](assay_engine::Engine) in a data directory, with an HTTP server in front that speaks JSON-RPC as
//! Bitcoin Core does: the same methods, fields, error codes and status codes, so that tools made for
//! Bitcoin Core work against it.
//!
//! ```no_run
//! use assay_node::NodeConfig;
//!
//! let mut config = NodeConfig::new("regtest", "data")?;
//! config.rpc.bind = vec!["127.0.0.1:0".parse()?];
//! assay_node::run(&config)?; // returns after SIGTERM, SIGINT, or the RPC method `stop`
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`jsonrpc`] is the protocol and [`http`] the transport; neither knows the methods. Deliberately absent:
//! a wallet, TLS for JSON-RPC (put a proxy in front), and configuration files. The Electrum server, which has
//! TLS, is [`assay_electrum`]; here it gets its chain.

pub mod bip324;
mod config;
mod electrum;
mod error;
pub mod http;
mod indexes;
pub mod jsonrpc;
mod lock;
mod log;
mod metrics;
mod node;
mod notify;
mod p2p;
mod partial_merkle;
mod rpc;
mod zmq;

pub use assay_wire::p2p::NetworkKind;
pub use config::{IndexOptions, NodeConfig, Notify, RpcConfig, UnknownChain};
pub use electrum::EngineChain;
pub use error::NodeError;
pub use log::{ALL as LOG_ALL, CATEGORIES as LOG_CATEGORIES, LogConfig, LogError, LogLine};
pub use node::{Node, PeerCount, StopHandle, run, run_with};
pub use p2p::{
    BlockArchive, P2pConfig, P2pTimeouts, Proxies, Resolve, ServeConfig, SystemResolver,
    serve_blocks,
};
/// Doors to private parsers, for the targets in `fuzz/`.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::p2p::fuzzing::*;
    pub use crate::rpc::fuzzing::*;
}
/// Public keys as snapshots of the UTXO set keep them, by libsecp256k1.
pub use rpc::SNAPSHOT_KEYS;
pub use tracing::level_filters::LevelFilter as LogLevel;
pub use zmq::{HIGH_WATER_MARK_DEFAULT, Publication, Topic};
