//! Human-readable figures.

use std::fmt::Write as _;

use assay_report::Table;
use assay_report::csv_field;
use assay_report::number::count;
use assay_report::stats::ratio::Ratio;

use crate::harness::{Figures, Row};
use crate::results::{BenchResults, Measured};

/// Rows as a table: a line per alternative.
pub fn rows(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<40}{:<26}{:>14}{:>14}{:>7}{:>14}{:>9}\n",
        "operation", "by", "ns/op", "op/s", "err%", "CPU ns/op", "total s"
    );
    for row in rows {
        for (index, figures) in row.figures.iter().enumerate() {
            let _ = writeln!(
                text,
                "{:<40}{:<26}{:>14}{:>14}{:>7.1}{:>14}{:>9.2}",
                if index == 0 { &row.name } else { "" },
                figures.name,
                number(figures.ns_per_op),
                number(figures.op_per_s),
                figures.err_percent,
                number(figures.cpu_ns_per_op),
                figures.total_s,
            );
        }
    }
    text
}

/// A ratio of wall times and, if measured, of CPU times.
pub type Pair = (Option<Ratio>, Option<Ratio>);

/// A line per ratio.
pub fn ratios<'a>(ratios: impl IntoIterator<Item = (&'a str, Pair)>) -> String {
    let mut text = String::new();
    for (name, (wall, cpu)) in ratios {
        let Some(Ratio { median, low, high, coverage, pairs }) = wall else { continue };
        let percent = coverage * 100.0;
        let _ = write!(
            text,
            "{name:<44}{median:>7.2}  ({low:.2} to {high:.2}, {percent:.0} % interval of {pairs} pairs)"
        );
        if let Some(Ratio { median, low, high, .. }) = cpu {
            let _ = write!(text, "  CPU {median:.2} ({low:.2} to {high:.2})");
        }
        text.push('\n');
    }
    text
}

/// Text of a missing measurement.
pub const NONE: &str = "-";

/// Headings of [`measured`].
const HEAD: [&str; 15] = [
    "Benchmark",
    "By",
    "ns/op",
    "op/s",
    "err%",
    "ins/op",
    "cyc/op",
    "IPC",
    "bra/op",
    "miss%",
    "MB/s",
    "total s",
    "ratio",
    "99 % interval",
    "verdict",
];

/// Benchmarks with all columns: a line per alternative, with its ratio to the baseline.
pub fn measured<'a>(caption: &str, all: impl IntoIterator<Item = &'a Measured>) -> Table {
    let mut table = Table::new(caption, &HEAD, 2);
    for measured in all {
        for (index, figures) in measured.row.figures.iter().enumerate() {
            let name = if index == 0 { measured.name.clone() } else { String::new() };
            table.rows.push(line(name, measured, figures));
        }
    }
    table
}

fn line(name: String, measured: &Measured, figures: &Figures) -> Vec<String> {
    let or_none = |value: Option<f64>| value.map_or_else(|| NONE.to_owned(), number);
    let mut cells = vec![
        name,
        figures.name.clone(),
        number(figures.ns_per_op),
        number(figures.op_per_s),
        format!("{:.1}", figures.err_percent),
        or_none(figures.instructions_per_op),
        or_none(figures.cycles_per_op),
        or_none(figures.ipc()),
        or_none(figures.branches_per_op),
        or_none(figures.miss_percent()),
        or_none(measured.bytes_per_s(figures.ns_per_op).map(|rate| rate / 1e6)),
        format!("{:.2}", figures.total_s),
    ];
    match measured.comparison(&figures.name) {
        Some(comparison) => {
            let Ratio { median, low, high, .. } = comparison.ratio;
            cells.extend([
                format!("{median:.3}"),
                format!("{low:.3} to {high:.3}"),
                comparison.verdict.text().to_owned(),
            ]);
        }
        None => cells.extend([NONE.to_owned(), NONE.to_owned(), NONE.to_owned()]),
    }
    cells
}

/// A line per alternative with full digits; empty fields for missing values.
pub fn csv(results: &BenchResults) -> String {
    let mut text = "section,benchmark,series,size,unit,alternative,ns_per_op,op_per_s,err_percent,\
        instructions_per_op,cycles_per_op,ipc,branches_per_op,miss_percent,bytes_per_s,cpu_ns_per_op,\
        epoch_ops,total_s,baseline,ratio,ratio_low,ratio_high,ratio_coverage,cpu_ratio,verdict\n"
        .to_owned();
    for measured in results.benchmarks.iter().chain(&results.builds) {
        for figures in &measured.row.figures {
            text.push_str(&csv_line(measured, figures));
        }
    }
    text
}

fn csv_line(measured: &Measured, figures: &Figures) -> String {
    let value = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let comparison = measured.comparison(&figures.name);
    let ratio = |pick: fn(&Ratio) -> f64| value(comparison.map(|found| pick(&found.ratio)));
    let cells = [
        csv_field(&measured.section),
        csv_field(&measured.name),
        csv_field(&measured.series),
        measured.size.map_or_else(String::new, |size| size.to_string()),
        csv_field(&measured.unit),
        csv_field(&figures.name),
        figures.ns_per_op.to_string(),
        figures.op_per_s.to_string(),
        figures.err_percent.to_string(),
        value(figures.instructions_per_op),
        value(figures.cycles_per_op),
        value(figures.ipc()),
        value(figures.branches_per_op),
        value(figures.miss_percent()),
        value(measured.bytes_per_s(figures.ns_per_op)),
        figures.cpu_ns_per_op.to_string(),
        figures.epoch_ops.to_string(),
        figures.total_s.to_string(),
        comparison.map_or_else(String::new, |found| csv_field(&found.baseline)),
        ratio(|ratio| ratio.median),
        ratio(|ratio| ratio.low),
        ratio(|ratio| ratio.high),
        ratio(|ratio| ratio.coverage),
        value(comparison.and_then(|found| found.cpu_ratio).map(|ratio| ratio.median)),
        comparison.map_or("", |found| found.verdict.text()).to_owned(),
    ];
    cells.join(",") + "\n"
}

/// Table of all measurements as Markdown.
pub fn markdown(results: &BenchResults) -> String {
    let mut text = String::new();
    measured(&caption(results), &results.benchmarks).markdown(&mut text);
    text
}

fn caption(results: &BenchResults) -> String {
    format!(
        "{} rounds; a ratio is the baseline's time over this one's: above 1 this one is faster",
        results.rounds
    )
}

/// Final terminal output.
pub fn terminal(results: &BenchResults) -> String {
    let mut text = String::new();
    measured(&caption(results), &results.benchmarks).text(&mut text);
    for study in &results.studies {
        let _ = write!(text, "\n{}\n", study.title);
        for paragraph in &study.prose {
            let _ = writeln!(text, "  {paragraph}");
        }
        study.tables.iter().for_each(|table| {
            text.push('\n');
            Table::from(table).text(&mut text);
        });
    }
    let _ = write!(text, "\ncounts: {}\n", results.counting.note);
    for failure in &results.failures {
        let _ = writeln!(text, "FAILED {}: {}", failure.name, failure.error);
    }
    for warning in &results.conditions.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    if !results.is_complete {
        text.push_str("stopped before the end\n");
    }
    text
}

/// At least three significant digits.
pub(crate) fn number(value: f64) -> String {
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
