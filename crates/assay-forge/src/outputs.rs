//! Outputs of one block's transactions in flat tables, for planned and finished blocks.

use crate::{
    keys::KeyId,
    kind::{Bound, FUNDING, Kind},
    sign::{Pay, Spend},
};

/// Outputs of one block: transactions in generation order, the coinbase first.
pub(crate) struct Outputs {
    pub(crate) height: u32,
    /// Key of the coinbase that funds the block, for outputs flagged [`FUNDING`].
    funding: KeyId,
    /// Start of each transaction's outputs, plus the end of the last one's.
    first: Vec<u32>,
    amounts: Vec<u64>,
    kinds: Vec<u8>,
}

impl Outputs {
    /// Without transactions. Flagged outputs will pay the key of `funding`.
    pub(crate) fn new(height: u32, funding: KeyId) -> Self {
        Self { height, funding, first: vec![0], amounts: Vec::new(), kinds: Vec::new() }
    }

    /// Adds an output to the current transaction.
    pub(crate) fn push(&mut self, amount: u64, kind: Kind) {
        self.amounts.push(amount);
        self.kinds.push(kind as u8);
    }

    /// Adds an output that pays the key of the funding coinbase.
    pub(crate) fn push_funding(&mut self, amount: u64, kind: Kind) {
        self.amounts.push(amount);
        self.kinds.push(kind as u8 | FUNDING);
    }

    pub(crate) fn set_amount(&mut self, tx: u32, vout: u32, amount: u64) {
        let at = self.at(tx, vout);
        self.amounts[at] = amount;
    }

    pub(crate) fn end_tx(&mut self) {
        self.first.push(self.amounts.len() as u32);
    }

    pub(crate) fn drop_last(&mut self) {
        self.first.pop();
        let outputs = *self.first.last().expect("the coinbase stays") as usize;
        self.amounts.truncate(outputs);
        self.kinds.truncate(outputs);
    }

    /// Number of outputs of all transactions.
    pub(crate) fn len(&self) -> usize {
        self.amounts.len()
    }

    pub(crate) fn count(&self, tx: u32) -> u32 {
        self.first[tx as usize + 1] - self.first[tx as usize]
    }

    pub(crate) fn at(&self, tx: u32, vout: u32) -> usize {
        debug_assert!(vout < self.count(tx));
        (self.first[tx as usize] + vout) as usize
    }

    pub(crate) fn amount(&self, tx: u32, vout: u32) -> u64 {
        self.amounts[self.at(tx, vout)]
    }

    pub(crate) fn kind(&self, tx: u32, vout: u32) -> Kind {
        Kind::from_stored(self.kinds[self.at(tx, vout)])
    }

    /// True if the output pays the key of the coinbase that funded the block.
    pub(crate) fn is_funding(&self, tx: u32, vout: u32) -> bool {
        self.kinds[self.at(tx, vout)] & FUNDING != 0
    }

    pub(crate) fn key(&self, distinct: bool, tx: u32, vout: u32) -> KeyId {
        let amount = self.amount(tx, vout);
        if distinct {
            KeyId { height: self.height, amount, index: tx, vout }
        } else if self.is_funding(tx, vout) {
            self.funding
        } else {
            KeyId::published(self.height, amount)
        }
    }

    /// Output `vout` of transaction `tx`, as [`Pay`].
    pub(crate) fn pay(&self, distinct: bool, tx: u32, vout: u32) -> Pay {
        Pay {
            amount: self.amount(tx, vout),
            kind: self.kind(tx, vout),
            key: self.key(distinct, tx, vout),
        }
    }

    pub(crate) fn pays(&self, distinct: bool, tx: u32, pays: &mut Vec<Pay>) {
        pays.clear();
        pays.extend((0..self.count(tx)).map(|vout| self.pay(distinct, tx, vout)));
    }

    /// All data for an input that spends output `vout` of transaction `tx`.
    pub(crate) fn spend(&self, distinct: bool, txid: [u8; 32], tx: u32, vout: u32) -> Spend {
        let Pay { amount, kind, key } = self.pay(distinct, tx, vout);
        Spend { txid, vout, amount, kind, key }
    }

    pub(crate) fn bound(&self, tx: u32, bound: &mut Bound) {
        (0..self.count(tx)).for_each(|vout| bound.output(self.kind(tx, vout)));
    }
}
