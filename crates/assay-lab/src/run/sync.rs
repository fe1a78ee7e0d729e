//! One run of a sync: a target that syncs at its own pace, observed from outside.
//!
//! The clock of the first block starts with the process. The height of a target that fetches blocks is polled every few
//! milliseconds; a program that reads block files prints heights, which are timestamped on reading. Several new blocks in one
//! observation share the time and the CPU time since the observation of their predecessor.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use assay_report::atomic_file::WriteError;
use assay_report::child;
use serde::Deserialize;

use super::RunJob;
use super::fault::RunFault;
use super::one::{Findings, Place};
use super::source::RunningSource;
use super::verify::{self, Coins, EndState};
use crate::chain::Chain;
use crate::machine::clock::Clock;
use crate::machine::disk::{self, DiskUse};
use crate::process::Process;
use crate::process::rpc::{Client, RpcError};
use crate::process::sample::{self, Sampler};
use crate::progress::Event;
use crate::results::{BlockDisk, BlockRecord, Check, WholeProcess};
use crate::target::{DeliveryMethod, Family, SyncLaunch};

/// Used fields of `assay validate --json`.
#[derive(Deserialize)]
struct ValidateOutput {
    end: String,
    tip_height: u32,
    tip_hash: String,
    utxo: Option<ValidateCoins>,
    scan_s: f64,
    connect_s: f64,
    hash_s: f64,
}

#[derive(Deserialize)]
struct ValidateCoins {
    txouts: u64,
    amount_sat: u64,
    muhash: String,
}

/// A line of the kernel wrapper's `validate --json`, or of `assay validate --json --progress`.
#[derive(Deserialize)]
struct HeightLine {
    kind: String,
    #[serde(default)]
    versions: Option<String>,
    #[serde(default)]
    height: u32,
    #[serde(default)]
    hash: String,
    #[serde(default)]
    elapsed_s: f64,
}

/// Output of the kernel wrapper's `coins --json`.
#[derive(Deserialize)]
struct CoinsLine {
    coins: u64,
    amount_sat: u64,
    muhash: String,
    best_block: String,
}

/// Converts observed heights to block records.
struct Progress<'a, 'b> {
    job: &'a RunJob<'b>,
    clock: Clock,
    pid: u32,
    /// Time of the last new height; initially the start of the process.
    last_at_s: f64,
    last_cpu_s: Option<f64>,
    last_disk: Option<DiskUse>,
}

impl<'a, 'b> Progress<'a, 'b> {
    const fn new(job: &'a RunJob<'b>, clock: Clock, pid: u32, start_s: f64) -> Self {
        let last_disk = Some(DiskUse { read_bytes: 0, written_bytes: 0 });
        Self { job, clock, pid, last_at_s: start_s, last_cpu_s: Some(0.0), last_disk }
    }

    /// Disk usage since the last new height.
    fn disk_since_last(&mut self) -> Option<BlockDisk> {
        let now = disk::of_process(self.pid);
        let before = std::mem::replace(&mut self.last_disk, now)?;
        Some(BlockDisk { service: now?.since(before), between: DiskUse::default() })
    }

    /// Records that the target is at `height`; returns true at the tip.
    fn seen(&mut self, height: u64, blocks: &mut Vec<BlockRecord>) -> bool {
        let chain = self.job.chain;
        let now_s = self.clock.now_s();
        let height = height.saturating_sub(chain.base().into());
        let height = usize::try_from(height).unwrap_or(usize::MAX).min(chain.blocks.len());
        let cpu_s = sample::cpu_s(self.pid);
        if height > blocks.len() {
            let new = &chain.blocks[blocks.len()..height];
            let share = |time_s: f64| round_us(time_s / new.len() as f64);
            let service_s = share(now_s - self.last_at_s);
            let cpu = cpu_s.zip(self.last_cpu_s).map(|(now, last)| share((now - last).max(0.0)));
            let mut disk = self.disk_since_last();
            for entry in new {
                let record = BlockRecord {
                    height: entry.height,
                    phase: entry.phase.to_string(),
                    txs: entry.txs,
                    inputs: entry.inputs,
                    outputs: entry.outputs,
                    bytes: entry.bytes,
                    signatures: entry.signatures,
                    txs_sent: 0,
                    txs_accepted: 0,
                    txs_sent_bytes: 0,
                    txs_in_mempool: 0,
                    orphans: 0,
                    first_tx_at_s: None,
                    last_tx_at_s: None,
                    send_at_s: round_us(self.last_at_s),
                    reply_at_s: round_us(self.last_at_s + service_s),
                    tip_at_s: round_us(now_s),
                    service_s,
                    queue_s: 0.0,
                    cpu_s: cpu,
                    disk,
                    index: None,
                    relay: None,
                };
                let phase = self.job.plan.phase_title(&record.phase);
                self.job.reporter.event(&Event::Block { block: &record, phase });
                blocks.push(record);
                // The first of several new blocks carries all of it.
                disk = disk.map(|_| BlockDisk::default());
            }
            self.last_at_s = now_s;
            self.last_cpu_s = cpu_s;
        }
        blocks.len() == chain.blocks.len()
    }

