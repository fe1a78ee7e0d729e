//! Time against the width of transactions: tables, charts, text, and `scaling.csv`.

mod fit;

use std::fmt::Write;

use assay_report::csv_field;
use assay_report::number::{count, percent, ratio};
use assay_report::stats::paired::Interval;
use assay_report::stats::{median, rate, spread};
use assay_report::{Chart, Line, LineChart, Look, Table};

use super::NONE;
use super::series::{self, Series};
use crate::plan::ScalingPlan;
use crate::report::scaling::fit::{AtWidth, Growth};
use crate::results::Results;

/// Points of a fitted curve.
const CURVE_POINTS: u32 = 48;

/// One kind of transaction in one series of runs.
struct Kind<'a> {
    plan: &'a ScalingPlan,
    widths: Vec<AtWidth>,
    growth: Option<Growth>,
}

/// True if the plan defines widths.
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

/// Introduction and summary.
pub(super) fn prose(results: &Results) -> Vec<String> {
    let mut out = vec![
        "Every block of these phases spends the same number of inputs; the phases differ in the kind \
         of input and in how many of them one transaction has. Time is service time of a block over \
         its inputs. It is described as a + c/n + b·n^k for transactions of n inputs: what every \
         input costs, what every transaction costs, and what grows with the transaction. A transaction \
         then takes n times that: hashing the whole transaction for each input is k = 1, or n² in all; \
         hashes that all inputs share have no growing part. The fit is by least squares of relative \
         deviations, k on a grid from 0.25 to 3; intervals are 95 %, by bootstrap over runs and over \
         blocks within them. They hold the noise of the measurement, not an error of the description."
            .to_owned(),
    ];
    out.extend(headlines(results).into_iter().map(|line| format!("- {line}")));
    out
}

/// A line per target and kind.
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

/// Time per input by width for each target, then all fits.
pub(super) fn tables(results: &Results) -> Vec<Table> {
    let mut out = by_width(results);
    let head = [
        "Target",
        "Inputs spend",
        "a (µs per input)",
        "c (µs per transaction)",
        "b (µs)",
        "k",
        "95 % of k",
        "growth at widest",
        "95 % of it",
        "fit is off by",
    ];
    let mut fits = Table::new("Fits of a + c/n + b·n^k to the time per input", &head, 2);
    for series in series::all(results) {
        for kind in kinds(results, &series) {
            let Some(growth) = &kind.growth else { continue };
            let fit = &growth.fit;
            let is_shown = growth.is_shown();
            let if_shown = |text: String| if is_shown { text } else { NONE.to_owned() };
            let interval = |interval: Option<Interval>, show: fn(f64) -> String| {
                interval.map_or_else(
                    || NONE.to_owned(),
                    |interval| format!("{} to {}", show(interval.low), show(interval.high)),
                )
            };
            fits.push([
                series.label.clone(),
                kind.plan.title.clone(),
                micro(fit.per_input),
                micro(fit.per_tx),
                if_shown(micro(fit.growing)),
                if_shown(format!("{:.2}", fit.exponent)),
                if_shown(interval(growth.exponent_interval, |k| format!("{k:.2}"))),
                percent(growth.share),
                interval(growth.share_interval, percent),
                percent(fit.deviation),
            ]);
        }
    }
    if !fits.rows.is_empty() {
        out.push(fits);
    }
    out
}

/// One table per target and pre-relayed share, also for the terminal.
pub(super) fn by_width(results: &Results) -> Vec<Table> {
    let mut out = Vec::new();
    for series in series::all(results) {
        let kinds = kinds(results, &series);
        let mut widths: Vec<u32> =
            kinds.iter().flat_map(|kind| &kind.widths).map(|at| at.width).collect();
        widths.sort_unstable();
        widths.dedup();
        if widths.is_empty() {
            continue;
        }
        let mut head = vec!["Inputs per transaction".to_owned()];
        for kind in &kinds {
            head.extend([kind.plan.title.clone(), "spread".to_owned(), "fit".to_owned()]);
        }
        let caption = format!("{}: µs per input", series.label);
        let mut table = Table { caption, head, rows: Vec::new(), word_columns: 0 };
        for width in widths {
            let mut row = vec![count(width.into())];
            for kind in &kinds {
                let at = kind.widths.iter().find(|at| at.width == width);
                let times = at.map(AtWidth::all);
                let show = |value: Option<f64>, show: fn(f64) -> String| {
                    value.map_or_else(|| NONE.to_owned(), show)
                };
                row.push(show(times.as_deref().map(median), micro));
                row.push(show(times.as_deref().and_then(spread), percent));
                let fitted = kind.growth.as_ref().filter(|_| at.is_some());
                row.push(show(fitted.map(|growth| growth.fit.at(width.into())), micro));
            }
            table.rows.push(row);
        }
        out.push(table);
    }
    out
}

