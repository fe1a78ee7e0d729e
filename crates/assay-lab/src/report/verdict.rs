//! Verdict of `assay compare` in the report of a plan with interleaved targets.

use crate::compare::{CompareOptions, Comparison, Source, compare};
use crate::results::Results;

/// Comparison of all targets on the first chain with the first of them; `None` for a single target, or a single run each.
pub(super) fn of(results: &Results) -> Option<anyhow::Result<Comparison>> {
    if !has_rounds(results) {
        return None;
    }
    let mut results = results.clone();
    let is_distinct = results.targets.first()?.distinct_keys;
    results.targets.retain(|target| target.distinct_keys == is_distinct);
    if results.targets.len() < 2 {
        return None;
    }
    let source = Source { name: results.plan.name.clone(), results };
    Some(compare(&[source], &CompareOptions::default()))
}

fn has_rounds(results: &Results) -> bool {
    results.runs().any(|run| run.repeat > 0)
}

/// Caveat for targets with a single run each.
pub(super) fn ran_once(results: &Results) -> Option<String> {
    (results.targets.len() > 1 && !has_rounds(results)).then(|| {
        "each target ran once: differences between them may be the machine's; --repeat 5 interleaves five rounds".to_owned()
    })
}

pub(super) fn sentences(results: &Results, verdict: &anyhow::Result<Comparison>) -> Vec<String> {
    // A sync pre-relays nothing.
    let is_sync = results.plan.feed.by.is_sync();
    let shown = |line: String| if is_sync { line.replace(" 0 % pre-relayed:", "") } else { line };
    match verdict {
        Ok(comparison) => comparison.verdicts().into_iter().map(shown).collect(),
        Err(error) => vec![format!("no verdict: {error}")],
    }
}
