//! Errors of start and shutdown.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use assay_engine::{EngineError, ImportError, LayoutError, OpenError};

use crate::http::{AuthError, BindError, unable_to_bind};
use crate::log::LogError;

/// Failure to start or to stop cleanly.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error("an index needs all blocks: it cannot be kept where old ones are removed (prune)")]
    PruneWithIndex,
    #[error("cannot make the folder {}: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot lock {}: another node is probably running on it", path.display())]
    AlreadyRunning { path: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    Marker {
        /// Lock file or PID file.
        path: PathBuf,
        source: io::Error,
    },
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("cannot set up the RPC server's threads: {0}")]
    Runtime(io::Error),
    #[error(
        "refusing to serve RPC on {address}, which other machines can reach, unless the addresses allowed to connect are given"
    )]
    Exposed { address: SocketAddr },
    #[error("{fault}")]
    Whitelist { fault: String },
    #[error("Cannot resolve -externalip address: '{text}'")]
    ExternalAddress { text: String },
    #[error(
        "refusing to serve peers on {address}, which other machines can reach, unless that is asked for"
    )]
    P2pExposed { address: SocketAddr },
    #[error("{}", unable_to_bind(*address, source))]
    P2pBind { address: SocketAddr, source: io::Error },
    /// Duplicate listening address: with and without permissions, or also for Tor.
    #[error(
        "Duplicate binding configuration for address {address}. Please check your -bind, -bind=...=onion and -whitebind settings."
    )]
    P2pBindTwice { address: SocketAddr },
    #[error("metrics are served on loopback only, not on {address}")]
    MetricsExposed { address: SocketAddr },
    #[error("cannot listen on {address} for metrics: {source}")]
    MetricsBind { address: SocketAddr, source: io::Error },
    /// `peers.dat` is damaged; the reason uses Core's wording.
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
    #[error("A fatal internal error occurred, see {log} for details: {cause}")]
    Fatal {
        log: String,
        /// Cause in Core's wording.
        cause: String,
    },
    #[error("cannot open an index: {0}")]
    Records(#[from] assay_electrum::RecordsError),
    /// An index lacks blocks that were pruned; Core's wording (`init.cpp`).
    #[error(
        "{name} best block of the index goes beyond pruned data (including undo data). Please disable the index or reindex \
         (which will download the whole blockchain again)\nError: A fatal internal error occurred, see debug.log for details: \
         Failed to start indexes, shutting down…"
    )]
    IndexBeyondPruned { name: String },
    #[error("could not write everything out: {0}")]
    Flush(#[from] EngineError),
}
