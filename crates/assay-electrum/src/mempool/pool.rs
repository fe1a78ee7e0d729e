//! The mempool maps and their updates.

use std::collections::hash_map;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use assay_wire::{OutPoint, Transaction, Txid};
use rayon::prelude::*;

use super::fees::FeeHistogram;
use crate::chain::{MempoolChange, MempoolChanges, MempoolTx};
use crate::index::{ScriptHash, is_unspendable};

const NONE: u32 = u32::MAX;
const NEVER: u64 = u64::MAX;
/// Size of the list of latest arrivals. Some will have left when the last ten are requested.
const RECENT_MAX: usize = 64;

/// Receives the scripts and transactions that a mempool change affects.
pub trait Affected {
    fn script(&mut self, script: &ScriptHash);

    /// A transaction was added or removed, or its height changed; so may have the state of the outputs it creates or spends.
    fn transaction(&mut self, _txid: &Txid, _tx: &Transaction) {}
}

impl<F: FnMut(&ScriptHash)> Affected for F {
    fn script(&mut self, script: &ScriptHash) {
        self(script);
    }
}

/// Unconfirmed transactions by txid, script and spent outpoint.
#[derive(Default)]
pub struct Mempool {
    /// Epoch visible to readers.
    pub(super) epoch: u64,
    pub(super) txs: Slab<Entry>,
    pub(super) by_txid: HashMap<Txid, u32>,
    pub(super) spends: HashMap<OutPoint, Spend>,
    pub(super) scripts: Slab<Script>,
    pub(super) by_script: HashMap<ScriptHash, u32>,
    pub(super) fees: FeeHistogram,
    /// Latest arrivals, oldest first.
    pub(super) recent: VecDeque<Txid>,
    /// Transactions invisible from the next epoch on.
    leaving: Vec<u32>,
}

pub(super) struct Entry {
    pub(super) txid: Txid,
    pub(super) tx: Arc<Transaction>,
    pub(super) fee_sat: i64,
    pub(super) vsize: u32,
    /// Epochs of arrival and removal.
    added: u64,
    removed: u64,
    pub(super) touches: Box<[Touch]>,
}

impl Entry {
    pub(super) fn visible(&self, epoch: u64) -> bool {
        self.added <= epoch && epoch < self.removed
    }
}

/// A script that a transaction pays to or spends from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub(super) script: u32,
    /// Index of the transaction in the script's list.
    at: u32,
}

pub(super) struct Script {
    hash: ScriptHash,
    pub(super) txs: Vec<Member>,
    /// Effect of unconfirmed transactions on its balance, before and from the epoch of the last change.
    delta_before: i64,
    delta_after: i64,
    changed: u64,
}

impl Script {
    fn new(hash: ScriptHash) -> Self {
        // Nearly all scripts have one unconfirmed transaction.
        let txs = Vec::with_capacity(1);
        Self { hash, txs, delta_before: 0, delta_after: 0, changed: 0 }
    }

    /// Changes the balance from epoch `next` on.
    fn change(&mut self, delta: i64, next: u64) {
        if self.changed != next {
            self.delta_before = self.delta_after;
            self.changed = next;
        }
        self.delta_after = self.delta_after.saturating_add(delta);
    }

    pub(super) fn delta(&self, epoch: u64) -> i64 {
        if epoch >= self.changed { self.delta_after } else { self.delta_before }
    }
}

/// A transaction in a script's list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) tx: u32,
    /// Index of the script in the transaction's list.
    at: u32,
    delta: i64,
}

/// Spender of an output. Between two epochs there may be two: the old one and its replacement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spend {
    pub(super) newest: u32,
    pub(super) other: u32,
}

impl Mempool {
    /// Current epoch. Only [`Mempool::turn`] changes it.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// A mempool built from `batch`, at an epoch after `previous`: for batches from scratch.
    pub fn rebuilt(batch: Batch, previous: u64) -> Self {
        let mut pool = Self { epoch: previous, ..Self::default() };
        for incoming in batch.added {
            pool.insert(incoming, &mut |_: &ScriptHash| {});
        }
        pool.turn();
        pool
    }

