//! `assay shard explain`.

use std::path::Path;
use std::time::{Duration, Instant};

use assay_engine::{Part, PartResult, PartTiming, Plan, STAGES, ShardVerdict, Unspent, merge};
use assay_lab::machine::new_record;
use assay_report::record::{Outcome as Checked, Record, Unit, bytes, count};

use super::{describe, open, report};
use crate::Outcome;
use crate::cli::ShardExplainArguments;
use crate::commands::bench::software;
use crate::invocation::rerun;
use crate::output;

pub(super) fn run(arguments: &ShardExplainArguments) -> anyhow::Result<Outcome> {
    let plan = open(&arguments.plan)?;
    let mut record = new_record("shard explain", &software(), &rerun(), &arguments.plan);
    let (chain, height, parts) = (plan.params().name, plan.height(), plan.parts().len());
    record.headline = format!("{chain} up to height {height}, in {parts} parts.");
    record.set("plan", faster_hex::hex_string(&plan.id()));
    record.set("tip", plan.tip());
    let unspent = match plan.unspent() {
        Unspent::Coins { .. } => "coins",
        Unspent::Hints { .. } => "hints",
        Unspent::MuHash(_) => "muhash",
    };
    record.set("coins left over by", unspent);
    let timings = match &arguments.results {
        Some(dir) => add_results(&mut record, &plan, dir)?,
        None => vec![None; parts],
    };
    add_parts(&mut record, &plan, &timings);
    add_stages(&mut record, &timings.into_iter().flatten().collect::<Vec<_>>());
    output::print_as(arguments.json, &record, || record.text())?;
    Ok(Outcome::Good)
}

/// Adds the verdict, and the parts without a result or with a rejected block; returns the times of the parts.
fn add_results(
    record: &mut Record,
    plan: &Plan,
    dir: &Path,
) -> anyhow::Result<Vec<Option<PartTiming>>> {
    let start = Instant::now();
    let results = report::read_all(plan, dir, None)?;
    let verdict = merge(plan, &results).verdict;
    record.set("merge", format!("{:.3} s", start.elapsed().as_secs_f64()));
    let failure = match &verdict {
        ShardVerdict::Missing(parts) => Some(format!("{} parts have no result", parts.len())),
        other => report::rejection(other),
    };
    record.check("results of the parts", Checked::of(results.len() as u64, failure));
    let mut timings = Vec::new();
    for (number, result) in results.iter().enumerate() {
        match result.as_ref().map(PartResult::rejection) {
            None => record.notes.push(format!("part {number}: missing")),
            Some(Some(rejection)) => record.notes.push(format!("part {number}: {rejection}")),
            Some(None) => {}
        }
        timings.push(PartTiming::read(dir, number)?);
    }
    Ok(timings)
}

/// Adds size and time of each part, and the slowest one.
fn add_parts(record: &mut Record, plan: &Plan, timings: &[Option<PartTiming>]) {
    let parts = plan.parts();
    let size = |part: &Part| match *part {
        Part::Blocks { inputs, bytes, .. } => (inputs, bytes),
        Part::Coins { coins, bytes, .. } => (coins, bytes),
    };
    let is_blocks = |part: &Part| matches!(part, Part::Blocks { .. });
    let sum = |of_blocks: bool| -> u64 {
        let alike = parts.iter().filter(|part| is_blocks(part) == of_blocks);
        alike.map(|part| size(part).0).sum()
    };
    let sums = [sum(false), sum(true)];
    let mut timed: Vec<(usize, f64)> = Vec::new();
    for ((number, part), timing) in parts.iter().enumerate().zip(timings) {
        let time_s = timing.map(|timing| timing.elapsed.as_secs_f64());
        let (items, part_bytes) = size(part);
        let all = sums[usize::from(is_blocks(part))].max(1);
        let figures = [
            count("inputs or coins", items),
            bytes("size", part_bytes),
            ("share", Unit::Percent, Some(100.0 * items as f64 / all as f64)),
            ("time", Unit::Seconds, time_s),
        ];
        record.add((&format!("part {number}"), &describe(part), None), &figures);
        timed.extend(time_s.map(|time_s| (number, time_s)));
    }
    let slowest = timed.iter().max_by(|one, other| one.1.total_cmp(&other.1));
    let Some(&(slowest, longest_s)) = slowest else { return };
    let is_alike =
        |(number, _): &&(usize, f64)| is_blocks(&parts[*number]) == is_blocks(&parts[slowest]);
    let alike: Vec<f64> = timed.iter().filter(is_alike).map(|(_, time_s)| *time_s).collect();
    let ratio = longest_s * alike.len() as f64 / alike.iter().sum::<f64>();
    record.notes.push(format!(
        "slowest: part {slowest}, {longest_s:.2} s, {ratio:.2} times the mean of its kind"
    ));
}

/// Adds processor time by stage; time outside all stages is that of scripts.
fn add_stages(record: &mut Record, timings: &[PartTiming]) {
    let cpu: Duration = timings.iter().map(|timing| timing.cpu).sum();
    let sum = |stage: usize| timings.iter().map(|timing| timing.stages[stage]).sum::<Duration>();
    let known: [Duration; STAGES] = std::array::from_fn(sum);
    let rest = cpu.saturating_sub(known.iter().sum());
    let all = cpu.max(known.iter().sum()).as_secs_f64();
    let stages = STAGE_NAMES.into_iter().zip(known).chain([("scripts and everything else", rest)]);
    for (name, time) in stages.filter(|_| !timings.is_empty()) {
        let time_s = time.as_secs_f64();
        let share = ("share of processor time", Unit::Percent, Some(100.0 * time_s / all));
        record.add(("all parts", name, None), &[("time", Unit::Seconds, Some(time_s)), share]);
    }
}

const STAGE_NAMES: [&str; STAGES] = [
    "reading, parsing and hashing blocks",
    "checks without coins",
    "spent coins, and checks with them",
    "sums over coins, coins left over",
];
