//! Load generator for Electrum servers: many clients on one thread, latencies, and verified responses.
//!
//! A single event loop over non-blocking sockets serves all honest clients, so a thousand clients need a fraction of one core;
//! hostile clients have a loop of their own. With a rate, latency starts when a request is due, not when it could be sent: a
//! stalled server cannot hide the requests that it delayed.

mod check;
mod client;
mod context;
mod dataset;
mod disconnect_storm;
mod feeder;
mod hostile;
mod link;
mod memory;
mod mix;
mod pass;
mod protocol;
mod recorder;
mod results;
pub(crate) mod source;
mod text;
mod timeline;
mod tls;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use self::dataset::Dataset;
use self::pass::Pass;
use crate::chain::{Chain, ChainError};
use crate::machine;
use crate::process::rpc::RpcError;

pub use self::disconnect_storm::{LeavingOptions, LeavingReport, run as run_leaving};
pub use self::feeder::FeedOptions;
pub use self::hostile::Attack;
pub use self::mix::Mix;
pub use self::results::{
    Checks, FedBlock, HostileRatio, HostileReport, LOAD_SCHEMA, Latency, LoadReport, MethodFigures,
    PassReport, PhaseFigures, StartReport,
};
pub use self::timeline::{Expected, ExpectedCoin, ExpectedScript, ExpectedTx};

/// Open files besides the sockets.
const FILES_BESIDE: u64 = 64;

#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// `host:port` of the server.
    pub address: String,
    /// Use TLS; any certificate is accepted.
    pub tls: bool,
    /// Clients, including hostile ones.
    pub clients: usize,
    pub mix: Mix,
    /// Duration of each phase.
    pub seconds: Duration,
    /// Subscriptions of each client of the mix `subscribe`.
    pub subscriptions: usize,
    /// Requests per second of all honest clients together; without it each client sends its next request after a response.
    pub rate: Option<f64>,
    /// Requests in flight per client without a rate.
    pub depth: usize,
    /// Fraction of hostile clients, 0 to below 1.
    pub hostile: f64,
    /// Attacks; empty for all.
    pub attacks: Vec<Attack>,
    /// All clients connect from the system's default address.
    pub one_address: bool,
    /// Pairs of passes with hostile clients.
    pub pairs: usize,
    /// Seed of all choices.
    pub seed: u64,
    /// Chain directory that the server's node follows.
    pub chain_dir: Option<PathBuf>,
    /// SHA-256 of further scripts to query, whose responses are unverifiable.
    pub scripts: Vec<[u8; 32]>,
    /// Submits further blocks of the chain directory during the run.
    pub feed: Option<FeedOptions>,
    /// The server's process; enables memory and CPU figures.
    pub server_pid: Option<u32>,
    /// `host:port` of the server's metrics; enables memory figures.
    pub server_metrics: Option<String>,
    /// Version of Assay for the report.
    pub assay_version: String,
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("{address} is no address of a server")]
    Address {
        address: String,
        /// Error of the resolver, if any.
        source: io::Error,
    },
    /// The options contradict each other.
    #[error("{what}")]
    Options {
        /// Violated rule.
        what: &'static str,
    },
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// A system call failed.
    #[error("the system denies sockets or events")]
    System { source: io::Error },
    /// The limit of open files is too low.
    #[error("{needed} open files are needed and {limit} allowed: raise the limit (ulimit -n)")]
    Files {
        /// Required number.
        needed: u64,
        /// Limit of the system.
        limit: u64,
    },
    #[error("TLS cannot be set up")]
    Tls { source: rustls::Error },
    /// The clients did not become ready.
    #[error("{ready} of {of} clients were ready after {seconds} s; among the errors: {errors}")]
    NotReady {
        /// Number of ready clients.
        ready: usize,
        of: usize,
        /// Time limit.
        seconds: u64,
        errors: String,
    },
    #[error("the node that blocks are submitted to")]
    Feed { source: RpcError },
    /// The node rejected a block.
    #[error("the node rejected block {height}: {reason}")]
    Refused {
        height: u32,
        /// Reject reason.
        reason: String,
    },
    /// No block is left to submit.
    #[error("the node is at height {height}, and the chain directory has no more blocks")]
    NoMoreBlocks { height: u32 },
    #[error("a thread of the generator panicked")]
    Panic,
    #[error("stopped on request")]
    Stopped,
}

