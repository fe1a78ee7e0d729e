//! Hostile peers, and what they cost the honest ones.
//!
//! A run has five nodes: two that have the chain, the target, and two that know the target alone. The target syncs from the
//! first two; then these get new transactions and blocks, and what is measured is when the last two have them. Every pair of
//! runs has one without and one with hostile peers, which connect to the target before it begins to sync. Nodes, hostile
//! peers and this program share the machine's cores, so what the hostile peers themselves need counts against the target.

mod attack;
mod node;
mod report;
mod swarm;
mod wire;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use assay_report::atomic_file::{self, WriteError};
use assay_report::stats::median;

use self::attack::Tip;
use self::node::{ASK_PAUSE, Launcher, Node, PeerInfo};
use self::swarm::Swarm;
use self::wire::GENESIS;
use crate::chain::{Chain, ChainError};
use crate::feed::compose_block;
use crate::forge::{ForgeError, ForgeJob};
use crate::machine;
use crate::plan::{NodeSpec, Plan, TargetSpec};
use crate::process::ProcessError;
use crate::process::rpc::{RpcError, read_result};
use crate::progress::{Event, Reporter};
use crate::run::copy_folder;
use crate::target::{Target, TargetError};

pub use self::attack::Attack;
pub use self::report::{HostileReport, RunReport, attack_table};
pub use self::swarm::AttackReport;

/// Coinbases pay to a witness script that is always true, so that spending them takes no signature: `OP_0` and the SHA-256
/// of `OP_1` (BIP141).
const ANYONE: &str = "00204ae81572f06e1b88fd5ced7a1a000945432e83e1551e6f721ee9c00b8cc33260";
/// Transactions before each block.
const TXS_PER_ROUND: u32 = 8;
const COINBASE_MATURITY: u32 = 100;
/// Fee of a transaction, far above what any node asks for.
const FEE_BTC: f64 = 0.0001;
/// How long the hostile peers have before the target syncs.
const HEAD_START: Duration = Duration::from_secs(2);
/// Longest sync, and longest way of a block or transaction.
const SYNC_TIMEOUT: Duration = Duration::from_mins(20);
const RELAY_TIMEOUT: Duration = Duration::from_mins(3);

