//! `assay chain`.

#[cfg(test)]
mod layouts;
mod ledger;
mod rpc;
mod serve;
mod source;
mod stats;
mod stats_record;
mod tables;

pub(super) use ledger::make as write_ledger;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write as _};
use std::path::Path;

use anyhow::{Context, bail};
use assay_forge::reference_rate::Rates;
use assay_forge::scripts::{ScriptChoice, ScriptLedger};
use assay_forge::{BlockLine, Estimate, ForgeOptions, Progress, Recipe, Summary, Variant, forge};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::bench::LibsecpRates;
use crate::Outcome;
use crate::cli::{ChainArguments, ChainCommand, ForgeArguments, ScriptsArguments, VariantArgument};
use crate::output;

pub(crate) fn run(arguments: ChainArguments) -> anyhow::Result<Outcome> {
    match arguments.command {
        ChainCommand::Forge(arguments) => run_forge(&arguments)?,
        ChainCommand::Scripts(arguments) => run_scripts(&arguments)?,
        ChainCommand::Stats(arguments) => return stats::run(&arguments),
        ChainCommand::Ledger(arguments) => ledger::run(&arguments)?,
        ChainCommand::Serve(arguments) => serve::run(&arguments)?,
        ChainCommand::Recipes { json: true } => {
            output::print_json(&Recipe::builtin_names().collect::<Vec<_>>())?;
        }
        ChainCommand::Recipes { json: false } => {
            for name in Recipe::builtin_names() {
                output::print(&format!("{name}\n"))?;
            }
        }
        ChainCommand::Recipe { name } => match Recipe::builtin_text(&name) {
            Some(text) => output::print(text)?,
            None => bail!("there is no built-in recipe {name:?}; `assay chain recipes` shows them"),
        },
    }
    Ok(Outcome::Good)
}

/// Writes the script ledger of a chain.
fn run_scripts(arguments: &ScriptsArguments) -> anyhow::Result<()> {
    let choice = ScriptChoice {
        scripts_max: arguments.sample,
        seed: arguments.seed,
        ..ScriptChoice::default()
    };
    let ledger = read_scripts(&arguments.dir, choice)?;
    let Some(path) = &arguments.out else {
        let mut out = BufWriter::new(std::io::stdout().lock());
        ledger
            .write(arguments.spent, &mut out)
            .and_then(|()| out.flush())
            .context("cannot write")?;
        return Ok(());
    };
    let write = || -> std::io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        ledger.write(arguments.spent, &mut out)?;
        out.flush()
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Reads the script ledger of a chain, with a bar on a terminal.
pub(crate) fn read_scripts(dir: &Path, choice: ScriptChoice) -> anyhow::Result<ScriptLedger> {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr_with_hz(10)
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    if let Ok(style) = ProgressStyle::with_template("scripts      [{bar:30}] {pos}/{len} blocks") {
        bar.set_style(style.progress_chars("=> "));
    }
    let read = ScriptLedger::read(dir, choice, &mut |done, of| {
        bar.set_length(u64::from(of));
        bar.set_position(u64::from(done));
        true
    });
    bar.finish_and_clear();
    Ok(read?)
}

fn find_recipe(name: &str) -> anyhow::Result<Recipe> {
    let path = Path::new(name);
    if path.extension().is_none() && path.components().count() == 1 {
        return Ok(Recipe::builtin(name)?);
    }
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read recipe {name}"))?;
    Recipe::from_toml(&text).with_context(|| format!("recipe {name}"))
}

fn run_forge(arguments: &ForgeArguments) -> anyhow::Result<()> {
    let recipe = find_recipe(&arguments.recipe)?;
    let options = ForgeOptions {
        seed: arguments.seed,
        scale: arguments.scale.unwrap_or_else(|| recipe.scale_by_default()),
        byte_scale: arguments.byte_scale,
        variant: match arguments.variant {
            VariantArgument::Intended => Variant::Intended,
            VariantArgument::Faithful => Variant::Faithful,
        },
        distinct_keys: arguments.distinct_keys,
        threads: arguments.threads,
        stop_height: arguments.stop_height,
        end_time: arguments.end_time,
    };
    let before = arguments.reference_rate.then(LibsecpRates::measure);
    let summary = forge(&recipe, &options, &arguments.out, &mut Bar::new())?;
    // The clock rate drifts: the rate is the mean of a measurement before and one after.
    let rates = before.map(|before| {
        let after = LibsecpRates::measure();
        Rates {
            ecdsa_per_s: f64::midpoint(before.ecdsa_sign_per_s, after.ecdsa_sign_per_s),
            schnorr_per_s: f64::midpoint(before.schnorr_sign_per_s, after.schnorr_sign_per_s),
        }
    });
    let report = Report::new(&summary, rates);
    output::print_as(arguments.json, &report, || report.text())
}

/// Result of a forge, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Report {
    schema: u32,
    tip_height: u32,
    tip_hash: String,
    utxo_muhash: String,
    utxo_count: u64,
    txs: u64,
    inputs: u64,
    outputs: u64,
    bytes: u64,
    signatures: u64,
    threads: usize,
    making_s: f64,
    utxo_s: f64,
    wall_s: f64,
    signatures_per_s: f64,
    /// ECDSA signatures per second of one thread of libsecp256k1; present only on request.
    libsecp_ecdsa_sign_per_s: Option<f64>,
    /// Schnorr signatures per second of one thread of libsecp256k1; present only on request.
    libsecp_schnorr_sign_per_s: Option<f64>,
    /// Time that libsecp256k1 alone would need for these signatures on as many threads, over the time spent on making the blocks.
    signing_efficiency: Option<f64>,
}

