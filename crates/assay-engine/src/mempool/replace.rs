//! Replacing unconfirmed transactions by one that pays more (Core `validation.cpp`, `ReplacementChecks`): the rules of BIP125
//! without its signal, and with the comparison of what miners earn.

use std::collections::HashSet;

use assay_wire::{OutPoint, Txid};

use super::admission::Candidate;
use super::chunks::{Item, chunks, improves};
use super::pool::Pool;
use crate::engine::Engine;
use crate::types::TxReject;

/// Whether unconfirmed transactions may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replacement {
    /// By any that pays enough.
    Allowed,
    /// Only the verdict is wanted: nothing is taken out.
    Trial,
    /// Not where several transactions are tried together.
    Disallowed,
    /// Never (Bitcoin Cash).
    Unknown,
}

/// Core's `MAX_REPLACEMENT_CANDIDATES` (`policy/rbf.h`): clusters that one transaction may change by conflicts.
const CLUSTERS_MAX: usize = 100;
/// Core's `DEFAULT_INCREMENTAL_RELAY_FEE` (`policy/policy.h`), satoshi per 1,000 virtual bytes.
pub(super) const INCREMENTAL_FEE_SAT_PER_KVB: u64 = 100;

/// The unconfirmed transactions that spend the same outputs, each once.
pub(super) fn conflicts(pool: &Pool, prevouts: impl Iterator<Item = OutPoint>) -> Vec<Txid> {
    let mut seen = HashSet::new();
    prevouts
        .filter_map(|prevout| pool.spender(&prevout).copied())
        .filter(|txid| seen.insert(*txid))
        .collect()
}

impl Engine {
    /// Checks that `candidate` may replace `direct` and all that builds on them; returns what has to go.
    pub(super) fn check_replacement(
        &self,
        pool: &Pool,
        candidate: &Candidate,
        item: &Item,
        direct: &[Txid],
    ) -> Result<Vec<Txid>, TxReject> {
        check_cluster_count(pool, candidate, direct)?;
        let mut seen = HashSet::new();
        let gone: Vec<Txid> = direct
            .iter()
            .flat_map(|txid| pool.descendants(txid))
            .filter(|txid| seen.insert(*txid))
            .collect();
        check_pays_for_itself(pool, candidate, item, &gone)?;
        let affected = affected_items(pool, item, &gone);
        let mut after: Vec<Item> =
            affected.iter().filter(|item| !seen.contains(&item.txid)).cloned().collect();
        check_disjoint(pool, candidate, item, direct)?;
        after.push(item.clone());
        self.check_cluster(candidate, item, &after)?;
        // Clusters are within the limit that chunks can be found for, so there are some.
        let (before, after) = (chunks(&affected), chunks(&after));
        let is_better = before.zip(after).is_some_and(|(before, after)| improves(&before, &after));
        if !is_better {
            let debug = "insufficient feerate: does not improve feerate diagram";
            return Err(candidate.refused("replacement-failed", debug));
        }
        Ok(gone)
    }

    /// The cluster that the new transaction will be in.
    fn check_cluster(
        &self,
        candidate: &Candidate,
        item: &Item,
        after: &[Item],
    ) -> Result<(), TxReject> {
        let cluster = super::chunks::cluster_with(after, &item.txid);
        let vsize: u64 = cluster.iter().map(|item| item.vsize).sum();
        let is_too_large = self.config.cluster_count_max.is_some_and(|max| cluster.len() > max)
            || self.config.cluster_vsize_max.is_some_and(|max| vsize > max);
        if is_too_large { Err(candidate.refused("too-large-cluster", "")) } else { Ok(()) }
    }
}

fn check_cluster_count(
    pool: &Pool,
    candidate: &Candidate,
    direct: &[Txid],
) -> Result<(), TxReject> {
    let mut seen = HashSet::new();
    let mut count = 0;
    for txid in direct {
        if !seen.contains(txid) {
            count += 1;
            seen.extend(pool.cluster_of(txid));
        }
    }
    if count <= CLUSTERS_MAX {
        return Ok(());
    }
    let debug = format!(
        "rejecting replacement {}; too many conflicting clusters ({count} > {CLUSTERS_MAX})",
        candidate.txid()
    );
    Err(candidate.refused("too many potential replacements", debug))
}

/// What it builds on must not go.
fn check_disjoint(
    pool: &Pool,
    candidate: &Candidate,
    item: &Item,
    direct: &[Txid],
) -> Result<(), TxReject> {
    let is_below = |txid: &&Txid| {
        let above = pool.descendants(txid);
        item.parents.iter().any(|parent| above.contains(parent))
    };
    let Some(ancestor) = direct.iter().filter(is_below).min() else { return Ok(()) };
    let debug = format!("{} spends conflicting transaction {ancestor}", item.txid);
    Err(candidate.refused("bad-txns-spends-conflicting-tx", debug))
}

/// BIP125's rules 3 and 4: it pays what the others paid, and for its own way through the network.
fn check_pays_for_itself(
    pool: &Pool,
    candidate: &Candidate,
    item: &Item,
    gone: &[Txid],
) -> Result<(), TxReject> {
    let entries = gone.iter().filter_map(|txid| pool.get(txid));
    let fees_gone: i64 = entries.map(|entry| entry.fee_sat).sum();
    let (txid, fee) = (item.txid, item.fee_sat);
    if fee < fees_gone {
        let (fee, fees_gone) = (coins(fee), coins(fees_gone));
        let debug = format!(
            "rejecting replacement {txid}, less fees than conflicting txs; {fee} < {fees_gone}"
        );
        return Err(candidate.refused("insufficient fee", debug));
    }
    let least = (INCREMENTAL_FEE_SAT_PER_KVB * item.vsize).div_ceil(1000) as i64;
    if fee - fees_gone < least {
        let (added, least) = (coins(fee - fees_gone), coins(least));
        let debug = format!(
            "rejecting replacement {txid}, not enough additional fees to relay; {added} < {least}"
        );
        return Err(candidate.refused("insufficient fee", debug));
    }
    Ok(())
}

/// The clusters that change: those of what goes, and those of the new one's parents.
fn affected_items(pool: &Pool, item: &Item, gone: &[Txid]) -> Vec<Item> {
    let mut seen = HashSet::new();
    let mut items = Vec::new();
    for start in gone.iter().chain(&item.parents) {
        if seen.contains(start) {
            continue;
        }
        for txid in pool.cluster_of(start) {
            if let (true, Some(entry)) = (seen.insert(txid), pool.get(&txid)) {
                items.push(Item::of(pool, txid, entry));
            }
        }
    }
    items
}

/// Satoshi as Core's messages print them (`FormatMoney`): at least two decimals.
fn coins(sat: i64) -> String {
    let text = format!("{}.{:08}", sat / 100_000_000, sat % 100_000_000);
    let end = text.trim_end_matches('0').len().max(text.len() - 6);
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_printed_as_core_prints_it() {
        for (sat, text) in
            [(0, "0.00"), (1, "0.00000001"), (1_100, "0.000011"), (150_000_000, "1.50")]
        {
            assert_eq!(coins(sat), text);
        }
    }
}
