//! `assay run PLAN --series K`: repeats a plan and counts its verdicts.

use anyhow::bail;
use assay_lab::compare::{CompareOptions, Comparison, Source, compare};
use assay_lab::plan::Plan;
use assay_lab::progress::Reporter;
use assay_lab::results::Results;
use assay_lab::run::{RunOptions, run as run_plan};
use assay_report::atomic_file;
use assay_report::machine::Machine;
use assay_report::record::{Outcome as RunsOutcome, Record, Unit};
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
    let mut machine = Machine::default();
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
        machine = results.machine.clone();
        series.push(judged(folder, results)?);
    }
    let summary = summarise(plan, series);
    atomic_file::write_json(&out_dir.join(SUMMARY), &summary)?;
    output::print_as(json, &summary, || record(&summary, &machine, &options.rerun).text())?;
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

/// Record of the totals of each series.
fn record(summary: &Summary, machine: &Machine, rerun: &str) -> Record {
    let mut record = Record {
        kind: summary.kind.to_owned(),
        schema: assay_report::record::SCHEMA,
        created: assay_lab::machine::utc_now(),
        machine: machine.clone(),
        command: rerun.to_owned(),
        headline: format!(
            "{}: {} differences on totals and {} on all {} rows; false ones, of the same software on both sides: {} on totals \
             and {} on all rows.",
            summary.plan,
            summary.differences_of_totals,
            summary.differences,
            summary.rows,
            summary.false_differences_of_totals,
            summary.false_differences,
        ),
        ..Record::default()
    };
    let mut void_runs = 0;
    for series in &summary.series {
        void_runs += series.void_runs;
        for compared in &series.comparison.comparisons {
            let target = format!("{} against {}", compared.second, compared.first);
            for row in compared.rows.iter().filter(|row| row.is_total) {
                row.add_to(&mut record, (&target, &series.folder));
                let reach = ("reach", Unit::Percent, Some(100.0 * row.ratio.reach()));
                record.add((&target, &series.folder, None), &[reach]);
            }
            let notes = compared.notes.iter().map(|note| format!("{}: {note}", series.folder));
            record.notes.extend(notes);
        }
        let verdicts = series.comparison.verdicts().into_iter();
        record.notes.extend(verdicts.map(|verdict| format!("{}: {verdict}", series.folder)));
    }
    if let Some(floor) = summary.floor_of_totals {
        record.set(
            "floor of totals on this machine, the largest of all series",
            format!("{:.2} %", floor * 100.0),
        );
    }
    let failure = (void_runs > 0).then(|| format!("{void_runs} runs are void"));
    record
        .check("runs end in the state of the chain", RunsOutcome::of(summary.rows as u64, failure));
    record
}
