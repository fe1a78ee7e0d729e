//! Why a node does not start, or stops badly.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use assay_engine::{EngineError, ImportError, LayoutError, OpenError};

use crate::http::{AuthError, BindError, unable_to_bind};
use crate::log::LogError;

/// Why a node could not start, or did not stop cleanly.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Old blocks are to be removed, and an index is to be kept, which needs them all.
    #[error("an index needs all blocks: it cannot be kept where old ones are removed (prune)")]
    PruneWithIndex,
    #[error("cannot make the folder {}: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot lock {}: another node is probably running on it", path.display())]
    AlreadyRunning { path: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    Marker {
        /// The lock file or the file with the process id.
        path: PathBuf,
        source: io::Error,
    },
    #[error(transparent)]
    Log(#[from] LogError),
    /// No threads for the RPC server, or no signals.
    #[error("cannot set up the RPC server's threads: {0}")]
    Runtime(io::Error),
    /// The RPC server would be reachable from other machines though nobody asked for it.
    #[error(
        "refusing to serve RPC on {address}, which other machines can reach, unless the addresses allowed to connect are given"
    )]
    Exposed { address: SocketAddr },
    /// A rule about what peers may do cannot be read.
    #[error("{fault}")]
    Whitelist { fault: String },
    /// An address of ours that was named is none.
    #[error("Cannot resolve -externalip address: '{text}'")]
    ExternalAddress { text: String },
    /// Peers on other machines could connect though nobody asked for it.
    #[error(
        "refusing to serve peers on {address}, which other machines can reach, unless that is asked for"
    )]
    P2pExposed { address: SocketAddr },
    #[error("{}", unable_to_bind(*address, source))]
    P2pBind { address: SocketAddr, source: io::Error },
    /// An address is listened on twice, with or without permissions, or for Tor as well.
    #[error(
        "Duplicate binding configuration for address {address}. Please check your -bind, -bind=...=onion and -whitebind settings."
    )]
    P2pBindTwice { address: SocketAddr },
    /// Metrics would be reachable from other machines.
    #[error("metrics are served on loopback only, not on {address}")]
    MetricsExposed { address: SocketAddr },
    #[error("cannot listen on {address} for metrics: {source}")]
    MetricsBind { address: SocketAddr, source: io::Error },
    /// The file with addresses of peers is damaged; the reason is in Core's words.
    #[error(transparent)]
    Addresses(Box<dyn std::error::Error + Send + Sync>),
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error(transparent)]
    Bind(#[from] BindError),
    #[error(
        "cannot open the chain in {}: {source}{}{}",
        path.display(),
        if source.advice().is_some() { "; " } else { "" },
        source.advice().unwrap_or("")
    )]
    Open { path: PathBuf, source: OpenError },
    #[error("cannot take blocks from files: {0}")]
    Import(#[from] ImportError),
    #[error(transparent)]
    Layout(#[from] LayoutError),
    #[error("cannot open the index: {0}")]
    Index(#[from] assay_electrum::index::OpenError),
    #[error(transparent)]
    Electrum(#[from] assay_electrum::server::StartError),
    #[error("cannot follow the chain with the index: {0}")]
    Follow(#[from] assay_electrum::follow::FollowError),
    /// The engine found itself in a state that it cannot go on from.
    #[error("A fatal internal error occurred, see {log} for details: {cause}")]
    Fatal {
        /// Name of the log.
        log: String,
        /// Why, in Core's words.
        cause: String,
    },
    #[error("cannot open an index: {0}")]
    Records(#[from] assay_electrum::RecordsError),
    /// An index lacks blocks that were removed; the words are Core's (`init.cpp`).
    #[error(
        "{name} best block of the index goes beyond pruned data (including undo data). Please disable the index or reindex \
         (which will download the whole blockchain again)\nError: A fatal internal error occurred, see debug.log for details: \
         Failed to start indexes, shutting down…"
    )]
    IndexBeyondPruned { name: String },
    #[error("could not write everything out: {0}")]
    Flush(#[from] EngineError),
}
