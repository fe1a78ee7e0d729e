//! `plans/overview.toml`: the questions of the published reports, which the summary of a report and the overview of all results
//! answer.

use assay_report::Question;
use serde::Deserialize;

const FORMAT: u32 = 1;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    report: Vec<Report>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The plan that reruns it.
    pub plan: String,
    pub title: String,
    /// Author, date and location of the publication.
    pub source: String,
    /// Answer of the report in a sentence: `{0}` is the time that answers the first question, `{0.ratio}` the ratio to the
    /// baseline, `{0.by}` the alternative.
    pub answer: Option<String>,
    #[serde(rename = "question")]
    pub questions: Vec<Question>,
}

/// All reports in file order.
///
/// # Panics
/// When the file is malformed, which is a defect of this program.
pub fn reports() -> Vec<Report> {
    let text = include_str!("../../../plans/overview.toml");
    // A test reads it, so a malformed file never ships.
    let file: File = toml::from_str(text).expect("a test reads the overview");
    assert_eq!(file.format, FORMAT, "format of the overview");
    file.report
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::plan::PlanText;

    #[test]
    fn every_report_names_a_plan_and_asks_something() {
        let reports = reports();
        let plans: BTreeSet<&str> = reports.iter().map(|report| report.plan.as_str()).collect();
        assert_eq!(plans.len(), reports.len(), "a plan for each");
        for report in &reports {
            let name = report.plan.as_str();
            assert!(PlanText::find(name).is_ok(), "{name} is a built-in plan");
            assert!(!report.questions.is_empty() && report.source.contains("20"), "{name}");
            for question in &report.questions {
                let both = question.benchmark.is_some() && question.phase.is_some();
                assert!(!question.ask.is_empty() && !both, "{question:?}");
            }
        }
    }
}
