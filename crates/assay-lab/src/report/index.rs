//! Index section of the report, with indexes next to their nodes.

use std::fmt::Write as _;

use assay_report::Table;
use assay_report::number::{
    UNAVAILABLE, count, mib, or_unavailable, percent, rate, ratio, seconds, whole_percent,
};
use assay_report::stats::{median, spread};

use super::NONE;
use super::series::{self, measured_phases, published};
use crate::plan::{Figure, FigureKind};
use crate::results::{IndexPhase, PhaseResult, Results, Run, Status, TargetResults};

/// A rate of an index.
struct Metric {
    unit: &'static str,
    ours: fn(&IndexPhase) -> f64,
    published: fn(&Figure) -> Option<f64>,
}

const METRICS: [Metric; 6] = [
    Metric { unit: "tx/s", ours: |p| p.tx_per_s, published: |f| f.tx_per_s },
    Metric { unit: "inputs/s", ours: |p| p.inputs_per_s, published: |f| f.inputs_per_s },
    Metric { unit: "outputs/s", ours: |p| p.outputs_per_s, published: |f| f.outputs_per_s },
    Metric { unit: "script hashes/s", ours: |p| p.script_hashes_per_s, published: |_| None },
    Metric { unit: "MiB/s", ours: |p| p.mib_per_s, published: |f| f.mib_per_s },
    Metric { unit: "tx/s, with node", ours: |p| p.pair_tx_per_s, published: |f| f.tx_per_s },
];

/// Introduction to the tables.
pub(super) fn prose(results: &Results) -> Vec<String> {
    let mut out = vec![
        "The index is watched from outside, by `blockchain.headers.subscribe` on a connection of its \
         own: a block is indexed when a tip at its height or above is announced, or given in answer \
         to the same question, asked every 10 ms while nothing is announced. Service time runs to that announcement from the later of \
         two times: when the block became the node's tip, and when its predecessor was indexed; queue \
         time is the waiting of a block for its predecessor. \
         Rates are of service time. An index that is at work while the node still validates has its \
         block soon after the node, so its service time is what remains; the rate \"with node\" is of \
         the time from sending the block (or from its predecessor's being indexed, if that is later) \
         to the announcement, and is the one to compare between programs that share the work in \
         another way. Blocks announced together were indexed together: the first of them carries the \
         time. Script hashes per second count one for each output of the blocks and one for each output that \
         an input spends: what an index of script hashes has to enter."
            .to_owned(),
        "A run counts only if the index reached the tip and its answers passed the ledger check: \
         history, balance and unspent outputs of every script hash, or of a seeded sample, asked for \
         by protocol and compared with what the block files say."
            .to_owned(),
    ];
    if results.chain.recipe.starts_with("bch-scaling") {
        out.push(
            "What is compared: in the chain as published, each fan-out block of full size pays to \
             1,067 receiving addresses, so that each of them has thousands of outputs and the cost of \
             long histories decides. Targets with `-distinct` in their name, and chains forged with \
             distinct keys, have one address per output, which is closer to the other extreme; there \
             is no published figure for it. Programs that append to histories and programs that \
             keep them as separate entries do not suffer from the two in the same way."
                .to_owned(),
        );
    }
    let is_published = |kind| {
        let figures = results.plan.published.iter().flat_map(|published| &published.figures);
        figures.into_iter().any(|figure| figure.kind == kind)
    };
    if is_published(FigureKind::Index) {
        out.push(
            "The published figures of the index count from the node's having a block to the index's \
             having it, with blocks sent one after the other, so that they include the queue. The \
             version measured also dropped its connection to the node during large replies and began \
             again, which decides its figures from the first steady state on; later versions do not. \
             That is other work than ours, so no ratio is printed; `--target bitcoind=PATH+fulcrum=PATH` \
             measures the two side by side."
                .to_owned(),
        );
    }
    out
}

/// Targets with an index.
pub(super) fn targets(results: &Results) -> impl Iterator<Item = &TargetResults> {
    results.targets.iter().filter(|target| target.index.is_some())
}

fn phase_of<'a>(run: &'a Run, name: &str) -> Option<&'a IndexPhase> {
    let index = run.index.as_ref()?;
    if name == "total" {
        return Some(&index.total);
    }
    index.phases.iter().find(|phase| phase.name == name)
}

fn values(runs: &[&Run], name: &str, figure: fn(&IndexPhase) -> f64) -> Vec<f64> {
    runs.iter().filter_map(|run| phase_of(run, name)).map(figure).collect()
}

