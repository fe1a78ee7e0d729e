//! Runs a plan from the forge to the report.

mod block_files;
mod fault;
mod flame;
mod index;
mod journal;
mod one;
mod prepare;
mod profile;
mod snapshot;
mod source;
mod sync;
mod verify;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use assay_ledger::FilesLine;
use assay_report::atomic_file::{self, WriteError};

use self::journal::{Journal, Settings, run_id};
use self::snapshot::Start;
use self::source::Source;
use self::verify::Coins;
use crate::chain::{Chain, ChainSnapshot};
use crate::forge::scripts::{ScriptsError, ScriptsJob};
use crate::forge::{ForgeError, ForgeJob, report_reused};
use crate::machine::clock::{iso8601, unix_ms};
use crate::machine::reference_rate::{self, ReferenceRateError};
use crate::machine::{self, Machine, ReferenceRate, Software};
use crate::plan::{ChainPlan, Delivery, Keys, PhasePlan, Plan, TargetSpec, Variant};
use crate::process::stale_processes;
use crate::progress::{Event, Reporter};
use crate::report;
use crate::results::{
    ChainSummary, IndexInfo, Profile, Results, Run, SCHEMA, Status, TargetResults, disturbance,
};
use crate::target::{DeliveryMethod, Target, TargetError};

pub use self::fault::RunFault;
pub(crate) use self::one::whole_story;
pub(crate) use self::prepare::copy as copy_folder;

#[derive(Clone, Copy)]
pub(crate) struct RunJob<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) chain: &'a Chain,
    pub(crate) target: &'a Target,
    pub(crate) method: DeliveryMethod,
    /// Node that serves blocks to peers.
    pub(crate) source: Option<&'a Source>,
    /// Expected UTXO set.
    pub(crate) coins: &'a Coins,
    pub(crate) seen: f64,
    pub(crate) repeat: u32,
    pub(crate) id: &'a str,
    pub(crate) out_dir: &'a Path,
    pub(crate) keep_datadir: bool,
    /// Output file of `perf`; without it the run is not profiled.
    pub(crate) profile: Option<&'a Path>,
    /// Script ledger, if index responses are compared.
    pub(crate) scripts: Option<&'a Path>,
    pub(crate) reporter: &'a dyn Reporter,
}

#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "settings, each on its own")]
pub struct RunOptions {
    /// Folder of results. Created if missing.
    pub out_dir: PathBuf,
    /// Folder of the chain; `out_dir/chain` if not given. The second of two chains has the suffix `-distinct`.
    pub chain_dir: Option<PathBuf>,
    /// Accept any chain in `chain_dir`, not only that of the plan.
    pub takes_any_chain: bool,
    /// A UTXO snapshot of a block of that chain, which syncs begin with.
    pub snapshot: Option<ChainSnapshot>,
    /// Overrides the plan's targets.
    pub targets: Vec<TargetSpec>,
    /// The only pair to run, from 0, of all pairs of the plan: others run elsewhere.
    pub pair: Option<u32>,
    /// Keep finished runs of an earlier execution with the same settings.
    pub resume: bool,
    /// Leave the nodes' data folders under `out_dir/work`.
    pub keep_datadirs: bool,
    /// Run each target once more under `perf`.
    pub profile: bool,
    /// Command that starts the forge; recipe, `--seed`, `--scale` and `--out` are added.
    pub forge_command: Vec<OsString>,
    /// Command that creates a chain's script ledger; its folder, `--sample`, `--seed`, `--out` are added. Empty skips index checks.
    pub scripts_command: Vec<OsString>,
    /// Command that starts Assay's node; `--chain`, `--datadir` and `--rpc` are added.
    pub node_command: Vec<OsString>,
    /// Command that serves a chain that was not forged to peers; its folder, `--p2p` and `--p2p-rate` are added.
    pub serve_command: Vec<OsString>,
    /// Command that measures the reference signature library; empty skips it. Prints JSON: `ecdsa_verify_per_s` etc., one thread.
    pub reference_rate_command: Vec<OsString>,
    pub assay_version: String,
    /// Compiler of the calling program.
    pub rustc_version: String,
    /// Command line that repeats the run.
    pub rerun: String,
}

