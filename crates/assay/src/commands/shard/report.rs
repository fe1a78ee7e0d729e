//! Combined result of all parts.

use std::path::Path;

use anyhow::bail;
use assay_engine::{Merged, PartResult, Plan, Salt, ShardVerdict, Totals, merge as add_up};
use serde_json::{Value, json};

use crate::Outcome;
use crate::commands::validate::{utxo_json, utxo_text};
use crate::output;

/// Reads all results and prints the combined one.
pub(super) fn merge(
    plan: &Plan,
    results: &Path,
    as_json: bool,
    salt: Option<&Salt>,
) -> anyhow::Result<Outcome> {
    let read = read_all(plan, results, salt)?;
    let merged = add_up(plan, &read);
    if let ShardVerdict::Missing(parts) = &merged.verdict {
        let first: Vec<String> = parts.iter().take(5).map(ToString::to_string).collect();
        bail!(
            "{}: no result of {} parts ({}{}); run them first",
            results.display(),
            parts.len(),
            first.join(", "),
            if parts.len() > first.len() { ", …" } else { "" }
        );
    }
    output::print_as(as_json, &json(plan, &merged), || text(plan, &merged))?;
    if merged.verdict == ShardVerdict::Valid {
        return Ok(Outcome::Good);
    }
    output::complain(
        "`assay validate` over the same blocks shows whether the chain or a file of coins is wrong",
    );
    Ok(Outcome::Negative)
}

/// The results in the folder. All must have the same salt: sums of different salts do not add up.
pub(super) fn read_all(
    plan: &Plan,
    results: &Path,
    salt: Option<&Salt>,
) -> anyhow::Result<Vec<Option<PartResult>>> {
    let mut read = Vec::new();
    for part in 0..plan.parts().len() {
        read.push(PartResult::read(results, plan, part, salt)?);
    }
    let mut salts = read.iter().flatten().map(PartResult::salt);
    let first = salts.next();
    if salts.any(|salt| Some(salt) != first) {
        bail!("{}: results of runs with different salts do not add up", results.display());
    }
    Ok(read)
}

/// Output of `assay shard merge --json`, with the field names of `assay validate --json`.
fn json(plan: &Plan, merged: &Merged) -> Value {
    let Totals { blocks, txs, inputs, outputs, bytes, .. } = merged.totals;
    json!({
        "schema": 1,
        "chain": plan.params().name,
        "plan": faster_hex::hex_string(&plan.id()),
        "valid": merged.verdict == ShardVerdict::Valid,
        "rejected": rejection(&merged.verdict),
        "tip_height": plan.height(),
        "tip_hash": plan.tip().to_string(),
        "blocks": blocks,
        "txs": txs,
        "inputs": inputs,
        "outputs": outputs,
        "block_bytes": bytes,
        "utxo": merged.coins.as_ref().map(utxo_json),
    })
}

fn text(plan: &Plan, merged: &Merged) -> String {
    let verdict = match rejection(&merged.verdict) {
        None => "valid".to_owned(),
        Some(why) => format!("rejected: {why}"),
    };
    let Totals { blocks, txs, inputs, outputs, .. } = merged.totals;
    let (tip, height) = (plan.tip(), plan.height());
    let coins = merged.coins.as_ref().map(utxo_text).unwrap_or_default();
    format!(
        "{verdict}\ntip          {tip} at height {height}\nblocks       {blocks}\ntransactions {txs}\ninputs       {inputs}\n\
         outputs      {outputs}\n{coins}"
    )
}

pub(super) fn rejection(verdict: &ShardVerdict) -> Option<String> {
    match verdict {
        ShardVerdict::Valid | ShardVerdict::Missing(_) => None,
        ShardVerdict::Rejected(rejection) => Some(rejection.to_string()),
        ShardVerdict::Unequal { created, spent } => Some(format!(
            "{created} coins were created, {spent} are spent or left over, without those that hints name, and they are not the \
             same: a coin was spent that did not exist or was spent before, or the files of coins or hints are wrong"
        )),
        ShardVerdict::RepeatedCoinbase { txid, heights: (first, second) } => Some(format!(
            "coinbase {txid} is in the blocks at heights {first} and {second}: only the whole chain in order shows whether it \
             overwrote unspent coins (BIP30)"
        )),
    }
}
