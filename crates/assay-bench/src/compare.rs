//! Compares two results files: the same benchmarks before and after a change, or on two machines.
//!
//! Their samples were not interleaved and cannot be paired. So the interval is wider, and the floor is higher: differences
//! between runs, such as code placement in memory, do not vary within a run.

use std::fmt::Write as _;

use assay_report::Table;
use assay_report::stats::ratio::Ratio;
use assay_report::stats::verdict::{COVERAGE, Verdict};
use serde::Serialize;

use crate::harness::Figures;
use crate::results::{BenchResults, Measured};
use crate::table::{NONE, number};

/// Smallest floor between two runs, as a fraction.
const FLOOR_MIN: f64 = 0.02;

/// Comparison of two results files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    schema: u32,
    kind: &'static str,
    /// Minimum relative difference of medians.
    pub floor: f64,
    /// Differing conditions, which may explain differences of times.
    pub differences: Vec<String>,
    /// Benchmarks in both files.
    pub rows: Vec<ComparedRow>,
    pub only_before: Vec<String>,
    pub only_after: Vec<String>,
}

/// One alternative of one benchmark.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRow {
    pub benchmark: String,
    pub alternative: String,
    /// Median time of one operation in the first file.
    pub before_ns: f64,
    /// Median time of one operation in the second file.
    pub after_ns: f64,
    /// Time before over time after.
    pub ratio: Option<Ratio>,
    /// Instructions before over instructions after.
    pub instructions_ratio: Option<f64>,
    /// Verdict on the second against the first.
    pub verdict: Verdict,
}

/// Compares two files; the default floor is the larger of both runs' own, and at least 2 %.
pub fn compare(before: &BenchResults, after: &BenchResults, floor: Option<f64>) -> Comparison {
    let floor = floor.unwrap_or(before.floor.max(after.floor).max(FLOOR_MIN));
    let mut rows = Vec::new();
    for (measured, figures) in alternatives(before) {
        if let Some(other) = find(after, &measured.name, &figures.name) {
            rows.push(ComparedRow::new(&measured.name, figures, other, floor));
        }
    }
    Comparison {
        schema: 1,
        kind: "bench-comparison",
        floor,
        differences: differences(before, after),
        rows,
        only_before: missing(before, after),
        only_after: missing(after, before),
    }
}

impl ComparedRow {
    fn new(benchmark: &str, before: &Figures, after: &Figures, floor: f64) -> Self {
        let ratio = Ratio::of_medians(&before.samples_ns, &after.samples_ns, COVERAGE);
        let instructions = before.instructions_per_op.zip(after.instructions_per_op);
        Self {
            benchmark: benchmark.to_owned(),
            alternative: before.name.clone(),
            before_ns: before.ns_per_op,
            after_ns: after.ns_per_op,
            verdict: ratio.map_or(Verdict::NotShown, |ratio| Verdict::of(&ratio, floor)),
            ratio,
            instructions_ratio: instructions
                .filter(|(_, after)| *after > 0.0)
                .map(|(before, after)| before / after),
        }
    }
}

impl Comparison {
    /// True if any benchmark became slower.
    pub fn is_slower(&self) -> bool {
        self.rows.iter().any(|row| row.verdict == Verdict::Slower)
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for difference in &self.differences {
            let _ = writeln!(text, "not the same: {difference}");
        }
        self.table().text(&mut text);
        for (names, file) in [(&self.only_before, "first"), (&self.only_after, "second")] {
            for name in names {
                let _ = writeln!(text, "only in the {file} file: {name}");
            }
        }
        let count =
            |verdict: Verdict| self.rows.iter().filter(|row| row.verdict == verdict).count();
        let _ = writeln!(
            text,
            "{} faster, {} slower, {} without a difference shown",
            count(Verdict::Faster),
            count(Verdict::Slower),
            count(Verdict::NotShown)
        );
        text
    }

