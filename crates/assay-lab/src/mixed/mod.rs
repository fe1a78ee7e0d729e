//! A network of several programs under load. It checks that tips and mempools converge and that no node blames another, and
//! measures the latency of transactions and blocks per hop.
//!
//! All nodes are processes on loopback. Every link between two nodes passes through this program, which reads the messages, so
//! latencies, compact blocks and bytes are observed on one clock, for every program in the same way. Links are cut at random;
//! both sides continue and must agree afterwards.

mod converge;
mod faults;
mod figures;
mod load;
mod message;
mod net;
mod outdated;
mod proxy;
mod record;
mod report;
mod topology;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use assay_report::atomic_file;
use assay_report::record::Record;
use assay_report::stats::random::SplitMix64;

use self::load::Load;
use self::net::Net;
use crate::machine::{self, Software};
use crate::plan::TargetSpec;
use crate::progress::{Event, Reporter};
use crate::target::Target;
use crate::wallet::{Base, Kind, Wallet};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Messages wait until the link is restored.
    Hold,
    /// Connections close, and nodes reconnect afterwards.
    Break,
    /// Randomly one of the two.
    Both,
}

#[derive(Debug, Clone)]
pub struct MixedOptions {
    /// Folder of data, logs and results. Created if missing.
    pub out_dir: PathBuf,
    /// Nodes, 2 to 16; a program is listed once per node.
    pub targets: Vec<TargetSpec>,
    pub time: Duration,
    pub tx_per_s: f64,
    /// Mean time between two blocks.
    pub block_every: Duration,
    /// Kind of link cuts; `None` for no cuts.
    pub cut: Option<Cut>,
    /// Mean time from the end of a cut to the next cut.
    pub cut_every: Duration,
    /// Mean duration of a cut.
    pub cut_for: Duration,
    /// Mean number of links per node.
    pub degree: usize,
    /// Rate of each link, bits per second each way.
    pub bits_per_s: f64,
    /// Round-trip time of a link.
    pub round_trip: Duration,
    /// Seed of topology, transactions, blocks and cuts.
    pub seed: u64,
    /// Command that starts Assay's node.
    pub node_command: Vec<OsString>,
    /// The calling program.
    pub software: Software,
    /// Command line that repeats the run.
    pub rerun: String,
}

struct Programs {
    targets: Vec<Target>,
    /// Index of the program of each node.
    of_nodes: Vec<usize>,
}

impl Programs {
    fn detect(options: &MixedOptions) -> anyhow::Result<Self> {
        let mut programs = Self { targets: Vec::new(), of_nodes: Vec::new() };
        let mut specs: Vec<&TargetSpec> = Vec::new();
        for spec in &options.targets {
            let place = specs.iter().position(|known| *known == spec).unwrap_or(specs.len());
            if place == specs.len() {
                let target = Target::detect(spec, &options.node_command, &options.software.assay)?;
                target.check_member()?;
                specs.push(spec);
                programs.targets.push(target);
            }
            programs.of_nodes.push(place);
        }
        ensure!(
            programs.targets.iter().any(Target::makes_blocks),
            "no node of the network can make blocks: name assay or a program of the Bitcoin Core family"
        );
        Ok(programs)
    }
}

/// Maximum number of transactions: their coins come from coinbases of the first subsidy period.
pub const TXS_MAX: f64 = 60_000.0;

/// Runs the experiment.
///
/// # Errors
/// When something cannot be written or started, or a node exits.
pub fn run(options: &MixedOptions, reporter: &dyn Reporter) -> anyhow::Result<Record> {
    let programs = Programs::detect(options)?;
    let logs = options.out_dir.join("logs");
    atomic_file::create_folder(&logs)?;
    let mut random = SplitMix64::new(options.seed);
    let wallet = Wallet::new(Kind::P2wsh, &mut random);
    let txs = options.tx_per_s * options.time.as_secs_f64();
    let coins = txs as usize + COINS_LEFT;
    let base = Base::make(&[(&wallet, coins)], machine::clock::now_s());
    let nodes = programs.of_nodes.len();
    let blocks = base.blocks.len();
    reporter.line(&format!("{nodes} nodes, {blocks} blocks to begin with"));
    reporter.step("nodes start");
    let mut net = Net::start(options, &programs, &base, &mut random)?;
    let base_height = base.blocks.len() as u32;
    let mut load = Load::new(options, reporter, random, wallet, base.coins.concat());
    load.run(&mut net)?;
    // Figures cover the load only.
    let figures = figures::cells(&net, &programs);
    reporter.line("load ended, links whole: waiting until all nodes agree");
    reporter.step("waiting until all nodes agree");
    let convergence = converge::run(&mut net, &mut load, base_height, reporter)?;
    reporter.event(&Event::Finished);
    let record = report::record((options, &programs), &net, &load, figures, convergence);
    net.stop()?;
    record.write(&options.out_dir.join("network.json"))?;
    Ok(record)
}

/// Coins for the transactions after the load.
const COINS_LEFT: usize = 500;
