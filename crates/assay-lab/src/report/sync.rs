//! Sync report: height over time of targets that sync at their own pace.
//!
//! A curve is the time at which each height was first observed, on the run's clock, which starts with the target's process.
//! Curves of different runs are compared at equal heights, as in the published tracking of optimisations of Bitcoin Core's IBD,
//! and at equal times.

use std::fmt::Write as _;

use assay_report::csv_field;
use assay_report::number::{count, percent, ratio, seconds};
use assay_report::stats::median;
use assay_report::{Band, Chart, Line, LineChart, Look, Table, number};

use super::NONE;
use super::series::{self, Series, measured_phases};
use super::{charts, content, own_chain};
use crate::plan::Delivery;
use crate::results::{BlockRecord, Results, Run, Status, TargetResults};

const MIB: f64 = 1_048_576.0;
/// Height ranges with separate times.
const RANGES: usize = 10;
/// Times at which heights are compared.
const MOMENTS: usize = 200;
/// Minimum number of observations of a curve.
const MOMENTS_OF_A_CURVE: usize = 20;
/// In shorter runs start-up and noise dominate.
const SHORT_S: f64 = 5.0;
/// Fraction of the baseline's time omitted at the start of ratio curves: there they would compare process start-up.
const RATIOS_FROM: f64 = 0.02;

/// True for plans of syncs.
pub(super) fn is_one(results: &Results) -> bool {
    results.plan.feed.by.is_sync()
}