#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Something in the output folder cannot be written; finished runs are kept.
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("{} is in use by another run", path.display())]
    Busy { path: PathBuf },
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    Scripts(#[from] ScriptsError),
    /// Block files of another program are only supported by syncs.
    #[error(
        "plan {plan} feeds transactions and blocks one at a time, for which a chain has to be forged; a chain from block files is \
         for syncs, such as core-evolution or ibd-tracking-macro"
    )]
    NoSync { plan: String },
    /// Files that are obfuscated, or extend above the tip, cannot be imported directly.
    #[error(
        "--by load-block has nodes import block files as they are, but these are {why}; use --by peer, reindex or \
         reindex-chainstate"
    )]
    NoImport { why: &'static str },
    /// Nodes that read all block files cannot use a snapshot.
    #[error("--from-snapshot goes with blocks from a peer (--by peer), not with {by}")]
    SnapshotBy {
        /// Delivery method of the targets.
        by: &'static str,
    },
    #[error("no target can begin with the snapshot {}: {reasons}", path.display())]
    SnapshotUnable {
        path: PathBuf,
        /// Each target with its reason.
        reasons: String,
    },
    /// A target failed at the snapshot, other than by rejecting it.
    #[error("{target} failed when it was to load the snapshot")]
    Snapshot { target: String, source: Box<RunFault> },
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    ReferenceRate(#[from] ReferenceRateError),
    /// Assay's node could not be filled with the chain that it serves.
    #[error("cannot fill the source of blocks")]
    Source { source: Box<RunFault> },
    /// A run is invalid because its target failed. Earlier runs are kept.
    #[error("run {id} is void; finished runs are kept in {}, go on with --resume", kept.display())]
    Void {
        id: String,
        /// Folder of the finished runs.
        kept: PathBuf,
        source: Box<RunFault>,
    },
}

/// Runs a plan: forges the chain, measures every target, writes the report.
///
/// Results include invalid runs, whose end state differs from the ledger: check [`Results::void_runs`] before assuming success.
///
/// # Errors
/// When something cannot be written or started, or a target fails. Finished runs are on disk; calls with `resume` reuse them.
pub fn run(
    mut plan: Plan,
    options: &RunOptions,
    reporter: &dyn Reporter,
) -> Result<Results, LabError> {
    if options.takes_any_chain {
        describe_chain(&mut plan, options)?;
    }
    atomic_file::create_folder(&options.out_dir)?;
    let _lock = lock(&options.out_dir)?;
    for name in stale_processes::end_all(&options.out_dir.join("logs")) {
        reporter.line(&format!("ended what a killed run had left: {name}"));
    }
    let mut targets = detect(&plan, options, reporter)?;
    for target in &targets {
        target.method(plan.feed.by)?;
    }
    let start = snapshot::load(&plan, &mut targets, options, reporter)?;
    let mut chains = Vec::new();
    for keys in plan.chain.keys() {
        let (chain, forge_s) = forge(&plan, keys, options, reporter)?;
        for target in &targets {
            target.check_chain(&chain.header.chain)?;
            target.check_sync_chain(plan.feed.by, &chain.header.chain)?;
        }
        check_files(&plan, &chain)?;
        let source = make_source(&plan, keys, &chain, &targets, options, reporter)?;
        let summary = summarise(&chain, forge_s);
        chains.push(Forged { keys, summary, chain, scripts: None, source });
    }
    let has_index = targets.iter().any(|target| target.index.is_some());
    if has_index && !options.scripts_command.is_empty() {
        for forged in &mut chains {
            reporter.step("making the script ledger");
            forged.scripts = Some(make_scripts(&plan, forged, options)?);
        }
    }
    let machine = machine::record(&options.out_dir);
    let session = Session {
        plan: &plan,
        options,
        chains: &chains,
        coins: chains
            .iter()
            .map(|forged| Coins::of_ledger(&forged.chain.tip))
            .collect::<Vec<_>>()
            .into(),
        targets: &targets,
        start,
        machine,
        journal: Journal::open(&options.out_dir, options.resume, plan.runs.repeat)?,
        reporter,
    };
    let results = session.run()?;
    // Large, and reproducible in seconds; kept after a failure for inspection.
    for scripts in chains.iter().filter_map(|forged| forged.scripts.as_ref()) {
        if results.void_runs().next().is_none() {
            let _ = std::fs::remove_file(scripts);
        }
    }
    Ok(results)
}

/// An available chain.
struct Forged {
    keys: Keys,
    chain: Chain,
    summary: ChainSummary,
    /// Its script ledger.
    scripts: Option<PathBuf>,
    /// Node that serves it to peers.
    source: Option<Source>,
}

impl Forged {
    /// Suffix that distinguishes it from another chain of the same plan.
    fn suffix(&self, plan: &Plan) -> &'static str {
        suffix(plan, self.keys)
    }
}

