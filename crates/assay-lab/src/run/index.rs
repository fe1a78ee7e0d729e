//! The index of a run: start, watch during the feed, comparison with the chain, stop.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use assay_report::atomic_file;

use super::{RunJob, stopped};
use crate::electrum::check::{LedgerCheck, compare};
use crate::electrum::expected::ScriptsFile;
use crate::electrum::watch::{IndexWatch, Wait};
use crate::electrum::{Client, ElectrumError};
use crate::machine::clock::Clock;
use crate::machine::disk::folder_bytes;
use crate::process::sample::{self, Sampler};
use crate::process::{Ports, Process, ProcessError};
use crate::results::{BlockRecord, Check, IndexRun, aggregate};
use crate::target::Target;
use crate::target::index::NodeOfIndex;

/// Poll interval of an index that is catching up.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
/// Longest wait for one response of a comparison.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(10);
/// Fulcrum's log message for a time-out of the node.
const TIMEOUT_WORDS: &str = "request timed out";
/// Context of a process that does not start, or exits.
pub(crate) const PROCESS: &str = "the index";

pub(crate) struct IndexSide {
    watch: IndexWatch,
    process: Option<Process>,
    sampler: Option<Sampler>,
    ports: Ports,
    /// Process of the index: the node's or its own.
    pid: u32,
    clock: Clock,
    dir: PathBuf,
    log: PathBuf,
    run: IndexRun,
}

pub(crate) struct RunningNode<'a> {
    pub(crate) process: &'a mut Process,
    pub(crate) credentials: &'a str,
    pub(crate) datadir: &'a Path,
}

impl IndexSide {
    /// Starts the index of the run's target, or connects to the one in the node's process; `None` without an index.
    pub(crate) fn start(
        job: &RunJob<'_>,
        node: &mut RunningNode<'_>,
        ports: Ports,
        clock: Clock,
        log: &Path,
    ) -> anyhow::Result<Option<Self>> {
        let Some(target) = &job.target.index else { return Ok(None) };
        let dir = node.datadir.join("index");
        let log = log.with_extension("index.log");
        let of_index = NodeOfIndex {
            chain: &job.chain.header.chain,
            family: job.target.family,
            datadir: node.datadir,
            credentials: node.credentials,
        };
        let start_s = clock.now_s();
        let mut run = IndexRun::default();
        let (mut process, mut sampler) = (None, None);
        let address = ports.electrum_address();
        if target.plan(&job.plan.target).is_some() {
            atomic_file::create_folder(&dir)?;
        }
        if let Some(launch) = target.launch(&of_index, &dir, &ports, &job.plan.target)? {
            let mut started = Process::start(launch, ports.electrum, &log)?;
            started.command().clone_into(&mut run.command);
            sampler = Some(Sampler::start(started.pid(), clock));
            started.wait_electrum(address).context(PROCESS)?;
            run.startup_s = Some(clock.now_s() - start_s);
            process = Some(started);
        } else {
            node.process.wait_electrum(address)?;
        }
        let watch = IndexWatch::start(address, clock, process.as_ref().map(Process::pid))
            .context("the index failed when it was subscribed to")?;
        run.server.clone_from(&watch.server.software);
        run.protocol.clone_from(&watch.server.protocol);
        let pid = process.as_ref().map_or_else(|| node.process.pid(), Process::pid);
        Ok(Some(Self { watch, process, sampler, ports, pid, clock, dir, log, run }))
    }

    /// Waits until the index is at the tip, and records when it had each block.
    pub(crate) fn catch_up(
        &mut self,
        job: &RunJob<'_>,
        node: &mut Process,
        blocks: &mut [BlockRecord],
    ) -> anyhow::Result<()> {
        let height = job.chain.tip.height;
        let timeout_s = job.plan.feed.block_timeout_s as f64;
        let start_s = self.clock.now_s();
        job.reporter.step("the index catches up");
        loop {
            let waited = self.watch.wait(height, LOOK_PERIOD);
            aggregate::note_index(blocks, &self.watch.reached(), self.watch.disk_at_start());
            match waited {
                Wait::Reached => break,
                Wait::Failed(source) => return Err(self.explain(node, source)),
                Wait::NotYet if job.reporter.wants_stop() => {
                    return Err(stopped(height));
                }
                Wait::NotYet if self.clock.now_s() - start_s > timeout_s => {
                    let at = self.watch.tip().map_or(0, |tip| tip.height);
                    bail!(
                        "the index is at height {at}, {timeout_s} s after the node reached {height}"
                    );
                }
                Wait::NotYet => {}
            }
        }
        let look = sample::look(self.pid);
        self.run.cpu_s = look.cpu_s;
        self.run.rss_peak_bytes = look.rss_peak_bytes;
        self.run.written_bytes = look.write_bytes;
        self.run.phases = aggregate::index_phases(blocks);
        self.run.total = aggregate::index_total(job.plan, blocks);
        "total".clone_into(&mut self.run.total.name);
        self.run.lag_end_s = blocks.last().and_then(|block| {
            let reached_at_s = block.index?.reached_at_s;
            Some((reached_at_s - block.tip_at_s).max(0.0))
        });
        Ok(())
    }

