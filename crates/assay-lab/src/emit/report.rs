//! Results of an emission.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use assay_report::Table;
use assay_report::atomic_file::{self, WriteError};
use assay_report::number;
use assay_report::stats::median;
use serde::{Deserialize, Serialize};

use super::{EmitOptions, EmitTarget};
use crate::chain::{Chain, ChainHeader};
use crate::machine::Machine;
use crate::machine::clock::{iso8601, unix_ms};
use crate::plan::FeedPlan;
use crate::results::BlockRecord;

/// Version of `emit.json`.
const SCHEMA: u32 = 1;

/// Results of an emission; written as `emit.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EmitReport {
    pub schema: u32,
    /// End of the run, ISO 8601 in UTC.
    pub created: String,
    pub chain: ChainHeader,
    /// Height of its tip.
    pub chain_height: u32,
    /// Feed settings.
    pub feed: FeedPlan,
    pub targets: Vec<TargetReport>,
    pub machine: Machine,
    /// Version of Assay.
    pub assay: String,
    /// Command line that repeats the run.
    pub rerun: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetReport {
    pub name: String,
    /// Delivery method and address.
    pub address: String,
    /// First sent block.
    pub from_height: u32,
    /// Reason of an early end; the figures are then partial.
    pub fault: Option<String>,
    /// True if the user interrupted it.
    pub is_interrupted: bool,
    pub total: Totals,
    /// Error responses to transactions.
    pub tx_errors: BTreeMap<String, u64>,
    /// Blocks with times in seconds on one clock.
    pub blocks: Vec<BlockRecord>,
}

/// Sums and medians over the blocks of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    pub blocks: u64,
    /// Total size of the blocks.
    pub bytes: u64,
    /// Transactions sent, by RPC or as announcements.
    pub txs_sent: u64,
    /// Transactions that the node accepted or requested.
    pub txs_accepted: u64,
    /// Transactions in its mempool when the block arrived; 0 without RPC.
    pub txs_in_mempool: u64,
    /// Transactions sent before a parent.
    pub orphans: u64,
    /// Transactions of compact blocks that it requested.
    pub missing: u64,
    /// From the first transaction or block to the last tip.
    pub seconds: f64,
    /// Median time from a block's announcement to the tip.
    pub service_s_median: f64,
}

impl TargetReport {
    pub(super) fn blank(target: &EmitTarget) -> Self {
        Self { name: target.name.clone(), address: target.to_string(), ..Self::default() }
    }

    pub(super) fn sum_up(&mut self) {
        let sum = |count: fn(&BlockRecord) -> u64| self.blocks.iter().map(count).sum::<u64>();
        let start = self.blocks.first().map(|b| b.first_tx_at_s.unwrap_or(b.send_at_s));
        let end = self.blocks.last().map(|block| block.tip_at_s);
        let times: Vec<f64> = self.blocks.iter().map(|block| block.service_s).collect();
        self.total = Totals {
            blocks: self.blocks.len() as u64,
            bytes: sum(|block| block.bytes),
            txs_sent: sum(|block| block.txs_sent),
            txs_accepted: sum(|block| block.txs_accepted),
            txs_in_mempool: sum(|block| block.txs_in_mempool),
            orphans: sum(|block| block.orphans),
            missing: sum(|block| block.relay.as_ref().map_or(0, |relay| relay.missing)),
            seconds: start.zip(end).map_or(0.0, |(start, end)| end - start),
            service_s_median: if times.is_empty() { 0.0 } else { median(&times) },
        };
    }
}

impl EmitReport {
    pub(super) fn new(
        options: &EmitOptions,
        chain: &Chain,
        machine: &Machine,
        targets: Vec<TargetReport>,
    ) -> Self {
        Self {
            schema: SCHEMA,
            created: iso8601(unix_ms()),
            chain: chain.header.clone(),
            chain_height: chain.tip.height,
            feed: options.feed.clone(),
            targets,
            machine: machine.clone(),
            assay: options.assay_version.clone(),
            rerun: options.rerun.clone(),
        }
    }

    /// True if all nodes received everything.
    pub fn is_complete(&self) -> bool {
        self.targets.iter().all(|target| target.fault.is_none())
    }

    /// True if the user interrupted it.
    pub fn is_interrupted(&self) -> bool {
        self.targets.iter().any(|target| target.is_interrupted)
    }

    pub(super) fn write(&self, out_dir: &Path) -> Result<(), WriteError> {
        let path = out_dir.join("emit.json");
        let json = serde_json::to_vec_pretty(self)
            .map_err(|error| WriteError { path: path.clone(), source: error.into() })?;
        atomic_file::write(&path, &json)
    }

    pub fn terminal(&self) -> String {
        let head = [
            "Node",
            "Blocks",
            "MiB",
            "Sent",
            "Taken",
            "In mempool",
            "Before a parent",
            "Requested of compact blocks",
            "Seconds",
            "Median to the tip",
        ];
        let mut table = Table::new("What was sent", &head, 1);
        for target in &self.targets {
            let total = &target.total;
            table.push([
                format!("{} ({})", target.name, target.address),
                number::count(total.blocks),
                number::mib(total.bytes),
                number::count(total.txs_sent),
                number::count(total.txs_accepted),
                number::count(total.txs_in_mempool),
                number::count(total.orphans),
                number::count(total.missing),
                number::seconds(total.seconds),
                number::seconds(total.service_s_median),
            ]);
        }
        let mut text = String::new();
        table.text(&mut text);
        for target in &self.targets {
            if let Some(fault) = &target.fault {
                let _ = writeln!(text, "{}: {fault}", target.name);
            }
            if let Some(last) = target.blocks.last().filter(|_| target.fault.is_some()) {
                let _ = writeln!(text, "  sent up to height {}; --resume goes on", last.height);
            }
            for (error, count) in &target.tx_errors {
                let _ = writeln!(text, "{}: {count} transactions: {error}", target.name);
            }
        }
        text
    }
}