    /// Checks for conditions that end an incomplete run.
    fn check(&self, blocks: &[BlockRecord], process: &Process) -> Result<(), RunFault> {
        let height = blocks.last().map_or(self.job.chain.base(), |block| block.height);
        if self.job.reporter.wants_stop() {
            return Err(RunFault::Interrupted { height });
        }
        let seconds = self.job.plan.feed.block_timeout_s;
        if self.clock.now_s() - self.last_at_s > seconds as f64 {
            return Err(RunFault::Stalled { height, seconds, log_tail: process.log_tail() });
        }
        Ok(())
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(self.job.plan.sync.poll_ms)
    }
}

impl RunJob<'_> {
    /// Executes a run in which the target syncs at its own pace.
    pub(crate) fn sync(&self, place: &Place<'_>, findings: &mut Findings) -> Result<(), RunFault> {
        let source = match self.source {
            Some(source) if self.method == DeliveryMethod::Peer => {
                let log = place.log.with_extension("source.log");
                let started = source.start(self.plan.sync.rate_mb_s, &log);
                Some(started.map_err(|source| RunFault::Source { source })?)
            }
            _ => None,
        };
        let result = self.sync_from(place, source.as_ref(), findings);
        let stopped = source.map_or(Ok(()), RunningSource::stop);
        result.and(stopped.map_err(|source| RunFault::Source { source }))
    }

    fn sync_from(
        &self,
        place: &Place<'_>,
        source: Option<&RunningSource>,
        findings: &mut Findings,
    ) -> Result<(), RunFault> {
        let blocks = self.chain.blocks_path();
        let launch = self.target.launch_sync(
            self.method,
            &SyncLaunch {
                chain: &self.chain.header.chain,
                activation: &self.chain.header.activation,
                plan: self.plan,
                datadir: place.datadir,
                ports: &place.ports,
                source: source.map_or(0, |source| source.port),
                blocks: &blocks.canonicalize().unwrap_or(blocks),
                assumed: self.chain.assumed_by(self.plan),
                is_own: self.chain.header.files.is_some(),
                stop_height: self.chain.stops_at(),
            },
        );
        self.target
            .write_credentials(&launch, place.datadir)
            .map_err(|source| WriteError { path: place.datadir.to_owned(), source })?;
        let launch = self.profiled(launch);
        let node_log = launch.node_log.clone();
        // Preparation, including the source, is not the target's time.
        let clock = Clock::start();
        let start_s = clock.now_s();
        let mut process = Process::start(launch, place.ports.rpc, place.log)?;
        process.command().clone_into(&mut findings.command);
        let sampler = Sampler::start(process.pid(), clock);
        let progress = Progress::new(self, clock, process.pid(), start_s);
        let outcome = match self.method {
            DeliveryMethod::Files => self.read_files(progress, process, place, findings),
            _ => self
                .fetch(progress, start_s, &mut process, findings)
                .and_then(|client| self.stop(process, &client)),
        };
        findings.samples = sampler.finish();
        if let Some(node_log) = node_log {
            // Best effort: the node may have no log, or the disk may be full.
            let _ = fs::copy(node_log, place.log.with_extension("debug.log"));
        }
        findings.shutdown_s = Some(outcome?);
        Ok(())
    }

    fn stop(&self, process: Process, client: &Client) -> Result<f64, RunFault> {
        self.reporter.step("stopping");
        Ok(process.stop(client)?.as_secs_f64())
    }

    /// Polls a node's height until it is at the tip, then queries its end state.
    fn fetch(
        &self,
        mut progress: Progress<'_, '_>,
        start_s: f64,
        process: &mut Process,
        findings: &mut Findings,
    ) -> Result<Client, RunFault> {
        let (credentials, info) = process.wait_answer(Duration::from_millis(5))?;
        let startup_s = progress.clock.now_s() - start_s;
        findings.startup_s = Some(startup_s);
        self.reporter.step("ready");
        let client = process.client(&credentials);
        let mut height = info.blocks;
        while !progress.seen(height, &mut findings.blocks) {
            progress.check(&findings.blocks, process)?;
            thread::sleep(progress.pause());
            height = client
                .call("getblockcount", "[]")
                .map_err(|error| self.broken(error, &findings.blocks, process))?;
        }
        self.reporter.step("comparing end state");
        let has_muhash = self.plan.sync.muhash.includes(self.repeat);
        let end = verify::end_state(&client, self.chain, self.coins, has_muhash);
        findings.end = end.map_err(|error| match process.death(&error) {
            Some(source) => RunFault::DiedAtEnd { source },
            None => RunFault::EndState { source: error },
        })?;
        Ok(client)
    }

    fn broken(&self, error: RpcError, blocks: &[BlockRecord], process: &mut Process) -> RunFault {
        let height = blocks.last().map_or(self.chain.base(), |block| block.height);
        if self.reporter.wants_stop() {
            return RunFault::Interrupted { height };
        }
        match process.death(&error) {
            Some(source) => self.died(height, source),
            None => RunFault::Height { height, source: error },
        }
    }

    fn died(&self, height: u32, source: crate::process::ProcessError) -> RunFault {
        let next = self.chain.blocks.get(height.saturating_sub(self.chain.base()) as usize);
        let phase = next.map_or("after the last".to_owned(), |block| block.phase.to_string());
        RunFault::Died { height: height + 1, of: self.chain.tip.height, phase, source }
    }

    /// Follows a program that reads the block files to its end; returns its working time after the tip.
    fn read_files(
        &self,
        mut progress: Progress<'_, '_>,
        mut process: Process,
        place: &Place<'_>,
        findings: &mut Findings,
    ) -> Result<f64, RunFault> {
        let mut output = Output::new(process.stdout());
        let mut versions = None;
        loop {
            // Checked first, so that its last output is read.
            let ended = process.ended();
            for line in output.lines(ended.is_some()) {
                let Ok(line) = serde_json::from_str::<HeightLine>(&line) else { continue };
                versions = line.versions.or(versions);
                if matches!(line.kind.as_str(), "height" | "end") {
                    progress.seen(line.height.into(), &mut findings.blocks);
                }
            }
            match ended {
                Some(Ok(())) => break,
                Some(Err(source)) => {
                    let height = findings.blocks.last().map_or(0, |block| block.height);
                    if self.reporter.wants_stop() {
                        return Err(RunFault::Interrupted { height });
                    }
                    return Err(self.died(height, source));
                }
                None => {
                    progress.check(&findings.blocks, &process)?;
                    // Returns at once when it ends.
                    process.wait(progress.pause());
                }
            }
        }
        let end_s = progress.clock.now_s();
        self.reporter.step("comparing end state");
        let (connect_s, hash_s) = if self.target.family == Family::Kernel {
            let connect_s;
            (findings.end, connect_s) = self.kernel_end(&output, place)?;
            (connect_s, None)
        } else {
            let report: ValidateOutput = output.report()?;
            findings.end = self.our_end(&report);
            // A build that prints no heights: all its blocks share the whole time.
            progress.clock = progress.clock.shifted_back(report.hash_s);
            progress.seen(report.tip_height.into(), &mut findings.blocks);
            (report.scan_s + report.connect_s, Some(report.hash_s))
        };
        let whole = |usage| WholeProcess { usage, connect_s, hash_s, versions };
        findings.process = process.usage().map(whole);
        Ok((end_s - progress.last_at_s - hash_s.unwrap_or_default()).max(0.0))
    }

    /// The kernel stores its coins in its own database, which a second process reads afterwards, together with the time of the
    /// last connected block by its own clock.
    fn kernel_end(&self, output: &Output, place: &Place<'_>) -> Result<(EndState, f64), RunFault> {
        let end = output.last_line().ok_or(RunFault::Output { source: None })?;
        let end: HeightLine = serde_json::from_str(end)?;
        let mut command = Command::new(self.target.program());
        command.args(["coins", "--datadir"]).arg(place.datadir).arg("--json");
        let coins = child::output(&mut command)
            .map_err(|source| WriteError { path: PathBuf::from(self.target.program()), source })?;
        let coins: CoinsLine = serde_json::from_slice(&coins.stdout)?;
        let mut state = end_of(self.chain, &end.hash, end.height);
        state.checks.push(check("block of its coins", &self.chain.tip.hash, &coins.best_block));
        self.add_coins(&mut state, (coins.coins, coins.amount_sat, coins.muhash));
        Ok((state, end.elapsed_s))
    }

    fn our_end(&self, report: &ValidateOutput) -> EndState {
        let mut state = end_of(self.chain, &report.tip_hash, report.tip_height);
        let whole = if self.chain.stops_at().is_some() { "stop-height" } else { "complete" };
        state.checks.push(check("end", whole, &report.end));
        if let Some(coins) = &report.utxo {
            let coins = (coins.txouts, coins.amount_sat, coins.muhash.clone());
            self.add_coins(&mut state, coins);
        }
        state
    }

    fn add_coins(&self, state: &mut EndState, (count, amount, muhash): (u64, u64, String)) {
        let (count, amount) = (Some(count), Some(amount));
        let found = Coins { muhash: Some(muhash), count, amount, reported_by: None };
        state.checks.extend(self.coins.checks(&found));
        state.utxo_muhash = found.muhash;
    }
}

