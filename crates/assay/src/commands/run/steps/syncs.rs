//! The syncs of a plan of steps: the base twice and every step with a build, in one interleaved
//! run. If the base has no build, the first step that has one replaces it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use assay_lab::builds::Build;
use assay_lab::compare::{
    CompareOptions, ComparedRow, Comparison, Floor, PairComparison, Source, compare,
};
use assay_lab::plan::Plan;
use assay_lab::progress::Terminal;
use assay_lab::run::{RunOptions, run as run_plan};

use super::super::put_own_chain;
use super::results::{StepResult, Syncs};
use crate::cli::RunArguments;
use crate::commands::own_programs;
use crate::commands::pr::{BASE, chain_text, target};
use crate::invocation::rerun;

pub(super) fn run(
    sync_plan: Plan,
    base: Option<&Build>,
    steps: &[StepResult],
    arguments: &RunArguments,
    out_dir: &Path,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Syncs> {
    let built = steps.iter().filter_map(|step| Some((&*step.name, step.build.as_ref()?)));
    let mut built = base.map(|base| (BASE, base)).into_iter().chain(built);
    let (first, build) = built.next().context("nothing is built")?;
    let mut targets = vec![target(first, build), target(&again(first), build)];
    targets.extend(built.map(|(name, build)| target(name, build)));
    let mut options = RunOptions {
        out_dir: out_dir.join("macro"),
        targets,
        resume: arguments.resume,
        rerun: rerun(),
        ..own_programs()?
    };
    put_own_chain(&arguments.own_chain, &mut options)?;
    let results = run_plan(sync_plan, &options, &Terminal::stopped_by(Arc::clone(stop)))?;
    let void_runs = results.void_runs().count();
    let chain = chain_text(&results.chain);
    let source = [Source { name: "macro".to_owned(), results }];
    let since_first = against(&source, first, None)?;
    let mut alone = Vec::new();
    for (before, step) in steps.iter().zip(steps.iter().skip(1)) {
        if before.build.is_some() && step.build.is_some() {
            // The comparison of the first target with itself is the floor of these comparisons too.
            let all = against(&source, &before.name, since_first.floor.clone())?;
            alone.extend(all.comparisons.into_iter().filter(|pair| pair.second == step.name));
        }
    }
    Ok(Syncs { void_runs, chain, first: first.to_owned(), since_first, alone })
}

fn against(source: &[Source], baseline: &str, aa: Option<Floor>) -> anyhow::Result<Comparison> {
    let options =
        CompareOptions { baseline: Some(baseline.to_owned()), aa, ..CompareOptions::default() };
    compare(source, &options)
}

impl Syncs {
    /// Adds its figures to each step.
    pub(super) fn assign(&self, steps: &mut [StepResult]) {
        for (number, step) in steps.iter_mut().enumerate() {
            if self.first == BASE {
                step.since_base = total(&self.since_first.comparisons, &step.name);
            }
            // The first step follows the base.
            step.alone = match number {
                0 => step.since_base.clone(),
                _ => total(&self.alone, &step.name),
            };
        }
    }
}

/// Name of the repeated target.
fn again(name: &str) -> String {
    format!("{name}-again")
}

fn total(pairs: &[PairComparison], second: &str) -> Option<ComparedRow> {
    let pair = pairs.iter().find(|pair| pair.second == second)?;
    pair.rows.iter().find(|row| row.is_total).cloned()
}
