//! Syncs from a UTXO snapshot: every target loads it once into a data folder that is copied for each of its runs.
//!
//! The target itself loads it (`loadtxoutset`) and decides whether that is allowed, since programs contain the hashes of accepted
//! snapshots. Its error is part of the results, and the other targets continue without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use assay_ledger::BlockLine;
use assay_report::atomic_file::{self, WriteError};
use serde::{Deserialize, Serialize};

use super::RunJob;
use super::fault::RunFault;
use super::{LabError, RunOptions, prepare};
use crate::chain::{Chain, ChainSnapshot};
use crate::forge::ForgeError;
use crate::plan::{Delivery, Plan};
use crate::process::rpc::{Client, RpcError};
use crate::process::{Ports, Process};
use crate::progress::{Event, Reporter};
use crate::results::{SnapshotLoad, UnableTarget};
use crate::target::{DeliveryMethod, Family, SyncLaunch, Target};

/// Poll interval of an unmeasured node.
const PAUSE: Duration = Duration::from_millis(20);
/// Exceeds every node's time, but ends a lost connection.
const LOAD_TIMEOUT: Duration = Duration::from_hours(24);

/// Initial state of the targets.
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
) -> Result<Start, LabError> {
    let mut start = Start::default();
    let Some(snapshot) = &options.snapshot else { return Ok(start) };
    if plan.feed.by != Delivery::Peer {
        return Err(LabError::SnapshotBy { by: plan.feed.by.as_str() });
    }
    atomic_file::create_folder(&options.out_dir.join("logs"))?;
    let dir = options.chain_dir.as_deref().unwrap_or(&options.out_dir);
    let whole = Chain::open(dir).map_err(ForgeError::Chain)?;
    let out_dir = &options.out_dir;
    let loader = Loader { plan, whole: &whole, snapshot, out_dir, reporter };
    let mut able = Vec::new();
    for target in targets.drain(..) {
        target.check_chain(&whole.header.chain)?;
        let failed = |source| {
            let (target, source) = (target.name.clone(), Box::new(source));
            LabError::Snapshot { target, source }
        };
        match loader.load(&target).map_err(failed)? {
            Loaded::Yes(load) => {
                start.loads.push(load);
                able.push(target);
            }
            Loaded::No(why) => {
                let Target { name, version, .. } = target;
                reporter.line(&format!("left out: {name} cannot begin with the snapshot: {why}"));
                start.unable.push(UnableTarget { name, version, why });
            }
        }
    }
    *targets = able;
    if targets.is_empty() {
        let reason = |target: &UnableTarget| format!("{}: {}", target.name, target.why);
        let reasons = start.unable.iter().map(reason).collect::<Vec<_>>().join("; ");
        return Err(LabError::SnapshotUnable { path: snapshot.path.clone(), reasons });
    }
    Ok(start)
}

/// Loads the snapshot into targets.
struct Loader<'a> {
    plan: &'a Plan,
    /// The whole chain: nodes need the headers below the snapshot.
    whole: &'a Chain,
    snapshot: &'a ChainSnapshot,
    out_dir: &'a Path,
    reporter: &'a dyn Reporter,
}

enum Loaded {
    Yes(SnapshotLoad),
    /// Reason of a rejection.
    No(String),
}

/// Contents of a folder, the program that created it, and the time taken.
#[derive(Serialize, Deserialize)]
struct Mark {
    what: String,
    load: SnapshotLoad,
}

/// Reason for a missing folder.
enum Failure {
    Unable(String),
    Fault(RunFault),
}

impl<E: Into<RunFault>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Fault(error.into())
    }
}

