//! Time against the width of transactions: figures, curves, and the growth in words.

mod fit;

use assay_report::number::{count, percent, ratio};
use assay_report::record::{Record, Unit};
use assay_report::stats::paired::Interval;
use assay_report::stats::{median, rate};

use self::fit::{AtWidth, Growth};
use super::series::{self, Series};
use crate::plan::ScalingPlan;
use crate::results::Results;

/// One kind of transaction in one series of runs.
struct Kind<'a> {
    plan: &'a ScalingPlan,
    widths: Vec<AtWidth>,
    growth: Option<Growth>,
}

pub(super) fn is_there(results: &Results) -> bool {
    !results.plan.scaling.is_empty()
}

/// All kinds in a series of runs, in the order of the plan.
fn kinds<'a>(results: &'a Results, series: &Series<'_>) -> Vec<Kind<'a>> {
    let kind = |plan: &'a ScalingPlan| {
        let mut widths: Vec<AtWidth> = Vec::new();
        for (number, run) in series.runs.iter().enumerate() {
            for block in &run.blocks {
                let Some(width) = plan.width(&block.phase).filter(|_| block.inputs > 0) else {
                    continue;
                };
                let at = widths.iter().position(|at| at.width == width).unwrap_or_else(|| {
                    widths.push(AtWidth { width, runs: Vec::new() });
                    widths.len() - 1
                });
                widths[at].runs.resize(number + 1, Vec::new());
                widths[at].runs[number].push(rate(block.service_s, block.inputs as f64));
            }
        }
        widths.sort_by_key(|at| at.width);
        let growth = Growth::of(&widths);
        (!widths.is_empty()).then_some(Kind { plan, widths, growth })
    };
    results.plan.scaling.iter().filter_map(kind).collect()
}

pub(super) fn headlines(results: &Results) -> Vec<String> {
    let mut out = Vec::new();
    for series in series::all(results) {
        for kind in kinds(results, &series) {
            let head = format!("{}, {}", series.label, kind.plan.title);
            out.push(match &kind.growth {
                Some(growth) => format!("{head}: {}", in_words(growth)),
                None => format!("{head}: too few widths for a fit"),
            });
        }
    }
    out
}

/// Maximum deviation of an acceptable fit.
const DEVIATION_MAX: f64 = 0.15;

fn in_words(growth: &Growth) -> String {
    let doubt = if growth.fit.deviation > DEVIATION_MAX {
        let off = percent(growth.fit.deviation);
        format!(
            " Do not believe it: the fit misses the measured times by {off}; more runs or a quieter machine are needed."
        )
    } else {
        String::new()
    };
    format!("{}{doubt}", growth_in_words(growth))
}

fn growth_in_words(growth: &Growth) -> String {
    let widest = count(growth.widest.into());
    let fit = &growth.fit;
    if !growth.is_shown() {
        let at_most = match growth.share_interval {
            Some(share) => format!("at most {} (95 %)", percent(share.high)),
            None => format!("{} (one block is no interval)", percent(growth.share)),
        };
        return format!(
            "no growth of the time per input shown; at {widest} inputs the part that grows is \
             {at_most} of it. An input takes {} µs.",
            micro(fit.at(growth.widest.into()))
        );
    }
    let of = |interval: Option<Interval>, shift: f64| match interval {
        Some(k) => format!(" (95 %: {:.2} to {:.2})", k.low + shift, k.high + shift),
        None => String::new(),
    };
    format!(
        "the time per input grows with n^{:.2}{}, that of a transaction with n^{:.2}: {} µs + {} µs × \
         n^{:.2}. At {widest} inputs growth is {} of the time, and an input takes {} as long as at {}.",
        fit.exponent,
        of(growth.exponent_interval, 0.0),
        fit.exponent + 1.0,
        micro(fit.per_input),
        micro(fit.growing),
        fit.exponent,
        percent(growth.share),
        ratio(growth.times_best),
        count(growth.best.into()),
    )
}