/// Median over runs; `None` without runs, or without time to divide by.
fn middle(runs: &[&Run], name: &str, figure: fn(&IndexPhase) -> f64) -> Option<f64> {
    let values = values(runs, name, figure);
    (!values.is_empty()).then(|| median(&values)).filter(|value| *value > 0.0)
}

fn phases_and_total(results: &Results) -> Vec<(String, String)> {
    let mut phases = measured_phases(results);
    phases.push(("total".to_owned(), "All of these".to_owned()));
    phases
}

/// All pre-relayed shares side by side, with the published figure.
pub(super) fn side_by_side(results: &Results, target: &TargetResults) -> Table {
    let shares = target.seen_shares();
    let is_published = results.plan.published.is_some() && !target.distinct_keys;
    let mut head = vec!["Phase".to_owned(), "Index, per second".to_owned()];
    for seen in &shares {
        head.push(format!("{} pre-relayed", whole_percent(*seen)));
        if is_published {
            head.push("published".to_owned());
        }
    }
    let caption = format!("{}: index, service rate per phase", target.name);
    let mut table = Table { caption, head, rows: Vec::new(), word_columns: 2 };
    for (name, title) in &phases_and_total(results) {
        for (row_number, metric) in METRICS.iter().enumerate() {
            let title = if row_number == 0 { title.clone() } else { String::new() };
            let mut row = vec![title, metric.unit.to_owned()];
            for seen in &shares {
                let runs = target.valid_runs(*seen);
                let value = middle(&runs, name, metric.ours);
                row.push(match (runs.is_empty(), value) {
                    (true, _) => "void".to_owned(),
                    (false, None) => NONE.to_owned(),
                    (false, Some(value)) => match spread(&values(&runs, name, metric.ours)) {
                        Some(spread) => format!("{} (spread {})", rate(value), percent(spread)),
                        None => rate(value),
                    },
                });
                if is_published {
                    let figure = published(results, FigureKind::Index, name, *seen);
                    let figure = figure.and_then(metric.published).filter(|value| *value > 0.0);
                    row.push(figure.map_or_else(|| NONE.to_owned(), rate));
                }
            }
            table.rows.push(row);
        }
    }
    table
}

/// Node and index side by side.
pub(super) fn against_node(results: &Results, target: &TargetResults) -> Table {
    let head = [
        "Phase",
        "Seen",
        "Node, s",
        "Index, s",
        "Index queue, s",
        "Longest lag, s",
        "Node tx/s",
        "Index tx/s",
        "Together tx/s",
        "Node inputs/s",
        "Index inputs/s",
        "Together inputs/s",
        "Index script hashes/s",
        "Together script hashes/s",
    ];
    let mut table = Table::new(&format!("{}: node and index", target.name), &head, 2);
    for (name, title) in &phases_and_total(results) {
        for seen in target.seen_shares() {
            let runs = target.valid_runs(seen);
            let node = |figure: fn(&PhaseResult) -> f64| {
                or_unavailable(series::of_phase(&runs, name, figure), rate)
            };
            let index = |figure: fn(&IndexPhase) -> f64| {
                middle(&runs, name, figure).map_or_else(|| NONE.to_owned(), rate)
            };
            let time = |figure: fn(&IndexPhase) -> f64| {
                let values = values(&runs, name, figure);
                if values.is_empty() { UNAVAILABLE.to_owned() } else { seconds(median(&values)) }
            };
            table.push([
                title.clone(),
                whole_percent(seen),
                or_unavailable(series::of_phase(&runs, name, |p| p.seconds), seconds),
                time(|p| p.seconds),
                time(|p| p.queue_s),
                time(|p| p.lag_s_max),
                node(|p| p.tx_per_s),
                index(|p| p.tx_per_s),
                index(|p| p.pair_tx_per_s),
                node(|p| p.inputs_per_s),
                index(|p| p.inputs_per_s),
                index(|p| p.pair_inputs_per_s),
                index(|p| p.script_hashes_per_s),
                index(|p| p.pair_script_hashes_per_s),
            ]);
        }
    }
    table
}

