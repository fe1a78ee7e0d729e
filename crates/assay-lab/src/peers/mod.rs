//! Sync speed from many peers over slow links, and the cost of misbehaving peers.
//!
//! An Assay node has the chain. The target connects to it over several links of the same rate and delay, each with its own
//! address, so it has several peers with the same blocks. Other runs add one peer that never sends a block, sends a thousand
//! bytes a second, or has a longer branch on an invalid block. In one scenario the target skips scripts, so the network is the
//! bottleneck.

mod report;

use std::path::Path;
use std::time::{Duration, Instant};
use std::{process, thread};

use anyhow::{Context as _, bail};
use assay_report::atomic_file;
use assay_report::record::Record;
use serde::Deserialize;

use self::report::{Scenario, ScenarioRun};
use crate::machine;
use crate::machine::disk::renew_folder;
use crate::network::link::Properties;
use crate::network::{
    ASK_PAUSE, HeaderChain, LISTEN, Link, MisbehavingPeer, Misbehaviour, NetworkOptions, Node,
    Setup,
};
use crate::process::interference::Watch;
use crate::process::sample::{self, Look};
use crate::progress::{Event, Reporter};
use crate::target::Family;

#[derive(Debug, Clone)]
pub struct PeersOptions {
    /// Programs, chain and folder.
    pub network: NetworkOptions,
    pub links: u8,
    /// Rate of each link, bits per second.
    pub bits_per_s: f64,
    pub round_trip: Duration,
    /// Rounds of all scenarios; at least one.
    pub rounds: usize,
}

#[derive(Deserialize)]
struct PeerInfo {
    addr: String,
}

/// Runs all scenarios, round by round.
///
/// # Errors
/// When something cannot be written, forged or started, or the target does not reach the tip.
pub fn run(options: &PeersOptions, reporter: &dyn Reporter) -> anyhow::Result<Record> {
    let setup = Setup::make(&options.network, reporter)?;
    let out_dir = &options.network.out_dir;
    let (filled, buried) = (out_dir.join("source"), out_dir.join("source-buried"));
    // A current block: nodes request old chains from a single peer.
    let source = setup.fill(&filled, 1, reporter)?;
    let buried_source = setup.fill(&buried, BURIED, reporter)?;
    let honest = HeaderChain::of(&source, &setup.chain)?;
    let experiment =
        Experiment { options, setup: &setup, source: &source, buried: &buried_source, honest };
    let mut runs = Vec::new();
    let of = options.rounds * Scenario::ALL.len();
    for round in 0..options.rounds {
        for place in 0..Scenario::ALL.len() {
            reporter.check_stop()?;
            // Rotated, so that each scenario is first once.
            let scenario = Scenario::ALL[(place + round) % Scenario::ALL.len()];
            let number = runs.len() + 1;
            reporter.line(&format!("run {number}/{of}: {}", scenario.name()));
            reporter.step("the target syncs");
            runs.push(experiment.run(round, scenario)?);
        }
    }
    reporter.event(&Event::Finished);
    source.stop()?;
    buried_source.stop()?;
    renew_folder(&filled)?;
    renew_folder(&buried)?;
    let record = report::record(options, &setup, &runs);
    record.write(&out_dir.join("peers.json"))?;
    Ok(record)
}

struct Experiment<'a> {
    options: &'a PeersOptions,
    setup: &'a Setup<'a>,
    source: &'a Node,
    /// A source with two more weeks of blocks, so that earlier ones may be assumed valid.
    buried: &'a Node,
    honest: HeaderChain,
}

