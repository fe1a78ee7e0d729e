//! A block before it is signed: which outputs each transaction spends and what it pays, in flat tables.

use crate::{
    coins::{CoinRef, Coins, key_id},
    keys::KeyId,
    kind::{Bound, FUNDING, Kind},
    writer::Pay,
};

/// Transactions in generation order, the coinbase first.
pub(crate) struct Plan {
    pub(crate) height: u32,
    /// Key of the coinbase that funds this block, for outputs flagged [`FUNDING`].
    pub(crate) funding: KeyId,
    pub(crate) first_ordinary: u32,
    pub(crate) first_output: Vec<u32>,
    pub(crate) amounts: Vec<u64>,
    pub(crate) kinds: Vec<u8>,
    first_input: Vec<u32>,
    inputs: Vec<CoinRef>,
}

impl Plan {
    /// A plan with a coinbase of `subsidy` to P2PKH. Flagged outputs will pay the key of `funding`.
    pub(crate) fn new(height: u32, subsidy: u64, funding: KeyId) -> Self {
        let mut plan = Self {
            height,
            funding,
            first_ordinary: 1,
            first_output: vec![0],
            amounts: Vec::new(),
            kinds: Vec::new(),
            first_input: vec![0],
            inputs: Vec::new(),
        };
        plan.output(subsidy, Kind::P2pkh);
        plan.end_tx();
        plan
    }

    /// Adds an input to the transaction being planned.
    pub(crate) fn input(&mut self, coin: CoinRef) {
        self.inputs.push(coin);
    }

    /// Adds an output to the transaction being planned.
    pub(crate) fn output(&mut self, amount: u64, kind: Kind) {
        self.amounts.push(amount);
        self.kinds.push(kind as u8);
    }

    /// Adds an output that pays the key of the funding coinbase.
    pub(crate) fn funding_output(&mut self, amount: u64, kind: Kind) {
        self.amounts.push(amount);
        self.kinds.push(kind as u8 | FUNDING);
    }

    /// Ends the transaction being planned and returns its index.
    pub(crate) fn end_tx(&mut self) -> u32 {
        self.first_input.push(self.inputs.len() as u32);
        self.first_output.push(self.amounts.len() as u32);
        self.len() - 1
    }

    /// Takes the last transaction out again.
    pub(crate) fn take_last(&mut self) -> Held {
        self.first_input.pop();
        self.first_output.pop();
        let input = *self.first_input.last().expect("the coinbase stays") as usize;
        let output = *self.first_output.last().expect("the coinbase stays") as usize;
        Held {
            inputs: self.inputs.split_off(input),
            amounts: self.amounts.split_off(output),
            kinds: self.kinds.split_off(output),
        }
    }

    /// Puts a transaction back that [`take_last`](Self::take_last) took.
    pub(crate) fn put_back(&mut self, held: Held) {
        self.inputs.extend(held.inputs);
        self.amounts.extend(held.amounts);
        self.kinds.extend(held.kinds);
        self.end_tx();
    }

    /// Transactions, with the coinbase.
    pub(crate) fn len(&self) -> u32 {
        self.first_input.len() as u32 - 1
    }

    pub(crate) fn inputs(&self, tx: u32) -> &[CoinRef] {
        let tx = tx as usize;
        &self.inputs[self.first_input[tx] as usize..self.first_input[tx + 1] as usize]
    }

    /// The inputs of all transactions, taken out of the plan.
    pub(crate) fn take_inputs(&mut self) -> Vec<CoinRef> {
        std::mem::take(&mut self.inputs)
    }

    pub(crate) fn all_inputs(&self) -> &[CoinRef] {
        &self.inputs
    }

    /// What output `vout` of transaction `tx` pays.
    pub(crate) fn pay(&self, distinct: bool, tx: u32, vout: u32) -> Pay {
        let at = (self.first_output[tx as usize] + vout) as usize;
        let (amount, stored) = (self.amounts[at], self.kinds[at]);
        let key = key_id(distinct, self.height, self.funding, stored, amount, tx, vout);
        Pay { amount, kind: Kind::from_stored(stored), key }
    }

    /// Replaces `pays` by the outputs of transaction `tx`.
    pub(crate) fn pays(&self, distinct: bool, tx: u32, pays: &mut Vec<Pay>) {
        let count = self.first_output[tx as usize + 1] - self.first_output[tx as usize];
        pays.clear();
        pays.extend((0..count).map(|vout| self.pay(distinct, tx, vout)));
    }

    /// Size bound of a transaction whose inputs are all of earlier blocks.
    pub(crate) fn bound(&self, coins: &Coins, tx: u32) -> Bound {
        let mut bound = Bound::default();
        for coin in self.inputs(tx) {
            bound.input(coins.block(coin.height).kind(coin.tx, coin.vout));
        }
        self.bound_outputs(tx, &mut bound);
        bound
    }

    /// Adds the outputs of `tx` to `bound`.
    pub(crate) fn bound_outputs(&self, tx: u32, bound: &mut Bound) {
        let tx = tx as usize;
        for at in self.first_output[tx]..self.first_output[tx + 1] {
            bound.output(Kind::from_stored(self.kinds[at as usize]));
        }
    }
}

/// A planned transaction that did not fit yet.
pub(crate) struct Held {
    inputs: Vec<CoinRef>,
    amounts: Vec<u64>,
    kinds: Vec<u8>,
}
