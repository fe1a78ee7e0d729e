//! Answer of a report in one sentence, and its caveats.

use assay_report::number::{count, percent, rate, ratio, whole_percent};
use assay_report::stats::{median, spread};

use super::series::{self, Series};
use super::{is_full_size, placement, scaling, sync, verdict};
use crate::compare::Comparison;
use crate::machine::ReferenceRate;
use crate::results::{Results, Status, disturbance};

/// Change of the control load above which the machine was not quiet.
const UNREST: f64 = 0.1;

pub(super) fn of(
    results: &Results,
    verdict: Option<&anyhow::Result<Comparison>>,
) -> (String, Vec<String>) {
    let all = series::all(results);
    let Some(first) = all.first() else {
        return ("No run is valid: nothing was measured.".to_owned(), caveats(results));
    };
    let sentences = verdict.map(|verdict| verdict::sentences(results, verdict)).unwrap_or_default();
    let (mut answer, mut caveats_of_plan);
    if sync::is_one(results) {
        let coins = match results.chain.files {
            Some(_) => "with the same coins",
            None => "with the coins of the ledger",
        };
        let tips = format!("{} targets reached the tip {coins}", results.targets.len());
        answer = sync::standing(results).unwrap_or(tips);
        caveats_of_plan = sync::doubts(results);
    } else if scaling::is_there(results) {
        answer = scaling::headlines(results).into_iter().next().unwrap_or_default();
        caveats_of_plan = Vec::new();
    } else {
        answer = rates(results, &all, first);
        caveats_of_plan = size(results);
    }
    // For compared targets the verdict is the answer, if the question is about them.
    if placement::is_there(results) {
        answer = placement::answer(results);
    } else if let Some(sentence) = sentences.into_iter().next() {
        answer = sentence;
    }
    caveats_of_plan.extend(caveats(results));
    (answer, caveats_of_plan)
}

/// Rates of the first target with each pre-relayed share.
fn rates(results: &Results, all: &[Series<'_>], first: &Series<'_>) -> String {
    let of_first = all.iter().filter(|series| series.target == first.target);
    let inputs = |series: &Series<'_>| {
        rate(series.phase("total", |phase| phase.inputs_per_s).unwrap_or_default())
    };
    let relayed = |share: f64| match share {
        share if share <= 0.0 => "nothing relayed before its block".to_owned(),
        share => format!("{} of each block relayed before", whole_percent(share)),
    };
    let parts: Vec<String> = of_first
        .map(|series| format!("{} inputs/s with {}", inputs(series), relayed(series.seen)))
        .collect();
    let mut answer = format!("{} validates {}", first.target, parts.join(", and "));
    let verified = first.phase("total", |phase| phase.signatures_per_s).unwrap_or_default();
    let library = reference_per_s(results, |rates| rates.ecdsa_verify_per_s);
    if let Some(library) = library.filter(|all| *all > 0.0 && first.seen <= 0.0) {
        answer.push_str("; the first is ");
        answer.push_str(&ratio(verified / library));
        answer
            .push_str(" the rate at which the reference library verifies signatures on all cores");
    }
    answer.push('.');
    answer
}

/// Rate of one thread, measured in the same execution, times the cores.
pub(super) fn reference_per_s(
    results: &Results,
    rate: fn(&ReferenceRate) -> Option<f64>,
) -> Option<f64> {
    let rates: Vec<f64> = results.reference_rates.iter().filter_map(rate).collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    (!rates.is_empty()).then_some(mean * results.machine.cores as f64)
}

/// Effects of the chain's size on published figures, and the actual mempool hit rate.
fn size(results: &Results) -> Vec<String> {
    let mut out = Vec::new();
    if results.plan.published.is_some() && !is_full_size(results) {
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

fn caveats(results: &Results) -> Vec<String> {
    let mut out = Vec::new();
    for run in results.void_runs() {
        let reason = run.void_reason.as_deref().unwrap_or("no reason was kept");
        out.push(format!("{} is discarded: {reason}", run.id));
    }
    for run in results.runs() {
        let Some(reason) = &run.disturbance else { continue };
        out.push(match run.status {
            Status::Disturbed => format!("disturbed, left out: {}: {reason}", run.id),
            _ => {
                format!("disturbed, and no undisturbed run of the same work: {}: {reason}", run.id)
            }
        });
    }
    for target in &results.targets {
        for share in target.seen_shares() {
            out.extend(disturbance::unequal_work(&target.name, &target.valid_runs(share)));
        }
    }
    out.extend(unrest(results));
    out.extend(verdict::ran_once(results));
    out
}

/// Caveat for a control load whose time changed much.
fn unrest(results: &Results) -> Option<String> {
    let times: Vec<f64> =
        results.runs().flat_map(|run| &run.control_ns).map(|ns| *ns as f64).collect();
    let spread = spread(&times).filter(|spread| *spread > UNREST)?;
    let (ms, times) = (median(&times) / 1e6, times.len());
    Some(format!(
        "machine noise: the control load took {ms:.1} ms (median of {times}), with a spread of {}: the machine was not quiet, \
         and small differences mean nothing",
        percent(spread)
    ))
}
