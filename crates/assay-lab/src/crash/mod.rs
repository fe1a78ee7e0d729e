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
mod killer;
mod oracle;
mod peer;
mod report;
mod round;
mod schedule;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use assay_report::atomic_file::{self, WriteError};
use assay_report::record::Record;

use self::index::IndexOracle;
use self::oracle::Oracle;
use self::report::{End, Tally};
use self::round::Round;
use crate::chain::{Chain, ChainError};
use crate::electrum::ElectrumError;
use crate::electrum::check::CheckError;
use crate::forge::scripts::ScriptsError;
use crate::forge::{ForgeError, ForgeJob};
use crate::machine::Software;
use crate::plan::{Delivery, Plan, TargetSpec, TargetsPlan, check_scale};
use crate::process::rpc::RpcError;
use crate::process::{Launch, Ports, ProcessError};
use crate::progress::{Event, Reporter};
use crate::target::{Target, TargetError};

/// Pause between two requests to a starting node.
const ASK_PAUSE: Duration = Duration::from_millis(5);

/// Mean of the exponential distribution of life times after the first response.
const MEAN_LIFE: Duration = Duration::from_millis(350);

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

#[derive(Debug, thiserror::Error)]
pub enum CrashError {
    #[error("scale {scale}: {rule}")]
    Scale { scale: f64, rule: &'static str },
    #[error("give at least one size of the coin cache")]
    NoCache,
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("cannot remove {}", path.display())]
    Remove { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The target did not start or stop properly, or died without a kill.
    #[error(transparent)]
    Process(#[from] ProcessError),
    #[error(transparent)]
    Rpc(#[from] RpcError),
    #[error("interrupted")]
    Interrupted,
    #[error("block {height} ({hash}) was rejected: {reason}")]
    Refused {
        height: u32,
        hash: String,
        /// The node's reject reason.
        reason: String,
    },
    /// The run without kills does not end at the ledger's state.
    #[error("the run without kills gave {found}, the ledger says {expected}")]
    StraightRun {
        /// Tip or `MuHash` of the ledger.
        expected: String,
        /// Tip or `MuHash` of the node.
        found: String,
    },
    /// The node that serves the blocks failed.
    #[error("the node that gives the blocks: {0}")]
    Peer(#[source] Box<CrashError>),
    /// The node does not connect to its peer, or does not disconnect.
    #[error("{found} connections after {seconds} s, not {expected}")]
    Connections {
        found: u32,
        expected: u32,
        /// Time limit.
        seconds: u64,
    },
    #[error("the tip at height {at} is {tip}, a block of neither chain")]
    UnknownTip { tip: String, at: u32 },
    #[error("after a restart the tip is {found}, not {expected}")]
    WrongTip {
        /// Tip of the node.
        found: String,
        expected: String,
    },
    #[error("at {tip} (height {at}) the MuHash is {found}, not {expected}")]
    WrongSet {
        tip: String,
        at: u32,
        /// `MuHash` of the straight run.
        expected: String,
        found: String,
    },
    /// A stored block differs from the submitted bytes.
    #[error("block {hash} comes back with other bytes")]
    OtherBytes { hash: String },
    #[error(transparent)]
    Scripts(#[from] ScriptsError),
    #[error(transparent)]
    Electrum(#[from] ElectrumError),
    /// The comparison of the index with the script ledger failed.
    #[error(transparent)]
    IndexCheck(#[from] CheckError),
    /// The index of the run without kills contradicts the script ledger.
    #[error(
        "without kills, at height {at}, the index differs from the script ledger: {difference}"
    )]
    IndexAgainstLedger {
        at: u32,
        /// First difference.
        difference: String,
    },
    #[error("the index is at height {at}, {seconds} s after the node was seen at {expected}", at = at.map_or_else(|| "unknown".to_owned(), |at| at.to_string()))]
    IndexBehind {
        /// Height of the index, if reported.
        at: Option<u32>,
        /// Height of the node.
        expected: u32,
        seconds: u64,
    },
    #[error(
        "at {tip} (height {at}) the index answers about {wrong} scripts other than a fresh one; the first is {script}"
    )]
    WrongAnswer {
        tip: String,
        at: u32,
        script: String,
        /// Number of differing script hashes.
        wrong: usize,
    },
    /// The last start of a round ended without a kill.
    #[error("the node exited during an undisturbed start")]
    NoEnd,
}

impl CrashError {
    /// True if the connection broke, as it does when the node is killed.
    fn is_loss(&self) -> bool {
        match self {
            Self::Rpc(error) => !error.is_answer(),
            Self::Electrum(error) => !matches!(error, ElectrumError::Refused { .. }),
            _ => false,
        }
    }

    /// True if the index differs, or does not follow.
    fn is_of_index(&self) -> bool {
        matches!(self, Self::IndexBehind { .. } | Self::WrongAnswer { .. } | Self::Electrum(_))
    }

    /// True if the node, not the experiment, is at fault.
    fn is_verdict(&self) -> bool {
        matches!(
            self,
            Self::Refused { .. }
                | Self::UnknownTip { .. }
                | Self::Connections { .. }
                | Self::WrongTip { .. }
                | Self::WrongSet { .. }
                | Self::OtherBytes { .. }
                | Self::IndexBehind { .. }
                | Self::WrongAnswer { .. }
                | Self::Electrum(ElectrumError::Refused { .. })
                | Self::Process(ProcessError::Exited { .. } | ProcessError::NotReady { .. })
        )
    }
}

/// Constants of all rounds.
pub(crate) struct Setup<'a> {
    pub(crate) target: Target,
    pub(crate) chains: [Chain; 2],
    pub(crate) kills: u32,
    pub(crate) panic_points: Option<Vec<String>>,
    /// Data folder of the node that serves blocks; `None` if blocks are submitted.
    pub(crate) peer_dir: Option<PathBuf>,
    pub(crate) mean_life: Duration,
    pub(crate) log: PathBuf,
    /// Starts between two comparisons of the index.
    pub(crate) index_every: u32,
    pub(crate) reporter: &'a dyn Reporter,
    targets_plan: TargetsPlan,
}

impl Setup<'_> {
    /// Command line for a data folder; `cache_mib` overrides the plan.
    pub(crate) fn launch(&self, datadir: &Path, ports: &Ports, cache_mib: Option<u32>) -> Launch {
        let mut plan = self.targets_plan.clone();
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

    pub(crate) fn check_stop(&self) -> Result<(), CrashError> {
        if self.reporter.wants_stop() { Err(CrashError::Interrupted) } else { Ok(()) }
    }
}

/// Runs the experiment. Lost or wrong data of the node is a result, not an error; its data folder then stays.
///
/// # Errors
/// When something cannot be written, forged or started.
pub fn run(options: &CrashOptions, reporter: &dyn Reporter) -> Result<Record, CrashError> {
    let start = Instant::now();
    let scale = options.plan.chain.scale;
    check_scale(scale).map_err(|rule| CrashError::Scale { scale, rule })?;
    let Some(&first_cache) = options.cache_mib.first() else { return Err(CrashError::NoCache) };
    let logs = options.out_dir.join("logs");
    atomic_file::create_folder(&logs)?;
    let target = Target::detect(&options.target, &options.node_command, &options.software.assay)?;
    let chains = [forge(options, 0, reporter)?, forge(options, 1, reporter)?];
    target.check_chain(&chains[0].header.chain)?;
    target.method(Delivery::Rpc)?;
    let setup = Setup {
        target,
        chains,
        kills: options.kills,
        panic_points: options.panic_points.clone(),
        peer_dir: options.from_peer.then(|| options.out_dir.join("peer")),
        mean_life: MEAN_LIFE,
        log: logs.join("crash.log"),
        index_every: options.index.every.max(1),
        reporter,
        targets_plan: options.plan.target.clone(),
    };
    let datadir = options.out_dir.join("work");
    renew(&datadir)?;
    reporter.event(&Event::StraightRun { blocks: setup.chains[0].blocks.len() });
    let index = if setup.target.has_own_index() {
        let dirs = [setup.chains[0].dir.as_path(), setup.chains[1].dir.as_path()];
        Some(IndexOracle::read(options, dirs)?)
    } else {
        None
    };
    let oracle = Oracle::ask(&setup, &datadir, index)?;
    let (mut tally, mut end) = (Tally::default(), End::default());
    reporter.event(&Event::KillsStarted { of: options.kills });
    while tally.kills < options.kills {
        renew(&datadir)?;
        let index = end.rounds as usize % options.cache_mib.len();
        let cache_mib = options.cache_mib.get(index).copied().unwrap_or(first_cache);
        let seed = options.seed.wrapping_mul(1_000_003).wrapping_add(u64::from(end.rounds));
        end.rounds += 1;
        match Round::new(&setup, &oracle, &datadir, (cache_mib, seed), &mut tally).run() {
            Ok(()) => {}
            Err(error) if error.is_verdict() => {
                let (round, kept) = (end.rounds, datadir.display());
                end.is_of_index = error.is_of_index();
                end.failure =
                    Some(format!("round {round}, {cache_mib} MiB: {error} (data kept in {kept})"));
                break;
            }
            Err(error) => return Err(error),
        }
    }
    end.took = start.elapsed();
    if end.failure.is_none() {
        remove(&datadir)?;
        setup.peer_dir.as_deref().map_or(Ok(()), remove)?;
    }
    let record = tally.record(options, (&setup, &oracle), &end);
    record.write(&options.out_dir.join("crash.json"))?;
    reporter.event(&Event::KillsFinished);
    Ok(record)
}

fn forge(options: &CrashOptions, rival: u64, reporter: &dyn Reporter) -> Result<Chain, CrashError> {
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

/// Removes and recreates a data folder.
pub(crate) fn renew(datadir: &Path) -> Result<(), CrashError> {
    remove(datadir)?;
    Ok(atomic_file::create_folder(datadir)?)
}

fn remove(path: &Path) -> Result<(), CrashError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(CrashError::Remove { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}
