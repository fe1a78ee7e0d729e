//! The results of a plan: `results.json`, schema version 3.
//!
//! Schema 2 adds indexes (`index` of targets, runs and blocks) and further chains (`more_chains`, `distinct_keys` of targets). A
//! file of schema 1 is read without these.
//!
//! Schema 3 introduces the name `reference_rates`.
//!
//! Times are seconds; fields ending in `_at_s` are on the run's own clock, which starts with the target. Sizes are bytes; MiB is
//! 2^20 bytes. `txs` includes coinbases, `inputs` and `signatures` do not. Unmeasured values are `null`.

pub(crate) mod aggregate;
pub mod disturbance;
#[cfg(test)]
pub(crate) mod fixture;

use std::collections::BTreeMap;
use std::path::Path;

use assay_ledger::{BlockLine, FilesLine, RangeLine};
use assay_report::ResultsFile;
use assay_report::number::in_percent;
use serde::{Deserialize, Serialize};

use crate::chain::ChainSnapshot;
use crate::electrum::check::LedgerCheck;
use crate::machine::disk::DiskUse;
use crate::machine::{Machine, ReferenceRate, Software};
use crate::plan::{IndexKind, Plan};
use crate::process::Usage;
use crate::process::interference::Interference;
use crate::process::sample::Samples;

pub use assay_report::LoadError;

/// Schema version of `results.json` and of the files under `runs/`.
pub const SCHEMA: u32 = 3;
pub const SCHEMA_OLDEST: u32 = 1;

pub const FILE: &str = "results.json";

/// Results of one execution of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    pub schema: u32,
    /// Time of writing, ISO 8601 in UTC.
    pub created: String,
    /// The plan with the seed and scale used.
    pub plan: Plan,
    pub chain: ChainSummary,
    /// Further chains, if the plan has keys of both kinds.
    #[serde(default)]
    pub more_chains: Vec<ChainSummary>,
    pub machine: Machine,
    pub software: Software,
    /// Signature rates of one thread of the reference library, measured in the same execution.
    #[serde(default, alias = "yardsticks")]
    pub reference_rates: Vec<ReferenceRate>,
    /// One entry per target and chain, in the order of the plan.
    pub targets: Vec<TargetResults>,
    /// Command line that repeats the run.
    pub rerun: String,
    /// Runs per target and pre-relayed share planned before the first; the plan has the final number, larger after an extension.
    #[serde(default)]
    pub pairs_planned: Option<u32>,
    /// Skipped targets that could not load the snapshot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unable: Vec<UnableTarget>,
    /// Runs under a profiler, separate from the measured runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Profile>,
}

/// A target without runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnableTarget {
    pub name: String,
    pub version: String,
    /// Reason, mostly in the program's words.
    pub why: String,
}

/// Load of the snapshot by a target, once before its runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SnapshotLoad {
    /// Duration of `loadtxoutset` on the laboratory's clock: reading, checking the hash, first writes.
    pub load_s: f64,
    /// From the `stop` call to the end of the process, which writes the rest.
    pub stop_s: f64,
}

/// A chain as in its ledger.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChainSummary {
    pub recipe: String,
    /// Chain parameters of the nodes.
    pub chain: String,
    pub seed: u64,
    pub scale: f64,
    /// `intended` or `faithful`.
    pub variant: String,
    /// True if every output has a key of its own.
    pub distinct_keys: bool,
    /// Of a history: factor on the transactions of its blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_scale: Option<f64>,
    /// Activation height of each soft fork, if listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub activation: BTreeMap<String, u32>,
    /// Sums over height ranges, if the recipe has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<RangeLine>,
    pub assay_version: String,
    /// SHA-256 of the recipe text, if the forge reports it.
    pub recipe_sha256: Option<String>,
    pub height: u32,
    pub tip: String,
    /// Size of the UTXO set at the tip.
    pub utxo_count: u64,
    /// Its total amount in satoshi.
    pub utxo_amount: u64,
    pub utxo_muhash: String,
    /// Transactions, including coinbases.
    pub txs: u64,
    /// Inputs, without those of coinbases.
    pub inputs: u64,
    pub outputs: u64,
    pub bytes: u64,
    pub signatures: u64,
    /// Duration of the forge in seconds; absent if the chain already existed.
    pub forge_s: Option<f64>,
    /// Block files of another program, if the chain was not forged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<FilesLine>,
    /// Initial UTXO set of all runs; the counts then cover the blocks above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<ChainSnapshot>,
    /// The run that first reported the UTXO set, if no ledger defines it: others are compared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coins_reported_by: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetResults {
    /// Name of the target in file names and tables.
    pub name: String,
    /// `assay`, `bitcoin-core`, `bitcoin-knots`, `bchn`, `btcd` or `kernel`.
    pub family: String,
    pub version: String,
    /// True for the chain with distinct keys.
    #[serde(default)]
    pub distinct_keys: bool,
    #[serde(default)]
    pub index: Option<IndexInfo>,
    /// Delivery method, if it differs from the plan's: a value of `feed.by`, or `files`.
    #[serde(default)]
    pub delivery: Option<String>,
    /// Load of the snapshot that its runs begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_load: Option<SnapshotLoad>,
    /// Runs in order of pre-relayed share and repeat.
    pub runs: Vec<Run>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexInfo {
    pub kind: IndexKind,
    pub version: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Tip, UTXO set and counts agree with the ledger.
    Valid,
    /// Correct, but on a disturbed machine; figures are kept, and other runs replace it.
    Disturbed,
    /// Incorrect or failed; figures are kept but ignored.
    #[default]
    Void,
}

