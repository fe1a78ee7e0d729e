//! The results of a plan: `results.json`, schema version 3.
//!
//! Schema 2 adds indexes (`index` of targets, runs and blocks), further chains (`more_chains`, `distinct_keys` of targets). A
//! file of schema 1 is read as one without any of these.
//!
//! Schema 3 calls `reference_rates` what was `yardsticks`.
//!
//! Times are seconds; those ending in `_at_s` are on the run's own clock, which starts when the
//! target is started. Sizes are bytes; MiB is 2^20 bytes. `txs` counts coinbases, `inputs` and
//! `signatures` do not. What could not be measured is `null`.

pub(crate) mod aggregate;
pub mod disturbance;
mod file;
#[cfg(test)]
pub(crate) mod fixture;

use std::collections::BTreeMap;

use assay_report::number::in_percent;
use serde::{Deserialize, Serialize};

use crate::chain::{ChainFiles, ChainSnapshot, RangeEntry};
use crate::electrum::check::LedgerCheck;
use crate::machine::disk::DiskUse;
use crate::machine::{Machine, ReferenceRate, Software};
use crate::plan::{IndexKind, Plan};
use crate::process::Usage;
use crate::process::sample::Samples;
use crate::process::surroundings::Surroundings;

pub use self::file::{FILE, LoadError, load, load_file, parse};

/// The schema version of `results.json` and of the files under `runs/`.
pub const SCHEMA: u32 = 3;
/// The oldest schema version that is still read.
pub const SCHEMA_OLDEST: u32 = 1;

/// Everything known about one execution of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// See [`SCHEMA`].
    pub schema: u32,
    /// When these results were put together, as ISO 8601 in UTC.
    pub created: String,
    /// The plan, with the seed and scale that were used.
    pub plan: Plan,
    pub chain: ChainSummary,
    /// The others, where the plan asks for keys of both kinds.
    #[serde(default)]
    pub more_chains: Vec<ChainSummary>,
    pub machine: Machine,
    /// The software of the laboratory.
    pub software: Software,
    /// Signature rates of one thread of the reference library, measured in the same execution.
    #[serde(default, alias = "yardsticks")]
    pub reference_rates: Vec<ReferenceRate>,
    /// One entry per target and chain, in the order of the plan.
    pub targets: Vec<TargetResults>,
    /// The command line that makes these results again.
    pub rerun: String,
    /// Runs per target and seen share that were asked for before the first of them was made. The plan says how many there
    /// were to be in the end, which is more where somebody went on.
    #[serde(default)]
    pub pairs_planned: Option<u32>,
    /// Targets that could not begin as the others did, and have no runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unable: Vec<UnableTarget>,
    /// Runs under a profiler, after those that count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Profile>,
}

/// A target without runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnableTarget {
    pub name: String,
    /// What the program says about its version.
    pub version: String,
    /// Why it has none, mostly in its own words.
    pub why: String,
}

/// How a target loaded the snapshot that its runs begin with; once, before the first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SnapshotLoad {
    /// The call of `loadtxoutset`, by the laboratory's clock: reading, checking the hash, the first writing.
    pub load_s: f64,
    /// From the `stop` call to the end of the process, which writes the rest.
    pub stop_s: f64,
}