impl Loader<'_> {
    /// Lets a target load the snapshot, unless it already has.
    fn load(&self, target: &Target) -> Result<Loaded, RunFault> {
        let why = match (target.family, target.method(self.plan.feed.by)) {
            (Family::Engine | Family::Kernel, _) => "it reads block files from the first block on",
            (Family::Btcd, _) => "btcd has no loadtxoutset",
            (_, Ok(DeliveryMethod::Peer)) => return self.load_into_folder(target),
            _ => "a snapshot goes with blocks from a peer",
        };
        Ok(Loaded::No(why.to_owned()))
    }

    fn load_into_folder(&self, target: &Target) -> Result<Loaded, RunFault> {
        let folder = folder(self.out_dir, target);
        let path = folder.with_extension("json");
        let what = format!("{} {:?}", self.snapshot.hash, target.fingerprint);
        let mark = fs::read(&path).ok().and_then(|text| serde_json::from_slice::<Mark>(&text).ok());
        if let Some(mark) = mark.filter(|mark| mark.what == what && folder.is_dir()) {
            return Ok(Loaded::Yes(mark.load));
        }
        if folder.exists() {
            let failed = |source| WriteError { path: folder.clone(), source };
            fs::remove_dir_all(&folder).map_err(failed)?;
        }
        atomic_file::create_folder(&folder)?;
        let (name, coins) = (&target.name, self.snapshot.coins);
        let status = format!("{name} loads the snapshot of {coins} coins");
        self.reporter.event(&Event::Status(&status));
        match self.fill(target, &folder.canonicalize().unwrap_or_else(|_| folder.clone())) {
            Ok(load) => {
                let seconds = load.load_s;
                self.reporter.line(&format!("{name} has loaded the snapshot in {seconds:.1} s"));
                atomic_file::write(&path, &serde_json::to_vec(&Mark { what, load })?)?;
                Ok(Loaded::Yes(load))
            }
            Err(Failure::Unable(why)) => {
                let _ = fs::remove_dir_all(&folder);
                Ok(Loaded::No(why))
            }
            Err(Failure::Fault(fault)) => Err(fault),
        }
    }

    /// Starts an isolated node, submits the headers up to the snapshot's block, and then loads the snapshot.
    fn fill(&self, target: &Target, folder: &Path) -> Result<SnapshotLoad, Failure> {
        let ports = Ports::free()?;
        let header = &self.whole.header;
        let with = SyncLaunch {
            chain: &header.chain,
            activation: &header.activation,
            plan: self.plan,
            datadir: folder,
            ports: &ports,
            source: 0,
            blocks: folder,
            assumed: None,
            is_own: true,
            stop_height: None,
        };
        let launch = target.launch_sync(DeliveryMethod::Rpc, &with);
        target
            .write_credentials(&launch, folder)
            .map_err(|source| WriteError { path: folder.to_owned(), source })?;
        let log = self.out_dir.join("logs").join(format!("snapshot-{}.log", target.name));
        let mut process = Process::start(launch, ports.rpc, &log)?;
        let (credentials, _) = process.wait_answer(PAUSE)?;
        let client = process.client(&credentials);
        let outcome = self.give_headers(&client).and_then(|()| self.call(&process, &credentials));
        let load_s = match outcome {
            Ok(load_s) => load_s,
            // Its end no longer matters, but its files must be removed.
            Err(Failure::Unable(why)) => {
                process.stop(&client)?;
                return Err(Failure::Unable(why));
            }
            Err(fault) => return Err(fault),
        };
        let stop_s = process.stop(&client)?.as_secs_f64();
        Ok(SnapshotLoad { load_s, stop_s })
    }

    fn give_headers(&self, client: &Client) -> Result<(), Failure> {
        let help: Result<String, RpcError> = client.call("help", r#"["loadtxoutset"]"#);
        if !help.is_ok_and(|text| text.starts_with("loadtxoutset")) {
            return Err(Failure::Unable(
                "this program has no loadtxoutset (Bitcoin Core has it from 26 on)".to_owned(),
            ));
        }
        let base = self.snapshot.height as usize;
        for block in self.whole.blocks.iter().take(base) {
            if self.reporter.wants_stop() {
                return Err(RunFault::Interrupted { height: block.height }.into());
            }
            self.give_header(client, block)?;
        }
        Ok(())
    }

    fn give_header(&self, client: &Client, block: &BlockLine) -> Result<(), Failure> {
        let header = self.whole.read_header(block).map_err(RunFault::Chain)?;
        let params = format!(r#"["{}"]"#, faster_hex::hex_string(&header));
        match client.call::<serde::de::IgnoredAny>("submitheader", &params) {
            Ok(_) => Ok(()),
            Err(RpcError::Node { message, .. }) => Err(Failure::Unable(format!(
                "it rejects the header of block {}: {message}",
                block.height
            ))),
            Err(source) => Err(RunFault::Height { height: block.height, source }.into()),
        }
    }

    /// Calls `loadtxoutset`, which may take an hour; returns its duration in seconds.
    fn call(&self, process: &Process, credentials: &str) -> Result<f64, Failure> {
        let path = self.snapshot.path.to_string_lossy();
        let path = serde_json::to_string(&path)?;
        let body = format!(
            r#"{{"jsonrpc":"1.0","id":"assay-lab","method":"loadtxoutset","params":[{path}]}}"#
        );
        let client = process.client(credentials);
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
            return Err(RunFault::Interrupted { height }.into());
        }
        let failed = |source| match source {
            RpcError::Node { message, .. } => Failure::Unable(message),
            source => RunFault::Height { height: 0, source }.into(),
        };
        let reply = reply.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let reply = reply.map_err(failed)?;
        crate::process::rpc::read_result::<serde::de::IgnoredAny>("loadtxoutset", &reply)
            .map_err(failed)?;
        let load_s = start.elapsed().as_secs_f64();
        let at: u64 = process
            .client(credentials)
            .call("getblockcount", "[]")
            .map_err(|source| RunFault::Height { height, source })?;
        if at < height.into() {
            return Err(Failure::Unable(format!("it is at height {at} after loadtxoutset")));
        }
        Ok(load_s)
    }
}

/// Data folder with the loaded snapshot.
fn folder(out_dir: &Path, target: &Target) -> PathBuf {
    out_dir.join("work").join(format!("snapshot-{}", target.name))
}

impl RunJob<'_> {
    /// Copies the folder with the loaded snapshot; returns the number of bytes.
    pub(super) fn place_snapshot(&self, datadir: &Path) -> Result<u64, RunFault> {
        Ok(prepare::copy(&folder(self.out_dir, self.target), datadir)?)
    }
}
