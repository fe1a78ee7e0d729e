//! Tables of verdicts and of published figures.

use assay_report::Table;
use assay_report::number::count;
use assay_report::stats::ratio::Ratio;

use crate::harness::Figures;
use crate::results::{BenchResults, Measured};
use crate::suite::Published;

/// Maximum number of comparisons in a summary.
const SUMMARY_MAX: usize = 60;

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

fn interval(ratio: &Ratio) -> String {
    format!("{:.3} to {:.3}", ratio.low, ratio.high)
}

fn none() -> String {
    "-".to_owned()
}

/// At least three significant digits.
fn number(value: f64) -> String {
    if value >= 1000.0 {
        return count(value.round_ties_even() as u64);
    }
    if value >= 100.0 { format!("{value:.1}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_can_be_read() {
        for (value, text) in [
            (0.0, "0.00"),
            (12.345, "12.35"),
            (123.45, "123.5"),
            (1234.5, "1,234"),
            (1e6, "1,000,000"),
        ] {
            assert_eq!(number(value), text);
        }
    }
}
