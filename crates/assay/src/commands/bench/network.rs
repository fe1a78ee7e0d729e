//! `assay bench network` and `assay bench peers`.

use anyhow::ensure;
use assay_lab::mixed::{Cut, MixedOptions, TXS_MAX, run as measure};
use assay_lab::peers::{PeersOptions, run as measure_peers};
use assay_lab::plan::{NodeSpec, TargetSpec};
use assay_lab::progress::Terminal;

use crate::cli::{BenchNetworkArguments, BenchPeersArguments, CutArgument};
use crate::commands::{network_options, own_command, stop_flag};
use crate::invocation::rerun;
use crate::{Outcome, output};

pub(super) fn run(arguments: &BenchNetworkArguments) -> anyhow::Result<Outcome> {
    let targets = match arguments.targets.as_slice() {
        [] => vec![TargetSpec::node(NodeSpec::Assay); NODES],
        some => some.to_vec(),
    };
    let nodes = targets.len();
    ensure!((2..=16).contains(&nodes), "--target: a network has 2 to 16 nodes, not {nodes}");
    let txs = arguments.tx_rate * arguments.time.as_secs_f64();
    ensure!(txs <= TXS_MAX, "--tx-rate, --for: at most {TXS_MAX} transactions, not {txs:.0}");
    let options = MixedOptions {
        out_dir: arguments.out.clone(),
        targets,
        time: arguments.time,
        tx_per_s: arguments.tx_rate,
        block_every: arguments.block_every,
        cut: cut_of(arguments.cut),
        cut_every: arguments.cut_every,
        cut_for: arguments.cut_for,
        degree: usize::from(arguments.degree),
        bits_per_s: arguments.rate * 1e6,
        round_trip: arguments.round_trip,
        seed: arguments.seed,
        node_command: own_command(&["node"])?,
        software: super::software(),
        rerun: rerun(),
    };
    output::print_record(&measure(&options, &Terminal::stopped_by(stop_flag()))?, arguments.json)
}

pub(super) fn peers(arguments: &BenchPeersArguments) -> anyhow::Result<Outcome> {
    let BenchPeersArguments { target, scale, seed, out, .. } = arguments;
    let options = PeersOptions {
        network: network_options(target, *scale, *seed, out)?,
        links: arguments.links,
        bits_per_s: arguments.rate * 1e6,
        round_trip: arguments.round_trip,
        rounds: arguments.rounds,
    };
    let record = measure_peers(&options, &Terminal::stopped_by(stop_flag()))?;
    output::print_record(&record, arguments.json)
}

fn cut_of(argument: CutArgument) -> Option<Cut> {
    match argument {
        CutArgument::Hold => Some(Cut::Hold),
        CutArgument::Break => Some(Cut::Break),
        CutArgument::Both => Some(Cut::Both),
        CutArgument::None => None,
    }
}

/// Default number of nodes.
const NODES: usize = 3;
