//! One run: one fresh node, one pre-relayed share, the whole chain.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use assay_report::atomic_file::{self, WriteError};
use assay_report::control::time_control_load_ns;

use super::RunJob;
use super::fault::RunFault;
use super::index::{self, IndexSide, RunningNode};
use super::verify::{self, EndState};
use super::{prepare, profile};
use crate::feed::p2p_feeder::P2pFeeder;
use crate::feed::tip_watch::TipWatch;
use crate::feed::{FeedError, FeedJob, Feeder, Reach, Rpc};
use crate::machine::clock::{Clock, iso8601};
use crate::p2p::GENESIS;
use crate::process::interference::Watch;
use crate::process::rpc::Client;
use crate::process::sample::{self, Sampler, Samples};
use crate::process::{Launch, Ports, Process};
use crate::progress::Event;
use crate::results::{
    BlockRecord, Check, IndexRun, PhaseResult, Preparation, Run, Status, WholeProcess, aggregate,
};
use crate::target::DeliveryMethod;

/// Partial results of a run, kept in every case.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) command: Vec<String>,
    pub(crate) blocks: Vec<BlockRecord>,
    tx_errors: BTreeMap<String, u64>,
    pub(crate) end: EndState,
    pub(crate) startup_s: Option<f64>,
    pub(crate) shutdown_s: Option<f64>,
    pub(crate) samples: Samples,
    index: Option<IndexRun>,
    preparation: Preparation,
    pub(crate) process: Option<WholeProcess>,
}

/// Data, logs and ports of a run's processes.
pub(crate) struct Place<'a> {
    pub(crate) datadir: &'a Path,
    pub(crate) log: &'a Path,
    pub(crate) ports: Ports,
}

