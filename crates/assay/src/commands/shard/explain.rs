//! `assay shard explain`.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use assay_engine::{Part, PartResult, PartTiming, Plan, STAGES, ShardVerdict, Unspent, merge};
use serde::Serialize;
use serde_json::{Value, json};

use super::{describe, open, report};
use crate::Outcome;
use crate::cli::ShardExplainArguments;
use crate::output;

pub(super) fn run(arguments: &ShardExplainArguments) -> anyhow::Result<Outcome> {
    let plan = open(&arguments.plan)?;
    let start = Instant::now();
    let results = match &arguments.results {
        Some(dir) => Some((dir, report::read_all(&plan, dir, None)?)),
        None => None,
    };
    let run = match &results {
        Some((dir, results)) => Some(Ran::new(&plan, dir, results, start)?),
        None => None,
    };
    let explained = Explained::new(&plan, results.as_ref().map(|(_, results)| &results[..]), run);
    output::print_as(arguments.json, &explained.json(), || explained.text())?;
    Ok(Outcome::Good)
}

struct Explained<'a> {
    plan: &'a Plan,
    inputs: u64,
    block_bytes: u64,
    parts: Vec<PartLine>,
    run: Option<Ran>,
}

#[derive(Serialize)]
struct PartLine {
    part: usize,
    what: String,
    inputs: u64,
    bytes: u64,
    /// Share of the inputs, or of the unspent coins, in an even cut.
    share: f64,
    /// `missing`, `passed`, or the reason of the rejection.
    result: Option<String>,
}

/// Measured times of the parts.
#[derive(Serialize)]
struct Ran {
    verdict: String,
    timed_parts: usize,
    merge_s: f64,
    /// Seconds of each part, by its number; null if unknown.
    elapsed_s: Vec<Option<f64>>,
    cpu_s: f64,
    /// Processor time by stage.
    stages: Vec<StageTime>,
    slowest_part: Option<usize>,
    /// Time of the slowest part over the mean of its kind.
    slowest_ratio: f64,
}

#[derive(Serialize)]
struct StageTime {
    stage: &'static str,
    seconds: f64,
    share: f64,
}

impl Ran {
    fn new(
        plan: &Plan,
        dir: &Path,
        results: &[Option<PartResult>],
        start: Instant,
    ) -> anyhow::Result<Self> {
        let verdict = verdict(&merge(plan, results).verdict);
        let merge_s = start.elapsed().as_secs_f64();
        let mut timings = Vec::new();
        for part in 0..results.len() {
            timings.push(PartTiming::read(dir, part)?);
        }
        let elapsed_s: Vec<Option<f64>> = timings
            .iter()
            .map(|timing| timing.map(|timing| timing.elapsed.as_secs_f64()))
            .collect();
        let parts: Vec<(usize, f64)> = elapsed_s
            .iter()
            .enumerate()
            .filter_map(|(part, elapsed_s)| elapsed_s.map(|elapsed_s| (part, elapsed_s)))
            .collect();
        let slowest = parts.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1));
        let is_blocks = |part: usize| matches!(plan.parts()[part], Part::Blocks { .. });
        let slowest_ratio = slowest.map_or(1.0, |(slowest, slowest_s)| {
            let alike = parts.iter().filter(|(part, _)| is_blocks(*part) == is_blocks(slowest));
            let (sum_s, count) =
                alike.fold((0.0, 0.0), |(sum_s, count), (_, s)| (sum_s + s, count + 1.0));
            slowest_s * count / sum_s
        });
        let known: Vec<PartTiming> = timings.into_iter().flatten().collect();
        Ok(Self {
            verdict,
            timed_parts: known.len(),
            merge_s,
            elapsed_s,
            cpu_s: known.iter().map(|timing| timing.cpu).sum::<Duration>().as_secs_f64(),
            stages: stages(&known),
            slowest_part: slowest.map(|(part, _)| part),
            slowest_ratio,
        })
    }

    fn text(&self, parts: &[PartLine], text: &mut String) {
        let _ = writeln!(text, "\nresult       {}", self.verdict);
        if self.timed_parts == 0 {
            let _ = writeln!(text, "no part was timed here");
            return;
        }
        let (timed, all) = (self.timed_parts, parts.len());
        let _ = writeln!(
            text,
            "timed        {timed} of {all} parts, {:.2} s of processor time",
            self.cpu_s
        );
        for StageTime { stage, seconds, share } in &self.stages {
            let _ = writeln!(text, "  {:5.1} %  {seconds:9.2} s  {stage}", share * 100.0);
        }
        if let Some(slowest) = self.slowest_part {
            let (ratio, what) = (self.slowest_ratio, &parts[slowest].what);
            let elapsed_s = self.elapsed_s[slowest].unwrap_or_default();
            let _ = writeln!(
                text,
                "slowest      part {slowest} ({what}): {elapsed_s:.2} s, {ratio:.2} times the mean of its kind"
            );
        }
        let _ = writeln!(text, "merge        {:.3} s", self.merge_s);
    }
}

