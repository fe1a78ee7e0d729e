//! Plans of `kind = "steps"`: a base and the steps of a branch, as revisions, with published figures of each.

use std::path::{Path, PathBuf};

use assay_lab::plan::{BadValue, Kind, distinct, valid};
use serde::{Deserialize, Serialize};

use super::{ROUNDS_MAX, is_name};

const TAKEN: [&str; 3] = ["base", "base-again", "sum"];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepsPlan {
    pub format: u32,
    kind: Kind,
    /// Short name: small letters, digits, `-`.
    pub name: String,
    pub title: String,
    pub summary: String,
    /// Source and method of the published figures.
    pub source: String,
    /// Preset of `assay builds` of the revisions.
    pub preset: String,
    /// The compiler, if a revision has builds of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<String>,
    /// Plan of the syncs: a built-in one, or a file in the folder of this one.
    pub sync: String,
    /// Size of the chain of the syncs, instead of that of their plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    pub pairs: u32,
    /// Rounds of each benchmark.
    pub rounds: usize,
    /// Minimum milliseconds of a benchmark per round and build.
    pub min_time_ms: u64,
    pub base: BaseRevision,
    /// The steps in order; each contains the previous ones.
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
    /// Changes outside of the branch, each measured against its predecessor.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseRevision {
    /// A hash, or another name under which `assay builds make` built it.
    pub revision: String,
    /// Published seconds of a sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Short name: small letters, digits, `-`, `.`.
    pub name: String,
    pub title: String,
    pub revision: String,
    /// Revision without the change for the step's benchmarks; by default that of the previous step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Published seconds of a sync with this and all previous steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Benchmarks of `bench_bitcoin` that show the change.
    #[serde(default, rename = "benchmark", skip_serializing_if = "Vec::is_empty")]
    pub benchmarks: Vec<StepBenchmark>,
}

/// A change outside of the branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Related {
    /// Short name: small letters, digits, `-`, `.`.
    pub name: String,
    pub title: String,
    /// The revision with the change; absent if no public branch has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Published effect, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
}

