//! The set of unconfirmed transactions and the outputs they spend.
//!
//! Links between transactions are not stored: a transaction's inputs define its parents, the map of spent outputs its children.
//! So the admission of the 44,000th transaction of a chain costs as much as the first. If clusters have a limit, they are stored
//! as well ([`Graph`]).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use assay_consensus::script::Flags;
use assay_store::CoinStore;
use assay_store::defect::{Point, point};
use assay_wire::{Coin, OutPoint, Transaction, Txid, Wtxid};

use super::UNCONFIRMED_HEIGHT;
use super::changes::{Change, Changes};
use super::cluster::Member;
use super::disconnected::Disconnected;
use super::entry::{Entry, output_of};
use super::graph::Graph;
use super::journal::{Journal, MempoolDelta, UnconfirmedTx};
use super::rolling_fee::{Ranking, RollingFee};
use super::shards::Shards;
use super::verdicts::{DiagramVerdicts, Verdicts, covers};
use crate::error::EngineError;
use crate::events::Events;
use crate::notifier::Signal;
use crate::types::Tip;

#[derive(Default)]
pub(crate) struct Mempool {
    pub(super) entries: Shards<Txid, Entry>,
    pub(super) spends: Shards<OutPoint, Txid>,
    /// Txids of transactions with a witness, by wtxid.
    by_wtxid: HashMap<Wtxid, Txid>,
    /// Submitted transactions that no peer has fetched yet.
    unbroadcast: BTreeSet<Txid>,
    /// Submitted transactions to be announced now.
    handed_in: Vec<Wtxid>,
    pub(super) vsize_total: u64,
    pub(super) usage_bytes: u64,
    pub(super) fee_total_sat: i64,
    /// Fee deltas by txid, present or not.
    fee_deltas_sat: BTreeMap<Txid, i64>,
    /// Number of changes that may affect a block template.
    updates: u64,
    next_order: u64,
    /// Clusters, if they have a limit.
    pub(super) graph: Option<Graph>,
    /// Otherwise the eviction order, after the first eviction.
    pub(super) ranking: Option<Ranking>,
    /// True while transactions return from blocks, so that some may have children in the mempool.
    pub(super) is_returning: bool,
    /// Script results of recent transactions, present or not.
    pub(super) verdicts: Verdicts,
    pub(super) diagram_verdicts: DiagramVerdicts,
    /// Changes under this lock.
    pub(super) changes: Changes,
    /// Changes for a follower.
    pub(super) journal: Option<Journal>,
    pub(super) rolling_fee: RollingFee,
    /// Lower bound of all admission times, seconds since 1970.
    pub(super) oldest_s: u64,
}

