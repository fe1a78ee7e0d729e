//! Series of figures: all valid runs of one target with one pre-relayed share.

use assay_report::number::{self, in_percent};
use assay_report::stats::median_of;

use crate::plan::{Figure, FigureKind};
use crate::results::{PhaseResult, Results, Run};

/// The valid runs of one target with one pre-relayed share.
pub(super) struct Series<'a> {
    pub(super) target: &'a str,
    pub(super) seen: f64,
    pub(super) runs: Vec<&'a Run>,
    pub(super) label: String,
}

/// All series with a valid run, in the order of the targets.
pub(super) fn all(results: &Results) -> Vec<Series<'_>> {
    let mut series = Vec::new();
    for target in &results.targets {
        for seen in target.seen_shares() {
            let runs = target.valid_runs(seen);
            if !runs.is_empty() {
                // A sync pre-relays nothing.
                let label = if results.plan.feed.by.is_sync() {
                    target.name.clone()
                } else {
                    format!("{}, {} pre-relayed", target.name, number::whole_percent(seen))
                };
                series.push(Series { target: &target.name, seen, runs, label });
            }
        }
    }
    series
}

impl<'a> Series<'a> {
    /// Run with the median total service time, which represents the series in curves.
    pub(super) fn middle_run(&self) -> Option<&'a Run> {
        let mut runs = self.runs.clone();
        runs.sort_by(|a, b| a.total.seconds.total_cmp(&b.total.seconds));
        runs.get(runs.len().saturating_sub(1) / 2).copied()
    }

    /// Median over the runs of a figure of one phase; `total` is the sum of the measured phases.
    pub(super) fn phase(&self, name: &str, figure: fn(&PhaseResult) -> f64) -> Option<f64> {
        median_of(self.runs.iter().filter_map(|run| phase_of(run, name)).map(figure))
    }

    pub(super) fn rounds(&self) -> impl Iterator<Item = (&'a Run, Option<u32>)> + '_ {
        let are_many = self.runs.len() > 1;
        self.runs.iter().map(move |run| (*run, are_many.then_some(run.repeat)))
    }
}

pub(super) fn phase_of<'a>(run: &'a Run, name: &str) -> Option<&'a PhaseResult> {
    if name == run.total.name {
        return Some(&run.total);
    }
    run.phases.iter().find(|phase| phase.name == name)
}

/// Measured phases in chain order: ledger name and title.
pub(super) fn measured_phases(results: &Results) -> Vec<(String, String)> {
    let mut names: Vec<(String, String)> = Vec::new();
    for phase in results.runs().flat_map(|run| &run.phases) {
        let is_new = names.iter().all(|(name, _)| *name != phase.name);
        if is_new && results.plan.is_measured(&phase.name) {
            let title = results.plan.phase_title(&phase.name).to_owned();
            names.push((phase.name.clone(), title));
        }
    }
    names
}

/// Sum and measured phases: ledger name and case. Phases of many widths have figures over the width instead.
pub(super) fn cases(results: &Results) -> Vec<(String, String)> {
    let has_widths = !results.plan.scaling.is_empty();
    let phases = if has_widths { Vec::new() } else { measured_phases(results) };
    std::iter::once(("total".to_owned(), String::new())).chain(phases).collect()
}

/// Published figure of a kind of software for a phase and a pre-relayed share.
pub(super) fn published<'a>(
    results: &'a Results,
    kind: FigureKind,
    phase: &str,
    seen: f64,
) -> Option<&'a Figure> {
    let figures = &results.plan.published.as_ref()?.figures;
    figures.iter().find(|figure| {
        figure.kind == kind && figure.phase == phase && in_percent(figure.seen) == in_percent(seen)
    })
}
