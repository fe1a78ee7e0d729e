//! Sends a forged chain to nodes that run already: by RPC, or as their peer.
//!
//! Each node has a thread of its own, which goes at that node's pace. Where it begins follows from the blocks that the node has,
//! so an emission that was ended goes on with the next block.

mod live;
mod report;
mod session;
mod target;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use assay_report::atomic_file::{self, WriteError};

use crate::chain::{Chain, ChainError};
use crate::feed::FeedError;
use crate::feed::PeerError;
use crate::machine;
use crate::machine::clock::Clock;
use crate::plan::FeedPlan;
use crate::process::rpc::RpcError;

use self::live::Live;
pub use self::report::{EmitReport, TargetReport};
use self::session::Session;
pub use self::target::{EmitTarget, EmitTargetError, Login};

/// What to send, and how.
#[derive(Debug, Clone)]
pub struct EmitOptions {
    /// Folder of the chain.
    pub chain: PathBuf,
    pub targets: Vec<EmitTarget>,
    /// Share of each block's transactions that are sent beforehand, and everything else of a plan's `[feed]`; how blocks go to a
    /// node is said by its target.
    pub feed: FeedPlan,
    /// Whether nodes that have blocks of the chain are given the rest.
    pub resume: bool,
    /// The last block to send; the chain's last if not given.
    pub until: Option<u32>,
    /// Folder of `emit.json`; nothing is written if not given.
    pub out_dir: Option<PathBuf>,
    /// Version of the program that calls.
    pub assay_version: String,
    /// The command line that does it again.
    pub rerun: String,
}

#[derive(Debug, thiserror::Error)]
pub enum EmitError {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Write(#[from] WriteError),
    /// RPC does not answer.
    #[error("{address} as RPC")]
    Rpc { address: std::net::SocketAddr, source: RpcError },
    #[error("cannot read the cookie {}: {source}", path.display())]
    Cookie { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Peer(PeerError),
    /// A link cannot be made.
    #[error("cannot make a link on loopback: {source}")]
    Link { source: std::io::Error },
    /// The node is on another chain.
    #[error("its block at height {height} is {found}, not {expected}: it is on another chain")]
    OtherChain {
        height: u32,
        found: String,
        /// Ours.
        expected: String,
    },
    /// The node has blocks already.
    #[error("it has {height} blocks of this chain already; give --resume to send the rest")]
    HasBlocks { height: u32 },
    #[error(transparent)]
    Feed(#[from] FeedError),
}

/// Sends to all nodes at once; `stop` ends it after the block that is on its way.
///
/// # Errors
/// When the chain cannot be read or the report not be written. What becomes of each node stands in the report.
pub fn run(options: &EmitOptions, stop: &Arc<AtomicBool>) -> Result<EmitReport, EmitError> {
    let chain = Chain::open(&options.chain)?;
    let clock = Clock::start();
    let until = options.until.unwrap_or(chain.tip.height).min(chain.tip.height);
    let lives: Vec<Live> = options.targets.iter().map(|target| Live::new(&target.name)).collect();
    let is_done = AtomicBool::new(false);
    let targets = thread::scope(|scope| {
        let show = scope.spawn(|| live::show(&lives, until, &is_done));
        let sessions: Vec<_> = options
            .targets
            .iter()
            .zip(&lives)
            .map(|(target, live)| {
                let session = Session { options, chain: &chain, target, live, stop, clock, until };
                scope.spawn(move || session.report())
            })
            .collect();
        let reports = sessions
            .into_iter()
            .map(|session| session.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        is_done.store(true, Ordering::Relaxed);
        let _ = show.join();
        reports
    });
    let place = options.out_dir.clone().unwrap_or_else(std::env::temp_dir);
    let report = EmitReport::new(options, &chain, &machine::record(&place), targets);
    if let Some(out_dir) = &options.out_dir {
        atomic_file::create_folder(out_dir)?;
        report.write(out_dir)?;
    }
    Ok(report)
}