fn end_of(chain: &Chain, tip: &str, height: u32) -> EndState {
    let checks = vec![
        check("tip", &chain.tip.hash, tip),
        check("height", &chain.tip.height.to_string(), &height.to_string()),
    ];
    EndState { tip: Some(tip.to_owned()), utxo_muhash: None, checks }
}

fn check(what: &str, expected: &str, found: &str) -> Check {
    Check { what: what.to_owned(), expected: expected.to_owned(), found: Some(found.to_owned()) }
}

/// Incrementally read output of a program.
struct Output {
    path: PathBuf,
    read: u64,
    text: String,
    /// Offset of the first unreturned line.
    next: usize,
}

impl Output {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), read: 0, text: String::new(), next: 0 }
    }

    /// New lines; unterminated ones only at the end.
    fn lines(&mut self, is_end: bool) -> Vec<String> {
        // Unreadable output is read later; at the end a missing report is an error.
        let _ = self.read_more();
        let fresh = &self.text[self.next..];
        let end = if is_end { fresh.len() } else { fresh.rfind('\n').map_or(0, |at| at + 1) };
        self.next += end;
        fresh[..end].lines().map(str::to_owned).collect()
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // The last character may be incomplete; all relevant output is ASCII.
        self.read += bytes.len() as u64;
        self.text.push_str(&String::from_utf8_lossy(&bytes));
        Ok(())
    }

    fn last_line(&self) -> Option<&str> {
        self.text.lines().rfind(|line| line.starts_with('{'))
    }

    /// Output after the lines with heights.
    fn report<'a, T: Deserialize<'a>>(&'a self) -> Result<T, RunFault> {
        let start = self.text.rfind("\n{\n").map_or(0, |at| at + 1);
        Ok(serde_json::from_str(&self.text[start..])?)
    }
}

fn round_us(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_read_line_by_line() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("out");
        let mut output = Output::new(&path);
        assert!(output.lines(false).is_empty(), "no file yet");
        fs::write(&path, "{\"kind\":\"height\",\"height\":1}\n{\"kind\":").expect("writable");
        assert_eq!(output.lines(false), ["{\"kind\":\"height\",\"height\":1}"]);
        let text = "{\"kind\":\"height\",\"height\":1}\n{\"kind\":\"height\",\"height\":2}\n{\n  \"x\": 7\n}\n";
        fs::write(&path, text).expect("writable");
        let lines = output.lines(true);
        assert_eq!(lines[0], "{\"kind\":\"height\",\"height\":2}");
        let report: std::collections::BTreeMap<String, u32> = output.report().expect("JSON");
        assert_eq!(report["x"], 7);
        assert_eq!(output.last_line(), Some("{"));
    }
}
