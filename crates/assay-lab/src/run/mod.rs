//! Runs a plan from the forge to the report.

mod block_files;
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
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use assay_ledger::FilesLine;
use assay_report::atomic_file::{self, WriteError};

use self::journal::{Journal, Settings, run_id};
use self::snapshot::Start;
use self::source::Source;
use self::verify::Coins;
use crate::chain::{Chain, ChainSnapshot};
use crate::forge::scripts::ScriptsJob;
use crate::forge::{ForgeJob, report_reused};
use crate::machine::{self, Machine, ReferenceRate, Software, reference_rate, utc_now};
use crate::plan::{ChainPlan, Delivery, Keys, PhasePlan, Plan, TargetSpec, Variant};
use crate::process::rpc::Client;
use crate::process::{Launch, Ports, Process, stale_processes};
use crate::progress::{Event, Reporter};
use crate::report;
use crate::results::{
    ChainSummary, IndexInfo, Profile, Results, Run, SCHEMA, Status, TargetResults, disturbance,
};
use crate::target::{DeliveryMethod, SyncLaunch, Target, TargetError};

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

/// A run is invalid because its target failed. Earlier runs are kept.
#[derive(Debug, thiserror::Error)]
#[error("run {id} is void; finished runs are kept in {}, go on with --resume", kept.display())]
pub struct VoidRun {
    pub id: String,
    kept: PathBuf,
    pub source: anyhow::Error,
}

#[derive(Debug, thiserror::Error)]
#[error("interrupted at block {height}")]
struct Stopped {
    /// Next block, or block in flight.
    height: u32,
}

fn stopped(height: u32) -> anyhow::Error {
    Stopped { height }.into()
}