/// The chain that was fed, from its ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChainSummary {
    pub recipe: String,
    /// Chain parameters the nodes run with.
    pub chain: String,
    pub seed: u64,
    pub scale: f64,
    /// `intended` or `faithful`.
    pub variant: String,
    /// Whether every output has a key of its own.
    pub distinct_keys: bool,
    /// Of a history: the factor on the transactions of its blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_scale: Option<f64>,
    /// Height from which each soft fork is active, where the chain says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub activation: BTreeMap<String, u32>,
    /// What ranges of heights have, where the recipe sums it up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ranges: Vec<RangeEntry>,
    /// Version of the forge.
    pub assay_version: String,
    /// Hash of the recipe text, where the forge gives it.
    pub recipe_sha256: Option<String>,
    pub height: u32,
    pub tip: String,
    /// Unspent outputs at the tip.
    pub utxo_count: u64,
    /// Their amount, in satoshi.
    pub utxo_amount: u64,
    /// Their `MuHash`.
    pub utxo_muhash: String,
    /// Transactions, with coinbases.
    pub txs: u64,
    /// Inputs, without those of coinbases.
    pub inputs: u64,
    pub outputs: u64,
    /// Bytes of all blocks.
    pub bytes: u64,
    /// Valid signatures.
    pub signatures: u64,
    /// Seconds the forge took, from outside; absent when the chain was there already.
    pub forge_s: Option<f64>,
    /// The block files of another program, where the chain was not forged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<ChainFiles>,
    /// The coins that all runs begin with; the counts are then of the blocks above theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<ChainSnapshot>,
    /// The run that reported the unspent outputs first, where no ledger says what they must be: others are compared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coins_reported_by: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetResults {
    /// Name of the target in file names and tables.
    pub name: String,
    /// `assay`, `bitcoin-core`, `bitcoin-knots`, `bchn`, `btcd` or `kernel`.
    pub family: String,
    /// What the program says about its version.
    pub version: String,
    /// Whether it was fed the chain in which every output has a key of its own.
    #[serde(default)]
    pub distinct_keys: bool,
    #[serde(default)]
    pub index: Option<IndexInfo>,
    /// The way its blocks came to it, where that is not what the plan says of all targets: a word of `feed.by`, or `files`.
    #[serde(default)]
    pub delivery: Option<String>,
    /// How it loaded the snapshot that its runs begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_load: Option<SnapshotLoad>,
    /// Its runs, in order of seen share and repeat.
    pub runs: Vec<Run>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexInfo {
    pub kind: IndexKind,
    pub version: String,
}

/// Whether a run counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The target did the work: tip, UTXO set and counts agree with the ledger.
    Valid,
    /// It did the work on a disturbed machine; the figures are kept, and other runs stand for it.
    Disturbed,
    /// It did not; the figures are kept, and count for nothing.
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

/// One run: one target, one seen share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Name of the run and of its file under `runs/`.
    pub id: String,
    pub status: Status,
    /// Why not.
    pub void_reason: Option<String>,
    /// What else used the machine, where that was more than [`disturbance`] allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<String>,
    /// Share of each block's transactions that was to be sent beforehand.
    pub seen_requested: f64,
    /// Share found in the target's mempool just before the block, over all measured phases.
    pub seen_measured: f64,
    /// Number of the repeat, from 0.
    pub repeat: u32,
    /// Start of the run's clock, as ISO 8601 in UTC.
    pub started: String,
    /// Hash of the target's tip at the end.
    pub tip: Option<String>,
    /// `MuHash` of the target's UTXO set at the end, where it can tell.
    pub utxo_muhash: Option<String>,
    /// Command line of the target.
    pub command: Vec<String>,
    /// Figures per phase, in the order of the chain.
    pub phases: Vec<PhaseResult>,
    /// Figures over all measured phases.
    pub total: PhaseResult,
    /// One record per block.
    pub blocks: Vec<BlockRecord>,
    /// Comparisons with the ledger.
    pub checks: Vec<Check>,
    /// Errors on sent transactions: message and how often.
    pub tx_errors: BTreeMap<String, u64>,
    /// From starting the process to its first answer.
    pub startup_s: Option<f64>,
    /// From the `stop` call to the end of the process.
    pub shutdown_s: Option<f64>,
    /// Resources over time.
    pub samples: Samples,
    /// CPU time the laboratory itself used during the run: what it took away from the target.
    pub lab_cpu_s: Option<f64>,
    /// Control load before and after, in nanoseconds.
    pub control_ns: Vec<u64>,
    /// The machine during the run, apart from the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surroundings: Option<Surroundings>,
    /// What the index beside the node did.
    #[serde(default)]
    pub index: Option<IndexRun>,
    /// What was done before it.
    #[serde(default)]
    pub preparation: Preparation,
    /// Of a program that reads block files and ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<WholeProcess>,
}

