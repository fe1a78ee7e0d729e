//! The results of a run of benchmarks: `results.json`, schema version 1.
//!
//! Times are nanoseconds of one operation; unmeasured values are `null`.

use assay_lab::machine::Software;
use assay_lab::plan::Kind;
use assay_report::stats::ratio::Ratio;
use assay_report::stats::verdict::{COVERAGE, Verdict};
use serde::{Deserialize, Serialize};

use crate::conditions::Conditions;
use crate::harness::Row;
use crate::plan::BenchPlan;
use crate::suite::{Benchmark, Extent, Published, Study};

pub const SCHEMA: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchResults {
    pub schema: u32,
    /// Always `bench`: distinguishes these results from those of the laboratory.
    pub kind: Kind,
    /// Start of the run, ISO 8601 in UTC.
    pub created: String,
    /// The plan; absent if benchmarks were selected by name alone.
    pub plan: Option<BenchPlan>,
    pub extent: Extent,
    pub rounds: usize,
    /// Command line that repeats the run.
    pub rerun: String,
    pub conditions: Conditions,
    pub software: Software,
    pub counting: Counting,
    /// Minimum relative difference of a verdict.
    pub floor: f64,
    /// Twice the median A/A shift, as a fraction; absent if not measured.
    pub floor_measured: Option<f64>,
    pub benchmarks: Vec<Measured>,
    #[serde(default)]
    pub builds: Vec<Measured>,
    pub failures: Vec<Failure>,
    pub studies: Vec<Study>,
    pub published: Vec<Published>,
    /// True if everything requested was measured.
    pub is_complete: bool,
}

/// Source of counts of instructions, branches and cycles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counting {
    /// `perf_event_open`, `valgrind`, or `None`.
    pub by: Option<String>,
    /// Caveat: scope of the counts, or the reason for their absence.
    pub note: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    pub section: String,
    pub name: String,
    /// Series in charts over sizes.
    pub series: String,
    /// Size of its input, in `unit`.
    pub size: Option<u64>,
    pub unit: String,
    pub bytes_per_op: Option<u64>,
    pub baseline: String,
    pub row: Row,
    pub comparisons: Vec<Comparison>,
}

/// An alternative against the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    pub alternative: String,
    pub baseline: String,
    /// Time of the baseline over its time.
    pub ratio: Ratio,
    pub cpu_ratio: Option<Ratio>,
    pub verdict: Verdict,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub name: String,
    pub error: String,
}

impl Measured {
    /// From a benchmark's row; the baseline is the first alternative if the named one is missing.
    pub(crate) fn new(section: &str, benchmark: &Benchmark<'_>, row: Row, floor: f64) -> Self {
        let first = row.figures.first().map_or("", |figures| &figures.name).to_owned();
        let named = benchmark.baseline.clone().filter(|name| row.of(name).is_some());
        let baseline = named.unwrap_or(first);
        Self {
            section: section.to_owned(),
            name: benchmark.name.clone(),
            series: benchmark.series.clone(),
            size: benchmark.size,
            unit: benchmark.unit.clone(),
            bytes_per_op: benchmark.bytes_per_op,
            comparisons: comparisons(&row, floor, |_| &baseline),
            baseline,
            row,
        }
    }

    /// The same judged by another floor.
    pub(crate) fn judged(&self, floor: f64) -> Self {
        let mut measured = self.clone();
        for comparison in &mut measured.comparisons {
            comparison.verdict = Verdict::of(&comparison.ratio, floor);
        }
        measured
    }

    /// Bytes per second at the median time of an alternative.
    pub fn bytes_per_s(&self, ns_per_op: f64) -> Option<f64> {
        let bytes = self.bytes_per_op.filter(|_| ns_per_op > 0.0)?;
        Some(bytes as f64 / ns_per_op * 1e9)
    }

    pub fn comparison(&self, alternative: &str) -> Option<&Comparison> {
        self.comparisons.iter().find(|comparison| comparison.alternative == alternative)
    }
}

