//! RPC methods of Bitcoin Core, as far as implemented.
//!
//! Results have Bitcoin Core's fields in its order. The help of a method lists missing features.

mod activity;
mod address;
mod addresses;
mod args;
mod bans;
mod blocks;
mod branches;
mod chain;
mod coins;
mod combine;
mod control;
mod decode;
mod deployments;
mod describe;
mod descriptor;
mod dump;
mod filters;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod generate;
mod index;
mod load;
mod lock;
mod mempool;
mod mempool_file;
mod messages;
mod method;
mod mining;
mod network;
mod orphans;
mod packages;
mod peers;
mod proof;
mod prune;
mod psbt;
mod raw;
mod relatives;
mod rest;
mod scan;
mod scan_blocks;
mod script;
mod sign;
mod sign_raw;
mod signing_data;
mod spec;
mod statistics;
mod submit;
mod table;
mod template;
mod testing;
mod transactions;
mod tx_json;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use assay_consensus::params::ChainParams;
use assay_engine::defect::{Point, point};
use assay_engine::{Engine, EngineError};
use tokio::sync::watch;

use self::args::OwnedArgs;
pub use self::dump::KEYS as SNAPSHOT_KEYS;
pub(crate) use self::index::ServedIndex;
use self::method::Call;
use self::submit::SendTransaction;
use crate::indexes::BlockIndexes;
use crate::jsonrpc::{CallContext, Code, Handler, Json, OpenReply, OpenRequest, Params, RpcError};
use crate::p2p::P2p;
use crate::zmq::Publication;

pub(crate) struct Rpc {
    params: Arc<ChainParams>,
    user_agent: String,
    /// Result fields in an older form (Core's `-deprecatedrpc`).
    deprecated: Vec<String>,
    has_rest: bool,
    /// Empty while the node starts.
    engine: OnceLock<Arc<Engine>>,
    /// Empty without an index.
    index: OnceLock<ServedIndex>,
    /// Set before the engine; absent for disabled indexes.
    block_indexes: OnceLock<BlockIndexes>,
    zmq: OnceLock<Vec<Publication>>,
    /// Empty without P2P.
    network: OnceLock<Arc<P2p>>,
    started: Instant,
    log_path: PathBuf,
    stop: watch::Sender<bool>,
    active: Mutex<Active>,
    template: Mutex<Option<template::Cached>>,
    scan: scan::Scan,
    filter_scan: scan_blocks::FilterScan,
}

#[derive(Default)]
struct Active {
    next_id: u64,
    calls: Vec<(u64, &'static str, Instant)>,
}

/// Call of a method with its arguments.
#[derive(Debug)]
pub(crate) struct Job {
    method: &'static str,
    call: Call,
    args: OwnedArgs,
}

pub(crate) struct Node<'a> {
    pub(crate) rpc: &'a Rpc,
    pub(crate) engine: &'a Engine,
    pub(crate) context: &'a CallContext,
}

impl Node<'_> {
    fn announce_local(&self) {
        if let Some(network) = self.rpc.network.get() {
            network.txs.announce_local();
        }
    }
}

impl Rpc {
    /// `stop` is set to true by the RPC method `stop`.
    pub(crate) fn new(
        params: Arc<ChainParams>,
        user_agent: String,
        log_path: PathBuf,
        stop: watch::Sender<bool>,
    ) -> Self {
        let active = Mutex::default();
        Self {
            params,
            user_agent,
            deprecated: Vec::new(),
            has_rest: false,
            engine: OnceLock::new(),
            index: OnceLock::new(),
            block_indexes: OnceLock::new(),
            zmq: OnceLock::new(),
            network: OnceLock::new(),
            started: Instant::now(),
            log_path,
            stop,
            active,
            template: Mutex::default(),
            scan: scan::Scan::default(),
            filter_scan: scan_blocks::FilterScan::default(),
        }
    }

    pub(crate) fn with_deprecated(self, deprecated: Vec<String>) -> Self {
        Self { deprecated, ..self }
    }

    pub(crate) fn with_rest(self, has_rest: bool) -> Self {
        Self { has_rest, ..self }
    }

    pub(crate) fn shows_deprecated(&self, name: &str) -> bool {
        self.deprecated.iter().any(|one| one == name)
    }

    /// Ends the warm-up.
    pub(crate) fn set_engine(&self, engine: Arc<Engine>) {
        assert!(self.engine.set(engine).is_ok(), "the engine is opened once");
    }

    pub(crate) fn set_index(&self, index: ServedIndex) {
        assert!(self.index.set(index).is_ok(), "the index is opened once");
    }

    pub(crate) fn set_block_indexes(&self, indexes: BlockIndexes) {
        assert!(self.block_indexes.set(indexes).is_ok(), "the indexes are opened once");
    }

    pub(crate) fn set_network(&self, network: Arc<P2p>) {
        assert!(self.network.set(network).is_ok(), "peers are served once");
    }

