//! Summary of a report: the answer to the plan's question, its figures, and one chart.

use assay_report::number::duration;
use assay_report::{Chart, Figure, Front, Question};

use super::finding::alternative;
use super::{charts, groups, prose};
use crate::harness::Figures;
use crate::overview;
use crate::results::{BenchResults, Measured};

const FIGURES_MAX: usize = 6;

/// A question with the alternative that answers it.
struct Answer<'a> {
    question: &'a Question,
    measured: &'a Measured,
    figures: &'a Figures,
}

/// Summary of a report: answers to the questions of a published report; otherwise the number of faster alternatives.
pub(super) fn of(results: &BenchResults) -> Front {
    let name = results.plan.as_ref().map_or("", |plan| plan.name.as_str());
    let report = overview::reports().into_iter().find(|report| report.plan == name);
    let questions = report.as_ref().map_or(&[][..], |report| &report.questions);
    let answers: Vec<Option<Answer<'_>>> =
        questions.iter().map(|question| Answer::of(results, question)).collect();
    let template = report.as_ref().and_then(|report| report.answer.as_deref());
    let sentence = template.and_then(|template| fill(template, &answers));
    let found: Vec<&Answer<'_>> = answers.iter().flatten().collect();
    Front {
        answer: sentence.or_else(|| lead(results)).unwrap_or_else(|| prose::counts(results)),
        figures: found.iter().take(FIGURES_MAX).map(|answer| answer.figure()).collect(),
        chart: chart(results, &found),
        caveats: prose::caveats(results),
    }
}

/// Growth with size if the first question has it, else the ratios that answer questions, else those of the first group.
fn chart(results: &BenchResults, found: &[&Answer<'_>]) -> Option<Chart> {
    let growth = found.first().and_then(|first| {
        let series = &first.measured.series;
        let members: Vec<&Measured> =
            results.benchmarks.iter().filter(|one| one.series == *series).collect();
        charts::over_size(series, &members)
    });
    let asked = || {
        let measured: Vec<&Measured> = found.iter().map(|answer| answer.measured).collect();
        charts::ratios("", &measured).into_iter().next()
    };
    let first_group = || {
        let (group, measured) = groups(&results.benchmarks).into_iter().next()?;
        charts::ratios(group, &measured).into_iter().next()
    };
    let of_study = || {
        results.studies.iter().flat_map(|study| &study.charts).find_map(|chart| chart.draw(true))
    };
    growth.or_else(asked).or_else(of_study).or_else(first_group)
}

/// Lead of the first study, if the report is about it.
fn lead(results: &BenchResults) -> Option<String> {
    results.studies.iter().find_map(|study| study.lead.clone())
}

/// The sentence with its placeholders filled; `None` if a figure is missing.
fn fill(template: &str, answers: &[Option<Answer<'_>>]) -> Option<String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (place, after) = after.split_once('}')?;
        let (number, what) = place.split_once('.').unwrap_or((place, "time"));
        let answer = answers.get(number.parse::<usize>().ok()?)?.as_ref()?;
        out.push_str(before);
        out.push_str(&answer.part(what)?);
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

impl<'a> Answer<'a> {
    fn of(results: &'a BenchResults, question: &'a Question) -> Option<Self> {
        let name = question.benchmark.as_ref()?;
        let measured = results.benchmarks.iter().find(|one| one.name == *name)?;
        Some(Self { question, measured, figures: alternative(measured, question)? })
    }

    fn part(&self, what: &str) -> Option<String> {
        match what {
            "time" => Some(duration(self.figures.ns_per_op)),
            "by" => Some(self.figures.name.clone()),
            "ratio" => {
                let found = self.measured.comparison(&self.figures.name)?;
                Some(format!("{:.2}", found.ratio.median))
            }
            _ => None,
        }
    }

    fn figure(&self) -> Figure {
        let time = duration(self.figures.ns_per_op);
        let (value, unit) = time.split_once(' ').unwrap_or((&time, ""));
        Figure {
            value: value.to_owned(),
            unit: unit.to_owned(),
            of: format!("{} ({})", self.question.ask, self.figures.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn sentences_are_filled_or_left_out() {
        let results = fixture::results();
        let question = Question { benchmark: Some("g/s/520".to_owned()), ..Question::default() };
        let answers = [Answer::of(&results, &question), None];
        for (template, text) in [
            ("nothing to fill", Some("nothing to fill")),
            ("{0.by}: {0}, {0.ratio}.", Some("ours, fast: 620 ns, 2.00.")),
            ("{1}", None),
            ("{2}", None),
            ("{0.mood}", None),
            ("{0", None),
        ] {
            assert_eq!(fill(template, &answers).as_deref(), text, "{template}");
        }
    }

    #[test]
    fn a_report_of_no_plan_counts() {
        let front = of(&fixture::results());
        assert!(front.answer.starts_with("4 benchmarks; "), "{}", front.answer);
        assert!(front.figures.is_empty() && front.chart.is_some());
    }
}