impl Experiment<'_> {
    fn run(&self, round: usize, scenario: Scenario) -> anyhow::Result<ScenarioRun> {
        let properties = Properties {
            bytes_per_s: self.options.bits_per_s / 8.0,
            delay: self.options.round_trip / 2,
        };
        let source = if scenario == Scenario::Assumed { self.buried } else { self.source };
        let links: Vec<Link> = (1..=self.options.links)
            .map(|index| Link::to(source.p2p, index, properties))
            .collect::<std::io::Result<_>>()
            .context(LISTEN)?;
        let extra = self.extra(scenario).context(LISTEN)?;
        let extra_link = extra
            .as_ref()
            .map(|peer| Link::to(peer.address(), u8::MAX - 1, properties))
            .transpose()
            .context(LISTEN)?;
        let work = self.options.network.out_dir.join("work");
        let network = Links { source, good: &links, extra: extra_link.as_ref() };
        let run = self.sync(&work, (round, scenario), &network)?;
        renew_folder(&work)?;
        Ok(run)
    }

    fn extra(&self, scenario: Scenario) -> std::io::Result<Option<MisbehavingPeer>> {
        let (header_chain, misbehaviour) = match scenario {
            Scenario::Good | Scenario::Assumed => return Ok(None),
            Scenario::Stalls => (self.honest.clone(), Misbehaviour::Stalls),
            Scenario::Drips => (self.honest.clone(), Misbehaviour::Drips),
            Scenario::Lies => {
                let height = self.setup.chain.tip.height as usize;
                let lie =
                    self.honest.lie(height * 2 / 3, height + LIE_LONGER, machine::clock::now_s());
                (lie, Misbehaviour::Gives)
            }
        };
        MisbehavingPeer::start(header_chain, misbehaviour, u8::MAX).map(Some)
    }

    /// Syncs a fresh target over all links, up to the last forged block.
    fn sync(
        &self,
        work: &Path,
        (round, scenario): (usize, Scenario),
        network: &Links<'_>,
    ) -> anyhow::Result<ScenarioRun> {
        renew_folder(work)?;
        let folder = work.join("target");
        atomic_file::create_folder(&folder)?;
        let tip = &self.setup.chain.tip;
        let more = match scenario {
            Scenario::Assumed => assumes_valid(self.setup.target.family, &tip.hash),
            _ => Vec::new(),
        };
        let target = self.setup.start(&self.setup.target, &folder, "target", &more)?;
        let watch = Watch::start();
        let looks = [&target, network.source].map(Node::look);
        let own = sample::cpu_s(process::id());
        let mut carried = Carried::since(network, Instant::now());
        // The misbehaving peer connects first, so that headers are requested from it.
        if let Some(extra) = network.extra {
            target.choose(extra.address())?;
        }
        for link in network.good {
            target.connect(link.address())?;
        }
        while target.height()? < tip.height {
            carried.note(network);
            if carried.started.elapsed() > SYNC_TIMEOUT {
                let (expected, found) = (tip.height, target.height()?);
                let seconds = SYNC_TIMEOUT.as_secs();
                bail!("the height is {found} after {seconds} s, not {expected}");
            }
            thread::sleep(ASK_PAUSE);
        }
        let time_s = carried.started.elapsed().as_secs_f64();
        carried.note(network);
        let since = |node: &Node, before: Look| used(node.look().cpu_s, before.cpu_s);
        let cpu_s = [
            since(&target, looks[0]),
            since(network.source, looks[1]),
            used(sample::cpu_s(process::id()), own),
        ];
        let surroundings = watch.finish();
        let memory_peak_bytes = target.look().rss_peak_bytes;
        let peers: Vec<PeerInfo> = target.call("getpeerinfo", "[]")?;
        let is_there =
            |link: &Link| peers.iter().any(|peer| peer.addr == link.address().to_string());
        let run = ScenarioRun {
            round,
            scenario,
            time_s,
            fetched: carried.most(),
            cpu_s,
            surroundings,
            memory_peak_bytes,
            good_connected: network.good.iter().filter(|link| is_there(link)).count(),
            is_extra_connected: network.extra.map(is_there),
        };
        target.stop()?;
        Ok(run)
    }
}

/// Sources of a sync.
struct Links<'a> {
    source: &'a Node,
    good: &'a [Link],
    extra: Option<&'a Link>,
}

/// Bytes carried by the honest links over time.
struct Carried {
    started: Instant,
    samples: Vec<(f64, u64)>,
}

impl Carried {
    fn since(network: &Links<'_>, started: Instant) -> Self {
        let mut carried = Self { started, samples: Vec::new() };
        carried.note(network);
        carried
    }

    fn note(&mut self, network: &Links<'_>) {
        let bytes = network.good.iter().map(Link::carried_bytes).sum();
        self.samples.push((self.started.elapsed().as_secs_f64(), bytes));
    }

    /// Time at which 99 % had been carried, and that amount: a small tail does not reflect the rate.
    fn most(&self) -> (f64, u64) {
        let all = self.samples.last().map_or(0, |(_, bytes)| *bytes);
        let most = all - all / 100;
        let reached = self.samples.iter().find(|(_, bytes)| *bytes >= most);
        reached.copied().unwrap_or_default()
    }
}

/// Arguments that make a node assume a block and its ancestors valid.
fn assumes_valid(family: Family, block: &str) -> Vec<String> {
    match family {
        Family::Assay => vec!["--assume-valid".to_owned(), block.to_owned()],
        _ => vec![format!("-assumevalid={block}")],
    }
}

fn used(after_s: Option<f64>, before_s: Option<f64>) -> Option<f64> {
    after_s.zip(before_s).map(|(after_s, before_s)| after_s - before_s)
}

/// Blocks by which the invalid branch exceeds the honest chain.
const LIE_LONGER: usize = 6;
/// Blocks above the assumed-valid ones: more than two weeks of work (Core `validation.cpp`, `ConnectBlock`).
const BURIED: u32 = 2_100;
/// Time limit of a sync.
const SYNC_TIMEOUT: Duration = Duration::from_mins(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignores_the_last_hundredth() {
        let samples = vec![(0.0, 0), (1.0, 50), (2.0, 99), (9.0, 100)];
        assert_eq!(Carried { started: Instant::now(), samples }.most(), (2.0, 99));
        assert_eq!(Carried { started: Instant::now(), samples: Vec::new() }.most(), (0.0, 0));
    }
}
