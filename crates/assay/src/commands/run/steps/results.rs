//! Results of a plan of steps: `steps.json`, schema version 1.

use std::path::{Path, PathBuf};

use assay_bench::plan::StepsPlan;
use assay_lab::builds::Build;
use assay_lab::compare::{ComparedRow, Comparison, PairComparison};
use assay_lab::machine::Machine;
use assay_report::{LoadError, ResultsFile};
use serde::{Deserialize, Serialize};

use crate::commands::pr::micro::Micro;

pub(super) const FILE: &str = "steps.json";
/// Kind of the results, as stored in the file.
pub(super) const KIND: &str = "steps";
pub(super) const SCHEMA: u32 = 1;

#[derive(Serialize, Deserialize)]
pub(crate) struct StepsResults {
    pub(super) schema: u32,
    pub(super) kind: String,
    pub(crate) created: String,
    pub(crate) rerun: String,
    pub(crate) plan: StepsPlan,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<Build>,
    pub(super) steps: Vec<StepResult>,
    /// Changes outside of the branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) related: Vec<RelatedResult>,
    pub(super) sum: Sum,
    /// The syncs; `None` unless requested, or if less than two builds exist.
    #[serde(rename = "macro", skip_serializing_if = "Option::is_none")]
    pub(super) syncs: Option<Syncs>,
    /// True if no measurement is missing.
    pub(super) is_complete: bool,
    #[serde(default)]
    pub(crate) machine: Machine,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StepResult {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) revision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) build: Option<Build>,
    /// Builds that the step needs and that do not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) absent: Vec<Absent>,
    /// Published sync time before the step over the time with it.
    pub(super) published: Option<f64>,
    /// Published sync time of the base over the time with the step.
    pub(super) published_since_base: Option<f64>,
    /// Sync time of the previous step over that of this one.
    pub(super) alone: Option<ComparedRow>,
    /// Sync time of the base over that of this step.
    pub(super) since_base: Option<ComparedRow>,
    /// `bench_bitcoin` before the step and with it.
    pub(super) micro: Option<Micro>,
}

/// A change outside of the branch, against the revision before it.
#[derive(Serialize, Deserialize)]
pub(super) struct RelatedResult {
    pub(super) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) build: Option<Build>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) before: Option<Build>,
    /// Sync time of the revision before the change over that with it.
    pub(super) syncs: Option<ComparedRow>,
    /// Runs whose end state is not that of the chain.
    #[serde(default)]
    pub(super) void_runs: usize,
}

#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Absent {
    pub(super) revision: String,
    pub(super) command: String,
}

/// All steps up to the last one with a build, against the base.
#[derive(Serialize, Deserialize)]
pub(super) struct Sum {
    pub(super) up_to: String,
    pub(super) published: Option<f64>,
    #[serde(rename = "macro")]
    pub(super) syncs: Option<ComparedRow>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Syncs {
    /// Runs whose end state is not that of the chain.
    pub(super) void_runs: usize,
    /// Blocks, inputs and bytes of the chain.
    pub(super) chain: String,
    /// The reference of the other targets: `base` or a step.
    pub(super) first: String,
    /// Every target against the first.
    pub(super) since_first: Comparison,
    /// Each step against the one before it, if both have builds.
    pub(super) alone: Vec<PairComparison>,
}

impl StepsResults {
    /// Path of the results in the folder of a run, if it is of a plan of steps.
    pub(crate) fn file_in(dir: &Path) -> Option<PathBuf> {
        Some(dir.join(FILE)).filter(|path| path.exists())
    }

    pub(crate) fn is_one(file: &ResultsFile) -> bool {
        file.is_of(KIND)
    }

    pub(crate) fn parse(file: ResultsFile) -> Result<Self, LoadError> {
        file.parse("results of steps", SCHEMA..=SCHEMA)
    }

    /// Removes the paths of the clones that the builds were made from.
    pub(crate) fn forget_clones(&mut self) {
        let steps = self.steps.iter_mut().filter_map(|step| step.build.as_mut());
        let related = self.related.iter_mut();
        let related =
            related.flat_map(|one| one.build.as_mut().into_iter().chain(one.before.as_mut()));
        for build in self.base.as_mut().into_iter().chain(steps).chain(related) {
            build.repository = PathBuf::from("CLONE");
        }
    }
}
