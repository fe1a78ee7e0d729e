//! Answers a question of a published report from results.

use assay_report::number::{rate, ratio, seconds};
use assay_report::{Finding, Question};

use super::series::{self, Series};
use super::{headline, index, is_full_size, sync, verdict};
use crate::plan::FigureKind;
use crate::results::Results;

/// The finding; `None` without a valid run, or without such a phase.
pub fn finding(results: &Results, question: &Question) -> Option<Finding> {
    match &question.phase {
        Some(phase) => of_phase(results, question, phase),
        None => of_all(results, question),
    }
}

/// Overall answer of the report: of syncs, the time of each target.
fn of_all(results: &Results, question: &Question) -> Option<Finding> {
    if series::all(results).is_empty() {
        return None;
    }
    let compared = verdict::of(results);
    let (answer, caveats) = headline::of(results, compared.as_ref());
    let (measured, said) = if sync::is_one(results) {
        let each = sync::ends(results);
        let each = each.iter().map(|(name, time_s)| format!("{name} {} s", seconds(*time_s)));
        (each.collect::<Vec<_>>().join(", "), answer)
    } else {
        (answer, String::new())
    };
    let caveats = [question.caveat.clone()].into_iter().chain(caveats);
    Some(Finding {
        published: question.published.clone().unwrap_or_default(),
        measured,
        verdict: said,
        caveat: caveats.filter(|caveat| !caveat.is_empty()).collect::<Vec<_>>().join("; "),
    })
}

/// Inputs per second of a phase, of the first target that ran it with this share.
fn of_phase(results: &Results, question: &Question, phase: &str) -> Option<Finding> {
    let all = series::all(results);
    let series = all.iter().find(|series| (series.seen - question.seen).abs() < 0.005)?;
    let kind = if question.index { FigureKind::Index } else { FigureKind::Node };
    let here = inputs_per_s(series, question, phase)?;
    let published = series::published(results, kind, phase, question.seen);
    let figure = published.and_then(|figure| Some((figure.subject.clone(), figure.inputs_per_s?)));
    let is_same_size = is_full_size(results);
    let verdict = match &figure {
        Some((subject, theirs)) if is_same_size && !question.index && *theirs > 0.0 => {
            format!("{} times {subject}'s rate, on another machine", ratio(here / theirs))
        }
        Some(_) if !is_same_size => "no ratio: the chains differ in size".to_owned(),
        Some(_) => "no ratio: the published figure is of another kind of time".to_owned(),
        None => String::new(),
    };
    let with = if question.index { "node and index together, " } else { "" };
    let scale = format!("{with}scale {}", results.chain.scale);
    Some(Finding {
        published: figure.map_or_else(
            || question.published.clone().unwrap_or_default(),
            |(subject, theirs)| format!("{} inputs/s ({subject})", rate(theirs)),
        ),
        measured: format!("{} inputs/s ({}, {scale})", rate(here), series.target),
        verdict,
        caveat: question.caveat.clone(),
    })
}

fn inputs_per_s(series: &Series<'_>, question: &Question, phase: &str) -> Option<f64> {
    if question.index {
        index::with_node_inputs_per_s(&series.runs, phase)
    } else {
        series.phase(phase, |phase| phase.inputs_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn syncs_name_each_target_with_its_time() {
        let results = fixture::syncs();
        let question = Question { published: Some("a day".to_owned()), ..Question::default() };
        let found = finding(&results, &question).expect("valid runs");
        assert_eq!(found.published, "a day");
        for target in &results.targets {
            assert!(found.measured.contains(&target.name), "{found:?}");
        }
        assert!(found.verdict.starts_with("VERDICT"), "{found:?}");
    }

    #[test]
    fn phases_have_no_ratio_to_another_size() {
        let results = fixture::results();
        let question = Question { phase: Some("fan-out".to_owned()), ..Question::default() };
        let found = finding(&results, &question).expect("a valid run");
        assert!(found.measured.contains(" inputs/s ("), "{found:?}");
        assert!(!found.verdict.contains("times"), "{found:?}");
        let unknown = Question { phase: Some("none".to_owned()), ..Question::default() };
        assert_eq!(finding(&results, &unknown), None);
    }
}
