//! One run of a sync: a target that syncs at its own pace, observed from outside.
//!
//! The clock of the first block starts with the process. The height of a target that fetches blocks is polled every few
//! milliseconds; a program that reads block files prints heights, which are timestamped on reading. Several new blocks in one
//! observation share the time and the CPU time since the observation of their predecessor.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use assay_report::child;
use serde::Deserialize;

use super::one::Place;
use super::source::RunningSource;
use super::verify::{Coins, EndState, check};
use super::{RunJob, check_stall, launch_sync, stopped, sync_launch};
use crate::machine::clock::Clock;
use crate::machine::disk::{self, DiskUse};
use crate::process::rpc::{Client, RpcError};
use crate::process::sample;
use crate::process::{Process, ProcessError};
use crate::progress::Event;
use crate::results::{BlockDisk, BlockRecord, Run, WholeProcess};
use crate::target::{DeliveryMethod, Family, SyncLaunch};

const SOURCE: &str = "the source of blocks";
const OUTPUT: &str = "the target printed no such JSON as expected";

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
                    send_at_s: round_us(self.last_at_s),
                    reply_at_s: round_us(self.last_at_s + service_s),
                    tip_at_s: round_us(now_s),
                    service_s,
                    cpu_s: cpu,
                    disk,
                    ..BlockRecord::of(entry)
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
    fn check(&self, blocks: &[BlockRecord], process: &Process) -> anyhow::Result<()> {
        let height = blocks.last().map_or(self.job.chain.base(), |block| block.height);
        if self.job.reporter.wants_stop() {
            return Err(stopped(height));
        }
        let waited_s = self.clock.now_s() - self.last_at_s;
        check_stall(self.job.plan, height, waited_s, process)
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(self.job.plan.sync.poll_ms)
    }
}

