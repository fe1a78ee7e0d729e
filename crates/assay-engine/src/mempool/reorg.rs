//! The mempool after blocks were disconnected.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use assay_consensus::chain::Ancestors;
use assay_consensus::tx::SpentCoin;
use assay_wire::{Coin, OutPoint, Txid};

use super::admission::{Candidate, Rules};
use super::disconnected::DisconnectedTxs;
use super::pool::{Entry, Pool};
use crate::connect::Prepared;
use crate::engine::{Engine, State};

impl Engine {
    /// Makes the mempool fit the tip again: offers it what is not confirmed any more, and takes out what cannot be in the
    /// next block (Core `validation.cpp`, `MaybeUpdateMempoolForReorg`).
    pub(crate) fn settle_mempool(
        &self,
        state: &mut State,
        disconnected: DisconnectedTxs,
        readmit: bool,
    ) {
        let mut offers = Vec::new();
        for tx in disconnected.into_confirmation_order() {
            if readmit && !tx.tx.view().is_coinbase() {
                offers.push(tx);
            } else {
                state.mempool.remove_spenders(&tx);
            }
        }
        let mut rules = self.rules(state, None);
        rules.bypass_limits = true;
        let candidates = offers
            .iter()
            .map(|tx| self.check_alone(Candidate::new(tx.tx.clone(), tx.txid, tx.wtxid)));
        let verdicts = self.admit(state, &rules, candidates.collect());
        let mut returned = Vec::new();
        for (tx, verdict) in offers.iter().zip(verdicts) {
            match verdict {
                Ok(_) => returned.push(tx.txid),
                Err(_) => state.mempool.remove_spenders(tx),
            }
        }
        self.trim_clusters(&mut state.mempool, &returned);
        remove_unfit(state, &rules);
        self.limit_mempool(state);
        if !offers.is_empty() {
            let count = returned.iter().filter(|txid| state.mempool.get(txid).is_some()).count();
            tracing::info!("reorganisation: {count} of {} transactions return", offers.len());
        }
    }

    /// Cuts clusters back to their limits: what returns may join what was apart. The best fee rates stay, as far as their
    /// parents do (Core `txgraph.h`, `Trim`).
    fn trim_clusters(&self, pool: &mut Pool, returned: &[Txid]) {
        let (count_max, vsize_max) = (self.config.cluster_count_max, self.config.cluster_vsize_max);
        if count_max.is_none() && vsize_max.is_none() {
            return;
        }
        let mut seen = HashSet::new();
        for txid in returned {
            if !seen.contains(txid) && pool.get(txid).is_some() {
                let cluster = pool.cluster_of(txid);
                seen.extend(cluster.iter().copied());
                trim(
                    pool,
                    &cluster,
                    count_max.unwrap_or(usize::MAX),
                    vsize_max.unwrap_or(u64::MAX),
                );
            }
        }
    }

    /// Indices of the transactions of a block, without the coinbase, parents before children.
    pub(crate) fn topological_order(&self, prepared: &Prepared) -> Vec<usize> {
        let count = prepared.block.tx_count();
        if self.params.cash.is_none() {
            return (1..count).collect();
        }
        let index_of: HashMap<&Txid, usize> =
            prepared.txids.iter().enumerate().skip(1).map(|(index, txid)| (txid, index)).collect();
        let mut order = Vec::with_capacity(count);
        let mut is_placed = vec![false; count];
        for start in 1..count {
            let mut open = vec![start];
            while let Some(index) = open.last().copied() {
                let parent = prepared
                    .block
                    .tx(index)
                    .inputs()
                    .filter_map(|input| index_of.get(&input.prevout.txid).copied())
                    .find(|parent| !is_placed[*parent]);
                match parent {
                    Some(parent) if !is_placed[index] => open.push(parent),
                    _ => {
                        open.pop();
                        if !std::mem::replace(&mut is_placed[index], true) {
                            order.push(index);
                        }
                    }
                }
            }
        }
        order
    }
}

/// Takes out what is no longer final or mature, with all that builds on it (Core `txmempool.cpp`, `removeForReorg`).
fn remove_unfit(state: &mut State, rules: &Rules) {
    let is_unfit = |(_, entry): &(&Txid, &Entry)| {
        entry.depends_on_height && !fits_next_block(state, rules, entry)
    };
    let unfit: Vec<Txid> = state.mempool.iter().filter(is_unfit).map(|(txid, _)| *txid).collect();
    for txid in &unfit {
        state.mempool.remove_with_descendants(txid);
    }
}

/// Whether the next block may hold the transaction as far as locks and the age of coins go.
fn fits_next_block(state: &State, rules: &Rules, entry: &Entry) -> bool {
    let tx = entry.tx.view();
    if rules.block.check_tx(tx).is_err() {
        return false;
    }
    let coin = |prevout: OutPoint| match state.mempool.output(&prevout, rules.block.height) {
        Some(coin) => Some(coin),
        // What cannot be read cannot be shown to fit.
        None => state.coins.get(&prevout).ok().flatten(),
    };
    let coins: Option<Vec<Coin>> = tx.inputs().map(|input| coin(input.prevout)).collect();
    let Some(coins) = coins else { return false };
    let branch = state.tree.ancestors(state.tree.tip());
    let median_time_past_at = |height| branch.median_time_past_at(height);
    let spent = coins.iter().map(SpentCoin::from);
    rules.block.check_spends(tx, spent, median_time_past_at).is_ok()
}

fn trim(pool: &mut Pool, cluster: &[Txid], count_max: usize, vsize_max: u64) {
    let vsize = |txid: &Txid| pool.get(txid).map_or(0, |entry| u64::from(entry.vsize));
    if cluster.len() <= count_max && cluster.iter().map(vsize).sum::<u64>() <= vsize_max {
        return;
    }
    let mut waits_for: HashMap<Txid, usize> = HashMap::new();
    let mut ready = BinaryHeap::new();
    for txid in cluster {
        let Some(entry) = pool.get(txid) else { continue };
        let parents = pool.parents(entry).len();
        waits_for.insert(*txid, parents);
        if parents == 0 {
            ready.push(Ranked::new(*txid, entry));
        }
    }
    let (mut count, mut vsize) = (0, 0);
    let mut kept = HashSet::new();
    while let Some(Ranked { txid, .. }) = ready.pop() {
        let Some(entry) = pool.get(&txid) else { continue };
        if count + 1 > count_max || vsize + u64::from(entry.vsize) > vsize_max {
            continue;
        }
        (count, vsize) = (count + 1, vsize + u64::from(entry.vsize));
        kept.insert(txid);
        for child in pool.children(&txid) {
            let Some(waits) = waits_for.get_mut(&child) else { continue };
            *waits -= 1;
            if let (0, Some(entry)) = (*waits, pool.get(&child)) {
                ready.push(Ranked::new(child, entry));
            }
        }
    }
    for txid in cluster.iter().filter(|txid| !kept.contains(*txid)) {
        pool.remove(txid);
    }
}

/// A transaction that may be kept; the greater, the sooner.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    /// Fee per 2^32 units of virtual size.
    fee_rate: i128,
    order: Reverse<u64>,
    txid: Txid,
}

impl Ranked {
    fn new(txid: Txid, entry: &Entry) -> Self {
        let fee_rate = (i128::from(entry.fee_sat) << 32) / i128::from(entry.vsize.max(1));
        Self { fee_rate, order: Reverse(entry.order), txid }
    }
}
