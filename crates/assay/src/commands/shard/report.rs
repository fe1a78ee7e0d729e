//! Combined result of all parts.

use std::path::Path;

use anyhow::bail;
use assay_engine::{Merged, PartResult, Plan, Salt, ShardVerdict, Totals, merge as add_up};
use serde::Serialize;

use crate::Outcome;
use crate::commands::validate::Utxo;
use crate::output;

/// Output of `assay shard merge --json`, with the field names of `assay validate --json`.
#[derive(Serialize)]
struct Report {
    schema: u32,
    chain: &'static str,
    plan: String,
    valid: bool,
    /// Reason of the rejection.
    rejected: Option<String>,
    tip_height: u32,
    tip_hash: String,
    blocks: u64,
    txs: u64,
    inputs: u64,
    outputs: u64,
    block_bytes: u64,
    utxo: Option<Utxo>,
}

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
    let report = Report::new(plan, &merged);
    output::print_as(as_json, &report, || report.text())?;
    if report.valid {
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

impl Report {
    fn new(plan: &Plan, merged: &Merged) -> Self {
        let Totals { blocks, txs, inputs, outputs, bytes, .. } = merged.totals;
        Self {
            schema: 1,
            chain: plan.params().name,
            plan: faster_hex::hex_string(&plan.id()),
            valid: merged.verdict == ShardVerdict::Valid,
            rejected: rejection(&merged.verdict),
            tip_height: plan.height(),
            tip_hash: plan.tip().to_string(),
            blocks,
            txs,
            inputs,
            outputs,
            block_bytes: bytes,
            utxo: merged.coins.as_ref().map(Utxo::new),
        }
    }

    fn text(&self) -> String {
        let verdict = match &self.rejected {
            None => "valid".to_owned(),
            Some(why) => format!("rejected: {why}"),
        };
        let mut text = format!(
            "{verdict}\ntip          {} at height {}\nblocks       {}\ntransactions {}\ninputs       {}\noutputs      {}\n",
            self.tip_hash, self.tip_height, self.blocks, self.txs, self.inputs, self.outputs,
        );
        if let Some(utxo) = &self.utxo {
            text.push_str(&utxo.text());
        }
        text
    }
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
