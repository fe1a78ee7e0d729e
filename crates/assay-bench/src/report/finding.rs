//! Answers a question of a published report from results.

use assay_report::number::duration;
use assay_report::stats::ratio::Ratio;
use assay_report::{Finding, Question};

use super::prose;
use crate::harness::Figures;
use crate::results::{BenchResults, Measured};
use crate::suite::Published;

/// The finding; `None` without a benchmark of that name.
pub fn finding(results: &BenchResults, question: &Question) -> Option<Finding> {
    let Some(name) = &question.benchmark else {
        return Some(Finding {
            published: question.published.clone().unwrap_or_default(),
            measured: prose::counts(results),
            verdict: String::new(),
            caveat: join([question.caveat.clone(), prose::caveats(results).join("; ")]),
        });
    };
    let measured = results.benchmarks.iter().find(|one| one.name == *name)?;
    let figures = alternative(measured, question)?;
    let published = results.published.iter().find(|figure| figure.benchmark == *name);
    let comparison = measured.comparison(&figures.name);
    let verdict = comparison.map_or_else(String::new, |found| {
        let Ratio { median, low, high, .. } = found.ratio;
        format!(
            "{} against {}: {median:.2} ({low:.2} to {high:.2})",
            found.verdict.text(),
            found.baseline
        )
    });
    let from_plan = question.published.clone();
    Some(Finding {
        published: from_plan.or_else(|| published.map(of_published)).unwrap_or_default(),
        measured: format!("{}: {}", figures.name, duration(figures.ns_per_op)),
        verdict,
        caveat: question.caveat.clone(),
    })
}

/// The alternative that the question names, or else the fastest.
pub(super) fn alternative<'a>(measured: &'a Measured, question: &Question) -> Option<&'a Figures> {
    match &question.alternative {
        Some(name) => measured.row.of(name),
        None => measured.row.figures.iter().min_by(|a, b| a.ns_per_op.total_cmp(&b.ns_per_op)),
    }
}

/// A published figure: its ratio if it is of a step, else its time.
fn of_published(figure: &Published) -> String {
    let value = match (figure.ratio, figure.ns_per_op) {
        (Some(ratio), _) => format!("{ratio:.2} times as fast as before"),
        (None, Some(ns)) => duration(ns),
        (None, None) => "-".to_owned(),
    };
    format!("{value} ({}; {})", figure.subject, figure.machine)
}

fn join(parts: [String; 2]) -> String {
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    fn ask(benchmark: Option<&str>) -> Question {
        Question {
            ask: "How long?".to_owned(),
            benchmark: benchmark.map(str::to_owned),
            ..Question::default()
        }
    }

    #[test]
    fn fastest_alternative_with_verdict_and_published_figure() {
        let results = fixture::results();
        let found = finding(&results, &ask(Some("g/s/520"))).expect("measured");
        assert!(found.measured.starts_with("ours, fast: "), "{found:?}");
        assert!(found.verdict.starts_with("faster against theirs: 2.00 ("), "{found:?}");
        assert_eq!(found.published, "1.50 times as fast as before (somebody; Ryzen 5 3600)");
        let named = Question { alternative: Some("theirs".to_owned()), ..ask(Some("g/s/520")) };
        let found = finding(&results, &named).expect("measured");
        assert!(found.measured.starts_with("theirs: ") && found.verdict.is_empty(), "{found:?}");
    }

    #[test]
    fn unknown_benchmark_has_none_and_no_benchmark_is_the_whole() {
        let results = fixture::results();
        assert_eq!(finding(&results, &ask(Some("nothing"))), None);
        let whole = finding(&results, &ask(None)).expect("all");
        assert!(whole.measured.starts_with("4 benchmarks; "), "{whole:?}");
    }
}