/// Comparisons of alternatives with their baselines; one that is its own baseline is left out.
pub(crate) fn comparisons<'a>(
    row: &'a Row,
    floor: f64,
    baseline_of: impl Fn(&'a str) -> &'a str,
) -> Vec<Comparison> {
    let compare = |name: &'a str| {
        let baseline = baseline_of(name);
        let ratio = (baseline != name).then(|| row.ratio_covered(baseline, name, COVERAGE))??;
        Some(Comparison {
            alternative: name.to_owned(),
            baseline: baseline.to_owned(),
            verdict: Verdict::of(&ratio, floor),
            cpu_ratio: row.cpu_ratio_covered(baseline, name, COVERAGE),
            ratio,
        })
    };
    row.figures.iter().filter_map(|figures| compare(&figures.name)).collect()
}

#[cfg(test)]
pub(crate) mod fixture {
    use super::*;
    use crate::harness::{Alternative, Rounds, Sample, compare};

    /// Results of two series over sizes, one benchmark without, a failure and a study.
    pub(crate) fn results() -> BenchResults {
        let sizes = [(Some(1), "s"), (Some(520), "s"), (Some(8000), "s"), (None, "check")];
        let benchmarks = sizes.map(|(size, series)| measured(series, size)).into();
        let study = Study {
            id: "limits".to_owned(),
            title: "What <limits> change".to_owned(),
            prose: vec!["One `paragraph`.".to_owned(), "- a point".to_owned()],
            tables: vec![crate::suite::StudyTable {
                caption: "Vectors".to_owned(),
                head: vec!["vector".to_owned(), "bytes".to_owned()],
                word_columns: 1,
                rows: vec![vec!["first".to_owned(), "521".to_owned()]],
            }],
            ..Study::default()
        };
        let published = Published {
            benchmark: "g/s/520".to_owned(),
            subject: "somebody".to_owned(),
            machine: "Ryzen 5 3600".to_owned(),
            ns_per_op: Some(637.0),
            instructions_per_op: None,
            ratio: Some(1.5),
            note: "their note".to_owned(),
            source: "https://example.org/figures".to_owned(),
            date: "2025-08".to_owned(),
        };
        BenchResults {
            schema: SCHEMA,
            kind: Kind::Bench,
            created: "2026-11-21T10:00:00Z".to_owned(),
            plan: None,
            extent: Extent::Quick,
            rounds: 15,
            rerun: "assay bench".to_owned(),
            conditions: Conditions::default(),
            software: Software::default(),
            counting: Counting { by: None, note: "unavailable: refused".to_owned() },
            floor: 0.01,
            floor_measured: Some(0.004),
            benchmarks,
            builds: vec![measured("build", None)],
            failures: vec![Failure { name: "bad".to_owned(), error: "wrong <answer>".to_owned() }],
            studies: vec![study],
            published: vec![published],
            is_complete: true,
        }
    }

    fn measured(series: &str, size: Option<u64>) -> Measured {
        let base_ns = size.unwrap_or(100) + 100;
        let epoch = |scale: u64| {
            let mut turn = 0;
            move || {
                turn += 1;
                Sample::timed(10, base_ns * scale * 10 + turn % 3, base_ns * 10)
            }
        };
        let name = size.map_or_else(|| format!("g/{series}"), |size| format!("g/{series}/{size}"));
        let mut both =
            [Alternative::new("theirs", epoch(2)), Alternative::new("ours, fast", epoch(1))];
        let rounds = Rounds { count: 15, warm_up: 0 };
        let row = compare(&name, &mut both, rounds, &mut || {}).expect("no failure");
        let benchmark = Benchmark {
            name,
            series: format!("g/{series}"),
            size,
            unit: "bytes".to_owned(),
            bytes_per_op: size,
            baseline: Some("theirs".to_owned()),
            make: Box::new(|| Ok(Vec::new())),
        };
        Measured::new("fixture", &benchmark, row, 0.01)
    }
}
