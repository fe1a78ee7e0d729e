//! Tables of the report besides the measurements.

use assay_report::Table;
use assay_report::stats::ratio::Ratio;

use crate::harness::Figures;
use crate::results::{BenchResults, Measured};
use crate::suite::Published;
use crate::table::{NONE, number};

/// Maximum number of comparisons in a summary.
const SUMMARY_MAX: usize = 60;

/// Ratios alone, if there are few enough for a summary.
pub(super) fn summary(results: &BenchResults) -> Vec<Table> {
    let compared = results.benchmarks.iter().map(|measured| measured.comparisons.len());
    if !(1..=SUMMARY_MAX).contains(&compared.sum()) {
        return Vec::new();
    }
    let head = ["Benchmark", "Baseline", "By", "ratio", "99 % interval", "CPU ratio", "verdict"];
    let mut table = Table::new("Ratios: the baseline's time over this one's", &head, 3);
    for measured in &results.benchmarks {
        for found in &measured.comparisons {
            table.push([
                measured.name.clone(),
                found.baseline.clone(),
                found.alternative.clone(),
                format!("{:.3}", found.ratio.median),
                interval(&found.ratio),
                found.cpu_ratio.map_or_else(none, |ratio| format!("{:.3}", ratio.median)),
                found.verdict.text().to_owned(),
            ]);
        }
    }
    vec![table]
}

/// Published figures against measured ones: of Assay in most benchmarks, of libraries in comparisons of libraries.
pub(super) fn published(results: &BenchResults) -> Vec<Table> {
    let head = [
        "Benchmark",
        "Who, on what",
        "Measured here",
        "published ns/op",
        "ns/op here",
        "published / here",
        "published ins/op",
        "ins/op here",
        "published ratio",
        "ratio here",
        "99 % interval",
        "note",
    ];
    let here = results.conditions.machine.cpu.as_deref().unwrap_or("this machine");
    let caption = format!("Published figures; measured here on: {here}");
    let mut table = Table::new(&caption, &head, 3);
    for figure in &results.published {
        let measured = results.benchmarks.iter().find(|one| one.name == figure.benchmark);
        let mut here: Vec<Option<(&Measured, &Figures)>> =
            measured.into_iter().flat_map(shown).map(Some).collect();
        if here.is_empty() {
            here.push(None);
        }
        for (index, here) in here.into_iter().enumerate() {
            table.rows.push(against(figure, index == 0, here));
        }
    }
    if table.rows.is_empty() { Vec::new() } else { vec![table] }
}

/// Alternatives for comparison with a published figure: all but the baseline if there are several.
fn shown(measured: &Measured) -> impl Iterator<Item = (&Measured, &Figures)> {
    let figures = measured.row.figures.iter();
    let is_shown = |figures: &&Figures| {
        measured.comparisons.is_empty() || measured.comparison(&figures.name).is_some()
    };
    figures.filter(is_shown).map(move |figures| (measured, figures))
}

fn against(figure: &Published, is_first: bool, here: Option<(&Measured, &Figures)>) -> Vec<String> {
    let or_none = |value: Option<f64>| value.map_or_else(none, number);
    let words = |text: &str| if is_first { text.to_owned() } else { String::new() };
    let figures = here.map(|(_, figures)| figures);
    let ratio = here.and_then(|(measured, figures)| measured.comparison(&figures.name));
    let here_ns = figures.map(|figures| figures.ns_per_op);
    let quotient = figure.ns_per_op.zip(here_ns).map(|(published, here)| published / here);
    vec![
        words(&figure.benchmark),
        words(&format!("{}; {}", figure.subject, figure.machine)),
        figures.map_or_else(|| "not measured".to_owned(), |figures| figures.name.clone()),
        or_none(figure.ns_per_op),
        or_none(here_ns),
        or_none(quotient),
        or_none(figure.instructions_per_op),
        or_none(figures.and_then(|figures| figures.instructions_per_op)),
        or_none(figure.ratio),
        ratio.map_or_else(none, |found| format!("{:.3}", found.ratio.median)),
        ratio.map_or_else(none, |found| interval(&found.ratio)),
        words(&figure.note),
    ]
}

/// Benchmarks and studies without figures.
pub(super) fn failures(results: &BenchResults) -> Vec<Table> {
    if results.failures.is_empty() {
        return Vec::new();
    }
    let mut table = Table::new("Without figures", &["What", "Why"], 2);
    for failure in &results.failures {
        table.push([failure.name.clone(), failure.error.clone()]);
    }
    vec![table]
}

pub(super) fn software(results: &BenchResults) -> Table {
    let software = &results.software;
    let mut table = Table::new("Software and extent", &["What", "Value"], 2);
    let load = results.conditions.load_1m.map_or_else(none, |load| format!("{load:.2}"));
    for (what, value) in [
        ("Assay", format!("{} ({})", software.assay, software.profile)),
        ("Compiler", software.rustc.clone()),
        ("Load at the beginning", load),
        ("Extent", results.extent.text().to_owned()),
        ("Rounds", results.rounds.to_string()),
        ("Counts", results.counting.note.clone()),
    ] {
        table.push([what.to_owned(), value]);
    }
    for build in results.plan.iter().flat_map(|plan| &plan.builds) {
        table.push([format!("Build {}", build.name), build.command.join(" ")]);
    }
    table
}

fn interval(ratio: &Ratio) -> String {
    format!("{:.3} to {:.3}", ratio.low, ratio.high)
}

fn none() -> String {
    NONE.to_owned()
}