/// A program that reads block files, from its start to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WholeProcess {
    /// As the system accounts for it.
    #[serde(flatten)]
    pub usage: Usage,
    /// Finding and connecting blocks up to the last script, by its own clock.
    pub connect_s: f64,
    /// Counting and hashing the coins at its end, by its own clock; absent where it does not.
    pub hash_s: Option<f64>,
    /// What it says of the versions in it, if anything.
    pub versions: Option<String>,
}

/// What was done before a run, so that it began as the others did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preparation {
    /// What became of the page cache, in words; absent where nothing was to be done.
    pub page_cache: Option<String>,
    /// The folder that the data folder is a copy of; absent where it was empty.
    pub copied_from: Option<String>,
    /// Bytes copied.
    pub copied_bytes: u64,
}

/// What an index did in a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexRun {
    /// What the server calls itself.
    pub server: String,
    /// Version of the protocol spoken with it.
    pub protocol: String,
    /// Command line of its process; empty where it is a part of the node's.
    pub command: Vec<String>,
    /// From starting its process to its first answer; absent where it has none of its own.
    pub startup_s: Option<f64>,
    /// From telling its process to stop to its end.
    pub shutdown_s: Option<f64>,
    /// Figures per phase, in the order of the chain.
    pub phases: Vec<IndexPhase>,
    /// Figures over all measured phases.
    pub total: IndexPhase,
    /// How long after the node it reached the tip.
    pub lag_end_s: Option<f64>,
    /// Its answers, compared with the chain.
    pub ledger: Option<LedgerCheck>,
    /// Bytes on disk of the index, after the end.
    pub index_bytes: Option<u64>,
    /// Bytes on disk of the node without it.
    pub node_bytes: Option<u64>,
    /// CPU time of the process that holds the index, when it reached the tip.
    pub cpu_s: Option<f64>,
    /// Its highest resident memory until then.
    pub rss_peak_bytes: Option<u64>,
    /// Bytes that it had written to disk until then.
    pub written_bytes: Option<u64>,
    /// Requests to the node that the index gave up for lack of an answer, as its log tells.
    pub timeouts: Option<u64>,
    /// Resources of its process over time; empty where it has none of its own.
    pub samples: Samples,
}

/// Figures of an index in one phase. Counts are those of the blocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexPhase {
    /// Name in the ledger.
    pub name: String,
    pub blocks: u64,
    /// Transactions, with coinbases.
    pub txs: u64,
    /// Service time, summed: see [`IndexBlock::service_s`].
    pub seconds: f64,
    /// Transactions per second of service time.
    pub tx_per_s: f64,
    /// Inputs per second of service time.
    pub inputs_per_s: f64,
    /// Outputs per second of service time.
    pub outputs_per_s: f64,
    /// MiB per second of service time.
    pub mib_per_s: f64,
    /// Queue time, summed: see [`IndexBlock::queue_s`].
    pub queue_s: f64,
    /// Longest time from a block's being the node's tip to its being indexed.
    pub lag_s_max: f64,
    /// Node and index together, summed: see [`IndexBlock::pair_s`].
    pub pair_s: f64,
    /// Transactions per second of that.
    pub pair_tx_per_s: f64,
    /// Inputs per second of that.
    pub pair_inputs_per_s: f64,
    /// Script hashes per second of service time: one for each output, and one for each output that an input spends.
    #[serde(default)]
    pub script_hashes_per_s: f64,
    /// The same per second of node and index together.
    #[serde(default)]
    pub pair_script_hashes_per_s: f64,
    /// Disk use of the process of the index; absent where it has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskUse>,
}

