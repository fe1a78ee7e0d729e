//! Syncs: height over time of targets that sync at their own pace.
//!
//! A curve is the time at which each height was first observed, on the run's clock, which starts with the target's process.
//! Curves of different runs are compared at equal heights, as in the published tracking of optimisations of Bitcoin Core's IBD,
//! and at equal times.

use assay_report::number::{ratio, seconds};
use assay_report::record::{Record, Unit, bytes, count};
use assay_report::stats::{median_of, rate};

use super::series::{self, Series, measured_phases};
use crate::results::{BlockRecord, Results, Run, TargetResults};
use assay_ledger::RangeLine;

const MIB: f64 = 1_048_576.0;
/// Height ranges with separate times.
const RANGES: usize = 10;
/// Times at which heights are compared.
const MOMENTS: usize = 200;
/// Minimum number of observations of a curve.
const MOMENTS_OF_A_CURVE: usize = 20;
/// Rows of the curve of a run.
const CURVE_ROWS_MAX: usize = 2000;
/// In shorter runs start-up and noise dominate.
const SHORT_S: f64 = 5.0;
/// Fraction of the baseline's time omitted at the start of ratio curves: there they would compare process start-up.
const RATIOS_FROM: f64 = 0.02;

pub(super) fn is_one(results: &Results) -> bool {
    results.plan.feed.by.is_sync()
}

/// Human-readable delivery method of a target.
pub(super) fn delivery(results: &Results, target: &TargetResults) -> String {
    let by = results.plan.feed.by.as_str();
    match target.delivery.as_deref().unwrap_or(by) {
        "rpc" => "one at a time over JSON-RPC".to_owned(),
        "peer" if results.chain.files.is_some() => {
            "fetched from `assay chain serve` over the peer-to-peer protocol".to_owned()
        }
        "peer" => "fetched from our node over the peer-to-peer protocol".to_owned(),
        "reindex" => "from its own block files, index made anew (`-reindex`)".to_owned(),
        "reindex-chainstate" => {
            "from its own block files, coins alone made anew (`-reindex-chainstate`)".to_owned()
        }
        "load-block" => "from block files given to it (`-loadblock`)".to_owned(),
        "files" => "from block files, without a network".to_owned(),
        other => other.to_owned(),
    }
}

/// True if all targets received their blocks by the same method.
fn is_like_for_like(results: &Results) -> bool {
    let mut ways = results.targets.iter().map(|target| delivery(results, target));
    ways.next().is_none_or(|first| ways.all(|way| way == first))
}

pub(super) fn standing(results: &Results) -> Option<String> {
    if !is_like_for_like(results) {
        // A ranking of unlike work is misleading: the caveat states the difference.
        return None;
    }
    let ends = ends(results);
    let (first, others) = ends.split_first().filter(|(_, others)| !others.is_empty())?;
    let of = |(name, time_s): &(String, f64)| format!("{name} took {}", ratio(time_s / first.1));
    let others: Vec<String> = others.iter().map(of).collect();
    Some(format!("shortest from start to tip: {}; {} as long", first.0, others.join(", ")))
}

/// Targets with their times from start to tip, the shortest first.
pub(super) fn ends(results: &Results) -> Vec<(String, f64)> {
    let all = comparable(results);
    let end = |series: &Series<'_>| Some((series.label.clone(), end_s(series)?));
    let mut ends: Vec<(String, f64)> = all.iter().filter_map(end).collect();
    ends.sort_by(|a, b| a.1.total_cmp(&b.1));
    ends
}

pub(super) fn doubts(results: &Results) -> Vec<String> {
    let mut out = Vec::new();
    if !is_like_for_like(results) {
        let mut ways: Vec<(String, Vec<&str>)> = Vec::new();
        for target in &results.targets {
            let way = delivery(results, target);
            match ways.iter_mut().find(|(known, _)| *known == way) {
                Some((_, names)) => names.push(&target.name),
                None => ways.push((way, vec![&target.name])),
            }
        }
        let ways: Vec<String> =
            ways.iter().map(|(way, names)| format!("{}: {way}", names.join(", "))).collect();
        out.push(format!(
            "not the same: blocks arrived by different paths ({}); a ratio between targets of two paths includes what these cost",
            ways.join("; ")
        ));
    }
    if let Some((name, time_s)) = ends(results).first().filter(|(_, time_s)| *time_s < SHORT_S) {
        let advice = if results.chain.scale < 1.0 { "; use a larger `--scale`" } else { "" };
        out.push(format!(
            "run too short ({name}: {} s): start-up and noise dominate{advice}",
            seconds(*time_s)
        ));
    }
    let mut rare = Vec::new();
    for series in comparable(results) {
        let moments = series.middle_run().map_or(0, moments);
        if moments < MOMENTS_OF_A_CURVE {
            let times = if moments == 1 { "once".to_owned() } else { format!("{moments} times") };
            rare.push(format!("{} {times}", series.label));
        }
    }
    for unable in &results.unable {
        out.push(format!("{} has no runs: {}", unable.name, unable.why));
    }
    if !rare.is_empty() {
        out.push(format!(
            "few progress samples ({}): ends are measured, curves, ranges and phases are interpolated",
            rare.join(", ")
        ));
    }
    out
}

