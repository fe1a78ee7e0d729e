//! Sentences of the report.

use assay_report::stats::verdict::{FLOOR_MIN, Verdict};

use crate::results::{BenchResults, Comparison};
use crate::suite::Published;

/// Introduction to the published figures: comparability and sources.
pub(super) fn published(results: &BenchResults) -> Vec<String> {
    let mut all = vec![
        "The machines differ, so times say little; ratios and instructions travel better. \
         A ratio, published or measured here, is the time before an optimisation over the time after it."
            .to_owned(),
    ];
    for figure in results.published.iter().filter(|figure| !figure.source.is_empty()) {
        let Published { subject, machine, source, date, .. } = figure;
        let point = format!("- {subject}; {machine}: {source} ({date}).");
        if !all.contains(&point) {
            all.push(point);
        }
    }
    all
}

/// Questions, and the number of results.
pub(super) fn summary(results: &BenchResults) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let questions = results.plan.iter().flat_map(|plan| &plan.questions);
    all.extend(questions.map(|question| format!("- {question}")));
    if !results.benchmarks.is_empty() || results.studies.is_empty() {
        all.push(counts(results));
    }
    all
}

/// Lead of the first study if only studies were made, else the number of results.
pub(super) fn headline(results: &BenchResults) -> String {
    let lead = || results.studies.iter().find_map(|study| study.lead.clone());
    let lead = if results.benchmarks.is_empty() { lead() } else { None };
    lead.unwrap_or_else(|| counts(results))
}

/// Numbers of faster, slower and equal alternatives.
pub(super) fn counts(results: &BenchResults) -> String {
    let comparisons: Vec<&Comparison> =
        results.benchmarks.iter().flat_map(|measured| &measured.comparisons).collect();
    let count = |verdict| comparisons.iter().filter(|found| found.verdict == verdict).count();
    format!(
        "{} benchmarks; of {} alternatives compared with a baseline, {} are faster, {} are slower, and for {} no difference is shown.",
        results.benchmarks.len(),
        comparisons.len(),
        count(Verdict::Faster),
        count(Verdict::Slower),
        count(Verdict::NotShown)
    )
}

pub(super) fn caveats(results: &BenchResults) -> Vec<String> {
    let mut all = Vec::new();
    if !results.is_complete {
        all.push("the run was stopped before its end: not everything was measured".to_owned());
    }
    if !results.failures.is_empty() {
        all.push(format!("{} have no figures: see the end", results.failures.len()));
    }
    all.extend(results.conditions.warnings.iter().cloned());
    all
}

/// Introduction to the comparison of builds.
pub(super) fn builds(results: &BenchResults) -> Vec<String> {
    let builds = results.plan.iter().flat_map(|plan| &plan.builds);
    let mut all = vec![
        "Each build is a process that times itself; their epochs are interleaved. `NAME @ BUILD` is an alternative of a build."
            .to_owned(),
    ];
    all.extend(builds.map(|build| format!("- {}: `{}`", build.name, build.command.join(" "))));
    all
}

pub(super) fn method(results: &BenchResults) -> Vec<String> {
    let measured = results.floor_measured.map_or_else(
        || "was not measured".to_owned(),
        |floor| format!("was {:.2} % here", floor * 100.0),
    );
    [
        "An epoch is as many operations as take about 5 ms. Alternatives of an operation are interleaved, round by round in alternating order, after a warm-up round; results are checked before anything is timed."
            .to_owned(),
        format!("Figures are medians over {} rounds, with their range.", results.rounds),
        "A ratio is the median of the ratios of the same round: the baseline's time over this one's, above 1 this one is \
         faster. Its interval runs between two of the sorted ratios and holds the true median with 99 % probability, \
         whatever the distribution."
            .to_owned(),
        format!(
            "A difference is called one when the interval excludes 1 and the median is more than {:.2} % away from it: \
             twice the median shift of the same work against itself, which {measured}, and at least {:.0} %. Otherwise none is shown, \
             which does not say that there is none.",
            results.floor * 100.0,
            FLOOR_MIN * 100.0
        ),
    ]
    .map(|point| format!("- {point}"))
    .into()
}