    fn table(&self) -> Table {
        let caption = format!(
            "time in the first file over time in the second: above 1 the second is faster; floor {:.1} %",
            self.floor * 100.0
        );
        let head = [
            "Benchmark",
            "By",
            "first ns/op",
            "second ns/op",
            "ratio",
            "99 % interval",
            "ins ratio",
            "verdict",
        ];
        let mut table = Table::new(&caption, &head, 2);
        for row in &self.rows {
            let or_none = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
            table.push([
                row.benchmark.clone(),
                row.alternative.clone(),
                number(row.before_ns),
                number(row.after_ns),
                or_none(row.ratio.map(|ratio| format!("{:.3}", ratio.median))),
                or_none(row.ratio.map(|ratio| format!("{:.3} to {:.3}", ratio.low, ratio.high))),
                or_none(row.instructions_ratio.map(|ratio| format!("{ratio:.3}"))),
                row.verdict.text().to_owned(),
            ]);
        }
        table
    }
}

fn alternatives(results: &BenchResults) -> impl Iterator<Item = (&Measured, &Figures)> {
    let of = |measured| move |figures| (measured, figures);
    results
        .benchmarks
        .iter()
        .flat_map(move |measured| measured.row.figures.iter().map(of(measured)))
}

fn find<'a>(results: &'a BenchResults, benchmark: &str, name: &str) -> Option<&'a Figures> {
    results.benchmarks.iter().find(|measured| measured.name == benchmark)?.row.of(name)
}

fn missing(from: &BenchResults, there: &BenchResults) -> Vec<String> {
    alternatives(from)
        .filter(|(measured, figures)| find(there, &measured.name, &figures.name).is_none())
        .map(|(measured, figures)| format!("{} by {}", measured.name, figures.name))
        .collect()
}

fn differences(before: &BenchResults, after: &BenchResults) -> Vec<String> {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    let of = |results: &BenchResults| {
        let (machine, software) = (&results.conditions.machine, &results.software);
        [
            ("processor", text(&machine.cpu)),
            ("cores", machine.cores.to_string()),
            ("system", text(&machine.system)),
            ("kernel", text(&machine.kernel)),
            ("frequency governor", text(&machine.governor)),
            ("compiler", software.rustc.clone()),
            ("build", software.profile.clone()),
            ("version of assay", software.assay.clone()),
            ("extent", results.extent.text().to_owned()),
            ("rounds", results.rounds.to_string()),
            ("counts", text(&results.counting.by)),
        ]
    };
    let mut differences: Vec<String> = of(before)
        .into_iter()
        .zip(of(after))
        .filter(|((_, before), (_, after))| before != after)
        .map(|((what, before), (_, after))| format!("{what}: {before} and {after}"))
        .collect();
    if before.plan != after.plan {
        differences.push("the plan or its settings".to_owned());
    }
    differences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn the_same_twice_shows_nothing() {
        let results = fixture::results();
        let same = compare(&results, &results, None);
        assert!(same.differences.is_empty() && same.only_before.is_empty() && !same.is_slower());
        assert!(!same.rows.is_empty());
        assert!(same.rows.iter().all(|row| row.verdict == Verdict::NotShown), "{}", same.text());
    }

    #[test]
    fn what_differs_is_said() {
        let before = fixture::results();
        let mut after = before.clone();
        after.conditions.machine.cpu = Some("another".to_owned());
        after.rounds = 3;
        let measured = &mut after.benchmarks[0];
        let figures = &mut measured.row.figures[0];
        figures.samples_ns.iter_mut().for_each(|sample| *sample *= 1.5);
        figures.ns_per_op *= 1.5;
        measured.row.figures[1].name = "new".to_owned();
        let found = compare(&before, &after, Some(0.05));
        let slower: Vec<&ComparedRow> =
            found.rows.iter().filter(|row| row.verdict == Verdict::Slower).collect();
        assert!(slower.len() == 1 && found.is_slower(), "{}", found.text());
        assert!((slower[0].ratio.expect("samples").median - 1.0 / 1.5).abs() < 1e-9);
        let text = found.text();
        for words in
            ["not the same: processor", "not the same: rounds", "second file: ", "1 slower"]
        {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert_eq!((found.only_before.len(), found.only_after.len()), (1, 1));
    }
}
