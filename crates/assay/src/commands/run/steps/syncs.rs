//! The syncs of a plan of steps: base, base again and every step that is built, all in one interleaved run.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use assay_bench::plan::StepsPlan;
use assay_lab::builds::Build;
use assay_lab::compare::{
    CompareOptions, ComparedRow, Comparison, Floor, PairComparison, Source, compare,
};
use assay_lab::plan::Plan;
use assay_lab::progress::Terminal;
use assay_lab::run::{RunOptions, run as run_plan};
use serde::Serialize;

use super::{StepResult, rerun};
use crate::cli::RunArguments;
use crate::commands::pr::{AGAIN, BASE, own_programs, target};

/// What the syncs say.
#[derive(Serialize)]
pub(super) struct Syncs {
    /// Runs whose end state is not that of the chain.
    pub(super) void_runs: usize,
    /// Blocks, inputs and bytes of the chain.
    pub(super) chain: String,
    /// Everything against the base.
    pub(super) since_base: Comparison,
    /// Each step against the one before it, where both are built.
    pub(super) alone: Vec<PairComparison>,
}

/// Runs them.
pub(super) fn run(
    plan: &StepsPlan,
    mut sync_plan: Plan,
    base: &Build,
    steps: &[StepResult],
    arguments: &RunArguments,
    out_dir: &Path,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Syncs> {
    sync_plan.runs.repeat = plan.pairs;
    let sync_plan = sync_plan.checked("command line")?;
    let mut targets = vec![target(BASE, base), target(AGAIN, base)];
    targets.extend(steps.iter().filter_map(|step| Some(target(&step.name, step.build.as_ref()?))));
    let options = RunOptions {
        out_dir: out_dir.join("macro"),
        chain_dir: arguments.chain.clone(),
        scale: arguments.scale,
        targets,
        resume: arguments.resume,
        rerun: rerun(arguments),
        ..own_programs()?
    };
    let results = run_plan(sync_plan, &options, &Terminal::stopped_by(Arc::clone(stop)))?;
    let void_runs = results.void_runs().count();
    let chain = &results.chain;
    let chain = format!(
        "{}, seed {}, scale {}: {} blocks, {} inputs, {} bytes",
        chain.recipe, chain.seed, chain.scale, chain.height, chain.inputs, chain.bytes
    );
    let source = [Source { name: "macro".to_owned(), results }];
    let since_base = against(&source, BASE, None)?;
    let mut alone = Vec::new();
    for (before, step) in steps.iter().zip(steps.iter().skip(1)) {
        if before.build.is_some() && step.build.is_some() {
            // The base against itself says what these have to exceed, too.
            let all = against(&source, &before.name, since_base.floor.clone())?;
            alone.extend(all.comparisons.into_iter().filter(|pair| pair.second == step.name));
        }
    }
    Ok(Syncs { void_runs, chain, since_base, alone })
}

fn against(source: &[Source], baseline: &str, aa: Option<Floor>) -> anyhow::Result<Comparison> {
    let options =
        CompareOptions { baseline: Some(baseline.to_owned()), aa, ..CompareOptions::default() };
    Ok(compare(source, &options)?)
}

impl Syncs {
    /// Gives each step its figures.
    pub(super) fn assign(&self, steps: &mut [StepResult]) {
        for (number, step) in steps.iter_mut().enumerate() {
            step.since_base = total(&self.since_base.comparisons, &step.name);
            // The first one follows the base.
            step.alone = match number {
                0 => step.since_base.clone(),
                _ => total(&self.alone, &step.name),
            };
        }
    }

    /// The base against itself.
    pub(super) fn floor(&self) -> Option<ComparedRow> {
        total(&self.since_base.comparisons, AGAIN)
    }
}

fn total(pairs: &[PairComparison], second: &str) -> Option<ComparedRow> {
    let pair = pairs.iter().find(|pair| pair.second == second)?;
    pair.rows.iter().find(|row| row.is_total).cloned()
}
