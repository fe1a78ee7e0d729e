//! Summary of a report: the answer to the plan's question with its figures and caveats.

use assay_report::number::{count, percent, rate, ratio, seconds, whole_percent};
use assay_report::{Figure, Front};

use super::series::{self, Series};
use super::{charts, index, own_chain, placement, prose, scaling, sync, verdict};
use crate::compare::{CompareError, Comparison};
use crate::results::Results;

/// Summary of a report.
pub(super) fn of(results: &Results, verdict: Option<&Result<Comparison, CompareError>>) -> Front {
    let all = series::all(results);
    let Some(first) = all.first() else {
        return Front {
            answer: "No run is valid: nothing was measured.".to_owned(),
            caveats: prose::caveats(results),
            ..Front::default()
        };
    };
    let sentences = verdict.map(|verdict| verdict::sentences(results, verdict)).unwrap_or_default();
    let mut front = if sync::is_one(results) {
        of_sync(results)
    } else if scaling::is_there(results) {
        Front {
            answer: scaling::headlines(results).into_iter().next().unwrap_or_default(),
            chart: scaling::charts(results).into_iter().next(),
            ..Front::default()
        }
    } else {
        of_blocks(results, &all, first)
    };
    // For compared targets the verdict is the answer, if the question is about them.
    if placement::is_there(results) {
        front.answer = placement::answer(results);
    } else if let Some(sentence) = sentences.into_iter().next() {
        front.answer = sentence;
    }
    front.caveats.extend(prose::caveats(results));
    front
}

fn of_sync(results: &Results) -> Front {
    let coins = match own_chain::files(results) {
        Some(_) => "with the same coins",
        None => "with the coins of the ledger",
    };
    let tips = format!("{} targets reached the tip {coins}", results.targets.len());
    Front {
        answer: sync::standing(results).unwrap_or(tips),
        figures: sync_figures(results),
        chart: sync::charts(results).into_iter().next(),
        caveats: sync::doubts(results),
    }
}

/// Times from start to tip, the shortest first; at most six.
fn sync_figures(results: &Results) -> Vec<Figure> {
    let figure = |(name, time_s): (String, f64)| Figure {
        value: seconds(time_s),
        unit: "s".to_owned(),
        of: format!("{name}, from start to tip"),
    };
    sync::ends(results).into_iter().take(6).map(figure).collect()
}

fn of_blocks(results: &Results, all: &[Series<'_>], first: &Series<'_>) -> Front {
    let of_first: Vec<&Series<'_>> =
        all.iter().filter(|series| series.target == first.target).collect();
    let inputs = |series: &Series<'_>| {
        rate(series.phase("total", |phase| phase.inputs_per_s).unwrap_or_default())
    };
    let relayed = |share: f64| match share {
        share if share <= 0.0 => "nothing relayed before its block".to_owned(),
        share => format!("{} of each block relayed before", whole_percent(share)),
    };
    let parts: Vec<String> = of_first
        .iter()
        .map(|series| format!("{} inputs/s with {}", inputs(series), relayed(series.seen)))
        .collect();
    let mut answer = format!("{} validates {}", first.target, parts.join(", and "));
    let verified = first.phase("total", |phase| phase.signatures_per_s).unwrap_or_default();
    let library = prose::reference_per_s(results).filter(|all| *all > 0.0 && first.seen <= 0.0);
    if let Some(library) = library {
        let times = ratio(verified / library);
        answer.push_str("; the first is ");
        answer.push_str(&times);
        answer
            .push_str(" the rate at which the reference library verifies signatures on all cores");
    }
    answer.push('.');
    Front {
        answer,
        figures: figures(results, all, first),
        chart: charts::inputs_per_phase(results),
        caveats: size(results),
    }
}

/// At most six figures: both shares, bytes, the index, and the chain with distinct keys.
fn figures(results: &Results, all: &[Series<'_>], first: &Series<'_>) -> Vec<Figure> {
    let figure =
        |value: String, unit: &str, of: String| Figure { value, unit: unit.to_owned(), of };
    let mut out = Vec::new();
    for series in all.iter().take(4) {
        let value = series.phase("total", |phase| phase.inputs_per_s).unwrap_or_default();
        out.push(figure(rate(value), "inputs/s", series.label.clone()));
    }
    let bytes = first.phase("total", |phase| phase.mib_per_s).unwrap_or_default();
    out.push(figure(rate(bytes), "MiB/s", first.label.clone()));
    if let Some(pair) = index::with_node_inputs_per_s(&first.runs, "total") {
        out.push(figure(
            rate(pair),
            "inputs/s",
            format!("node and index together, {} pre-relayed", whole_percent(first.seen)),
        ));
    } else if let Some(library) = prose::reference_per_s(results) {
        out.push(figure(
            rate(library),
            "signatures/s",
            "reference library on all cores".to_owned(),
        ));
    }
    out
}

/// Effects of the chain's size on published figures, and the actual mempool hit rate.
fn size(results: &Results) -> Vec<String> {
    let mut out = Vec::new();
    if results.plan.published.is_some() && !super::tables::is_full_size(results) {
        out.push(format!(
            "the chain is of scale {} ({} blocks, {} inputs): published figures are of scale 1, so no ratio to them is printed",
            results.chain.scale,
            count(u64::from(results.chain.height)),
            count(results.chain.inputs)
        ));
    }
    for series in series::all(results) {
        let measured = series.phase("total", |phase| phase.seen_measured).unwrap_or_default();
        if (measured - series.seen).abs() > 0.02 {
            out.push(format!(
                "{}: {} were in the mempool in fact",
                series.label,
                percent(measured)
            ));
        }
    }
    out
}
