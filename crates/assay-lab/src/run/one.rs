//! One run: one fresh node, one pre-relayed share, the whole chain.

use std::error::Error;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::Context as _;
use assay_ledger::BlockLine;
use assay_report::atomic_file;
use assay_report::control::time_control_load_ns;

use super::index::{self, IndexSide, RunningNode};
use super::verify::{self, EndState};
use super::{RunJob, prepare, profile, stopped};
use crate::feed::p2p_feeder::P2pFeeder;
use crate::feed::tip_watch::TipWatch;
use crate::feed::{FeedError, FeedJob, Feeder, Reach, Rpc};
use crate::machine::clock::{Clock, iso8601};
use crate::machine::disk::{remove_folder, renew_folder};
use crate::p2p::GENESIS;
use crate::process::interference::Watch;
use crate::process::rpc::{Client, RpcError};
use crate::process::sample::{self, Sampler};
use crate::process::{Launch, Ports, Process, ProcessError};
use crate::progress::Event;
use crate::results::{Check, Run, Status, aggregate};
use crate::target::DeliveryMethod;

/// Data, logs and ports of a run's processes.
pub(crate) struct Place<'a> {
    pub(crate) datadir: &'a Path,
    pub(crate) log: &'a Path,
    pub(crate) ports: Ports,
}

