//! Sends a forged chain to running nodes, by RPC or as a peer.
//!
//! Each node has its own thread and pace. Emission starts after the blocks that the node has, so an interrupted emission can
//! resume.

mod live;
mod report;
mod session;
mod target;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use assay_report::atomic_file;
use assay_report::record::Record;

use crate::chain::Chain;
use crate::machine::Software;
use crate::machine::clock::Clock;
use crate::plan::FeedPlan;
use crate::progress::Reporter;

use self::live::Live;
use self::report::TargetReport;
use self::session::Session;
pub use self::target::{EmitTarget, Login};

#[derive(Debug, Clone)]
pub struct EmitOptions {
    pub chain: PathBuf,
    pub targets: Vec<EmitTarget>,
    /// Pre-relayed share of each block's transactions, and the rest of a plan's `[feed]`; the target defines how blocks are sent.
    pub feed: FeedPlan,
    /// Continue on nodes that already have blocks of the chain.
    pub resume: bool,
    /// Last height to send; the chain's tip if not given.
    pub until: Option<u32>,
    /// Folder of `emit.json`; nothing is written if not given.
    pub out_dir: Option<PathBuf>,
    /// The calling program.
    pub software: Software,
    /// Command line that repeats the run.
    pub rerun: String,
}

/// Sends to all nodes in parallel; a stop ends it after the block in flight.
///
/// # Errors
/// When the chain cannot be read or the record cannot be written. Errors of single nodes are part of the record.
pub fn run(options: &EmitOptions, reporter: &(dyn Reporter + Sync)) -> anyhow::Result<Record> {
    let chain = Chain::open(&options.chain)?;
    let clock = Clock::start();
    let until = options.until.unwrap_or(chain.tip.height).min(chain.tip.height);
    let lives: Vec<Live> = options.targets.iter().map(|target| Live::new(&target.name)).collect();
    let is_done = AtomicBool::new(false);
    let targets = thread::scope(|scope| {
        let show = scope.spawn(|| live::show(&lives, until, reporter, &is_done));
        let sessions: Vec<_> = options
            .targets
            .iter()
            .zip(&lives)
            .map(|(target, live)| {
                let chain = &chain;
                let session = Session { options, chain, target, live, reporter, clock, until };
                scope.spawn(move || session.report())
            })
            .collect();
        let reports: Vec<TargetReport> = sessions
            .into_iter()
            .map(|session| session.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        is_done.store(true, Ordering::Relaxed);
        let _ = show.join();
        reports
    });
    let record = report::record(options, &chain, &targets);
    if let Some(out_dir) = &options.out_dir {
        atomic_file::create_folder(out_dir)?;
        record.write(&out_dir.join("emit.json"))?;
    }
    Ok(record)
}