/// How to run it.
#[derive(Debug, Clone)]
pub struct HostileOptions {
    /// Where data, logs and `hostile.json` go. Created if missing.
    pub out_dir: PathBuf,
    /// The plan whose recipe and settings are used; a chain of Bitcoin's regtest.
    pub plan: Plan,
    /// The node that is attacked.
    pub target: TargetSpec,
    /// Hostile peers.
    pub peers: usize,
    /// What they do, in equal parts; not empty.
    pub attacks: Vec<Attack>,
    /// Pairs of runs, without and with them; at least one.
    pub pairs: usize,
    /// Rounds of transactions and a block in each run; at least one.
    pub rounds: u32,
    /// Seed of what they send.
    pub seed: u64,
    /// How to call the forge.
    pub forge_command: Vec<OsString>,
    /// How to call our node.
    pub node_command: Vec<OsString>,
    /// Version of the program that calls.
    pub assay_version: String,
    /// The command line that does it again.
    pub rerun: String,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum HostileError {
    /// Something cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A folder of an earlier run cannot be removed.
    #[error("cannot remove {}: {source}", path.display())]
    Remove {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// There is no chain.
    #[error(transparent)]
    Forge(#[from] ForgeError),
    /// The chain cannot be read.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The target cannot be used.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The chain is not one of Bitcoin's regtest.
    #[error("chain {chain}: hostile peers speak the protocol of regtest")]
    OtherChain {
        /// The chain.
        chain: String,
    },
    /// A node did not start, or ended.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// A call failed.
    #[error(transparent)]
    Rpc(#[from] RpcError),
    /// A block of the chain was rejected.
    #[error("block {height} was rejected: {reason}")]
    Rejected {
        /// Its height.
        height: u32,
        /// The reason.
        reason: String,
    },
    /// A node does not get to the tip.
    #[error("the tip is {found} after {seconds} s, not {expected}")]
    NoTip {
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
        /// How long was waited.
        seconds: u64,
    },
    /// Transactions did not arrive.
    #[error("{missing} transactions did not arrive within {seconds} s")]
    NoTransactions {
        /// How many.
        missing: usize,
        /// How long was waited.
        seconds: u64,
    },
    /// The caller ended it.
    #[error("interrupted")]
    Interrupted,
}

/// Attacks a running node for a while and says what became of the peers. It must be one of regtest; the peers build on its
/// genesis block.
pub fn attack(
    address: SocketAddr,
    (peers, attacks): (usize, &[Attack]),
    time: Duration,
    seed: u64,
    stop: &AtomicBool,
) -> Vec<AttackReport> {
    let tip = Tip { hash: GENESIS, time: 1_296_688_602 + 600 };
    let swarm = Swarm::start(address, (peers, attacks), tip, seed);
    let started = Instant::now();
    while started.elapsed() < time && !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(20));
    }
    swarm.finish()
}

/// Runs the pairs.
///
/// # Errors
/// When something cannot be written, forged or started, or a node does not get what the honest peers have.
pub fn run(
    options: &HostileOptions,
    reporter: &dyn Reporter,
) -> Result<HostileReport, HostileError> {
    let logs = options.out_dir.join("logs");
    atomic_file::create_folder(&logs)?;
    let own = TargetSpec { node: NodeSpec::Assay, index: None, ..options.target.clone() };
    let own = TargetSpec { name: None, args: Vec::new(), cores: Vec::new(), ..own };
    let ours = Target::detect(&own, &options.node_command, &options.assay_version)?;
    let target = Target::detect(&options.target, &options.node_command, &options.assay_version)?;
    let job = ForgeJob {
        plan: &options.plan,
        dir: &options.out_dir.join("chain"),
        own_dir: true,
        command: &options.forge_command,
        assay_version: &options.assay_version,
        log: &logs.join("forge.log"),
        reporter,
    };
    let chain = job.chain()?.0;
    let name = chain.header.chain.clone();
    if name != "regtest" {
        return Err(HostileError::OtherChain { chain: name });
    }
    target.check_chain(&name)?;
    let launcher = Launcher { plan: &options.plan.target, chain: &name, logs };
    let filled = options.out_dir.join("filled");
    let experiment =
        Experiment { options, launcher: &launcher, ours: &ours, target: &target, reporter };
    experiment.fill(&chain, &filled)?;
    let mut report =
        HostileReport::blank(options, &chain, &target, &machine::record(&options.out_dir));
    for pair in 0..options.pairs {
        // Every other pair begins with the hostile peers.
        for is_hostile in [pair % 2 == 1, pair % 2 == 0] {
            let peers = if is_hostile { options.peers } else { 0 };
            let (number, of) = (report.runs.len() + 1, 2 * options.pairs);
            reporter.event(&Event::HostileRun { number, of, peers });
            report.runs.push(experiment.run(&filled, pair, is_hostile)?);
        }
    }
    reporter.event(&Event::HostileFinished);
    report.write(&options.out_dir)?;
    Ok(report)
}

fn generate(node: &Node, count: u32) -> Result<(), HostileError> {
    let params = format!(r#"[{count},"raw({ANYONE})"]"#);
    node.call::<Vec<String>>("generatetodescriptor", &params).map(drop)
}

fn renew(folder: &Path) -> Result<(), HostileError> {
    match fs::remove_dir_all(folder) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(HostileError::Remove { path: folder.to_owned(), source })
        }
        _ => Ok(atomic_file::create_folder(folder)?),
    }
}

/// What all runs have in common.
struct Experiment<'a> {
    options: &'a HostileOptions,
    launcher: &'a Launcher<'a>,
    ours: &'a Target,
    target: &'a Target,
    reporter: &'a dyn Reporter,
}

/// The nodes of a run.
struct Nodes {
    sources: [Node; 2],
    target: Node,
    observers: [Node; 2],
}