/// Suffix of files and targets in a plan with two chains.
fn suffix(plan: &Plan, keys: Keys) -> &'static str {
    if keys == Keys::Distinct && plan.chain.keys().len() > 1 { "-distinct" } else { "" }
}

/// Constant state of one execution of a plan.
struct Session<'a> {
    plan: &'a Plan,
    options: &'a RunOptions,
    chains: &'a [Forged],
    /// Expected final UTXO set of each chain: from its ledger, or from the first run that reports it.
    coins: RefCell<Vec<Coins>>,
    targets: &'a [Target],
    start: Start,
    machine: Machine,
    journal: Journal,
    reporter: &'a dyn Reporter,
}

/// One entry of the schedule.
#[derive(Clone, Copy)]
struct Slot {
    chain: usize,
    target: usize,
    seen: f64,
    repeat: u32,
}

impl Session<'_> {
    fn run(&self) -> Result<Results, LabError> {
        let mut reference_rates = Vec::new();
        self.measure_reference_rate(&mut reference_rates)?;
        let mut runs: BTreeMap<(usize, usize), Vec<Run>> = BTreeMap::new();
        let schedule = self.schedule();
        let mut warm = vec![false; self.targets.len()];
        for (index, slot) in schedule.iter().enumerate() {
            let target = &self.targets[slot.target];
            let forged = &self.chains[slot.chain];
            let name = format!("{}{}", target.name, forged.suffix(self.plan));
            let id = run_id(&name, slot.seen, slot.repeat, self.plan.runs.repeat);
            let settings = Settings::new(
                self.plan,
                &forged.summary,
                &self.machine,
                &self.options.assay_version,
                target,
                (slot.seen, slot.repeat),
            );
            let finished =
                if self.options.resume { self.journal.finished(&id, &settings) } else { None };
            if let Some(run) = finished {
                self.reporter.event(&Event::RunSkipped { run: &run });
                self.learn_coins(slot.chain, &run);
                runs.entry((slot.target, slot.chain)).or_default().push(run);
                continue;
            }
            if !std::mem::replace(&mut warm[slot.target], true) {
                self.warm_up(*slot, target)?;
            }
            let (number, of) = (index + 1, schedule.len());
            let (run, fault) = self.execute(*slot, target, &id, (number, of), None);
            self.journal.record(&settings, &run)?;
            self.reporter.event(&Event::RunFinished { run: &run });
            self.learn_coins(slot.chain, &run);
            runs.entry((slot.target, slot.chain)).or_default().push(run);
            if let Some(fault) = fault {
                // Available runs still give a report, but the caller must receive the fault.
                let _ = self.finish(runs, reference_rates, Vec::new());
                return Err(self.void(id, fault));
            }
        }
        self.measure_reference_rate(&mut reference_rates)?;
        let profiles = if self.options.profile { self.profiles()? } else { Vec::new() };
        self.finish(runs, reference_rates, profiles)
    }

    /// Runs each target once more, under a profiler.
    fn profiles(&self) -> Result<Vec<Profile>, LabError> {
        let folder = self.options.out_dir.join(profile::FOLDER);
        atomic_file::create_folder(&folder)?;
        let seen = self.plan.feed.seen.first().copied().unwrap_or_default();
        let mut profiles = Vec::new();
        let mut first = None;
        for (index, target) in self.targets.iter().enumerate() {
            let name = target.name.clone();
            if !profile::is_there() {
                let missing =
                    Some("there is no program `perf`: install it (Debian: linux-perf)".to_owned());
                profiles.push(Profile { target: name, missing, ..Profile::default() });
                continue;
            }
            let id = format!("{name}-profile");
            let data = self.options.out_dir.join("logs").join(format!("{id}.perf"));
            let slot = Slot { chain: 0, target: index, seen, repeat: 0 };
            let (_, fault) =
                self.execute(slot, target, &id, (index + 1, self.targets.len()), Some(&data));
            profiles.push(match fault {
                Some(RunFault::Interrupted { .. }) => break,
                Some(fault) => {
                    // A failed profiler must not discard the measured runs.
                    let missing = Some(whole_story(&fault));
                    Profile { target: name, missing, ..Profile::default() }
                }
                None => {
                    let title = format!("{name} ({}): {}", target.version, self.plan.title);
                    let (mut profile, stacks) = profile::evaluate(&name, &title, &data, &folder);
                    match &first {
                        _ if stacks.is_empty() => {}
                        None => first = Some((name, stacks)),
                        Some((first, before)) => {
                            profile::compare((first, before), &stacks, &folder, &mut profile);
                        }
                    }
                    profile
                }
            });
        }
        Ok(profiles)
    }

    /// Shares and targets in the order of the plan, so that targets are adjacent; reversed in every second round, so that slow
    /// drift of the machine does not always affect the same target.
    fn schedule(&self) -> Vec<Slot> {
        let mut schedule = Vec::new();
        let pair = self.options.pair;
        for repeat in
            (0..self.plan.runs.repeat).filter(|repeat| pair.is_none_or(|pair| pair == *repeat))
        {
            let chains = 0..self.chains.len();
            let mut round: Vec<Slot> = chains
                .flat_map(|chain| self.plan.feed.seen.iter().map(move |&seen| (chain, seen)))
                .flat_map(|(chain, seen)| {
                    let targets = 0..self.targets.len();
                    targets.map(move |target| Slot { chain, target, seen, repeat })
                })
                .collect();
            if repeat % 2 == 1 {
                round.reverse();
            }
            schedule.extend(round);
        }
        schedule
    }

    /// Delivery method of a target, if it differs from the plan's.
    fn delivery(&self, target: &Target) -> Option<String> {
        let is_files = target.method(self.plan.feed.by).ok() == Some(DeliveryMethod::Files);
        is_files.then(|| "files".to_owned())
    }

    fn warm_up(&self, slot: Slot, target: &Target) -> Result<(), LabError> {
        for number in 1..=self.plan.runs.warmup {
            let id = format!("{}-warmup-{number}", target.name);
            let of = self.plan.runs.warmup as usize;
            let (_, fault) = self.execute(slot, target, &id, (number as usize, of), None);
            if let Some(fault) = fault {
                return Err(self.void(id, fault));
            }
        }
        Ok(())
    }

    fn execute(
        &self,
        slot: Slot,
        target: &Target,
        id: &str,
        (number, of): (usize, usize),
        profile: Option<&Path>,
    ) -> (Run, Option<RunFault>) {
        let forged = &self.chains[slot.chain];
        let blocks = forged.chain.blocks.len();
        self.reporter.event(&Event::RunStarted { id, number, of, blocks });
        let coins = self.coins.borrow()[slot.chain].clone();
        let job = RunJob {
            plan: self.plan,
            chain: &forged.chain,
            target,
            method: target.method(self.plan.feed.by).unwrap_or(DeliveryMethod::Rpc),
            source: forged.source.as_ref(),
            coins: &coins,
            seen: slot.seen,
            repeat: slot.repeat,
            id,
            out_dir: &self.options.out_dir,
            keep_datadir: self.options.keep_datadirs,
            profile,
            scripts: forged.scripts.as_deref(),
            reporter: self.reporter,
        };
        job.execute()
    }

    /// Without a ledger, the first run that reports the UTXO set defines the expected one.
    fn learn_coins(&self, chain: usize, run: &Run) {
        if run.status == Status::Valid {
            self.coins.borrow_mut()[chain].learn(run);
        }
    }

    fn void(&self, id: String, fault: RunFault) -> LabError {
        let kept = self.options.out_dir.join("runs");
        LabError::Void { id, kept, source: Box::new(fault) }
    }

    fn measure_reference_rate(
        &self,
        reference_rates: &mut Vec<ReferenceRate>,
    ) -> Result<(), LabError> {
        if !self.options.reference_rate_command.is_empty() {
            self.reporter.step("measuring the reference signature library");
        }
        reference_rates.extend(reference_rate::measure(&self.options.reference_rate_command)?);
        Ok(())
    }

    /// Assembles the results and writes the report.
    fn finish(
        &self,
        mut runs: BTreeMap<(usize, usize), Vec<Run>>,
        reference_rates: Vec<ReferenceRate>,
        profiles: Vec<Profile>,
    ) -> Result<Results, LabError> {
        let mut of_target = |target_index: usize, chain_index: usize| {
            let (target, forged) = (&self.targets[target_index], &self.chains[chain_index]);
            let mut runs = runs.remove(&(target_index, chain_index)).unwrap_or_default();
            runs.sort_by(|a, b| {
                a.seen_requested.total_cmp(&b.seen_requested).then(a.repeat.cmp(&b.repeat))
            });
            disturbance::mark_runs(&mut runs);
            TargetResults {
                name: format!("{}{}", target.name, forged.suffix(self.plan)),
                family: target.family.as_str().to_owned(),
                version: target.version.clone(),
                distinct_keys: forged.summary.distinct_keys,
                index: target
                    .index
                    .as_ref()
                    .map(|index| IndexInfo { kind: index.kind, version: index.version.clone() }),
                delivery: self.delivery(target),
                snapshot_load: self.start.loads.get(target_index).copied(),
                runs,
            }
        };
        let pairs = (0..self.chains.len())
            .flat_map(|chain| (0..self.targets.len()).map(move |target| (target, chain)));
        let targets = pairs.map(|(target, chain)| of_target(target, chain)).collect();
        let mut summaries: Vec<_> =
            self.chains.iter().map(|forged| forged.summary.clone()).collect();
        for (summary, coins) in summaries.iter_mut().zip(&*self.coins.borrow()) {
            coins.describe(summary);
        }
        let (chain, more_chains) = match summaries.split_first() {
            Some((first, others)) => (first.clone(), others.to_vec()),
            None => unreachable!("a plan has at least one chain"),
        };
        let results = Results {
            schema: SCHEMA,
            created: iso8601(unix_ms()),
            plan: self.plan.clone(),
            chain,
            more_chains,
            machine: self.machine.clone(),
            software: Software {
                assay: self.options.assay_version.clone(),
                rustc: self.options.rustc_version.clone(),
                profile: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
                ..Software::default()
            },
            reference_rates,
            targets,
            rerun: self.options.rerun.clone(),
            pairs_planned: Some(self.journal.planned()),
            unable: self.start.unable.clone(),
            profiles,
        };
        report::write_all(&results, &self.options.out_dir)?;
        let page = self.options.out_dir.join("report.html");
        self.reporter.line(&format!("report: {}", page.display()));
        Ok(results)
    }
}

