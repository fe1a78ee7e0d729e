//! Results of the sync experiment with many peers.

use std::path::Path;

use assay_report::Table;
use assay_report::atomic_file::{self, WriteError};
use assay_report::number;
use assay_report::stats::median;
use serde::{Deserialize, Serialize};

use super::PeersOptions;
use crate::machine::Machine;
use crate::machine::clock::{iso8601, unix_ms};
use crate::network::Setup;

/// Version of `peers.json`.
const SCHEMA: u32 = 2;

/// Additional peer of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scenario {
    /// No additional peer.
    Good,
    /// The same, with scripts assumed valid.
    Assumed,
    /// A peer that serves headers but never a block.
    Stalls,
    /// A peer that sends blocks at a thousand bytes a second.
    Drips,
    /// A peer with more work on an invalid block, at two thirds of the chain.
    Lies,
}

impl Scenario {
    pub const ALL: [Self; 5] = [Self::Good, Self::Stalls, Self::Drips, Self::Lies, Self::Assumed];

    /// Short description.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good peers",
            Self::Assumed => "good peers, scripts assumed valid",
            Self::Stalls => "and one that sends no block",
            Self::Drips => "and one at 1 kB/s",
            Self::Lies => "and one with an invalid branch",
        }
    }
}

/// Results of the experiment; written as `peers.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeersReport {
    pub schema: u32,
    /// Start of the run, ISO 8601 in UTC.
    pub created: String,
    pub target: String,
    /// Version string of the target.
    pub version: String,
    /// Number of honest peers.
    pub links: u8,
    /// Rate of each link, bits per second.
    pub bits_per_s: f64,
    /// Round-trip time in milliseconds.
    pub round_trip_ms: f64,
    /// Recipe, scale and seed of the chain.
    pub chain: String,
    /// Total size of its blocks.
    pub chain_bytes: u64,
    /// Signatures in the chain.
    pub signatures: u64,
    /// Runs in order.
    pub runs: Vec<ScenarioRun>,
    pub machine: Machine,
    /// Version of Assay.
    pub assay: String,
    /// Command line that repeats the run.
    pub rerun: String,
}

/// One sync.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScenarioRun {
    /// Number of its round, from 0.
    pub round: usize,
    pub scenario: Scenario,
    /// Seconds from the first connection to the tip.
    pub time_s: f64,
    /// Seconds until the honest links had carried 99 % of their total.
    pub fetched_s: f64,
    /// Bytes carried by then.
    pub fetched_bytes: u64,
    /// CPU seconds of the target during the sync.
    pub cpu_s: Option<f64>,
    /// CPU seconds of the serving node.
    pub source_cpu_s: Option<f64>,
    /// CPU seconds of this program, which runs the links.
    pub links_cpu_s: Option<f64>,
    /// CPU seconds of all programs of the machine.
    pub busy_cpu_s: Option<f64>,
    /// Cores available to them.
    pub cores: usize,
    /// Peak resident memory of the target.
    pub memory_peak_bytes: Option<u64>,
    /// Honest peers connected at the end.
    pub good_connected: usize,
    /// True if the additional peer was still connected.
    pub is_extra_connected: Option<bool>,
}

impl PeersReport {
    pub(super) fn blank(options: &PeersOptions, setup: &Setup<'_>, machine: &Machine) -> Self {
        let (header, tip) = (&setup.chain.header, &setup.chain.tip);
        Self {
            schema: SCHEMA,
            created: iso8601(unix_ms()),
            target: setup.target.name.clone(),
            version: setup.target.version.clone(),
            links: options.links,
            bits_per_s: options.bits_per_s,
            round_trip_ms: options.round_trip.as_secs_f64() * 1000.0,
            chain: format!("{}, scale {}, seed {}", header.recipe, header.scale, header.seed),
            chain_bytes: tip.bytes,
            signatures: tip.signatures,
            runs: Vec::new(),
            machine: machine.clone(),
            assay: options.network.software.assay.clone(),
            rerun: options.network.rerun.clone(),
        }
    }

    pub(super) fn write(&self, out_dir: &Path) -> Result<(), WriteError> {
        let path = out_dir.join("peers.json");
        let json = serde_json::to_vec_pretty(self)
            .map_err(|error| WriteError { path: path.clone(), source: error.into() })?;
        atomic_file::write(&path, &json)
    }

    fn of(&self, scenario: Scenario) -> impl Iterator<Item = &ScenarioRun> {
        self.runs.iter().filter(move |run| run.scenario == scenario)
    }

    /// Combined rate of all links.
    fn links_bytes_per_s(&self) -> f64 {
        f64::from(self.links) * self.bits_per_s / 8.0
    }

    /// Fraction of the combined rate that a sync used.
    fn share(&self, run: &ScenarioRun) -> f64 {
        self.chain_bytes as f64 / run.time_s / self.links_bytes_per_s()
    }