impl Status {
    /// As in `results.json`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Disturbed => "disturbed",
            Self::Void => "void",
        }
    }
}

/// One run: one target, one pre-relayed share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Name of the run and of its file under `runs/`.
    pub id: String,
    pub status: Status,
    pub void_reason: Option<String>,
    /// Interference beyond the limits of [`disturbance`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<String>,
    /// Planned pre-relayed share of each block's transactions.
    pub seen_requested: f64,
    /// Share found in the target's mempool just before the block, over all measured phases.
    pub seen_measured: f64,
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// Start of the run's clock, ISO 8601 in UTC.
    pub started: String,
    pub tip: Option<String>,
    /// Final `MuHash` of the target's UTXO set, if available.
    pub utxo_muhash: Option<String>,
    pub command: Vec<String>,
    /// Figures per phase in chain order.
    pub phases: Vec<PhaseResult>,
    /// Figures over all measured phases.
    pub total: PhaseResult,
    pub blocks: Vec<BlockRecord>,
    pub checks: Vec<Check>,
    /// Error messages about sent transactions with their counts.
    pub tx_errors: BTreeMap<String, u64>,
    /// From the start of the process to its first response.
    pub startup_s: Option<f64>,
    /// From the `stop` call to the end of the process.
    pub shutdown_s: Option<f64>,
    pub samples: Samples,
    /// CPU time of the laboratory during the run, which was unavailable to the target.
    pub lab_cpu_s: Option<f64>,
    /// Control load before and after, in nanoseconds.
    pub control_ns: Vec<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Interference>,
    #[serde(default)]
    pub index: Option<IndexRun>,
    #[serde(default)]
    pub preparation: Preparation,
    /// For programs that read block files and exit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<WholeProcess>,
}

/// A program that reads block files, from start to exit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WholeProcess {
    #[serde(flatten)]
    pub usage: Usage,
    /// Finding and connecting blocks up to the last script, by its own clock.
    pub connect_s: f64,
    /// Counting and hashing the UTXO set at its end, by its own clock; absent if it does not.
    pub hash_s: Option<f64>,
    /// Versions that it reports of its components.
    pub versions: Option<String>,
}

/// Preparation of a common initial state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preparation {
    /// Handling of the page cache; absent if none was requested.
    pub page_cache: Option<String>,
    /// Source folder of the data folder; absent if empty.
    pub copied_from: Option<String>,
    pub copied_bytes: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexRun {
    pub server: String,
    pub protocol: String,
    /// Command line of its process; empty if it is a part of the node.
    pub command: Vec<String>,
    /// From the start of its process to its first response; absent without a separate process.
    pub startup_s: Option<f64>,
    /// From the stop request to the end of its process.
    pub shutdown_s: Option<f64>,
    pub phases: Vec<IndexPhase>,
    /// Figures over all measured phases.
    pub total: IndexPhase,
    /// Delay after the node at the tip.
    pub lag_end_s: Option<f64>,
    /// Comparison of its responses with the chain.
    pub ledger: Option<LedgerCheck>,
    /// Final size of the index on disk.
    pub index_bytes: Option<u64>,
    /// Final size of the node on disk without the index.
    pub node_bytes: Option<u64>,
    /// CPU time of the process with the index when it reached the tip.
    pub cpu_s: Option<f64>,
    /// Peak resident memory until then.
    pub rss_peak_bytes: Option<u64>,
    /// Bytes written to disk until then.
    pub written_bytes: Option<u64>,
    /// Requests to the node that timed out, according to the index's log.
    pub timeouts: Option<u64>,
    /// Resources of its process over time; empty without a separate process.
    pub samples: Samples,
}