/// Describes the given chain in the plan.
fn describe_chain(plan: &mut Plan, options: &RunOptions) -> Result<(), ForgeError> {
    let chain = open_chain(options.chain_dir.as_deref().unwrap_or(&options.out_dir), options)?;
    if chain.header.files.is_some() {
        plan.phases = phases_of(&chain);
        // The plan describes a forged chain.
        let from = match &chain.snapshot {
            Some(snapshot) => format!("the coins of height {}", snapshot.height),
            None => "nothing".to_owned(),
        };
        plan.summary = format!(
            "Every program takes the blocks of {} up to height {}, which were not forged, from {from} to the tip, with the same memory for coins.",
            chain.header.chain, chain.tip.height
        );
        plan.scaling.clear();
        plan.published = None;
    }
    let header = chain.header;
    let is_faithful = header.variant == Variant::Faithful.as_str();
    plan.chain = ChainPlan {
        recipe: header.recipe,
        seed: header.seed,
        scale: header.scale,
        byte_scale: header.byte_scale,
        variant: if is_faithful { Variant::Faithful } else { Variant::Intended },
        distinct_keys: header.distinct_keys,
        keys: Vec::new(),
        stop_height: header.stop_height,
    };
    Ok(())
}

/// The given chain, or its part above the snapshot.
fn open_chain(dir: &Path, options: &RunOptions) -> Result<Chain, ForgeError> {
    let chain = Chain::open(dir).map_err(ForgeError::Chain)?;
    Ok(match &options.snapshot {
        Some(snapshot) => chain.above(snapshot.clone()),
        None => chain,
    })
}

