//! Full node: the engine with JSON-RPC, REST, ZeroMQ, Electrum and P2P interfaces.
//!
//! A node runs an [`Engine`](assay_engine::Engine) in a data directory. Its JSON-RPC has the methods, fields, error
//! codes and status codes of Bitcoin Core, so that tools for Bitcoin Core work unchanged.
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
//! [`jsonrpc`] is the protocol and [`http`] the transport; both are independent of the methods. Deliberately
//! absent: a wallet, TLS for JSON-RPC (put a proxy in front), and configuration files. [`assay_electrum`] is the
//! Electrum server, which supports TLS.

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
/// Access to private parsers for the targets in `fuzz/`.
#[cfg(fuzzing)]
pub mod fuzzing {
    pub use crate::p2p::fuzzing::*;
    pub use crate::rpc::fuzzing::*;
}
/// Public keys in UTXO snapshots, decompressed with libsecp256k1.
pub use rpc::SNAPSHOT_KEYS;
pub use tracing::level_filters::LevelFilter as LogLevel;
pub use zmq::{HIGH_WATER_MARK_DEFAULT, Publication, Topic};