impl Experiment<'_> {
    /// Blocks that are generated on top of the forged ones: with today's time, and one coinbase to spend for each transaction.
    fn generated(&self) -> u32 {
        COINBASE_MATURITY + self.options.rounds * TXS_PER_ROUND
    }

    /// Fills a folder of our node with the forged chain and blocks of today.
    fn fill(&self, chain: &Chain, folder: &Path) -> Result<(), HostileError> {
        renew(folder)?;
        self.reporter.event(&Event::SourceFills { blocks: chain.blocks.len() });
        let node = self.launcher.start(self.ours, folder, "fill")?;
        let mut body = Vec::new();
        for block in &chain.blocks {
            if self.reporter.wants_stop() {
                return Err(HostileError::Interrupted);
            }
            compose_block(chain, block, &mut body, |_| ())?;
            let reply = node.post("submitblock", &body)?;
            if let Some(reason) = read_result::<Option<String>>("submitblock", &reply)? {
                return Err(HostileError::Rejected { height: block.height, reason });
            }
        }
        generate(&node, self.generated())?;
        node.stop()
    }

    fn run(&self, filled: &Path, pair: usize, is_hostile: bool) -> Result<RunReport, HostileError> {
        let work = self.options.out_dir.join("work");
        renew(&work)?;
        let nodes = self.start(filled, &work)?;
        let tip = nodes.sources[0].tip()?;
        let swarm = is_hostile.then(|| {
            let seed = self.options.seed.wrapping_add(pair as u64);
            let who = (self.options.peers, self.options.attacks.as_slice());
            Swarm::start(nodes.target.p2p, who, Tip { hash: GENESIS, time: now_s() }, seed)
        });
        thread::sleep(HEAD_START);
        self.reporter.event(&Event::HostileSync);
        let before = nodes.target.look();
        let started = Instant::now();
        for source in &nodes.sources {
            nodes.target.connect(source)?;
        }
        let sync = nodes.target.wait_for_tip(&tip, started, SYNC_TIMEOUT)?;
        let cpu_s =
            nodes.target.look().cpu_s.zip(before.cpu_s).map(|(after, before)| after - before);
        let mut run =
            RunReport { pair, is_hostile, sync_s: sync.as_secs_f64(), ..RunReport::default() };
        run.sync_cpu_s = cpu_s;
        for observer in &nodes.observers {
            observer.wait_for_tip(&tip, started, SYNC_TIMEOUT)?;
        }
        run.followed_s = started.elapsed().as_secs_f64();
        for round in 0..self.options.rounds {
            if self.reporter.wants_stop() {
                return Err(HostileError::Interrupted);
            }
            self.reporter
                .event(&Event::HostileRound { number: round + 1, of: self.options.rounds });
            self.relay(&nodes, round, swarm.as_ref(), &mut run)?;
        }
        let peers: Vec<PeerInfo> = nodes.target.call("getpeerinfo", "[]")?;
        run.honest_connected = peers.iter().filter(|peer| !peer.subver.contains("hostile")).count();
        run.honest_connected -= peers.iter().filter(|peer| peer.subver.is_empty()).count();
        run.memory_peak_bytes = nodes.target.look().rss_peak_bytes;
        run.attacks = swarm.map(Swarm::finish).unwrap_or_default();
        let Nodes { sources, target, observers } = nodes;
        target.stop()?;
        sources.into_iter().chain(observers).try_for_each(Node::stop)?;
        renew(&work)?;
        Ok(run)
    }

    fn start(&self, filled: &Path, work: &Path) -> Result<Nodes, HostileError> {
        let start = |target: &Target, name: &str, is_filled: bool| {
            let folder = work.join(name);
            if is_filled {
                copy_folder(filled, &folder)?;
            } else {
                atomic_file::create_folder(&folder)?;
            }
            self.launcher.start(target, &folder, name)
        };
        let sources = [start(self.ours, "source-1", true)?, start(self.ours, "source-2", true)?];
        let target = start(self.target, "target", false)?;
        let observers =
            [start(self.ours, "observer-1", false)?, start(self.ours, "observer-2", false)?];
        for observer in &observers {
            observer.connect(&target)?;
        }
        Ok(Nodes { sources, target, observers })
    }

    /// Some transactions, then a block: each from the first source through the target to the first observer.
    fn relay(
        &self,
        nodes: &Nodes,
        round: u32,
        swarm: Option<&Swarm>,
        run: &mut RunReport,
    ) -> Result<(), HostileError> {
        let [source, _] = &nodes.sources;
        let [observer, _] = &nodes.observers;
        let mut waiting = Vec::new();
        // The oldest first; every round has added a block.
        let deepest = self.generated() + round - round * TXS_PER_ROUND - 1;
        for index in 0..TXS_PER_ROUND {
            waiting.push(spend(source, deepest - index)?);
        }
        let started = Instant::now();
        while !waiting.is_empty() {
            let pool: Vec<String> = observer.call("getrawmempool", "[]")?;
            let took = started.elapsed();
            waiting.retain(|txid| {
                let is_there = pool.contains(txid);
                run.tx_relay_s.extend(is_there.then_some(took.as_secs_f64()));
                !is_there
            });
            if took > RELAY_TIMEOUT {
                let (missing, seconds) = (waiting.len(), RELAY_TIMEOUT.as_secs());
                return Err(HostileError::NoTransactions { missing, seconds });
            }
            thread::sleep(ASK_PAUSE);
        }
        let started = Instant::now();
        generate(source, 1)?;
        let tip = source.tip()?;
        let took = observer.wait_for_tip(&tip, started, RELAY_TIMEOUT)?;
        run.block_relay_s.push(took.as_secs_f64());
        for node in [&nodes.target, &nodes.observers[1], &nodes.sources[1]] {
            node.wait_for_tip(&tip, started, RELAY_TIMEOUT)?;
        }
        if let (Some(swarm), Some(hash)) = (swarm, wire_hash(&tip)) {
            swarm.show_tip(Tip { hash, time: now_s() });
        }
        Ok(())
    }
}

