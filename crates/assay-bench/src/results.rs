//! The results of a run of benchmarks: `results.json`, schema version 1.
//!
//! Times are nanoseconds of one operation; what could not be measured is `null`.

use assay_lab::ratio::Ratio;
use assay_lab::results::Software;
use serde::{Deserialize, Serialize};

use crate::conditions::Conditions;
use crate::harness::Row;
use crate::plan::{BenchPlan, Kind};
use crate::suite::{Benchmark, Extent, Published, Study};
use crate::verdict::{COVERAGE, Verdict};

/// The schema version of `results.json`.
pub const SCHEMA: u32 = 1;

/// Everything known about one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchResults {
    /// See [`SCHEMA`].
    pub schema: u32,
    /// Always `bench`: what tells these results from those of the laboratory.
    pub kind: Kind,
    /// When the run began, as ISO 8601 in UTC.
    pub created: String,
    /// The plan; absent where benchmarks were chosen by name alone.
    pub plan: Option<BenchPlan>,
    /// How much was measured.
    pub extent: Extent,
    /// Rounds that count.
    pub rounds: usize,
    /// How to make them again.
    pub rerun: String,
    /// Under which conditions.
    pub conditions: Conditions,
    /// What measured.
    pub software: Software,
    /// What counted instructions.
    pub counting: Counting,
    /// Share by which things have to differ at least, to be called different.
    pub floor: f64,
    /// What was measured, in the order of the suites.
    pub benchmarks: Vec<Measured>,
    /// Builds of this program side by side.
    #[serde(default)]
    pub builds: Vec<Measured>,
    /// What has no figures.
    pub failures: Vec<Failure>,
    /// Answers to questions.
    pub studies: Vec<Study>,
    /// What others published.
    pub published: Vec<Published>,
    /// Whether everything was measured that was asked for.
    pub is_complete: bool,
}

/// What counted instructions, branches and cycles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counting {
    /// `perf_event_open`, `valgrind`, or nothing.
    pub by: Option<String>,
    /// What a reader has to know: why there are no counts, or of what they are.
    pub note: String,
}

/// A benchmark and its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The section of the plan.
    pub section: String,
    /// Its name.
    pub name: String,
    /// Series of a chart over sizes to which it belongs.
    pub series: String,
    /// Size of its input, in `unit`.
    pub size: Option<u64>,
    /// What the size counts.
    pub unit: String,
    /// Bytes that one operation works through.
    pub bytes_per_op: Option<u64>,
    /// The alternative with which the others are compared.
    pub baseline: String,
    /// The alternatives.
    pub row: Row,
    /// The alternatives that are not the baseline, beside it.
    pub comparisons: Vec<Comparison>,
}

/// An alternative beside the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The alternative.
    pub alternative: String,
    /// What it is compared with.
    pub baseline: String,
    /// Time of the baseline over its time.
    pub ratio: Ratio,
    /// The same of CPU times.
    pub cpu_ratio: Option<Ratio>,
    /// What that says.
    pub verdict: Verdict,
}

/// A benchmark or study without figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Its name.
    pub name: String,
    /// Why.
    pub error: String,
}

impl Measured {
    /// From what was measured of a benchmark; the baseline is the first alternative where it names none that took part.
    pub(crate) fn new(section: &str, benchmark: &Benchmark<'_>, row: Row, floor: f64) -> Self {
        let first = row.figures.first().map_or("", |figures| &figures.name).to_owned();
        let named = benchmark.baseline.clone().filter(|name| row.of(name).is_some());
        let baseline = named.unwrap_or(first);
        Self {
            section: section.to_owned(),
            name: benchmark.name.clone(),
            series: benchmark.series.clone(),
            size: benchmark.size,
            unit: benchmark.unit.to_owned(),
            bytes_per_op: benchmark.bytes_per_op,
            comparisons: comparisons(&row, floor, |_| &baseline),
            baseline,
            row,
        }
    }

    /// Bytes per second at the median time of an alternative.
    pub fn bytes_per_s(&self, ns_per_op: f64) -> Option<f64> {
        let bytes = self.bytes_per_op.filter(|_| ns_per_op > 0.0)?;
        Some(bytes as f64 / ns_per_op * 1e9)
    }

    /// An alternative beside the baseline.
    pub fn comparison(&self, alternative: &str) -> Option<&Comparison> {
        self.comparisons.iter().find(|comparison| comparison.alternative == alternative)
    }
}

/// Alternatives beside those that they are to be compared with; one that is compared with itself is left out.
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
