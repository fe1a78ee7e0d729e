//! What can be asked of the mempool.

use std::collections::HashSet;
use std::sync::Arc;

use assay_wire::{OutPoint, Transaction, Txid};

use super::fees::FeeHistogram;
use super::pool::{Entry, Mempool, Script};
use crate::index::ScriptHash;

/// An unconfirmed transaction of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unconfirmed {
    /// The transaction.
    pub txid: Txid,
    /// Its fee in satoshi.
    pub fee_sat: i64,
    /// Whether it spends an output that is unconfirmed itself: height -1 in the protocol, otherwise 0.
    pub unconfirmed_parents: bool,
}

impl Unconfirmed {
    /// The height that the protocol gives it.
    pub fn height(&self) -> i32 {
        -i32::from(self.unconfirmed_parents)
    }
}

/// An unconfirmed output that nothing spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Created {
    /// The output.
    pub outpoint: OutPoint,
    /// Satoshi.
    pub value: i64,
}

/// What unconfirmed transactions do to the outputs of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptMempool {
    /// Outputs that they make and nothing spends.
    pub created: Vec<Created>,
    /// Everything that they spend, of this script or of others: enough to say which confirmed outputs of this one are gone.
    pub spent: HashSet<OutPoint>,
}

/// A script has more unconfirmed transactions than an answer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("history too large: more than {max} unconfirmed transactions")]
pub struct TooMany {
    /// The limit.
    pub max: usize,
}

/// A transaction that came lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentTx {
    /// The transaction.
    pub txid: Txid,
    /// Its fee in satoshi.
    pub fee_sat: i64,
    /// Its virtual size.
    pub vsize: u32,
}

/// Unconfirmed transactions of a script in no particular order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unordered(Vec<Unconfirmed>);

impl Unordered {
    /// In the order of protocol 1.6: those with confirmed inputs only first, then by txid as it is printed.
    pub fn sorted(mut self) -> Vec<Unconfirmed> {
        self.0.sort_unstable_by(|left, right| {
            let order = left.unconfirmed_parents.cmp(&right.unconfirmed_parents);
            order.then_with(|| left.txid.0.iter().rev().cmp(right.txid.0.iter().rev()))
        });
        self.0
    }
}

impl ScriptMempool {
    /// What `txs`, which are all that touch the script, do to its outputs.
    pub fn new(hash: &ScriptHash, txs: &[(Txid, Arc<Transaction>)]) -> Self {
        let mut outputs = Self::default();
        for (_, tx) in txs {
            outputs.spent.extend(tx.view().inputs().map(|input| input.prevout));
        }
        for (txid, tx) in txs {
            for (vout, output) in tx.view().outputs().enumerate() {
                let outpoint = OutPoint { txid: *txid, vout: vout as u32 };
                // Whatever spends an output of the script touches it, and so is among `txs`.
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
    /// Number of transactions, counting for a moment those that leave.
    pub fn len(&self) -> usize {
        self.by_txid.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_txid.is_empty()
    }

    /// Whether a transaction is there.
    pub fn contains(&self, txid: &Txid) -> bool {
        self.entry(txid).is_some()
    }

    /// Sizes by fee rate.
    pub fn fees(&self) -> &FeeHistogram {
        &self.fees
    }

    /// A transaction.
    pub fn transaction(&self, txid: &Txid) -> Option<Arc<Transaction>> {
        self.entry(txid).map(|entry| Arc::clone(&entry.tx))
    }

    /// Transactions that touch a script, at most `max`. To be put in order when the lock around the mempool has been given back.
    ///
    /// # Errors
    /// When there are more.
    pub fn history(&self, script: &ScriptHash, max: usize) -> Result<Unordered, TooMany> {
        let Some(script) = self.script(script, max)? else { return Ok(Unordered::default()) };
        Ok(Unordered(self.entries(script).map(|entry| self.summary(entry)).collect()))
    }

    /// What a script's balance changes by when all is confirmed.
    pub fn balance_delta(&self, script: &ScriptHash) -> i64 {
        let script = self.by_script.get(script).and_then(|&number| self.scripts.get(number));
        script.map_or(0, |script| script.delta(self.epoch))
    }

    /// The transactions themselves, for [`ScriptMempool::new`], when the lock has been given back.
    ///
    /// # Errors
    /// When more than `max` touch the script.
    pub fn touching(
        &self,
        script: &ScriptHash,
        max: usize,
    ) -> Result<Vec<(Txid, Arc<Transaction>)>, TooMany> {
        let Some(script) = self.script(script, max)? else { return Ok(Vec::new()) };
        Ok(self.entries(script).map(|entry| (entry.txid, Arc::clone(&entry.tx))).collect())
    }

    /// The transaction `txid`, as the protocol lists it.
    pub fn unconfirmed(&self, txid: &Txid) -> Option<Unconfirmed> {
        self.entry(txid).map(|entry| self.summary(entry))
    }

    /// The transaction that spends an output.
    pub fn spender(&self, outpoint: &OutPoint) -> Option<Unconfirmed> {
        let spend = self.spends.get(outpoint)?;
        [spend.newest, spend.other]
            .iter()
            .filter_map(|&number| self.txs.get(number))
            .find(|entry| entry.visible(self.epoch))
            .map(|entry| self.summary(entry))
    }

    /// Up to `count` of the latest arrivals, the newest first.
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
            // Inputs from the same parent mostly stand together.
            let parent = Some(input.prevout.txid);
            std::mem::replace(&mut previous, parent) != parent
                && self.entry(&input.prevout.txid).is_some()
        });
        Unconfirmed { txid: entry.txid, fee_sat: entry.fee_sat, unconfirmed_parents }
    }
}
