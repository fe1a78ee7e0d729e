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
mod memory;
mod mix;
mod pass;
mod protocol;
mod recorder;
mod report;
mod tls;

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use assay_ledger::scripts::ScriptLine;
use assay_report::record::Record;
use thread_priority::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use self::dataset::Dataset;
use self::feeder::FeedLog;
use self::pass::Pass;
use self::recorder::Place;
use self::report::Sums;
use crate::chain::Chain;
use crate::machine::Software;
use crate::swarm::{Server, source};

pub use self::disconnect_storm::{LeavingOptions, run as run_leaving};
pub use self::feeder::FeedOptions;
pub use self::hostile::Attack;
pub use self::mix::Mix;

/// Expected state of the scripts of a chain.
pub type Scripts<'a> = Box<dyn Iterator<Item = ScriptLine> + 'a>;

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
    pub seed: u64,
    /// Chain directory that the server's node follows.
    pub chain_dir: Option<PathBuf>,
    /// Hashes of further scripts to query, as in the protocol; their responses are unverifiable.
    pub scripts: Vec<String>,
    /// Submits further blocks of the chain directory during the run.
    pub feed: Option<FeedOptions>,
    /// The server's process; enables memory and CPU figures.
    pub server_pid: Option<u32>,
    /// `host:port` of the server's metrics; enables memory figures.
    pub server_metrics: Option<String>,
    pub software: Software,
    /// Command line that repeats the run.
    pub rerun: String,
}

const SYSTEM: &str = "the system denies sockets or events";

/// Puts load on a server and reports the results. `expected` are the scripts of the chain in `chain_dir`.
///
/// # Errors
/// On invalid options, when the server cannot be reached, the chain cannot be read, or the node rejects a block.
pub fn run(
    options: &LoadOptions,
    expected: Option<Scripts<'_>>,
    stop: &AtomicBool,
) -> anyhow::Result<Record> {
    check_options(options)?;
    let address = resolve(&options.address)?;
    raise_file_limit(options.clients as u64 + FILES_BESIDE)?;
    let chain = options.chain_dir.as_deref().map(Chain::open).transpose()?;
    let is_known = expected.is_some();
    let dataset = Dataset::new(expected, chain.as_ref(), &options.scripts, options.seed)?;
    ensure!(
        options.mix != Mix::Heavy || !dataset.heavy.is_empty(),
        "the mix heavy needs the scripts of a chain directory"
    );
    let tls = options.tls.then(tls::trusting).transpose();
    let tls = tls.context("TLS cannot be set up")?;
    let has_sources = !options.one_address && source::is_possible(address);
    let server = Server { address, tls, has_sources };
    let hostile = (options.clients as f64 * options.hostile).round() as usize;
    let honest = options.clients - hostile;
    let (mut record, mut sums) = (report::new(options, chain.as_ref()), Sums::default());
    for (pass, round, hostile) in plan_passes(hostile, options.pairs) {
        let node_height = options.feed.as_ref().map(feeder::node_height).transpose()?;
        if let (Some(height), Some(chain)) = (node_height, &chain)
            && height >= chain.tip.height
        {
            bail!("the node is at height {height}, and the chain directory has no more blocks");
        }
        let pass = Pass {
            place: Place { target: &options.address, pass, round },
            options,
            dataset: &dataset,
            chain: chain.as_ref(),
            server: &server,
            honest,
            hostile,
            log: node_height.map(FeedLog::at),
            stop,
        };
        pass.run()?.add_to(&mut record, &mut sums);
    }
    report::finish(&mut record, options, is_known, sums);
    Ok(record)
}

fn check_options(options: &LoadOptions) -> anyhow::Result<()> {
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
        Some((_, rule)) => bail!(rule),
        None => Ok(()),
    }
}

fn resolve(address: &str) -> anyhow::Result<SocketAddr> {
    let found = address.to_socket_addrs().map(|mut found| found.next());
    let wrong = || format!("{address} is no address of a server");
    found.with_context(wrong)?.with_context(wrong)
}

/// Raises the limit of open files: the soft limit is often 1,024, the hard one far above.
fn raise_file_limit(needed: u64) -> anyhow::Result<()> {
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
    let limit = limit.maximum.or(limit.current).unwrap_or(0);
    bail!("{needed} open files are needed and {limit} allowed: raise the limit (ulimit -n)")
}

/// Names of the passes, their pairs, and their numbers of hostile clients. The order alternates between pairs.
fn plan_passes(hostile: usize, pairs: usize) -> Vec<(&'static str, Option<u32>, usize)> {
    if hostile == 0 {
        return vec![("", None, 0)];
    }
    let pair = |pair: u32| {
        let (quiet, noisy) = (("quiet", Some(pair), 0), ("hostile", Some(pair), hostile));
        if pair.is_multiple_of(2) { [quiet, noisy] } else { [noisy, quiet] }
    };
    (0..pairs as u32).flat_map(pair).collect()
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
