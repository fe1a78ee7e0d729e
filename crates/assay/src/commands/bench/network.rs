//! `assay bench network`.

use anyhow::ensure;
use assay_lab::mixed::{Cut, MixedOptions, TXS_MAX, run as measure};
use assay_lab::plan::{NodeSpec, TargetSpec};
use assay_lab::progress::Terminal;
use clap::ValueEnum as _;

use crate::cli::{BenchNetworkArguments, CutArgument};
use crate::commands::own_command;
use crate::commands::stop_flag;
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
        rerun: rerun(arguments),
    };
    let record = measure(&options, &Terminal::stopped_by(stop_flag()))?;
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

fn rerun(arguments: &BenchNetworkArguments) -> String {
    let targets = arguments.targets.iter().map(|target| format!(" --target {target}"));
    let seconds = |time: std::time::Duration| format!("{}ms", time.as_millis());
    let cut = arguments.cut.to_possible_value();
    let cut = cut.as_ref().map_or("both", |value| value.get_name());
    format!(
        "assay bench network{} --for {} --tx-rate {} --block-every {} --cut {cut} --cut-every {} --cut-for {} --degree {} --rate {} --round-trip {} --seed {}",
        targets.collect::<String>(),
        seconds(arguments.time),
        arguments.tx_rate,
        seconds(arguments.block_every),
        seconds(arguments.cut_every),
        seconds(arguments.cut_for),
        arguments.degree,
        arguments.rate,
        seconds(arguments.round_trip),
        arguments.seed,
    )
}

/// Default number of nodes.
const NODES: usize = 3;