impl RunJob<'_> {
    /// Executes the run. A run with a fault, or with differences from the ledger, is invalid.
    pub(crate) fn execute(&self) -> (Run, Option<anyhow::Error>) {
        let control_before_ns = time_control_load_ns();
        let clock = Clock::start();
        let mut run = Run {
            id: self.id.to_owned(),
            seen_requested: self.seen,
            repeat: self.repeat,
            started: iso8601(clock.start_unix_ms()),
            ..Run::default()
        };
        let watch = Watch::start();
        let own_cpu_s = || sample::cpu_s(std::process::id());
        let cpu_before_s = own_cpu_s();
        // Keep the measurements made before a fault.
        let fault = self.with_folders(clock, &mut run).err();
        run.surroundings = Some(watch.finish());
        run.lab_cpu_s = own_cpu_s().zip(cpu_before_s).map(|(after, before)| after - before);
        run.control_ns = vec![control_before_ns, time_control_load_ns()];
        run.void_reason = match &fault {
            Some(fault) => Some(whole_story(&**fault)),
            None => difference(&run.checks, self.coins.reported_by.as_deref()),
        };
        run.status = if run.void_reason.is_some() { Status::Void } else { Status::Valid };
        run.phases = aggregate::phases(&run.blocks);
        run.total = aggregate::total(self.plan, &run.blocks);
        run.seen_measured = run.total.seen_measured;
        (run, fault)
    }

    /// Creates the folders, runs, and keeps only the logs.
    fn with_folders(&self, clock: Clock, run: &mut Run) -> anyhow::Result<()> {
        let datadir = self.out_dir.join("work").join(self.id);
        let logs = self.out_dir.join("logs");
        renew_folder(&datadir)?;
        atomic_file::create_folder(&logs)?;
        self.place_blocks(&datadir)?;
        let of_snapshot = match self.chain.snapshot {
            Some(_) => self.place_snapshot(&datadir)?,
            None => 0,
        };
        run.preparation = prepare::prepare(self.plan, &self.chain.blocks_path(), &datadir)?;
        run.preparation.copied_bytes += of_snapshot;
        let log = logs.join(format!("{}.log", self.id));
        let result = self.with_target(clock, &datadir, &log, run);
        if !self.keep_datadir {
            remove_folder(&datadir)?;
        }
        result
    }

    fn with_target(
        &self,
        clock: Clock,
        datadir: &Path,
        log: &Path,
        run: &mut Run,
    ) -> anyhow::Result<()> {
        let ports = Ports::free()?;
        let chain = &self.chain.header.chain;
        // Absolute, because a node may change its working directory.
        let datadir = datadir.canonicalize().unwrap_or_else(|_| datadir.to_owned());
        if self.method != DeliveryMethod::Rpc {
            return self.sync(&Place { datadir: &datadir, log, ports }, run);
        }
        let mut launch = self.target.launch(chain, &datadir, &ports, &self.plan.target);
        if self.plan.feed.by.is_relay() {
            launch = self.target.with_peers(launch, &ports);
        }
        let place = Place { datadir: &datadir, log, ports };
        let ended = self.with_process(launch, clock, &place, run, |mut process, start_s, run| {
            let client = self.feed_and_compare(clock, start_s, &mut process, &place, run)?;
            self.stop(process, &client)
        });
        if let Some(index) = &mut run.index {
            index::measure_disk(self.target, &datadir, index);
        }
        ended
    }

    /// Starts the target, under a profiler if requested, and samples it while `work` uses it. `work` receives the time of the start
    /// and returns the seconds that the target needed to stop.
    pub(crate) fn with_process(
        &self,
        mut launch: Launch,
        clock: Clock,
        place: &Place<'_>,
        run: &mut Run,
        work: impl FnOnce(Process, f64, &mut Run) -> anyhow::Result<f64>,
    ) -> anyhow::Result<()> {
        if let Some(data) = self.profile {
            launch = profile::wrapped(launch, data);
        }
        let node_log = launch.node_log.clone();
        let start_s = clock.now_s();
        let process = Process::start(launch, place.ports.rpc, place.log)?;
        process.command().clone_into(&mut run.command);
        let sampler = Sampler::start(process.pid(), clock);
        let outcome = work(process, start_s, run);
        run.samples = sampler.finish();
        if let Some(node_log) = node_log {
            // Best effort: the node may have no log, or the disk may be full.
            let _ = fs::copy(node_log, place.log.with_extension("debug.log"));
        }
        run.shutdown_s = Some(outcome?);
        Ok(())
    }

    pub(crate) fn stop(&self, process: Process, client: &Client) -> anyhow::Result<f64> {
        self.reporter.step("stopping");
        Ok(process.stop(client)?.as_secs_f64())
    }

    /// Starts the index, feeds the chain and compares the end state; returns the connection.
    fn feed_and_compare(
        &self,
        clock: Clock,
        start_s: f64,
        process: &mut Process,
        place: &Place<'_>,
        run: &mut Run,
    ) -> anyhow::Result<Client> {
        let credentials = process.wait_ready()?;
        run.startup_s = Some(clock.now_s() - start_s);
        let mut node = RunningNode { process, credentials: &credentials, datadir: place.datadir };
        let mut index = IndexSide::start(self, &mut node, place.ports, clock, place.log)?;
        self.reporter.step("ready");
        let mut outcome = self.feed(clock, process, (&credentials, place.ports), run);
        if let (Some(index), Ok(_)) = (&mut index, &outcome) {
            let compared = index
                .catch_up(self, process, &mut run.blocks)
                .and_then(|()| index.check(self, &mut run.checks));
            outcome = outcome.and_then(|client| compared.map(|()| client));
        }
        if let Some(index) = index {
            let (of_index, ended) = index.finish(outcome.is_ok());
            run.index = Some(of_index);
            outcome = outcome.and_then(|client| {
                ended.context(index::PROCESS)?;
                Ok(client)
            });
        }
        let client = outcome?;
        self.end_state(&client, process, true)?.store(run);
        Ok(client)
    }

    fn feed(
        &self,
        clock: Clock,
        process: &mut Process,
        (credentials, ports): (&str, Ports),
        run: &mut Run,
    ) -> anyhow::Result<Client> {
        let watch = TipWatch::start(process.client(credentials), clock);
        let job = FeedJob {
            chain: self.chain,
            plan: &self.plan.feed,
            share: self.seen,
            reporter: self.reporter,
        };
        let rpc = Rpc { client: process.client(credentials), watch };
        let p2p_feeder = self.connect_peers(clock, ports)?;
        let reach = Reach { rpc: Some(rpc), p2p_feeder, pid: Some(process.pid()) };
        let mut feeder = Feeder::new(job, clock, reach, GENESIS);
        run.blocks.reserve(self.chain.blocks.len());
        for block in &self.chain.blocks {
            if self.reporter.wants_stop() {
                return Err(stopped(block.height));
            }
            match feeder.feed(block) {
                Ok(record) => {
                    let phase = self.plan.phase_title(&record.phase);
                    self.reporter.event(&Event::Block { block: &record, phase });
                    run.blocks.push(record);
                }
                Err(error) => {
                    run.tx_errors = feeder.finish().1;
                    return Err(self.explain(error, block, process));
                }
            }
        }
        let (client, tx_errors) = feeder.finish();
        run.tx_errors = tx_errors;
        // Always present here.
        Ok(client.unwrap_or_else(|| process.client(credentials)))
    }

    fn connect_peers(&self, clock: Clock, ports: Ports) -> Result<Option<P2pFeeder>, FeedError> {
        let plan = &self.plan.feed;
        if !plan.by.is_relay() {
            return Ok(None);
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports.p2p));
        let chain = &self.chain.header.chain;
        let p2p_feeder = P2pFeeder::connect(address, chain, plan, clock)
            .map_err(|source| FeedError::Peer { height: 1, source })?;
        Ok(Some(p2p_feeder))
    }

    /// A broken connection often means that the process ended; the error then reports that.
    fn explain(&self, error: FeedError, block: &BlockLine, process: &mut Process) -> anyhow::Error {
        if self.reporter.wants_stop() {
            // The same signal may have ended the target too, which is not its fault.
            return stopped(block.height);
        }
        let death = match &error {
            FeedError::Rpc { source, .. } => process.death(source),
            FeedError::Peer { .. } => process.end_soon(),
            _ => None,
        };
        match death {
            Some(death) => self.died(block.height, &block.phase.to_string(), death),
            None => error.into(),
        }
    }

    /// The target died with the block of this height in flight.
    pub(crate) fn died(&self, height: u32, phase: &str, death: ProcessError) -> anyhow::Error {
        let of = self.chain.tip.height;
        anyhow::Error::new(death).context(format!("at block {height} of {of} ({phase})"))
    }

    pub(crate) fn end_state(
        &self,
        client: &Client,
        process: &mut Process,
        has_muhash: bool,
    ) -> anyhow::Result<EndState> {
        self.reporter.step("comparing end state");
        let end = verify::end_state(client, self.chain, self.coins, has_muhash);
        end.map_err(|error: RpcError| match process.death(&error) {
            Some(death) => anyhow::Error::new(death).context("while the end state was compared"),
            None => anyhow::Error::new(error).context("the end state could not be read"),
        })
    }
}