impl Report {
    fn new(summary: &Summary, rates: Option<Rates>) -> Self {
        let tip = &summary.ledger.tip;
        let signatures_per_s = summary.signatures_per_second();
        Self {
            schema: 1,
            tip_height: tip.height,
            tip_hash: tip.hash.clone(),
            utxo_muhash: tip.utxo_muhash.clone(),
            utxo_count: tip.utxo_count,
            txs: tip.txs,
            inputs: tip.inputs,
            outputs: tip.outputs,
            bytes: tip.bytes,
            signatures: summary.signatures,
            threads: summary.threads,
            making_s: summary.making_seconds,
            utxo_s: summary.utxo_seconds,
            wall_s: summary.wall_seconds,
            signatures_per_s,
            libsecp_ecdsa_sign_per_s: rates.map(|rates| rates.ecdsa_per_s),
            libsecp_schnorr_sign_per_s: rates.map(|rates| rates.schnorr_per_s),
            signing_efficiency: rates.map(|rates| summary.efficiency(&rates)),
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "tip          {} at height {}\nutxo muhash  {}\nutxo count   {}\ntransactions {}\ninputs       {}\noutputs      {}\n\
             bytes        {}\nsignatures   {} in {:.2} s on {} threads: {:.0} /s\n",
            self.tip_hash,
            self.tip_height,
            self.utxo_muhash,
            self.utxo_count,
            self.txs,
            self.inputs,
            self.outputs,
            self.bytes,
            self.signatures,
            self.making_s,
            self.threads,
            self.signatures_per_s,
        );
        if let (Some(ecdsa), Some(schnorr), Some(share)) = (
            self.libsecp_ecdsa_sign_per_s,
            self.libsecp_schnorr_sign_per_s,
            self.signing_efficiency,
        ) {
            let percent = share * 100.0;
            let _ = write!(
                text,
                "libsecp256k1 ECDSA {ecdsa:.0} /s, Schnorr {schnorr:.0} /s on one thread\n\
                 efficiency   {percent:.1} % of {} threads of libsecp256k1 alone\n",
                self.threads
            );
        }
        text
    }
}

/// Progress bar of a forge on standard error.
struct Bar {
    bar: ProgressBar,
}

impl Bar {
    fn new() -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr_with_hz(10)
        } else {
            ProgressDrawTarget::hidden()
        };
        Self { bar: ProgressBar::with_draw_target(None, target) }
    }
}

impl Progress for Bar {
    fn start(&mut self, estimate: &Estimate) {
        let style = ProgressStyle::with_template(
            "{msg:<12} [{bar:30}] {human_pos}/{human_len} signatures  {per_sec}  ETA {eta}",
        );
        if let Ok(style) = style {
            self.bar.set_style(style.progress_chars("=> "));
        }
        self.bar.set_length(estimate.signatures);
    }

    fn phase(&mut self, phase: assay_forge::Phase, _blocks: u32) {
        self.bar.set_message(phase.to_string());
    }

    fn signed(&mut self, signatures: u64) {
        self.bar.inc(signatures);
    }

    fn block(&mut self, _line: &BlockLine) {}

    fn utxo(&mut self, done: u64, total: u64) {
        if done == 0
            && let Ok(style) = ProgressStyle::with_template(
                "UTXO hash    [{bar:30}] {human_pos}/{human_len} coins  {per_sec}  ETA {eta}",
            )
        {
            self.bar.set_style(style.progress_chars("=> "));
            self.bar.set_length(total);
        }
        self.bar.set_position(done);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