/// One chart per target; with several targets also one per kind with the targets side by side.
pub(super) fn charts(results: &Results) -> Vec<Chart> {
    let all = series::all(results);
    let taken: Vec<(&Series<'_>, Vec<Kind<'_>>)> =
        all.iter().map(|series| (series, kinds(results, series))).collect();
    let mut out = Vec::new();
    for (series, kinds) in &taken {
        let lines = kinds.iter().enumerate();
        let lines = lines.flat_map(|(number, kind)| lines_of(kind, &kind.plan.title, number));
        out.extend(draw(&series.label, lines.collect()));
    }
    if taken.len() > 1 {
        for plan in &results.plan.scaling {
            let of_plan = taken.iter().enumerate().filter_map(|(number, (series, kinds))| {
                let kind = kinds.iter().find(|kind| kind.plan.series == plan.series)?;
                Some(lines_of(kind, &series.label, number))
            });
            out.extend(draw(&plan.title, of_plan.flatten().collect()));
        }
    }
    out
}

/// Measured points, and the fitted curve if there is growth.
fn lines_of(kind: &Kind<'_>, label: &str, colour: usize) -> Vec<Line> {
    let point = |at: &AtWidth| (f64::from(at.width), 1e6 * median(&at.all()));
    let look = |dashed| Look { colour: Some(colour), dashed };
    let mut lines = vec![Line {
        label: label.to_owned(),
        look: look(false),
        pieces: vec![kind.widths.iter().map(point).collect()],
        points: true,
    }];
    if let Some(growth) = kind.growth.as_ref().filter(|growth| growth.is_shown()) {
        let step = f64::from(growth.widest).powf(1.0 / f64::from(CURVE_POINTS));
        let width = |at: u32| step.powf(f64::from(at));
        let curve = (0..=CURVE_POINTS).map(|at| (width(at), 1e6 * growth.fit.at(width(at))));
        lines.push(Line {
            label: format!("{label}, fit"),
            look: look(true),
            pieces: vec![curve.collect()],
            points: false,
        });
    }
    lines
}

fn draw(title: &str, series: Vec<Line>) -> Option<Chart> {
    let chart = LineChart {
        title: format!("Time per input, {title}"),
        x_label: "inputs per transaction".to_owned(),
        y_label: "µs per input".to_owned(),
        whole_x: false,
        logarithmic_x: true,
        logarithmic: true,
        tight_y: false,
        series,
        background: Vec::new(),
        bands: Vec::new(),
    };
    chart.draw()
}

const HEAD: &str = "target,seen_requested,series,width,runs,blocks,us_per_input,us_per_input_min,\
us_per_input_max,us_per_input_fit,us_per_tx\n";

/// `scaling.csv`: one row per target, pre-relayed share, kind and width.
pub(super) fn csv(results: &Results) -> String {
    let mut out = HEAD.to_owned();
    for target in &results.targets {
        for seen in target.seen_shares() {
            let all = series::all(results);
            let label = |series: &&Series<'_>| {
                series.target == target.name && series.seen.to_bits() == seen.to_bits()
            };
            let Some(series) = all.iter().find(label) else { continue };
            for kind in kinds(results, series) {
                for at in &kind.widths {
                    let times = at.all();
                    let middle = 1e6 * median(&times);
                    let pick = |choose: fn(f64, f64) -> f64| {
                        1e6 * times.iter().copied().reduce(choose).unwrap_or_default()
                    };
                    let width = f64::from(at.width);
                    let fit = kind.growth.as_ref().map(|growth| 1e6 * growth.fit.at(width));
                    // Writing to a string cannot fail.
                    let _ = writeln!(
                        out,
                        "{},{seen},{},{},{},{},{middle:.4},{:.4},{:.4},{},{:.4}",
                        csv_field(&target.name),
                        csv_field(&kind.plan.series),
                        at.width,
                        at.runs.iter().filter(|run| !run.is_empty()).count(),
                        times.len(),
                        pick(f64::min),
                        pick(f64::max),
                        fit.map_or_else(String::new, |fit| format!("{fit:.4}")),
                        middle * width,
                    );
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{page, terminal};
    use crate::results::fixture;

    #[test]
    fn section_of_widths() {
        let results = fixture::scaling_results();
        let said = headlines(&results);
        insta::assert_snapshot!(said.join("\n"));
        insta::assert_snapshot!(csv(&results));
        insta::assert_snapshot!(terminal(&results));
        assert_eq!(charts(&results).len(), 2 + 2, "one for each target, one for each kind");
        let page = page(&results);
        let ids: Vec<&str> = page.sections.iter().map(|section| section.id.as_str()).collect();
        assert_eq!(ids[..2], ["summary", "scaling"]);
        assert!(page.html().contains("inputs per transaction"));
    }

    #[test]
    fn plans_without_widths_have_no_such_section() {
        let results = fixture::results();
        assert!(!is_there(&results) && headlines(&results).is_empty());
        assert!(tables(&results).is_empty() && charts(&results).is_empty());
    }

    #[test]
    fn ignores_invalid_runs() {
        let mut results = fixture::scaling_results();
        for run in results.targets.iter_mut().flat_map(|target| &mut target.runs) {
            run.status = crate::results::Status::Void;
        }
        assert!(headlines(&results).is_empty() && tables(&results).is_empty());
        assert_eq!(csv(&results), HEAD);
    }
}