/// Microseconds with about four significant digits.
fn micro(seconds: f64) -> String {
    let us = seconds * 1e6;
    match us {
        us if us >= 100.0 => format!("{us:.1}"),
        us if us >= 0.1 || us <= 0.0 => format!("{us:.2}"),
        us => format!("{us:.5}"),
    }
}

/// Adds the time per input by width, the fits, and the curves. Intervals are 95 %, by bootstrap over runs and over blocks within
/// them: they have the noise of the measurement, not an error of the model.
pub(super) fn add(results: &Results, record: &mut Record) {
    for series in series::all(results) {
        let label = series.label.as_str();
        for kind in kinds(results, &series) {
            let title = &kind.plan.title;
            for at in &kind.widths {
                let case = format!("{title}, width {}", at.width);
                let metric = ("time per input", Unit::Seconds);
                record.add_rounds((label, &case), metric, &at.all());
            }
            let row = |width: f64, seconds: f64| {
                [
                    ("inputs of a transaction", Unit::Count, Some(width)),
                    ("time per input", Unit::Seconds, Some(seconds)),
                ]
            };
            let measured = kind.widths.iter().map(|at| row(at.width.into(), median(&at.all())));
            record.add_series((label, title, None), &measured.collect::<Vec<_>>());
            let Some(growth) = &kind.growth else { continue };
            let fit = &growth.fit;
            let fitted = kind.widths.iter().map(|at| f64::from(at.width));
            let fitted = fitted.map(|width| row(width, fit.at(width))).collect::<Vec<_>>();
            record.add_series((label, &format!("{title}, fit"), None), &fitted);
            let shown = |value: f64| growth.is_shown().then_some(value);
            let percent = |share: f64| Some(100.0 * share);
            let (exponent, share) = (growth.exponent_interval, growth.share_interval);
            let figures = [
                ("fit | per input", Unit::Seconds, Some(fit.per_input)),
                ("fit | per transaction", Unit::Seconds, Some(fit.per_tx)),
                ("fit | growing", Unit::Seconds, shown(fit.growing)),
                ("fit | exponent", Unit::Ratio, shown(fit.exponent)),
                ("fit | exponent, low", Unit::Ratio, exponent.and_then(|k| shown(k.low))),
                ("fit | exponent, high", Unit::Ratio, exponent.and_then(|k| shown(k.high))),
                ("fit | growth at the widest", Unit::Percent, percent(growth.share)),
                (
                    "fit | growth at the widest, low",
                    Unit::Percent,
                    share.and_then(|s| percent(s.low)),
                ),
                (
                    "fit | growth at the widest, high",
                    Unit::Percent,
                    share.and_then(|s| percent(s.high)),
                ),
                ("fit | deviation", Unit::Percent, percent(fit.deviation)),
            ];
            record.add((label, title, None), &figures);
        }
    }
    record.notes.extend(headlines(results).into_iter().filter(|line| *line != record.headline));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn figures_of_widths() {
        let results = fixture::scaling_results();
        insta::assert_snapshot!(headlines(&results).join("\n"));
        let mut record = Record::default();
        add(&results, &mut record);
        let kinds = 2 * 2;
        let count = |metric: &str| record.cells.iter().filter(|c| c.metric == metric).count();
        assert_eq!(count("time per input"), kinds * 7 * 4, "four blocks of seven widths");
        assert_eq!((count("fit | per input"), count("fit | exponent")), (kinds, 2), "two grow");
        assert_eq!(record.samples.len(), 2 * kinds);
    }

    #[test]
    fn ignores_invalid_runs_and_other_plans() {
        let mut results = fixture::scaling_results();
        for run in results.targets.iter_mut().flat_map(|target| &mut target.runs) {
            run.status = crate::results::Status::Void;
        }
        for results in [results, fixture::results()] {
            let mut record = Record::default();
            add(&results, &mut record);
            assert_eq!(record, Record::default());
        }
    }
}
