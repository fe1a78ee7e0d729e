//! `assay shard scatter`, `join` and `gather`.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use anyhow::{Context, anyhow, bail, ensure};
use assay_engine::{
    ChainParams, Joined, MissingCoin, Scattered, ShardError, Shuffle, ShuffleConfig, gather_left,
    gather_range, has_gathered_left, has_gathered_range, join_partition, prepare_shuffle,
    scatter_range, unit_memory_bytes,
};
use assay_node::SNAPSHOT_KEYS;
use serde::Serialize;

use super::cores;
use super::units::{Lock, Units};
use crate::Outcome;
use crate::bitcoind::with_activation_heights;
use crate::cli::{ShardGatherArguments, ShardJoinArguments, ShardScatterArguments, ShuffleLimits};
use crate::commands::validate::{Progress, rss_bytes_max};
use crate::commands::{chain, mebibytes, stop_flag};
use crate::output;

pub(super) fn scatter(arguments: &ShardScatterArguments) -> anyhow::Result<Outcome> {
    let (work, limits) = (&arguments.work, &arguments.limits);
    let stop = stop_flag();
    std::fs::create_dir_all(work).with_context(|| format!("{}", work.display()))?;
    let _lock = Lock::new(work, limits.only.is_some(), &[work])?;
    if !Shuffle::is_prepared(work) {
        prepare(arguments)?;
    }
    let shuffle = open(work)?;
    check_same(&shuffle, arguments)?;
    let step = Step::new("scatter", &shuffle, limits, shuffle.ranges().len(), &stop)?;
    let found = Mutex::new(Scattered::default());
    let blocks = arguments.blocks.as_deref();
    let is_done = |range| shuffle.is_scattered(range);
    let run = step.units(is_done)?.run(&|range| {
        let more = scatter_range(&shuffle, range, blocks, step.unit_bytes, &stop)?;
        let mut sum = found.lock().map_err(|_| anyhow!("another thread failed"))?;
        sum.outputs += more.outputs;
        sum.inputs += more.inputs;
        sum.matched += more.matched;
        sum.spills += more.spills;
        Ok(true)
    })?;
    let Scattered { outputs, inputs, matched, spills } =
        found.into_inner().map_err(|_| anyhow!("a thread failed"))?;
    step.report(run, Figures { outputs, inputs, matched, spills, ..Figures::default() })
}

pub(super) fn join(arguments: &ShardJoinArguments) -> anyhow::Result<Outcome> {
    let (work, limits) = (&arguments.work, &arguments.limits);
    let stop = stop_flag();
    let shuffle = open(work)?;
    let _lock = Lock::new(work, limits.only.is_some(), &[work])?;
    let step = Step::new("join", &shuffle, limits, shuffle.partitions() as usize, &stop)?;
    let figures = Mutex::new(Figures::default());
    let is_done = |partition: usize| shuffle.is_joined(partition as u32);
    let run = step.units(is_done)?.run(&|partition| {
        let joined = join_partition(&shuffle, partition as u32, step.unit_bytes, &stop)?;
        let mut figures = figures.lock().map_err(|_| anyhow!("another thread failed"))?;
        match joined {
            Joined::Matched { spent, left, passes } => {
                figures.inputs += spent;
                figures.left += left;
                figures.passes = figures.passes.max(passes);
                Ok(true)
            }
            Joined::Missing(MissingCoin { outpoint, height, hash }) => {
                let what = format!(
                    "block {hash} at height {height} spends {outpoint}, which does not exist, is spent before, or is created later: the chain \
                     is invalid; `assay validate` over the same blocks gives the verdict"
                );
                figures.rejected.get_or_insert(what);
                Ok(false)
            }
        }
    })?;
    step.report(run, figures.into_inner().map_err(|_| anyhow!("a thread failed"))?)
}

