//! Results of a load test as JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::mix::Mix;
use crate::machine::Machine;

/// Version of the JSON.
pub const LOAD_SCHEMA: u32 = 1;

/// Results of `assay load electrum`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    pub schema: u32,
    pub assay_version: String,
    pub machine: Machine,
    pub address: String,
    pub tls: bool,
    /// Software name of the server.
    pub software: String,
    /// Negotiated protocol version.
    pub protocol: String,
    /// Request mix.
    pub mix: Mix,
    /// Clients, including hostile ones.
    pub clients: usize,
    /// Subscriptions of each client of the mix `subscribe`.
    pub subscriptions: usize,
    /// Requests per second of all clients together; `None` if each sends its next request after a response.
    pub rate: Option<f64>,
    /// Requests in flight per client without a rate.
    pub depth: usize,
    pub seed: u64,
    /// Recipe, scale and seed of the chain, if any.
    pub chain: Option<String>,
    /// One pass, or pairs of passes without and with hostile clients, in alternating order.
    pub passes: Vec<PassReport>,
    /// Latency with hostile clients over latency without, while no blocks are submitted.
    pub hostile_ratio: Option<HostileRatio>,
    /// Caveats.
    pub notes: Vec<String>,
}

/// Results of one pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PassReport {
    pub name: String,
    /// Honest clients.
    pub honest: usize,
    /// Hostile clients.
    pub hostile: usize,
    /// True if the requesting thread had real-time priority.
    #[serde(default)]
    pub is_first: bool,
    /// Connection phase.
    pub start: StartReport,
    /// Phase without submitted blocks.
    pub idle: PhaseFigures,
    /// Phase with submitted blocks.
    pub blocks: Option<PhaseFigures>,
    /// Submitted blocks.
    pub fed: Vec<FedBlock>,
    /// From the submission of a block to its header notification, over all clients.
    pub header_notifications: Option<Latency>,
    /// From the submission of a block to a script notification, over all clients and scripts.
    pub script_notifications: Option<Latency>,
    /// Delay of sending behind schedule: the generator's own delay, included in every latency.
    pub lag: Option<Latency>,
    /// Correctness of the responses.
    pub checks: Checks,
    /// Connections of honest clients that the server closed.
    pub disconnects: u64,
    /// Results per attack.
    pub hostiles: Vec<HostileReport>,
    /// Peak memory of the server during the pass, sampled; bytes.
    pub server_rss_peak_bytes: Option<u64>,
    /// Its memory at the start of the pass.
    pub server_rss_start_bytes: Option<u64>,
}

/// Connecting and subscribing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StartReport {
    /// Until every client had its responses.
    pub seconds: f64,
    /// Subscriptions made.
    pub subscriptions: u64,
    pub figures: PhaseFigures,
}

/// Counts and latencies of one phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseFigures {
    /// Duration.
    pub seconds: f64,
    /// Responses, including errors; a batch counts as one.
    pub answers: u64,
    /// Responses per second.
    pub per_s: f64,
    /// Errors by code and message, or by other cause.
    pub errors: BTreeMap<String, u64>,
    /// Unanswered requests.
    pub unanswered: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// CPU time of the server, if its process is known.
    pub server_cpu_s: Option<f64>,
    pub generator_cpu_s: Option<f64>,
    /// Over all methods; unanswered requests count with the time waited.
    pub latency: Option<Latency>,
    /// Over all methods, from the actual time of sending: without the generator's delay, but blind to stalls.
    pub since_sent: Option<Latency>,
    pub methods: Vec<MethodFigures>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MethodFigures {
    pub method: String,
    /// Responses, including errors.
    pub answers: u64,
    /// Error responses.
    pub errors: u64,
    /// Responses per second.
    pub per_s: f64,
    /// Latency of its responses.
    pub latency: Option<Latency>,
}

/// Percentiles in milliseconds, to three significant digits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Number of samples.
    pub count: u64,
    pub mean_ms: f64,
    pub p50_ms: f64,
    pub p90_ms: f64,
    pub p95_ms: f64,
    pub p99_ms: f64,
    pub p999_ms: f64,
    pub max_ms: f64,
}

/// Verdicts on responses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Checks {
    pub right: u64,
    /// Correct at an earlier height.
    pub stale: u64,
    pub wrong: u64,
    pub unknown: u64,
    /// Subscriptions whose last status at the end was that of the last block.
    pub subscriptions_right: u64,
    /// Subscriptions with another last status.
    pub subscriptions_wrong: u64,
    /// Examples of stale and wrong responses.
    pub examples: Vec<String>,
}

/// A submitted block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FedBlock {
    pub height: u32,
    pub txs: u64,
    /// From submission to the node's response.
    pub reply_ms: f64,
    /// From submission to its first header notification.
    pub first_header_ms: Option<f64>,
    /// To its last header notification.
    pub last_header_ms: Option<f64>,
    /// To the last script notification before the next block.
    pub last_script_ms: Option<f64>,
    pub script_notifications: u64,
}

/// Results of one attack.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HostileReport {
    /// Attack.
    pub kind: String,
    pub clients: usize,
    /// Established connections.
    pub connections: u64,
    /// Connections closed by the server.
    pub thrown_out: u64,
    /// Failed connection attempts.
    pub refused: u64,
    /// Lines received.
    pub lines: u64,
    /// Error responses.
    pub errors: u64,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Bytes received.
    pub bytes_in: u64,
}

/// Latency with hostile clients over latency without: medians over pairs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HostileRatio {
    /// Pairs of passes.
    pub pairs: usize,
    /// Ratio of medians.
    pub p50: f64,
    /// Ratio of 95th percentiles.
    pub p95: f64,
    /// Ratio of 99th percentiles.
    pub p99: f64,
}

impl LoadReport {
    /// True if every verifiable response was correct, and every subscription was current at the end.
    pub fn is_good(&self) -> bool {
        self.passes.iter().all(|pass| {
            let Checks { stale, wrong, subscriptions_wrong, .. } = pass.checks;
            stale + wrong + subscriptions_wrong == 0
        })
    }
}