/// When an index had a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexBlock {
    /// It announced a tip at this height or above.
    pub reached_at_s: f64,
    /// From the later of two times, when the block became the node's tip and when its predecessor was indexed, to
    /// `reached_at_s`. Zero for a block that was announced before the node's tip was seen to move, or together with its
    /// predecessor.
    pub service_s: f64,
    /// From the block's being the node's tip to its predecessor's being indexed: waiting for the index.
    pub queue_s: f64,
    /// From the later of sending the block and its predecessor's being indexed, to `reached_at_s`: node and index together.
    pub pair_s: f64,
    /// Disk use of its process since its predecessor was indexed; absent where it has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskUse>,
}

/// Figures of one phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// Name in the ledger.
    pub name: String,
    pub blocks: u64,
    /// Transactions, with coinbases.
    pub txs: u64,
    /// Inputs, without those of coinbases.
    pub inputs: u64,
    pub outputs: u64,
    pub bytes: u64,
    /// Valid signatures.
    pub signatures: u64,
    /// Service time: from sending the first byte of each block to its being the tip, summed.
    pub seconds: f64,
    /// Transactions per second of service time.
    pub tx_per_s: f64,
    /// Inputs per second of service time.
    pub inputs_per_s: f64,
    /// Outputs per second of service time.
    pub outputs_per_s: f64,
    /// MiB per second of service time.
    pub mib_per_s: f64,
    /// Signatures in the blocks per second of service time.
    pub signatures_per_s: f64,
    /// Median service time of a block.
    pub service_s_median: f64,
    /// Longest service time of a block.
    pub service_s_max: f64,
    /// From sending the first byte of each block to the reply, summed.
    pub rpc_s: f64,
    /// Waiting of blocks before they were sent, summed: see [`BlockRecord::queue_s`].
    pub queue_s: f64,
    /// CPU time of the target during the service times (granularity 10 ms), summed.
    pub cpu_s: Option<f64>,
    /// Disk use of the target, summed; absent where the system or the way of feeding does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<BlockDisk>,
    /// Transactions sent before their blocks.
    pub admission: Admission,
    /// Share of transactions found in the mempool just before their block.
    pub seen_measured: f64,
}

/// Transactions sent before their blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Admission {
    pub sent: u64,
    /// Answered with a txid.
    pub accepted: u64,
    /// Bytes sent (of transactions, not of JSON).
    pub bytes: u64,
    /// From the first transaction to the last reply of each block, summed.
    pub seconds: f64,
    /// Accepted per second.
    pub tx_per_s: f64,
}

/// One block of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockRecord {
    pub height: u32,
    pub phase: String,
    /// Transactions, with the coinbase.
    pub txs: u64,
    /// Inputs, without the coinbase's.
    pub inputs: u64,
    pub outputs: u64,
    pub bytes: u64,
    /// Valid signatures.
    pub signatures: u64,
    /// Transactions sent beforehand.
    pub txs_sent: u64,
    /// Of those, answered with a txid.
    pub txs_accepted: u64,
    /// Bytes of the transactions sent beforehand.
    pub txs_sent_bytes: u64,
    /// Of the block's transactions, found in the mempool just before the block.
    pub txs_in_mempool: u64,
    /// Of those sent, so many came before a parent: the node had to keep or to reject them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub orphans: u64,
    /// First transaction sent.
    pub first_tx_at_s: Option<f64>,
    /// Last reply to a transaction.
    pub last_tx_at_s: Option<f64>,
    /// First byte of the block sent.
    pub send_at_s: f64,
    /// `submitblock` answered.
    pub reply_at_s: f64,
    /// The block is the tip, as a second connection sees it.
    pub tip_at_s: f64,
    /// `tip_at_s - send_at_s`.
    pub service_s: f64,
    /// From the moment the block was due (its predecessor is the tip, and its own transactions are
    /// answered) to `send_at_s`: preparing the body and looking at the mempool.
    pub queue_s: f64,
    /// CPU time of the target during the service time (granularity 10 ms).
    pub cpu_s: Option<f64>,
    /// Disk use of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<BlockDisk>,
    /// When the index had it.
    #[serde(default)]
    pub index: Option<IndexBlock>,
    /// What the peers saw of it, where peers delivered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relay: Option<BlockRelay>,
}

