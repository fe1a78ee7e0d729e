//! Kills a node at random times and checks that it lost nothing.
//!
//! Two chains that fork at genesis alternate as the best chain, so the node extends, reorganises down to genesis, and disconnects
//! blocks by `invalidateblock`, while SIGKILL arrives at seeded random times. After every start all acknowledged blocks must
//! still exist, the tip must be that of the longer chain, and the `MuHash` of the UTXO set must equal that of a straight run
//! without kills, block by block. The straight run itself is checked against the forge's ledger.
//!
//! The blocks are submitted, or come from a second node over P2P. In that case every tip that the node reports counts as
//! acknowledged, and the check after a start happens before a peer connects that could restore lost blocks.
//!
//! SIGKILL ends the process but not the operating system, so written data survives without a sync. The tests of the store and the
//! engine cover power loss with a simulated disk.

mod index;
mod kill_plan;
mod oracle;
mod peer;
mod report;
mod round;
mod schedule;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{anyhow, bail};
use assay_ledger::BlockLine;
use assay_report::atomic_file;
use assay_report::record::Record;

use self::index::IndexOracle;
use self::oracle::{Oracle, UtxoSet};
use self::report::{End, Tally};
use self::round::Round;
use crate::chain::Chain;
use crate::electrum::ElectrumError;
use crate::forge::ForgeJob;
use crate::machine::Software;
use crate::machine::disk::{remove_folder, renew_folder};
use crate::network::ASK_PAUSE;
use crate::plan::{Delivery, Plan, TargetSpec, check_scale};
use crate::process::rpc::RpcError;
use crate::process::{Launch, Ports, ProcessError};
use crate::progress::{Event, Reporter};
use crate::target::Target;

#[derive(Debug, Clone)]
pub struct CrashOptions {
    /// Folder of the report and the chains. Created if missing.
    pub out_dir: PathBuf,
    /// Plan with recipe, phases and settings; its seed is that of the first chain, the next number that of the rival.
    pub plan: Plan,
    pub kills: u32,
    /// Deliver blocks from a second node over P2P; Assay's node only.
    pub from_peer: bool,
    /// End processes by panics at these marked points instead of SIGKILL; not empty.
    pub panic_points: Option<Vec<String>>,
    /// Seed of schedules and kill times.
    pub seed: u64,
    /// Target node, with its index if it has one.
    pub target: TargetSpec,
    pub index: IndexOptions,
    /// Coin cache sizes in MiB, used in rotation; at least one.
    pub cache_mib: Vec<u32>,
    /// Command that starts the forge; see [`crate::run::RunOptions`].
    pub forge_command: Vec<OsString>,
    /// Command that starts Assay's node.
    pub node_command: Vec<OsString>,
    /// The calling program.
    pub software: Software,
    /// Command line that repeats the run.
    pub rerun: String,
}

#[derive(Debug, Clone, Default)]
pub struct IndexOptions {
    /// Compare at every `every`-th start; 0 means 1.
    pub every: u32,
    /// Maximum number of script hashes per chain.
    pub scripts_max: usize,
    /// Command that makes a script ledger with spent outputs; see [`crate::run::RunOptions`].
    pub scripts_command: Vec<OsString>,
}

/// A fault of the node, not of the experiment.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct Fault {
    text: String,
    /// True if the index differs, or does not follow.
    is_of_index: bool,
}

impl Fault {
    fn of_node(text: String) -> anyhow::Error {
        Self { text, is_of_index: false }.into()
    }

    fn of_index(text: String) -> anyhow::Error {
        Self { text, is_of_index: true }.into()
    }

    /// The node rejected a block.
    fn rejected(block: &BlockLine, reason: &str) -> anyhow::Error {
        Self::of_node(format!("block {} ({}) was rejected: {reason}", block.height, block.hash))
    }

    /// The node's UTXO set differs from that of the straight run.
    fn wrong_set(found: &UtxoSet, expected: &str) -> anyhow::Error {
        let UtxoSet { tip, height, muhash } = found;
        Self::of_node(format!("at {tip} (height {height}) the MuHash is {muhash}, not {expected}"))
    }

    fn unknown_tip(tip: &str, height: u32) -> anyhow::Error {
        Self::of_node(format!("the tip at height {height} is {tip}, a block of neither chain"))
    }

    fn wrong_tip(found: &str, expected: &str) -> anyhow::Error {
        Self::of_node(format!("after a restart the tip is {found}, not {expected}"))
    }
}

/// True if the connection broke, as it does when the node is killed.
fn is_loss(error: &anyhow::Error) -> bool {
    match (error.downcast_ref::<RpcError>(), error.downcast_ref::<ElectrumError>()) {
        (Some(error), _) => !error.is_answer(),
        (None, Some(error)) => !matches!(error, ElectrumError::Refused { .. }),
        (None, None) => false,
    }
}

