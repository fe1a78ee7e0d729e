//! The page of a plan of steps, and its first screen for the terminal.

use assay_lab::compare::{ComparedRow, PAIRS_MIN, PairComparison};
use assay_lab::machine;
use assay_report::stats::verdict::Verdict;
use assay_report::{Figure, Front, Page, Section, Table};

use super::results::{StepResult, StepsResults, Syncs};
use crate::commands::pr::nanoseconds;

/// Digits of an abbreviated commit hash.
const HASH: usize = 12;
const NONE: &str = "–";

impl StepsResults {
    pub(crate) fn page(&self) -> Page {
        Page {
            title: self.plan.title.clone(),
            summary: self.plan.summary.clone(),
            created: self.created.clone(),
            front: Some(front(self)),
            sections: sections(self),
        }
    }
}

pub(super) fn terminal(results: &StepsResults) -> String {
    let mut text = String::new();
    front(results).text(&mut text);
    text.push('\n');
    syncs_table(results).text(&mut text);
    if has_micro(results) {
        text.push('\n');
        micro_table(results).text(&mut text);
    }
    if results.related.iter().any(|related| related.syncs.is_some()) {
        text.push('\n');
        related_table(results).text(&mut text);
    }
    text
}

fn front(results: &StepsResults) -> Front {
    let mut front = Front { answer: answer(results), ..Front::default() };
    if let Some(row) = &results.sum.syncs {
        front
            .figures
            .push(ratio_figure(row, "time of a sync of the base over the last step that is built"));
    }
    if let Some(row) = results.syncs.as_ref().and_then(Syncs::floor) {
        front.figures.push(ratio_figure(&row, "the first build against itself"));
    }
    let rows =
        || results.steps.iter().filter_map(|step| step.micro.as_ref()).flat_map(|one| &one.rows);
    if rows().next().is_some() {
        let faster = rows().filter(|row| row.verdict == Verdict::Faster).count();
        front.figures.push(Figure {
            value: format!("{faster} of {}", rows().count()),
            unit: String::new(),
            of: "benchmarks that their step makes faster".to_owned(),
        });
    }
    front.caveats = caveats(results);
    front
}

fn answer(results: &StepsResults) -> String {
    let built = results.steps.iter().filter(|step| step.build.is_some()).count();
    let published =
        results.sum.published.map_or_else(String::new, |ratio| format!("; published: {ratio:.3}"));
    let is_last = results.steps.last().is_some_and(|step| step.name == results.sum.up_to);
    let what = if is_last {
        "All steps".to_owned()
    } else {
        format!("The steps up to {}", results.sum.up_to)
    };
    let found = results.sum.syncs.as_ref().map_or_else(
        || "not measured".to_owned(),
        |row| format!("{}, ratio {:.3}", verdict(row), row.ratio.median),
    );
    format!(
        "{built} of {} steps are built. {what} against the base: {found}{published}.",
        results.steps.len()
    )
}

fn has_micro(results: &StepsResults) -> bool {
    results.steps.iter().any(|step| step.micro.is_some())
}

/// A verdict, or that there were too few pairs for one.
pub(super) fn verdict(row: &ComparedRow) -> &'static str {
    if row.ratio.pairs < PAIRS_MIN && !row.verdict.is_difference() {
        "undecided, too few pairs count"
    } else {
        row.verdict.text()
    }
}

fn ratio_figure(row: &ComparedRow, of: &str) -> Figure {
    let ratio = &row.ratio;
    Figure {
        value: format!("{:.4}", ratio.median),
        unit: String::new(),
        of: format!(
            "{of} ({:.4} to {:.4}, {} pairs)",
            ratio.interval.low, ratio.interval.high, ratio.pairs
        ),
    }
}

/// A ratio with its interval and its number of pairs.
pub(super) fn ratio_text(row: &ComparedRow) -> String {
    let ratio = &row.ratio;
    let interval = ratio.interval;
    let pairs = ratio.pairs;
    format!("{:.3} ({:.3} to {:.3}, {pairs} pairs)", ratio.median, interval.low, interval.high)
}

fn caveats(results: &StepsResults) -> Vec<String> {
    let mut caveats = Vec::new();
    if results.base.is_none() {
        caveats.push(format!(
            "The base, {}, is absent: no ratio against it.",
            results.plan.base.revision
        ));
    }
    for step in &results.steps {
        for absent in &step.absent {
            caveats.push(format!(
                "{}: {} is absent; build it: `{}`.",
                step.name, absent.revision, absent.command
            ));
        }
        let failures = step.micro.iter().flat_map(|micro| &micro.failures);
        caveats.extend(failures.map(|failure| format!("{}: failed: {failure}", step.name)));
    }
    if let Some(syncs) = &results.syncs {
        if syncs.void_runs > 0 {
            caveats.push(format!(
                "{} runs are discarded: they ended with another state than the chain's.",
                syncs.void_runs
            ));
        }
        let is_sum = |pair: &&PairComparison| pair.second == results.sum.up_to;
        let sum = syncs.since_first.comparisons.iter().filter(is_sum);
        caveats.extend(sum.flat_map(|pair| pair.notes.clone()));
    }
    if !results.is_complete {
        caveats.push("Not everything was measured: continue with --resume.".to_owned());
    }
    caveats
}