impl RunJob<'_> {
    /// Executes a run in which the target syncs at its own pace.
    pub(crate) fn sync(&self, place: &Place<'_>, run: &mut Run) -> anyhow::Result<()> {
        let source = match self.source {
            Some(source) if self.method == DeliveryMethod::Peer => {
                let log = place.log.with_extension("source.log");
                let started = source.start(self.plan.sync.rate_mb_s, &log);
                Some(started.context(SOURCE)?)
            }
            _ => None,
        };
        let result = self.sync_from(place, source.as_ref(), run);
        let stopped = source.map_or(Ok(()), RunningSource::stop);
        result.and_then(|()| stopped.context(SOURCE))
    }

    fn sync_from(
        &self,
        place: &Place<'_>,
        source: Option<&RunningSource>,
        run: &mut Run,
    ) -> anyhow::Result<()> {
        let blocks = self.chain.blocks_path();
        let with = SyncLaunch {
            source: source.map_or(0, |source| source.port),
            blocks: &blocks.canonicalize().unwrap_or(blocks),
            stop_height: self.chain.stops_at(),
            ..sync_launch(self.chain, self.plan, place.datadir, &place.ports)
        };
        let launch = launch_sync(self.target, self.method, &with)?;
        // Preparation, including the source, is not the target's time.
        let clock = Clock::start();
        self.with_process(launch, clock, place, run, |mut process, start_s, run| {
            let progress = Progress::new(self, clock, process.pid(), start_s);
            if self.method == DeliveryMethod::Files {
                return self.read_files(progress, process, place, run);
            }
            let client = self.fetch(progress, start_s, &mut process, run)?;
            self.stop(process, &client)
        })
    }

    /// Polls a node's height until it is at the tip, then queries its end state.
    fn fetch(
        &self,
        mut progress: Progress<'_, '_>,
        start_s: f64,
        process: &mut Process,
        run: &mut Run,
    ) -> anyhow::Result<Client> {
        let (credentials, info) = process.wait_answer(Duration::from_millis(5))?;
        run.startup_s = Some(progress.clock.now_s() - start_s);
        self.reporter.step("ready");
        let client = process.client(&credentials);
        let mut height = info.blocks;
        while !progress.seen(height, &mut run.blocks) {
            progress.check(&run.blocks, process)?;
            thread::sleep(progress.pause());
            height = client
                .call("getblockcount", "[]")
                .map_err(|error| self.broken(error, &run.blocks, process))?;
        }
        let has_muhash = self.plan.sync.muhash.includes(self.repeat);
        self.end_state(&client, process, has_muhash)?.store(run);
        Ok(client)
    }

    fn broken(
        &self,
        error: RpcError,
        blocks: &[BlockRecord],
        process: &mut Process,
    ) -> anyhow::Error {
        let height = blocks.last().map_or(self.chain.base(), |block| block.height);
        if self.reporter.wants_stop() {
            return stopped(height);
        }
        match process.death(&error) {
            Some(death) => self.died_after(height, death),
            None => anyhow::Error::new(error).context(format!("after height {height}")),
        }
    }

    fn died_after(&self, height: u32, death: ProcessError) -> anyhow::Error {
        let next = self.chain.blocks.get(height.saturating_sub(self.chain.base()) as usize);
        let phase = next.map_or("after the last".to_owned(), |block| block.phase.to_string());
        self.died(height + 1, &phase, death)
    }

    /// Follows a program that reads the block files to its end; returns its working time after the tip.
    fn read_files(
        &self,
        mut progress: Progress<'_, '_>,
        mut process: Process,
        place: &Place<'_>,
        run: &mut Run,
    ) -> anyhow::Result<f64> {
        let mut output = Output::new(process.stdout());
        let mut versions = None;
        loop {
            // Checked first, so that its last output is read.
            let ended = process.ended();
            for line in output.lines(ended.is_some()) {
                let Ok(line) = serde_json::from_str::<HeightLine>(&line) else { continue };
                versions = line.versions.or(versions);
                if matches!(line.kind.as_str(), "height" | "end") {
                    progress.seen(line.height.into(), &mut run.blocks);
                }
            }
            match ended {
                Some(Ok(())) => break,
                Some(Err(death)) => {
                    let height = run.blocks.last().map_or(0, |block| block.height);
                    if self.reporter.wants_stop() {
                        return Err(stopped(height));
                    }
                    return Err(self.died_after(height, death));
                }
                None => {
                    progress.check(&run.blocks, &process)?;
                    // Returns at once when it ends.
                    process.wait(progress.pause());
                }
            }
        }
        let end_s = progress.clock.now_s();
        self.reporter.step("comparing end state");
        let (connect_s, hash_s) = if self.target.family == Family::Kernel {
            let (end, connect_s) = self.kernel_end(&output, place)?;
            end.store(run);
            (connect_s, None)
        } else {
            let report: ValidateOutput = output.report()?;
            // A build that prints no heights: all its blocks share the whole time.
            progress.clock = progress.clock.shifted_back(report.hash_s);
            progress.seen(report.tip_height.into(), &mut run.blocks);
            let times = (report.scan_s + report.connect_s, Some(report.hash_s));
            self.our_end(report).store(run);
            times
        };
        let whole = |usage| WholeProcess { usage, connect_s, hash_s, versions };
        run.process = process.usage().map(whole);
        Ok((end_s - progress.last_at_s - hash_s.unwrap_or_default()).max(0.0))
    }

    /// The kernel stores its coins in its own database, which a second process reads afterwards, together with the time of the
    /// last connected block by its own clock.
    fn kernel_end(&self, output: &Output, place: &Place<'_>) -> anyhow::Result<(EndState, f64)> {
        let end = output.last_line().ok_or_else(|| anyhow!(OUTPUT))?;
        let end: HeightLine = serde_json::from_str(end).context(OUTPUT)?;
        let program = self.target.program();
        let mut command = Command::new(program);
        command.args(["coins", "--datadir"]).arg(place.datadir).arg("--json");
        let coins = child::output(&mut command)
            .with_context(|| format!("cannot run {}", program.display()))?;
        let coins: CoinsLine = serde_json::from_slice(&coins.stdout).context(OUTPUT)?;
        let mut state = EndState::at(self.chain, end.hash, end.height.into());
        let (expected, found) = (&self.chain.tip.hash, Some(coins.best_block));
        state.checks.push(check("block of its coins", expected, found));
        self.add_coins(&mut state, (coins.coins, coins.amount_sat, coins.muhash));
        Ok((state, end.elapsed_s))
    }

    fn our_end(&self, report: ValidateOutput) -> EndState {
        let mut state = EndState::at(self.chain, report.tip_hash, report.tip_height.into());
        let whole = if self.chain.stops_at().is_some() { "stop-height" } else { "complete" };
        state.checks.push(check("end", whole, Some(report.end)));
        if let Some(coins) = report.utxo {
            self.add_coins(&mut state, (coins.txouts, coins.amount_sat, coins.muhash));
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
    fn report<'a, T: Deserialize<'a>>(&'a self) -> anyhow::Result<T> {
        let start = self.text.rfind("\n{\n").map_or(0, |at| at + 1);
        serde_json::from_str(&self.text[start..]).context(OUTPUT)
    }
}

fn round_us(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use std::fs;

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
