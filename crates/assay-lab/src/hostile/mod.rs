//! Hostile peers and their cost for honest ones.
//!
//! A run has five nodes: two with the chain, the target, and two connected to the target alone. The target syncs from the first
//! two; then these receive new transactions and blocks, and the delay until the last two have them is measured. Each pair has one
//! run without and one with hostile peers, which connect to the target before it syncs. Nodes, hostile peers and this program
//! share the cores, so the CPU time of the attackers counts against the target.

mod attack;
mod report;
mod swarm;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use assay_report::atomic_file;
use assay_report::record::Record;
use serde::Deserialize;

use self::attack::Tip;
use self::report::{Run, add_attacks};
use self::swarm::Swarm;
use crate::machine::disk::renew_folder;
use crate::machine::{self, Software, new_record};
use crate::network::{ASK_PAUSE, NetworkOptions, Node, Setup, generate};
use crate::p2p::GENESIS;
use crate::process::rpc::RpcError;
use crate::progress::{Event, Reporter};
use crate::run::copy_folder;
use crate::target::Target;

pub use self::attack::Attack;

/// Transactions of a round, all in its first block.
const TXS_PER_ROUND: u32 = 8;
/// Blocks of a round, and their interval. Large hostile messages arrive every second, so blocks every two seconds meet all of them.
const BLOCKS_PER_ROUND: u32 = 16;
const BLOCK_PAUSE: Duration = Duration::from_millis(130);
const COINBASE_MATURITY: u32 = 100;
/// Transaction fee, far above every node's minimum.
const FEE_BTC: f64 = 0.0001;
/// Time between the start of the hostile peers and that of the sync.
const HEAD_START: Duration = Duration::from_secs(2);
/// Time limit of a sync and of the relay of a block or transaction.
const SYNC_TIMEOUT: Duration = Duration::from_mins(20);
const RELAY_TIMEOUT: Duration = Duration::from_mins(3);

#[derive(Debug, Clone)]
pub struct HostileOptions {
    /// Programs, chain and folder.
    pub network: NetworkOptions,
    pub peers: usize,
    /// Attacks in equal parts; not empty.
    pub attacks: Vec<Attack>,
    /// Pairs of runs, without and with hostile peers; at least one.
    pub pairs: usize,
    /// Rounds of transactions and blocks per run; at least one.
    pub rounds: u32,
    /// Seed of the attacks.
    pub seed: u64,
}

#[derive(Deserialize)]
struct PeerInfo {
    subver: String,
}

/// Attacks a running regtest node for a while; figures are those of each attack, nothing is checked. Peers build on genesis.
pub fn attack(
    address: SocketAddr,
    (peers, attacks): (usize, &[Attack]),
    (time, seed): (Duration, u64),
    (software, rerun): (&Software, &str),
    stop: &AtomicBool,
) -> Record {
    let tip = Tip { hash: GENESIS, time: 1_296_688_602 + 600 };
    let swarm = Swarm::start(address, (peers, attacks), tip, seed);
    let started = Instant::now();
    while started.elapsed() < time && !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(20));
    }
    let mut record = new_record("hostile", software, rerun, Path::new("."));
    record.set("hostile peers", peers);
    record.set("seconds", started.elapsed().as_secs_f64());
    record.set("seed of the attacks", seed);
    record.headline = format!("{peers} hostile peers attacked {address}.");
    add_attacks(&mut record, &address.to_string(), swarm.finish().iter());
    record
}

/// Runs the pairs.
///
/// # Errors
/// When something cannot be written, forged or started, or a node does not sync.
pub fn run(options: &HostileOptions, reporter: &dyn Reporter) -> anyhow::Result<Record> {
    let setup = Setup::make(&options.network, reporter)?;
    let experiment = Experiment { options, setup: &setup, reporter };
    let out_dir = &options.network.out_dir;
    let filled = out_dir.join("filled");
    setup.fill(&filled, experiment.generated(), reporter)?.stop()?;
    let mut runs = Vec::new();
    for pair in 0..options.pairs {
        // Every second pair begins with the hostile peers.
        for is_hostile in [pair % 2 == 1, pair % 2 == 0] {
            let peers = format!("{} hostile peers", options.peers);
            let what = if is_hostile { peers.as_str() } else { "quiet" };
            let (number, of) = (runs.len() + 1, 2 * options.pairs);
            reporter.line(&format!("run {number}/{of}: {what}"));
            reporter.step("the target syncs");
            runs.push(experiment.run(&filled, pair, is_hostile)?);
        }
    }
    reporter.event(&Event::Finished);
    let record = report::record(options, &setup, &runs);
    record.write(&out_dir.join("hostile.json"))?;
    Ok(record)
}

/// Common state of all runs.
struct Experiment<'a> {
    options: &'a HostileOptions,
    setup: &'a Setup<'a>,
    reporter: &'a dyn Reporter,
}

struct Nodes {
    sources: [Node; 2],
    target: Node,
    observers: [Node; 2],
}

