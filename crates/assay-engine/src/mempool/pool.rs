//! The set of unconfirmed transactions and the outputs they spend.
//!
//! No links between transactions are stored: parents follow from a transaction's inputs, children from the map of spent
//! outputs. So admitting the 44,000th transaction of a chain costs what the first one did.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use assay_consensus::locktime::SequenceLocks;
use assay_consensus::script::Flags;
use assay_wire::{BlockHash, Coin, OutPoint, Transaction, Txid, Wtxid};

use super::disconnected::Disconnected;
use super::limit::RollingFee;
use crate::follow::{Change, Journal};

/// One unconfirmed transaction.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) tx: Arc<Transaction>,
    pub(crate) wtxid: Wtxid,
    pub(crate) fee_sat: i64,
    pub(crate) weight: u32,
    /// Virtual size: weight / 4 rounded up (BIP141); plain size where there are no witnesses.
    pub(crate) vsize: u32,
    /// Seconds since 1970.
    pub(crate) time: u64,
    /// Height of the tip at admission.
    pub(crate) height: u32,
    /// The flags under which every script passed.
    pub(crate) verified: Flags,
    /// Signature checks that its scripts executed (BCH rule).
    pub(crate) sigchecks: u32,
    /// Order of admission: parents come before children.
    pub(crate) order: u64,
    /// Memory it is charged with.
    pub(crate) usage_bytes: u32,
    /// Whether a lower tip may forbid it: it has a lock time, or spends a coinbase.
    pub(crate) depends_on_height: bool,
    /// Its relative lock times, if it has any.
    pub(crate) lock_points: Option<Box<LockPoints>>,
}

/// Relative lock times as they were when last computed (Core `primitives/transaction_identifier.h`, `LockPoints`).
#[derive(Clone, Debug)]
pub(crate) struct LockPoints {
    pub(crate) locks: SequenceLocks,
    /// The highest block that confirmed what is spent: as long as it is active, they hold.
    pub(crate) highest_input: Option<(u32, BlockHash)>,
}

/// The unconfirmed transactions.
#[derive(Default)]
pub(crate) struct Pool {
    entries: HashMap<Txid, Entry>,
    spends: HashMap<OutPoint, Txid>,
    vsize_total: u64,
    usage_bytes: u64,
    fee_total_sat: i64,
    next_order: u64,
    /// What happens, for whoever follows.
    pub(crate) journal: Option<Journal>,
    pub(super) rolling_fee: RollingFee,
    /// When transactions that are too old were last looked for, seconds since 1970.
    pub(super) expired_s: u64,
}

/// Fixed memory of an entry besides its bytes: map slots, allocation headers, offsets.
const ENTRY_OVERHEAD_BYTES: usize = 320;
/// The same for each spent output.
const SPEND_OVERHEAD_BYTES: usize = 96;

/// Memory that a transaction is charged with.
pub(crate) fn usage_bytes(tx: &Transaction) -> u32 {
    let view = tx.view();
    let offsets = 4 * (view.output_count() + 2 * view.input_count());
    (tx.bytes().len() + offsets + ENTRY_OVERHEAD_BYTES + SPEND_OVERHEAD_BYTES * view.input_count())
        as u32
}