/// Puts load on a server and reports the results. `expected` describes the chain of `chain_dir`.
///
/// # Errors
/// On invalid options, when the server cannot be reached, the chain cannot be read, or the node rejects a block.
pub fn run(
    options: &LoadOptions,
    expected: Option<&dyn Expected>,
    stop: &AtomicBool,
) -> Result<LoadReport, LoadError> {
    check_options(options)?;
    let address = resolve(&options.address)?;
    raise_file_limit(options.clients as u64 + FILES_BESIDE)?;
    let chain = options.chain_dir.as_deref().map(Chain::open).transpose()?;
    let dataset = Dataset::new(expected, chain.as_ref(), &options.scripts, options.seed)?;
    if options.mix == Mix::Heavy && dataset.heavy.is_empty() {
        return Err(LoadError::Options {
            what: "the mix heavy needs the scripts of a chain directory",
        });
    }
    let tls = if options.tls {
        Some(tls::trusting().map_err(|source| LoadError::Tls { source })?)
    } else {
        None
    };
    let hostile = (options.clients as f64 * options.hostile).round() as usize;
    let honest = options.clients - hostile;
    let (mut passes, mut software, mut protocol) = (Vec::new(), String::new(), String::new());
    for (name, hostile) in plan_passes(hostile, options.pairs) {
        let node_height = options.feed.as_ref().map(feeder::node_height).transpose()?;
        if let (Some(height), Some(chain)) = (node_height, &chain)
            && height >= chain.tip.height
        {
            return Err(LoadError::NoMoreBlocks { height });
        }
        let pass = Pass {
            name,
            options,
            dataset: &dataset,
            chain: chain.as_ref(),
            address,
            tls: tls.clone(),
            honest,
            hostile,
            node_height,
            stop,
        };
        let report;
        (report, software, protocol) = pass.run()?;
        passes.push(report);
    }
    Ok(LoadReport {
        schema: LOAD_SCHEMA,
        assay_version: options.assay_version.clone(),
        machine: machine::record(Path::new(".")),
        address: options.address.clone(),
        tls: options.tls,
        software,
        protocol,
        mix: options.mix,
        clients: options.clients,
        subscriptions: if options.mix == Mix::Subscribe { options.subscriptions } else { 0 },
        rate: options.rate,
        depth: options.depth,
        seed: options.seed,
        chain: chain.as_ref().map(|chain| {
            let header = &chain.header;
            format!("{}, scale {}, seed {}", header.recipe, header.scale, header.seed)
        }),
        hostile_ratio: hostile_ratio(&passes),
        notes: notes(options, &passes, expected.is_some()),
        passes,
    })
}

fn check_options(options: &LoadOptions) -> Result<(), LoadError> {
    let checks = [
        (options.clients > 0, "give at least one client"),
        ((0.0..1.0).contains(&options.hostile), "the hostile share is from 0 to below 1"),
        (
            (options.clients as f64 * options.hostile).round() < options.clients as f64,
            "at least one client must behave",
        ),
        (options.depth > 0, "give a depth of at least one"),
        (options.pairs > 0, "give at least one pair of passes"),
        (
            options.rate.is_none_or(|rate| rate > 0.0 && rate <= 1e6),
            "a rate is above 0, at most a million",
        ),
        (
            options.mix != Mix::Subscribe || options.subscriptions > 0,
            "give at least one subscription",
        ),
        (
            options.feed.is_none() || options.chain_dir.is_some(),
            "blocks are fed from a chain directory: give one",
        ),
    ];
    match checks.into_iter().find(|(is_fine, _)| !is_fine) {
        Some((_, what)) => Err(LoadError::Options { what }),
        None => Ok(()),
    }
}