impl Experiment<'_> {
    /// Number of blocks generated on the forged ones: with the current time, and one spendable coinbase per transaction.
    fn generated(&self) -> u32 {
        COINBASE_MATURITY + self.options.rounds * TXS_PER_ROUND
    }

    fn run(&self, filled: &Path, pair: usize, is_hostile: bool) -> anyhow::Result<Run> {
        let work = self.options.network.out_dir.join("work");
        renew_folder(&work)?;
        let nodes = self.start(filled, &work)?;
        let tip = nodes.sources[0].tip()?;
        let swarm = is_hostile.then(|| {
            let seed = self.options.seed.wrapping_add(pair as u64);
            let who = (self.options.peers, self.options.attacks.as_slice());
            Swarm::start(
                nodes.target.p2p,
                who,
                Tip { hash: GENESIS, time: machine::clock::now_s() },
                seed,
            )
        });
        thread::sleep(HEAD_START);
        let before = nodes.target.look();
        let started = Instant::now();
        for source in &nodes.sources {
            nodes.target.connect(source.p2p)?;
        }
        let sync = nodes.target.wait_for_tip(&tip, started, SYNC_TIMEOUT)?;
        let cpu_s =
            nodes.target.look().cpu_s.zip(before.cpu_s).map(|(after, before)| after - before);
        let mut run = Run { pair, is_hostile, sync_s: sync.as_secs_f64(), ..Run::default() };
        run.sync_cpu_s = cpu_s;
        for observer in &nodes.observers {
            observer.wait_for_tip(&tip, started, SYNC_TIMEOUT)?;
        }
        run.followed_s = started.elapsed().as_secs_f64();
        for round in 0..self.options.rounds {
            self.reporter.check_stop()?;
            let (number, of) = (round + 1, self.options.rounds);
            self.reporter.step(&format!("transactions and block {number} of {of} on their way"));
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
        renew_folder(&work)?;
        Ok(run)
    }

    fn start(&self, filled: &Path, work: &Path) -> anyhow::Result<Nodes> {
        let start = |target: &Target, name: &str, is_filled: bool| -> anyhow::Result<Node> {
            let folder = work.join(name);
            if is_filled {
                copy_folder(filled, &folder)?;
            } else {
                atomic_file::create_folder(&folder)?;
            }
            Ok(self.setup.start(target, &folder, name, &[])?)
        };
        let sources = [
            start(&self.setup.ours, "source-1", true)?,
            start(&self.setup.ours, "source-2", true)?,
        ];
        let target = start(&self.setup.target, "target", false)?;
        let observers = [
            start(&self.setup.ours, "observer-1", false)?,
            start(&self.setup.ours, "observer-2", false)?,
        ];
        for observer in &observers {
            observer.connect(target.p2p)?;
        }
        Ok(Nodes { sources, target, observers })
    }

    /// Relays transactions, then blocks, from the first source through the target to the first observer.
    fn relay(
        &self,
        nodes: &Nodes,
        round: u32,
        swarm: Option<&Swarm>,
        run: &mut Run,
    ) -> anyhow::Result<()> {
        let [source, _] = &nodes.sources;
        let [observer, _] = &nodes.observers;
        let mut waiting = Vec::new();
        // The oldest first; every round has added its blocks.
        let deepest = self.generated() + round * BLOCKS_PER_ROUND - round * TXS_PER_ROUND - 1;
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
                bail!("{missing} transactions did not arrive within {seconds} s");
            }
            thread::sleep(ASK_PAUSE);
        }
        for _ in 0..BLOCKS_PER_ROUND {
            run.block_relay_s.push(relay_block(nodes, swarm)?.as_secs_f64());
            thread::sleep(BLOCK_PAUSE);
        }
        Ok(())
    }
}

/// Generates a block at the first source; returns the delay until it is the first observer's tip. All nodes have it then.
fn relay_block(nodes: &Nodes, swarm: Option<&Swarm>) -> anyhow::Result<Duration> {
    let ([source, other], [observer, second]) = (&nodes.sources, &nodes.observers);
    let started = Instant::now();
    let made = generate(source, 1)?;
    let tip = made.last().map_or("", String::as_str);
    let took = observer.wait_for_block(tip, started, RELAY_TIMEOUT)?;
    for node in [&nodes.target, second, other] {
        node.wait_for_tip(tip, started, RELAY_TIMEOUT)?;
    }
    if let (Some(swarm), Ok(hash)) = (swarm, tip.parse()) {
        swarm.show_tip(Tip { hash, time: machine::clock::now_s() });
    }
    Ok(took)
}

/// Spends the coinbase `depth` blocks below the tip; returns the txid.
fn spend(node: &Node, depth: u32) -> Result<String, RpcError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_witness_goes_before_the_lock_time() {
        assert_eq!(with_witness("0200000001aa00000000"), "02000000000101aa01015100000000");
    }
}