fn sections(results: &StepsResults) -> Vec<Section> {
    let mut all = Vec::new();
    if let Some(syncs) = &results.syncs {
        let mut prose = vec![format!("Chain: {}.", syncs.chain)];
        for pair in syncs.since_first.comparisons.iter().chain(&syncs.alone) {
            let sides = format!("{} and {}", pair.first, pair.second);
            prose.extend(pair.notes.iter().map(|note| format!("- {sides}: {note}")));
        }
        prose.push("Curves, phases and single runs: `macro/report.html`.".to_owned());
        let mut tables = vec![syncs_table(results)];
        tables.extend(syncs.since_first.tables());
        all.push(Section::new("syncs", "Syncs", prose, tables));
    }
    if has_micro(results) {
        let prose = vec![format!(
            "{} rounds; in each, the build before the step, the same again and the build with it make the benchmark once. Every sample: `micro/STEP/report.html`.",
            results.plan.rounds
        )];
        all.push(Section::new("micro", "bench_bitcoin", prose, vec![micro_table(results)]));
    }
    if !results.related.is_empty() {
        let tables = vec![related_table(results)];
        all.push(Section::new("related", "Related changes", related_prose(results), tables));
    }
    all.push(Section::new("builds", "Builds", Vec::new(), vec![builds(results)]));
    let machine = machine::table(&results.machine);
    all.push(Section::new("machine", "Machine", Vec::new(), vec![machine]));
    all.push(Section::new("method", "Method", method(results), Vec::new()));
    all
}

fn related_prose(results: &StepsResults) -> Vec<String> {
    let mut prose = vec![
        "Changes outside of the branch: syncs of the revision before each, and of the one with it, in a run of its own. Curves and single runs: `related/NAME/report.html`."
            .to_owned(),
    ];
    let absent = results.plan.related.iter().zip(&results.related);
    let absent = absent.filter(|(_, found)| found.build.is_none() || found.before.is_none());
    let revisions: Vec<String> = absent
        .filter_map(|(planned, _)| planned.revisions())
        .flatten()
        .map(|revision| format!("--rev {revision}"))
        .collect();
    if !revisions.is_empty() {
        let plan = &results.plan;
        let compiler =
            plan.compiler.as_ref().map_or_else(String::new, |c| format!(" --compiler {c}"));
        prose.push(format!(
            "Builds that are absent, all of them or some: `assay builds make --repo PATH --preset {}{compiler} {}`",
            plan.preset,
            revisions.join(" ")
        ));
    }
    prose
}

/// Table of the changes outside of the branch.
fn related_table(results: &StepsResults) -> Table {
    let head =
        ["Change", "What it changes", "Revision", "published", "ratio", "interval", "verdict"];
    let caption = "Syncs: time without a change over time with it; above 1, it is faster";
    let mut table = Table::new(caption, &head, 4);
    for (planned, found) in results.plan.related.iter().zip(&results.related) {
        let [ratio, interval, verdict] = found.syncs.as_ref().map_or_else(
            || {
                let reason = match (planned.revisions(), &found.before, &found.build) {
                    (None, _, _) => "in no public branch",
                    (Some(_), Some(_), Some(_)) => "not measured",
                    _ => "absent",
                };
                [NONE.to_owned(), NONE.to_owned(), reason.to_owned()]
            },
            measured,
        );
        table.push([
            planned.name.clone(),
            planned.title.clone(),
            planned.revision.as_deref().map_or(NONE, short).to_owned(),
            planned.published.clone().unwrap_or_else(|| NONE.to_owned()),
            ratio,
            interval,
            verdict,
        ]);
    }
    table
}

/// Table of each step, alone and since the base.
fn syncs_table(results: &StepsResults) -> Table {
    let head = [
        "Step",
        "Revision",
        "published",
        "ratio",
        "interval",
        "verdict",
        "published since base",
        "since base",
        "interval",
        "verdict",
    ];
    let caption = "Syncs: time without a step over time with it; above 1, it is faster";
    let mut table = Table::new(caption, &head, 2);
    for step in &results.steps {
        let [alone, alone_interval, alone_verdict] = cells(step, step.alone.as_ref());
        let [since, since_interval, since_verdict] = cells(step, step.since_base.as_ref());
        table.push([
            step.name.clone(),
            short(&step.revision).to_owned(),
            published(step.published),
            alone,
            alone_interval,
            alone_verdict,
            published(step.published_since_base),
            since,
            since_interval,
            since_verdict,
        ]);
    }
    table
}

