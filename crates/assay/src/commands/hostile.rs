//! `assay load p2p --hostile`.

use std::net::{IpAddr, ToSocketAddrs};

use anyhow::{Context, ensure};
use assay_lab::hostile::{Attack, HostileOptions, attack, run as run_pairs};
use assay_lab::progress::Terminal;
use clap::ValueEnum as _;

use super::bench::software;
use super::{network_options, stop_flag};
use crate::cli::LoadP2pArguments;
use crate::invocation::rerun;
use crate::{Outcome, output};

pub(crate) fn run(arguments: &LoadP2pArguments, peers: usize) -> anyhow::Result<Outcome> {
    let attacks: Vec<Attack> = match arguments.attacks.as_slice() {
        [] => Attack::value_variants().to_vec(),
        some => some.to_vec(),
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
    let record = attack(found, who, how, (&software(), &rerun()), &stop_flag());
    output::print_record(&record, arguments.json)?;
    Ok(Outcome::Good)
}

fn pairs(
    arguments: &LoadP2pArguments,
    peers: usize,
    attacks: Vec<Attack>,
) -> anyhow::Result<Outcome> {
    let LoadP2pArguments { target, scale, seed, out, .. } = arguments;
    let network = network_options(target, *scale, *seed, out)?;
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
