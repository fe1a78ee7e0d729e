//! Syncs from a UTXO snapshot: every target loads it once into a data folder that is copied for each of its runs.
//!
//! The target itself loads it (`loadtxoutset`) and decides whether that is allowed, since programs contain the hashes of accepted
//! snapshots. Its error is part of the results, and the other targets continue without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use assay_ledger::BlockLine;
use assay_report::atomic_file::{self, WriteError};
use serde::{Deserialize, Serialize};

use super::{PAUSE, RunJob, RunOptions, prepare, start_unmeasured, stopped, sync_launch};
use crate::chain::{Chain, ChainSnapshot};
use crate::machine::disk::renew_folder;
use crate::plan::{Delivery, Plan};
use crate::process::rpc::{Client, RpcError, read_result};
use crate::process::{Ports, Process};
use crate::progress::{Event, Reporter};
use crate::results::{SnapshotLoad, UnableTarget};
use crate::target::{DeliveryMethod, Family, SyncLaunch, Target};

/// Exceeds every node's time, but ends a lost connection.
const LOAD_TIMEOUT: Duration = Duration::from_hours(24);

#[derive(Default)]
pub(super) struct Start {
    /// Of each target, if there is a snapshot.
    pub(super) loads: Vec<SnapshotLoad>,
    pub(super) unable: Vec<UnableTarget>,
}

/// Lets every target load the snapshot, and removes those that cannot.
pub(super) fn load(
    plan: &Plan,
    targets: &mut Vec<Target>,
    options: &RunOptions,
    reporter: &dyn Reporter,
) -> anyhow::Result<Start> {
    let mut start = Start::default();
    let Some(snapshot) = &options.snapshot else { return Ok(start) };
    let by = plan.feed.by;
    // Nodes that read all block files cannot use it.
    ensure!(
        by == Delivery::Peer,
        "--from-snapshot goes with blocks from a peer (--by peer), not with {}",
        by.as_str()
    );
    atomic_file::create_folder(&options.out_dir.join("logs"))?;
    let whole = Chain::open(options.chain_dir.as_deref().unwrap_or(&options.out_dir))?;
    let loader = Loader { plan, whole: &whole, snapshot, out_dir: &options.out_dir, reporter };
    let mut able = Vec::new();
    for target in targets.drain(..) {
        target.check_chain(&whole.header.chain)?;
        match loader.load(&target).map_err(anyhow::Error::downcast) {
            Ok(load) => {
                start.loads.push(load);
                able.push(target);
            }
            Err(Ok(Unable(why))) => {
                let Target { name, version, .. } = target;
                reporter.line(&format!("left out: {name} cannot begin with the snapshot: {why}"));
                start.unable.push(UnableTarget { name, version, why });
            }
            Err(Err(fault)) => {
                let name = &target.name;
                return Err(
                    fault.context(format!("{name} failed when it was to load the snapshot"))
                );
            }
        }
    }
    *targets = able;
    if targets.is_empty() {
        let reason = |target: &UnableTarget| format!("{}: {}", target.name, target.why);
        let reasons = start.unable.iter().map(reason).collect::<Vec<_>>().join("; ");
        bail!("no target can begin with the snapshot {}: {reasons}", snapshot.path.display());
    }
    Ok(start)
}

struct Loader<'a> {
    plan: &'a Plan,
    /// The whole chain: nodes need the headers below the snapshot.
    whole: &'a Chain,
    snapshot: &'a ChainSnapshot,
    out_dir: &'a Path,
    reporter: &'a dyn Reporter,
}

/// Reason for which a target cannot begin with the snapshot.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Unable(String);

/// Contents of a folder, the program that created it, and the time taken.
#[derive(Serialize, Deserialize)]
struct Mark {
    what: String,
    load: SnapshotLoad,
}

