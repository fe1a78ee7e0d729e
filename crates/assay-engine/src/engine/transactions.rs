//! Submission of transactions to the mempool, changed fees, and mempool queries.

use std::sync::Arc;

use assay_wire::{OutPoint, Transaction, Txid};

use super::Mempool;
use crate::error::EngineError;
use crate::mempool::{
    AcceptOptions, Admitted, Candidate, Entry, MempoolDelta, MiningChunk, PolicyTurn,
    SETTLING_ROUNDS, has_dust, trial_verdict,
};
use crate::types::{MempoolEntryInfo, MempoolInfo, Prioritised, TestAccept, TxReject};

impl Mempool<'_> {
    /// Submits one transaction to the mempool.
    ///
    /// # Errors
    /// The reason of the rejection.
    pub fn submit(self, raw: Vec<u8>, fee_sat_per_kvb_max: Option<u64>) -> Result<Txid, TxReject> {
        let mut verdicts = self.submit_all(vec![raw], fee_sat_per_kvb_max);
        verdicts.pop().expect("one transaction has one verdict")
    }

    /// Submits transactions to the mempool in this order; each gets a separate verdict.
    pub fn submit_all(
        self,
        raws: Vec<Vec<u8>>,
        fee_sat_per_kvb_max: Option<u64>,
    ) -> Vec<Result<Txid, TxReject>> {
        self.submit_all_with_work(raws, fee_sat_per_kvb_max).0
    }

    /// [`Mempool::submit_all`], and its work except scripts, in visited transactions: a server may charge it to the sender.
    pub fn submit_all_with_work(
        self,
        raws: Vec<Vec<u8>>,
        fee_sat_per_kvb_max: Option<u64>,
    ) -> (Vec<Result<Txid, TxReject>>, u64) {
        let candidates = self.0.chainstate.admission.parse_all(raws);
        let options = AcceptOptions::submit(fee_sat_per_kvb_max);
        let (verdicts, work) = self.admit_in_turn(candidates, options);
        let verdicts = verdicts.into_iter().map(|verdict| verdict.map(|admitted| admitted.txid));
        (verdicts.collect(), work)
    }

    /// [`Mempool::submit_all`] without admission.
    pub fn test_accept(
        self,
        raws: Vec<Vec<u8>>,
        fee_sat_per_kvb_max: Option<u64>,
    ) -> Vec<TestAccept> {
        let candidates = self.0.chainstate.admission.parse_all(raws);
        let options = AcceptOptions::trial(fee_sat_per_kvb_max);
        let (verdicts, _) = self.admit_in_turn(candidates, options);
        verdicts.into_iter().map(trial_verdict).collect()
    }

    /// Admits or tests transactions in this order, in the four steps of `docs/mempool.md`; also returns the work of
    /// linearization.
    pub(super) fn admit_in_turn(
        self,
        candidates: Vec<Result<Candidate, TxReject>>,
        options: AcceptOptions,
    ) -> (Vec<Result<Admitted, TxReject>>, u64) {
        let admission = &self.0.chainstate.admission;
        let turn = self.0.turns.policy();
        let work_before = admission.work();
        let pending = admission.look_ahead(&mut self.0.lock().view(), &candidates, options);
        let ahead = admission.run_checks(pending, || turn.pause());
        turn.pause();
        let mut state = self.0.lock();
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
    pub(super) fn settle(self, turn: &PolicyTurn<'_>) {
        for _ in 0..SETTLING_ROUNDS {
            let unsettled = self.0.lock().mempool.unsettled();
            if unsettled.is_empty() {
                break;
            }
            let settled = self.0.chainstate.admission.settle(unsettled, || turn.pause());
            self.0.lock().mempool.settle(settled);
        }
    }

    pub fn info(self) -> MempoolInfo {
        let is_loaded = self.is_loaded();
        self.0.chainstate.admission.info(&mut self.0.lock().mempool, is_loaded)
    }

    /// [`Mempool::info`] without waiting; `None` while another thread has the state lock, or blocks are being connected.
    pub fn info_at_once(self) -> Option<MempoolInfo> {
        let is_loaded = self.is_loaded();
        let mut state = self.0.try_lock_tree().filter(|state| state.way.is_none())?;
        Some(self.0.chainstate.admission.info(&mut state.mempool, is_loaded))
    }

    /// The txids of all unconfirmed transactions in mining order; without clusters in admission order.
    pub fn txids(self) -> Vec<Txid> {
        self.txids_and_changes().0
    }

    /// [`Mempool::txids`], with the number of changes of the mempool so far, including changes by blocks: the next
    /// [`Event::Added`](crate::Event::Added) or [`Event::Removed`](crate::Event::Removed) has a higher one.
    pub fn txids_and_changes(self) -> (Vec<Txid>, u64) {
        let mut state = self.0.lock();
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
    pub fn entries(self) -> Vec<MempoolEntryInfo> {
        let state = self.0.lock_tree();
        state.mempool.iter().filter_map(|(txid, _)| state.mempool.entry_info(txid)).collect()
    }

    pub fn entry(self, txid: &Txid) -> Option<MempoolEntryInfo> {
        self.0.lock_tree().mempool.entry_info(txid)
    }

    /// The chunks of the cluster of an unconfirmed transaction, best first; `None` without clusters.
    pub fn cluster(self, txid: &Txid) -> Option<Vec<MiningChunk>> {
        self.0.lock().mempool.cluster_chunks(txid)
    }

    /// All unconfirmed transactions in chunks, in mining order; empty without clusters.
    pub fn chunks(self) -> Vec<MiningChunk> {
        self.0.lock().mempool.chunks_best_first().unwrap_or_default()
    }

    /// The unconfirmed transaction that spends an output.
    pub fn spender(self, outpoint: &OutPoint) -> Option<(Txid, Arc<Transaction>)> {
        let state = self.0.lock();
        let txid = state.mempool.spender(outpoint)?;
        state.mempool.get(txid).map(|entry| (*txid, Arc::clone(&entry.tx)))
    }

    pub fn tx(self, txid: &Txid) -> Option<Arc<Transaction>> {
        self.0.lock_tree().mempool.get(txid).map(|entry| Arc::clone(&entry.tx))
    }

    /// Changes of the mempool since change number `since`; all transactions for `None`.
    ///
    /// # Errors
    /// A spent coin of a transaction cannot be read.
    pub fn changes_since(self, since: Option<u64>) -> Result<MempoolDelta, EngineError> {
        let state = self.0.lock();
        state.mempool.changes_since(since, state.tree.tip_facts(), &state.coins.store)
    }

    /// Number of changes of the mempool so far.
    pub fn updates(self) -> u64 {
        self.0.lock().mempool.updates()
    }

    /// Changes the fee that a transaction, unconfirmed or not known yet, counts with; several changes add up. False without
    /// effect if the transaction is in the mempool with dust, which must not pay a fee (Core `rpc/mining.cpp`).
    pub fn prioritise(self, txid: Txid, fee_delta_sat: i64) -> bool {
        let mut state = self.0.lock();
        let config = self.0.config();
        let policy = &config.policy;
        let is_dust_known = policy.require_standard && config.params.cash.is_none();
        let entry = state.mempool.get(&txid).filter(|_| is_dust_known);
        if entry.is_some_and(|entry| has_dust(&entry.tx, policy.dust_fee_sat_per_kvb)) {
            return false;
        }
        state.mempool.prioritise(txid, fee_delta_sat);
        let there = if state.mempool.get(&txid).is_some() { "" } else { "not " };
        let sum = state.mempool.fee_delta_sat(&txid);
        drop(state);
        if sum == 0 {
            tracing::info!("PrioritiseTransaction: {txid} ({there}in mempool) delta cleared");
        } else {
            tracing::info!(
                "PrioritiseTransaction: {txid} ({there}in mempool) fee += {}, new delta={}",
                assay_consensus::amount::format_money(fee_delta_sat),
                assay_consensus::amount::format_money(sum)
            );
        }
        true
    }

    /// All transactions with a changed fee, by txid.
    pub fn prioritised(self) -> Vec<Prioritised> {
        let state = self.0.lock();
        let deltas = state.mempool.fee_deltas_sat().iter();
        let info = |(txid, fee_delta_sat): (&Txid, &i64)| Prioritised {
            txid: *txid,
            fee_delta_sat: *fee_delta_sat,
            modified_fee_sat: state.mempool.get(txid).map(Entry::modified_fee_sat),
        };
        deltas.map(info).collect()
    }
}
