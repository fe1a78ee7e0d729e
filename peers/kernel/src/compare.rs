//! Rounds of blocks for both validations, and their results.
//!
//! A round is a fresh regtest chain in two fresh folders. It begins with a base chain that creates
//! coins of every kind, and continues with blocks of random classes. All choices follow from the
//! seed and the number of the round; only the class `time-too-new` depends on the clock.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use assay_consensus::script::{Flags, TxContext, verify_input};
use assay_engine::ImmediateChecker;
use assay_wire::{Encoding, TxOut};
use serde::Serialize;

use crate::build::{Output, Tx};
use crate::classes::{self, Listed, Meant};
use crate::judge::{Judged, Pair};
use crate::kernel::lock;
use crate::scripts::share;
use crate::verdict::Verdict;
use crate::world::World;

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Seed of all choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Blocks to submit in addition to the base chains
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub blocks: u64,
    /// Only blocks of this class; an unknown name lists them
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,
    /// Number of the first round
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub first_round: u64,
    /// Blocks in a round
    #[arg(long, default_value_t = ROUND_BLOCKS, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub round_blocks: u64,
    /// Parallel rounds
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub jobs: usize,
    /// Folder for disagreements
    #[arg(long, default_value = "disagreements", value_name = "DIR")]
    pub out: PathBuf,
}

/// Default number of blocks in a round.
pub const ROUND_BLOCKS: u64 = 1500;

/// Number of blocks between restarts of the engine.
const RESTART_BLOCKS: u64 = 400;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Tally {
    pub blocks: u64,
    pub accepted: u64,
    pub rejected: u64,
    /// Neither: undecodable, duplicate, inconclusive.
    pub other: u64,
    /// Draws whose last block ended as intended by the class.
    pub as_meant: u64,
    /// Draws whose last block ended otherwise.
    pub not_meant: u64,
    /// Draws for which the round had no coins.
    pub skipped: u64,
    pub disagreements: u64,
    pub reasons: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    pub seed: u64,
    /// Rounds, in order.
    pub rounds: u64,
    /// Blocks of the base chains.
    pub base_blocks: u64,
    /// Compared coins of undo data.
    pub undo_coins: u64,
    pub elapsed_s: f64,
    pub classes: BTreeMap<String, Tally>,
    /// Count of each reject reason, over all classes.
    pub reasons: BTreeMap<String, u64>,
    pub files: Vec<PathBuf>,
}

impl Summary {
    /// Number of blocks without the base chains.
    pub fn blocks(&self) -> u64 {
        self.classes.values().map(|tally| tally.blocks).sum()
    }

    pub fn disagreements(&self) -> u64 {
        self.classes.values().map(|tally| tally.disagreements).sum()
    }

    fn merge(&mut self, other: Self) {
        self.rounds += other.rounds;
        self.base_blocks += other.base_blocks;
        self.undo_coins += other.undo_coins;
        self.files.extend(other.files);
        for (name, tally) in other.classes {
            let sum = self.classes.entry(name).or_default();
            sum.blocks += tally.blocks;
            sum.accepted += tally.accepted;
            sum.rejected += tally.rejected;
            sum.other += tally.other;
            sum.as_meant += tally.as_meant;
            sum.not_meant += tally.not_meant;
            sum.skipped += tally.skipped;
            sum.disagreements += tally.disagreements;
            for (reason, count) in tally.reasons {
                *self.reasons.entry(reason.clone()).or_default() += count;
                *sum.reasons.entry(reason).or_default() += count;
            }
        }
    }

    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<34}{:>8}{:>9}{:>9}{:>8}{:>9}{:>9}{:>9}\n",
            "class", "blocks", "accepted", "rejected", "other", "as meant", "not", "disagree"
        );
        for (name, tally) in &self.classes {
            let _ = writeln!(
                text,
                "{name:<34}{:>8}{:>9}{:>9}{:>8}{:>9}{:>9}{:>9}",
                tally.blocks,
                tally.accepted,
                tally.rejected,
                tally.other,
                tally.as_meant,
                tally.not_meant,
                tally.disagreements
            );
            for (reason, count) in &tally.reasons {
                let _ = writeln!(text, "    {count:>8}  {reason}");
            }
        }
        let _ = writeln!(text, "\nreject reasons over all classes");
        for (reason, count) in &self.reasons {
            let _ = writeln!(text, "    {count:>8}  {reason}");
        }
        let _ = writeln!(
            text,
            "\nseed {}, {} rounds, {} blocks besides {} of base chains, {} undo coins compared, \
             {:.0} s, {} disagreements",
            self.seed,
            self.rounds,
            self.blocks(),
            self.base_blocks,
            self.undo_coins,
            self.elapsed_s,
            self.disagreements()
        );
        text
    }
}