/// Error for a plan that cannot use block files of another program.
pub fn no_sync(plan: &str) -> anyhow::Error {
    anyhow!(
        "plan {plan} feeds transactions and blocks one at a time, for which a chain has to be forged; a chain from block files is \
         for syncs, such as core-evolution or ibd-tracking-macro"
    )
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
) -> anyhow::Result<Results> {
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
        coins: RefCell::new(
            chains.iter().map(|forged| Coins::of_ledger(&forged.chain.tip)).collect(),
        ),
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

struct Forged {
    keys: Keys,
    chain: Chain,
    summary: ChainSummary,
    scripts: Option<PathBuf>,
    /// Node that serves it to peers.
    source: Option<Source>,
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

#[derive(Clone, Copy)]
struct Slot {
    chain: usize,
    target: usize,
    seen: f64,
    repeat: u32,
}

impl Session<'_> {
    fn run(&self) -> anyhow::Result<Results> {
        let mut reference_rates = Vec::new();
        self.measure_reference_rate(&mut reference_rates)?;
        let mut runs: BTreeMap<(usize, usize), Vec<Run>> = BTreeMap::new();
        let schedule = self.schedule();
        let mut warm = vec![false; self.targets.len()];
        for (index, slot) in schedule.iter().enumerate() {
            let target = &self.targets[slot.target];
            let forged = &self.chains[slot.chain];
            let name = format!("{}{}", target.name, suffix(self.plan, forged.keys));
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
    fn profiles(&self) -> anyhow::Result<Vec<Profile>> {
        let folder = self.options.out_dir.join(profile::FOLDER);
        atomic_file::create_folder(&folder)?;
        let seen = self.plan.feed.seen.first().copied().unwrap_or_default();
        let mut profiles = Vec::new();
        let without = |target: &str, why: String| Profile {
            target: target.to_owned(),
            missing: Some(why),
            ..Profile::default()
        };
        let mut first = None;
        for (index, target) in self.targets.iter().enumerate() {
            let name = target.name.clone();
            if !profile::is_there() {
                let why = "there is no program `perf`: install it (Debian: linux-perf)";
                profiles.push(without(&name, why.to_owned()));
                continue;
            }
            let id = format!("{name}-profile");
            let data = self.options.out_dir.join("logs").join(format!("{id}.perf"));
            let slot = Slot { chain: 0, target: index, seen, repeat: 0 };
            let (_, fault) =
                self.execute(slot, target, &id, (index + 1, self.targets.len()), Some(&data));
            profiles.push(match fault {
                Some(fault) if fault.is::<Stopped>() => break,
                // A failed profiler must not discard the measured runs.
                Some(fault) => without(&name, whole_story(&*fault)),
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

    fn warm_up(&self, slot: Slot, target: &Target) -> anyhow::Result<()> {
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
    ) -> (Run, Option<anyhow::Error>) {
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

    fn void(&self, id: String, source: anyhow::Error) -> anyhow::Error {
        VoidRun { id, kept: self.options.out_dir.join("runs"), source }.into()
    }

    fn measure_reference_rate(
        &self,
        reference_rates: &mut Vec<ReferenceRate>,
    ) -> anyhow::Result<()> {
        if !self.options.reference_rate_command.is_empty() {
            self.reporter.step("measuring the reference signature library");
        }
        reference_rates.extend(reference_rate::measure(&self.options.reference_rate_command)?);
        Ok(())
    }

    fn finish(
        &self,
        mut runs: BTreeMap<(usize, usize), Vec<Run>>,
        reference_rates: Vec<ReferenceRate>,
        profiles: Vec<Profile>,
    ) -> anyhow::Result<Results> {
        let mut of_target = |target_index: usize, chain_index: usize| {
            let (target, forged) = (&self.targets[target_index], &self.chains[chain_index]);
            let mut runs = runs.remove(&(target_index, chain_index)).unwrap_or_default();
            runs.sort_by(|a, b| {
                a.seen_requested.total_cmp(&b.seen_requested).then(a.repeat.cmp(&b.repeat))
            });
            disturbance::mark_runs(&mut runs);
            TargetResults {
                name: format!("{}{}", target.name, suffix(self.plan, forged.keys)),
                family: target.family.as_str().to_owned(),
                version: target.version.clone(),
                distinct_keys: forged.summary.distinct_keys,
                index: target
                    .index
                    .as_ref()
                    .map(|index| IndexInfo { kind: index.kind, version: index.version.clone() }),
                delivery: (target.method(self.plan.feed.by).ok() == Some(DeliveryMethod::Files))
                    .then(|| "files".to_owned()),
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
            created: utc_now(),
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
fn describe_chain(plan: &mut Plan, options: &RunOptions) -> anyhow::Result<()> {
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
fn open_chain(dir: &Path, options: &RunOptions) -> anyhow::Result<Chain> {
    let chain = Chain::open(dir)?;
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
fn check_files(plan: &Plan, chain: &Chain) -> anyhow::Result<()> {
    let Some(files) = &chain.header.files else { return Ok(()) };
    ensure!(plan.feed.by.is_sync(), no_sync(&plan.name));
    // Files that are obfuscated, or extend above the tip, cannot be imported directly.
    let why = match (&files.xor_key, chain.stops_at()) {
        _ if plan.feed.by != Delivery::LoadBlock => return Ok(()),
        (Some(_), _) => "obfuscated",
        (None, Some(_)) => "of a chain that goes on above the last height",
        (None, None) => return Ok(()),
    };
    bail!(
        "--by load-block has nodes import block files as they are, but these are {why}; use --by peer, reindex or \
         reindex-chainstate"
    )
}

/// Holds the output folder until dropped. Merely closing the file would leave the lock to a child process that is being started.
struct OutputLock(File);

impl Drop for OutputLock {
    fn drop(&mut self) {
        // On failure the lock is released with the last copy of the file.
        let _ = self.0.unlock();
    }
}

fn lock(out_dir: &Path) -> anyhow::Result<OutputLock> {
    let path = out_dir.join(".lock");
    let file = File::create(&path).map_err(WriteError::at(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(OutputLock(file)),
        Err(TryLockError::WouldBlock) => bail!("{} is in use by another run", out_dir.display()),
        Err(TryLockError::Error(source)) => Err(WriteError { path, source }.into()),
    }
}

/// Resolves the targets. Searched targets of the plan may be missing, but not those of the caller.
fn detect(
    plan: &Plan,
    options: &RunOptions,
    reporter: &dyn Reporter,
) -> anyhow::Result<Vec<Target>> {
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
) -> anyhow::Result<(Chain, Option<f64>)> {
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
) -> anyhow::Result<Option<Source>> {
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
        .context("cannot fill the source of blocks")
}

fn make_scripts(plan: &Plan, forged: &Forged, options: &RunOptions) -> anyhow::Result<PathBuf> {
    let path = options.out_dir.join(format!("scripts{}.jsonl", suffix(plan, forged.keys)));
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

/// Parameters of a node without a source and with its data in `datadir`.
fn sync_launch<'a>(
    chain: &'a Chain,
    plan: &'a Plan,
    datadir: &'a Path,
    ports: &'a Ports,
) -> SyncLaunch<'a> {
    SyncLaunch {
        chain: &chain.header.chain,
        activation: &chain.header.activation,
        plan,
        datadir,
        ports,
        source: 0,
        blocks: datadir,
        assumed: chain.assumed_by(plan),
        is_own: chain.header.files.is_some(),
        stop_height: None,
    }
}

/// Command line of a target that syncs. Its credentials are written.
fn launch_sync(
    target: &Target,
    method: DeliveryMethod,
    with: &SyncLaunch<'_>,
) -> Result<Launch, WriteError> {
    let launch = target.launch_sync(method, with);
    target.write_credentials(&launch, with.datadir).map_err(WriteError::at(with.datadir))?;
    Ok(launch)
}

/// Starts a node that is not measured; returns its height, too.
fn start_unmeasured(
    target: &Target,
    method: DeliveryMethod,
    with: &SyncLaunch<'_>,
    log: &Path,
) -> anyhow::Result<(Process, Client, u64)> {
    let launch = launch_sync(target, method, with)?;
    let mut process = Process::start(launch, with.ports.rpc, log)?;
    let (credentials, info) = process.wait_answer(PAUSE)?;
    let client = process.client(&credentials);
    Ok((process, client, info.blocks))
}

/// Poll interval of a node that is not measured.
const PAUSE: Duration = Duration::from_millis(20);

/// Fails if a target has been without a new block for too long.
fn check_stall(plan: &Plan, height: u32, waited_s: f64, process: &Process) -> anyhow::Result<()> {
    let seconds = plan.feed.block_timeout_s;
    ensure!(
        waited_s <= seconds as f64,
        "no block after height {height} in {seconds} s; the target's last words:\n{}",
        process.log_tail()
    );
    Ok(())
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