impl Mempool {
    /// An empty mempool; `has_clusters` if their number of transactions is limited. Its journal wakes `followed_by`, and its
    /// changes go to `events`.
    pub(crate) fn new(
        has_clusters: bool,
        followed_by: Option<Arc<Signal>>,
        events: Option<Arc<Events>>,
    ) -> Self {
        let (graph, journal) = (has_clusters.then(Graph::default), followed_by.map(Journal::new));
        Self { graph, journal, changes: Changes::new(events), ..Self::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn vsize_total(&self) -> u64 {
        self.vsize_total
    }

    pub(crate) fn usage_bytes(&self) -> u64 {
        self.usage_bytes
    }

    pub(crate) fn fee_total_sat(&self) -> i64 {
        self.fee_total_sat
    }

    pub(crate) fn get(&self, txid: &Txid) -> Option<&Entry> {
        self.entries.get(txid)
    }

    /// The signature checks of a transaction, if its scripts are known to pass under at least these flags.
    pub(super) fn known_sigchecks(&self, txid: &Txid, wtxid: &Wtxid, flags: Flags) -> Option<u32> {
        self.get(txid)
            .filter(|entry| covers(entry.verified, flags) && entry.wtxid == *wtxid)
            .map(|entry| entry.sigchecks)
            .or_else(|| self.verdicts.get(wtxid, flags))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Txid, &Entry)> {
        self.entries.iter()
    }

    pub(crate) fn txid_of(&self, wtxid: &Wtxid) -> Option<Txid> {
        let txid = self.by_wtxid.get(wtxid).copied().unwrap_or(Txid(wtxid.0));
        self.get(&txid).filter(|entry| entry.wtxid == *wtxid).map(|_| txid)
    }

    /// Order number of the next transaction.
    pub(crate) fn next_order(&self) -> u64 {
        self.next_order
    }

    /// Submitted transactions that no peer has fetched yet.
    pub(crate) fn unbroadcast(&self) -> &BTreeSet<Txid> {
        &self.unbroadcast
    }

    /// Records a submitted transaction: it is announced, and if it is new, announced again until a peer has fetched it.
    pub(crate) fn hand_in(&mut self, txid: Txid, is_new: bool) {
        let Some(entry) = self.entries.get(&txid) else { return };
        self.handed_in.push(entry.wtxid);
        if is_new {
            self.unbroadcast.insert(txid);
        }
    }

    /// Takes the transactions to be announced now.
    pub(crate) fn take_handed_in(&mut self) -> Vec<Wtxid> {
        std::mem::take(&mut self.handed_in)
    }

    /// Records that a peer has fetched a transaction.
    pub(crate) fn was_fetched(&mut self, txid: &Txid) {
        self.unbroadcast.remove(txid);
    }

    /// Marks a transaction as not fetched before a restart.
    pub(crate) fn restore_unbroadcast(&mut self, txid: Txid) -> bool {
        self.entries.contains_key(&txid) && self.unbroadcast.insert(txid)
    }

    pub(crate) fn spender(&self, outpoint: &OutPoint) -> Option<&Txid> {
        self.spends.get(outpoint)
    }

    /// The output of an unconfirmed transaction as a coin at `height`, whether spent or not.
    pub(crate) fn output(&self, outpoint: &OutPoint, height: u32) -> Option<Coin> {
        output_of(&self.entries.get(&outpoint.txid)?.tx, outpoint.vout, height)
    }

    /// Adds a transaction without conflicts in the mempool.
    pub(crate) fn insert(&mut self, txid: Txid, mut entry: Entry) {
        point(Point::MempoolAdd);
        entry.order = self.next_order;
        self.next_order += 1;
        self.updates += 1;
        self.oldest_s = self.oldest_s.min(entry.time);
        self.vsize_total += u64::from(entry.vsize);
        self.usage_bytes += u64::from(entry.usage_bytes);
        self.fee_total_sat += entry.fee_sat;
        for input in entry.tx.view().inputs() {
            let earlier = self.spends.insert(input.prevout, txid);
            assert!(earlier.is_none(), "an output has one spender in the mempool");
        }
        if entry.wtxid.0 != txid.0 {
            self.by_wtxid.insert(entry.wtxid, txid);
        }
        self.link(txid, &entry);
        let earlier = self.entries.insert(txid, entry);
        assert!(earlier.is_none(), "a transaction is admitted once");
        self.note(Change::Added, txid);
    }

    /// Adds a new transaction to the clusters or the ranking.
    fn link(&mut self, txid: Txid, entry: &Entry) {
        if let Some(ranking) = &mut self.ranking {
            ranking.insert(txid, entry);
        }
        if self.graph.is_none() {
            return;
        }
        let parents = self.parents(entry);
        let children: Vec<Txid> = if self.is_returning {
            let outputs = 0..entry.tx.view().output_count() as u32;
            let spender = |vout| self.spends.get(&OutPoint { txid, vout }).copied();
            outputs.filter_map(spender).collect()
        } else {
            Vec::new()
        };
        if let Some(graph) = &mut self.graph {
            let fee_sat = entry.cluster_fee_sat();
            graph.insert(Member::new(txid, fee_sat, entry.adjusted_weight), &parents);
            for child in children {
                graph.add_pending(txid, child);
            }
        }
    }

    pub(crate) fn fee_delta_sat(&self, txid: &Txid) -> i64 {
        self.fee_deltas_sat.get(txid).copied().unwrap_or(0)
    }

    /// All nonzero fee deltas, by txid.
    pub(crate) fn fee_deltas_sat(&self) -> &BTreeMap<Txid, i64> {
        &self.fee_deltas_sat
    }

    /// Fee deltas of transactions that are not in the mempool.
    pub(crate) fn absent_fee_deltas_sat(&self) -> Vec<(Txid, i64)> {
        let deltas = self.fee_deltas_sat.iter().filter(|(txid, _)| self.get(txid).is_none());
        deltas.map(|(txid, delta)| (*txid, *delta)).collect()
    }

    /// Changes the fee delta of a transaction, present or not (Core `PrioritiseTransaction`).
    pub(crate) fn prioritise(&mut self, txid: Txid, delta_sat: i64) {
        let sum = self.fee_delta_sat(&txid).saturating_add(delta_sat);
        if sum == 0 {
            self.fee_deltas_sat.remove(&txid);
        } else {
            self.fee_deltas_sat.insert(txid, sum);
        }
        let Some(entry) = self.entries.get_mut(&txid) else { return };
        if let Some(ranking) = &mut self.ranking {
            ranking.remove(txid, entry);
        }
        entry.fee_delta_sat = sum;
        if let Some(ranking) = &mut self.ranking {
            ranking.insert(txid, entry);
        }
        let fee_sat = entry.cluster_fee_sat();
        if let Some(graph) = &mut self.graph {
            graph.set_fee(&txid, fee_sat);
        }
        self.updates += 1;
    }

    pub(crate) fn updates(&self) -> u64 {
        self.updates
    }

    /// Resets the counter after all later changes were reverted.
    pub(super) fn forget_updates_since(&mut self, updates: u64) {
        self.updates = updates;
    }

    /// Records that every script of `txid` passed under `flags`.
    pub(crate) fn set_verified(&mut self, txid: &Txid, flags: Flags, sigchecks: u32) {
        if let Some(entry) = self.entries.get_mut(txid) {
            entry.verified = flags;
            entry.sigchecks = sigchecks;
        }
    }

    /// Removes transactions and leaves their children; each cluster is rebuilt once.
    pub(crate) fn remove_all(&mut self, txids: &[Txid]) {
        for txid in txids {
            self.remove_entry(txid, Change::Removed);
        }
        self.unlink(txids);
    }

    pub(super) fn unlink(&mut self, txids: &[Txid]) {
        point(Point::MempoolRemove);
        if let Some(graph) = &mut self.graph {
            graph.remove(txids);
        }
    }

    pub(super) fn remove_entry(&mut self, txid: &Txid, change: Change) {
        let Some(entry) = self.entries.remove(txid) else { return };
        self.vsize_total -= u64::from(entry.vsize);
        self.usage_bytes -= u64::from(entry.usage_bytes);
        self.fee_total_sat -= entry.fee_sat;
        for input in entry.tx.view().inputs() {
            self.spends.remove(&input.prevout);
        }
        self.forget(txid, &entry.wtxid, Some(&entry), change);
    }

    /// Removes the remaining data of a transaction that has left both maps; the ranking needs its entry.
    pub(super) fn forget(
        &mut self,
        txid: &Txid,
        wtxid: &Wtxid,
        entry: Option<&Entry>,
        change: Change,
    ) {
        if wtxid.0 != txid.0 {
            self.by_wtxid.remove(wtxid);
        }
        if self.unbroadcast.remove(txid) {
            tracing::debug!(
                target: "mempool",
                "Removed {txid} from set of unbroadcast txns before confirmation that txn was sent out"
            );
        }
        self.updates += 1;
        if let (Some(ranking), Some(entry)) = (&mut self.ranking, entry) {
            ranking.remove(*txid, entry);
        }
        self.note(change, *txid);
    }

    pub(super) fn forget_fee_deltas(&mut self, txids: &[Txid]) {
        if !self.fee_deltas_sat.is_empty() {
            for txid in txids {
                self.fee_deltas_sat.remove(txid);
            }
        }
    }

    fn note(&mut self, change: Change, txid: Txid) {
        if let Some(journal) = &mut self.journal {
            journal.note(change, txid);
        }
        self.changes.note(change, txid);
    }

    /// Direct parents, each once.
    pub(crate) fn parents(&self, entry: &Entry) -> Vec<Txid> {
        let mut seen = HashSet::new();
        entry
            .tx
            .view()
            .inputs()
            .map(|input| input.prevout.txid)
            .filter(|txid| self.entries.contains_key(txid) && seen.insert(*txid))
            .collect()
    }

    /// Direct children, each once.
    pub(crate) fn children(&self, txid: &Txid) -> Vec<Txid> {
        let Some(entry) = self.entries.get(txid) else { return Vec::new() };
        let mut seen = HashSet::new();
        (0..entry.tx.view().output_count() as u32)
            .filter_map(|vout| self.spends.get(&OutPoint { txid: *txid, vout }).copied())
            .filter(|child| seen.insert(*child))
            .collect()
    }

    /// These transactions and their descendants, each once.
    pub(crate) fn with_descendants(&self, txids: impl IntoIterator<Item = Txid>) -> Vec<Txid> {
        let mut found = HashSet::new();
        self.new_with_descendants(txids, &mut found)
    }

    /// [`Self::with_descendants`] without those found before.
    pub(super) fn new_with_descendants(
        &self,
        txids: impl IntoIterator<Item = Txid>,
        found: &mut HashSet<Txid>,
    ) -> Vec<Txid> {
        let mut out: Vec<Txid> = txids.into_iter().filter(|txid| found.insert(*txid)).collect();
        let mut at = 0;
        while let Some(next) = out.get(at).copied() {
            at += 1;
            out.extend(self.children(&next).into_iter().filter(|child| found.insert(*child)));
        }
        out
    }

    /// Removes a transaction with its descendants; returns their number.
    pub(crate) fn remove_with_descendants(&mut self, txid: &Txid) -> usize {
        let gone = self.with_descendants([*txid]);
        self.remove_all(&gone);
        gone.len()
    }

    /// Removes the spenders of a removed transaction's outputs, with their descendants.
    pub(crate) fn remove_spenders(&mut self, gone: &Disconnected) {
        for outpoint in gone.outpoints() {
            if let Some(spender) = self.spends.get(&outpoint).copied() {
                self.remove_with_descendants(&spender);
            }
        }
    }

    /// All transactions with their times and fee deltas, parents before children, otherwise in the order of admission.
    pub(crate) fn in_topological_order(&self) -> Vec<(Arc<Transaction>, u64, i64)> {
        let mut by_order: Vec<(&Txid, &Entry)> = self.entries.iter().collect();
        by_order.sort_unstable_by_key(|(_, entry)| entry.order);
        let mut placed = HashSet::with_capacity(by_order.len());
        let mut out = Vec::with_capacity(by_order.len());
        for start in by_order {
            let mut open = vec![start];
            while let Some((txid, entry)) = open.last().copied() {
                // Most are after their parents anyway; those returned by a reorg may not be.
                let parent = entry
                    .tx
                    .view()
                    .inputs()
                    .filter_map(|input| self.entries.get_key_value(&input.prevout.txid))
                    .find(|(parent, _)| !placed.contains(*parent));
                if let Some(parent) = parent {
                    open.push(parent);
                    continue;
                }
                open.pop();
                if placed.insert(*txid) {
                    out.push((Arc::clone(&entry.tx), entry.time, entry.fee_delta_sat));
                }
            }
        }
        out
    }

    /// All transitively connected transactions of `txid`, including itself.
    pub(crate) fn cluster_of(&self, txid: &Txid) -> Vec<Txid> {
        let mut found = HashSet::from([*txid]);
        let mut open = vec![*txid];
        let mut out = Vec::new();
        while let Some(next) = open.pop() {
            let Some(entry) = self.entries.get(&next) else { continue };
            out.push(next);
            for neighbour in self.parents(entry).into_iter().chain(self.children(&next)) {
                if found.insert(neighbour) {
                    open.push(neighbour);
                }
            }
        }
        out
    }

    /// Number of changes so far, including changes by blocks.
    pub(crate) fn change_count(&self) -> u64 {
        self.changes.count()
    }

    /// Numbers the pending changes and reports them.
    pub(crate) fn settle_changes(&mut self) {
        let Self { changes, entries, .. } = self;
        changes.settle(|txid| entries.get(txid).map(|entry| Arc::clone(&entry.tx)));
    }

    /// The unconfirmed transactions that spend these outputs, each once.
    pub(super) fn conflicts(&self, prevouts: impl Iterator<Item = OutPoint>) -> Vec<Txid> {
        let mut seen = HashSet::new();
        prevouts
            .filter_map(|prevout| self.spender(&prevout).copied())
            .filter(|txid| seen.insert(*txid))
            .collect()
    }

    /// Changes since number `since`; everything for `None`. `coins` are those of the chain at `tip`.
    ///
    /// # Errors
    /// A spent coin of a transaction cannot be read.
    pub(crate) fn changes_since(
        &self,
        since: Option<u64>,
        tip: Tip,
        coins: &CoinStore,
    ) -> Result<MempoolDelta, EngineError> {
        let journal = self.journal.as_ref();
        let changes = since.and_then(|since| journal?.since(since));
        let from_scratch = changes.is_none();
        let (mut removed, mut txids) = (Vec::new(), Vec::new());
        match changes {
            None => txids.extend(self.iter().map(|(txid, _)| *txid)),
            Some(changes) => {
                for (change, txid) in changes {
                    match change {
                        Change::Added => txids.push(txid),
                        Change::Removed | Change::Mined => removed.push(txid),
                    }
                }
            }
        }
        let mut entries: Vec<_> =
            txids.iter().filter_map(|txid| Some((*txid, self.get(txid)?))).collect();
        entries.sort_unstable_by_key(|(_, entry)| entry.order);
        entries.dedup_by_key(|(_, entry)| entry.order);
        let mut added = Vec::with_capacity(entries.len());
        for (txid, entry) in entries {
            let mut spent = Vec::with_capacity(entry.tx.view().input_count());
            for input in entry.tx.view().inputs() {
                let coin = match self.output(&input.prevout, UNCONFIRMED_HEIGHT) {
                    Some(coin) => Some(coin),
                    None => coins.get(&input.prevout)?,
                };
                let outpoint = input.prevout;
                spent.push(coin.ok_or(EngineError::NoCoin { outpoint })?);
            }
            let (fee_sat, vsize) = (entry.fee_sat, entry.vsize);
            added.push(UnconfirmedTx { txid, tx: Arc::clone(&entry.tx), spent, fee_sat, vsize });
        }
        Ok(MempoolDelta {
            tip,
            sequence: journal.map_or(0, Journal::last),
            from_scratch,
            removed,
            added,
        })
    }
}
