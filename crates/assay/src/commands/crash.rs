//! `assay crash`.

use anyhow::ensure;
use assay_bench::plan::PlanText;
use assay_engine::defect;
use assay_lab::crash::{CrashOptions, IndexOptions, run as run_crash};
use assay_lab::plan::{IndexSpec, NodeSpec, TargetSpec};
use assay_lab::progress::Terminal;

use super::bench::software;
use super::own_command;
use super::stop_flag;
use crate::cli::CrashArguments;
use crate::invocation::rerun;
use crate::{Outcome, output};

pub(crate) fn run(arguments: &CrashArguments) -> anyhow::Result<Outcome> {
    let mut plan = PlanText::find(&arguments.plan)?.chain()?;
    plan.chain.scale = arguments.scale;
    plan.chain.seed = arguments.seed;
    let options = CrashOptions {
        out_dir: arguments.out.clone(),
        plan,
        kills: arguments.kills,
        from_peer: arguments.p2p,
        panic_points: arguments.panics.then(|| panic_points(arguments)).transpose()?,
        seed: arguments.seed,
        target: target(arguments)?,
        index: IndexOptions {
            every: arguments.index_every,
            scripts_max: arguments.index_scripts,
            scripts_command: own_command(&["chain", "scripts", "--spent"])?,
        },
        cache_mib: arguments.db_cache.clone(),
        forge_command: own_command(&["chain", "forge"])?,
        node_command: own_command(&["node"])?,
        software: software(),
        // Kill times are in real time and differ from run to run.
        rerun: rerun(),
    };
    output::print_record(&run_crash(&options, &Terminal::stopped_by(stop_flag()))?, arguments.json)
}

/// Names of the panic points of our node.
fn panic_points(arguments: &CrashArguments) -> anyhow::Result<Vec<String>> {
    ensure!(
        defect::HAS_POINTS,
        "--panics: this build has no points to panic at; build it with --features panic-points"
    );
    ensure!(
        arguments.target.node == NodeSpec::Assay,
        "--panics: only our own node has such points"
    );
    Ok(defect::Point::ALL.map(|point| format!("{point:?}")).to_vec())
}

/// The target to kill, with its index if requested.
fn target(arguments: &CrashArguments) -> anyhow::Result<TargetSpec> {
    let mut target = arguments.target.clone();
    if arguments.index {
        ensure!(target.node == NodeSpec::Assay, "--index: only our own node has an index of ours");
        target.index = Some(IndexSpec::Own);
    }
    ensure!(
        !arguments.p2p || target.node == NodeSpec::Assay,
        "--p2p: only our own node is killed while it syncs from a peer"
    );
    let is_own = matches!(target.index, None | Some(IndexSpec::Own));
    ensure!(is_own, "--target {target}: an index that is a program of its own is not killed");
    Ok(target)
}
