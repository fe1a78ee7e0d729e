//! Submission of transactions to the mempool, and mempool queries.

use std::sync::Arc;

use assay_wire::{OutPoint, Transaction, Txid};

use super::Engine;
use crate::mempool::{
    AcceptOptions, Admitted, Candidate, MiningChunk, PolicyTurn, SETTLING_ROUNDS, trial_verdict,
};
use crate::types::{MempoolEntryInfo, MempoolInfo, TestAccept, TxReject};

impl Engine {
    /// Submits one transaction to the mempool.
    ///
    /// # Errors
    /// The reason of the rejection.
    pub fn submit_transaction(
        &self,
        raw: Vec<u8>,
        fee_sat_per_kvb_max: Option<u64>,
    ) -> Result<Txid, TxReject> {
        let mut verdicts = self.submit_transactions(vec![raw], fee_sat_per_kvb_max);
        verdicts.pop().expect("one transaction has one verdict")
    }

    /// Submits transactions to the mempool in this order; each gets a separate verdict.
    pub fn submit_transactions(
        &self,
        raws: Vec<Vec<u8>>,
        fee_sat_per_kvb_max: Option<u64>,
    ) -> Vec<Result<Txid, TxReject>> {
        self.submit_transactions_with_work(raws, fee_sat_per_kvb_max).0
    }

    /// [`Engine::submit_transactions`], and its work except scripts, in visited transactions: a server may charge it to the sender.
    pub fn submit_transactions_with_work(
        &self,
        raws: Vec<Vec<u8>>,
        fee_sat_per_kvb_max: Option<u64>,
    ) -> (Vec<Result<Txid, TxReject>>, u64) {
        let candidates = self.chain.admission.parse_all(raws);
        let options = AcceptOptions::submit(fee_sat_per_kvb_max);
        let (verdicts, work) = self.admit_in_turn(candidates, options);
        let verdicts = verdicts.into_iter().map(|verdict| verdict.map(|admitted| admitted.txid));
        (verdicts.collect(), work)
    }

    /// [`Engine::submit_transactions`] without admission.
    pub fn test_accept(
        &self,
        raws: Vec<Vec<u8>>,
        fee_sat_per_kvb_max: Option<u64>,
    ) -> Vec<TestAccept> {
        let candidates = self.chain.admission.parse_all(raws);
        let options = AcceptOptions::trial(fee_sat_per_kvb_max);
        let (verdicts, _) = self.admit_in_turn(candidates, options);
        verdicts.into_iter().map(trial_verdict).collect()
    }

    /// Admits or tests transactions in this order, in the four steps of `docs/mempool.md`; also returns the work of
    /// linearization.
    pub(super) fn admit_in_turn(
        &self,
        candidates: Vec<Result<Candidate, TxReject>>,
        options: AcceptOptions,
    ) -> (Vec<Result<Admitted, TxReject>>, u64) {
        let admission = &self.chain.admission;
        let turn = self.turns.policy();
        let work_before = admission.work();
        let pending = admission.look_ahead(&mut self.lock().view(), &candidates, options);
        let ahead = admission.run_checks(pending, || turn.pause());
        turn.pause();
        let mut state = self.lock();
        let verdicts = match state.check_admission() {
            Ok(()) => admission.admit_with(&mut state.view(), candidates, options, ahead),
            Err(error) => {
                let fail = |candidate: Candidate| Err(candidate.failed(&error));
                candidates.into_iter().map(|candidate| candidate.and_then(fail)).collect()
            }
        };
        if options.is_announced {
            let admitted = verdicts.iter().flatten();
            let admitted = admitted.map(|admitted| (admitted.txid, admitted.is_new));
            self.hand_in(&mut state.mempool, admitted);
        }
        drop(state);
        self.settle(&turn);
        (verdicts, admission.work() - work_before)
    }

    /// Improves the linearization of clusters that an admission has changed.
    pub(super) fn settle(&self, turn: &PolicyTurn<'_>) {
        for _ in 0..SETTLING_ROUNDS {
            let unsettled = self.lock().mempool.unsettled();
            if unsettled.is_empty() {
                break;
            }
            let settled = self.chain.admission.settle(unsettled, || turn.pause());
            self.lock().mempool.settle(settled);
        }
    }

    pub fn mempool_info(&self) -> MempoolInfo {
        let is_loaded = self.is_mempool_loaded();
        self.chain.admission.info(&mut self.lock().mempool, is_loaded)
    }

    /// [`Engine::mempool_info`] without waiting; `None` while another thread has the state lock, or blocks are being connected.
    pub fn mempool_info_at_once(&self) -> Option<MempoolInfo> {
        let is_loaded = self.is_mempool_loaded();
        let mut state = self.try_lock_tree().filter(|state| state.way.is_none())?;
        Some(self.chain.admission.info(&mut state.mempool, is_loaded))
    }

    /// The txids of all unconfirmed transactions in mining order; without clusters in admission order.
    pub fn mempool_txids(&self) -> Vec<Txid> {
        self.mempool_txids_and_changes().0
    }

    /// [`Engine::mempool_txids`], with the number of changes of the mempool so far, including changes by blocks: the next
    /// [`Event::Added`](crate::Event::Added) or [`Event::Removed`](crate::Event::Removed) has a higher one.
    pub fn mempool_txids_and_changes(&self) -> (Vec<Txid>, u64) {
        let mut state = self.lock();
        let changes = state.mempool.change_count();
        if let Some(chunks) = state.mempool.chunks_best_first() {
            return (chunks.into_iter().flat_map(|chunk| chunk.txids).collect(), changes);
        }
        let mut txids: Vec<_> =
            state.mempool.iter().map(|(id, entry)| (entry.order, *id)).collect();
        txids.sort_unstable();
        (txids.into_iter().map(|(_, txid)| txid).collect(), changes)
    }

    /// All unconfirmed transactions, in no particular order.
    pub fn mempool_entries(&self) -> Vec<MempoolEntryInfo> {
        let state = self.lock_tree();
        state.mempool.iter().filter_map(|(txid, _)| state.mempool.entry_info(txid)).collect()
    }

    pub fn mempool_entry(&self, txid: &Txid) -> Option<MempoolEntryInfo> {
        self.lock_tree().mempool.entry_info(txid)
    }

    /// The chunks of the cluster of an unconfirmed transaction, best first; `None` without clusters.
    pub fn mempool_cluster(&self, txid: &Txid) -> Option<Vec<MiningChunk>> {
        self.lock().mempool.cluster_chunks(txid)
    }

    /// All unconfirmed transactions in chunks, in mining order; empty without clusters.
    pub fn mempool_chunks(&self) -> Vec<MiningChunk> {
        self.lock().mempool.chunks_best_first().unwrap_or_default()
    }

    /// The unconfirmed transaction that spends an output.
    pub fn mempool_spender(&self, outpoint: &OutPoint) -> Option<(Txid, Arc<Transaction>)> {
        let state = self.lock();
        let txid = state.mempool.spender(outpoint)?;
        state.mempool.get(txid).map(|entry| (*txid, Arc::clone(&entry.tx)))
    }

    pub fn mempool_tx(&self, txid: &Txid) -> Option<Arc<Transaction>> {
        self.lock_tree().mempool.get(txid).map(|entry| Arc::clone(&entry.tx))
    }
}