/// Phases of a chain that was not forged, which no plan lists.
fn phases_of(chain: &Chain) -> Vec<PhasePlan> {
    let parts = chain.blocks.chunk_by(|a, b| a.phase == b.phase);
    parts
        .filter_map(|part| Some((part.first()?, part.last()?)))
        .map(|(first, last)| PhasePlan {
            name: first.phase.to_string(),
            title: format!("Heights {} to {}", first.height, last.height),
            published_heights: None,
            measured: true,
        })
        .collect()
}

/// Checks that a plan supports block files of another program.
fn check_files(plan: &Plan, chain: &Chain) -> Result<(), LabError> {
    let Some(files) = &chain.header.files else { return Ok(()) };
    if !plan.feed.by.is_sync() {
        return Err(LabError::NoSync { plan: plan.name.clone() });
    }
    let why = match (&files.xor_key, chain.stops_at()) {
        _ if plan.feed.by != Delivery::LoadBlock => return Ok(()),
        (Some(_), _) => "obfuscated",
        (None, Some(_)) => "of a chain that goes on above the last height",
        (None, None) => return Ok(()),
    };
    Err(LabError::NoImport { why })
}

/// Holds the output folder until dropped. Merely closing the file would leave the lock to a child process that is being started.
struct OutputLock(File);

