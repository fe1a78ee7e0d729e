//! Record of a mempool benchmark.

use assay_report::record::{Outcome, Record, Unit, bytes, count};
use assay_report::stats::rate;
use assay_report::stats::ratio::Ratio;

use super::MempoolOptions;
use super::measure::{CaseRun, Finding};
use super::plan::{By, Case, MempoolPlan, What};
use crate::machine::new_record;
use crate::target::Target;

/// Shorter runs are noisy.
const SHORT_S: f64 = 0.05;
/// Number of rounds from which an interval has a coverage of 95 %.
const ROUNDS_MIN: u32 = 6;

const NOTES: [&str; 4] = [
    "All transactions are made and signed before a node starts, from a seed, and are the same for every target. Nodes start with \
     an empty data folder and a chain with the coins. Blocks empty the mempool between two cases.",
    "By RPC, batches go over one connection, one after the other; the clock runs from the first byte to the last response. From a \
     peer, with the permissions noban and relay, it stops when getmempoolinfo counts all transactions.",
    "Orphans: fifty children are sent first, the node's orphans are counted, and their parents follow. Replacements pay five times \
     as much. In a full mempool, of a node of its own, each transaction has forty outputs, and fees rise.",
    "A case runs on one target after the other in alternating order; ratios are of the same round. Intervals lie between sorted \
     values. A full mempool is not compared between targets, which count memory in different ways.",
];

fn title(case: &Case) -> String {
    let script = case.script.title();
    let what = match case.what {
        What::Admit if case.depth == 1 => script.to_owned(),
        What::Admit => format!("{script}, chains of {}", case.depth),
        What::Package => format!("{script}, packages of 2"),
        What::Orphans => format!("{script}, orphans"),
        What::Replace => format!("{script}, replacements"),
        What::Evict => format!("{script}, full mempool"),
    };
    let by = match case.by {
        By::Rpc => "by RPC",
        By::P2p => "from a peer",
    };
    format!("{what}, {by}")
}

pub(super) fn record(
    plan: &MempoolPlan,
    options: &MempoolOptions,
    targets: &[Target],
    runs: &[CaseRun<'_>],
) -> Record {
    let mut record = new_record("mempool", &options.software, &options.rerun, &options.out_dir);
    record.set("plan", &plan.name);
    record.set("seed", plan.seed);
    record.set("rounds", plan.repeat);
    record.set("calls of a batch", plan.batch);
    record.set("size of a full mempool, MB", plan.full_mempool_mb);
    for target in targets {
        record.set(&target.name, &target.version);
    }
    for case in &plan.cases {
        record.set(&case.name, format!("{} transactions, {}", plan.txs_of(case), title(case)));
    }
    for run in runs {
        add_run(&mut record, run);
    }
    record.headline = add_intervals(&mut record, plan, targets, runs);
    add_checks(&mut record, targets.first().map_or("", |target| &target.name), runs);
    record.notes.extend(NOTES.map(str::to_owned));
    let rounds = plan.repeat;
    if rounds < ROUNDS_MIN {
        let note =
            format!("{rounds} rounds: with fewer than six the intervals have less than 95 %.");
        record.notes.push(note);
    }
    let shortest = runs.iter().map(|run| run.sent.seconds).fold(f64::INFINITY, f64::min);
    if shortest < SHORT_S {
        let time = Unit::Seconds.format(shortest);
        let note = format!("The shortest run took {time}: a larger --scale reduces the noise.");
        record.notes.push(note);
    }
    record
}

fn add_run(record: &mut Record, run: &CaseRun<'_>) {
    let (case, round) = (run.case.name.as_str(), Some(run.round));
    let rejected: u64 = run.sent.rejected.values().sum();
    record.add(
        (run.target, case, round),
        &[
            ("accepted per second", Unit::PerSecond, Some(run.per_s())),
            ("time", Unit::Seconds, Some(run.sent.seconds)),
            count("sent", run.txs),
            count("accepted", run.sent.accepted),
            count("rejected", rejected),
            ("orphans", Unit::Count, run.sent.orphans.map(|orphans| orphans as f64)),
            count("replaced", run.replaced),
            count("evicted", run.evicted),
            count("in the mempool", run.info.size),
            count("virtual bytes", run.info.bytes),
            bytes("memory", run.info.usage),
            count("least fee, sat/kvB", (run.info.mempoolminfee * 1e8).round() as u64),
        ],
    );
    for (reason, number) in &run.sent.rejected {
        let metric = format!("rejected: {reason}");
        record.add((run.target, case, round), &[count(&metric, *number)]);
    }
}

impl CaseRun<'_> {
    /// Admitted transactions per second.
    fn per_s(&self) -> f64 {
        rate(self.sent.accepted as f64, self.sent.seconds)
    }
}

