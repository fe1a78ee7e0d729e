//! `assay shard plan`.

use std::fmt::Write as _;

use anyhow::{Context, ensure};
use assay_engine::{BlockHash, Part, Plan, PlanConfig, Unspent, plan_shards};
use assay_node::SNAPSHOT_KEYS;
use serde_json::{Value, json};

use super::describe;
use crate::Outcome;
use crate::cli::ShardPlanArguments;
use crate::commands::validate::Progress;
use crate::commands::{chain_with, threads};
use crate::output;

pub(super) fn run(arguments: &ShardPlanArguments) -> anyhow::Result<Outcome> {
    ensure!(arguments.parts > 0, "--parts 0: give 1 or more");
    let heights = &arguments.test_activation_height;
    let params = chain_with(&arguments.chain, heights)?;
    let unspent = unspent(arguments)?;
    let config = PlanConfig {
        blocks: arguments.blocks.clone(),
        params,
        activation: heights.clone(),
        spent: arguments.spent.as_ref().unwrap_or(&arguments.blocks).clone(),
        is_core_undo: arguments.core_undo,
        unspent,
        stop_height: arguments.stop_height,
        parts: arguments.parts,
        threads: threads(arguments.par),
        keys: SNAPSHOT_KEYS,
    };
    let progress = Progress::new(false);
    let plan = plan_shards(&config, &arguments.out, &progress);
    drop(progress);
    let plan = plan?;
    if arguments.json {
        output::print_json(&summary(&plan))?;
    } else {
        let mut text = String::new();
        let (parts, chain) = (plan.parts(), plan.params().name);
        let (count, height, tip) = (parts.len(), plan.height(), plan.tip());
        let _ = writeln!(text, "{count} parts of {chain} up to height {height} {tip}");
        for (number, part) in parts.iter().enumerate().take(PARTS_SHOWN) {
            let _ = writeln!(text, "part {number}: {}", describe(part));
        }
        if count > PARTS_SHOWN {
            let _ = writeln!(text, "and {} more", count - PARTS_SHOWN);
        }
        output::print(&text)?;
    }
    Ok(Outcome::Good)
}

/// Known data of the unspent coins.
fn unspent(arguments: &ShardPlanArguments) -> anyhow::Result<Unspent> {
    if let Some(digest) = &arguments.muhash {
        let parsed = digest.parse::<BlockHash>().ok();
        let parsed =
            parsed.with_context(|| format!("--muhash {digest}: give 64 hexadecimal digits"))?;
        return Ok(Unspent::MuHash(parsed.0));
    }
    if let Some(path) = &arguments.hints {
        let path = path.canonicalize().with_context(|| {
            format!("{}: no hints; `assay validate --write-hints` writes them", path.display())
        })?;
        return Ok(Unspent::Hints { path, bytes: 0 });
    }
    let written = arguments.spent.as_ref().map(|dir| dir.join("utxo.dat"));
    let path = arguments.coins.clone().or(written).context("give --coins, --hints or --muhash")?;
    let path = path.canonicalize().with_context(|| {
        format!("{}: no coins left over; give --coins, --hints or --muhash", path.display())
    })?;
    Ok(Unspent::Coins { path, bytes: 0 })
}

/// Number of parts listed in the human-readable output.
const PARTS_SHOWN: usize = 8;

fn summary(plan: &Plan) -> Value {
    let part = |part: &Part| match *part {
        Part::Blocks { first, last, inputs, bytes } => {
            json!({ "kind": "blocks", "first": first, "last": last, "inputs": inputs, "bytes": bytes })
        }
        Part::Coins { bytes, coins, .. } => {
            json!({ "kind": "coins", "coins": coins, "bytes": bytes })
        }
    };
    json!({
        "schema": 1,
        "chain": plan.params().name,
        "plan": faster_hex::hex_string(&plan.id()),
        "tip_height": plan.height(),
        "tip_hash": plan.tip().to_string(),
        "parts": plan.parts().iter().map(part).collect::<Vec<_>>(),
    })
}
