//! `assay load p2p --hostile`.

use std::net::{IpAddr, ToSocketAddrs};

use anyhow::{Context, ensure};
use assay_lab::hostile::{Attack, HostileOptions, attack, run as run_pairs};
use assay_lab::network::NetworkOptions;
use assay_lab::plan::Plan;
use assay_lab::progress::Terminal;

use super::bench::software;
use super::own_command;
use super::stop_flag;
use crate::cli::{LoadP2pArguments, PeerAttackArgument};
use crate::{Outcome, output};

pub(crate) fn run(arguments: &LoadP2pArguments, peers: usize) -> anyhow::Result<Outcome> {
    let attacks: Vec<Attack> = match arguments.attacks.as_slice() {
        [] => Attack::ALL.to_vec(),
        some => some.iter().copied().map(attack_of).collect(),
    };
    match &arguments.address {
        Some(address) => attack_node(arguments, address, (peers, &attacks)),
        None => pairs(arguments, peers, attacks),
    }
}

fn attack_node(
    arguments: &LoadP2pArguments,
    address: &str,
    who: (usize, &[Attack]),
) -> anyhow::Result<Outcome> {
    let found =
        address.to_socket_addrs().with_context(|| format!("cannot resolve {address}"))?.next();
    let found = found.with_context(|| format!("{address} has no address"))?;
    ensure!(
        is_private(found.ip()),
        "{found}: hostile peers attack nodes on this machine or a private network only"
    );
    let how = (arguments.time, arguments.seed);
    let again = rerun(arguments, who.0);
    let record = attack(found, who, how, (&software(), &again), &stop_flag());
    output::print_record(&record, arguments.json)?;
    Ok(Outcome::Good)
}

fn pairs(
    arguments: &LoadP2pArguments,
    peers: usize,
    attacks: Vec<Attack>,
) -> anyhow::Result<Outcome> {
    let mut plan = Plan::builtin("bitcoin-scaling")?;
    plan.chain.scale = arguments.scale;
    plan.chain.seed = arguments.seed;
    let network = NetworkOptions {
        out_dir: arguments.out.clone(),
        plan,
        target: arguments.target.clone(),
        forge_command: own_command(&["chain", "forge"])?,
        node_command: own_command(&["node"])?,
        software: software(),
        rerun: rerun(arguments, peers),
    };
    let options = HostileOptions {
        network,
        peers,
        attacks,
        pairs: arguments.pairs,
        rounds: arguments.rounds,
        seed: arguments.seed,
    };
    let record = run_pairs(&options, &Terminal::stopped_by(stop_flag()))?;
    output::print_record(&record, arguments.json)
}

/// True for addresses that belong to no other user: loopback, RFC 1918 and RFC 4193.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    }
}

fn rerun(arguments: &LoadP2pArguments, peers: usize) -> String {
    use clap::ValueEnum as _;

    let LoadP2pArguments { target, pairs, rounds, scale, seed, time, .. } = arguments;
    let names: Vec<String> = arguments
        .attacks
        .iter()
        .filter_map(|attack| Some(attack.to_possible_value()?.get_name().to_owned()))
        .collect();
    let attacks =
        if names.is_empty() { String::new() } else { format!(" --attacks {}", names.join(",")) };
    let node = match &arguments.address {
        Some(address) => format!("{address} --for {}ms", time.as_millis()),
        None => format!("--target {target} --pairs {pairs} --rounds {rounds} --scale {scale}"),
    };
    format!("assay load p2p --hostile {peers}{attacks} {node} --seed {seed}")
}

fn attack_of(argument: PeerAttackArgument) -> Attack {
    match argument {
        PeerAttackArgument::Flood => Attack::Flood,
        PeerAttackArgument::SlowLoris => Attack::SlowLoris,
        PeerAttackArgument::HalfOpen => Attack::HalfOpen,
        PeerAttackArgument::Churn => Attack::Churn,
        PeerAttackArgument::Deaf => Attack::Deaf,
        PeerAttackArgument::Headers => Attack::Headers,
        PeerAttackArgument::Blocks => Attack::Blocks,
        PeerAttackArgument::Inventories => Attack::Inventories,
        PeerAttackArgument::Requests => Attack::Requests,
        PeerAttackArgument::Compact => Attack::Compact,
        PeerAttackArgument::Orphans => Attack::Orphans,
        PeerAttackArgument::Addresses => Attack::Addresses,
        PeerAttackArgument::V2Garbage => Attack::V2Garbage,
        PeerAttackArgument::Withhold => Attack::Withhold,
        PeerAttackArgument::Garbage => Attack::Garbage,
    }
}