/// A disagreement, as written to a file.
#[derive(Serialize)]
struct Evidence<'a> {
    class: &'a str,
    seed: u64,
    round: u64,
    block_in_round: u64,
    engine: String,
    kernel: String,
    engine_tip: String,
    kernel_tip: String,
    tip_before: String,
    height_before: u32,
    block: String,
    /// Previous blocks of the same draw.
    before: Vec<String>,
    reproduce: String,
}

/// Runs rounds until enough blocks have been submitted.
pub fn run(options: &Options, progress: &(dyn Fn(u64) + Sync)) -> Result<Summary> {
    let start = Instant::now();
    let mut classes = classes::all();
    if let Some(wanted) = &options.class {
        classes.retain(|class| class.name == wanted);
        if classes.is_empty() {
            let names: Vec<&str> = classes::all().iter().map(|class| class.name).collect();
            bail!("unknown class {wanted}; there are: {}", names.join(", "));
        }
    }
    let rounds = options.blocks.div_ceil(options.round_blocks.max(1));
    let total = Mutex::new((Summary { seed: options.seed, ..Summary::default() }, Ok(())));
    share(options.jobs, rounds, |round| {
        let left = options.blocks - round * options.round_blocks;
        let count = left.min(options.round_blocks);
        let result = run_round(options, options.first_round + round, count, &classes);
        let mut total = lock(&total);
        let (summary, outcome) = &mut *total;
        match result {
            Ok(part) => summary.merge(part),
            Err(error) => *outcome = Err(error),
        }
        progress(summary.blocks());
        outcome.is_ok()
    });
    let (mut summary, outcome) =
        total.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    outcome?;
    summary.elapsed_s = start.elapsed().as_secs_f64();
    Ok(summary)
}

fn run_round(options: &Options, round: u64, count: u64, classes: &[Listed]) -> Result<Summary> {
    let dir = tempfile::tempdir().context("making a folder for the round")?;
    let mut pair = Pair::open(dir.path())?;
    let mut world = World::new(options.seed, round)?;
    let mut summary = Summary { rounds: 1, ..Summary::default() };
    while let Some(raw) = world.base_block() {
        let judged = pair.submit(&raw);
        if !judged.agrees() || judged.kernel != Verdict::Accepted {
            let path = write_evidence(options, round, 0, "base", &raw, &[], &judged, &world)?;
            bail!(
                "base block {} of round {round}: engine {}, kernel {}; see {}",
                world.state.height() + 1,
                judged.engine,
                judged.kernel,
                path.display()
            );
        }
        world.note(&raw, &judged.kernel, judged.kernel_tip.1)?;
        summary.base_blocks += 1;
    }
    let weights: u64 = classes.iter().map(|class| u64::from(class.weight)).sum();
    let mut submitted = 0;
    let mut empty_draws = 0;
    let mut next_restart = RESTART_BLOCKS;
    while submitted < count && empty_draws < 1000 {
        let class = draw(classes, weights, &mut world);
        let blocks = (class.make)(&mut world);
        let tally = summary.classes.entry(class.name.to_owned()).or_default();
        if blocks.is_empty() {
            tally.skipped += 1;
            empty_draws += 1;
            continue;
        }
        empty_draws = 0;
        if submitted >= next_restart {
            next_restart += RESTART_BLOCKS;
            pair.restart_engine(world.rng.chance(1, 2))?;
        }
        for (index, raw) in blocks.iter().enumerate() {
            let judged = pair.submit(raw);
            submitted += 1;
            tally.blocks += 1;
            count_verdict(tally, &judged.kernel);
            let agrees = judged.agrees() || is_other_input(&world, raw, &judged);
            if !agrees {
                tally.disagreements += 1;
                let before = &blocks[..index];
                summary.files.push(write_evidence(
                    options, round, submitted, class.name, raw, before, &judged, &world,
                )?);
            }
            if index + 1 == blocks.len() && class.meant != Meant::Anything {
                if class.meant.is_met_by(&without_debug(&judged)) {
                    tally.as_meant += 1;
                } else {
                    tally.not_meant += 1;
                }
            }
            if judged.engine_tip != judged.kernel_tip || matches!(judged.engine, Verdict::Failed(_))
            {
                // Further blocks would repeat the disagreement.
                return Ok(summary);
            }
            world.note(raw, &judged.kernel, judged.kernel_tip.1)?;
        }
    }
    summary.undo_coins = pair.compare_undo()?;
    Ok(summary)
}

fn draw<'a>(classes: &'a [Listed], weights: u64, world: &mut World) -> &'a Listed {
    let mut at = world.rng.below(weights as usize) as u64;
    for class in classes {
        match at.checked_sub(u64::from(class.weight)) {
            Some(left) => at = left,
            None => return class,
        }
    }
    &classes[0]
}

