//! `assay bench peers`.

use assay_lab::network::NetworkOptions;
use assay_lab::peers::{PeersOptions, run as measure};
use assay_lab::plan::Plan;
use assay_lab::progress::Terminal;

use crate::cli::BenchPeersArguments;
use crate::commands::own_command;
use crate::commands::stop_flag;
use crate::{Outcome, output};

pub(super) fn run(arguments: &BenchPeersArguments) -> anyhow::Result<Outcome> {
    let mut plan = Plan::builtin("bitcoin-scaling")?;
    plan.chain.scale = arguments.scale;
    plan.chain.seed = arguments.seed;
    let options = PeersOptions {
        network: NetworkOptions {
            out_dir: arguments.out.clone(),
            plan,
            target: arguments.target.clone(),
            forge_command: own_command(&["chain", "forge"])?,
            node_command: own_command(&["node"])?,
            software: super::software(),
            rerun: rerun(arguments),
        },
        links: arguments.links,
        bits_per_s: arguments.rate * 1e6,
        round_trip: arguments.round_trip,
        rounds: arguments.rounds,
    };
    let record = measure(&options, &Terminal::stopped_by(stop_flag()))?;
    output::print_record(&record, arguments.json)
}

fn rerun(arguments: &BenchPeersArguments) -> String {
    let BenchPeersArguments { target, links, rate, round_trip, rounds, scale, seed, .. } =
        arguments;
    format!(
        "assay bench peers --target {target} --links {links} --rate {rate} --round-trip {}ms --rounds {rounds} --scale {scale} --seed {seed}",
        round_trip.as_secs_f64() * 1000.0
    )
}