fn end_of(run: &Run) -> Option<f64> {
    Some(run.blocks.last()?.tip_at_s)
}

/// Median over the runs of the time from start to tip.
fn end_s(series: &Series<'_>) -> Option<f64> {
    median_of(series.runs.iter().copied().filter_map(end_of))
}

/// Number of distinct observations of a run.
fn moments(run: &Run) -> usize {
    run.blocks.chunk_by(|a, b| a.tip_at_s.total_cmp(&b.tip_at_s).is_eq()).count()
}

fn comparable(results: &Results) -> Vec<Series<'_>> {
    let all = series::all(results).into_iter();
    all.filter(|series| series.middle_run().is_some_and(|run| !run.blocks.is_empty())).collect()
}

/// Adds times from start to tip, of ranges of heights and of phases, and the curves.
pub(super) fn add(results: &Results, record: &mut Record) {
    let all = comparable(results);
    let Some((first, others)) = all.split_first() else { return };
    for series in &all {
        for (run, round) in series.rounds() {
            let end_s = end_of(run).unwrap_or_default();
            let sum = |of: fn(&BlockRecord) -> u64| run.blocks.iter().map(of).sum::<u64>() as f64;
            let per_s = |amount: f64| Some(rate(amount, end_s)).filter(|rate| *rate > 0.0);
            let figures = [
                ("start to tip", Unit::Seconds, Some(end_s)),
                ("transactions", Unit::PerSecond, per_s(sum(|block| block.txs))),
                ("MiB", Unit::PerSecond, per_s(sum(|block| block.bytes) / MIB)),
                ("signatures", Unit::PerSecond, per_s(sum(|block| block.signatures))),
                count("observations", moments(run) as u64),
            ];
            record.add((&series.label, "", round), &figures);
        }
    }
    for series in others {
        let ratio = end_s(first).zip(end_s(series)).map(|(first, other)| first / other);
        let metric = format!("times as fast as {}", first.label);
        record.add((&series.label, "", None), &[(&metric, Unit::Ratio, ratio)]);
    }
    add_parts(results, &all, record);
    for target in &results.targets {
        if let Some(load) = target.snapshot_load {
            let figures = [
                ("snapshot | load", Unit::Seconds, Some(load.load_s)),
                ("snapshot | stop after it", Unit::Seconds, Some(load.stop_s)),
            ];
            record.add((&target.name, "", None), &figures);
        }
    }
    add_curves(first, &all, record);
    add_contents(&results.chain.ranges, record);
}

