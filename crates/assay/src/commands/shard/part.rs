//! `assay shard run --part`.

use std::io::{self, BufRead, Read};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context;
use assay_engine::{PartProgress, Salt, ShardError, run_part};
use serde::Serialize;

use super::{cores, open, part_config, salt_of};
use crate::Outcome;
use crate::cli::ShardRunArguments;
use crate::commands::stop_flag;
use crate::output;

pub(super) fn run(arguments: &ShardRunArguments) -> anyhow::Result<Outcome> {
    let number = arguments.part.context("give --part or --all")?;
    let stop = stop_flag()?;
    let plan = open(&arguments.plan)?;
    let salt = read_salt()?;
    if arguments.with_parent {
        end_with_parent();
    }
    let config = part_config(&arguments.inputs, arguments.par.unwrap_or_else(cores).max(1));
    let start = Instant::now();
    let progress = Progress(Mutex::new(start));
    let result = match run_part(&plan, number, &salt, &config, &stop, &|state| {
        progress.show(state, start)
    }) {
        Err(ShardError::Interrupted) => return Ok(Outcome::Interrupted),
        other => other?,
    };
    result.write(&arguments.out)?;
    let refused = result.refusal().map(ToString::to_string);
    let elapsed_s = start.elapsed().as_secs_f64();
    let totals = result.totals();
    if arguments.json {
        let refused = refused.clone();
        let (blocks, txs, inputs) = (totals.blocks, totals.txs, totals.inputs);
        output::print_json(&Summary {
            schema: 1,
            part: number,
            refused,
            blocks,
            txs,
            inputs,
            elapsed_s,
        })?;
    } else {
        let verdict = refused.as_ref().map_or("passed".to_owned(), |why| format!("refused: {why}"));
        output::print(&format!(
            "part {number} {verdict}\n{} blocks, {} inputs in {elapsed_s:.2} s\n",
            totals.blocks, totals.inputs
        ))?;
    }
    Ok(if refused.is_some() { Outcome::Negative } else { Outcome::Good })
}

/// What `assay shard run --part --json` prints.
#[derive(Serialize)]
struct Summary {
    schema: u32,
    part: usize,
    /// Why a block does not pass, if one does not.
    refused: Option<String>,
    blocks: u64,
    txs: u64,
    inputs: u64,
    elapsed_s: f64,
}

/// One line of standard input.
fn read_salt() -> anyhow::Result<Salt> {
    let mut line = String::new();
    let mut input = io::stdin().lock().take(80);
    input.read_line(&mut line).context("cannot read the salt from standard input")?;
    salt_of(&line)
}

/// Ends the process when standard input closes: nothing is lost, since a result has its name only once it is whole.
fn end_with_parent() {
    std::thread::spawn(|| {
        let mut byte = [0; 64];
        while io::stdin().read(&mut byte).is_ok_and(|count| count > 0) {}
        std::process::exit(130);
    });
}

/// A line on standard error every ten seconds.
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