/// Figures of an index in one phase. Counts are those of the blocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexPhase {
    /// Name in the ledger.
    pub name: String,
    pub blocks: u64,
    /// Transactions, including coinbases.
    pub txs: u64,
    /// Total service time: see [`IndexBlock::service_s`].
    pub seconds: f64,
    pub tx_per_s: f64,
    pub inputs_per_s: f64,
    pub outputs_per_s: f64,
    pub mib_per_s: f64,
    /// Total queue time: see [`IndexBlock::queue_s`].
    pub queue_s: f64,
    /// Longest time from a block becoming the node's tip until it was indexed.
    pub lag_s_max: f64,
    /// Total of node and index together: see [`IndexBlock::pair_s`].
    pub pair_s: f64,
    pub pair_tx_per_s: f64,
    pub pair_inputs_per_s: f64,
    /// Script hashes per second of service time: one per output, and one per spent output.
    #[serde(default)]
    pub script_hashes_per_s: f64,
    #[serde(default)]
    pub pair_script_hashes_per_s: f64,
    /// Disk usage of the index process; absent without a separate process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskUse>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexBlock {
    /// Announcement of a tip at this height or above.
    pub reached_at_s: f64,
    /// From the later of two times, when the block became the node's tip and when its predecessor was indexed, to `reached_at_s`.
    /// Zero for a block announced before the node's tip was observed to change, or together with its predecessor.
    pub service_s: f64,
    /// From the block becoming the node's tip until its predecessor was indexed: waiting for the index.
    pub queue_s: f64,
    /// From the later of sending the block and its predecessor being indexed, to `reached_at_s`: node and index together.
    pub pair_s: f64,
    /// Disk usage of its process since its predecessor was indexed; absent without a separate process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskUse>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Name in the ledger.
    pub name: String,
    pub blocks: u64,
    /// Transactions, including coinbases.
    pub txs: u64,
    /// Inputs, without those of coinbases.
    pub inputs: u64,
    pub outputs: u64,
    pub bytes: u64,
    pub signatures: u64,
    /// Total service time: from sending the first byte of each block until it is the tip.
    pub seconds: f64,
    pub tx_per_s: f64,
    pub inputs_per_s: f64,
    pub outputs_per_s: f64,
    pub mib_per_s: f64,
    /// Signatures in the blocks per second of service time.
    pub signatures_per_s: f64,
    pub service_s_median: f64,
    pub service_s_max: f64,
    /// Total time from sending the first byte of each block to the reply.
    pub rpc_s: f64,
    /// Total wait before sending: see [`BlockRecord::queue_s`].
    pub queue_s: f64,
    /// Total CPU time of the target during the service times (granularity 10 ms).
    pub cpu_s: Option<f64>,
    /// Total disk usage of the target; absent if the system or the delivery method does not provide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<BlockDisk>,
    pub admission: Admission,
    /// Share of transactions found in the mempool just before their block.
    pub seen_measured: f64,
}

/// Pre-relayed transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Admission {
    pub sent: u64,
    /// Transactions answered with a txid.
    pub accepted: u64,
    /// Bytes of transactions sent, without JSON.
    pub bytes: u64,
    /// From the first transaction to the last reply of each block, summed.
    pub seconds: f64,
    pub tx_per_s: f64,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockRecord {
    pub height: u32,
    pub phase: String,
    /// Transactions, including the coinbase.
    pub txs: u64,
    /// Inputs, without the coinbase's.
    pub inputs: u64,
    pub outputs: u64,
    pub bytes: u64,
    pub signatures: u64,
    pub txs_sent: u64,
    /// Transactions answered with a txid.
    pub txs_accepted: u64,
    pub txs_sent_bytes: u64,
    /// Transactions of the block found in the mempool just before it.
    pub txs_in_mempool: u64,
    /// Transactions sent before a parent, which the node had to keep or reject.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub orphans: u64,
    /// Time of the first transaction sent.
    pub first_tx_at_s: Option<f64>,
    /// Time of the last reply to a transaction.
    pub last_tx_at_s: Option<f64>,
    /// Time of the first byte of the block.
    pub send_at_s: f64,
    /// Time of the `submitblock` reply.
    pub reply_at_s: f64,
    /// Time at which a second connection saw the block as the tip.
    pub tip_at_s: f64,
    /// `tip_at_s - send_at_s`.
    pub service_s: f64,
    /// From the due time of the block (its predecessor is the tip, and its own transactions are answered) to `send_at_s`:
    /// preparing the body and reading the mempool.
    pub queue_s: f64,
    /// CPU time of the target during the service time (granularity 10 ms).
    pub cpu_s: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<BlockDisk>,
    #[serde(default)]
    pub index: Option<IndexBlock>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<BlockRelay>,
}

impl BlockRecord {
    pub(crate) fn of(block: &BlockLine) -> Self {
        Self {
            height: block.height,
            phase: block.phase.to_string(),
            txs: block.txs,
            inputs: block.inputs,
            outputs: block.outputs,
            bytes: block.bytes,
            signatures: block.signatures,
            ..Self::default()
        }
    }
}