fn count_verdict(tally: &mut Tally, kernel: &Verdict) {
    match kernel {
        Verdict::Accepted => tally.accepted += 1,
        Verdict::Rejected { reason, .. } => {
            tally.rejected += 1;
            *tally.reasons.entry(short(reason).to_owned()).or_default() += 1;
        }
        other => {
            tally.other += 1;
            *tally.reasons.entry(other.label().to_owned()).or_default() += 1;
        }
    }
}

/// The reason without the debug message that the log appends.
fn short(reason: &str) -> &str {
    reason.split_once(", ").map_or(reason, |(reason, _)| reason)
}

/// The engine's verdict if both agree, since it has no debug message.
fn without_debug(judged: &Judged) -> Verdict {
    match &judged.kernel {
        Verdict::Rejected { reason, class } => {
            Verdict::Rejected { reason: short(reason).to_owned(), class: *class }
        }
        other => other.clone(),
    }
}

/// True if both reject the block for a script, but of different inputs, and the engine's
/// interpreter agrees with the kernel on the kernel's input.
///
/// The kernel checks scripts on several threads and reports the first failure found; the engine
/// reports that of the lowest input. Both are correct if several inputs fail.
pub(crate) fn is_other_input(world: &World, raw: &[u8], judged: &Judged) -> bool {
    const PREFIX: &str = "block-script-verify-flag-failed (";
    let (Verdict::Rejected { reason: ours, .. }, Verdict::Rejected { reason: theirs, .. }) =
        (&judged.engine, &judged.kernel)
    else {
        return false;
    };
    if !ours.starts_with(PREFIX)
        || !theirs.starts_with(PREFIX)
        || judged.engine_tip != judged.kernel_tip
    {
        return false;
    }
    let Some((text, place)) = theirs[PREFIX.len()..].split_once("), input ") else { return false };
    let mut words = place.split_whitespace();
    let (Some(Ok(input)), Some("of"), Some(txid)) =
        (words.next().map(str::parse::<usize>), words.next(), words.next())
    else {
        return false;
    };
    let Ok(block) = assay_wire::Block::parse_prefix(raw.to_vec(), Encoding::Segwit) else {
        return false;
    };
    let Some(state) = world.state_of(&block.header().prev_block) else { return false };
    let Some(tx) = block.txs().find(|tx| tx.txid().to_string() == txid) else { return false };
    let made: Vec<Tx> = block.txs().map(Tx::from_wire).collect();
    let spent: Option<Vec<Output>> = tx
        .inputs()
        .map(|input| {
            state.coins.get(&input.prevout).map(|coin| coin.output.clone()).or_else(|| {
                let parent = made.iter().find(|tx| tx.txid() == input.prevout.txid)?;
                parent.outputs.get(input.prevout.vout as usize).cloned()
            })
        })
        .collect();
    let Some(spent) = spent else { return false };
    let views: Vec<TxOut<'_>> = spent.iter().map(Output::view).collect();
    let context = TxContext::new(tx, &views);
    input < views.len()
        && verify_input(&context, input, Flags::BITCOIN_BLOCK, &mut ImmediateChecker)
            .is_err_and(|error| error.to_string() == text)
}

#[expect(clippy::too_many_arguments, reason = "what a report of a disagreement is made of")]
fn write_evidence(
    options: &Options,
    round: u64,
    block_in_round: u64,
    class: &str,
    raw: &[u8],
    before: &[Vec<u8>],
    judged: &Judged,
    world: &World,
) -> Result<PathBuf> {
    let class_option =
        options.class.as_ref().map_or_else(String::new, |class| format!(" --class {class}"));
    let reproduce = format!(
        "assay-peer-kernel compare --seed {} --first-round {round} --blocks {} --round-blocks {}{class_option}",
        options.seed,
        block_in_round.max(1),
        options.round_blocks,
    );
    let tip = |(height, hash): (u32, assay_wire::BlockHash)| format!("{height} {hash}");
    let evidence = Evidence {
        class,
        seed: options.seed,
        round,
        block_in_round,
        engine: judged.engine.to_string(),
        kernel: judged.kernel.to_string(),
        engine_tip: tip(judged.engine_tip),
        kernel_tip: tip(judged.kernel_tip),
        tip_before: world.state.hash().to_string(),
        height_before: world.state.height(),
        block: faster_hex::hex_string(raw),
        before: before.iter().map(|raw| faster_hex::hex_string(raw)).collect(),
        reproduce,
    };
    std::fs::create_dir_all(&options.out)
        .with_context(|| format!("making {}", options.out.display()))?;
    let path: PathBuf =
        options.out.join(format!("disagreement-{}-{round}-{block_in_round}.json", options.seed));
    write_json(&path, &evidence)?;
    Ok(path)
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string_pretty(value).context("writing JSON")?;
    std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}