    /// Stages up to `steps` additions and removals of `batch` for the next epoch; returns true if more remain. Readers are
    /// unaffected. Passes every script and transaction whose state may change to `affected`, possibly several times.
    pub fn stage(&mut self, batch: &mut Batch, steps: usize, affected: &mut dyn Affected) -> bool {
        for _ in 0..steps {
            if let Some(txid) = batch.removed.pop() {
                self.withdraw(&txid, affected);
            } else {
                // Removals first, then additions in order of arrival.
                let count = steps.min(batch.added.len());
                for incoming in batch.added.drain(..count) {
                    self.insert(incoming, affected);
                }
                break;
            }
        }
        !(batch.removed.is_empty() && batch.added.is_empty())
    }

    /// Advances the epoch: staged changes become visible.
    pub fn turn(&mut self) {
        self.epoch += 1;
    }

    /// Frees up to `steps` transactions that no reader sees; returns true if more remain.
    pub fn purge(&mut self, steps: usize) -> bool {
        for _ in 0..steps {
            let Some(number) = self.leaving.pop() else { break };
            self.forget(number);
        }
        !self.leaving.is_empty()
    }

    fn withdraw(&mut self, txid: &Txid, affected: &mut dyn Affected) {
        let Some(&number) = self.by_txid.get(txid) else { return };
        let next = self.epoch + 1;
        let Some(entry) = self.txs.get_mut(number) else { return };
        entry.removed = next;
        for touch in &entry.touches {
            if let Some(script) = self.scripts.get_mut(touch.script)
                && let Some(member) = script.txs.get(touch.at as usize).copied()
            {
                script.change(-member.delta, next);
            }
        }
        self.leaving.push(number);
        self.report(number, affected);
        self.report_children(number, affected);
    }

    fn insert(&mut self, incoming: Incoming, affected: &mut dyn Affected) {
        let Incoming { tx, touches } = incoming;
        let txid = tx.txid;
        let hash_map::Entry::Vacant(place) = self.by_txid.entry(txid) else { return };
        let number = self.txs.insert(Entry {
            txid,
            tx: Arc::clone(&tx.tx),
            fee_sat: tx.fee_sat,
            vsize: tx.vsize,
            added: self.epoch + 1,
            removed: NEVER,
            touches: Box::default(),
        });
        place.insert(number);
        let touches: Box<[Touch]> = touches
            .iter()
            .enumerate()
            .map(|(at, (hash, delta))| self.join(number, at as u32, hash, *delta))
            .collect();
        if let Some(entry) = self.txs.get_mut(number) {
            entry.touches = touches;
        }
        for input in tx.tx.view().inputs() {
            self.spends
                .entry(input.prevout)
                .and_modify(|spend| *spend = Spend { newest: number, other: spend.newest })
                .or_insert(Spend { newest: number, other: NONE });
        }
        self.fees.add(tx.fee_sat, tx.vsize);
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(txid);
        self.report(number, affected);
        // After a reorg a parent may arrive after its children.
        self.report_children(number, affected);
    }

    fn join(&mut self, tx: u32, at: u32, hash: &ScriptHash, delta: i64) -> Touch {
        let scripts = &mut self.scripts;
        let number =
            *self.by_script.entry(*hash).or_insert_with(|| scripts.insert(Script::new(*hash)));
        let script = self.scripts.get_mut(number).expect("a script in the map has its place");
        script.txs.push(Member { tx, at, delta });
        script.change(delta, self.epoch + 1);
        Touch { script: number, at: (script.txs.len() - 1) as u32 }
    }

    fn forget(&mut self, number: u32) {
        let Some(entry) = self.txs.remove(number) else { return };
        for touch in &entry.touches {
            self.leave(*touch);
        }
        for input in entry.tx.view().inputs() {
            if let hash_map::Entry::Occupied(mut place) = self.spends.entry(input.prevout) {
                let spend = place.get_mut();
                if spend.other == number {
                    spend.other = NONE;
                } else if spend.newest == number {
                    if spend.other == NONE {
                        place.remove();
                    } else {
                        *spend = Spend { newest: spend.other, other: NONE };
                    }
                }
            }
        }
        self.by_txid.remove(&entry.txid);
        self.fees.remove(entry.fee_sat, entry.vsize);
    }

    /// Removes a transaction from a script's list by swapping in the last one and updating that one's index.
    fn leave(&mut self, touch: Touch) {
        let Some(script) = self.scripts.get_mut(touch.script) else { return };
        script.txs.swap_remove(touch.at as usize);
        if let Some(moved) = script.txs.get(touch.at as usize).copied() {
            let entry = self.txs.get_mut(moved.tx).expect("a transaction in a list has its place");
            entry.touches[moved.at as usize].at = touch.at;
        } else if script.txs.is_empty() {
            let hash = script.hash;
            self.scripts.remove(touch.script);
            self.by_script.remove(&hash);
        }
    }

