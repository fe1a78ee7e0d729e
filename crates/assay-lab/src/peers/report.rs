//! Record of the sync experiment with many peers.

use assay_report::record::{Outcome, Record, Unit};
use assay_report::stats::median;

use super::PeersOptions;
use crate::network::Setup;

/// Additional peer of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scenario {
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
    pub(super) const ALL: [Self; 5] =
        [Self::Good, Self::Stalls, Self::Drips, Self::Lies, Self::Assumed];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Good => "good peers",
            Self::Assumed => "good peers, scripts assumed valid",
            Self::Stalls => "and one that sends no block",
            Self::Drips => "and one at 1 kB/s",
            Self::Lies => "and one with an invalid branch",
        }
    }
}

#[derive(Debug)]
pub(super) struct ScenarioRun {
    /// Number of its round, from 0.
    pub(super) round: usize,
    pub(super) scenario: Scenario,
    /// Seconds from the first connection to the tip.
    pub(super) time_s: f64,
    /// Seconds until the honest links had carried 99 % of their total.
    pub(super) fetched_s: f64,
    /// Bytes carried by then.
    pub(super) fetched_bytes: u64,
    /// CPU seconds of the target during the sync.
    pub(super) cpu_s: Option<f64>,
    /// CPU seconds of the serving node.
    pub(super) source_cpu_s: Option<f64>,
    /// CPU seconds of this program, which runs the links.
    pub(super) links_cpu_s: Option<f64>,
    /// CPU seconds of all programs of the machine.
    pub(super) busy_cpu_s: Option<f64>,
    /// Cores available to them.
    pub(super) cores: usize,
    /// Peak resident memory of the target.
    pub(super) memory_peak_bytes: Option<u64>,
    /// Honest peers connected at the end.
    pub(super) good_connected: usize,
    /// True if the additional peer was still connected.
    pub(super) is_extra_connected: Option<bool>,
}

pub(super) fn record(options: &PeersOptions, setup: &Setup<'_>, runs: &[ScenarioRun]) -> Record {
    let mut record = setup.record("peers", &options.network);
    let (name, tip) = (setup.target.name.as_str(), &setup.chain.tip);
    record.set("blocks of the chain", Unit::Bytes.format(tip.bytes as f64));
    record.set("signatures", Unit::Count.format(tip.signatures as f64));
    record.set("honest peers", options.links);
    record.set("rate of each link", format!("{} Mbit/s", options.bits_per_s / 1e6));
    let round_trip_ms = options.round_trip.as_secs_f64() * 1000.0;
    record.set("round trip", format!("{round_trip_ms} ms"));
    record.set("cores", runs.first().map_or(0, |run| run.cores));

    let links_bytes_per_s = f64::from(options.links) * options.bits_per_s / 8.0;
    let share = |bytes: u64, seconds: f64| 100.0 * bytes as f64 / seconds / links_bytes_per_s;
    for run in runs {
        let is_base = |one: &&ScenarioRun| (one.round, one.scenario) == (run.round, Scenario::Good);
        let base = runs.iter().find(is_base);
        let capacity_s = run.time_s * run.cores.max(1) as f64;
        let of_cores = |cpu_s: Option<f64>| cpu_s.map(|cpu_s| 100.0 * cpu_s.max(0.0) / capacity_s);
        let own_s = || Some(run.cpu_s? + run.source_cpu_s? + run.links_cpu_s?);
        let others_s = run.busy_cpu_s.zip(own_s()).map(|(busy, own)| busy - own);
        let number = |count: usize| Some(count as f64);
        record.add(
            (name, run.scenario.name(), Some(run.round as u32)),
            &[
                ("time", Unit::Seconds, Some(run.time_s)),
                ("time / good peers", Unit::Ratio, base.map(|base| run.time_s / base.time_s)),
                ("of the links' rate", Unit::Percent, Some(share(tip.bytes, run.time_s))),
                ("peak memory", Unit::Bytes, run.memory_peak_bytes.map(|bytes| bytes as f64)),
                ("honest peers left", Unit::Count, number(run.good_connected)),
                (
                    "other peer left",
                    Unit::Count,
                    run.is_extra_connected.map(|is| u8::from(is).into()),
                ),
                ("99 % fetched after", Unit::Seconds, Some(run.fetched_s)),
                ("fetched by then", Unit::Bytes, Some(run.fetched_bytes as f64)),
                (
                    "of the links' rate until then",
                    Unit::Percent,
                    Some(share(run.fetched_bytes, run.fetched_s)),
                ),
                ("CPU time of the node", Unit::Seconds, run.cpu_s),
                ("CPU time of the source", Unit::Seconds, run.source_cpu_s),
                ("CPU time of the links", Unit::Seconds, run.links_cpu_s),
                ("CPU time of all programs", Unit::Seconds, run.busy_cpu_s),
                ("of all cores: node", Unit::Percent, of_cores(run.cpu_s)),
                ("of all cores: source", Unit::Percent, of_cores(run.source_cpu_s)),
                ("of all cores: links", Unit::Percent, of_cores(run.links_cpu_s)),
                ("of all cores: other programs", Unit::Percent, of_cores(others_s)),
                (
                    "of all cores: idle",
                    Unit::Percent,
                    of_cores(run.busy_cpu_s.map(|busy| capacity_s - busy)),
                ),
            ],
        );
    }
    let time_s = median(&record.values(Scenario::Good.name(), "time"));
    record.headline = format!(
        "{name} syncs from {} honest peers in {}, {} of the links' rate.",
        options.links,
        Unit::Seconds.format(time_s),
        Unit::Percent.format(share(tip.bytes, time_s))
    );
    record.check("each sync reaches the last block", Outcome::of(runs.len() as u64, None));
    record
}