impl Related {
    /// The revisions without and with the change, if known.
    pub fn revisions(&self) -> Option<[&str; 2]> {
        Some([self.before.as_deref()?, self.revision.as_deref()?])
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepBenchmark {
    /// Name, or a substring or pattern of names.
    pub name: String,
    /// Published time of an operation without the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_before: Option<f64>,
    /// Published time of an operation with the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_after: Option<f64>,
}

impl StepBenchmark {
    /// Published time before over time after.
    pub fn published(&self) -> Option<f64> {
        Some(self.ns_before? / self.ns_after?)
    }
}

impl StepsPlan {
    /// Validates values that TOML types cannot express.
    pub(super) fn check(&self) -> Result<(), BadValue> {
        valid(self.format == super::FORMAT, "format", &self.format, "only format 1 is known")?;
        valid(self.kind == Kind::Steps, "kind", &self.kind.as_str(), "use \"steps\"")?;
        let is_plain = is_name(&self.name) && !self.name.contains('.');
        valid(is_plain, "name", &self.name, "use small letters, digits and '-'")?;
        let Self { pairs, rounds, min_time_ms, .. } = self;
        valid((1..=100).contains(pairs), "pairs", pairs, "use 1 to 100")?;
        valid((1..=ROUNDS_MAX).contains(rounds), "rounds", rounds, "use 1 to 10001")?;
        let is_time = (1..=3_600_000).contains(min_time_ms);
        valid(is_time, "min_time_ms", min_time_ms, "use 1 to 3600000")?;
        valid(!self.steps.is_empty(), "step", &"none", "name a step at least")?;
        check_time("base.seconds", self.base.seconds)?;
        check_revision("base.revision", &self.base.revision)?;
        let names = self.steps.iter().map(|step| step.name.as_str());
        check_names("step.name", names.clone())?;
        for step in &self.steps {
            check_revision("step.revision", &step.revision)?;
            step.before.iter().try_for_each(|before| check_revision("step.before", before))?;
            check_time("step.seconds", step.seconds)?;
            for StepBenchmark { name, ns_before, ns_after } in &step.benchmarks {
                let rule = "give the name of a benchmark";
                valid(!name.trim().is_empty(), "step.benchmark.name", name, rule)?;
                check_time("step.benchmark.ns_before", *ns_before)?;
                check_time("step.benchmark.ns_after", *ns_after)?;
            }
        }
        let others = self.related.iter().map(|related| related.name.as_str());
        check_names("related.name", names.chain(others))?;
        for related in &self.related {
            let is_whole = related.revision.is_some() == related.before.is_some();
            let rule = "give both revision and before, or neither";
            valid(is_whole, "related.revision", &related.name, rule)?;
            for revision in related.revisions().into_iter().flatten() {
                check_revision("related.revision", revision)?;
            }
        }
        Ok(())
    }

    /// Makes relative paths relative to the folder of the plan.
    pub(super) fn enter(&mut self, folder: &Path) {
        // A built-in preset or plan has only a name.
        for file in [&mut self.sync, &mut self.preset] {
            if PathBuf::from(&*file).extension().is_some() {
                let joined: PathBuf = folder.join(&*file).components().collect();
                *file = joined.display().to_string();
            }
        }
    }

    /// Revision of a step's benchmarks without its change.
    pub fn before(&self, step: usize) -> &str {
        let previous = step.checked_sub(1).and_then(|previous| self.steps.get(previous));
        let previous = previous.map_or(&self.base.revision, |step| &step.revision);
        self.steps.get(step).and_then(|step| step.before.as_ref()).unwrap_or(previous)
    }

    /// Published time of a sync before a step over that with it.
    pub fn published_alone(&self, step: usize) -> Option<f64> {
        let previous = match step.checked_sub(1) {
            Some(previous) => self.steps.get(previous)?.seconds?,
            None => self.base.seconds?,
        };
        Some(previous / self.steps.get(step)?.seconds?)
    }

    /// Published time of a sync of the base over that with a step and all previous ones.
    pub fn published_since_base(&self, step: usize) -> Option<f64> {
        Some(self.base.seconds? / self.steps.get(step)?.seconds?)
    }

    /// Every revision once: the base, the steps, then those of benchmarks alone.
    pub fn revisions(&self) -> Vec<&str> {
        let steps = self.steps.iter().map(|step| &*step.revision);
        let befores = self.steps.iter().filter_map(|step| step.before.as_deref());
        let mut all: Vec<&str> = Vec::new();
        for revision in std::iter::once(&*self.base.revision).chain(steps).chain(befores) {
            if !all.contains(&revision) {
                all.push(revision);
            }
        }
        all
    }
}

fn check_names<'a>(
    key: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), BadValue> {
    let rule =
        "use small letters, digits, '-' and '.', each name once, and not base, base-again or sum";
    for name in names.clone() {
        valid(is_name(name) && !TAKEN.contains(&name), key, &name, rule)?;
    }
    distinct(key, names, rule)
}

fn check_revision(key: &str, revision: &str) -> Result<(), BadValue> {
    let is_bad = |c: char| c.is_whitespace() || c == '+';
    let is_name = !revision.is_empty() && !revision.starts_with('-') && !revision.contains(is_bad);
    valid(is_name, key, &revision, "give a hash, tag or branch")
}

fn check_time(key: &str, time: Option<f64>) -> Result<(), BadValue> {
    time.map_or(Ok(()), |time| {
        valid(time.is_finite() && time > 0.0, key, &time, "use a time above 0")
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Experiment, PlanText};

    #[test]
    fn the_steps_of_the_report() {
        let found = PlanText::find("ibd-tracking-core").and_then(|text| text.plan(&[]));
        let Ok(Experiment::Steps(plan)) = found else { panic!("a plan of steps") };
        // "18% full IBD speedup": 8.59 hours to 7.25 hours.
        let sum = plan.published_since_base(plan.steps.len() - 1).expect("published");
        assert!((sum - 8.59 / 7.25).abs() < 0.005, "{sum}");
        let product: f64 =
            (0..plan.steps.len()).filter_map(|step| plan.published_alone(step)).product();
        assert!((product - sum).abs() < 1e-9, "{product}");
        assert_eq!(plan.before(0), plan.base.revision);
        assert_eq!(plan.before(2), plan.steps[1].revision, "no revision of its own");
        assert_ne!(plan.before(1), plan.steps[0].revision);
        assert_eq!(plan.revisions().len(), 1 + 6 + 4);
    }

    #[test]
    fn impossible_values_are_refused() {
        let mut plans = Experiment::builtin();
        let (_, text) = plans.find(|(name, _)| *name == "ibd-tracking-core").expect("built in");
        for (from, to, said) in [
            ("format = 1", "format = 2", "format = 2: only format 1"),
            ("kind = \"steps\"", "kind = \"bench\"", "unknown field `base`"),
            ("pairs = 6", "pears = 6", "unknown field `pears`"),
            ("pairs = 6", "pairs = 0", "pairs = 0: use 1 to 100"),
            ("rounds = 15", "rounds = 0", "rounds = 0"),
            ("min_time_ms = 100", "min_time_ms = 0", "min_time_ms = 0"),
            ("\"buffered-files\"", "\"base\"", "step.name = base"),
            ("\"buffered-files\"", "\"siphash\"", "step.name = siphash"),
            ("\"6a8ce46e32dae2ffef2a73d2314ca33a2039186e\"", "\"\"", "step.revision = : give"),
            ("\"0f8c754775351a2ad533538f043243cd6170a98e\"", "\"-x\"", "step.before = -x"),
            ("seconds = 30932.610", "seconds = 0", "base.seconds = 0: use a time"),
            ("ns_after = 6272557.28", "ns_after = -1.0", "ns_after = -1"),
            ("name = \"ReadBlockBench\"", "name = \" \"", "give the name of a benchmark"),
        ] {
            assert!(text.contains(from), "{from} is in the plan");
            let error = Experiment::parse(&text.replacen(from, to, 1), "plan.toml").expect_err(to);
            assert!(error.to_string().contains(said), "{error}");
        }
    }
}