/// Adds medians with intervals: the rates of each target, and the ratios of the first one to each other. Returns the headline.
fn add_intervals(
    record: &mut Record,
    plan: &MempoolPlan,
    targets: &[Target],
    runs: &[CaseRun<'_>],
) -> String {
    let mut found: Vec<(f64, String)> = Vec::new();
    for case in &plan.cases {
        let rates = |target: &Target| -> Vec<f64> {
            let is_it = |run: &&CaseRun<'_>| run.case == case && run.target == target.name;
            runs.iter().filter(is_it).map(CaseRun::per_s).collect()
        };
        let name = case.name.as_str();
        let mut note = |unit: Unit, Ratio { median, low, high, .. }: Ratio| {
            let [value, low, high] = [median, low, high].map(|value| unit.format(value));
            found.push((median, format!("{value} ({low} to {high}) with {name}")));
        };
        let first = targets.first().map(rates).unwrap_or_default();
        for (index, target) in targets.iter().enumerate() {
            let own = rates(target);
            // A ratio to one is the rate itself.
            let Some(interval) = Ratio::of_pairs(&own, &vec![1.0; own.len()]) else { continue };
            record.add_interval((&target.name, name), ("median", Unit::PerSecond), &interval);
            if targets.len() == 1 {
                note(Unit::PerSecond, interval);
            }
            let Some(ratio) = Ratio::of_pairs(&first, &own).filter(|_| index > 0) else { continue };
            let both = format!("{} / {}", targets[0].name, target.name);
            record.add_interval((&both, name), ("median", Unit::Ratio), &ratio);
            if index == 1 {
                note(Unit::Ratio, ratio);
            }
        }
    }
    let by = |one: &&(f64, String), other: &&(f64, String)| one.0.total_cmp(&other.0);
    let (Some(least), Some(most)) = (found.iter().min_by(by), found.iter().max_by(by)) else {
        return "Nothing was measured.".to_owned();
    };
    let end = match targets {
        [_, other, ..] => format!("the transactions per second of {}", other.name),
        _ => "transactions per second".to_owned(),
    };
    format!("{} admits {} to {} {end}.", targets[0].name, least.1, most.1)
}

/// Adds a check for each kind of finding, and one for the mempools of other targets than the first. All failures become notes.
fn add_checks(record: &mut Record, first: &str, runs: &[CaseRun<'_>]) {
    let same = runs.iter().filter(|run| run.target != first && run.case.what != What::Evict);
    let same = same.map(|run| {
        let is_it = |other: &&CaseRun<'_>| {
            other.target == first && (&other.case.name, other.round) == (&run.case.name, run.round)
        };
        let is_same = runs.iter().find(is_it).is_some_and(|other| other.pool == run.pool);
        let name = "the same mempool on all targets";
        let found: Finding = (name, 1, u64::from(!is_same), "mempool differs");
        (run, found)
    });
    let own = runs.iter().flat_map(|run| run.findings.iter().map(move |found| (run, *found)));
    let mut checks: Vec<(&str, u64, Option<String>)> = Vec::new();
    for (run, (name, compared, bad, what)) in own.chain(same) {
        let round = run.round + 1;
        let place = format!("{}, {}, round {round}", run.target, run.case.name);
        let failure = (bad > 0).then(|| format!("{place}: {bad} {what}"));
        record.notes.extend(failure.clone());
        match checks.iter_mut().find(|(other, ..)| *other == name) {
            Some((_, sum, first)) => {
                *sum += compared;
                *first = first.take().or(failure);
            }
            None => checks.push((name, compared, failure)),
        }
    }
    for (name, compared, failure) in checks {
        record.check(name, Outcome::of(compared, failure));
    }
}
