//! Mempool queries for transaction relay.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::Arc;

use assay_wire::{Transaction, Txid, Wtxid};

use super::Mempool;
use crate::mempool::{self, AcceptOptions, Candidate, Entry};
use crate::types::{RelayId, RelayTx, TxIds, TxReject};

impl Mempool<'_> {
    /// Submits a transaction of a peer to the mempool.
    ///
    /// # Errors
    /// The reason of the rejection.
    pub fn take_transaction(self, tx: Arc<Transaction>) -> Result<Txid, TxReject> {
        let (txid, wtxid) = (tx.view().txid(), tx.view().wtxid());
        let candidate =
            Candidate::new(tx, txid, wtxid).checked(&self.0.chainstate.admission.config);
        let (mut verdicts, _) = self.admit_in_turn(vec![candidate], AcceptOptions::ADMIT);
        let verdict = verdicts.pop().expect("one transaction has one verdict");
        verdict.map(|admitted| admitted.txid)
    }

    /// True if a transaction is in the mempool.
    pub fn contains(self, id: &RelayId) -> bool {
        find(&self.0.lock_tree().mempool, id).is_some()
    }

    /// A transaction that was in the mempool at time `moment`, from [`Mempool::relay_order`], or in a block before (Core
    /// `txmempool.cpp`, `info_for_relay`).
    pub fn transaction_before(self, id: &RelayId, moment: u64) -> Option<Arc<Transaction>> {
        let state = self.0.lock_tree();
        let (_, entry) = find(&state.mempool, id)?;
        (entry.was_confirmed || entry.order < moment).then(|| Arc::clone(&entry.tx))
    }

    /// The given transactions that are in the mempool, in announcement order: by mining priority, parents before children. Also
    /// returns the time of the answer, for [`Mempool::transaction_before`].
    pub fn relay_order(self, wtxids: &[Wtxid]) -> (Vec<RelayTx>, u64) {
        let state = self.0.lock_tree();
        let pool = &state.mempool;
        let found = wtxids.iter().filter_map(|wtxid| {
            let txid = pool.txid_of(wtxid)?;
            pool.get(&txid).map(|entry| (txid, entry))
        });
        (in_relay_order(pool, found.collect()), pool.next_order())
    }

    /// The whole mempool in that order.
    pub fn relay_order_of_all(self) -> (Vec<RelayTx>, u64) {
        let state = self.0.lock_tree();
        let pool = &state.mempool;
        let all = pool.iter().map(|(txid, entry)| (*txid, entry)).collect();
        (in_relay_order(pool, all), pool.next_order())
    }

    /// Calls `visit` for all transactions of the mempool, in arbitrary order, until it breaks. Blocks all other users of the
    /// state.
    pub fn visit(self, mut visit: impl FnMut(TxIds, &Arc<Transaction>) -> ControlFlow<()>) {
        let state = self.0.lock_tree();
        let ids = |txid: &Txid, wtxid: &Wtxid| TxIds { txid: *txid, wtxid: *wtxid };
        let mut entries = state.mempool.iter();
        let _ = entries.try_for_each(|(txid, entry)| visit(ids(txid, &entry.wtxid), &entry.tx));
    }

    /// Transactions submitted since the last call, to be announced now; none without
    /// [`Config::has_peers`](crate::Config::has_peers).
    pub fn take_handed_in(self) -> Vec<Wtxid> {
        self.0.lock_tree().mempool.take_handed_in()
    }

    /// Records that a known transaction was submitted again, possibly with another witness.
    pub fn handed_in_again(self, txid: Txid) {
        self.hand_in(&mut self.0.lock().mempool, [(txid, false)].into_iter());
    }

    /// Records submitted transactions, under the lock of their admission; the flag is true for new ones.
    pub(super) fn hand_in(
        self,
        mempool: &mut mempool::Mempool,
        txids: impl Iterator<Item = (Txid, bool)>,
    ) {
        if self.0.config().has_peers {
            txids.for_each(|(txid, is_new)| mempool.hand_in(txid, is_new));
        }
    }

    /// A peer has fetched a transaction and will relay it.
    pub fn was_fetched(self, txid: &Txid) {
        self.0.lock_tree().mempool.was_fetched(txid);
    }

    /// Submitted transactions that no peer has fetched.
    pub fn unbroadcast(self) -> Vec<(Txid, Wtxid)> {
        let state = self.0.lock_tree();
        let pool = &state.mempool;
        let entries = pool.unbroadcast().iter();
        entries.filter_map(|txid| Some((*txid, pool.get(txid)?.wtxid))).collect()
    }
}

fn find<'p>(pool: &'p mempool::Mempool, id: &RelayId) -> Option<(Txid, &'p Entry)> {
    let txid = match id {
        RelayId::Txid(txid) => *txid,
        RelayId::Wtxid(wtxid) => pool.txid_of(wtxid)?,
    };
    pool.get(&txid).map(|entry| (txid, entry))
}

/// By the fee rate of the chunk, then by admission: within a cluster chunks are in the order of their fee rates.
fn in_relay_order(pool: &mempool::Mempool, mut found: Vec<(Txid, &Entry)>) -> Vec<RelayTx> {
    found.sort_by_cached_key(|(txid, entry)| {
        let chunk = pool.chunk_of(txid).map(|chunk| (chunk.fee_sat, chunk.weight));
        let rate = chunk.map(|(fee_sat, weight)| fee_rate(fee_sat, weight));
        (Reverse(rate), entry.order)
    });
    let tx = |(txid, entry): (Txid, &Entry)| RelayTx {
        txid,
        wtxid: entry.wtxid,
        fee_sat: entry.fee_sat,
        vsize: entry.vsize,
        size: entry.tx.bytes().len() as u32,
    };
    found.into_iter().map(tx).collect()
}

/// Comparable without division by zero; millionths of a satoshi per weight unit.
fn fee_rate(fee_sat: i64, weight: u64) -> i128 {
    i128::from(fee_sat) * 1_000_000 / i128::from(weight.max(1))
}
