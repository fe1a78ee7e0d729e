//! Record of the sync experiment with many peers.

use assay_report::record::{Outcome, Record, Unit, bytes, count};
use assay_report::stats::median;

use super::PeersOptions;
use crate::network::Setup;
use crate::process::interference::Interference;

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

/// Raw figures of a sync.
#[derive(Debug)]
pub(super) struct ScenarioRun {
    /// Number of its round, from 0.
    pub(super) round: usize,
    pub(super) scenario: Scenario,
    /// Seconds from the first connection to the tip.
    pub(super) time_s: f64,
    /// Seconds until the honest links had carried 99 % of their total, and the bytes carried by then.
    pub(super) fetched: (f64, u64),
    /// CPU seconds of the target, the serving node, and this program, which runs the links.
    pub(super) cpu_s: [Option<f64>; 3],
    /// The whole machine.
    pub(super) surroundings: Interference,
    /// Peak resident memory of the target.
    pub(super) memory_peak_bytes: Option<u64>,
    /// Honest peers connected at the end.
    pub(super) good_connected: usize,
    /// True if the additional peer was still connected.
    pub(super) is_extra_connected: Option<bool>,
}

pub(super) fn record(options: &PeersOptions, setup: &Setup<'_>, runs: &[ScenarioRun]) -> Record {
    let mut record = setup.record("peers");
    let (name, tip) = (setup.target.name.as_str(), &setup.chain.tip);
    record.set("blocks of the chain", Unit::Bytes.format(tip.bytes as f64));
    record.set("signatures", Unit::Count.format(tip.signatures as f64));
    record.set("honest peers", options.links);
    record.set("rate of each link", format!("{} Mbit/s", options.bits_per_s / 1e6));
    let round_trip_ms = options.round_trip.as_secs_f64() * 1000.0;
    record.set("round trip", format!("{round_trip_ms} ms"));
    record.set("cores", runs.first().map_or(0, |run| run.surroundings.cores));

    let links_bytes_per_s = f64::from(options.links) * options.bits_per_s / 8.0;
    let share = |bytes: u64, seconds: f64| 100.0 * bytes as f64 / seconds / links_bytes_per_s;
    for run in runs {
        let is_base = |one: &&ScenarioRun| (one.round, one.scenario) == (run.round, Scenario::Good);
        let base = runs.iter().find(is_base);
        let Interference { cores, busy_s, .. } = run.surroundings;
        let capacity_s = run.time_s * cores.max(1) as f64;
        let of_cores = |cpu_s: Option<f64>| cpu_s.map(|cpu_s| 100.0 * cpu_s.max(0.0) / capacity_s);
        let [node_s, source_s, links_s] = run.cpu_s;
        let own_s = || Some(node_s? + source_s? + links_s?);
        let others_s = busy_s.zip(own_s()).map(|(busy, own)| busy - own);
        let (fetched_s, fetched_bytes) = run.fetched;
        record.add(
            (name, run.scenario.name(), Some(run.round as u32)),
            &[
                ("time", Unit::Seconds, Some(run.time_s)),
                ("time / good peers", Unit::Ratio, base.map(|base| run.time_s / base.time_s)),
                ("of the links' rate", Unit::Percent, Some(share(tip.bytes, run.time_s))),
                ("peak memory", Unit::Bytes, run.memory_peak_bytes.map(|bytes| bytes as f64)),
                count("honest peers left", run.good_connected as u64),
                (
                    "other peer left",
                    Unit::Count,
                    run.is_extra_connected.map(|is| u8::from(is).into()),
                ),
                ("99 % fetched after", Unit::Seconds, Some(fetched_s)),
                bytes("fetched by then", fetched_bytes),
                (
                    "of the links' rate until then",
                    Unit::Percent,
                    Some(share(fetched_bytes, fetched_s)),
                ),
                ("CPU time of the node", Unit::Seconds, node_s),
                ("CPU time of the source", Unit::Seconds, source_s),
                ("CPU time of the links", Unit::Seconds, links_s),
                ("CPU time of all programs", Unit::Seconds, busy_s),
                ("of all cores: node", Unit::Percent, of_cores(node_s)),
                ("of all cores: source", Unit::Percent, of_cores(source_s)),
                ("of all cores: links", Unit::Percent, of_cores(links_s)),
                ("of all cores: other programs", Unit::Percent, of_cores(others_s)),
                (
                    "of all cores: idle",
                    Unit::Percent,
                    of_cores(busy_s.map(|busy_s| capacity_s - busy_s)),
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
