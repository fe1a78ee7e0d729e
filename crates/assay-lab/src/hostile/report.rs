//! Results of the hostile-peer experiment.

use std::path::Path;

use assay_report::Table;
use assay_report::atomic_file::{self, WriteError};
use assay_report::number;
use serde::{Deserialize, Serialize};

use super::swarm::AttackReport;
use super::{HostileOptions, middle};
use crate::machine::Machine;
use crate::machine::clock::{iso8601, unix_ms};
use crate::network::Setup;

/// Version of `hostile.json`.
const SCHEMA: u32 = 1;
/// Honest peers of the target.
const HONEST: usize = 4;

/// Results of the experiment; written as `hostile.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostileReport {
    pub schema: u32,
    /// Start of the run, ISO 8601 in UTC.
    pub created: String,
    pub target: String,
    /// Version string of the target.
    pub version: String,
    pub peers: usize,
    /// Recipe, scale and seed of the chain.
    pub chain: String,
    /// Seed of the attacks.
    pub seed: u64,
    /// Runs in order.
    pub runs: Vec<RunReport>,
    pub machine: Machine,
    /// Version of Assay.
    pub assay: String,
    /// Command line that repeats the run.
    pub rerun: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunReport {
    /// Number of its pair, from 0.
    pub pair: usize,
    /// True with hostile peers.
    pub is_hostile: bool,
    /// Seconds until the target had the chain.
    pub sync_s: f64,
    /// CPU seconds of the target during the sync.
    pub sync_cpu_s: Option<f64>,
    /// Seconds until both observers had the chain, too.
    pub followed_s: f64,
    /// Seconds from the first source to the first observer, per transaction.
    pub tx_relay_s: Vec<f64>,
    /// The same per block.
    pub block_relay_s: Vec<f64>,
    /// Honest connections of the target at the end, of four.
    pub honest_connected: usize,
    /// Peak resident memory of the target.
    pub memory_peak_bytes: Option<u64>,
    /// Results per attack.
    pub attacks: Vec<AttackReport>,
}

impl HostileReport {
    pub(super) fn blank(options: &HostileOptions, setup: &Setup<'_>, machine: &Machine) -> Self {
        let (header, target) = (&setup.chain.header, &setup.target);
        Self {
            schema: SCHEMA,
            created: iso8601(unix_ms()),
            target: target.name.clone(),
            version: target.version.clone(),
            peers: options.peers,
            chain: format!("{}, scale {}, seed {}", header.recipe, header.scale, header.seed),
            seed: options.seed,
            runs: Vec::new(),
            machine: machine.clone(),
            assay: options.network.assay_version.clone(),
            rerun: options.network.rerun.clone(),
        }
    }

    pub(super) fn write(&self, out_dir: &Path) -> Result<(), WriteError> {
        let path = out_dir.join("hostile.json");
        let json = serde_json::to_vec_pretty(self)
            .map_err(|error| WriteError { path: path.clone(), source: error.into() })?;
        atomic_file::write(&path, &json)
    }

    /// True if the target kept all honest peers in every run.
    pub fn is_good(&self) -> bool {
        self.runs.iter().all(|run| run.honest_connected == HONEST)
    }

    fn side(&self, is_hostile: bool) -> impl Iterator<Item = &RunReport> {
        self.runs.iter().filter(move |run| run.is_hostile == is_hostile)
    }

    /// Medians of a figure, without and with hostile peers, and of their ratios in pairs.
    fn figure(&self, of: impl Fn(&RunReport) -> f64) -> (f64, f64, Vec<f64>) {
        let values = |is_hostile| self.side(is_hostile).map(&of).collect::<Vec<f64>>();
        let (quiet, hostile) = (values(false), values(true));
        let ratios = quiet.iter().zip(&hostile).map(|(quiet, hostile)| hostile / quiet).collect();
        (middle(&quiet), middle(&hostile), ratios)
    }

    pub fn terminal(&self) -> String {
        let mut text = format!(
            "{} ({}), {} hostile peers and {HONEST} honest ones, {}\n{}\n\n",
            self.target,
            self.version,
            self.peers,
            self.chain,
            self.answer()
        );
        let head = ["", "quiet", "hostile", "hostile / quiet", "range"];
        let mut table = Table::new("Medians over runs; ratios within pairs", &head, 1);
        let mut row = |name: &str, of: &dyn Fn(&RunReport) -> f64, unit: &dyn Fn(f64) -> String| {
            let (quiet, hostile, ratios) = self.figure(of);
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let most = ratios.iter().copied().fold(0.0, f64::max);
            let range = format!("{} to {}", number::ratio(least), number::ratio(most));
            table.push([
                name.to_owned(),
                unit(quiet),
                unit(hostile),
                number::ratio(middle(&ratios)),
                range,
            ]);
        };
        let memory = |run: &RunReport| run.memory_peak_bytes.unwrap_or_default() as f64;
        row("sync, time", &|run| run.sync_s, &number::seconds);
        row("sync, CPU time", &|run| run.sync_cpu_s.unwrap_or_default(), &number::seconds);
        row("nodes behind it have the chain", &|run| run.followed_s, &number::seconds);
        row("block, two hops", &|run| middle(&run.block_relay_s), &number::seconds);
        row("transaction, two hops", &|run| middle(&run.tx_relay_s), &number::seconds);
        row("memory at most", &memory, &|bytes| number::mib(bytes as u64));
        table.text(&mut text);
        text.push('\n');
        attack_table(&self.attacks()).text(&mut text);
        text
    }

    /// Summary sentence.
    fn answer(&self) -> String {
        let ratio = |of: &dyn Fn(&RunReport) -> f64| number::ratio(middle(&self.figure(of).2));
        let memory = self.side(true).filter_map(|run| run.memory_peak_bytes).max();
        let least = self.runs.iter().map(|run| run.honest_connected).min().unwrap_or_default();
        format!(
            "of quiet: sync {}, blocks {}, transactions {}; memory {} MiB at most; honest peers connected in the end: {least} of {HONEST} in the worst run",
            ratio(&|run| run.sync_s),
            ratio(&|run| middle(&run.block_relay_s)),
            ratio(&|run| middle(&run.tx_relay_s)),
            number::mib(memory.unwrap_or_default()),
        )
    }

    /// Attacks summed over runs.
    fn attacks(&self) -> Vec<AttackReport> {
        let mut sums: Vec<AttackReport> = Vec::new();
        for report in self.side(true).flat_map(|run| &run.attacks) {
            let Some(sum) = sums.iter_mut().find(|sum| sum.attack == report.attack) else {
                sums.push(report.clone());
                continue;
            };
            sum.connections += report.connections;
            sum.not_let_in += report.not_let_in;
            sum.disconnected += report.disconnected;
            sum.open += report.open;
            sum.messages += report.messages;
            sum.bytes_sent += report.bytes_sent;
            sum.bytes_received += report.bytes_received;
        }
        sums
    }
}

/// Table of the results per attack.
pub fn attack_table(attacks: &[AttackReport]) -> Table {
    let head = [
        "attack",
        "peers",
        "connections",
        "not let in",
        "disconnected",
        "open in the end",
        "messages",
        "sent",
        "received",
    ];
    let mut table = Table::new("Hostile peers, all runs", &head, 1);
    for report in attacks {
        table.push([
            report.attack.clone(),
            report.peers.to_string(),
            number::count(report.connections),
            number::count(report.not_let_in),
            number::count(report.disconnected),
            number::count(report.open),
            number::count(report.messages),
            number::mib(report.bytes_sent),
            number::mib(report.bytes_received),
        ]);
    }
    table
}
