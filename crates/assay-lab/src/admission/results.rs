//! `results.json` of a mempool benchmark, schema version 1.

use std::collections::BTreeMap;

use assay_report::stats::ratio::Ratio;
use assay_report::{LoadError, ResultsFile};
use serde::{Deserialize, Serialize};

use super::plan::{Case, MempoolPlan, What};
use crate::machine::Machine;
use crate::target::Target;

pub(super) const SCHEMA: u32 = 1;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MempoolResults {
    pub schema: u32,
    /// Always `mempool`.
    pub kind: String,
    /// End of the run, ISO 8601 in UTC.
    pub created: String,
    /// The plan with the values used.
    pub plan: MempoolPlan,
    pub targets: Vec<TargetEntry>,
    /// One entry per round, case and target.
    pub runs: Vec<CaseRun>,
    pub machine: Machine,
    /// Version of Assay.
    pub assay: String,
    /// Command line that repeats the run.
    pub rerun: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetEntry {
    pub name: String,
    /// `assay`, `bitcoin-core` or `bitcoin-knots`.
    pub family: String,
    /// Version string of the node.
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseRun {
    pub case: String,
    pub target: String,
    /// The round, from 0.
    pub repeat: u32,
    /// Transactions sent.
    pub sent: u64,
    /// Admitted transactions: by RPC results, or by mempool contents when sent by a peer.
    pub accepted: u64,
    /// Rejected transactions by reason.
    pub rejected: BTreeMap<String, u64>,
    /// Orphans that the node counted (`getorphantxs`), summed over waves; absent without that call or without orphans.
    pub orphans: Option<u64>,
    /// Replaced transactions.
    pub replaced: u64,
    /// Admitted transactions evicted later.
    pub evicted: u64,
    /// Mempool entries afterwards (`getmempoolinfo`).
    pub in_mempool: u64,
    /// Their virtual size.
    pub vbytes: u64,
    /// Their memory by the node's own count.
    pub usage_bytes: u64,
    /// Minimum fee rate, satoshi per 1,000 virtual bytes.
    pub min_sat_per_kvb: u64,
    /// From the first byte to the last response; from a peer, until all are in the mempool.
    pub seconds: f64,
    /// Admitted transactions per second.
    pub tx_per_s: f64,
    /// SHA-256 of the sorted txids in the mempool.
    pub mempool_sha256: String,
    /// Detected faults; empty if none.
    pub faults: Vec<String>,
}

impl TargetEntry {
    pub(super) fn of(target: &Target) -> Self {
        Self {
            name: target.name.clone(),
            family: target.family.as_str().to_owned(),
            version: target.version.clone(),
        }
    }
}

/// Parses results.
///
/// # Errors
/// On another schema version.
pub fn parse(file: ResultsFile) -> Result<MempoolResults, LoadError> {
    file.parse("results of a plan of the mempool", SCHEMA..=SCHEMA)
}

impl MempoolResults {
    /// Marks runs whose mempool differs from that of the first target in the same round. The contents of a full mempool depend on
    /// how a program counts its memory, so that case is not compared.
    pub(super) fn agree(&mut self) {
        let Some(first) = self.targets.first().map(|target| target.name.clone()) else { return };
        let is_compared = |case: &Case| case.what != What::Evict;
        let compared: Vec<&str> =
            self.plan.cases.iter().filter(|c| is_compared(c)).map(|c| c.name.as_str()).collect();
        let key = |run: &CaseRun| (run.case.clone(), run.repeat);
        let of_first = self.runs.iter().filter(|run| run.target == first);
        let of_first: BTreeMap<_, _> =
            of_first.map(|run| (key(run), run.mempool_sha256.clone())).collect();
        for run in &mut self.runs {
            let expected = of_first.get(&key(run));
            if compared.contains(&run.case.as_str()) && expected != Some(&run.mempool_sha256) {
                run.faults.push(format!("another mempool than {first}'s"));
            }
        }
    }

    pub fn faulty(&self) -> impl Iterator<Item = &CaseRun> {
        self.runs.iter().filter(|run| !run.faults.is_empty())
    }

    /// Runs of a case on a target, by round.
    pub(super) fn of(&self, case: &str, target: &str) -> Vec<&CaseRun> {
        self.runs.iter().filter(|run| run.case == case && run.target == target).collect()
    }

    /// Admitted per second: median over the rounds with its interval.
    pub(super) fn rate(&self, case: &str, target: &str) -> Option<Ratio> {
        let rates: Vec<f64> = self.of(case, target).iter().map(|run| run.tx_per_s).collect();
        // A ratio to one equals the rate itself.
        Ratio::of_pairs(&rates, &vec![1.0; rates.len()])
    }

    /// Rate of the first target over that of another, round by round.
    pub(super) fn ratio(&self, case: &str, other: &str) -> Option<Ratio> {
        let rates = |target: &str| -> Vec<f64> {
            self.of(case, target).iter().map(|run| run.tx_per_s).collect()
        };
        Ratio::of_pairs(&rates(&self.targets.first()?.name), &rates(other))
    }
}