impl Drop for OutputLock {
    fn drop(&mut self) {
        // On failure the lock is released with the last copy of the file.
        let _ = self.0.unlock();
    }
}

fn lock(out_dir: &Path) -> Result<OutputLock, LabError> {
    let path = out_dir.join(".lock");
    let write_error = |source| WriteError { path: path.clone(), source };
    let file = File::create(&path).map_err(write_error)?;
    match file.try_lock() {
        Ok(()) => Ok(OutputLock(file)),
        Err(TryLockError::WouldBlock) => Err(LabError::Busy { path: out_dir.to_owned() }),
        Err(TryLockError::Error(source)) => Err(write_error(source).into()),
    }
}

/// Resolves the targets. Searched targets of the plan may be missing, but not those of the caller.
fn detect(
    plan: &Plan,
    options: &RunOptions,
    reporter: &dyn Reporter,
) -> Result<Vec<Target>, LabError> {
    let of_plan = || plan.targets().unwrap_or_default();
    let specs = if options.targets.is_empty() { of_plan() } else { options.targets.clone() };
    let mut targets: Vec<Target> = Vec::with_capacity(specs.len());
    for spec in &specs {
        let found = Target::detect(spec, &options.node_command, &options.assay_version);
        match found {
            Err(why @ TargetError::Kernel(_)) if options.targets.is_empty() => {
                reporter.line(&format!("left out: {spec}: {why}"));
            }
            found => found?.push_to(&mut targets),
        }
    }
    Ok(targets)
}

