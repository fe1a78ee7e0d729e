//! Updates the mempool after a reorg.

use assay_consensus::chain::Ancestors;
use assay_consensus::locktime::{
    SEQUENCE_LOCKTIME_DISABLE_FLAG, SequenceLocks, has_sequence_locks,
};
use assay_consensus::tx::SpentCoin;
use assay_store::defect::{Point, point};
use assay_wire::{Coin, OutPoint, Tx, TxIn, Txid};

use super::admission::{Admission, Rules, View};
use super::candidate::Candidate;
use super::disconnected::DisconnectedTxs;
use super::pool::{Entry, LockPoints};
use crate::tree::BlockTree;

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

impl LockPoints {
    fn hold(&self, tree: &BlockTree) -> bool {
        self.highest_input.is_none_or(|(height, hash)| {
            tree.active_at(height).is_some_and(|id| tree.get(id).hash == hash)
        })
    }
}

/// The relative lock times of a transaction in a block at `height`, in which unconfirmed outputs count as created (Core
/// `validation.cpp`, `CalculateLockPointsAtTip`); `None` if it has none.
pub(super) fn lock_points(
    tree: &BlockTree,
    tx: Tx<'_>,
    coins: &[Coin],
    height: u32,
) -> Option<Box<LockPoints>> {
    if !has_sequence_locks(tx) {
        return None;
    }
    let branch = tree.ancestors(tree.tip());
    let heights = coins.iter().map(|coin| coin.height);
    let locks = SequenceLocks::of(tx, heights, |at| branch.median_time_past_at(at));
    let counts = |input: &TxIn<'_>| input.sequence & SEQUENCE_LOCKTIME_DISABLE_FLAG == 0;
    let highest = tx
        .inputs()
        .zip(coins)
        .filter(|(input, coin)| counts(input) && coin.height < height)
        .map(|(_, coin)| coin.height)
        .max();
    let highest_input =
        highest.and_then(|height| tree.active_at(height).map(|id| (height, tree.get(id).hash)));
    Some(Box::new(LockPoints { locks, highest_input }))
}
