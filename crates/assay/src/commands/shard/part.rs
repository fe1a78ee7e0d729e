//! `assay shard run --part`.

use std::io::{self, BufRead};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use assay_engine::{PartConfig, PartProgress, PartTimer, Plan, Salt, ShardError, run_part};
use serde::{Deserialize, Serialize};

use super::{open, part_config, salt_of};
use crate::Outcome;
use crate::cli::ShardRunArguments;
use crate::commands::{stop_flag, threads};
use crate::output;

pub(super) fn run(arguments: &ShardRunArguments) -> anyhow::Result<Outcome> {
    let stop = stop_flag();
    let plan = open(&arguments.plan)?;
    let input = Input::open(arguments.with_parent || arguments.follow);
    let salt = salt_of(&input.line().context("there is no salt on standard input")?)?;
    let config = part_config(&arguments.inputs, threads(arguments.par.unwrap_or_default()));
    let job = Job { arguments, plan, salt, config, stop: &stop };
    let Some(part) = arguments.part else { return job.follow(&input) };
    let Some(summary) = job.judge(part)? else { return Ok(Outcome::Interrupted) };
    output::print_as(arguments.json, &summary, || summary.text())?;
    Ok(if summary.rejected.is_some() { Outcome::Negative } else { Outcome::Good })
}

struct Job<'a> {
    arguments: &'a ShardRunArguments,
    plan: Plan,
    salt: Salt,
    config: PartConfig,
    stop: &'a AtomicBool,
}

impl Job<'_> {
    /// Verifies a part and writes its result; `None` if interrupted.
    fn judge(&self, part: usize) -> anyhow::Result<Option<Summary>> {
        let (start, timer) = (Instant::now(), PartTimer::new());
        let progress = Progress(Mutex::new(start));
        let show = |state| progress.show(state, start);
        let result = match run_part(&self.plan, part, &self.salt, &self.config, self.stop, &show) {
            Err(ShardError::Interrupted) => return Ok(None),
            other => other?,
        };
        let timing = timer.finish(self.config.threads, &self.config.clock);
        result.write(&self.arguments.out)?;
        timing.write(&self.arguments.out, part)?;
        let totals = result.totals();
        Ok(Some(Summary {
            schema: 1,
            part,
            rejected: result.rejection().map(ToString::to_string),
            blocks: totals.blocks,
            txs: totals.txs,
            inputs: totals.inputs,
            elapsed_s: start.elapsed().as_secs_f64(),
        }))
    }

    /// Verifies parts by the numbers read from standard input.
    fn follow(&self, input: &Input) -> anyhow::Result<Outcome> {
        while let Some(line) = input.line() {
            let Ok(part) = line.trim().parse() else { bail!("{line}: give the number of a part") };
            let Some(summary) = self.judge(part)? else { return Ok(Outcome::Interrupted) };
            let line = serde_json::to_string(&summary).context("cannot write JSON")?;
            output::print(&format!("{line}\n"))?;
        }
        Ok(Outcome::Good)
    }
}

/// Output of `assay shard run --part --json`.
#[derive(Serialize, Deserialize)]
pub(super) struct Summary {
    schema: u32,
    pub(super) part: usize,
    /// Reason of the rejection, if a block is invalid.
    pub(super) rejected: Option<String>,
    blocks: u64,
    txs: u64,
    pub(super) inputs: u64,
    elapsed_s: f64,
}

impl Summary {
    fn text(&self) -> String {
        let Self { part, rejected, blocks, inputs, elapsed_s, .. } = self;
        let verdict =
            rejected.as_ref().map_or("passed".to_owned(), |why| format!("rejected: {why}"));
        format!("part {part} {verdict}\n{blocks} blocks, {inputs} inputs in {elapsed_s:.2} s\n")
    }
}

struct Input(Option<Receiver<String>>);

impl Input {
    /// With `ends`, the process exits at the end of standard input, even during a part. No data is
    /// lost: a result gets its name only when complete.
    fn open(ends: bool) -> Self {
        if !ends {
            return Self(None);
        }
        let (lines, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            while let Some(line) = read_line() {
                if lines.send(line).is_err() {
                    return;
                }
            }
            if !IS_IDLE.load(Ordering::SeqCst) {
                std::process::exit(130);
            }
        });
        Self(Some(receiver))
    }

    /// The next line; `None` at the end.
    fn line(&self) -> Option<String> {
        let Some(lines) = &self.0 else { return read_line() };
        IS_IDLE.store(true, Ordering::SeqCst);
        let line = lines.recv().ok();
        IS_IDLE.store(false, Ordering::SeqCst);
        line
    }
}

/// True while no part is in progress, as before the first line.
static IS_IDLE: AtomicBool = AtomicBool::new(true);

fn read_line() -> Option<String> {
    let mut line = String::new();
    let mut input = io::Read::take(io::stdin().lock(), LINE_BYTES_MAX);
    input.read_line(&mut line).is_ok_and(|count| count > 0).then_some(line)
}

/// Maximum length of a line.
const LINE_BYTES_MAX: u64 = 80;

/// Prints a line on standard error every ten seconds.
struct Progress(Mutex<Instant>);

impl Progress {
    fn show(&self, state: PartProgress, start: Instant) {
        let Ok(mut last) = self.0.try_lock() else { return };
        if last.elapsed() < Duration::from_secs(10) {
            return;
        }
        *last = Instant::now();
        let PartProgress { inputs_done, inputs_total } = state;
        let rate = inputs_done as f64 / start.elapsed().as_secs_f64();
        let left_s = inputs_total.saturating_sub(inputs_done) as f64 / rate.max(1.0);
        output::complain(&format!(
            "{inputs_done} of {inputs_total} inputs, {rate:.0} inputs/s, ETA {left_s:.0} s"
        ));
    }
}
