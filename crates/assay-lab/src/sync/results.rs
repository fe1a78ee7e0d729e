//! Results of a comparison as JSON.

use assay_report::stats::ratio::{Ratio, Summary};
use serde::{Deserialize, Serialize};

use super::Subject;
use crate::machine::Machine;
use crate::process::Usage;
use crate::results::{Results, Run};

/// One process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncRun {
    /// `assay`, `kernel`, `assay on one core`, `assay on two cores`, `assay, sampled`, `assay, not sampled`.
    pub subject: String,
    pub pair: usize,
    /// The whole process, observed from outside.
    #[serde(flatten)]
    pub usage: Usage,
    /// Finding and connecting blocks, by its own clock.
    pub connect_s: f64,
    /// Counting and hashing the UTXO set at the end, by its own clock; the kernel does not do this.
    pub hash_s: Option<f64>,
    /// True if disturbed by the rules of the report.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_disturbed: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Side {
    /// The whole process, from start to end.
    pub wall_s: Summary,
    /// CPU time of all its threads.
    pub cpu_s: Summary,
    /// Peak memory.
    pub rss_bytes: Summary,
    /// Finding and connecting blocks, by its own clock.
    pub connect_s: Summary,
}

/// Settings of the comparison.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SyncSettings {
    pub pairs: u32,
    /// Cores of both sides.
    pub cores: Vec<usize>,
    /// Script check threads of both sides.
    pub threads: usize,
    /// Coin cache of both sides in MiB.
    pub db_cache_mib: u32,
    pub recipe: String,
    pub seed: u64,
    /// Scale of the chain.
    pub scale: f64,
    /// True if every output of the chain has a key of its own.
    pub distinct_keys: bool,
    /// Handling of the page cache.
    pub page_cache: String,
}

/// The comparison. Every ratio is the kernel's figure over Assay's: above 1 Assay is faster or smaller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SyncResults {
    pub schema: u32,
    pub kind: String,
    /// Wall time of the whole process.
    pub wall_ratio: f64,
    /// CPU time of the whole process.
    pub cpu_ratio: f64,
    /// Peak memory.
    pub rss_ratio: f64,
    /// Assay's wall time on one core over that on two; absent unless requested.
    pub two_cores_ratio: Option<f64>,
    /// The same for finding and connecting blocks by Assay's clock, without writing out and hashing the UTXO set at the end.
    pub two_cores_connect_ratio: Option<f64>,
    /// Assay's wall time with signature spot checks over that without; absent unless requested.
    #[serde(default)]
    pub sample_ratio: Option<f64>,
    /// The same for CPU time.
    #[serde(default)]
    pub sample_cpu_ratio: Option<f64>,
    /// Interval of `sample_ratio`.
    #[serde(default)]
    pub sample_interval: Option<Ratio>,
    /// Interval of `sample_cpu_ratio`.
    #[serde(default)]
    pub sample_cpu_interval: Option<Ratio>,
    /// Interval of `wall_ratio`.
    pub wall_interval: Option<Ratio>,
    /// Interval of `cpu_ratio`.
    pub cpu_interval: Option<Ratio>,
    /// Interval of `rss_ratio`.
    pub rss_interval: Option<Ratio>,
    /// Interval of `two_cores_ratio`.
    pub two_cores_interval: Option<Ratio>,
    /// Interval of `two_cores_connect_ratio`.
    pub two_cores_connect_interval: Option<Ratio>,
    /// Verified inputs, without coinbases.
    pub inputs: u64,
    /// Signatures in them.
    pub signatures: u64,
    pub txs: u64,
    pub block_bytes: u64,
    /// Final height of both sides.
    pub height: u32,
    /// Final tip of both sides.
    pub tip: String,
    /// Final UTXO set size of both sides.
    pub coins: u64,
    /// Its total amount in satoshi.
    pub amount_sat: u64,
    /// Its MuHash.
    pub muhash: String,
    pub assay: Side,
    pub kernel: Side,
    pub one_core: Option<Side>,
    /// Assay's runs on two cores.
    pub two_cores: Option<Side>,
    /// Assay's runs with signature spot checks.
    #[serde(default)]
    pub sampled: Option<Side>,
    /// Assay's runs without spot checks.
    #[serde(default)]
    pub unsampled: Option<Side>,
    /// All runs in execution order.
    pub runs: Vec<SyncRun>,
    /// Settings of the comparison.
    pub settings: SyncSettings,
    pub kernel_version: String,
    pub machine: Machine,
    /// Caveats.
    pub notes: Vec<String>,
}