/// True if the index is at fault, false if another part of the node is; `None` if the experiment is.
fn fault_of_index(error: &anyhow::Error) -> Option<bool> {
    let process = error.downcast_ref::<ProcessError>();
    match (error.downcast_ref::<Fault>(), error.downcast_ref::<ElectrumError>()) {
        (Some(fault), _) => Some(fault.is_of_index),
        (None, Some(ElectrumError::Refused { .. })) => Some(true),
        _ if matches!(
            process,
            Some(ProcessError::Exited { .. } | ProcessError::NotReady { .. })
        ) =>
        {
            Some(false)
        }
        _ => None,
    }
}

/// Constants of all rounds.
pub(crate) struct Setup<'a> {
    pub(crate) options: &'a CrashOptions,
    pub(crate) target: Target,
    pub(crate) chains: [Chain; 2],
    /// Data folder of the node that serves blocks; `None` if blocks are submitted.
    pub(crate) peer_dir: Option<PathBuf>,
    pub(crate) log: PathBuf,
    pub(crate) reporter: &'a dyn Reporter,
}

impl Setup<'_> {
    /// Command line for a data folder; `cache_mib` overrides the plan.
    pub(crate) fn launch(&self, datadir: &Path, ports: &Ports, cache_mib: Option<u32>) -> Launch {
        let mut plan = self.options.plan.target.clone();
        if let Some(mib) = cache_mib {
            plan.bitcoind.dbcache_mib = mib;
            let args = &mut plan.assay.args;
            if let Some(at) = args.iter().position(|arg| arg == "--db-cache") {
                args.drain(at..(at + 2).min(args.len()));
            }
            args.extend(["--db-cache".to_owned(), mib.to_string()]);
        }
        self.target.launch(&self.chains[0].header.chain, datadir, ports, &plan)
    }
}

/// Runs the experiment. Lost or wrong data of the node is a result, not an error; its data folder then stays.
///
/// # Errors
/// When something cannot be written, forged or started.
pub fn run(options: &CrashOptions, reporter: &dyn Reporter) -> anyhow::Result<Record> {
    let start = Instant::now();
    let scale = options.plan.chain.scale;
    check_scale(scale).map_err(|rule| anyhow!("scale {scale}: {rule}"))?;
    let Some(&first_cache) = options.cache_mib.first() else {
        bail!("give at least one size of the coin cache");
    };
    let logs = options.out_dir.join("logs");
    atomic_file::create_folder(&logs)?;
    let target = Target::detect(&options.target, &options.node_command, &options.software.assay)?;
    let chains = [forge(options, 0, reporter)?, forge(options, 1, reporter)?];
    target.check_chain(&chains[0].header.chain)?;
    target.method(Delivery::Rpc)?;
    let peer_dir = options.from_peer.then(|| options.out_dir.join("peer"));
    let log = logs.join("crash.log");
    let setup = Setup { options, target, chains, peer_dir, log, reporter };
    let datadir = options.out_dir.join("work");
    renew_folder(&datadir)?;
    let blocks = setup.chains[0].blocks.len();
    reporter.line(&format!("straight run, two chains of about {blocks} blocks"));
    reporter.step("a run without kills, for comparison");
    let index = if setup.target.has_own_index() {
        let dirs = [setup.chains[0].dir.as_path(), setup.chains[1].dir.as_path()];
        Some(IndexOracle::read(options, dirs)?)
    } else {
        None
    };
    let oracle = Oracle::ask(&setup, &datadir, index)?;
    let (mut tally, mut end) = (Tally::default(), End::default());
    let of = options.kills;
    reporter.line(&format!("{of} kills"));
    reporter.event(&Event::Count { done: 0, of, unit: "kills" });
    while tally.kills < options.kills {
        renew_folder(&datadir)?;
        let index = end.rounds as usize % options.cache_mib.len();
        let cache_mib = options.cache_mib.get(index).copied().unwrap_or(first_cache);
        let seed = options.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(end.rounds));
        end.rounds += 1;
        let round = Round::new(&setup, &oracle, &datadir, (cache_mib, seed), &mut tally);
        if let Err(error) = round.run() {
            let Some(is_of_index) = fault_of_index(&error) else { return Err(error) };
            let (round, kept) = (end.rounds, datadir.display());
            end.is_of_index = is_of_index;
            end.failure =
                Some(format!("round {round}, {cache_mib} MiB: {error} (data kept in {kept})"));
            break;
        }
    }
    end.took = start.elapsed();
    if end.failure.is_none() {
        remove_folder(&datadir)?;
        setup.peer_dir.as_deref().map_or(Ok(()), remove_folder)?;
    }
    let record = tally.record((&setup, &oracle), &end);
    record.write(&options.out_dir.join("crash.json"))?;
    reporter.event(&Event::Finished);
    Ok(record)
}

fn forge(options: &CrashOptions, rival: u64, reporter: &dyn Reporter) -> anyhow::Result<Chain> {
    let mut plan = options.plan.clone();
    plan.chain.seed = plan.chain.seed.wrapping_add(rival);
    let job = ForgeJob {
        plan: &plan,
        dir: &options.out_dir.join(format!("chain-{rival}")),
        own_dir: true,
        command: &options.forge_command,
        assay_version: &options.software.assay,
        log: &options.out_dir.join("logs").join("forge.log"),
        reporter,
    };
    Ok(job.chain()?.0)
}
