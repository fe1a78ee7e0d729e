//! Runs the benchmarks of suites one after the other, and assembles the results.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use assay_lab::machine;
use assay_lab::machine::Software;
use assay_lab::plan::Kind;
use serde_json::{Value, json};

use crate::builds::{BuildOptions, Builds};
use crate::conditions::Conditions;
use crate::harness::{Rounds, Row, compare_within};
use crate::instructions::Counter;
use crate::journal::Journal;
use crate::plan::BenchPlan;
use crate::registry::{Filter, Section, benchmarks};
use crate::results::{BenchResults, Counting, Failure, Measured, SCHEMA};
use crate::selfcheck::{floor, measure_floor};
use crate::suite::{Benchmark, Extent, Watch};
use crate::{Progress, counters};

/// Median absolute deviation, in percent, above which figures are called unsteady.
const ERR_PERCENT_MAX: f64 = 5.0;

/// Rounds of each comparison that determines the floor.
const FLOOR_ROUNDS: usize = 15;

#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The plan; its settings apply to its sections.
    pub plan: Option<BenchPlan>,
    pub extent: Extent,
    /// Measured rounds, instead of those of the plan or the extent.
    pub rounds: Option<usize>,
    pub filter: Filter,
    /// Folder of results, written incrementally; none if absent.
    pub out_dir: Option<PathBuf>,
    pub resume: bool,
    /// Command line that repeats the run.
    pub rerun: String,
    pub software: Software,
    /// Instruction counter for machines without hardware counters.
    pub counter: Option<Counter>,
    /// The plan for other builds of this program: a name or a path, and flags that change its keys.
    pub plan_source: Vec<String>,
}

impl Extent {
    /// Default rounds. Fifteen suffice for a 99 % interval that excludes one outlier on each side.
    pub const fn rounds(self) -> usize {
        match self {
            Self::Smoke => 1,
            Self::Quick => 15,
            Self::Full => 21,
        }
    }
}

/// Runs the benchmarks. A failed benchmark is recorded and does not end the run.
///
/// # Errors
/// When the settings of a suite are invalid, or results cannot be written.
pub fn run(sections: &[Section], options: &RunOptions, watch: &dyn Watch) -> Result<BenchResults> {
    let mut results = begin(options, watch)?;
    let mut counter = options.counter.clone().filter(|_| results.counting.by.is_none());
    if let Some(counter) = &counter {
        results.counting = counter.note();
    }
    let all = benchmarks(sections, options.extent, &options.filter)?;
    let (mut journal, done) = match &options.out_dir {
        None => (None, Vec::new()),
        Some(dir) => {
            let (journal, done) = Journal::open(dir, &settings(&results), options.resume)?;
            (Some(journal), done)
        }
    };
    for (number, (section, benchmark)) in all.iter().enumerate() {
        if watch.is_stopped() {
            results.is_complete = false;
            break;
        }
        watch.benchmark(&benchmark.name, number, all.len());
        if let Some(measured) = done.iter().find(|measured| measured.name == benchmark.name) {
            results.benchmarks.push(measured.judged(results.floor));
            continue;
        }
        let row = match measure(benchmark, options.extent, results.rounds, watch) {
            Ok(row) => row,
            // Ctrl-C ends peer processes as well: they have not failed.
            Err(_) if watch.is_stopped() => {
                results.is_complete = false;
                break;
            }
            Err(error) => {
                fail(&mut results, &benchmark.name, &error, watch);
                continue;
            }
        };
        let mut measured = Measured::new(section, benchmark, row, results.floor);
        if let Some(counter) = &mut counter {
            count(counter, &mut measured, &mut results, watch);
        }
        if let Some(journal) = &mut journal {
            journal.record(&measured)?;
        }
        results.benchmarks.push(measured);
    }
    if let Some(counter) = &counter {
        results.counting = counter.note();
    }
    if results.is_complete {
        builds(&all, options, &mut results, watch);
    }
    if options.plan.is_some() && results.is_complete {
        watch.stage();
        studies(sections, options.extent, &mut results, watch);
    }
    for section in sections {
        results.published.extend(section.suite.published());
    }
    results.published.extend(options.plan.iter().flat_map(|plan| plan.published.clone()));
    warn_of_unsteady(&mut results);
    Ok(results)
}

/// Runs a benchmark.
///
/// # Errors
/// When it cannot be prepared, or one of its alternatives fails.
pub fn measure(
    benchmark: &Benchmark<'_>,
    extent: Extent,
    rounds: usize,
    progress: &dyn Progress,
) -> Result<Row> {
    let mut alternatives = (benchmark.make)()?;
    let is_smoke = extent == Extent::Smoke;
    if is_smoke {
        for alternative in &mut alternatives {
            alternative.shorten();
        }
    }
    let rounds = Rounds { count: rounds.max(1), warm_up: usize::from(!is_smoke) };
    progress.begin(&benchmark.name, (rounds.count + rounds.warm_up) as u64);
    let within = (extent == Extent::Quick).then_some(QUICK_WITHIN);
    compare_within(&benchmark.name, &mut alternatives, rounds, within, &mut || progress.step())
}

