//! The mempool after blocks were disconnected.

use std::collections::HashMap;

use assay_consensus::chain::Ancestors;
use assay_consensus::tx::SpentCoin;
use assay_wire::{Coin, OutPoint, Txid};

use super::admission::{Candidate, Rules};
use super::disconnected::DisconnectedTxs;
use super::pool::Entry;
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