    /// The same until nearly everything was fetched.
    fn fetch_share(&self, run: &ScenarioRun) -> f64 {
        run.fetched_bytes as f64 / run.fetched_s / self.links_bytes_per_s()
    }

    /// Times of a scenario over those of honest peers alone, round by round.
    fn ratios(&self, scenario: Scenario) -> Vec<f64> {
        let good = |round| self.of(Scenario::Good).find(move |run| run.round == round);
        let ratio = |run: &ScenarioRun| good(run.round).map(|good| run.time_s / good.time_s);
        self.of(scenario).filter_map(ratio).collect()
    }

    pub fn terminal(&self) -> String {
        let mut text = format!(
            "{} ({}), {} links of {:.0} Mbit/s and {:.0} ms round trip, {}: {} MiB, {} signatures\n\n",
            self.target,
            self.version,
            self.links,
            self.bits_per_s / 1e6,
            self.round_trip_ms,
            self.chain,
            number::mib(self.chain_bytes),
            number::count(self.signatures),
        );
        let scenarios = Scenario::ALL.map(|scenario| (scenario, self.of(scenario).collect()));
        let scenarios: Vec<(Scenario, Vec<&ScenarioRun>)> =
            scenarios.into_iter().filter(|(_, runs): &(_, Vec<_>)| !runs.is_empty()).collect();
        let head = [
            "peers",
            "runs",
            "time",
            "range",
            "of the links' rate",
            "/ good",
            "memory",
            "good ones left",
            "other left",
        ];
        let mut table = Table::new("Medians over runs; ratios within rounds", &head, 1);
        for (scenario, runs) in &scenarios {
            table.push(self.row(*scenario, runs));
        }
        table.text(&mut text);
        text.push('\n');
        let head = [
            "peers",
            "fetched after",
            "of the links' rate until then",
            "node's CPU time",
            "of all cores: node",
            "source",
            "links",
            "other programs",
            "idle",
        ];
        let title = "What bounds it: nearly all bytes had come after the time named; CPU time of the whole sync";
        let mut table = Table::new(title, &head, 1);
        for (scenario, runs) in &scenarios {
            table.push(self.bounds(*scenario, runs));
        }
        table.text(&mut text);
        text
    }

    fn row(&self, scenario: Scenario, runs: &[&ScenarioRun]) -> [String; 9] {
        let times: Vec<f64> = runs.iter().map(|run| run.time_s).collect();
        let shares: Vec<f64> = runs.iter().map(|run| self.share(run)).collect();
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times.iter().copied().fold(0.0, f64::max);
        let memory = runs.iter().filter_map(|run| run.memory_peak_bytes).max();
        let left = runs.iter().filter(|run| run.is_extra_connected == Some(true)).count();
        let has_other = runs.iter().any(|run| run.is_extra_connected.is_some());
        [
            scenario.name().to_owned(),
            runs.len().to_string(),
            number::seconds(median(&times)),
            format!("{} to {}", number::seconds(least), number::seconds(most)),
            number::percent(median(&shares)),
            number::ratio(median(&self.ratios(scenario))),
            number::mib(memory.unwrap_or_default()),
            runs.iter().map(|run| run.good_connected).min().unwrap_or_default().to_string(),
            if has_other { left.to_string() } else { String::new() },
        ]
    }

    fn bounds(&self, scenario: Scenario, runs: &[&ScenarioRun]) -> [String; 9] {
        let middle = |of: &dyn Fn(&ScenarioRun) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter_map(|run| of(run)).collect();
            (!values.is_empty()).then(|| median(&values))
        };
        let seconds = |value: Option<f64>| value.map(number::seconds).unwrap_or_default();
        let percent = |value: Option<f64>| value.map(number::percent).unwrap_or_default();
        let others = |run: &ScenarioRun| {
            let own_s = run.cpu_s? + run.source_cpu_s? + run.links_cpu_s?;
            Some((run.busy_cpu_s? - own_s).max(0.0))
        };
        let part = |of: &dyn Fn(&ScenarioRun) -> Option<f64>| {
            percent(middle(&|run| Some(of(run)? / run.capacity_s())))
        };
        [
            scenario.name().to_owned(),
            seconds(middle(&|run| Some(run.fetched_s))),
            percent(middle(&|run| Some(self.fetch_share(run)))),
            seconds(middle(&|run| run.cpu_s)),
            part(&|run| run.cpu_s),
            part(&|run| run.source_cpu_s),
            part(&|run| run.links_cpu_s),
            part(&others),
            part(&|run| Some((run.capacity_s() - run.busy_cpu_s?).max(0.0))),
        ]
    }
}

impl ScenarioRun {
    /// Available CPU seconds.
    fn capacity_s(&self) -> f64 {
        self.time_s * self.cores.max(1) as f64
    }
}
