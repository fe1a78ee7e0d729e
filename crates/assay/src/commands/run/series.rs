//! `assay run PLAN --series K`: repeats a plan and counts its verdicts.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, bail};
use assay_lab::compare::{CompareOptions, Comparison, Source, compare};
use assay_lab::plan::Plan;
use assay_lab::progress::Reporter;
use assay_lab::results::Results;
use assay_lab::run::{RunOptions, run as run_plan};
use assay_report::Table;
use assay_report::atomic_file;
use serde::Serialize;

use crate::Outcome;
use crate::output;

/// File name of the summary in the folder of all series.
const SUMMARY: &str = "series.json";

#[derive(Serialize)]
struct Summary {
    schema: u32,
    kind: &'static str,
    plan: String,
    pairs: u32,
    /// Verdicts of faster or slower on totals, over all series.
    differences_of_totals: usize,
    /// Verdicts of faster or slower on any row.
    differences: usize,
    rows: usize,
    /// False differences: those between the same software.
    false_differences_of_totals: usize,
    false_differences: usize,
    /// Largest distance from 1 of the interval of a total between the same software, over all series, as a share.
    floor_of_totals: Option<f64>,
    series: Vec<OneSeries>,
}

#[derive(Serialize)]
struct OneSeries {
    folder: String,
    void_runs: usize,
    comparison: Comparison,
}

/// Runs the plan `count` times on one chain, each in its own folder.
pub(super) fn run(
    plan: &Plan,
    options: &RunOptions,
    (count, json): (u32, bool),
    reporter: &dyn Reporter,
) -> anyhow::Result<Outcome> {
    let targets =
        if options.targets.is_empty() { plan.runs.targets.len() } else { options.targets.len() };
    if targets < 2 || plan.runs.repeat < 2 {
        bail!("--series compares: it wants two targets at least, and two pairs (--pairs)");
    }
    let out_dir = &options.out_dir;
    let mut series = Vec::new();
    for number in 1..=count {
        let folder = format!("series-{number}");
        output::complain(&format!("series {number} of {count}"));
        let mut options = options.clone();
        options.chain_dir.get_or_insert_with(|| out_dir.join("chain"));
        options.out_dir = out_dir.join(&folder);
        if number > 1 {
            options.reference_rate_command.clear();
        }
        let results = run_plan(plan.clone(), &options, reporter)?;
        series.push(judged(folder, results)?);
    }
    let summary = summarise(plan, series);
    write(&summary, out_dir)?;
    output::print_as(json, &summary, || text(&summary))?;
    let is_void = summary.series.iter().any(|series| series.void_runs > 0);
    Ok(if is_void { Outcome::Negative } else { Outcome::Good })
}

fn judged(folder: String, results: Results) -> anyhow::Result<OneSeries> {
    let void_runs = results.void_runs().count();
    let source = Source { name: folder.clone(), results };
    let comparison = compare(&[source], &CompareOptions::default())?;
    Ok(OneSeries { folder, void_runs, comparison })
}

fn summarise(plan: &Plan, series: Vec<OneSeries>) -> Summary {
    let count = |is_aa_only: bool, is_total_only: bool| {
        let comparisons = series.iter().flat_map(|series| &series.comparison.comparisons);
        let rows = comparisons
            .filter(|compared| compared.is_aa || !is_aa_only)
            .flat_map(|compared| &compared.rows);
        let rows = rows.filter(|row| row.is_total || !is_total_only);
        rows.filter(|row| row.verdict.is_difference()).count()
    };
    let comparisons = || series.iter().flat_map(|series| &series.comparison.comparisons);
    let same = comparisons().filter(|compared| compared.is_aa).flat_map(|compared| &compared.rows);
    let floor_of_totals =
        same.filter(|row| row.is_total).map(|row| row.ratio.reach()).reduce(f64::max);
    Summary {
        schema: 1,
        kind: "series",
        plan: plan.name.clone(),
        pairs: plan.runs.repeat,
        differences_of_totals: count(false, true),
        differences: count(false, false),
        rows: comparisons().map(|compared| compared.rows.len()).sum(),
        false_differences_of_totals: count(true, true),
        false_differences: count(true, false),
        floor_of_totals,
        series,
    }
}

fn write(summary: &Summary, out_dir: &Path) -> anyhow::Result<()> {
    let json = serde_json::to_vec_pretty(summary).context("cannot write JSON")?;
    Ok(atomic_file::write(&out_dir.join(SUMMARY), &json)?)
}

fn text(summary: &Summary) -> String {
    let head =
        ["Series", "A", "B", "pairs", "ratio", "interval", "reach", "verdict", "differences"];
    let caption = format!("{}: totals of each series; above 1, B is faster", summary.plan);
    let mut table = Table::new(&caption, &head, 3);
    for series in &summary.series {
        for compared in &series.comparison.comparisons {
            let differences =
                compared.rows.iter().filter(|row| row.verdict.is_difference()).count();
            for row in compared.rows.iter().filter(|row| row.is_total) {
                table.push([
                    series.folder.clone(),
                    compared.first.clone(),
                    compared.second.clone(),
                    row.ratio.pairs.to_string(),
                    format!("{:.4}", row.ratio.median),
                    format!("{:.4} to {:.4}", row.ratio.interval.low, row.ratio.interval.high),
                    format!("{:.2} %", row.ratio.reach() * 100.0),
                    row.verdict.text().to_owned(),
                    format!("{differences} of {}", compared.rows.len()),
                ]);
            }
        }
    }
    let mut out = String::new();
    table.text(&mut out);
    let _ = writeln!(
        out,
        "\ndifferences: {} on totals, {} on all {} rows; false ones (the same software on both sides): {} on totals, {} on all rows",
        summary.differences_of_totals,
        summary.differences,
        summary.rows,
        summary.false_differences_of_totals,
        summary.false_differences,
    );
    if let Some(floor) = summary.floor_of_totals {
        let _ = writeln!(
            out,
            "floor of totals on this machine, the largest of all series: {:.2} %",
            floor * 100.0
        );
    }
    for note in summary.series.iter().flat_map(|series| {
        let notes = series.comparison.notes();
        notes.into_iter().map(move |note| format!("{}: {note}", series.folder))
    }) {
        let _ = writeln!(out, "note: {note}");
    }
    out
}