fn resolve(address: &str) -> Result<SocketAddr, LoadError> {
    let wrong = |source| LoadError::Address { address: address.to_owned(), source };
    let mut found = address.to_socket_addrs().map_err(wrong)?;
    found.next().ok_or_else(|| wrong(io::ErrorKind::AddrNotAvailable.into()))
}

/// Raises the limit of open files: the soft limit is often 1,024, the hard one far above.
fn raise_file_limit(needed: u64) -> Result<(), LoadError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let is_enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if is_enough(limit.current) {
        return Ok(());
    }
    let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
    if is_enough(limit.maximum) && setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    Err(LoadError::Files { needed, limit: limit.maximum.or(limit.current).unwrap_or(0) })
}

/// Names of the passes with their number of hostile clients. The order alternates between pairs.
fn plan_passes(hostile: usize, pairs: usize) -> Vec<(&'static str, usize)> {
    if hostile == 0 {
        return vec![("all", 0)];
    }
    let (quiet, noisy) = (("quiet", 0), ("hostile", hostile));
    (0..pairs)
        .flat_map(|pair| if pair % 2 == 0 { [quiet, noisy] } else { [noisy, quiet] })
        .collect()
}

fn hostile_ratio(passes: &[PassReport]) -> Option<HostileRatio> {
    let of_pair = |pair: &[PassReport]| -> Option<[f64; 3]> {
        let quiet = pair.iter().find(|pass| pass.hostile == 0)?.idle.latency?;
        let noisy = pair.iter().find(|pass| pass.hostile > 0)?.idle.latency?;
        let ratio = |of: fn(&Latency) -> f64| of(&noisy) / of(&quiet).max(1e-9);
        Some([ratio(|l| l.p50_ms), ratio(|l| l.p95_ms), ratio(|l| l.p99_ms)])
    };
    let ratios: Vec<[f64; 3]> = passes.chunks(2).filter_map(of_pair).collect();
    let middle = |index: usize| {
        assay_report::stats::median(&ratios.iter().map(|ratio| ratio[index]).collect::<Vec<f64>>())
    };
    (!ratios.is_empty()).then(|| HostileRatio {
        pairs: ratios.len(),
        p50: middle(0),
        p95: middle(1),
        p99: middle(2),
    })
}

fn notes(options: &LoadOptions, passes: &[PassReport], is_known: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if cfg!(debug_assertions) {
        notes.push("this is a debug build".to_owned());
    }
    if options.rate.is_none() {
        notes.push(
            "without a rate each client waits for its answers, so that a stall of the server delays the questions behind it \
             without showing in their latency; --rate shows it"
                .to_owned(),
        );
    }
    if options.rate.is_some() && !passes.iter().all(|pass| pass.is_first) {
        notes.push(
            "the system gives the generator no real-time priority: how long its thread waits for a core is part of the latencies"
                .to_owned(),
        );
    }
    if !is_known {
        notes.push(
            "the scripts of the chain are not known: answers about used ones were not checked"
                .to_owned(),
        );
    }
    let is_watched = options.server_pid.is_some() || options.server_metrics.is_some();
    if is_watched && passes.iter().all(|pass| pass.server_rss_peak_bytes.is_none()) {
        notes.push("the server's memory could not be read".to_owned());
    }
    let late = passes.iter().filter_map(|pass| pass.lag).any(|lag| lag.p99_ms > 5.0);
    if late {
        notes.push("the generator was late: its own delay is part of the latencies".to_owned());
    }
    notes
}

/// Gives the calling thread and its future children priority over all others; returns false if the system denies it.
///
/// Server and generator share the cores of one machine. The server is measured, so the thread that sends requests and reads the
/// clock gets real-time priority.
fn run_first() -> bool {
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).is_ok()
}

/// Lets the calling thread run only on idle cores: hostile clients on other machines would use no core of the server either.
fn run_last() {
    #[cfg(target_os = "linux")]
    let policy = NormalThreadSchedulePolicy::Idle;
    #[cfg(not(target_os = "linux"))]
    let policy = NormalThreadSchedulePolicy::Other;
    let policy = ThreadSchedulePolicy::Normal(policy);
    // On failure the hostile clients only add more load.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy);
}
