//! What the studies compare and say, as data: `plans/studies/ibd-tracking.toml`.

use std::collections::BTreeMap;

use assay_bench::suite::Study;
use serde::Deserialize;

const DATA: &str = include_str!("../../../../plans/studies/ibd-tracking.toml");

/// The format this program knows.
const FORMAT: u32 = 1;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Compared {
    format: u32,
    /// The optimisations.
    pub(super) pairs: Vec<Pair>,
    /// What each of them saves.
    pub(super) savings: Vec<Saving>,
    /// Tables of what the engine does instead.
    pub(super) ours: Vec<Columns>,
    /// The report's commits.
    pub(super) commits: Study,
    reasons: BTreeMap<String, String>,
    prose: BTreeMap<String, Vec<String>>,
}

/// Alternatives of a benchmark before and after an optimisation; `*` in its name stands for anything at its end.
#[derive(Debug, Deserialize)]
pub(super) struct Step {
    pub(super) benchmark: String,
    pub(super) before: String,
    pub(super) after: String,
}

/// An optimisation.
#[derive(Debug, Deserialize)]
pub(super) struct Pair {
    pub(super) what: String,
    #[serde(flatten)]
    pub(super) step: Step,
    /// Why it does not pay where it does not.
    pub(super) reason: String,
}

/// What an optimisation saves of one unit, and the steps that add up to it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Saving {
    pub(super) what: String,
    pub(super) unit: String,
    pub(super) of: Vec<Step>,
}

/// A table with a line for each benchmark of this beginning, and a column for each alternative.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Columns {
    pub(super) caption: String,
    pub(super) head: Vec<String>,
    pub(super) benchmarks: String,
    /// Whether a line begins with the size instead of the whole name.
    #[serde(default)]
    pub(super) is_size_alone: bool,
    pub(super) shows: Shows,
    pub(super) alternatives: Vec<String>,
    /// Alternatives whose time over ours is shown.
    #[serde(default)]
    pub(super) over_ours: Vec<String>,
}

/// What is in a column.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Shows {
    /// Time of one operation.
    Time,
    /// GB/s, where the name ends with the bytes.
    Throughput,
}

impl Compared {
    /// Reads the file.
    ///
    /// # Panics
    /// When it is malformed, which is a defect of this program: a test reads it.
    pub(super) fn built_in() -> Self {
        let mut data: Self = toml::from_str(DATA).expect("a test reads it");
        assert_eq!(data.format, FORMAT, "format of what the studies compare");
        for pair in &mut data.pairs {
            pair.reason.clone_from(&data.reasons[&pair.reason]);
        }
        data
    }

    /// Paragraphs of a study.
    pub(super) fn prose(&self, study: &str) -> Vec<String> {
        self.prose.get(study).cloned().unwrap_or_default()
    }
}
