//! Record of the hostile-peer experiment.

use assay_report::record::{Outcome, Record, Unit};
use assay_report::stats::median;

use super::HostileOptions;
use crate::network::Setup;
use crate::swarm::AttackReport;

/// Honest peers of the target.
const HONEST: usize = 4;
const SYNC: &str = "sync, time";
const BLOCK: &str = "block, two hops";
const TX: &str = "transaction, two hops";
const MEMORY: &str = "peak memory";

#[derive(Debug, Default)]
pub(super) struct Run {
    /// Number of its pair, from 0.
    pub(super) pair: usize,
    pub(super) is_hostile: bool,
    /// Seconds until the target had the chain.
    pub(super) sync_s: f64,
    /// CPU seconds of the target during the sync.
    pub(super) sync_cpu_s: Option<f64>,
    /// Seconds until both observers had the chain, too.
    pub(super) followed_s: f64,
    /// Seconds from the first source to the first observer, per transaction.
    pub(super) tx_relay_s: Vec<f64>,
    /// The same per block.
    pub(super) block_relay_s: Vec<f64>,
    /// Honest connections of the target at the end, of four.
    pub(super) honest_connected: usize,
    /// Peak resident memory of the target.
    pub(super) memory_peak_bytes: Option<u64>,
    pub(super) attacks: Vec<AttackReport>,
}

pub(super) fn record(options: &HostileOptions, setup: &Setup<'_>, runs: &[Run]) -> Record {
    let mut record = setup.record("hostile");
    record.set("hostile peers", options.peers);
    record.set("honest peers", HONEST);
    record.set("seed of the attacks", options.seed);
    let name = setup.target.name.as_str();
    let case = |run: &Run| if run.is_hostile { "hostile" } else { "quiet" };
    let round = |run: &Run| Some(run.pair as u32);
    let middle = |times: &[f64]| (!times.is_empty()).then(|| median(times));
    for run in runs {
        record.add(
            (name, case(run), round(run)),
            &[
                (SYNC, Unit::Seconds, Some(run.sync_s)),
                ("sync, CPU time", Unit::Seconds, run.sync_cpu_s),
                ("nodes behind it have the chain", Unit::Seconds, Some(run.followed_s)),
                (BLOCK, Unit::Seconds, middle(&run.block_relay_s)),
                (TX, Unit::Seconds, middle(&run.tx_relay_s)),
                (MEMORY, Unit::Bytes, run.memory_peak_bytes.map(|bytes| bytes as f64)),
            ],
        );
        for (metric, times) in [(BLOCK, &run.block_relay_s), (TX, &run.tx_relay_s)] {
            let time = |time: &f64| [(metric, Unit::Seconds, Some(*time))];
            let times: Vec<_> = times.iter().map(time).collect();
            record.add_series((name, case(run), round(run)), &times);
        }
        for attack in &run.attacks {
            record.add_series((name, &attack.attack, round(run)), &[attack.figures()]);
        }
    }
    record.add_ratios("hostile", "quiet");
    for run in runs {
        let honest = run.honest_connected as f64;
        let figure = ("honest peers at the end", Unit::Count, Some(honest));
        record.add((name, case(run), round(run)), &[figure]);
    }
    add_attacks(&mut record, name, runs.iter().flat_map(|run| &run.attacks));
    let ratio = |metric| Unit::Ratio.format(median(&record.values("hostile / quiet", metric)));
    let memory = record.values("hostile", MEMORY).into_iter().fold(0.0, f64::max);
    record.headline = format!(
        "{} hostile peers, of quiet: sync {}, blocks {}, transactions {}; memory at most {}.",
        options.peers,
        ratio(SYNC),
        ratio(BLOCK),
        ratio(TX),
        Unit::Bytes.format(memory)
    );
    let least = runs.iter().map(|run| run.honest_connected).min().unwrap_or_default();
    let lost = (least < HONEST).then(|| format!("{least} of {HONEST} in the worst run"));
    let compared = (runs.len() * HONEST) as u64;
    record.check("honest peers connected at the end", Outcome::of(compared, lost));
    record
}

/// Adds the sums over all runs of each attack.
pub(super) fn add_attacks<'a>(
    record: &mut Record,
    target: &str,
    reports: impl Iterator<Item = &'a AttackReport>,
) {
    let mut sums: Vec<AttackReport> = Vec::new();
    for report in reports {
        match sums.iter_mut().find(|sum| sum.attack == report.attack) {
            Some(sum) => sum.add(report),
            None => sums.push(report.clone()),
        }
    }
    for sum in sums {
        record.add((target, &sum.attack, None), &sum.figures());
    }
}