/// Disk usage of a target's process around one block, or summed over the blocks of a phase. Includes an index in the same process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDisk {
    pub service: DiskUse,
    /// From the previous tip until the block is sent: its transactions, and background writes.
    pub between: DiskUse,
}

impl std::iter::Sum for BlockDisk {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            service: [sum.service, one.service].into_iter().sum(),
            between: [sum.between, one.between].into_iter().sum(),
        })
    }
}

/// Observations of the delivering peers on the run's clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct BlockRelay {
    /// Time of its header, or of the unsolicited compact block.
    pub announced_at_s: f64,
    /// Time of the request for the compact or full block.
    pub asked_at_s: Option<f64>,
    /// Time of sending the compact block.
    pub compact_at_s: Option<f64>,
    /// Time of the request for missing transactions (`getblocktxn`).
    pub missing_asked_at_s: Option<f64>,
    /// Time of sending them (`blocktxn`).
    pub missing_sent_at_s: Option<f64>,
    pub missing: u64,
    pub missing_bytes: u64,
    /// Time of sending the full block.
    pub block_at_s: Option<f64>,
    /// Time of the node's announcement to another peer.
    pub seen_at_s: Option<f64>,
    /// Message of that announcement.
    pub seen_as: Option<SeenAs>,
}

/// Message in which a node announced a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeenAs {
    /// `cmpctblock`.
    Compact,
    Headers,
    Inv,
}

/// One comparison with the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Compared quantity.
    pub what: String,
    /// Value in the ledger.
    pub expected: String,
    /// Value of the target; absent if unavailable.
    pub found: Option<String>,
}

impl Check {
    /// True if the target contradicts the ledger.
    pub fn differs(&self) -> bool {
        self.found.as_ref().is_some_and(|found| *found != self.expected)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub target: String,
    /// Samples of all threads.
    pub samples: u64,
    /// Flame graph, as a path in the folder of results.
    pub picture: Option<String>,
    /// Functions with the most samples of their own, in descending order.
    pub top: Vec<Share>,
    pub missing: Option<String>,
    /// Difference from the first target; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
}

/// CPU time of two targets for the same work, by samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub from: String,
    /// Total CPU seconds of the first target.
    pub before_s: f64,
    /// Total CPU seconds of this target.
    pub after_s: f64,
    /// Differential flame graph, as a path in the folder of results.
    pub picture: Option<String>,
    /// Functions with the largest change of their own time, in descending order.
    pub changed: Vec<Changed>,
}

/// Own CPU seconds of a function in two targets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    /// Name as in `perf`.
    pub function: String,
    /// In the first target.
    pub before_s: f64,
    pub after_s: f64,
}

/// A function's share of the samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Name as in `perf`.
    pub function: String,
    /// Share of samples in the function itself, without its callees.
    pub share: f64,
}

impl Results {
    pub fn chain_of(&self, target: &TargetResults) -> &ChainSummary {
        let mut all = std::iter::once(&self.chain).chain(&self.more_chains);
        all.find(|chain| chain.distinct_keys == target.distinct_keys).unwrap_or(&self.chain)
    }

    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.targets.iter().flat_map(|target| &target.runs)
    }

    /// Invalid runs. A command whose results contain any has failed.
    pub fn void_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs().filter(|run| run.status == Status::Void)
    }
}

impl TargetResults {
    /// Valid runs with this pre-relayed share.
    pub fn valid_runs(&self, seen: f64) -> Vec<&Run> {
        let wanted = in_percent(seen);
        let counts =
            |run: &&Run| run.status == Status::Valid && in_percent(run.seen_requested) == wanted;
        self.runs.iter().filter(counts).collect()
    }

    /// Pre-relayed shares of the runs, ascending.
    pub fn seen_shares(&self) -> Vec<f64> {
        let mut shares: Vec<f64> = self.runs.iter().map(|run| run.seen_requested).collect();
        shares.sort_by(f64::total_cmp);
        shares.dedup_by_key(|share| in_percent(*share));
        shares
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Reads `results.json` from `dir`.
///
/// # Errors
/// When it is missing, malformed or of another schema version.
pub fn load(dir: &Path) -> Result<Results, LoadError> {
    load_file(&dir.join(FILE))
}

/// Reads results from this file.
///
/// # Errors
/// When it is missing, malformed or of another schema version.
pub fn load_file(path: &Path) -> Result<Results, LoadError> {
    parse(ResultsFile::read(path)?)
}

/// Parses results.
///
/// # Errors
/// When they are malformed or of another schema version.
pub fn parse(file: ResultsFile) -> Result<Results, LoadError> {
    // Fields missing in an older schema default to absent; the current schema is written.
    let mut results: Results = file.parse("results of a chain", SCHEMA_OLDEST..=SCHEMA)?;
    results.schema = SCHEMA;
    Ok(results)
}
