//! Changes outside of the branch that the plan names, each measured in syncs of its own against the revision before it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use assay_bench::plan::{Related, StepsPlan};
use assay_lab::builds::Build;
use assay_lab::compare::{CompareOptions, ComparedRow, Source, compare};
use assay_lab::progress::Terminal;
use assay_lab::run::{RunOptions, run as run_plan};

use super::super::put_own_chain;
use super::results::RelatedResult;
use super::{Found, Part, sync_plan};
use crate::cli::RunArguments;
use crate::commands::own_programs;
use crate::commands::pr::target;
use crate::invocation::rerun;

/// Name of the revision before the change.
const BEFORE: &str = "before";
const FOLDER: &str = "related";

/// Measures the changes whose builds exist, both with the change and without it. The others have no figures.
pub(super) fn run(
    plan: &StepsPlan,
    found: &Found<'_>,
    part: Part,
    arguments: &RunArguments,
    out_dir: &Path,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Vec<RelatedResult>> {
    let mut results = absent(plan, found);
    if !matches!(part, Part::All | Part::Related) {
        return Ok(results);
    }
    for result in &mut results {
        let (Some(before), Some(after)) = (&result.before, &result.build) else { continue };
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let measured = syncs(plan, [before, after], &result.name, arguments, out_dir, stop);
        let measured = measured.with_context(|| format!("syncs of {}", result.name))?;
        (result.void_runs, result.syncs) = measured;
    }
    Ok(results)
}

/// All changes, without figures.
pub(super) fn absent(plan: &StepsPlan, found: &Found<'_>) -> Vec<RelatedResult> {
    let of = |related: &Related| {
        let build = |revision: &str| found.build(revision).cloned();
        RelatedResult {
            name: related.name.clone(),
            build: related.revision.as_deref().and_then(build),
            before: related.before.as_deref().and_then(build),
            syncs: None,
            void_runs: 0,
        }
    };
    plan.related.iter().map(of).collect()
}

fn syncs(
    plan: &StepsPlan,
    [before, after]: [&Build; 2],
    name: &str,
    arguments: &RunArguments,
    out_dir: &Path,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<(usize, Option<ComparedRow>)> {
    let sync_plan = sync_plan(plan)?;
    let mut options = RunOptions {
        out_dir: out_dir.join(FOLDER).join(name),
        targets: vec![target(BEFORE, before), target(name, after)],
        resume: arguments.resume,
        rerun: rerun(),
        ..own_programs()?
    };
    put_own_chain(&arguments.own_chain, &mut options)?;
    // All changes share one chain.
    options.chain_dir.get_or_insert_with(|| out_dir.join(FOLDER).join("chain"));
    let results = run_plan(sync_plan, &options, &Terminal::stopped_by(Arc::clone(stop)))?;
    let void_runs = results.void_runs().count();
    let source = [Source { name: name.to_owned(), results }];
    let options = CompareOptions { baseline: Some(BEFORE.to_owned()), ..CompareOptions::default() };
    let mut compared = compare(&source, &options)?.comparisons.into_iter();
    let row = compared.next().and_then(|pair| pair.rows.into_iter().find(|row| row.is_total));
    Ok((void_runs, row))
}