pub(super) fn gather(arguments: &ShardGatherArguments) -> anyhow::Result<Outcome> {
    let (work, out, limits) = (&arguments.work, &arguments.out, &arguments.limits);
    let stop = stop_flag();
    let shuffle = open(work)?;
    std::fs::create_dir_all(out).with_context(|| format!("{}", out.display()))?;
    let _lock = Lock::new(work, limits.only.is_some(), &[out])?;
    let ranges = shuffle.ranges().len();
    claim_folder(&shuffle, out)?;
    // The coins left over are one unit more.
    let step = Step::new("gather", &shuffle, limits, ranges + 1, &stop)?;
    let is_done = |unit| match unit {
        unit if unit == ranges => has_gathered_left(out),
        range => has_gathered_range(out, range),
    };
    let figures = Mutex::new(Figures::default());
    let run = step.units(is_done)?.run(&|unit| {
        if unit == ranges {
            let left = gather_left(&shuffle, out, SNAPSHOT_KEYS, step.unit_bytes, &stop)?;
            figures.lock().map_err(|_| anyhow!("another thread failed"))?.left += left;
        } else {
            let spent = gather_range(&shuffle, unit, out, step.unit_bytes, &stop)?;
            figures.lock().map_err(|_| anyhow!("another thread failed"))?.inputs += spent;
        }
        Ok(true)
    })?;
    step.report(run, figures.into_inner().map_err(|_| anyhow!("a thread failed"))?)
}

fn prepare(arguments: &ShardScatterArguments) -> anyhow::Result<()> {
    let limits = &arguments.limits;
    let Some(blocks) = &arguments.blocks else {
        bail!("{}: nothing is prepared there yet; give --blocks", arguments.work.display());
    };
    ensure!(arguments.parts > 0, "--parts 0: give 1 or more");
    let params = with_activation_heights(
        Arc::unwrap_or_clone(chain(arguments.chain.as_deref().unwrap_or("main"))?),
        "--test-activation-height",
        &arguments.test_activation_height,
    )?;
    let mut key = [0; 16];
    getrandom::fill(&mut key)
        .map_err(|error| anyhow!("the system gives no random bytes: {error}"))?;
    let threads = limits.threads();
    let config = ShuffleConfig {
        blocks: blocks.clone(),
        params: Arc::new(params),
        stop_height: arguments.stop_height,
        ranges: arguments.parts,
        partitions: None,
        unit_bytes: (mebibytes("--memory", limits.memory)? / threads) as u64,
        key,
        threads,
    };
    let progress = Progress::new(false);
    let prepared = prepare_shuffle(&config, &arguments.work, &progress);
    progress.clear();
    Ok(prepared?)
}

/// What is prepared must be what is asked for.
fn check_same(shuffle: &Shuffle, arguments: &ShardScatterArguments) -> anyhow::Result<()> {
    let work = arguments.work.display();
    if let Some(name) = &arguments.chain {
        let found = shuffle.chain();
        let wanted = chain(name)?.name;
        ensure!(
            wanted == found,
            "{work}: is a shuffle of {found}, not of {wanted}; give another folder"
        );
    }
    if let Some(height) = arguments.stop_height {
        let found = shuffle.tip().0;
        ensure!(
            height == found,
            "{work}: is a shuffle up to height {found}, not {height}; give another folder"
        );
    }
    Ok(())
}

fn open(work: &Path) -> anyhow::Result<Shuffle> {
    ensure!(
        Shuffle::is_prepared(work),
        "{}: holds no shuffle; `assay shard scatter` begins one",
        work.display()
    );
    let params_of = |name: &str, _: &[String]| {
        ChainParams::by_name(name).ok_or_else(|| assay_engine::unknown_chain(name))
    };
    Ok(Shuffle::open(work, &params_of)?)
}

/// Files in the folder must not be those of another chain, or of another shuffle: names alone show what is done.
fn claim_folder(shuffle: &Shuffle, out: &Path) -> anyhow::Result<()> {
    let path = out.join("shuffle");
    let id = format!("{}\n", faster_hex::hex_string(&shuffle.id()));
    match std::fs::read_to_string(&path) {
        Ok(found) if found == id => Ok(()),
        Ok(_) => bail!("{}: holds coins of another shuffle; give another folder", out.display()),
        Err(_) if has_gathered_left(out) || has_gathered_range(out, 0) => {
            bail!("{}: holds spent coins already; give another folder", out.display())
        }
        Err(_) => std::fs::write(&path, id).with_context(|| format!("{}", path.display())),
    }
}

impl ShuffleLimits {
    fn threads(&self) -> usize {
        if self.par > 0 { self.par } else { cores() }
    }
}

