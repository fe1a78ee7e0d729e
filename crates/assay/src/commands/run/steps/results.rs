//! What a run of a plan of steps found: `steps.json`, schema version 1.

use std::path::{Path, PathBuf};

use assay_bench::plan::StepsPlan;
use assay_lab::builds::Build;
use assay_lab::compare::{ComparedRow, Comparison, PairComparison};
use assay_lab::machine::Machine;
use assay_report::{LoadError, ResultsFile};
use serde::{Deserialize, Serialize};

use crate::commands::pr::micro::Micro;

/// Name of the file.
pub(super) const FILE: &str = "steps.json";
/// What it says of its kind.
pub(super) const KIND: &str = "steps";
pub(super) const SCHEMA: u32 = 1;

/// Everything that the page says.
#[derive(Serialize, Deserialize)]
pub(crate) struct StepsResults {
    pub(super) schema: u32,
    pub(super) kind: String,
    pub(super) created: String,
    pub(super) rerun: String,
    pub(super) plan: StepsPlan,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base: Option<Build>,
    pub(super) steps: Vec<StepResult>,
    /// Changes outside of the branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) related: Vec<RelatedResult>,
    pub(super) sum: Sum,
    /// The syncs; absent where they were not asked for, or where less than two builds are there.
    #[serde(rename = "macro", skip_serializing_if = "Option::is_none")]
    pub(super) syncs: Option<Syncs>,
    /// Whether everything was measured that could be.
    pub(super) is_complete: bool,
    #[serde(default)]
    pub(super) machine: Machine,
}

/// A step.
#[derive(Serialize, Deserialize)]
pub(super) struct StepResult {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) revision: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) build: Option<Build>,
    /// Builds that the step needs and that there are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) absent: Vec<Absent>,
    /// Published time of a sync before the step over that with it.
    pub(super) published: Option<f64>,
    /// Published time of a sync of the base over that with the step.
    pub(super) published_since_base: Option<f64>,
    /// Syncs of the step before over syncs of this one.
    pub(super) alone: Option<ComparedRow>,
    /// Syncs of the base over syncs of this one.
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
    /// Syncs of the revision before it over syncs of it.
    pub(super) syncs: Option<ComparedRow>,
    /// Runs whose end state is not that of the chain.
    #[serde(default)]
    pub(super) void_runs: usize,
}

/// A build that there is not.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Absent {
    pub(super) revision: String,
    /// The command that makes it.
    pub(super) command: String,
}

/// All steps up to the last one that is built, against the base.
#[derive(Serialize, Deserialize)]
pub(super) struct Sum {
    /// That step.
    pub(super) up_to: String,
    pub(super) published: Option<f64>,
    #[serde(rename = "macro")]
    pub(super) syncs: Option<ComparedRow>,
}

/// Results of the syncs.
#[derive(Serialize, Deserialize)]
pub(super) struct Syncs {
    /// Runs whose end state is not that of the chain.
    pub(super) void_runs: usize,
    /// Blocks, inputs and bytes of the chain.
    pub(super) chain: String,
    /// What the others are compared with, `base` or a step.
    pub(super) first: String,
    /// Everything against that.
    pub(super) since_first: Comparison,
    /// Each step against the one before it, where both are built.
    pub(super) alone: Vec<PairComparison>,
}

impl StepsResults {
    /// The file of such results in the folder of a run, if it is the folder of a plan of steps.
    pub(crate) fn file_in(dir: &Path) -> Option<PathBuf> {
        Some(dir.join(FILE)).filter(|path| path.exists())
    }

    pub(crate) fn is_one(file: &ResultsFile) -> bool {
        file.is_of(KIND)
    }

    pub(crate) fn parse(file: ResultsFile) -> Result<Self, LoadError> {
        file.parse("results of steps", SCHEMA..=SCHEMA)
    }

    /// The clones that the builds were made from, which mean nothing to readers elsewhere.
    pub(crate) fn forget_clones(&mut self) {
        let steps = self.steps.iter_mut().filter_map(|step| step.build.as_mut());
        let related = self.related.iter_mut();
        let related =
            related.flat_map(|one| one.build.as_mut().into_iter().chain(one.before.as_mut()));
        for build in self.base.as_mut().into_iter().chain(steps).chain(related) {
            build.repository = PathBuf::from("CLONE");
        }
    }

    pub(crate) fn plan(&self) -> &StepsPlan {
        &self.plan
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(crate) fn created(&self) -> &str {
        &self.created
    }

    pub(crate) fn rerun(&self) -> &str {
        &self.rerun
    }
}
