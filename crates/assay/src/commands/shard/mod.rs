//! `assay shard`.

mod all;
mod explain;
mod part;
mod plan;
mod report;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use assay_engine::{ChainParams, Inputs, Part, PartConfig, Plan, Salt, default_script_batch};
use assay_node::SNAPSHOT_KEYS;

use crate::Outcome;
use crate::bitcoind::with_activation_heights;
use crate::cli::{ShardArguments, ShardCommand, ShardInputs, ShardMergeArguments};

pub(crate) fn run(arguments: &ShardArguments) -> anyhow::Result<Outcome> {
    match &arguments.command {
        ShardCommand::Plan(arguments) => plan::run(arguments),
        ShardCommand::Run(arguments) if arguments.all => all::run(arguments),
        ShardCommand::Run(arguments) => part::run(arguments),
        ShardCommand::Merge(arguments) => merge(arguments),
        ShardCommand::Explain(arguments) => explain::run(arguments),
    }
}

fn merge(arguments: &ShardMergeArguments) -> anyhow::Result<Outcome> {
    let plan = open(&arguments.plan)?;
    report::merge(&plan, &arguments.results, arguments.json, None)
}

fn open(dir: &Path) -> anyhow::Result<Plan> {
    let params_of = |name: &str, heights: &[String]| -> Result<ChainParams, String> {
        let params = ChainParams::by_name(name).ok_or_else(|| assay_engine::unknown_chain(name))?;
        let params = with_activation_heights(params, "activation", heights);
        params.map_err(|error| error.to_string())
    };
    Ok(Plan::open(dir, &params_of)?)
}

fn part_config(inputs: &ShardInputs, threads: usize) -> PartConfig {
    PartConfig {
        inputs: Inputs {
            blocks: inputs.blocks.clone(),
            spent: inputs.spent.clone(),
            coins: inputs.coins.clone(),
            hints: inputs.hints.clone(),
        },
        threads,
        script_batch: default_script_batch(),
        keys: SNAPSHOT_KEYS,
        clock: Arc::default(),
    }
}

/// Parses a salt of 64 hexadecimal digits.
fn salt_of(text: &str) -> anyhow::Result<Salt> {
    let mut salt = Salt::default();
    let digits = text.trim_end_matches(['\r', '\n']);
    let decoded = (digits.len() == 64)
        .then(|| faster_hex::hex_decode(digits.as_bytes(), &mut salt).ok())
        .flatten();
    decoded.context("the salt is not a line of 64 hexadecimal digits")?;
    Ok(salt)
}

fn describe(part: &Part) -> String {
    match part {
        Part::Blocks { first, last, inputs, .. } => {
            format!("blocks {first} to {last}, {inputs} inputs")
        }
        Part::Coins { coins, .. } => format!("{coins} coins left over"),
    }
}
