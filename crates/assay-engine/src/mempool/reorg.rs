//! The mempool after blocks were disconnected.

use std::collections::HashMap;

use assay_consensus::chain::Ancestors;
use assay_consensus::locktime::{
    SEQUENCE_LOCKTIME_DISABLE_FLAG, SequenceLocks, has_sequence_locks,
};
use assay_consensus::tx::SpentCoin;
use assay_store::defect::{Point, point};
use assay_wire::{Coin, OutPoint, Tx, TxIn, Txid};

use super::admission::{Candidate, Rules};
use super::disconnected::DisconnectedTxs;
use super::pool::{Entry, LockPoints};
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
        point(Point::MempoolReadmit);
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
        state.mempool.is_returning = true;
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
        state.mempool.is_returning = false;
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
    let gone = state.mempool.with_descendants(unfit);
    state.mempool.remove_all(&gone);
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
    let is_known = entry.lock_points.as_ref().is_none_or(|points| points.hold(state));
    let locks = entry.lock_points.as_ref().filter(|_| is_known).map(|points| points.locks);
    // As long as nothing it spends has moved, the locks computed at admission count, though outputs that were unconfirmed
    // then count from a higher block than they would now: Core drops such transactions too.
    let next = &rules.block;
    locks.is_none_or(|locks| locks.permit(next.height, next.parent_median_time_past))
        && rules.block.check_spends(tx, spent, median_time_past_at).is_ok()
}

impl LockPoints {
    fn hold(&self, state: &State) -> bool {
        self.highest_input.is_none_or(|(height, hash)| {
            state.tree.active_at(height).is_some_and(|id| state.tree.get(id).hash == hash)
        })
    }
}

/// The relative lock times of a transaction in a block at `height`, where unconfirmed outputs count as created
/// (Core `validation.cpp`, `CalculateLockPointsAtTip`); `None` without such.
pub(super) fn lock_points(
    state: &State,
    tx: Tx<'_>,
    coins: &[Coin],
    height: u32,
) -> Option<Box<LockPoints>> {
    if !has_sequence_locks(tx) {
        return None;
    }
    let branch = state.tree.ancestors(state.tree.tip());
    let heights = coins.iter().map(|coin| coin.height);
    let locks = SequenceLocks::of(tx, heights, |at| branch.median_time_past_at(at));
    let counts = |input: &TxIn<'_>| input.sequence & SEQUENCE_LOCKTIME_DISABLE_FLAG == 0;
    let highest = tx
        .inputs()
        .zip(coins)
        .filter(|(input, coin)| counts(input) && coin.height < height)
        .map(|(_, coin)| coin.height)
        .max();
    let highest_input = highest.and_then(|height| {
        state.tree.active_at(height).map(|id| (height, state.tree.get(id).hash))
    });
    Some(Box::new(LockPoints { locks, highest_input }))
}
