//! `assay run PLAN --series K`: repeats a plan and counts its verdicts.

use anyhow::bail;
use assay_lab::compare::{CompareOptions, Comparison, Source, compare};
use assay_lab::machine::new_record;
use assay_lab::plan::Plan;
use assay_lab::progress::Reporter;
use assay_lab::run::{RunOptions, run as run_plan};
use assay_report::record::{Outcome as RunsOutcome, Record, Unit};

use crate::Outcome;
use crate::commands::bench::software;
use crate::output;

/// Comparison of one series.
struct Compared {
    folder: String,
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
    let mut void_runs = 0;
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
        void_runs += results.void_runs().count();
        let source = Source { name: folder.clone(), results };
        let comparison = compare(&[source], &CompareOptions::default())?;
        series.push(Compared { folder, comparison });
    }
    let mut record = new_record("series", &software(), &options.rerun, out_dir);
    record.set("pairs", plan.runs.repeat);
    let rows = describe(&plan.name, &series, &mut record);
    let failure = (void_runs > 0).then(|| format!("{void_runs} runs are void"));
    record.check("runs end in the state of the chain", RunsOutcome::of(rows as u64, failure));
    record.write(&out_dir.join("series.json"))?;
    output::print_as(json, &record, || record.text())?;
    Ok(if void_runs > 0 { Outcome::Negative } else { Outcome::Good })
}

/// Adds the totals of each series; returns the number of all rows.
fn describe(plan: &str, series: &[Compared], record: &mut Record) -> usize {
    // Differences on totals and on all rows; false ones are those between the same software.
    let (mut rows, mut totals, mut all) = (0, 0, 0);
    let (mut false_totals, mut false_all) = (0, 0);
    let mut floor = None;
    for Compared { folder, comparison } in series {
        for compared in &comparison.comparisons {
            let target = format!("{} against {}", compared.second, compared.first);
            rows += compared.rows.len();
            for row in &compared.rows {
                let (is_total, is_same) = (row.is_total, compared.is_aa);
                if row.verdict.is_difference() {
                    all += 1;
                    totals += usize::from(is_total);
                    false_all += usize::from(is_same);
                    false_totals += usize::from(is_same && is_total);
                }
                if is_total {
                    let reach = row.ratio.reach();
                    row.add_to(record, (&target, folder));
                    let figure = ("reach", Unit::Percent, Some(100.0 * reach));
                    record.add((&target, folder, None), &[figure]);
                    if is_same {
                        floor = Some(floor.map_or(reach, |floor: f64| floor.max(reach)));
                    }
                }
            }
            record.notes.extend(compared.notes.iter().map(|note| format!("{folder}: {note}")));
        }
        let verdicts = comparison.verdicts().into_iter();
        record.notes.extend(verdicts.map(|verdict| format!("{folder}: {verdict}")));
    }
    for (name, number) in [
        ("rows", rows),
        ("differences on totals", totals),
        ("differences", all),
        ("false differences on totals", false_totals),
        ("false differences", false_all),
    ] {
        record.set(name, number);
    }
    record.headline = format!(
        "{plan}: {totals} differences on totals and {all} on all {rows} rows; false ones, of the same software on both sides: \
         {false_totals} on totals and {false_all} on all rows."
    );
    if let Some(floor) = floor {
        let name = "floor of totals on this machine, the largest of all series";
        record.set(name, format!("{:.2} %", floor * 100.0));
    }
    rows
}
