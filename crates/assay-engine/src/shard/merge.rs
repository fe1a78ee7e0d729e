//! Adding up the results of all parts.

use std::collections::HashMap;

use assay_consensus::block::{is_overwritten_coinbase, repeats_coinbase};
use assay_hash::MuHash3072;
use assay_wire::{BlockHash, Txid};

use super::plan::{Part, Plan, Unspent};
use super::result::{PartFigures, PartResult, Rejection};
use super::tally::{CoinFigures, Digest, Tally};
use crate::types::UtxoStats;
use crate::validate::Totals;

/// The result of all parts together.
#[derive(Clone, Debug)]
pub struct Merged {
    pub verdict: ShardVerdict,
    /// Sums over all blocks that passed.
    pub totals: Totals,
    /// The tip and its coins, if the chain is valid. Of coins that are known by their `MuHash` alone some figures are 0.
    pub coins: Option<UtxoStats>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShardVerdict {
    Valid,
    /// A block does not pass: the lowest of those that were found. Wrong coins may be the reason.
    Rejected(Rejection),
    /// Blocks pass, but coins were spent that were not created, or were spent twice, or are not among those left over; or the
    /// files of coins are wrong.
    Unequal {
        /// Coins created; without those that are hinted as unspent, where there are hints.
        created: u64,
        /// Coins spent or left over.
        spent: u64,
    },
    /// A coinbase came twice: only the whole chain in order shows whether it overwrote unspent coins (BIP30).
    RepeatedCoinbase {
        txid: Txid,
        /// Heights of the first two.
        heights: (u32, u32),
    },
    /// The results of these parts are missing: their indices.
    Missing(Vec<usize>),
}

/// Adds up the results of a plan, each `None` if it is missing. They are of the plan and of one salt: [`PartResult::read`]
/// has made sure of the first, and of the second if it was given the salt.
pub fn merge(plan: &Plan, results: &[Option<PartResult>]) -> Merged {
    let mut totals = Totals::default();
    let figures = || results.iter().flatten().filter_map(|result| result.outcome.as_ref().ok());
    for figures in figures() {
        let Totals { blocks, txs, inputs, outputs, bytes, .. } = figures.totals;
        totals.blocks = totals.blocks.saturating_add(blocks);
        totals.txs = totals.txs.saturating_add(txs);
        totals.inputs = totals.inputs.saturating_add(inputs);
        totals.outputs = totals.outputs.saturating_add(outputs);
        totals.bytes = totals.bytes.saturating_add(bytes);
    }
    let rejections = results.iter().flatten().filter_map(PartResult::rejection);
    if let Some(lowest) = rejections.min_by_key(|rejection| rejection.height) {
        return Merged { verdict: ShardVerdict::Rejected(lowest.clone()), totals, coins: None };
    }
    let missing: Vec<usize> = (0..plan.parts.len())
        .filter(|part| results.get(*part).is_none_or(Option::is_none))
        .collect();
    if !missing.is_empty() {
        return Merged { verdict: ShardVerdict::Missing(missing), totals, coins: None };
    }
    let all: Vec<&PartFigures> = figures().collect();
    match judge(plan, &all) {
        Ok(coins) => Merged { verdict: ShardVerdict::Valid, totals, coins: Some(coins) },
        Err(verdict) => Merged { verdict, totals, coins: None },
    }
}

fn judge(plan: &Plan, all: &[&PartFigures]) -> Result<UtxoStats, ShardVerdict> {
    check_coinbases(plan, all)?;
    let mut tally: Option<Tally> = None;
    let mut coins = CoinFigures::new();
    for figures in all {
        match &mut tally {
            Some(tally) => tally.combine(&figures.tally),
            None => tally = Some(figures.tally.clone()),
        }
        if let Some(piece) = &figures.coins {
            coins.combine(piece);
        }
    }
    let Tally { created, spent } = tally.expect("a plan has a part");
    let unequal = ShardVerdict::Unequal { created: created.coins, spent: spent.coins };
    let muhash = match (&created.digest, &spent.digest, &plan.unspent) {
        (Digest::Sum(a), Digest::Sum(b), Unspent::Coins { .. } | Unspent::Hints { .. }) => {
            if a != b || created.coins != spent.coins {
                return Err(unequal);
            }
            coins.muhash.finalize()
        }
        (Digest::MuHash(a), Digest::MuHash(b), Unspent::MuHash(expected)) => {
            let Some(count) = created.coins.checked_sub(spent.coins) else { return Err(unequal) };
            let muhash = quotient(a, b).finalize();
            if muhash != *expected {
                return Err(unequal);
            }
            coins.coins = count;
            coins.amount_sat = created.amount_sat.wrapping_sub(spent.amount_sat);
            muhash
        }
        _ => unreachable!("results of one plan are hashed alike"),
    };
    Ok(UtxoStats {
        height: plan.height(),
        hash: plan.tip(),
        txouts: coins.coins,
        transactions: coins.transactions,
        total_amount_sat: coins.amount_sat,
        bogosize: coins.bogosize,
        muhash: Some(muhash),
        hash_serialized: None,
        disk_size: 0,
    })
}

/// The set of what `created` has and `spent` has not.
fn quotient(created: &MuHash3072, spent: &MuHash3072) -> MuHash3072 {
    let (created, spent) = (created.to_bytes(), spent.to_bytes());
    let half = created.len() / 2;
    let mut bytes = created;
    bytes[half..].copy_from_slice(&spent[..half]);
    MuHash3072::from_bytes(&bytes)
}

/// A transaction can only come twice when a coinbase that it descends from did. The two that are known never mattered again.
fn check_coinbases(plan: &Plan, all: &[&PartFigures]) -> Result<(), ShardVerdict> {
    let mut seen: HashMap<Txid, u32> = HashMap::new();
    for (figures, part) in all.iter().zip(&plan.parts) {
        let Part::Blocks { first, .. } = *part else { continue };
        for (txid, height) in figures.coinbases.iter().zip(first..) {
            let Some(before) = seen.insert(*txid, height) else { continue };
            let hash = |height: u32| -> BlockHash { plan.hash(height) };
            let is_known = is_overwritten_coinbase(before, &hash(before))
                && repeats_coinbase(height, &hash(height));
            if !is_known {
                let heights = (before, height);
                return Err(ShardVerdict::RepeatedCoinbase { txid: *txid, heights });
            }
        }
    }
    Ok(())
}
