//! How fast a node syncs from many peers over slow links, and what peers cost it that do not do what they should.
//!
//! One node of ours has the chain. The target connects to it over several links of the same rate and delay, each with an address
//! of its own, so it has several peers with the same blocks. In other runs there is one peer more: one that never sends a block,
//! one that sends a thousand bytes a second, or one with a longer branch on an invalid block.

mod report;

use std::path::Path;
use std::time::{Duration, Instant};

use assay_report::atomic_file;
use serde::Deserialize;

use crate::machine;
use crate::network::link::Properties;
use crate::network::{
    Course, FalsePeer, Link, Manner, NetworkError, NetworkOptions, Node, Setup, renew,
};
use crate::progress::{Event, Reporter};

pub use self::report::{PeersReport, Scenario, ScenarioRun};

/// How to run it.
#[derive(Debug, Clone)]
pub struct PeersOptions {
    /// Programs, chain and folder.
    pub network: NetworkOptions,
    /// Links.
    pub links: u8,
    /// Rate of each, bits per second.
    pub bits_per_s: f64,
    /// From one end to the other and back.
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
/// When something cannot be written, forged or started, or the target does not get to the tip.
pub fn run(options: &PeersOptions, reporter: &dyn Reporter) -> Result<PeersReport, NetworkError> {
    let setup = Setup::make(&options.network, reporter)?;
    let out_dir = &options.network.out_dir;
    let filled = out_dir.join("source");
    // A block of today: nodes ask several peers only for chains that are not old.
    let source = setup.fill(&filled, 1, reporter)?;
    let honest = Course::of(&source, &setup.chain)?;
    let experiment = Experiment { options, setup: &setup, source: &source, honest };
    let mut report = PeersReport::blank(options, &setup, &machine::record(out_dir));
    let of = options.rounds * Scenario::ALL.len();
    for round in 0..options.rounds {
        for place in 0..Scenario::ALL.len() {
            if reporter.wants_stop() {
                return Err(NetworkError::Interrupted);
            }
            // Each is the first one once.
            let scenario = Scenario::ALL[(place + round) % Scenario::ALL.len()];
            let number = report.runs.len() + 1;
            reporter.event(&Event::NetworkRun { number, of, what: scenario.name() });
            report.runs.push(experiment.run(round, scenario)?);
        }
    }
    reporter.event(&Event::NetworkFinished);
    source.stop()?;
    renew(&filled)?;
    report.write(out_dir)?;
    Ok(report)
}

struct Experiment<'a> {
    options: &'a PeersOptions,
    setup: &'a Setup<'a>,
    source: &'a Node,
    honest: Course,
}

impl Experiment<'_> {
    fn run(&self, round: usize, scenario: Scenario) -> Result<ScenarioRun, NetworkError> {
        let listen = |source| NetworkError::Listen { source };
        let properties = Properties {
            bytes_per_s: self.options.bits_per_s / 8.0,
            delay: self.options.round_trip / 2,
        };
        let links: Vec<Link> = (1..=self.options.links)
            .map(|index| Link::to(self.source.p2p, index, properties))
            .collect::<Result<_, _>>()
            .map_err(listen)?;
        let extra = self.extra(scenario).map_err(listen)?;
        let extra_link = extra
            .as_ref()
            .map(|peer| Link::to(peer.address, u8::MAX - 1, properties))
            .transpose()
            .map_err(listen)?;
        let work = self.options.network.out_dir.join("work");
        let mut run = self.sync(&work, &links, extra_link.as_ref())?;
        (run.round, run.scenario) = (round, scenario);
        renew(&work)?;
        Ok(run)
    }

    fn extra(&self, scenario: Scenario) -> std::io::Result<Option<FalsePeer>> {
        let (course, manner) = match scenario {
            Scenario::Good => return Ok(None),
            Scenario::Stalls => (self.honest.clone(), Manner::Stalls),
            Scenario::Drips => (self.honest.clone(), Manner::Drips),
            Scenario::Lies => {
                let height = self.setup.chain.tip.height as usize;
                let lie =
                    self.honest.lie(height * 2 / 3, height + LIE_LONGER, machine::clock::now_s());
                (lie, Manner::Gives)
            }
        };
        FalsePeer::start(course, manner, u8::MAX).map(Some)
    }

    /// A sync of a fresh target from all links.
    fn sync(
        &self,
        work: &Path,
        links: &[Link],
        extra: Option<&Link>,
    ) -> Result<ScenarioRun, NetworkError> {
        renew(work)?;
        let folder = work.join("target");
        atomic_file::create_folder(&folder)?;
        let target = self.setup.launcher.start(&self.setup.target, &folder, "target")?;
        let tip = self.source.tip()?;
        let before = target.look();
        let started = Instant::now();
        // The peer in question comes first: it is the one that is asked for headers.
        if let Some(extra) = extra {
            target.choose(extra.address)?;
        }
        for link in links {
            target.connect(link.address)?;
        }
        let time = target.wait_for_tip(&tip, started, SYNC_TIMEOUT)?;
        let after = target.look();
        let peers: Vec<PeerInfo> = target.call("getpeerinfo", "[]")?;
        let is_there = |link: &Link| peers.iter().any(|peer| peer.addr == link.address.to_string());
        let run = ScenarioRun {
            round: 0,
            scenario: Scenario::Good,
            time_s: time.as_secs_f64(),
            cpu_s: after.cpu_s.zip(before.cpu_s).map(|(after, before)| after - before),
            memory_peak_bytes: after.rss_peak_bytes,
            good_connected: links.iter().filter(|link| is_there(link)).count(),
            is_extra_connected: extra.map(is_there),
        };
        target.stop()?;
        Ok(run)
    }
}

/// So many blocks more than the honest chain the branch of the peer that lies has.
const LIE_LONGER: usize = 6;
/// Longest sync.
const SYNC_TIMEOUT: Duration = Duration::from_mins(30);