/// First difference from the ledger, or of the UTXO set from the run that reported it first.
fn difference(checks: &[Check], coins_by: Option<&str>) -> Option<String> {
    let check = checks.iter().find(|check| check.differs())?;
    let found = check.found.as_deref().unwrap_or_default();
    let says = match coins_by.filter(|_| check.what.starts_with(verify::COINS)) {
        Some(run) => format!("run {run} reported"),
        None => "the ledger says".to_owned(),
    };
    Some(format!("{} is {found}, {says} {}", check.what, check.expected))
}

/// An error with all its causes.
pub(crate) fn whole_story(error: &dyn Error) -> String {
    let mut story = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let text = source.to_string();
        if !story.ends_with(&text) {
            story.push_str(": ");
            story.push_str(&text);
        }
        cause = source.source();
    }
    story
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_include_all_causes() {
        let source = RpcError::Status { method: "submitblock".to_owned(), status: 413 };
        let error = FeedError::Rpc { height: 7, source };
        assert_eq!(whole_story(&error), "block 7: submitblock: HTTP status 413");
    }

    #[test]
    fn differences_are_reported() {
        let check = |found: Option<&str>| Check {
            what: "tip".to_owned(),
            expected: "aa".to_owned(),
            found: found.map(str::to_owned),
        };
        assert_eq!(difference(&[check(None), check(Some("aa"))], None), None);
        let mut checks = [check(Some("aa")), check(Some("bb"))];
        let found = difference(&checks, Some("core-1"));
        assert_eq!(found.as_deref(), Some("tip is bb, the ledger says aa"));
        checks[1].what = "UTXO count".to_owned();
        let found = difference(&checks, Some("core-1"));
        assert_eq!(found.as_deref(), Some("UTXO count is bb, run core-1 reported aa"));
    }
}
