//! Mempool queries.

use std::collections::HashSet;
use std::sync::Arc;

use assay_wire::{OutPoint, Transaction, Txid};

use super::fees::FeeHistogram;
use super::pool::{Entry, Mempool, Script};
use crate::index::ScriptHash;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unconfirmed {
    pub txid: Txid,
    pub fee_sat: i64,
    /// True if it spends an unconfirmed output: height -1 in the protocol, otherwise 0.
    pub unconfirmed_parents: bool,
}

impl Unconfirmed {
    /// Height in the Electrum protocol.
    pub fn height(&self) -> i32 {
        -i32::from(self.unconfirmed_parents)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Created {
    pub outpoint: OutPoint,
    /// In satoshi.
    pub value: i64,
}

/// Effect of unconfirmed transactions on the outputs of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptMempool {
    pub created: Vec<Created>,
    /// All outpoints spent, of this script or of others: a superset of the spent confirmed outputs of this one.
    pub spent: HashSet<OutPoint>,
}

/// A script has more unconfirmed transactions than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("history too large: more than {max} unconfirmed transactions")]
pub struct TooMany {
    pub max: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentTx {
    pub txid: Txid,
    pub fee_sat: i64,
    pub vsize: u32,
}

/// Unconfirmed transactions of a script, unordered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unordered(Vec<Unconfirmed>);

impl Unordered {
    /// In the order of protocol 1.6: those with only confirmed inputs first, then by txid as printed.
    pub fn sorted(mut self) -> Vec<Unconfirmed> {
        self.0.sort_unstable_by(|left, right| {
            let order = left.unconfirmed_parents.cmp(&right.unconfirmed_parents);
            order.then_with(|| left.txid.0.iter().rev().cmp(right.txid.0.iter().rev()))
        });
        self.0
    }
}

impl ScriptMempool {
    /// `txs` must be all transactions that touch the script.
    pub fn new(hash: &ScriptHash, txs: &[(Txid, Arc<Transaction>)]) -> Self {
        let mut outputs = Self::default();
        for (_, tx) in txs {
            outputs.spent.extend(tx.view().inputs().map(|input| input.prevout));
        }
        for (txid, tx) in txs {
            for (vout, output) in tx.view().outputs().enumerate() {
                let outpoint = OutPoint { txid: *txid, vout: vout as u32 };
                // Every spender of the script's outputs touches the script, and so is in `txs`.
                if !outputs.spent.contains(&outpoint)
                    && ScriptHash::of(output.script_pubkey) == *hash
                {
                    outputs.created.push(Created { outpoint, value: output.value });
                }
            }
        }
        outputs.created.sort_unstable_by_key(|created| created.outpoint);
        outputs
    }
}

impl Mempool {
    /// Number of transactions. Between two epochs it includes those being removed.
    pub fn len(&self) -> usize {
        self.by_txid.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by_txid.is_empty()
    }

    pub fn contains(&self, txid: &Txid) -> bool {
        self.entry(txid).is_some()
    }

    pub fn fees(&self) -> &FeeHistogram {
        &self.fees
    }

    pub fn transaction(&self, txid: &Txid) -> Option<Arc<Transaction>> {
        self.entry(txid).map(|entry| Arc::clone(&entry.tx))
    }

    /// Transactions that touch a script, at most `max`. Sort them after releasing the mempool lock.
    pub fn history(&self, script: &ScriptHash, max: usize) -> Result<Unordered, TooMany> {
        let Some(script) = self.script(script, max)? else { return Ok(Unordered::default()) };
        Ok(Unordered(self.entries(script).map(|entry| self.summary(entry)).collect()))
    }

    /// Change of a script's balance once all transactions are confirmed, in satoshi.
    pub fn balance_delta(&self, script: &ScriptHash) -> i64 {
        let script = self.by_script.get(script).and_then(|&number| self.scripts.get(number));
        script.map_or(0, |script| script.delta(self.epoch))
    }

    /// The transactions themselves, for [`ScriptMempool::new`] after releasing the lock.
    pub fn touching(
        &self,
        script: &ScriptHash,
        max: usize,
    ) -> Result<Vec<(Txid, Arc<Transaction>)>, TooMany> {
        let Some(script) = self.script(script, max)? else { return Ok(Vec::new()) };
        Ok(self.entries(script).map(|entry| (entry.txid, Arc::clone(&entry.tx))).collect())
    }

    /// Transaction `txid` in the form of the protocol.
    pub fn unconfirmed(&self, txid: &Txid) -> Option<Unconfirmed> {
        self.entry(txid).map(|entry| self.summary(entry))
    }

    pub fn spender(&self, outpoint: &OutPoint) -> Option<Unconfirmed> {
        let spend = self.spends.get(outpoint)?;
        [spend.newest, spend.other]
            .iter()
            .filter_map(|&number| self.txs.get(number))
            .find(|entry| entry.visible(self.epoch))
            .map(|entry| self.summary(entry))
    }

    /// Up to `count` latest arrivals, newest first.
    pub fn recent(&self, count: usize) -> Vec<RecentTx> {
        let newest = self.recent.iter().rev().filter_map(|txid| self.entry(txid));
        newest
            .take(count)
            .map(|entry| RecentTx { txid: entry.txid, fee_sat: entry.fee_sat, vsize: entry.vsize })
            .collect()
    }

    fn entry(&self, txid: &Txid) -> Option<&Entry> {
        let number = self.by_txid.get(txid)?;
        self.txs.get(*number).filter(|entry| entry.visible(self.epoch))
    }

    fn script(&self, script: &ScriptHash, max: usize) -> Result<Option<&Script>, TooMany> {
        let script = self.by_script.get(script).and_then(|&number| self.scripts.get(number));
        match script {
            Some(script) if script.txs.len() > max => Err(TooMany { max }),
            found => Ok(found),
        }
    }

    fn entries<'a>(&'a self, script: &'a Script) -> impl Iterator<Item = &'a Entry> {
        let members = script.txs.iter().filter_map(|member| self.txs.get(member.tx));
        members.filter(|entry| entry.visible(self.epoch))
    }

    fn summary(&self, entry: &Entry) -> Unconfirmed {
        let mut previous = None;
        let unconfirmed_parents = entry.tx.view().inputs().any(|input| {
            // Inputs from the same parent are mostly adjacent.
            let parent = Some(input.prevout.txid);
            std::mem::replace(&mut previous, parent) != parent
                && self.entry(&input.prevout.txid).is_some()
        });
        Unconfirmed { txid: entry.txid, fee_sat: entry.fee_sat, unconfirmed_parents }
    }
}
