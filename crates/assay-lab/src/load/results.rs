//! What a run came to, as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::mix::Mix;
use crate::machine::Machine;

/// Version of the JSON.
pub const LOAD_SCHEMA: u32 = 1;

/// A run of `assay load electrum`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    pub schema: u32,
    pub assay_version: String,
    pub machine: Machine,
    pub address: String,
    pub tls: bool,
    /// What it calls itself.
    pub software: String,
    /// The protocol that was agreed on.
    pub protocol: String,
    /// Kind of clients.
    pub mix: Mix,
    /// Clients, the hostile ones included.
    pub clients: usize,
    /// Subscriptions of each client of the mix `subscribe`.
    pub subscriptions: usize,
    /// Questions per second, of all clients together; `None` where each asks again when it has its answer.
    pub rate: Option<f64>,
    /// Questions that a client without a rate has under way.
    pub depth: usize,
    pub seed: u64,
    /// Recipe, size and seed of the chain, where there is one.
    pub chain: Option<String>,
    /// One pass; where some clients are hostile, pairs of them: without and with, and the other way round in every other pair.
    pub passes: Vec<PassReport>,
    /// Latency with hostile clients over latency without, while no blocks come.
    pub hostile_ratio: Option<HostileRatio>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// Once through all phases.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PassReport {
    pub name: String,
    /// Clients that behave.
    pub honest: usize,
    /// Clients that do not.
    pub hostile: usize,
    /// Whether the generator's thread that asks came before all other threads of the machine.
    #[serde(default)]
    pub is_first: bool,
    /// How it began.
    pub start: StartReport,
    /// While no blocks came from us.
    pub idle: PhaseFigures,
    /// While blocks came.
    pub blocks: Option<PhaseFigures>,
    /// The blocks that were submitted.
    pub fed: Vec<FedBlock>,
    /// From the submission of a block to the notification of its header, over all clients.
    pub header_notifications: Option<Latency>,
    /// From the submission of a block to the notification of a script, over all clients and scripts.
    pub script_notifications: Option<Latency>,
    /// How much later than planned questions were sent; the generator's own delay, which is part of every latency.
    pub lag: Option<Latency>,
    /// What the answers were worth.
    pub checks: Checks,
    /// Connections of honest clients that the server ended.
    pub disconnects: u64,
    /// What became of the hostile clients, by kind.
    pub hostiles: Vec<HostileReport>,
    /// Most memory of the server during the pass, sampled; bytes.
    pub server_rss_peak_bytes: Option<u64>,
    /// Its memory when the pass began.
    pub server_rss_start_bytes: Option<u64>,
}

/// Connecting and subscribing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StartReport {
    /// Until every client had its answers.
    pub seconds: f64,
    /// Subscriptions made.
    pub subscriptions: u64,
    pub figures: PhaseFigures,
}

/// Counts and latencies of one phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseFigures {
    /// How long it was.
    pub seconds: f64,
    /// Answers, errors included; a batch counts as one.
    pub answers: u64,
    /// Per second.
    pub per_s: f64,
    /// Errors by code and message, and by what else went wrong.
    pub errors: BTreeMap<String, u64>,
    /// Questions without an answer.
    pub unanswered: u64,
    /// Received.
    pub bytes_in: u64,
    /// Sent.
    pub bytes_out: u64,
    /// CPU time of the server, where its process is known.
    pub server_cpu_s: Option<f64>,
    pub generator_cpu_s: Option<f64>,
    /// Over all methods; what was not answered counts with the time it was waited for.
    pub latency: Option<Latency>,
    /// Over all methods, from when questions were really sent: without the generator's own delay, and blind to stalls.
    pub since_sent: Option<Latency>,
    pub methods: Vec<MethodFigures>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MethodFigures {
    pub method: String,
    /// Answers, errors included.
    pub answers: u64,
    /// Of these, errors.
    pub errors: u64,
    /// Answers per second.
    pub per_s: f64,
    /// How long they took.
    pub latency: Option<Latency>,
}

/// Percentiles in milliseconds, to three significant digits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Samples.
    pub count: u64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
}

/// What answers were worth.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Checks {
    pub right: u64,
    /// Right at a height that had passed.
    pub stale: u64,
    pub wrong: u64,
    pub unknown: u64,
    /// Subscriptions whose last status was that of the last block, when all was over.
    pub subscriptions_right: u64,
    /// Subscriptions whose last status was another.
    pub subscriptions_wrong: u64,
    /// Some of the answers that were not right.
    pub examples: Vec<String>,
}

/// A block that was submitted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FedBlock {
    pub height: u32,
    pub txs: u64,
    /// From the submission to the node's answer.
    pub reply_ms: f64,
    /// From the submission to the first notification of its header.
    pub first_header_ms: Option<f64>,
    /// To the last.
    pub last_header_ms: Option<f64>,
    /// To the last notification of a script before the next block.
    pub last_script_ms: Option<f64>,
    pub script_notifications: u64,
}

/// What became of one kind of hostile client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostileReport {
    /// What it does.
    pub kind: String,
    pub clients: usize,
    /// Connections made.
    pub connections: u64,
    /// Of these, ended by the server.
    pub thrown_out: u64,
    /// Attempts to connect that failed.
    pub refused: u64,
    /// Lines that the server answered with.
    pub lines: u64,
    /// Of these, errors.
    pub errors: u64,
    /// Sent.
    pub bytes_out: u64,
    /// Received.
    pub bytes_in: u64,
}

/// Latency with hostile clients over latency without: medians of the ratios of pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HostileRatio {
    /// Pairs of passes.
    pub pairs: usize,
    /// Medians.
    pub p50: f64,
    /// 95th percentiles.
    pub p95: f64,
    /// 99th percentiles.
    pub p99: f64,
}

impl LoadReport {
    /// Whether every answer that could be checked was right, and every subscription up to date at the end.
    pub fn is_good(&self) -> bool {
        self.passes.iter().all(|pass| {
            let Checks { stale, wrong, subscriptions_wrong, .. } = pass.checks;
            stale + wrong + subscriptions_wrong == 0
        })
    }
}