fn forge(
    plan: &Plan,
    keys: Keys,
    options: &RunOptions,
    reporter: &dyn Reporter,
) -> Result<(Chain, Option<f64>), LabError> {
    let end = suffix(plan, keys);
    let dir = match &options.chain_dir {
        None => options.out_dir.join(format!("chain{end}")),
        Some(dir) => {
            let mut name = dir.as_os_str().to_owned();
            name.push(end);
            name.into()
        }
    };
    let logs = options.out_dir.join("logs");
    atomic_file::create_folder(&logs)?;
    let mut plan = plan.clone();
    plan.chain.distinct_keys = keys == Keys::Distinct;
    if options.takes_any_chain {
        let chain = open_chain(&dir, options)?;
        report_reused(reporter, &chain);
        return Ok((chain, None));
    }
    let job = ForgeJob {
        plan: &plan,
        dir: &dir,
        own_dir: options.chain_dir.is_none(),
        command: &options.forge_command,
        assay_version: &options.assay_version,
        log: &logs.join("forge.log"),
        reporter,
    };
    Ok(job.chain()?)
}

/// Fills the node that serves blocks to peers, if needed.
fn make_source(
    plan: &Plan,
    keys: Keys,
    chain: &Chain,
    targets: &[Target],
    options: &RunOptions,
    reporter: &dyn Reporter,
) -> Result<Option<Source>, LabError> {
    let is_peer = |target: &Target| target.method(plan.feed.by).ok() == Some(DeliveryMethod::Peer);
    if !targets.iter().any(is_peer) {
        return Ok(None);
    }
    if chain.header.files.is_some() {
        return Ok(Some(Source::serving(chain, &options.serve_command)));
    }
    let name = format!("source{}", suffix(plan, keys));
    let log = options.out_dir.join("logs").join(format!("{name}.log"));
    let dir = options.out_dir.join(&name);
    let command = &options.node_command;
    Source::prepare(&dir, chain, command, &plan.feed, &log, reporter)
        .map(Some)
        .map_err(|source| LabError::Source { source: Box::new(source) })
}

/// Creates the script ledger of a chain.
fn make_scripts(
    plan: &Plan,
    forged: &Forged,
    options: &RunOptions,
) -> Result<PathBuf, ScriptsError> {
    let path = options.out_dir.join(format!("scripts{}.jsonl", forged.suffix(plan)));
    let job = ScriptsJob {
        chain_dir: &forged.chain.dir,
        command: &options.scripts_command,
        check: &plan.index,
        out: &path,
        log: &options.out_dir.join("logs").join("scripts.log"),
    };
    job.make()?;
    Ok(path)
}

fn summarise(chain: &Chain, forge_s: Option<f64>) -> ChainSummary {
    let (header, tip) = (chain.header.clone(), chain.tip.clone());
    ChainSummary {
        recipe: header.recipe,
        chain: header.chain,
        seed: header.seed,
        scale: header.scale,
        variant: header.variant,
        distinct_keys: header.distinct_keys,
        byte_scale: header.byte_scale,
        activation: header.activation,
        ranges: chain.ranges.clone(),
        assay_version: header.assay_version,
        recipe_sha256: Some(header.recipe_sha256),
        height: tip.height,
        tip: tip.hash,
        utxo_count: tip.utxo_count,
        utxo_amount: tip.utxo_amount,
        utxo_muhash: tip.utxo_muhash,
        txs: tip.txs,
        inputs: tip.inputs,
        outputs: tip.outputs,
        bytes: tip.bytes,
        signatures: tip.signatures,
        forge_s,
        files: header.files.map(|files| FilesLine { genesis: String::new(), ..*files }),
        snapshot: chain.snapshot.clone(),
        coins_reported_by: None,
    }
}