    fn report(&self, number: u32, affected: &mut dyn Affected) {
        let Some(entry) = self.txs.get(number) else { return };
        affected.transaction(&entry.txid, &entry.tx);
        for touch in &entry.touches {
            if let Some(script) = self.scripts.get(touch.script) {
                affected.script(&script.hash);
            }
        }
    }

    /// The script status depends on unconfirmed parents, so children are affected too.
    fn report_children(&self, number: u32, affected: &mut dyn Affected) {
        let Some(entry) = self.txs.get(number) else { return };
        for vout in 0..entry.tx.view().output_count() as u32 {
            let Some(spend) = self.spends.get(&OutPoint { txid: entry.txid, vout }) else {
                continue;
            };
            for child in [spend.newest, spend.other] {
                if child != NONE {
                    self.report(child, affected);
                }
            }
        }
    }
}

/// Values with indices that stay valid until removal.
pub(super) struct Slab<T> {
    places: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self.places[number as usize] = Some(value);
            return number;
        }
        let number =
            u32::try_from(self.places.len()).expect("fewer than 2^32 transactions fit into memory");
        self.places.push(Some(value));
        number
    }

    fn remove(&mut self, number: u32) -> Option<T> {
        let value = self.places.get_mut(number as usize)?.take()?;
        self.free.push(number);
        Some(value)
    }

    pub(super) fn get(&self, number: u32) -> Option<&T> {
        self.places.get(number as usize)?.as_ref()
    }

    fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.places.get_mut(number as usize)?.as_mut()
    }
}

/// Transactions per hashing task: shorter lists do not justify a second thread.
const PARALLEL_MIN: usize = 256;

/// Net effect of a list of changes, with scripts already hashed.
///
/// Only the last change of each transaction matters: a transaction added and removed within the list is absent.
#[derive(Default)]
pub struct Batch {
    from_scratch: bool,
    /// Consumed from the front.
    added: VecDeque<Incoming>,
    removed: Vec<Txid>,
}

/// A new transaction and its effect on scripts.
struct Incoming {
    tx: MempoolTx,
    /// Scripts that it pays to or spends from, without duplicates, with the change of their balance.
    touches: Vec<(ScriptHash, i64)>,
}

impl Batch {
    pub fn new(changes: MempoolChanges) -> Self {
        let mut last: HashMap<Txid, usize> = HashMap::with_capacity(changes.changes.len());
        for (at, change) in changes.changes.iter().enumerate() {
            last.insert(txid(change), at);
        }
        let mut added = Vec::new();
        let mut removed = Vec::new();
        for (at, change) in changes.changes.into_iter().enumerate() {
            if last.get(&txid(&change)) != Some(&at) {
                continue;
            }
            match change {
                MempoolChange::Added(tx) => added.push(tx),
                MempoolChange::Removed(txid) => removed.push(txid),
            }
        }
        let added = if added.len() < PARALLEL_MIN {
            added.into_iter().map(Incoming::new).collect()
        } else {
            added.into_par_iter().with_min_len(PARALLEL_MIN).map(Incoming::new).collect()
        };
        Self { from_scratch: changes.from_scratch, added, removed }
    }

    /// True if this batch replaces the whole mempool.
    pub fn is_from_scratch(&self) -> bool {
        self.from_scratch
    }

    pub fn is_empty(&self) -> bool {
        !self.from_scratch && self.added.is_empty() && self.removed.is_empty()
    }
}

fn txid(change: &MempoolChange) -> Txid {
    match change {
        MempoolChange::Added(tx) => tx.txid,
        MempoolChange::Removed(txid) => *txid,
    }
}

impl Incoming {
    fn new(tx: MempoolTx) -> Self {
        let view = tx.tx.view();
        let mut touches = Vec::with_capacity(view.output_count() + tx.spent.len());
        let spendable = view.outputs().filter(|output| !is_unspendable(output.script_pubkey));
        touches
            .extend(spendable.map(|output| (ScriptHash::of(output.script_pubkey), output.value)));
        touches
            .extend(tx.spent.iter().map(|coin| (ScriptHash::of(&coin.script_pubkey), -coin.value)));
        touches.sort_unstable_by_key(|(script, _)| *script);
        touches.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        touches.shrink_to_fit();
        Self { tx, touches }
    }
}
