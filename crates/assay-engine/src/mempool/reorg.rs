//! Updates the mempool after a reorg.

use assay_consensus::chain::Ancestors;
use assay_consensus::tx::SpentCoin;
use assay_store::defect::{Point, point};
use assay_wire::{Coin, OutPoint, Txid};

use super::candidate::Candidate;
use super::context::{Admission, Rules, View};
use super::disconnected::DisconnectedTxs;
use super::entry::Entry;

impl Admission {
    /// Updates the mempool for the tip: submits transactions that are no longer confirmed, and removes those that cannot be in
    /// the next block (Core `validation.cpp`, `MaybeUpdateMempoolForReorg`).
    pub(crate) fn readmit(
        &self,
        view: &mut View<'_>,
        disconnected: DisconnectedTxs,
        is_worth_it: bool,
    ) {
        point(Point::MempoolReadmit);
        let mut offers = Vec::new();
        for tx in disconnected.into_confirmation_order() {
            if is_worth_it && !tx.tx.view().is_coinbase() {
                offers.push(tx);
            } else {
                view.mempool.remove_spenders(&tx);
            }
        }
        let mut rules = self.rules(view, None);
        rules.bypass_limits = true;
        view.mempool.is_returning = true;
        let candidates = offers
            .iter()
            .map(|tx| Candidate::new(tx.tx.clone(), tx.txid, tx.wtxid).checked(&self.config));
        let verdicts = self.admit(view, &rules, candidates.collect());
        let mut returned = Vec::new();
        for (tx, verdict) in offers.iter().zip(verdicts) {
            match verdict {
                Ok(_) => returned.push(tx.txid),
                Err(_) => view.mempool.remove_spenders(tx),
            }
        }
        view.mempool.is_returning = false;
        self.trim_clusters(view.mempool, &returned);
        remove_unfit(view, &rules);
        self.limit(view.mempool);
        if !offers.is_empty() {
            let count = returned.iter().filter(|txid| view.mempool.get(txid).is_some()).count();
            tracing::info!("reorganisation: {count} of {} transactions return", offers.len());
        }
    }
}

/// Removes transactions that are no longer final or mature, with their descendants (Core `txmempool.cpp`, `removeForReorg`).
fn remove_unfit(view: &mut View<'_>, rules: &Rules) {
    let is_unfit = |(_, entry): &(&Txid, &Entry)| {
        entry.depends_on_height && !fits_next_block(view, rules, entry)
    };
    let unfit: Vec<Txid> = view.mempool.iter().filter(is_unfit).map(|(txid, _)| *txid).collect();
    let gone = view.mempool.with_descendants(unfit);
    view.mempool.remove_all(&gone);
}

/// True if lock times and maturity allow the transaction in the next block.
fn fits_next_block(view: &View<'_>, rules: &Rules, entry: &Entry) -> bool {
    let tx = entry.tx.view();
    if rules.block.check_tx(tx).is_err() {
        return false;
    }
    let coin = |prevout: OutPoint| match view.mempool.output(&prevout, rules.block.height) {
        Some(coin) => Some(coin),
        // An unreadable coin counts as missing.
        None => view.coins.get(&prevout).ok().flatten(),
    };
    let coins: Option<Vec<Coin>> = tx.inputs().map(|input| coin(input.prevout)).collect();
    let Some(coins) = coins else { return false };
    let branch = view.tree.ancestors(view.tree.tip());
    let median_time_past_at = |height| branch.median_time_past_at(height);
    let spent = coins.iter().map(SpentCoin::from);
    let is_known = entry.lock_points.as_ref().is_none_or(|points| points.hold(view.tree));
    let locks = entry.lock_points.as_ref().filter(|_| is_known).map(|points| points.locks);
    // While the spent coins are unchanged, the locks computed at admission are used, though outputs unconfirmed then count from a
    // higher block than they would now: Core drops such transactions too.
    let next = &rules.block;
    locks.is_none_or(|locks| locks.permit(next.height, next.parent_median_time_past))
        && rules.block.check_spends(tx, spent, median_time_past_at).is_ok()
}