    pub(crate) fn set_zmq(&self, publications: Vec<Publication>) {
        assert!(self.zmq.set(publications).is_ok(), "sockets are bound once");
    }

    fn node<'a>(&'a self, context: &'a CallContext) -> Result<Node<'a>, RpcError> {
        let engine = self.engine.get().ok_or_else(warming_up)?;
        Ok(Node { rpc: self, engine, context })
    }

    fn enter(&self, method: &'static str) -> Running<'_> {
        let mut active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        active.next_id += 1;
        let id = active.next_id;
        active.calls.push((id, method, Instant::now()));
        Running { rpc: self, id }
    }
}

/// Registration among the active calls until dropped.
struct Running<'a> {
    rpc: &'a Rpc,
    id: u64,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut active = self.rpc.active.lock().unwrap_or_else(PoisonError::into_inner);
        active.calls.retain(|(id, ..)| *id != self.id);
    }
}

impl Handler for Rpc {
    type Job = Job;

    fn prepare(&self, method: &str, params: Params<'_>) -> Result<Job, RpcError> {
        if self.engine.get().is_none() {
            return Err(warming_up());
        }
        let unknown = || RpcError::new(Code::MethodNotFound, "Method not found");
        let (method, call) = table::find(method).ok_or_else(unknown)?;
        tracing::debug!(target: "rpc", "ThreadRPCServer method={}", method.name);
        let args = method.arguments(params)?.detach();
        Ok(Job { method: method.name, call, args })
    }

    fn waits(&self, job: &Job) -> bool {
        // A proposal is work.
        let is_proposal =
            || job.method == "getblocktemplate" && template::is_proposal(&job.args.args());
        WAITING.contains(&job.method) && !is_proposal()
    }

    fn groups(&self, job: &Job) -> bool {
        job.method == GROUPED
    }

    fn execute(&self, job: Job, context: &CallContext, out: &mut Vec<u8>) -> Result<(), RpcError> {
        let node = self.node(context)?;
        let _running = self.enter(job.method);
        point(Point::RpcCall);
        (job.call)(&node, &job.args.args(), out)
    }

    fn execute_group(
        &self,
        jobs: Vec<Job>,
        context: &CallContext,
    ) -> Vec<Result<Vec<u8>, RpcError>> {
        let single = |job: Job| {
            let mut out = Vec::new();
            self.execute(job, context, &mut out).map(|()| out)
        };
        let Ok(node) = self.node(context) else { return jobs.into_iter().map(single).collect() };
        let _running = self.enter(GROUPED);
        // Frees the text of each call before the next is parsed.
        let sends = jobs.into_iter().map(|job| SendTransaction::new(self, &job.args.args()));
        submit::run_group(&node, sends.collect())
    }

    fn is_open(&self, path: &str) -> bool {
        self.has_rest && rest::has(path)
    }

    fn answer_open(&self, request: &OpenRequest, context: &CallContext) -> OpenReply {
        rest::answer(self, request, context)
    }
}

/// Methods that mostly wait for an event.
const WAITING: [&str; 8] = [
    "addconnection",
    "addnode",
    "getblocktemplate",
    "stop",
    "syncwithvalidationinterfacequeue",
    "waitforblock",
    "waitforblockheight",
    "waitfornewblock",
];
/// Method whose adjacent calls in a batch reach the engine together.
const GROUPED: &str = "sendrawtransaction";

const WARM_UP: &str = "Loading block index…";

fn warming_up() -> RpcError {
    RpcError::new(Code::InWarmup, WARM_UP)
}

/// Error: an argument is out of range, malformed or missing.
fn bad(text: impl Into<Cow<'static, str>>) -> RpcError {
    RpcError::new(Code::InvalidParameter, text)
}

/// Error: data cannot be decoded.
fn undecodable(text: impl Into<Cow<'static, str>>) -> RpcError {
    RpcError::new(Code::Deserialization, text)
}

const TX_UNDECODABLE: &str = "TX decode failed. Make sure the tx has at least one input.";

/// Reason and details, joined as in `ValidationState::ToString`.
fn with_details(reason: &str, details: &str) -> String {
    if details.is_empty() { reason.to_owned() } else { format!("{reason}, {details}") }
}

/// Error: an argument names an unknown address, key or object.
fn bad_key(text: impl Into<Cow<'static, str>>) -> RpcError {
    RpcError::new(Code::InvalidAddressOrKey, text)
}

/// Writes warnings; in the form before Core 28 only the last text.
fn write_warnings(node: &Node<'_>, json: Json<'_>) {
    let warnings = node.engine.warnings();
    if node.rpc.shows_deprecated("warnings") {
        return json.string(warnings.last().map_or("", String::as_str));
    }
    json.list(&warnings, |warning, json| json.string(warning));
}

impl From<EngineError> for RpcError {
    fn from(error: EngineError) -> Self {
        tracing::error!("RPC call failed: {error}");
        Self::new(Code::InternalError, error.to_string())
    }
}

fn block_not_found() -> RpcError {
    bad_key("Block not found")
}
