//! Findings of a plan of steps for a question of the overview: on one step, or on all.

use assay_lab::compare::ComparedRow;
use assay_report::{Finding, Question};

use super::record::{ratio_text, verdict};
use super::results::{StepResult, StepsResults};

impl StepsResults {
    pub(crate) fn finding(&self, question: &Question) -> Option<Finding> {
        match &question.step {
            Some(name) => of_step(self.steps.iter().find(|step| step.name == *name)?, question),
            None => of_all(self, question),
        }
    }
}

/// All steps against the base.
fn of_all(results: &StepsResults, question: &Question) -> Option<Finding> {
    let row = results.sum.syncs.as_ref()?;
    Some(found(results.sum.published, syncs(row), verdict(row), question))
}

/// A step against the one before it: first by syncs, then by benchmarks.
fn of_step(step: &StepResult, question: &Question) -> Option<Finding> {
    let rows = step.micro.iter().flat_map(|micro| &micro.rows);
    let benchmarks = rows.map(|row| format!("{} {:.3}", row.benchmark, row.ratio.median));
    let measured: Vec<String> = step.alone.iter().map(syncs).chain(benchmarks).collect();
    if measured.is_empty() {
        return None;
    }
    let said = step.alone.as_ref().map_or("", verdict);
    Some(found(step.published, measured.join("; "), said, question))
}

fn syncs(row: &ComparedRow) -> String {
    format!("syncs {}", ratio_text(row))
}

fn found(published: Option<f64>, measured: String, verdict: &str, question: &Question) -> Finding {
    let published = published.map(|ratio| format!("{ratio:.3} times as fast as without it"));
    Finding {
        published: published.or_else(|| question.published.clone()).unwrap_or_default(),
        measured,
        verdict: verdict.to_owned(),
        caveat: question.caveat.clone(),
    }
}