/// End state of every run's index.
pub(super) fn ends(results: &Results) -> Table {
    let head = [
        "Run",
        "Server",
        "Protocol",
        "Lag at the end, s",
        "Scripts compared",
        "History entries",
        "Unspent",
        "Differences",
        "Rejected",
        "Index on disk, MiB",
        "Node on disk, MiB",
        "CPU, s",
        "Peak memory, MiB",
        "Written, MiB",
        "Requests timed out",
    ];
    let mut table = Table::new("Indexes at the end of their runs", &head, 3);
    for run in results.runs() {
        let Some(index) = &run.index else { continue };
        let ledger = |figure: fn(&crate::electrum::check::LedgerCheck) -> u64| {
            index.ledger.as_ref().map_or_else(|| NONE.to_owned(), |ledger| count(figure(ledger)))
        };
        table.push([
            run.id.clone(),
            index.server.clone(),
            index.protocol.clone(),
            or_unavailable(index.lag_end_s, seconds),
            ledger(|ledger| ledger.scripts),
            ledger(|ledger| ledger.history),
            ledger(|ledger| ledger.unspent),
            ledger(|ledger| ledger.differences),
            ledger(|ledger| ledger.refused),
            or_unavailable(index.index_bytes, mib),
            or_unavailable(index.node_bytes, mib),
            or_unavailable(index.cpu_s, |cpu| format!("{cpu:.2}")),
            or_unavailable(index.rss_peak_bytes, mib),
            or_unavailable(index.written_bytes, mib),
            index.timeouts.map_or_else(|| NONE.to_owned(), count),
        ]);
    }
    table
}

/// Indexes of several targets on the same chain, by the combined time with their nodes.
pub(super) fn between_targets(results: &Results) -> Option<Table> {
    let all: Vec<&TargetResults> = targets(results).filter(|t| series::has_valid(t)).collect();
    let (first, others) = all.split_first().filter(|(_, others)| !others.is_empty())?;
    let mut head = vec!["Phase".to_owned(), "Seen".to_owned(), first.name.clone()];
    for other in others {
        head.extend([other.name.clone(), format!("{} / {}", first.name, other.name)]);
    }
    let caption = "Indexes compared: inputs per second of service time".to_owned();
    let mut table = Table { caption, head, rows: Vec::new(), word_columns: 2 };
    for (name, title) in &phases_and_total(results) {
        for seen in first.seen_shares() {
            let value = |target: &TargetResults| {
                middle(&target.valid_runs(seen), name, |phase| phase.inputs_per_s)
            };
            let ours = value(first);
            let cell = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), rate);
            let mut row = vec![title.clone(), whole_percent(seen), cell(ours)];
            for other in others {
                let theirs = value(other);
                let times = ours.zip(theirs).map(|(above, below)| ratio(above / below));
                row.extend([cell(theirs), times.unwrap_or_else(|| NONE.to_owned())]);
            }
            table.rows.push(row);
        }
    }
    Some(table)
}

/// A line per series with an index, and one for the comparison.
pub(super) fn headlines(results: &Results) -> Vec<String> {
    let mut out = Vec::new();
    for target in targets(results) {
        for seen in target.seen_shares() {
            let runs = target.valid_runs(seen);
            let Some(run) = runs.get(runs.len().saturating_sub(1) / 2) else { continue };
            let Some(index) = &run.index else { continue };
            let figure = |figure: fn(&IndexPhase) -> f64| {
                middle(&runs, "total", figure).map_or_else(|| NONE.to_owned(), rate)
            };
            let mut line = format!(
                "{}, {} pre-relayed, index: {} inputs/s over {} s of service time, {} s of queue, {} s \
                 behind at the end; node and index together {} inputs/s",
                target.name,
                whole_percent(seen),
                figure(|phase| phase.inputs_per_s),
                seconds(index.total.seconds),
                seconds(index.total.queue_s),
                or_unavailable(index.lag_end_s, seconds),
                figure(|phase| phase.pair_inputs_per_s),
            );
            // Writing to a string cannot fail.
            if let Some(bytes) = index.index_bytes {
                let _ = write!(line, ", {} MiB on disk", mib(bytes));
            }
            if let Some(ledger) = &index.ledger {
                line.push_str("; ");
                line.push_str(&ledger.summary());
            }
            out.push(line);
        }
    }
    out
}

/// Inputs per second of node and index together; the phase `total` is the sum of measured phases.
pub(super) fn with_node_inputs_per_s(runs: &[&Run], phase: &str) -> Option<f64> {
    middle(runs, phase, |phase| phase.pair_inputs_per_s)
}

/// True if a valid run has an index.
pub(super) fn is_there(results: &Results) -> bool {
    targets(results).any(|target| target.runs.iter().any(|run| run.status == Status::Valid))
}