fn cells(step: &StepResult, row: Option<&ComparedRow>) -> [String; 3] {
    let Some(row) = row else {
        let reason = if step.build.is_none() { "absent" } else { "not measured" };
        return [NONE.to_owned(), NONE.to_owned(), reason.to_owned()];
    };
    measured(row)
}

fn measured(row: &ComparedRow) -> [String; 3] {
    let (ratio, interval) = (&row.ratio, row.ratio.interval);
    [
        format!("{:.4}", ratio.median),
        format!("{:.4} to {:.4}", interval.low, interval.high),
        verdict(row).to_owned(),
    ]
}

fn micro_table(results: &StepsResults) -> Table {
    let head = [
        "Step",
        "Benchmark",
        "published",
        "before ns/op",
        "with it ns/op",
        "ratio",
        "99 % interval",
        "before again",
        "floor",
        "verdict",
    ];
    let caption = "bench_bitcoin: time without a step over time with it; above 1, it is faster";
    let mut table = Table::new(caption, &head, 2);
    for (step, planned) in results.steps.iter().zip(&results.plan.steps) {
        let dashes = |name: &str, reason: &str| {
            let mut cells: [String; 10] = std::array::from_fn(|_| NONE.to_owned());
            cells[0].clone_from(&step.name);
            name.clone_into(&mut cells[1]);
            reason.clone_into(&mut cells[9]);
            cells
        };
        let Some(micro) = &step.micro else {
            table.push(match (planned.benchmarks.is_empty(), step.absent.is_empty()) {
                (true, _) => dashes(NONE, "no benchmark in the plan"),
                (false, true) => dashes(NONE, "not measured"),
                (false, false) => dashes(NONE, "absent"),
            });
            continue;
        };
        for row in &micro.rows {
            let of = planned.benchmarks.iter().find(|one| one.name == row.benchmark);
            table.push([
                step.name.clone(),
                row.benchmark.clone(),
                published(of.and_then(assay_bench::plan::StepBenchmark::published)),
                nanoseconds(row.base_ns),
                nanoseconds(row.head_ns),
                format!("{:.3}", row.ratio.median),
                format!("{:.3} to {:.3}", row.ratio.low, row.ratio.high),
                format!("{:.3} to {:.3}", row.again.low, row.again.high),
                format!("{:.1} %", row.floor * 100.0),
                row.verdict.text().to_owned(),
            ]);
        }
    }
    table
}

fn published(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| NONE.to_owned(), |ratio| format!("{ratio:.3}"))
}

fn builds(results: &StepsResults) -> Table {
    let head = ["", "What it changes", "Commit", "Subject", "Compiler", "Flags", "Build"];
    let mut table = Table::new("What was measured", &head, 7);
    let base = ("base", "", results.plan.base.revision.as_str(), results.base.as_ref());
    let steps = results.steps.iter().map(|step| {
        (step.name.as_str(), step.title.as_str(), step.revision.as_str(), step.build.as_ref())
    });
    for (name, title, revision, build) in std::iter::once(base).chain(steps) {
        let of = |field: fn(&assay_lab::builds::Build) -> String| {
            build.map_or_else(|| NONE.to_owned(), field)
        };
        table.push([
            name.to_owned(),
            title.to_owned(),
            build.map_or(revision, |build| &build.commit).to_owned(),
            of(|build| build.subject.clone()),
            of(|build| build.compiler.version.clone()),
            of(|build| build.flags.clone()),
            build.map_or_else(|| "absent".to_owned(), |build| build.key.clone()),
        ]);
    }
    table
}

/// Abbreviates a hash; other names are returned unchanged.
fn short(revision: &str) -> &str {
    let is_hash = revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    revision.get(..HASH).filter(|_| is_hash).unwrap_or(revision)
}

fn method(results: &StepsResults) -> Vec<String> {
    vec![
        "Revisions, benchmarks, rounds and pairs were fixed before the first measurement. All revisions were built with the same preset.".to_owned(),
        format!("- Published: {}.", results.plan.source),
        "- Syncs: in each round base, base again and every step; every second round backwards. Where the base is not built, the first step that is takes its place. Verdicts as of `assay compare` (docs/METHODOLOGY.md); what the first build shows against itself is the floor of all of them.".to_owned(),
        "- `bench_bitcoin`: as `assay pr` measures it. What a step is compared with is the revision that has the same benchmarks and not yet the change, where it is not the step before.".to_owned(),
        format!("- Again: `{}`", results.rerun),
    ]
}