/// Disk use of a target's process around one block, or summed over the blocks of a phase. An index in the same process is a part
/// of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockDisk {
    /// During the service time.
    pub service: DiskUse,
    /// From the tip before to sending the block: its transactions, and what is written in the background.
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

/// What the peers that delivered a block saw of it, on the run's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockRelay {
    /// Its header, or the compact block where that was sent unasked.
    pub announced_at_s: f64,
    /// The node asked for it, compact or whole.
    pub asked_at_s: Option<f64>,
    /// The compact block was sent.
    pub compact_at_s: Option<f64>,
    /// The node asked for transactions of the compact block (`getblocktxn`).
    pub missing_asked_at_s: Option<f64>,
    /// They were sent (`blocktxn`).
    pub missing_sent_at_s: Option<f64>,
    /// How many.
    pub missing: u64,
    /// Their bytes.
    pub missing_bytes: u64,
    /// The whole block was sent.
    pub block_at_s: Option<f64>,
    /// Another peer heard of it from the node.
    pub seen_at_s: Option<f64>,
    /// By which message.
    pub seen_as: Option<SeenAs>,
}

/// The message in which a node announced a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SeenAs {
    /// `cmpctblock`.
    Compact,
    /// `headers`.
    Headers,
    /// `inv`.
    Inv,
}

/// One comparison with the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What is compared.
    pub what: String,
    /// What the ledger says.
    pub expected: String,
    /// What the target says; absent when it cannot tell.
    pub found: Option<String>,
}

impl Check {
    /// Whether the target contradicts the ledger.
    pub fn differs(&self) -> bool {
        self.found.as_ref().is_some_and(|found| *found != self.expected)
    }
}

/// What a profiled run of a target showed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    pub target: String,
    /// Samples, of all threads.
    pub samples: u64,
    /// The flame graph, a path inside the folder of results.
    pub picture: Option<String>,
    /// Functions with the most samples of their own, most first.
    pub top: Vec<Share>,
    /// Why there is no profile.
    pub missing: Option<String>,
    /// How it differs from that of the first target; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
}

/// CPU time of two targets at the same work, by samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub from: String,
    /// All CPU time of the first target, in seconds.
    pub before_s: f64,
    /// That of this one.
    pub after_s: f64,
    /// The differential flame graph, a path inside the folder of results.
    pub picture: Option<String>,
    /// Functions whose own time changed most, largest change first.
    pub changed: Vec<Changed>,
}

/// A function's own CPU time in two targets, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Changed {
    /// Its name, as `perf` has it.
    pub function: String,
    /// In the first target.
    pub before_s: f64,
    pub after_s: f64,
}

/// A function's share of the samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Its name, as `perf` has it.
    pub function: String,
    /// Samples in itself, not in what it calls, of all.
    pub share: f64,
}

impl Results {
    pub fn chain_of(&self, target: &TargetResults) -> &ChainSummary {
        let mut all = std::iter::once(&self.chain).chain(&self.more_chains);
        all.find(|chain| chain.distinct_keys == target.distinct_keys).unwrap_or(&self.chain)
    }

    /// All runs of all targets.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.targets.iter().flat_map(|target| &target.runs)
    }

    /// The runs that do not count. A command that made results with any of these has failed.
    pub fn void_runs(&self) -> impl Iterator<Item = &Run> {
        self.runs().filter(|run| run.status == Status::Void)
    }
}

impl TargetResults {
    /// The valid runs with this seen share.
    pub fn valid_runs(&self, seen: f64) -> Vec<&Run> {
        let wanted = in_percent(seen);
        let counts =
            |run: &&Run| run.status == Status::Valid && in_percent(run.seen_requested) == wanted;
        self.runs.iter().filter(counts).collect()
    }

    /// The seen shares of its runs, ascending.
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
