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
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Context;
use assay_forge::reference_rate::Rates;
use assay_forge::scripts::{ScriptChoice, ScriptLedger};
use assay_forge::{Estimate, ForgeOptions, Progress, Recipe, Summary, Variant, forge};
use serde_json::{Value, json};

use super::bench::LibsecpRates;
use super::{print_builtin, print_names};
use crate::Outcome;
use crate::bar::Bar;
use crate::cli::{ChainArguments, ChainCommand, ForgeArguments, ScriptsArguments, VariantArgument};
use crate::output;

pub(crate) fn run(arguments: ChainArguments) -> anyhow::Result<Outcome> {
    match arguments.command {
        ChainCommand::Forge(arguments) => run_forge(&arguments)?,
        ChainCommand::Scripts(arguments) => run_scripts(&arguments)?,
        ChainCommand::Stats(arguments) => return stats::run(&arguments),
        ChainCommand::Ledger(arguments) => ledger::run(&arguments)?,
        ChainCommand::Serve(arguments) => serve::run(&arguments)?,
        ChainCommand::Recipes { json } => {
            let names: Vec<_> = Recipe::builtin_names().map(|name| (name, String::new())).collect();
            return print_names(json, &names);
        }
        ChainCommand::Recipe { name } => {
            return print_builtin(Recipe::builtin_text(&name), "recipe", &name, "chain recipes");
        }
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
    let bar = Bar::new("scripts [{bar:25}] {pos}/{len} blocks");
    let read = ScriptLedger::read(dir, choice, &mut |done, of| {
        bar.set(done.into(), of.into());
        true
    });
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
    let summary = forge(&recipe, &options, &arguments.out, &mut ForgeProgress::new())?;
    // The clock rate drifts: the rate is the mean of a measurement before and one after.
    let rates = before.map(|before| {
        let after = LibsecpRates::measure();
        Rates {
            ecdsa_per_s: f64::midpoint(before.ecdsa_sign_per_s, after.ecdsa_sign_per_s),
            schnorr_per_s: f64::midpoint(before.schnorr_sign_per_s, after.schnorr_sign_per_s),
        }
    });
    output::print_as(arguments.json, &json(&summary, rates), || text(&summary, rates))
}

/// Result of a forge. The last three fields are null unless the reference rate was requested.
fn json(summary: &Summary, rates: Option<Rates>) -> Value {
    let tip = &summary.ledger.tip;
    json!({
        "schema": 1,
        "tip_height": tip.height,
        "tip_hash": tip.hash,
        "utxo_muhash": tip.utxo_muhash,
        "utxo_count": tip.utxo_count,
        "txs": tip.txs,
        "inputs": tip.inputs,
        "outputs": tip.outputs,
        "bytes": tip.bytes,
        "signatures": summary.signatures,
        "threads": summary.threads,
        "making_s": summary.making_seconds,
        "utxo_s": summary.utxo_seconds,
        "wall_s": summary.wall_seconds,
        "signatures_per_s": summary.signatures_per_second(),
        "libsecp_ecdsa_sign_per_s": rates.map(|rates| rates.ecdsa_per_s),
        "libsecp_schnorr_sign_per_s": rates.map(|rates| rates.schnorr_per_s),
        // Time that libsecp256k1 alone would need for these signatures on as many threads, over the time spent on the blocks.
        "signing_efficiency": rates.map(|rates| summary.efficiency(&rates)),
    })
}

fn text(summary: &Summary, rates: Option<Rates>) -> String {
    let (tip, threads) = (&summary.ledger.tip, summary.threads);
    let mut text = format!(
        "tip          {} at height {}\nutxo muhash  {}\nutxo count   {}\ntransactions {}\ninputs       {}\noutputs      {}\n\
         bytes        {}\nsignatures   {} in {:.2} s on {threads} threads: {:.0} /s\n",
        tip.hash,
        tip.height,
        tip.utxo_muhash,
        tip.utxo_count,
        tip.txs,
        tip.inputs,
        tip.outputs,
        tip.bytes,
        summary.signatures,
        summary.making_seconds,
        summary.signatures_per_second(),
    );
    if let Some(rates) = rates {
        let (ecdsa, schnorr) = (rates.ecdsa_per_s, rates.schnorr_per_s);
        let percent = summary.efficiency(&rates) * 100.0;
        let _ = write!(
            text,
            "libsecp256k1 ECDSA {ecdsa:.0} /s, Schnorr {schnorr:.0} /s on one thread\n\
             efficiency   {percent:.1} % of {threads} threads of libsecp256k1 alone\n"
        );
    }
    text
}

/// Progress of a forge, in signatures and then in coins of the UTXO hash.
struct ForgeProgress {
    bar: Bar,
    signatures: u64,
    total: u64,
}

impl ForgeProgress {
    fn new() -> Self {
        let bar = Bar::new(
            "{msg:<12} [{bar:25}] {human_pos}/{human_len} signatures  {per_sec}  ETA {eta}",
        );
        Self { bar, signatures: 0, total: 0 }
    }
}

impl Progress for ForgeProgress {
    fn start(&mut self, estimate: &Estimate) {
        self.total = estimate.signatures;
    }

    fn phase(&mut self, phase: assay_forge::Phase, _blocks: u32) {
        self.bar.message(phase.to_string());
    }

    fn signed(&mut self, signatures: u64) {
        self.signatures += signatures;
        self.bar.set(self.signatures, self.total);
    }

    fn utxo(&mut self, done: u64, total: u64) {
        if done == 0 {
            let template =
                "UTXO hash    [{bar:25}] {human_pos}/{human_len} coins  {per_sec}  ETA {eta}";
            self.bar = Bar::new(template);
        }
        self.bar.set(done, total);
    }
}