impl RunJob<'_> {
    /// Executes the run. A run with a fault, or with differences from the ledger, is invalid.
    pub(crate) fn execute(&self) -> (Run, Option<RunFault>) {
        let mut control_ns = vec![time_control_load_ns()];
        let clock = Clock::start();
        let mut findings = Findings::default();
        let watch = Watch::start();
        let own_cpu_s = || sample::cpu_s(std::process::id());
        let cpu_before_s = own_cpu_s();
        let fault = self.with_folders(clock, &mut findings).err();
        let surroundings = Some(watch.finish());
        let lab_cpu_s = own_cpu_s().zip(cpu_before_s).map(|(after, before)| after - before);
        control_ns.push(time_control_load_ns());
        let void_reason = match &fault {
            Some(fault) => Some(whole_story(fault)),
            None => difference(&findings.end.checks, self.coins.reported_by.as_deref()),
        };
        let total = aggregate::total(self.plan, &findings.blocks);
        let run = Run {
            id: self.id.to_owned(),
            status: if void_reason.is_some() { Status::Void } else { Status::Valid },
            void_reason,
            disturbance: None,
            seen_requested: self.seen,
            seen_measured: total.seen_measured,
            repeat: self.repeat,
            started: iso8601(clock.start_unix_ms()),
            tip: findings.end.tip,
            utxo_muhash: findings.end.utxo_muhash,
            command: findings.command,
            phases: aggregate::phases(&findings.blocks),
            total: PhaseResult { name: "total".to_owned(), ..total },
            blocks: findings.blocks,
            checks: findings.end.checks,
            tx_errors: findings.tx_errors,
            startup_s: findings.startup_s,
            shutdown_s: findings.shutdown_s,
            samples: findings.samples,
            lab_cpu_s,
            control_ns,
            surroundings,
            index: findings.index,
            preparation: findings.preparation,
            process: findings.process,
        };
        (run, fault)
    }

    /// The same program, under a profiler if requested.
    pub(crate) fn profiled(&self, launch: Launch) -> Launch {
        match self.profile {
            Some(data) => profile::wrapped(launch, data),
            None => launch,
        }
    }

    /// Creates the folders, runs, and keeps only the logs.
    fn with_folders(&self, clock: Clock, findings: &mut Findings) -> Result<(), RunFault> {
        let datadir = self.out_dir.join("work").join(self.id);
        let logs = self.out_dir.join("logs");
        remove_folder(&datadir)?;
        atomic_file::create_folder(&datadir)?;
        atomic_file::create_folder(&logs)?;
        self.place_blocks(&datadir)?;
        let of_snapshot = match self.chain.snapshot {
            Some(_) => self.place_snapshot(&datadir)?,
            None => 0,
        };
        findings.preparation = prepare::prepare(self.plan, &self.chain.blocks_path(), &datadir)?;
        findings.preparation.copied_bytes += of_snapshot;
        let log = logs.join(format!("{}.log", self.id));
        let result = self.with_target(clock, &datadir, &log, findings);
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
        findings: &mut Findings,
    ) -> Result<(), RunFault> {
        let ports = Ports::free()?;
        let chain = &self.chain.header.chain;
        // Absolute, because a node may change its working directory.
        let datadir = datadir.canonicalize().unwrap_or_else(|_| datadir.to_owned());
        if self.method != DeliveryMethod::Rpc {
            return self.sync(&Place { datadir: &datadir, log, ports }, findings);
        }
        let mut launch = self.target.launch(chain, &datadir, &ports, &self.plan.target);
        if self.plan.feed.by.is_relay() {
            launch = self.target.with_peers(launch, &ports);
        }
        let launch = self.profiled(launch);
        let node_log = launch.node_log.clone();
        let start_s = clock.now_s();
        let mut process = Process::start(launch, ports.rpc, log)?;
        process.command().clone_into(&mut findings.command);
        let sampler = Sampler::start(process.pid(), clock);
        let place = Place { datadir: &datadir, log, ports };
        let outcome = self.feed_and_compare(clock, start_s, &mut process, &place, findings);
        let stopped = outcome.and_then(|client| {
            self.reporter.step("stopping");
            process.stop(&client).map_err(RunFault::Process)
        });
        findings.samples = sampler.finish();
        if let Some(index) = &mut findings.index {
            index::measure_disk(self.target, &datadir, index);
        }
        if let Some(node_log) = node_log {
            // Best effort: the node may have no log, or the disk may be full.
            let _ = fs::copy(node_log, log.with_extension("debug.log"));
        }
        findings.shutdown_s = Some(stopped?.as_secs_f64());
        Ok(())
    }

    /// Starts the index, feeds the chain and compares the end state; returns the connection.
    fn feed_and_compare(
        &self,
        clock: Clock,
        start_s: f64,
        process: &mut Process,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Result<Client, RunFault> {
        let credentials = process.wait_ready()?;
        let startup_s = clock.now_s() - start_s;
        findings.startup_s = Some(startup_s);
        let mut node = RunningNode { process, credentials: &credentials, datadir: place.datadir };
        let mut index = IndexSide::start(self, &mut node, place.ports, clock, place.log)?;
        self.reporter.step("ready");
        let mut outcome = self.feed(clock, process, (&credentials, place.ports), findings);
        if let (Some(index), Ok(_)) = (&mut index, &outcome) {
            let compared = index
                .catch_up(self, process, &mut findings.blocks)
                .and_then(|()| index.check(self, &mut findings.end.checks));
            outcome = outcome.and_then(|client| compared.map(|()| client));
        }
        if let Some(index) = index {
            let (run, ended) = index.finish(outcome.is_ok());
            findings.index = Some(run);
            outcome = outcome.and_then(|client| {
                ended.map(|()| client).map_err(|source| RunFault::IndexProcess { source })
            });
        }
        let client = outcome?;
        self.reporter.step("comparing end state");
        let end =
            verify::end_state(&client, self.chain, self.coins, true).map_err(
                |error| match process.death(&error) {
                    Some(source) => RunFault::DiedAtEnd { source },
                    None => RunFault::EndState { source: error },
                },
            )?;
        let of_index = std::mem::replace(&mut findings.end, end).checks;
        findings.end.checks.extend(of_index);
        Ok(client)
    }

    /// Feeds the chain; returns the connection.
    fn feed(
        &self,
        clock: Clock,
        process: &mut Process,
        (credentials, ports): (&str, Ports),
        findings: &mut Findings,
    ) -> Result<Client, RunFault> {
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
        findings.blocks.reserve(self.chain.blocks.len());
        for block in &self.chain.blocks {
            if self.reporter.wants_stop() {
                return Err(RunFault::Interrupted { height: block.height });
            }
            match feeder.feed(block) {
                Ok(record) => {
                    let phase = self.plan.phase_title(&record.phase);
                    self.reporter.event(&Event::Block { block: &record, phase });
                    findings.blocks.push(record);
                }
                Err(error) => {
                    findings.tx_errors = feeder.finish().1;
                    return Err(self.explain(
                        error,
                        block.height,
                        &block.phase.to_string(),
                        process,
                    ));
                }
            }
        }
        let (client, tx_errors) = feeder.finish();
        findings.tx_errors = tx_errors;
        // Always present here.
        Ok(client.unwrap_or_else(|| process.client(credentials)))
    }

    /// Connects the delivering peers, if the plan uses them.
    fn connect_peers(&self, clock: Clock, ports: Ports) -> Result<Option<P2pFeeder>, RunFault> {
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
    fn explain(
        &self,
        error: FeedError,
        height: u32,
        phase: &str,
        process: &mut Process,
    ) -> RunFault {
        if self.reporter.wants_stop() {
            // The same signal may have ended the target too, which is not its fault.
            return RunFault::Interrupted { height };
        }
        let death = match &error {
            FeedError::Rpc { source, .. } => process.death(source),
            FeedError::Peer { .. } => process.end_soon(),
            _ => None,
        };
        if let Some(source) = death {
            let of = self.chain.tip.height;
            return RunFault::Died { height, of, phase: phase.to_owned(), source };
        }
        RunFault::Feed(error)
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

fn remove_folder(path: &PathBuf) -> Result<(), WriteError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(WriteError { path: path.clone(), source: error })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::rpc::RpcError;

    #[test]
    fn errors_include_all_causes() {
        let source = RpcError::Status { method: "submitblock".to_owned(), status: 413 };
        let error = RunFault::Feed(FeedError::Rpc { height: 7, source });
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