/// Time limit of a benchmark in a quick run: only affects operations of seconds.
const QUICK_WITHIN: Duration = Duration::from_secs(2);

/// Counts instructions of all alternatives; failures leave a gap.
fn count(
    counter: &mut Counter,
    measured: &mut Measured,
    results: &mut BenchResults,
    watch: &dyn Watch,
) {
    for figures in &mut measured.row.figures {
        if let Err(error) = counter.count(&measured.name, results.extent, figures) {
            let name = format!("instructions of {} by {}", measured.name, figures.name);
            fail(results, &name, &error, watch);
        }
    }
}

/// Runs the benchmarks that compare the plan's builds of this program.
fn builds(
    all: &[(&'static str, Benchmark<'_>)],
    options: &RunOptions,
    results: &mut BenchResults,
    watch: &dyn Watch,
) {
    let named = options.plan.as_ref().map_or(&[][..], |plan| &plan.builds);
    if named.is_empty() {
        return;
    }
    let how = BuildOptions {
        plan: &options.plan_source,
        extent: options.extent,
        rounds: results.rounds,
        floor: results.floor,
    };
    let builds = match Builds::start(named, how) {
        Ok(builds) => builds,
        Err(error) => return fail(results, "builds", &error, watch),
    };
    let chosen: Vec<_> = all.iter().filter(|(_, one)| builds.admit(&one.name)).collect();
    for (number, (section, benchmark)) in chosen.iter().enumerate() {
        if watch.is_stopped() {
            results.is_complete = false;
            return;
        }
        watch.benchmark(&benchmark.name, number, chosen.len());
        match builds.measure(section, benchmark, watch) {
            Ok(measured) => results.builds.push(measured),
            Err(error) => {
                fail(results, &format!("builds: {}", benchmark.name), &error, watch);
            }
        }
    }
}

fn begin(options: &RunOptions, progress: &dyn Progress) -> Result<BenchResults> {
    let planned = options.plan.as_ref().and_then(|plan| plan.rounds);
    // The rounds of a plan are those of its full extent.
    let planned = planned.filter(|_| options.extent == Extent::Full);
    let conditions = Conditions::now();
    let floor_measured = match options.extent {
        Extent::Smoke => None,
        Extent::Quick | Extent::Full => Some(measure_floor(FLOOR_ROUNDS, progress)?),
    };
    Ok(BenchResults {
        schema: SCHEMA,
        kind: Kind::Bench,
        created: machine::utc_now(),
        plan: options.plan.clone(),
        extent: options.extent,
        rounds: options.rounds.or(planned).unwrap_or(options.extent.rounds()),
        rerun: options.rerun.clone(),
        conditions,
        software: options.software.clone(),
        counting: counting(),
        floor: floor(floor_measured),
        floor_measured,
        benchmarks: Vec::new(),
        builds: Vec::new(),
        failures: Vec::new(),
        studies: Vec::new(),
        published: Vec::new(),
        is_complete: true,
    })
}

fn counting() -> Counting {
    match counters::available() {
        Ok(()) => Counting {
            by: Some("perf_event_open".to_owned()),
            note: "counted by the processor in user mode, on the thread that is timed; `-` where other threads \
                   or processes did the work"
                .to_owned(),
        },
        Err(why) => Counting {
            by: None,
            note: format!("the processor's counters are unavailable: {why}"),
        },
    }
}

/// Settings of a run that have to be equal to reuse an earlier figure.
fn settings(results: &BenchResults) -> Value {
    let (machine, software) = (&results.conditions.machine, &results.software);
    json!({
        "schema": SCHEMA,
        "plan": results.plan,
        "extent": results.extent,
        "rounds": results.rounds,
        "software": format!("{} {} {}", software.assay, software.rustc, software.profile),
        "cpu": machine.cpu,
        "cores": machine.cores,
        "counting": results.counting.by,
    })
}

fn studies(sections: &[Section], extent: Extent, results: &mut BenchResults, watch: &dyn Watch) {
    for section in sections {
        let of_section = results.benchmarks.iter().filter(|one| one.section == section.name);
        let rows: Vec<Row> = of_section.map(|measured| measured.row.clone()).collect();
        match section.suite.studies(extent, &rows, watch) {
            Ok(studies) => results.studies.extend(studies),
            Err(error) => fail(results, &format!("studies of {}", section.name), &error, watch),
        }
    }
}

fn fail(results: &mut BenchResults, name: &str, error: &anyhow::Error, watch: &dyn Watch) {
    let text = format!("{error:#}");
    watch.note(&format!("{name}: {text}"));
    results.failures.push(Failure { name: name.to_owned(), error: text });
}

fn warn_of_unsteady(results: &mut BenchResults) {
    let figures = || results.benchmarks.iter().flat_map(|measured| &measured.row.figures);
    let unsteady = figures().filter(|figures| figures.err_percent > ERR_PERCENT_MAX).count();
    if unsteady > 0 && results.rounds > 1 {
        results.conditions.warnings.push(format!(
            "{unsteady} of {} figures are unsteady: err% above {ERR_PERCENT_MAX}",
            figures().count()
        ));
    }
}