impl SyncResults {
    /// Summarises `runs`, which are those of `results`.
    pub(super) fn new(results: Results, settings: SyncSettings, runs: Vec<SyncRun>) -> Self {
        let versions = |run: &Run| run.process.as_ref()?.versions.clone();
        let kernel_version = results.runs().find_map(versions).unwrap_or_default();
        let Results { chain, machine, .. } = results;
        let of = |subject: Subject| in_pairs(&runs, subject);
        let ratio = |value: fn(&SyncRun) -> f64, above: Subject, below: Subject| {
            let values = |subject| of(subject).iter().map(|run| value(run)).collect::<Vec<f64>>();
            Ratio::of_pairs(&values(above), &values(below))
        };
        let (ours, kernel) = (Subject::Ours, Subject::Kernel);
        let wall = ratio(wall_s, kernel, ours);
        let cpu = ratio(cpu_s, kernel, ours);
        let rss = ratio(rss_bytes, kernel, ours);
        let cores = ratio(wall_s, Subject::OneCore, Subject::TwoCores);
        let connect = ratio(connect_s, Subject::OneCore, Subject::TwoCores);
        let sample = ratio(wall_s, Subject::Sampled, Subject::Unsampled);
        let sample_cpu = ratio(cpu_s, Subject::Sampled, Subject::Unsampled);
        let median = |ratio: &Option<Ratio>| ratio.map_or(0.0, |ratio| ratio.median);
        let optional =
            |subject| Some(of(subject)).filter(|runs| !runs.is_empty()).map(|runs| side(&runs));
        Self {
            schema: 1,
            kind: "sync".to_owned(),
            wall_ratio: median(&wall),
            cpu_ratio: median(&cpu),
            rss_ratio: median(&rss),
            two_cores_ratio: cores.map(|ratio| ratio.median),
            two_cores_connect_ratio: connect.map(|ratio| ratio.median),
            sample_ratio: sample.map(|ratio| ratio.median),
            sample_cpu_ratio: sample_cpu.map(|ratio| ratio.median),
            sample_interval: sample,
            sample_cpu_interval: sample_cpu,
            wall_interval: wall,
            cpu_interval: cpu,
            rss_interval: rss,
            two_cores_interval: cores,
            two_cores_connect_interval: connect,
            inputs: chain.inputs,
            signatures: chain.signatures,
            txs: chain.txs,
            block_bytes: chain.bytes,
            height: chain.height,
            tip: chain.tip,
            coins: chain.utxo_count,
            amount_sat: chain.utxo_amount,
            muhash: chain.utxo_muhash,
            assay: side(&of(ours)),
            kernel: side(&of(kernel)),
            one_core: optional(Subject::OneCore),
            two_cores: optional(Subject::TwoCores),
            sampled: optional(Subject::Sampled),
            unsampled: optional(Subject::Unsampled),
            settings,
            kernel_version,
            machine,
            notes: notes(&runs),
            runs,
        }
    }
}

const NOTES: [&str; 4] = [
    "Whole processes, from start to end, each with a new folder; writing the coins out at the end is part of it on both sides.",
    "Our time holds counting and hashing the coins (MuHash) as well, which the kernel is not asked for.",
    "The kernel takes blocks by its process_block and stores them with undo data; ours reads them where they are and stores coins only.",
    "Tip, coin count, amount and MuHash of both were compared with the ledger after each run; the kernel's coins were read out of its database, outside the time measured.",
];

/// Caveats with the number of disturbed runs, which are kept because the number of pairs is fixed in advance.
fn notes(runs: &[SyncRun]) -> Vec<String> {
    let disturbed = runs.iter().filter(|run| run.is_disturbed).count();
    let note = format!(
        "Something else used the machine during {disturbed} of {} runs; they are included.",
        runs.len()
    );
    NOTES.map(str::to_owned).into_iter().chain((disturbed > 0).then_some(note)).collect()
}

fn wall_s(run: &SyncRun) -> f64 {
    run.usage.wall_s
}

fn cpu_s(run: &SyncRun) -> f64 {
    run.usage.cpu_s()
}

fn connect_s(run: &SyncRun) -> f64 {
    run.connect_s
}

fn rss_bytes(run: &SyncRun) -> f64 {
    run.usage.rss_bytes_max as f64
}

/// Runs of one subject in order of their pairs.
fn in_pairs(runs: &[SyncRun], subject: Subject) -> Vec<&SyncRun> {
    let mut found: Vec<&SyncRun> =
        runs.iter().filter(|run| run.subject == subject.name()).collect();
    found.sort_by_key(|run| run.pair);
    found
}

fn side(runs: &[&SyncRun]) -> Side {
    let of = |value: fn(&SyncRun) -> f64| {
        Summary::of(&runs.iter().map(|run| value(run)).collect::<Vec<f64>>())
    };
    Side {
        wall_s: of(wall_s),
        cpu_s: of(cpu_s),
        rss_bytes: of(rss_bytes),
        connect_s: of(connect_s),
    }
}