impl<'a> Explained<'a> {
    fn new(plan: &'a Plan, results: Option<&[Option<PartResult>]>, run: Option<Ran>) -> Self {
        let size = |part: &Part| match *part {
            Part::Blocks { inputs, bytes, .. } => (inputs, bytes),
            Part::Coins { coins, bytes, .. } => (coins, bytes),
        };
        let is_blocks = |part: &Part| matches!(part, Part::Blocks { .. });
        let sum = |of_blocks: bool| -> (u64, u64) {
            let parts = plan.parts().iter().filter(|part| is_blocks(part) == of_blocks);
            parts.map(size).fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1))
        };
        let ((inputs, block_bytes), (coins, _)) = (sum(true), sum(false));
        let line = |(number, part): (usize, &Part)| {
            let (count, bytes) = size(part);
            let all = if is_blocks(part) { inputs } else { coins };
            let result = results.map(|results| match &results[number] {
                None => "missing".to_owned(),
                Some(result) => result.rejection().map_or("passed".to_owned(), ToString::to_string),
            });
            let share = count as f64 / all.max(1) as f64;
            PartLine { part: number, what: describe(part), inputs: count, bytes, share, result }
        };
        let parts = plan.parts().iter().enumerate().map(line).collect();
        Self { plan, inputs, block_bytes, parts, run }
    }

    /// Known data of the unspent coins.
    fn unspent(&self) -> &'static str {
        match self.plan.unspent() {
            Unspent::Coins { .. } => "coins",
            Unspent::Hints { .. } => "hints",
            Unspent::MuHash(_) => "muhash",
        }
    }

    fn json(&self) -> Value {
        json!({
            "schema": 2,
            "chain": self.plan.params().name,
            "plan": faster_hex::hex_string(&self.plan.id()),
            "tip_height": self.plan.height(),
            "tip_hash": self.plan.tip().to_string(),
            "unspent": self.unspent(),
            "inputs": self.inputs,
            "block_bytes": self.block_bytes,
            "parts": self.parts,
            "run": self.run,
        })
    }

    fn text(&self) -> String {
        let Self { plan, inputs, block_bytes, parts, run } = self;
        let (id, chain) = (faster_hex::hex_string(&plan.id()), plan.params().name);
        let (tip_height, tip_hash, unspent) = (plan.height(), plan.tip(), self.unspent());
        let mut text = format!(
            "plan         {id}\nchain        {chain} up to height {tip_height} {tip_hash}\nwork         {inputs} inputs in {block_bytes} bytes of blocks, {} parts; coins left over by {unspent}\n\n",
            parts.len()
        );
        let _ = writeln!(text, "part  share %   time s  result   what");
        for line in parts {
            let time = run.as_ref().and_then(|run| run.elapsed_s[line.part]);
            let time = time.map_or("-".to_owned(), |time| format!("{time:.2}"));
            let (part, share, what) = (line.part, line.share * 100.0, &line.what);
            let result = match line.result.as_deref() {
                None => "-",
                Some(known @ ("passed" | "missing")) => known,
                Some(_) => "rejected",
            };
            let _ = writeln!(text, "{part:4}  {share:7.2}  {time:>7}  {result:8} {what}");
        }
        if let Some(run) = run {
            run.text(parts, &mut text);
        }
        text
    }
}

/// Processor time by stage; time outside all stages is that of scripts.
fn stages(timings: &[PartTiming]) -> Vec<StageTime> {
    let cpu: Duration = timings.iter().map(|timing| timing.cpu).sum();
    let sum = |stage: usize| timings.iter().map(|timing| timing.stages[stage]).sum::<Duration>();
    let known: [Duration; STAGES] = std::array::from_fn(sum);
    let rest = cpu.saturating_sub(known.iter().sum());
    let all = cpu.max(known.iter().sum()).as_secs_f64();
    let line = |(stage, time): (&'static str, Duration)| {
        let seconds = time.as_secs_f64();
        StageTime { stage, seconds, share: if all > 0.0 { seconds / all } else { 0.0 } }
    };
    STAGE_NAMES
        .into_iter()
        .zip(known)
        .chain([("scripts and everything else", rest)])
        .map(line)
        .collect()
}

fn verdict(verdict: &ShardVerdict) -> String {
    match verdict {
        ShardVerdict::Valid => "valid".to_owned(),
        ShardVerdict::Missing(parts) => format!("{} parts have no result", parts.len()),
        other => report::rejection(other).unwrap_or_default(),
    }
}

const STAGE_NAMES: [&str; STAGES] = [
    "reading, parsing and hashing blocks",
    "checks without coins",
    "spent coins, and checks with them",
    "sums over coins, coins left over",
];