/// Times of ranges of heights and of phases. Times below two polls of the height have no ratio.
fn add_parts(results: &Results, all: &[Series<'_>], record: &mut Record) {
    let Some(run) = all.first().and_then(Series::middle_run) else { return };
    let parts = RANGES.min(run.blocks.len());
    let edge = |number: usize| number * run.blocks.len() / parts;
    let least_s = 2.0 * results.plan.sync.poll_ms as f64 / 1000.0;
    let mut add = |group: &str, case: &str, times: &dyn Fn(&Series<'_>) -> Option<f64>| {
        let base = all.first().and_then(times);
        for series in all {
            let time_s = times(series);
            let pair = base.zip(time_s).filter(|(base, time_s)| base.min(*time_s) >= least_s);
            let saved = base.zip(time_s).map(|(base, time_s)| base - time_s);
            let figures = [
                (format!("{group} | time"), Unit::Seconds, time_s),
                (format!("{group} | saved"), Unit::Seconds, saved),
                (format!("{group} | times as fast"), Unit::Ratio, pair.map(|(a, b)| a / b)),
            ];
            for (metric, unit, value) in &figures {
                record.add((&series.label, case, None), &[(metric, *unit, *value)]);
            }
        }
    };
    for part in 0..parts {
        let [first, last] = [edge(part), edge(part + 1) - 1].map(|index| run.blocks[index].height);
        let of_run = |run: &&Run| {
            let within = |block: &&BlockRecord| (first..=last).contains(&block.height);
            run.blocks.iter().filter(within).map(|block| block.service_s).sum::<f64>()
        };
        add("heights", &format!("{first}–{last}"), &|series| {
            median_of(series.runs.iter().map(of_run))
        });
    }
    for (name, title) in measured_phases(results) {
        add("phases", &title, &|series| series.phase(&name, |phase| phase.seconds));
    }
}

/// Time against height and data, and ratios of the first target to each other one.
fn add_curves(first: &Series<'_>, all: &[Series<'_>], record: &mut Record) {
    let elapsed = |block: &BlockRecord| ("elapsed", Unit::Seconds, Some(block.tip_at_s));
    for series in all {
        let middle = series.middle_run();
        let mut runs: Vec<_> = series.rounds().collect();
        // The run in the middle is drawn full.
        runs.sort_by_key(|(run, _)| Some(&run.id) != middle.map(|middle| &middle.id));
        for (run, round) in runs {
            let row = |block: &BlockRecord| [count("height", block.height.into()), elapsed(block)];
            let rows: Vec<_> = sampled(&run.blocks).into_iter().map(row).collect();
            record.add_series((&series.label, "", round), &rows);
        }
        let mut sum = 0;
        let row = |block: &BlockRecord| {
            sum += block.bytes;
            [bytes("data", sum), elapsed(block)]
        };
        let rows: Vec<_> = middle.iter().flat_map(|run| &run.blocks).map(row).collect();
        record.add_series((&series.label, "", None), &rows);
    }
    let time = format!("elapsed of {}", first.label);
    let [heights, times] = [
        format!("time of {} over the other's, at equal heights", first.label),
        format!("height over that of {}, at equal times", first.label),
    ];
    for series in all.iter().skip(1) {
        let Some((base, other)) = first.middle_run().zip(series.middle_run()) else { continue };
        for (name, points) in
            [(&heights, at_equal_heights(base, other)), (&times, at_equal_moments(base, other))]
        {
            let row = |(x, y): &(f64, f64)| {
                [(time.as_str(), Unit::Seconds, Some(*x)), (name.as_str(), Unit::Ratio, Some(*y))]
            };
            let rows: Vec<_> = points.iter().map(row).collect();
            record.add_series((&series.label, "", None), &rows);
        }
    }
}

/// Blocks for a curve, the last among them.
fn sampled(blocks: &[BlockRecord]) -> Vec<&BlockRecord> {
    let step = blocks.len().div_ceil(CURVE_ROWS_MAX).max(1);
    let mut rows: Vec<&BlockRecord> = blocks.iter().rev().step_by(step).collect();
    rows.reverse();
    rows
}

/// Chain contents by height, possible causes of the slopes of the curves.
fn add_contents(ranges: &[RangeLine], record: &mut Record) {
    let rows = ranges.iter().flat_map(|range| {
        let blocks = f64::from(range.last + 1 - range.first);
        let segwit = 100.0 * rate(range.segwit_txs as f64, range.txs as f64);
        let row = |height: f64| {
            [
                ("height", Unit::Count, Some(height)),
                ("transactions with a witness", Unit::Percent, Some(segwit)),
                ("inputs of a block", Unit::Count, Some(rate(range.inputs as f64, blocks))),
                (
                    "transactions of more than 50 inputs in a block",
                    Unit::Count,
                    Some(rate(range.many_input_txs as f64, blocks)),
                ),
                (
                    "of them without a witness",
                    Unit::Count,
                    Some(rate(range.many_input_legacy_txs as f64, blocks)),
                ),
                ("coins in the set", Unit::Count, Some(range.coins as f64)),
            ]
        };
        [row(f64::from(range.first) - 0.5), row(f64::from(range.last) + 0.5)]
    });
    record.add_series(("chain", "", None), &rows.collect::<Vec<_>>());
}

/// Second plot of report 3: x is the baseline's time at a height, y that time over the other's.
fn at_equal_heights(base: &Run, other: &Run) -> Vec<(f64, f64)> {
    let from_s = base.blocks.last().map_or(0.0, |block| block.tip_at_s * RATIOS_FROM);
    let mut others = other.blocks.iter().peekable();
    let mut points = Vec::new();
    for block in base.blocks.iter().filter(|block| block.tip_at_s > from_s) {
        while others.peek().is_some_and(|other| other.height < block.height) {
            others.next();
        }
        if let Some(other) = others.peek().filter(|other| other.height == block.height)
            && other.tip_at_s > 0.0
        {
            points.push((block.tip_at_s, block.tip_at_s / other.tip_at_s));
        }
    }
    points
}

