//! Series of tables and charts: all valid runs of one target with one pre-relayed share.

use assay_report::number::in_percent;
use assay_report::stats::{median, spread};
use assay_report::{Look, number};

use crate::plan::{Figure, FigureKind};
use crate::results::{PhaseResult, Results, Run, TargetResults};

/// The valid runs of one target with one pre-relayed share.
pub(super) struct Series<'a> {
    pub(super) target: &'a str,
    pub(super) seen: f64,
    pub(super) runs: Vec<&'a Run>,
    pub(super) label: String,
    pub(super) look: Look,
}

/// All series with a valid run, in the order of the targets.
pub(super) fn all(results: &Results) -> Vec<Series<'_>> {
    let mut series = Vec::new();
    for target in &results.targets {
        for seen in target.seen_shares() {
            let runs = target.valid_runs(seen);
            if !runs.is_empty() {
                let look = Look { colour: Some(series.len()), dashed: in_percent(seen) > 0 };
                // A sync pre-relays nothing.
                let label = if results.plan.feed.by.is_sync() {
                    target.name.clone()
                } else {
                    format!("{}, {} pre-relayed", target.name, number::whole_percent(seen))
                };
                series.push(Series { target: &target.name, seen, runs, label, look });
            }
        }
    }
    series
}

impl Series<'_> {
    /// Run with the median total service time, which represents the series in curves.
    pub(super) fn middle_run(&self) -> Option<&Run> {
        let mut runs = self.runs.clone();
        runs.sort_by(|a, b| a.total.seconds.total_cmp(&b.total.seconds));
        runs.get(runs.len().saturating_sub(1) / 2).copied()
    }

    /// Median over the runs of a figure of one phase.
    pub(super) fn phase(&self, name: &str, figure: fn(&PhaseResult) -> f64) -> Option<f64> {
        of_phase(&self.runs, name, figure)
    }
}

/// Median over `runs` of a figure of one phase; `total` is the sum of the measured phases.
pub(super) fn of_phase(runs: &[&Run], name: &str, figure: fn(&PhaseResult) -> f64) -> Option<f64> {
    let values = values_of_phase(runs, name, figure);
    (!values.is_empty()).then(|| median(&values))
}

/// Spread over `runs` of a figure of one phase.
pub(super) fn spread_of_phase(
    runs: &[&Run],
    name: &str,
    figure: fn(&PhaseResult) -> f64,
) -> Option<f64> {
    spread(&values_of_phase(runs, name, figure))
}

fn values_of_phase(runs: &[&Run], name: &str, figure: fn(&PhaseResult) -> f64) -> Vec<f64> {
    runs.iter().filter_map(|run| phase_of(run, name)).map(figure).collect()
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

pub(super) fn has_valid(target: &TargetResults) -> bool {
    target.runs.iter().any(|run| run.status == crate::results::Status::Valid)
}