impl Loader<'_> {
    /// Lets a target load the snapshot, unless it already has.
    fn load(&self, target: &Target) -> anyhow::Result<SnapshotLoad> {
        let why = match (target.family, target.method(self.plan.feed.by)) {
            (Family::Engine | Family::Kernel, _) => "it reads block files from the first block on",
            (Family::Btcd, _) => "btcd has no loadtxoutset",
            (_, Ok(DeliveryMethod::Peer)) => return self.load_into_folder(target),
            _ => "a snapshot goes with blocks from a peer",
        };
        bail!(Unable(why.to_owned()))
    }

    fn load_into_folder(&self, target: &Target) -> anyhow::Result<SnapshotLoad> {
        let folder = folder(self.out_dir, target);
        let path = folder.with_extension("json");
        let what = format!("{} {:?}", self.snapshot.hash, target.fingerprint);
        let mark = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Mark>(&text).ok());
        if let Some(mark) = mark.filter(|mark| mark.what == what && folder.is_dir()) {
            return Ok(mark.load);
        }
        renew_folder(&folder)?;
        let (name, coins) = (&target.name, self.snapshot.coins);
        let status = format!("{name} loads the snapshot of {coins} coins");
        self.reporter.event(&Event::Status(&status));
        let filled = self.fill(target, &folder.canonicalize().unwrap_or_else(|_| folder.clone()));
        if filled.as_ref().is_err_and(anyhow::Error::is::<Unable>) {
            let _ = fs::remove_dir_all(&folder);
        }
        let load = filled?;
        self.reporter.line(&format!("{name} has loaded the snapshot in {:.1} s", load.load_s));
        atomic_file::write(&path, &serde_json::to_vec(&Mark { what, load })?)?;
        Ok(load)
    }

    /// Starts an isolated node, submits the headers up to the snapshot's block, and then loads the snapshot.
    fn fill(&self, target: &Target, folder: &Path) -> anyhow::Result<SnapshotLoad> {
        let ports = Ports::free()?;
        let with = SyncLaunch {
            assumed: None,
            is_own: true,
            ..sync_launch(self.whole, self.plan, folder, &ports)
        };
        let log = self.out_dir.join("logs").join(format!("snapshot-{}.log", target.name));
        let (process, client, _) = start_unmeasured(target, DeliveryMethod::Rpc, &with, &log)?;
        let outcome = self.give_headers(&client).and_then(|()| self.call(&process, &client));
        let load_s = match outcome {
            Err(error) if !error.is::<Unable>() => return Err(error),
            outcome => outcome,
        };
        // Of a target that is unable the time does not matter, but its files must be removed.
        let stop_s = process.stop(&client)?.as_secs_f64();
        Ok(SnapshotLoad { load_s: load_s?, stop_s })
    }

    fn give_headers(&self, client: &Client) -> anyhow::Result<()> {
        let help: Result<String, RpcError> = client.call("help", r#"["loadtxoutset"]"#);
        if !help.is_ok_and(|text| text.starts_with("loadtxoutset")) {
            let why = "this program has no loadtxoutset (Bitcoin Core has it from 26 on)";
            bail!(Unable(why.to_owned()));
        }
        let base = self.snapshot.height as usize;
        for block in self.whole.blocks.iter().take(base) {
            if self.reporter.wants_stop() {
                return Err(stopped(block.height));
            }
            self.give_header(client, block)?;
        }
        Ok(())
    }

    fn give_header(&self, client: &Client, block: &BlockLine) -> anyhow::Result<()> {
        let header = self.whole.read_header(block)?;
        let params = format!(r#"["{}"]"#, faster_hex::hex_string(&header));
        let height = block.height;
        let given = client.call::<serde::de::IgnoredAny>("submitheader", &params);
        given.map(drop).map_err(|error| match error {
            RpcError::Node { message, .. } => {
                Unable(format!("it rejects the header of block {height}: {message}")).into()
            }
            error => anyhow::Error::new(error).context(format!("after height {height}")),
        })
    }

    /// Calls `loadtxoutset`, which may take an hour; returns its duration in seconds.
    fn call(&self, process: &Process, client: &Client) -> anyhow::Result<f64> {
        let path = self.snapshot.path.to_string_lossy();
        let path = serde_json::to_string(&path)?;
        let body = format!(
            r#"{{"jsonrpc":"1.0","id":"assay-lab","method":"loadtxoutset","params":[{path}]}}"#
        );
        let start = Instant::now();
        let reply = thread::scope(|scope| {
            let call = || client.post("loadtxoutset", body.as_bytes(), Some(LOAD_TIMEOUT));
            let call = scope.spawn(call);
            while !call.is_finished() {
                if self.reporter.wants_stop() {
                    // The node ends, and the call with it.
                    process.terminate();
                    break;
                }
                thread::sleep(PAUSE);
            }
            call.join()
        });
        let height = self.snapshot.height;
        if self.reporter.wants_stop() {
            return Err(stopped(height));
        }
        let reply = reply.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let loaded =
            reply.and_then(|reply| read_result::<serde::de::IgnoredAny>("loadtxoutset", &reply));
        loaded.map_err(|error| match error {
            RpcError::Node { message, .. } => Unable(message).into(),
            error => anyhow::Error::new(error).context("after height 0"),
        })?;
        let load_s = start.elapsed().as_secs_f64();
        let at: u64 =
            client.call("getblockcount", "[]").with_context(|| format!("after height {height}"))?;
        ensure!(at >= height.into(), Unable(format!("it is at height {at} after loadtxoutset")));
        Ok(load_s)
    }
}

/// Data folder with the loaded snapshot.
fn folder(out_dir: &Path, target: &Target) -> PathBuf {
    out_dir.join("work").join(format!("snapshot-{}", target.name))
}

impl RunJob<'_> {
    /// Copies the folder with the loaded snapshot; returns the number of bytes.
    pub(super) fn place_snapshot(&self, datadir: &Path) -> Result<u64, WriteError> {
        prepare::copy(&folder(self.out_dir, self.target), datadir)
    }
}