/// Heights at the same time, while both are in progress.
fn at_equal_moments(base: &Run, other: &Run) -> Vec<(f64, f64)> {
    let end_s = |run: &Run| run.blocks.last().map_or(0.0, |block| block.tip_at_s);
    let (from_s, to_s) = (end_s(base) * RATIOS_FROM, end_s(base).min(end_s(other)));
    let height = |run: &Run, time_s: f64| {
        let seen = run.blocks.partition_point(|block| block.tip_at_s <= time_s);
        // In blocks: a chain may begin at a snapshot.
        Some(seen as f64).filter(|seen| *seen > 0.0)
    };
    let moment =
        |number: usize| (from_s + (to_s - from_s) * number as f64 / MOMENTS as f64).min(to_s);
    let point = |time_s: f64| Some((time_s, height(other, time_s)? / height(base, time_s)?));
    (0..=MOMENTS).map(moment).filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use assay_report::stats::median;

    use super::*;
    use crate::results::fixture;

    #[test]
    fn curves_and_ratios_of_syncs() {
        let results = fixture::syncs();
        let [first, second] = [0, 1].map(|number| &results.targets[number].runs[0]);
        let ratios = at_equal_heights(first, second);
        assert!(ratios.windows(2).all(|two| two[0].0 < two[1].0), "the baseline's time runs on");
        let (first_one, last) = (ratios[0].1, ratios[ratios.len() - 1].1);
        assert!((first_one - 1.0).abs() < 1e-9, "equal in the first half: {first_one}");
        let end_s = |run: &Run| run.blocks.last().expect("blocks").tip_at_s;
        assert!((last - end_s(first) / end_s(second)).abs() < 1e-9 && last > 1.1, "{last}");
        let heights = at_equal_moments(first, second);
        assert!(heights.iter().all(|(_, ratio)| *ratio >= 1.0), "never behind");
        assert!(heights.iter().all(|(time_s, _)| *time_s <= end_s(second)), "while both go on");
    }

    #[test]
    fn ranges_add_up() {
        let mut results = fixture::syncs();
        let half = results.targets[0].runs[0].blocks.len() as u32 / 2;
        let range = |first, last| RangeLine {
            first,
            last,
            txs: 1_000,
            inputs: 2_500,
            outputs: 2_600,
            segwit_txs: 400,
            many_input_txs: 2,
            many_input_legacy_txs: 1,
            coins: 9_000,
            ..RangeLine::default()
        };
        results.chain.ranges = vec![range(1, half), range(half + 1, 2 * half)];
        let mut record = Record::default();
        add(&results, &mut record);
        let values = |metric: &str| -> Vec<f64> {
            let is_it = |cell: &&assay_report::record::Cell| {
                cell.metric == metric && cell.target == results.targets[0].name
            };
            record.cells.iter().filter(is_it).map(|cell| cell.value).collect()
        };
        let (parts, whole) = (values("heights | time"), values("start to tip"));
        assert_eq!((parts.len(), whole.len()), (RANGES, 4));
        let (sum, whole) = (parts.iter().sum::<f64>(), median(&whole));
        assert!((sum - whole).abs() < 0.02 * whole, "{sum} {whole}");
        // Four runs and data of each target, two ratios, and the contents.
        assert_eq!(record.samples.len(), 2 * 5 + 2 + 1);
        assert_eq!(record.samples.last().map(|series| series.rows.len()), Some(4));
    }

    #[test]
    fn summary_has_ranking_and_caveats() {
        let mut results = fixture::syncs();
        assert_eq!(standing(&results), None, "one fetches, one reads files: not ranked");
        let standing_of = |results: &Results| {
            let mut alike = results.clone();
            alike.targets.iter_mut().for_each(|target| target.delivery = None);
            standing(&alike).expect("two targets")
        };
        assert_eq!(
            standing_of(&results),
            "shortest from start to tip: bchn-28.0.1; assay took 1.31× as long"
        );
        let doubts_of = |results: &Results, head: &str| {
            doubts(results).into_iter().find(|line| line.starts_with(head))
        };
        let unlike = doubts_of(&results, "not the same").expect("one fetches, one reads files");
        assert!(unlike.contains("bchn-28.0.1: from block files"), "{unlike}");
        assert!(doubts_of(&results, "run too short").is_some(), "two seconds are short");
        assert_eq!(doubts_of(&results, "few"), None, "every block was seen");
        for block in results.targets[0].runs.iter_mut().flat_map(|run| &mut run.blocks) {
            block.tip_at_s = 60.0;
        }
        let few = doubts_of(&results, "few").expect("one observation");
        assert!(few.contains("(assay once): ends"), "{few}");
    }
}
