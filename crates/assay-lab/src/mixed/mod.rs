//! A network of several programs under load: do their tips and mempools agree in the end, does nobody blame anybody, and how fast do
//! transactions and blocks get from one node to the next.
//!
//! All nodes are processes on loopback. Every link between two of them leads through this program, which reads the messages, so
//! latencies, compact blocks and bytes are seen from outside on one clock, for every program in the same way. Links are cut at random,
//! so that both sides go on and have to agree afterwards.

mod converge;
mod faults;
mod figures;
mod load;
mod message;
mod net;
mod outdated;
mod record;
mod report;
mod tap;
mod topology;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use assay_report::atomic_file;
use assay_report::stats::random::SplitMix64;

use self::load::Load;
use self::net::Net;
use crate::machine;
use crate::network::NetworkError;
use crate::plan::TargetSpec;
use crate::progress::{Event, Reporter};
use crate::purse::{Base, Kind, Purse};
use crate::target::Target;

pub use self::converge::{Convergence, Difference, Leftover, Rejection};
pub use self::faults::{Departure, Fault};
pub use self::figures::{CompactFigures, Latency, ProgramFigures, RatioOf};
pub use self::outdated::Outdated;
pub use self::report::{LoadFigures, MixedReport, NodeEntry};

/// How links are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Messages wait until the link is mended.
    Hold,
    /// Connections end, and nodes connect again afterwards.
    Break,
    /// Either, at random.
    Both,
}

/// How to run it.
#[derive(Debug, Clone)]
pub struct MixedOptions {
    /// Where data, logs and results go. Created if missing.
    pub out_dir: PathBuf,
    /// The nodes, 2 to 16; a program is named as often as it has nodes.
    pub targets: Vec<TargetSpec>,
    /// How long the load lasts.
    pub time: Duration,
    pub tx_per_s: f64,
    /// Mean time between two blocks.
    pub block_every: Duration,
    /// How links are cut; `None` leaves them alone.
    pub cut: Option<Cut>,
    /// Mean time from one cut's end to the next cut.
    pub cut_every: Duration,
    /// Mean time that a cut lasts.
    pub cut_for: Duration,
    /// Links of a node, on average.
    pub degree: usize,
    /// Rate of each link, bits per second each way.
    pub bits_per_s: f64,
    /// From one end of a link to the other and back.
    pub round_trip: Duration,
    /// Seed of topology, transactions, blocks and cuts.
    pub seed: u64,
    /// How to call our node.
    pub node_command: Vec<OsString>,
    /// Version of the program that calls.
    pub assay_version: String,
    /// The command line that does it again.
    pub rerun: String,
}

struct Programs {
    targets: Vec<Target>,
    /// For each node the place of its program.
    of_nodes: Vec<usize>,
}

impl Programs {
    fn detect(options: &MixedOptions) -> Result<Self, NetworkError> {
        let mut programs = Self { targets: Vec::new(), of_nodes: Vec::new() };
        let mut specs: Vec<&TargetSpec> = Vec::new();
        for spec in &options.targets {
            let place = specs.iter().position(|known| *known == spec).unwrap_or(specs.len());
            if place == specs.len() {
                let target = Target::detect(spec, &options.node_command, &options.assay_version)?;
                target.check_member()?;
                specs.push(spec);
                programs.targets.push(target);
            }
            programs.of_nodes.push(place);
        }
        if !programs.targets.iter().any(Target::makes_blocks) {
            return Err(NetworkError::NoBlocks);
        }
        Ok(programs)
    }
}

/// Most transactions of a run: their coins are made before it, of coinbases of the first subsidy.
pub const TXS_MAX: f64 = 60_000.0;

/// Runs the network.
///
/// # Errors
/// When something cannot be written or started, or a node ends by itself.
pub fn run(options: &MixedOptions, reporter: &dyn Reporter) -> Result<MixedReport, NetworkError> {
    let programs = Programs::detect(options)?;
    let logs = options.out_dir.join("logs");
    atomic_file::create_folder(&logs)?;
    let mut random = SplitMix64::new(options.seed);
    let purse = Purse::new(Kind::P2wsh, &mut random);
    let txs = options.tx_per_s * options.time.as_secs_f64();
    let coins = txs as usize + COINS_LEFT;
    let base = Base::make(&[(&purse, coins)], machine::clock::now_s());
    let nodes = programs.of_nodes.len();
    reporter.event(&Event::NetworkStarts { nodes, blocks: base.blocks.len() });
    let mut net = Net::start(options, &programs, &base, &mut random)?;
    let base_height = base.blocks.len() as u32;
    let mut load = Load::new(options, reporter, random, purse, base.coins.concat());
    load.run(&mut net)?;
    // What is measured belongs to the load alone.
    let figures = figures::of(&net, &programs);
    reporter.event(&Event::NetworkConverges);
    let convergence = converge::run(&mut net, &mut load, base_height, reporter)?;
    reporter.event(&Event::NetworkFinished);
    let mut report = MixedReport::blank(options, &machine::record(&options.out_dir));
    report.fill(&net, &programs, &load, figures);
    report.convergence = convergence;
    report.faults = faults::find(&net);
    net.stop()?;
    report.write(&options.out_dir)?;
    Ok(report)
}

/// Coins for the transactions after the load.
const COINS_LEFT: usize = 500;
