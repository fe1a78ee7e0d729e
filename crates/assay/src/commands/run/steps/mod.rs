//! `assay run` with a plan of steps: a base and the steps of a branch, as builds. Each step is
//! judged and compared with the published figures.

mod finding;
mod record;
mod related;
mod results;
mod syncs;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use assay_bench::bench_bitcoin::PROGRAM;
use assay_bench::plan::{PlanText, Related, StepsPlan};
use assay_lab::builds::{Build, Cache, FindError};
use assay_lab::plan::{Plan, checked};
use assay_report::atomic_file;

pub(crate) use self::results::StepsResults;
use self::results::{Absent, FILE, KIND, SCHEMA, StepResult, Sum};
use crate::cli::RunArguments;
use crate::commands::pr::micro::{self, Micro, MicroTask};
use crate::commands::{builds, stop_flag};
use crate::invocation::rerun;
use crate::{Outcome, output};

pub(super) fn run(plan: StepsPlan, arguments: &RunArguments) -> anyhow::Result<Outcome> {
    let sync_plan = sync_plan(&plan)?;
    let part = Part::of(arguments)?;
    let found = Found::of(&plan)?;
    let base = found.build(&plan.base.revision).cloned();
    for absent in found.absent(plan.revisions()) {
        output::complain(&format!("absent: {}; build it: {}", absent.revision, absent.command));
    }
    let out_dir = arguments.out_dir(&plan.name);
    atomic_file::create_folder(&out_dir)?;
    let stop = stop_flag();
    let mut steps = steps(&plan, &found);
    let last = match steps.iter().rposition(|step| step.build.is_some()) {
        Some(last) => last,
        None if part == Part::Related => 0,
        None => bail!("no step of {} is built; the lines above have the commands", plan.name),
    };
    if matches!(part, Part::All | Part::Micro) {
        for (number, step) in steps.iter_mut().enumerate() {
            step.micro = measure_micro(&plan, &found, number, arguments, &out_dir, &stop)?;
        }
    }
    if stop.load(Ordering::Relaxed) {
        return Ok(Outcome::Interrupted);
    }
    if part == Part::Sum && base.is_none() {
        bail!("the base of {} is not built, and the sum is against it", plan.name);
    }
    let synced = if part == Part::Sum { last..=last } else { 0..=last };
    let steps_synced = &mut steps[synced];
    let built = steps_synced.iter().filter(|step| step.build.is_some()).count();
    let has_syncs = !matches!(part, Part::Micro | Part::Related);
    let syncs = if has_syncs && built + usize::from(base.is_some()) > 1 {
        let base = base.as_ref();
        let syncs = syncs::run(sync_plan, base, steps_synced, arguments, &out_dir, &stop)?;
        syncs.assign(steps_synced);
        if part == Part::Sum && last > 0 {
            // The step before it was not measured.
            steps_synced[0].alone = None;
        }
        Some(syncs)
    } else {
        None
    };
    let related = related::run(&plan, &found, part, arguments, &out_dir, &stop)?;
    let is_complete = !stop.load(Ordering::Relaxed)
        && steps.iter().filter_map(|step| step.micro.as_ref()).all(|micro| micro.is_complete);
    let last = &steps[last];
    let results = StepsResults {
        schema: SCHEMA,
        kind: KIND.to_owned(),
        created: assay_lab::machine::utc_now(),
        rerun: rerun(),
        sum: Sum {
            up_to: last.name.clone(),
            published: last.published_since_base,
            syncs: last.since_base.clone(),
        },
        plan,
        base,
        steps,
        related,
        syncs,
        is_complete,
        machine: assay_lab::machine::record(&out_dir),
    };
    write(&results, &out_dir)?;
    output::print_as(arguments.json, &results, || results.record().text())?;
    output::complain(&format!("report: {}", out_dir.join("report.html").display()));
    Ok(outcome(&results))
}

/// Selected part of the plan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Benchmarks, then syncs of every step.
    All,
    Micro,
    /// Syncs of every step.
    Macro,
    /// Syncs of the base and the last step that is built.
    Sum,
    /// Syncs of changes outside of the branch.
    Related,
}

impl Part {
    fn of(arguments: &RunArguments) -> anyhow::Result<Self> {
        Ok(match arguments.part.as_deref() {
            None => Self::All,
            Some("micro") => Self::Micro,
            Some("macro") => Self::Macro,
            Some("sum") => Self::Sum,
            Some("related") => Self::Related,
            Some(name) => {
                bail!("there is no part {name:?}; there are micro, macro, sum and related")
            }
        })
    }
}

/// The builds of a plan's revisions.
struct Found<'a> {
    plan: &'a StepsPlan,
    builds: Vec<(String, Build)>,
}

impl<'a> Found<'a> {
    fn of(plan: &'a StepsPlan) -> anyhow::Result<Self> {
        Self::within(plan, &builds::cache()?)
    }