    /// A broken connection often means that the process ended; the error then reports that.
    fn explain(&mut self, node: &mut Process, error: ElectrumError) -> anyhow::Error {
        let process = self.process.as_mut().unwrap_or(node);
        match process.end_soon() {
            Some(death) => anyhow::Error::new(death).context(PROCESS),
            None => anyhow::Error::new(error).context("the index failed when it caught up"),
        }
    }

    pub(crate) fn check(
        &mut self,
        job: &RunJob<'_>,
        checks: &mut Vec<Check>,
    ) -> anyhow::Result<()> {
        let tip = job.chain.blocks.last();
        let header = tip.map(|block| job.chain.read_header(block)).transpose()?;
        let header = header.map(|header| faster_hex::hex_string(&header)).unwrap_or_default();
        let found = self.watch.tip().map(|tip| tip.hex.to_ascii_lowercase());
        checks.push(Check { what: "index: header of the tip".to_owned(), expected: header, found });
        let Some(scripts) = job.scripts else { return Ok(()) };
        let ledger = check_ledger(job, scripts, self.ports)
            .context("the answers of the index could not be compared")?;
        let found = match &ledger.told[..] {
            [] => RIGHT.to_owned(),
            [first, ..] => format!(
                "{} different, {} rejected; first: {first}",
                ledger.differences, ledger.refused
            ),
        };
        checks.push(Check {
            what: format!(
                "index: answers about {} scripts, {} history entries, {} unspent",
                ledger.scripts, ledger.history, ledger.unspent
            ),
            expected: RIGHT.to_owned(),
            found: Some(found),
        });
        job.reporter.line(&format!("  {}", ledger.summary()));
        self.run.ledger = Some(ledger);
        Ok(())
    }

    /// Stops a separate index process, and returns the results.
    pub(crate) fn finish(mut self, is_wanted: bool) -> (IndexRun, Result<(), ProcessError>) {
        // The watch has a connection that a server may wait for.
        drop(self.watch);
        let mut ended = Ok(());
        if let Some(process) = self.process.take() {
            // After a fault the process may have ended, or is not worth waiting for.
            if is_wanted {
                let stopped = process.stop_by_signal();
                self.run.shutdown_s = stopped.as_ref().ok().map(Duration::as_secs_f64);
                ended = stopped.map(|_| ());
            }
            self.run.index_bytes = Some(folder_bytes(&self.dir));
            self.run.timeouts = count_timeouts(&self.log);
        }
        if let Some(sampler) = self.sampler {
            self.run.samples = sampler.finish();
        }
        (self.run, ended)
    }
}

/// Measures disk usage after the node has ended.
pub(crate) fn measure_disk(target: &Target, datadir: &Path, run: &mut IndexRun) {
    if target.has_own_index() {
        let (index_bytes, node_bytes) = Target::own_index_bytes(datadir);
        (run.index_bytes, run.node_bytes) = (Some(index_bytes), Some(node_bytes));
    } else {
        let all = folder_bytes(datadir);
        run.node_bytes = Some(all.saturating_sub(folder_bytes(&datadir.join("index"))));
    }
}

const RIGHT: &str = "0 different, 0 rejected";

/// Scripts between two progress events.
const SCRIPTS_PER_STEP: u64 = 1000;

fn check_ledger(job: &RunJob<'_>, scripts: &Path, ports: Ports) -> anyhow::Result<LedgerCheck> {
    let file = ScriptsFile::open(scripts)?;
    let header = file.header().clone();
    let mut client = Client::connect(ports.electrum_address(), ANSWER_TIMEOUT)?;
    client.hello()?;
    let mut progress = |done: u64| {
        let of = header.scripts;
        if done.is_multiple_of(SCRIPTS_PER_STEP) || done == of {
            job.reporter.step(&format!("comparing answers: {done} of {of} scripts"));
        }
        !job.reporter.wants_stop()
    };
    let mut check = compare(&mut client, file, header.tip_height, &mut progress)?;
    check.scripts_total = header.scripts_total;
    check.sample_seed = header.sample_seed;
    Ok(check)
}

fn count_timeouts(log: &Path) -> Option<u64> {
    let text = fs::read(log).ok()?;
    let text = String::from_utf8_lossy(&text);
    Some(text.matches(TIMEOUT_WORDS).count() as u64)
}
