//! The report's question: which of its optimisations matter, here and there, and what each saves.

use assay_bench::BenchError;
use assay_bench::harness::Row;
use assay_bench::published::SyncStep;
use assay_bench::suite::{Extent, Study, StudyTable};
use assay_report::stats::ratio::Ratio;
use assay_report::stats::verdict::{COVERAGE, FLOOR_MIN, Verdict};

use super::compared::{Columns, Compared, Saving, Shows, Step};
use super::names::ASSAY;
use super::published::{ratios_of, syncs};
use super::subjects::{MODERN, REAL};
use super::{IbdSuite, inline};

pub(super) fn all(
    suite: &IbdSuite,
    extent: Extent,
    rows: &[Row],
) -> Result<Vec<Study>, BenchError> {
    let data = Compared::built_in();
    let memory = Study {
        id: "inline-memory".to_owned(),
        title: "Inline scripts: allocations and bytes".to_owned(),
        prose: data.prose("inline-memory"),
        tables: vec![inline::memory(extent)?],
        ..Study::default()
    };
    let studies = [pairs(&data, suite, rows), sum(&data, rows), ours(&data, rows)];
    Ok(studies.into_iter().chain([data.commits, memory]).collect())
}

/// The rows that the name of a step's benchmark stands for.
fn rows_of<'r>(step: &Step, rows: &'r [Row]) -> Vec<&'r Row> {
    let (prefix, is_open) = match step.benchmark.strip_suffix('*') {
        Some(prefix) => (prefix, true),
        None => (step.benchmark.as_str(), false),
    };
    rows.iter()
        .filter(|row| if is_open { row.name.starts_with(prefix) } else { row.name == prefix })
        .collect()
}

fn interval(ratio: &Ratio) -> String {
    format!("{:.3} [{:.3}, {:.3}]", ratio.median, ratio.low, ratio.high)
}

/// The same rule as for every other comparison of the bench.
fn verdict(ratio: &Ratio) -> Verdict {
    Verdict::of(ratio, FLOOR_MIN)
}

fn verdict_text(ratio: &Ratio, reason: &str) -> String {
    match verdict(ratio) {
        Verdict::Faster => "pays".to_owned(),
        Verdict::Slower => format!("costs: {reason}"),
        Verdict::NotShown | Verdict::Equivalent => format!("does not pay here: {reason}"),
    }
}

fn time(ns: f64) -> String {
    match ns {
        0.0..1e3 => format!("{ns:.1} ns"),
        1e3..1e6 => format!("{:.2} µs", ns / 1e3),
        _ => format!("{:.3} ms", ns / 1e6),
    }
}

fn ns_of(row: &Row, name: &str) -> f64 {
    row.of(name).map_or(0.0, |figures| figures.ns_per_op)
}