/// Spends the coinbase so many blocks below the tip; gives the name of the transaction.
fn spend(node: &Node, depth: u32) -> Result<String, HostileError> {
    let tip: u32 = node.call("getblockcount", "[]")?;
    let height = tip.saturating_sub(depth);
    let hash: String = node.call("getblockhash", &format!("[{height}]"))?;
    let block: serde_json::Value = node.call("getblock", &format!(r#"["{hash}",2]"#))?;
    let (txid, value) = (&block["tx"][0]["txid"], block["tx"][0]["vout"][0]["value"].as_f64());
    let value = value.unwrap_or_default() - FEE_BTC;
    let address = r#""bcrt1qft5p2uhsdcdc3l2ua4ap5qqfg4pjaqlp250x7us7a8qqhrxrxfsqseac85""#;
    let params = format!(r#"[[{{"txid":{txid},"vout":0}}],[{{{address}:{value:.8}}}]]"#);
    let raw: String = node.call("createrawtransaction", &params)?;
    node.call("sendrawtransaction", &format!(r#"["{}"]"#, with_witness(&raw)))
}

/// Adds the witness of the only input: the script `OP_1` (BIP144).
fn with_witness(raw: &str) -> String {
    let (version, rest) = raw.split_at(8);
    let (body, lock_time) = rest.split_at(rest.len() - 8);
    format!("{version}0001{body}010151{lock_time}")
}

fn wire_hash(hex: &str) -> Option<wire::Hash> {
    let mut hash = [0; 32];
    faster_hex::hex_decode(hex.as_bytes(), &mut hash).ok()?;
    hash.reverse();
    Some(hash)
}

fn now_s() -> u32 {
    u32::try_from(machine::clock::unix_ms() / 1000).unwrap_or(u32::MAX)
}

/// The middle of some values; nothing for none.
fn middle(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { median(values) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_witness_goes_before_the_lock_time() {
        assert_eq!(with_witness("0200000001aa00000000"), "020000000001aa01015100000000");
    }

    #[test]
    fn the_genesis_block_is_that_of_regtest() {
        let hex = "0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206";
        assert_eq!(wire_hash(hex), Some(GENESIS));
    }
}