/// Human-readable delivery method of a target.
pub(super) fn delivery(results: &Results, target: &TargetResults) -> String {
    let by = results.plan.feed.by.as_str();
    match target.delivery.as_deref().unwrap_or(by) {
        "rpc" => "one at a time over JSON-RPC".to_owned(),
        "peer" if own_chain::files(results).is_some() => {
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

/// Ranking with ratios.
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

/// Caveats of the figures.
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

/// Signatures per second from start to tip.
pub(super) fn signatures_per_s(results: &Results, series: &Series<'_>) -> f64 {
    assay_report::stats::rate(results.chain.signatures as f64, end_s(series).unwrap_or_default())
}

/// Median over the runs of the time from start to tip.
fn end_s(series: &Series<'_>) -> Option<f64> {
    let ends: Vec<f64> =
        series.runs.iter().filter_map(|run| Some(run.blocks.last()?.tip_at_s)).collect();
    (!ends.is_empty()).then(|| median(&ends))
}

/// Number of distinct observations of a run.
fn moments(run: &Run) -> usize {
    run.blocks.chunk_by(|a, b| a.tip_at_s.total_cmp(&b.tip_at_s).is_eq()).count()
}

/// Runs with their end, each from the start of its process to the tip.
pub(super) fn outcome(results: &Results) -> Table {
    let head = ["Run", "Outcome", "Blocks", "Start to tip, s", "tx/s", "MiB/s", "Signatures/s"];
    let mut table = Table::new("Runs, from the start of the process to the tip", &head, 2);
    for run in results.runs() {
        let end_s = run.blocks.last().map_or(0.0, |block| block.tip_at_s);
        let sum = |of: fn(&BlockRecord) -> u64| run.blocks.iter().map(of).sum::<u64>() as f64;
        let per_s = |amount: f64| number::rate(assay_report::stats::rate(amount, end_s));
        table.push([
            run.id.clone(),
            match run.status {
                Status::Valid => "valid".to_owned(),
                Status::Disturbed => "disturbed".to_owned(),
                Status::Void => "VOID".to_owned(),
            },
            count(run.blocks.len() as u64),
            seconds(end_s),
            per_s(sum(|block| block.txs)),
            per_s(sum(|block| block.bytes) / MIB),
            match sum(|block| block.signatures) {
                none if none <= 0.0 => NONE.to_owned(),
                signatures => per_s(signatures),
            },
        ]);
    }
    table
}

/// Notes on the curves.
pub(super) fn prose(results: &Results) -> Vec<String> {
    let mut out = vec![
        "Seconds are counted from the start of the target's process to the moment at which the laboratory first saw the height \
         or one above it; less is better. Of several runs the one in the middle is drawn full, the others thin. Times of ranges \
         and phases are sums of the steps between heights; where one observation jumps over several blocks they share its time \
         evenly, so that single blocks say less than ranges do."
            .to_owned(),
        format!(
            "The height is looked at every {} ms; where a time is below two such steps no ratio is given.",
            results.plan.sync.poll_ms
        ),
    ];
    if let Some(first) = comparable(results).first() {
        out.push(format!(
            "Ratios are of {} (the first target, the baseline) to each other one, over the baseline's elapsed time. *At equal \
             heights*: time of the baseline divided by time of the other when both had the same height, as in the published \
             plots. *At equal times*: height of the other divided by height of the baseline. Above 1 the other is ahead. The \
             first {} of the baseline's time are left out: they compare starts of processes. In the tables *saved* is the \
             baseline's time less the other's, also as a share of the baseline's; below zero the other took longer.",
            first.label,
            percent(RATIOS_FROM),
        )
        .replace('*', ""));
    }
    if !is_like_for_like(results) {
        out.push(
            "Not all targets got their blocks alike: block files cost no network, no checksums of messages and no second \
             process on the same cores. Compare targets with the same way of delivery."
                .to_owned(),
        );
    }
    out
}

pub(super) fn method(results: &Results) -> Vec<String> {
    let plan = &results.plan;
    let way = match plan.feed.by {
        Delivery::Peer => {
            if own_chain::files(results).is_some() {
                "The source gives headers and blocks straight from the block files; it is another process on the same machine, whose \
                 CPU time is not the target's, but it shares the cores."
            } else {
                "The source is our own node, another process on the same machine; its CPU time is not the target's, \
                 but it shares the cores."
            }
        }
        _ => "Blocks are read from files; no other node takes part.",
    };
    let mut points = vec![
        format!(
            "Every target is a process of its own and takes the chain at its own pace. {way} {} per target, {} warm-up.",
            match plan.runs.repeat {
                1 => "One run".to_owned(),
                repeats => format!("{repeats} runs, every second round in reverse order"),
            },
            match plan.runs.warmup {
                0 => "no".to_owned(),
                runs => format!("{runs} unrecorded as"),
            }
        ),
        "Measured is what a user waits for: the process from its start until it reports the tip, with start, reading or \
         fetching, all checks and all writing that it does until then; not what it writes when it stops."
            .to_owned(),
        "The height is asked from outside; all times are from one monotonic clock of the laboratory.".to_owned(),
        match own_chain::verification(results) {
            Some(how) => how,
            None => "Who verified the end: the target says its tip, height and, where it can, its set of unspent outputs (MuHash, \
                     count, amount); the ledger of the forge says what they must be. A run that differs is void."
                .to_owned(),
        },
        "Figures over several runs are medians; spread is largest minus smallest, relative to the median.".to_owned(),
    ];
    let prepared = results.runs().find_map(|run| run.preparation.page_cache.clone());
    points.push(match prepared {
        Some(what) => format!("Page cache before each run: {what}."),
        None => {
            "The page cache was left as it was: block files that were read before are in memory."
                .to_owned()
        }
    });
    if let Some(snapshot) = &results.chain.snapshot {
        points.push(own_chain::start(snapshot));
    } else if let Some(from) = results.runs().find_map(|run| run.preparation.copied_from.clone()) {
        points.push(format!("Every run begins with a plain copy of the data folder `{from}`."));
    } else {
        points.push(
            "Every run begins with an empty data folder, but for what its way of delivery needs."
                .to_owned(),
        );
    }
    let points = points.into_iter().map(|point| format!("- {point}"));
    points.chain(content::soft_forks(results)).collect()
}

/// Delivery method and end of the runs per target.
pub(super) fn delivery_methods(results: &Results) -> Table {
    let head =
        ["Target", "Version", "Blocks", "Times seen", "Runs that count", "Tip", "UTXO MuHash"];
    let mut table = Table::new("Targets, and who verified their end", &head, 7);
    for target in &results.targets {
        let valid: Vec<&Run> =
            target.runs.iter().filter(|run| run.status == Status::Valid).collect();
        let verdict = |what: &str| {
            let checks = valid.iter().flat_map(|run| &run.checks);
            let of: Vec<_> = checks.filter(|check| check.what.contains(what)).collect();
            if of.is_empty() {
                NONE.to_owned()
            } else if of.iter().all(|check| check.found.is_some()) {
                let is_own = own_chain::files(results).is_some() && what != "tip";
                if is_own { "equals the first report" } else { "equals the ledger" }.to_owned()
            } else {
                "not reported by the target".to_owned()
            }
        };
        table.push([
            target.name.clone(),
            target.version.clone(),
            delivery(results, target),
            {
                let mut seen: Vec<usize> = valid.iter().map(|run| moments(run)).collect();
                seen.sort_unstable();
                seen.get(seen.len() / 2).map_or_else(|| NONE.to_owned(), |seen| count(*seen as u64))
            },
            format!("{} of {}", valid.len(), target.runs.len()),
            verdict("tip"),
            verdict("MuHash"),
        ]);
    }
    table
}

/// Series with a complete curve.
fn comparable(results: &Results) -> Vec<Series<'_>> {
    let all = series::all(results).into_iter();
    all.filter(|series| series.middle_run().is_some_and(|run| !run.blocks.is_empty())).collect()
}

fn curve(run: &Run, x: fn(&BlockRecord) -> f64) -> Vec<(f64, f64)> {
    run.blocks.iter().map(|block| (x(block), block.tip_at_s)).collect()
}

/// Curves and ratios.
pub(super) fn charts(results: &Results) -> Vec<Chart> {
    let all = comparable(results);
    let mut charts: Vec<Chart> = Vec::new();
    let bands = bands(results);
    let line = |series: &Series<'_>, points: Vec<(f64, f64)>| Line {
        label: series.label.clone(),
        look: series.look,
        pieces: vec![charts::thin(&points)],
        points: false,
    };
    let by_height = |block: &BlockRecord| f64::from(block.height);
    let middle = |series: &Series<'_>| Some(line(series, curve(series.middle_run()?, by_height)));
    let others = |series: &Series<'_>| -> Vec<Line> {
        let middle = series.middle_run().map(|run| run.id.clone());
        let others = series.runs.iter().filter(|run| Some(&run.id) != middle.as_ref());
        others.map(|run| line(series, curve(run, by_height))).collect()
    };
    let chart = LineChart {
        title: "Time against height (less is better)".to_owned(),
        x_label: "height".to_owned(),
        y_label: "seconds".to_owned(),
        series: all.iter().filter_map(middle).collect(),
        background: all.iter().flat_map(others).collect(),
        bands,
        ..LineChart::default()
    };
    charts.extend(chart.draw());
    let chart = LineChart {
        title: "Time against data (less is better)".to_owned(),
        x_label: "MiB of blocks".to_owned(),
        y_label: "seconds".to_owned(),
        series: all
            .iter()
            .filter_map(|series| Some(line(series, by_data(series.middle_run()?))))
            .collect(),
        ..LineChart::default()
    };
    charts.extend(chart.draw());
    if let Some((baseline, others)) = all.split_first()
        && let Some(base) = baseline.middle_run()
    {
        let ratios = |title: &str, label: &str, points: fn(&Run, &Run) -> Vec<(f64, f64)>| {
            let of = |series: &Series<'_>| Some(line(series, points(base, series.middle_run()?)));
            let mut lines: Vec<Line> = others.iter().filter_map(of).collect();
            let ends = range_of(&lines)?;
            let look = Look { colour: None, dashed: true };
            let pieces = vec![vec![(ends.0, 1.0), (ends.1, 1.0)]];
            let label_of_base = format!("{} (1)", baseline.label);
            lines.push(Line { label: label_of_base, look, pieces, points: false });
            let chart = LineChart {
                title: title.to_owned(),
                x_label: format!("elapsed seconds of {}", baseline.label),
                y_label: label.to_owned(),
                series: lines,
                tight_y: true,
                ..LineChart::default()
            };
            chart.draw()
        };
        charts.extend(ratios(
            "Ratio of times at equal heights (above 1: ahead)",
            "baseline's time / time",
            at_equal_heights,
        ));
        charts.extend(ratios(
            "Ratio of heights at equal times (above 1: ahead)",
            "height / baseline's height",
            at_equal_moments,
        ));
    }
    charts
}