/// Time of an alternative over that of the engine.
fn over_ours(row: &Row, name: &str) -> String {
    row.ratio_covered(name, ASSAY, COVERAGE).map_or("-".to_owned(), |ratio| interval(&ratio))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Pair by pair: whether it pays.
fn pairs(data: &Compared, suite: &IbdSuite, rows: &[Row]) -> Study {
    let mut cells = Vec::new();
    let mut paying = 0;
    for pair in &data.pairs {
        let Step { before, after, .. } = &pair.step;
        for row in rows_of(&pair.step, rows) {
            let Some(ratio) = row.ratio_covered(before, after, COVERAGE) else { continue };
            paying += usize::from(verdict(&ratio) == Verdict::Faster);
            cells.push(vec![
                pair.what.clone(),
                row.name.clone(),
                format!("{before} → {after}"),
                verdict_text(&ratio, &pair.reason),
                ratios_of(&row.name),
                time(ns_of(row, before)),
                time(ns_of(row, after)),
                interval(&ratio),
                over_ours(row, before),
            ]);
        }
    }
    let mut prose = vec![format!(
        "Of {} pairs {paying} show a ratio (time before over time after) above 1 with a 99 % interval that excludes 1, \
         by more than the 1 % that the place of code in memory makes. A pair that does not says why.",
        cells.len()
    )];
    prose.extend(data.prose("pairs"));
    prose.push(if suite.has_real() {
        "The real block's inputs are not at hand: its undo data is synthetic, of the kinds of script of 2016.".to_owned()
    } else {
        format!("Skipped: real block {REAL} was not found (`ASSAY_TEST_DATA`); only the modern block was measured.")
    });
    let head = [
        "optimisation",
        "benchmark",
        "step",
        "verdict",
        "published",
        "before",
        "after",
        "ratio",
        "before / ours",
    ];
    Study {
        id: "pairs".to_owned(),
        title: "Each optimisation before and after".to_owned(),
        prose,
        tables: vec![StudyTable {
            caption:
                "Ratios with 99 % intervals; `before / ours` compares with what the engine does"
                    .to_owned(),
            head: words(&head),
            word_columns: 5,
            rows: cells,
        }],
        ..Study::default()
    }
}

/// The unit of what is done once per block.
const BLOCK: &str = "block";

/// Nanoseconds saved in one unit.
fn saved_ns(rows: &[Row], block: &str, saving: &Saving) -> Option<f64> {
    let of_step = |step: &Step| {
        let name = step.benchmark.replace('*', block);
        let row = rows.iter().find(|row| row.name == name)?;
        Some(row.of(&step.before)?.ns_per_op - row.of(&step.after)?.ns_per_op)
    };
    saving.of.iter().map(of_step).sum()
}

/// A line for each optimisation of these units that was measured.
fn saved(
    data: &Compared,
    rows: &[Row],
    block: &str,
    wanted: impl Fn(&str) -> bool,
) -> Vec<Vec<String>> {
    let line = |saving: &Saving| {
        let ns = saved_ns(rows, block, saving).filter(|_| wanted(&saving.unit))?;
        let saved = if ns < 0.0 { format!("-{}", time(-ns)) } else { time(ns) };
        Some(vec![saving.what.clone(), saving.unit.clone(), saved])
    };
    data.savings.iter().filter_map(line).collect()
}

/// What each saves of its own unit, and what the report has for a whole synchronisation.
fn sum(data: &Compared, rows: &[Row]) -> Study {
    let mut tables = Vec::new();
    let mut table = |caption: String, rows: Vec<Vec<String>>| {
        if !rows.is_empty() {
            let head = words(&["optimisation", "of each", "saved"]);
            tables.push(StudyTable { caption, head, word_columns: 2, rows });
        }
    };
    for block in [REAL, MODERN] {
        let of_block = saved(data, rows, block, |unit| unit == BLOCK);
        table(
            format!("What is saved in one block, written and checked once: block {block}"),
            of_block,
        );
    }
    table(
        "What is saved per coin or hash".to_owned(),
        saved(data, rows, REAL, |unit| unit != BLOCK),
    );
    tables.push(published_syncs());
    Study {
        id: "sum".to_owned(),
        title: "What each of them saves".to_owned(),
        prose: data.prose("sum"),
        tables,
        ..Study::default()
    }
}

/// The report's whole synchronisations, step by step.
fn published_syncs() -> StudyTable {
    let syncs = syncs();
    let first = syncs.steps.first().map_or(f64::NAN, |step| step.before_s);
    let last = syncs.steps.last().map_or(f64::NAN, |step| step.after_s);
    let mut published: Vec<Vec<String>> = syncs
        .steps
        .iter()
        .map(|SyncStep { optimisation, commit, before_s: before, after_s: after, .. }| {
            vec![
                optimisation.clone(),
                commit.clone(),
                format!("{before:.0} s"),
                format!("{after:.0} s"),
                format!("{:.3}", before / after),
                format!("{:.0} %", (before - after) * 100.0 / (first - last)),
            ]
        })
        .collect();
    published.push(vec![
        "all".to_owned(),
        String::new(),
        format!("{first:.0} s"),
        format!("{last:.0} s"),
        format!("{:.3}", first / last),
        "100 %".to_owned(),
    ]);
    StudyTable {
        caption: format!(
            "Published: synchronisation to block 886,000 after each step ({}, 5 GiB of cache)",
            syncs.machine
        ),
        head: words(&[
            "optimisation",
            "commit",
            "before",
            "after",
            "ratio",
            "share of what is saved",
        ]),
        word_columns: 2,
        rows: published,
    }
}

/// The engine against a copy, a set, write batches.
fn ours(data: &Compared, rows: &[Row]) -> Study {
    Study {
        id: "ours".to_owned(),
        title: "What the engine does instead".to_owned(),
        prose: data.prose("ours"),
        tables: data.ours.iter().map(|columns| columns.table(rows)).collect(),
        ..Study::default()
    }
}

impl Columns {
    fn table(&self, rows: &[Row]) -> StudyTable {
        let rows = rows.iter().filter(|row| row.name.starts_with(&self.benchmarks));
        StudyTable {
            caption: self.caption.clone(),
            head: self.head.clone(),
            word_columns: 1,
            rows: rows.map(|row| self.line(row)).collect(),
        }
    }

    fn line(&self, row: &Row) -> Vec<String> {
        let size = row.name.rsplit('/').next().unwrap_or_default();
        let shown = |name: &String| match self.shows {
            Shows::Time => time(ns_of(row, name)),
            Shows::Throughput => {
                let bytes: f64 = size.parse().unwrap_or(0.0);
                format!(
                    "{:.1}",
                    row.of(name).map_or(0.0, |found| bytes / found.ns_per_op.max(1e-3))
                )
            }
        };
        let first = if self.is_size_alone {
            row.name.trim_start_matches(&format!("{}/", self.benchmarks)).to_owned()
        } else {
            row.name.clone()
        };
        let ratios = self.over_ours.iter().map(|name| over_ours(row, name));
        std::iter::once(first).chain(self.alternatives.iter().map(shown)).chain(ratios).collect()
    }
}