impl Pool {
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Txid, &Entry)> {
        self.entries.iter()
    }

    /// The transaction that spends `outpoint`.
    pub(crate) fn spender(&self, outpoint: &OutPoint) -> Option<&Txid> {
        self.spends.get(outpoint)
    }

    /// The output of an unconfirmed transaction as a coin at `height`, whether spent or not.
    pub(crate) fn output(&self, outpoint: &OutPoint, height: u32) -> Option<Coin> {
        let entry = self.entries.get(&outpoint.txid)?;
        let view = entry.tx.view();
        let index = outpoint.vout as usize;
        (index < view.output_count()).then(|| {
            let output = view.output(index);
            Coin { value: output.value, height, coinbase: false, script_pubkey: output.to_script() }
        })
    }

    /// The place that the next transaction gets in the order of admission.
    pub(crate) fn next_order(&self) -> u64 {
        self.next_order
    }

    /// Adds a transaction whose inputs nobody else here spends.
    pub(crate) fn insert(&mut self, txid: Txid, mut entry: Entry) {
        entry.order = self.next_order;
        self.next_order += 1;
        self.vsize_total += u64::from(entry.vsize);
        self.usage_bytes += u64::from(entry.usage_bytes);
        self.fee_total_sat += entry.fee_sat;
        for input in entry.tx.view().inputs() {
            let earlier = self.spends.insert(input.prevout, txid);
            assert!(earlier.is_none(), "an output has one spender in the mempool");
        }
        let earlier = self.entries.insert(txid, entry);
        assert!(earlier.is_none(), "a transaction is admitted once");
        self.note(Change::Added, txid);
    }

    /// Records that every script of `txid` passed under `flags`.
    pub(crate) fn set_verified(&mut self, txid: &Txid, flags: Flags, sigchecks: u32) {
        if let Some(entry) = self.entries.get_mut(txid) {
            entry.verified = flags;
            entry.sigchecks = sigchecks;
        }
    }

    /// Takes one transaction out and leaves its children.
    pub(crate) fn remove(&mut self, txid: &Txid) -> Option<Entry> {
        let entry = self.entries.remove(txid)?;
        self.vsize_total -= u64::from(entry.vsize);
        self.usage_bytes -= u64::from(entry.usage_bytes);
        self.fee_total_sat -= entry.fee_sat;
        for input in entry.tx.view().inputs() {
            self.spends.remove(&input.prevout);
        }
        self.note(Change::Removed, *txid);
        Some(entry)
    }

    fn note(&mut self, change: Change, txid: Txid) {
        if let Some(journal) = &mut self.journal {
            journal.note(change, txid);
        }
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

    /// The transaction and everything that builds on it, children before parents' other children in no fixed order.
    pub(crate) fn descendants(&self, txid: &Txid) -> Vec<Txid> {
        let mut found = HashSet::from([*txid]);
        let mut open = vec![*txid];
        let mut out = Vec::new();
        while let Some(next) = open.pop() {
            out.push(next);
            for child in self.children(&next) {
                if found.insert(child) {
                    open.push(child);
                }
            }
        }
        out
    }

    /// Takes a transaction out with everything that builds on it; returns how many went.
    pub(crate) fn remove_with_descendants(&mut self, txid: &Txid) -> usize {
        let gone = self.descendants(txid);
        for txid in &gone {
            self.remove(txid);
        }
        gone.len()
    }

    /// Takes out what spends outputs of a transaction that is gone, with everything that builds on it.
    pub(crate) fn remove_spenders(&mut self, gone: &Disconnected) {
        for outpoint in gone.outpoints() {
            if let Some(spender) = self.spends.get(&outpoint).copied() {
                self.remove_with_descendants(&spender);
            }
        }
    }

    /// All transactions with their times, parents before children, otherwise in the order of admission.
    pub(crate) fn in_topological_order(&self) -> Vec<(Arc<Transaction>, u64)> {
        let mut by_order: Vec<(&Txid, &Entry)> = self.entries.iter().collect();
        by_order.sort_unstable_by_key(|(_, entry)| entry.order);
        let mut placed = HashSet::with_capacity(by_order.len());
        let mut out = Vec::with_capacity(by_order.len());
        for start in by_order {
            let mut open = vec![start];
            while let Some((txid, entry)) = open.last().copied() {
                // Most come behind their parents anyway; those that a reorganisation brought back may not.
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
                    out.push((Arc::clone(&entry.tx), entry.time));
                }
            }
        }
        out
    }

    /// All transactions connected with `txid` over any number of steps, itself included.
    pub(crate) fn cluster_of(&self, txid: &Txid) -> Vec<Txid> {
        self.small_cluster_of(txid, usize::MAX).unwrap_or_default()
    }

    /// The same, unless there are more than `count_max`.
    pub(crate) fn small_cluster_of(&self, txid: &Txid, count_max: usize) -> Option<Vec<Txid>> {
        let mut found = HashSet::from([*txid]);
        let mut open = vec![*txid];
        let mut out = Vec::new();
        while let Some(next) = open.pop() {
            let Some(entry) = self.entries.get(&next) else { continue };
            out.push(next);
            if out.len() > count_max {
                return None;
            }
            for neighbour in self.parents(entry).into_iter().chain(self.children(&next)) {
                if found.insert(neighbour) {
                    open.push(neighbour);
                }
            }
        }
        Some(out)
    }

    /// Number and virtual size of the transactions that would be connected, over any number of steps, through a new
    /// transaction with these parents; stops counting beyond `count_max`. Transactions admitted in or after the place
    /// `returned_from` are not yet connected with children that were there before them.
    pub(crate) fn cluster(
        &self,
        parents: &[Txid],
        count_max: usize,
        returned_from: u64,
    ) -> (usize, u64) {
        let mut found: HashSet<Txid> = parents.iter().copied().collect();
        let mut open: Vec<Txid> = parents.to_vec();
        let mut vsize = 0;
        let mut count = 0;
        while let Some(next) = open.pop() {
            let Some(entry) = self.entries.get(&next) else { continue };
            count += 1;
            vsize += u64::from(entry.vsize);
            if count > count_max {
                break;
            }
            for neighbour in self.parents(entry).into_iter().chain(self.children(&next)) {
                let order = self.entries.get(&neighbour).map_or(entry.order, |other| other.order);
                let is_apart = (order < returned_from) != (entry.order < returned_from);
                if !is_apart && found.insert(neighbour) {
                    open.push(neighbour);
                }
            }
        }
        (count, vsize)
    }
}