/// Phases of the chain on an axis of heights.
pub(super) fn bands(results: &Results) -> Vec<Band> {
    let run = comparable(results).first().and_then(Series::middle_run).cloned();
    run.map(|run| charts::bands(results, &run)).unwrap_or_default()
}

fn range_of(lines: &[Line]) -> Option<(f64, f64)> {
    let xs = || lines.iter().flat_map(|line| line.pieces.iter().flatten()).map(|point| point.0);
    Some((xs().reduce(f64::min)?, xs().reduce(f64::max)?))
}

fn by_data(run: &Run) -> Vec<(f64, f64)> {
    let mut bytes = 0;
    let point = |block: &BlockRecord| {
        bytes += block.bytes;
        (bytes as f64 / MIB, block.tip_at_s)
    };
    run.blocks.iter().map(point).collect()
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

/// Times of parts of the chain, and savings of each target against the first.
pub(super) fn differences(results: &Results) -> Vec<Table> {
    let all = comparable(results);
    let Some(heights) = all.first().and_then(Series::middle_run).map(|run| run.blocks.len()) else {
        return Vec::new();
    };
    let ranges: Vec<_> = (0..RANGES.min(heights))
        .map(|number| {
            let parts = RANGES.min(heights);
            number * heights / parts..(number + 1) * heights / parts
        })
        .collect();
    let mut by_range: Vec<(String, Vec<Option<f64>>)> = Vec::new();
    for range in ranges {
        let run = all.first().and_then(Series::middle_run);
        let ends =
            run.map(|run| (run.blocks[range.start].height, run.blocks[range.end - 1].height));
        let Some((first, last)) = ends else { continue };
        let within = |block: &&BlockRecord| (first..=last).contains(&block.height);
        let of =
            |run: &Run| run.blocks.iter().filter(within).map(|block| block.service_s).sum::<f64>();
        by_range.push((format!("{first}–{last}"), times(&all, of)));
    }
    let tip = |run: &Run| run.blocks.last().map_or(0.0, |block| block.tip_at_s);
    let started = |run: &Run| run.blocks.first().map_or(0.0, |block| block.send_at_s);
    let before = times(&all, started);
    // The clock starts with the process, and its first block as well; in older results it may have started earlier.
    if before.iter().flatten().any(|time_s| *time_s >= resolution_s(results)) {
        by_range.insert(0, ("before the first block".to_owned(), before));
    }
    by_range.push(("start to tip".to_owned(), times(&all, tip)));
    let mut by_phase: Vec<(String, Vec<Option<f64>>)> = measured_phases(results)
        .into_iter()
        .map(|(name, title)| {
            let of = |series: &Series<'_>| series.phase(&name, |phase| phase.seconds);
            (title, all.iter().map(of).collect())
        })
        .collect();
    let total = |series: &Series<'_>| series.phase("total", |phase| phase.seconds);
    by_phase.push(("all of these".to_owned(), all.iter().map(total).collect()));
    vec![
        difference(
            results,
            "Seconds per range of heights, and what is saved",
            "Heights",
            &all,
            &by_range,
        ),
        difference(results, "Seconds per phase, and what is saved", "Phase", &all, &by_phase),
    ]
}

fn times(all: &[Series<'_>], of: impl Fn(&Run) -> f64) -> Vec<Option<f64>> {
    let middle = |series: &Series<'_>| {
        let times: Vec<f64> = series.runs.iter().map(|run| of(run)).collect();
        (!times.is_empty()).then(|| median(&times))
    };
    all.iter().map(middle).collect()
}

/// The shortest measurable time: two polls of the height.
fn resolution_s(results: &Results) -> f64 {
    2.0 * results.plan.sync.poll_ms as f64 / 1000.0
}

fn difference(
    results: &Results,
    caption: &str,
    what: &str,
    all: &[Series<'_>],
    rows: &[(String, Vec<Option<f64>>)],
) -> Table {
    let mut head = vec![what.to_owned()];
    for (number, series) in all.iter().enumerate() {
        head.push(format!("{}, s", series.label));
        if number > 0 {
            head.extend(["saved, s".to_owned(), "saved".to_owned(), "times as fast".to_owned()]);
        }
    }
    let mut table = Table { caption: caption.to_owned(), head, rows: Vec::new(), word_columns: 1 };
    let least_s = resolution_s(results);
    for (name, values) in rows {
        let mut row = vec![name.clone()];
        let base = values.first().copied().flatten();
        for (number, value) in values.iter().enumerate() {
            row.push(value.map_or_else(|| NONE.to_owned(), seconds));
            if number > 0 {
                row.extend(match base.zip(*value) {
                    Some((base, value)) if base.min(value) >= least_s => {
                        [signed(base - value), share((base - value) / base), ratio(base / value)]
                    }
                    Some((base, value)) => [signed(base - value), NONE.to_owned(), NONE.to_owned()],
                    _ => [NONE.to_owned(), NONE.to_owned(), NONE.to_owned()],
                });
            }
        }
        table.rows.push(row);
    }
    table
}

/// Seconds with sign.
fn signed(value: f64) -> String {
    if value < 0.0 { format!("−{}", seconds(-value)) } else { seconds(value) }
}

fn share(value: f64) -> String {
    if value < 0.0 { format!("−{}", percent(-value)) } else { percent(value) }
}

/// Summary line of a target.
pub(super) fn headline(results: &Results, series: &Series<'_>) -> Option<String> {
    let run = series.middle_run()?;
    let end_s = run.blocks.last()?.tip_at_s;
    let (txs, bytes) = (results.chain.txs, results.chain.bytes);
    let spread = {
        let ends: Vec<f64> =
            series.runs.iter().filter_map(|run| Some(run.blocks.last()?.tip_at_s)).collect();
        assay_report::stats::spread(&ends)
    };
    let spread = spread.map_or_else(String::new, |spread| format!(", spread {}", percent(spread)));
    let which = match series.runs.len() {
        1 => "its only run".to_owned(),
        runs => format!("the run in the middle of {}{spread}", count(runs as u64)),
    };
    Some(format!(
        "{}: {} s from start to tip ({which}), {} tx/s, {} MiB/s",
        series.label,
        seconds(end_s),
        number::rate(assay_report::stats::rate(txs as f64, end_s)),
        number::rate(assay_report::stats::rate(bytes as f64 / MIB, end_s)),
    ))
}

/// `curves.csv`: elapsed seconds at heights, a column per target, from the median run.
pub(super) fn wide_csv(results: &Results) -> String {
    let all = comparable(results);
    let mut out = "height".to_owned();
    for series in &all {
        let _ = write!(out, ",{}", csv_field(&series.label));
    }
    out.push('\n');
    let runs: Vec<&Run> = all.iter().filter_map(Series::middle_run).collect();
    let mut heights: Vec<u32> =
        runs.iter().flat_map(|run| &run.blocks).map(|block| block.height).collect();
    heights.sort_unstable();
    heights.dedup();
    for height in heights {
        let _ = write!(out, "{height}");
        for run in &runs {
            // Blocks of a run are sorted by height.
            let found = run.blocks.binary_search_by_key(&height, |block| block.height);
            match found {
                Ok(index) => {
                    let _ = write!(out, ",{:.3}", run.blocks[index].tip_at_s);
                }
                Err(_) => out.push(','),
            }
        }
        out.push('\n');
    }
    out
}

/// `curves-long.csv`: every run, a row per height, with cumulative chain contents.
pub(super) fn long_csv(results: &Results) -> String {
    let mut out =
        "target,run,status,repeat,height,elapsed_s,txs_so_far,inputs_so_far,bytes_so_far\n"
            .to_owned();
    for target in &results.targets {
        for run in &target.runs {
            let status = run.status.as_str();
            let (mut txs, mut inputs, mut bytes) = (0, 0, 0);
            for block in &run.blocks {
                (txs, inputs, bytes) =
                    (txs + block.txs, inputs + block.inputs, bytes + block.bytes);
                let _ = writeln!(
                    out,
                    "{},{},{status},{},{},{:.3},{txs},{inputs},{bytes}",
                    csv_field(&target.name),
                    csv_field(&run.id),
                    run.repeat,
                    block.height,
                    block.tip_at_s,
                );
            }
        }
    }
    out
}

pub(super) fn limitations(results: &Results) -> Vec<String> {
    let mut points = vec![
        "Laboratory, target and, where there is one, the source of blocks share one machine and its cores.".to_owned(),
        "The chain is forged and small compared with a public one: costs that grow with the UTXO set show less here."
            .to_owned(),
    ];
    if !is_like_for_like(results) {
        points.push(
            "Blocks reached the targets by different paths; see the table of targets.".to_owned(),
        );
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn curves_and_ratios_of_syncs() {
        let results = fixture::syncs();
        let charts = charts(&results);
        let titles: Vec<_> = charts.iter().map(Chart::title).collect();
        assert_eq!(titles.len(), 4, "{titles:?}");
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
    fn savings_add_up() {
        let results = fixture::syncs();
        let tables = differences(&results);
        let value = |text: &str| text.replace(['−', ','], "").parse::<f64>().expect("a number");
        let ranges = &tables[0].rows;
        assert_eq!(ranges.len(), RANGES + 1);
        let run =
            results.targets[0].runs.iter().map(|run| run.blocks.last().expect("blocks").tip_at_s);
        let median = median(&run.collect::<Vec<_>>());
        let (parts, whole) = ranges.split_at(RANGES);
        let sum: f64 = parts.iter().map(|row| value(&row[1])).sum();
        assert!((sum - median).abs() < 0.02 * median, "{sum} {median}");
        assert!((value(&whole[0][1]) - median).abs() < 0.01 * median);
        insta::assert_snapshot!(
            tables
                .iter()
                .map(|table| {
                    let mut text = String::new();
                    table.text(&mut text);
                    text
                })
                .collect::<Vec<_>>()
                .join("\n")
        );
    }

    #[test]
    fn files_of_curves() {
        let results = fixture::syncs();
        let wide = wide_csv(&results);
        let heights = results.targets[0].runs[0].blocks.len();
        assert_eq!(wide.lines().count(), heights + 1);
        assert!(wide.starts_with("height,assay,bchn-28.0.1\n"), "{wide:.80}");
        assert!(wide.lines().all(|line| line.matches(',').count() == 2));
        let long = long_csv(&results);
        assert_eq!(long.lines().count(), 8 * heights + 1);
        let last = long.lines().last().expect("rows");
        assert!(
            last.ends_with(&format!(
                ",{},{},{}",
                results.chain.txs, results.chain.inputs, results.chain.bytes
            )),
            "{last}"
        );
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
        assert_eq!(outcome(&results).rows[0][3], "60.000");
        let ranges = &differences(&results)[0];
        assert!(ranges.rows.iter().all(|row| !row[4].contains("00.0 %")), "nothing absurd");
    }

    #[test]
    fn shows_delivery_methods() {
        let mut results = fixture::syncs();
        assert!(prose(&results).iter().any(|line| line.starts_with("Not all targets")));
        results.targets[1].delivery = None;
        assert!(!prose(&results).iter().any(|line| line.starts_with("Not all targets")));
        let table = delivery_methods(&results);
        assert_eq!(table.rows[0][4], "4 of 4");
        assert_eq!(
            (table.rows[0][5].as_str(), table.rows[1][6].as_str()),
            ("equals the ledger", "not reported by the target")
        );
    }
}