/// One of the three steps.
struct Step<'a> {
    name: &'static str,
    shuffle: &'a Shuffle,
    limits: &'a ShuffleLimits,
    count: usize,
    threads: usize,
    unit_bytes: u64,
    stop: &'a AtomicBool,
}

impl<'a> Step<'a> {
    fn new(
        name: &'static str,
        shuffle: &'a Shuffle,
        limits: &'a ShuffleLimits,
        count: usize,
        stop: &'a AtomicBool,
    ) -> anyhow::Result<Self> {
        let threads = if limits.only.is_some() { 1 } else { limits.threads().min(count) };
        let memory = mebibytes("--memory", limits.memory)? as u64;
        let unit_bytes = unit_memory_bytes(memory, threads, shuffle.largest_block_bytes());
        let unit_bytes = unit_bytes.map_err(|error: ShardError| anyhow!("--memory: {error}"))?;
        Ok(Self { name, shuffle, limits, count, threads, unit_bytes, stop })
    }

    /// What is to be done.
    fn units(&self, is_done: impl Fn(usize) -> bool) -> anyhow::Result<Units<'a>> {
        let (name, count) = (self.name, self.count);
        if let Some(only) = self.limits.only {
            ensure!(only < count, "--only {only}: {name} has {count} units, the first is 0");
        }
        let wanted = self.limits.only.map_or(0..count, |only| only..only + 1);
        let asked = wanted.len();
        let missing: Vec<usize> = wanted.filter(|unit| !is_done(*unit)).collect();
        if missing.len() < asked {
            output::complain(&format!("{name}: {} of {asked} are there", asked - missing.len()));
        }
        Ok(Units { name, missing, threads: self.threads, stop: self.stop })
    }

    fn report(&self, done: usize, figures: Figures) -> anyhow::Result<Outcome> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(Outcome::Interrupted);
        }
        let (tip_height, tip_hash) = self.shuffle.tip();
        let rejected = figures.rejected.is_some();
        let report = Report {
            schema: 1,
            step: self.name,
            chain: self.shuffle.chain().to_owned(),
            tip_height,
            tip_hash: tip_hash.to_string(),
            ranges: self.shuffle.ranges().len(),
            partitions: self.shuffle.partitions(),
            units: self.count,
            units_done: done,
            peak_memory_bytes: rss_bytes_max(),
            figures,
        };
        if self.limits.json {
            output::print_json(&report)?;
        } else {
            output::print(&report.text())?;
        }
        Ok(if rejected { Outcome::Negative } else { Outcome::Good })
    }
}

/// Sums over the units of this run.
#[derive(Default, Serialize)]
struct Figures {
    outputs: u64,
    inputs: u64,
    /// Inputs whose coin was found within their range.
    matched: u64,
    /// How often memory was full.
    spills: u64,
    /// Most passes over a partition.
    passes: u32,
    /// Coins left over.
    left: u64,
    /// Why the chain is invalid.
    rejected: Option<String>,
}

/// What a step prints.
#[derive(Serialize)]
struct Report {
    schema: u32,
    step: &'static str,
    chain: String,
    tip_height: u32,
    tip_hash: String,
    ranges: usize,
    partitions: u32,
    units: usize,
    /// Units that this run has done; the others were there.
    units_done: usize,
    peak_memory_bytes: Option<u64>,
    #[serde(flatten)]
    figures: Figures,
}

impl Report {
    fn text(&self) -> String {
        let Self { step, units_done, units, figures, .. } = self;
        let Figures { outputs, inputs, matched, spills, passes, left, rejected } = figures;
        let what = match *step {
            "scatter" => format!(
                "{outputs} outputs, {inputs} inputs, {matched} of them matched in memory, {spills} spills"
            ),
            "join" => {
                format!("{inputs} inputs matched, {left} coins left over, {passes} passes at most")
            }
            _ => format!("{inputs} spent coins, {left} left over"),
        };
        let memory = self.peak_memory_bytes.map_or(String::new(), |bytes| {
            format!(", peak memory {} MiB", bytes.div_ceil(1 << 20))
        });
        let rejected = rejected.as_ref().map_or(String::new(), |why| format!("rejected: {why}\n"));
        format!("{rejected}{step}: {units_done} of {units} done now: {what}{memory}\n")
    }
}