    fn within(plan: &'a StepsPlan, cache: &Cache) -> anyhow::Result<Self> {
        let with: Vec<String> = plan.compiler.iter().cloned().collect();
        let mut builds = Vec::new();
        let related = plan.related.iter().filter_map(Related::revisions).flatten();
        for revision in plan.revisions().into_iter().chain(related) {
            match cache.find(revision, &with, PROGRAM) {
                Ok(build) => builds.push((revision.to_owned(), build)),
                Err(FindError::None { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self { plan, builds })
    }

    fn build(&self, revision: &str) -> Option<&Build> {
        self.builds.iter().find(|(name, _)| name == revision).map(|(_, build)| build)
    }

    fn absent<'r>(&self, revisions: impl IntoIterator<Item = &'r str>) -> Vec<Absent> {
        let revisions = revisions.into_iter().filter(|revision| self.build(revision).is_none());
        let absent = revisions.map(|revision| Absent {
            revision: revision.to_owned(),
            command: self.command(revision),
        });
        absent.collect()
    }

    fn command(&self, revision: &str) -> String {
        let compiler = self.plan.compiler.as_ref();
        let compiler = compiler.map_or_else(String::new, |name| format!(" --compiler {name}"));
        format!(
            "assay builds make --repo PATH --preset {}{compiler} --rev {revision}",
            self.plan.preset
        )
    }
}

fn steps(plan: &StepsPlan, found: &Found<'_>) -> Vec<StepResult> {
    let step = |(number, step): (usize, &assay_bench::plan::Step)| {
        let own = std::iter::once(&*step.revision);
        let before = (!step.benchmarks.is_empty()).then(|| plan.before(number));
        StepResult {
            name: step.name.clone(),
            title: step.title.clone(),
            revision: step.revision.clone(),
            build: found.build(&step.revision).cloned(),
            absent: found.absent(own.chain(before)),
            published: plan.published_alone(number),
            published_since_base: plan.published_since_base(number),
            alone: None,
            since_base: None,
            micro: None,
        }
    };
    plan.steps.iter().enumerate().map(step).collect()
}

/// Measures the benchmarks of a step if both of its builds exist.
fn measure_micro(
    plan: &StepsPlan,
    found: &Found<'_>,
    number: usize,
    arguments: &RunArguments,
    out_dir: &Path,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Option<Micro>> {
    let step = &plan.steps[number];
    let (before, after) = (found.build(plan.before(number)), found.build(&step.revision));
    let (Some(base), Some(head)) = (before, after) else { return Ok(None) };
    if step.benchmarks.is_empty() || stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let task = MicroTask {
        base,
        head,
        benchmarks: step.benchmarks.iter().map(|benchmark| benchmark.name.clone()).collect(),
        rounds: plan.rounds,
        min_time_ms: plan.min_time_ms,
        out_dir: out_dir.join("micro").join(&step.name),
        resume: arguments.resume,
        rerun: rerun(),
    };
    let measured = micro::measure(&task, Arc::clone(stop));
    measured.map(Some).with_context(|| format!("benchmarks of step {}", step.name))
}

fn outcome(results: &StepsResults) -> Outcome {
    let is_void = results.syncs.as_ref().is_some_and(|syncs| syncs.void_runs > 0)
        || results.related.iter().any(|related| related.void_runs > 0);
    let mut micros = results.steps.iter().filter_map(|step| step.micro.as_ref());
    if is_void || !results.is_complete || micros.any(|micro| !micro.failures.is_empty()) {
        Outcome::Negative
    } else {
        Outcome::Good
    }
}

fn write(results: &StepsResults, dir: &Path) -> anyhow::Result<()> {
    atomic_file::write_json(&dir.join(FILE), results)?;
    Ok(results.record().page().write(dir)?)
}

/// Plan of the syncs, with the pairs and the scale of the plan of steps.
fn sync_plan(plan: &StepsPlan) -> anyhow::Result<Plan> {
    let mut sync_plan = PlanText::find(&plan.sync)?.chain()?;
    sync_plan.runs.repeat = plan.pairs;
    sync_plan.chain.scale = plan.scale.unwrap_or(sync_plan.chain.scale);
    checked(sync_plan.check(), "command line")?;
    Ok(sync_plan)
}

#[cfg(test)]
mod tests {
    use assay_bench::plan::Experiment;

    use super::*;

    fn steps_plan() -> StepsPlan {
        let found = PlanText::find("ibd-tracking-core").and_then(|text| text.plan(&[]));
        let Ok(Experiment::Steps(plan)) = found else { panic!("a built-in plan of steps") };
        *plan
    }

    #[test]
    fn missing_builds_have_a_command() {
        let plan = steps_plan();
        let folder = tempfile::tempdir().expect("a folder");
        let found = Found::within(&plan, &Cache::at(folder.path())).expect("nothing is there");
        let absent = found.absent(plan.revisions());
        assert_eq!(absent.len(), plan.revisions().len());
        let command = "assay builds make --repo PATH --preset bitcoin-core-bench --compiler gcc --rev 88debb3e";
        assert!(absent[0].command.starts_with(command), "{}", absent[0].command);
        let steps = steps(&plan, &found);
        assert_eq!(steps.len(), plan.steps.len());
        for (step, absent) in steps.iter().zip([2, 2, 1, 2, 2, 2]) {
            assert_eq!(step.absent.len(), absent, "{}", step.name);
            assert!(step.absent[0].command.ends_with(&step.revision), "{}", step.name);
        }
    }

    #[test]
    fn written_results_are_read_back() {
        let plan = steps_plan();
        let folder = tempfile::tempdir().expect("a folder");
        let found = Found::within(&plan, &Cache::at(folder.path())).expect("nothing is there");
        let steps = steps(&plan, &found);
        let results = StepsResults {
            schema: SCHEMA,
            kind: KIND.to_owned(),
            created: "2026-11-26T00:00:00Z".to_owned(),
            rerun: "assay run ibd-tracking-core".to_owned(),
            sum: Sum { up_to: "siphash".to_owned(), published: Some(1.186), syncs: None },
            related: related::absent(&plan, &found),
            plan,
            base: None,
            steps,
            syncs: None,
            is_complete: true,
            machine: assay_lab::machine::Machine::default(),
        };
        write(&results, folder.path()).expect("writable");
        let path = StepsResults::file_in(folder.path()).expect("it is there");
        let file = assay_report::ResultsFile::read(&path).expect("readable");
        assert!(StepsResults::is_one(&file));
        let again = StepsResults::parse(file).expect("of this form");
        assert_eq!(again.record(), results.record());
    }
}
