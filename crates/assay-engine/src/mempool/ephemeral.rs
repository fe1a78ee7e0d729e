//! Ephemeral dust: a transaction without fee may have one dust output, if its child spends that too (Core
//! `policy/ephemeral_policy.cpp`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use assay_wire::{OutPoint, Transaction, Txid};

use super::candidate::Candidate;
use super::policy::is_dust;
use super::pool::Mempool;
use crate::types::TxReject;

/// A transaction with dust must pay no fee, so that it is not worth mining alone (Core `PreCheckEphemeralTx`).
pub(super) fn check_fee(
    candidate: &Candidate,
    dust_fee_sat_per_kvb: u64,
    fee_sat: i64,
    modified_fee_sat: i64,
) -> Result<(), TxReject> {
    let pays = fee_sat != 0 || modified_fee_sat != 0;
    if pays && has_dust(candidate.tx(), dust_fee_sat_per_kvb) {
        return Err(candidate.refused("dust", "tx with dust output must be 0-fee"));
    }
    Ok(())
}

/// True if an output costs more to spend than its value.
pub(crate) fn has_dust(tx: &Transaction, dust_fee_sat_per_kvb: u64) -> bool {
    tx.view().outputs().any(|output| is_dust(output, dust_fee_sat_per_kvb))
}

/// Checks that a transaction spends all dust of its unconfirmed parents, in the mempool or among `earlier` (Core
/// `CheckEphemeralSpends`).
pub(super) fn check_spends(
    pool: &Mempool,
    earlier: &HashMap<Txid, Arc<Transaction>>,
    candidate: &Candidate,
    dust_fee_sat_per_kvb: u64,
) -> Result<(), TxReject> {
    let spent: HashSet<OutPoint> =
        candidate.tx().view().inputs().map(|input| input.prevout).collect();
    let parents: HashSet<Txid> = spent.iter().map(|outpoint| outpoint.txid).collect();
    for txid in parents {
        let parent = earlier.get(&txid).or_else(|| pool.get(&txid).map(|entry| &entry.tx));
        let Some(parent) = parent else { continue };
        let mut outputs = (0..).zip(parent.view().outputs());
        let is_left = |(vout, output)| {
            is_dust(output, dust_fee_sat_per_kvb) && !spent.contains(&OutPoint { txid, vout })
        };
        if outputs.any(is_left) {
            let debug = format!(
                "tx {} (wtxid={}) did not spend parent's ephemeral dust",
                candidate.txid(),
                candidate.wtxid()
            );
            return Err(candidate.refused("missing-ephemeral-spends", debug));
        }
    }
    Ok(())
}
