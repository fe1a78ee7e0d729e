//! An unsigned block: inputs and outputs of each transaction.

use std::ops::Range;

use crate::{
    coins::{CoinRef, Coins},
    keys::KeyId,
    kind::{Bound, Kind},
    outputs::Outputs,
};

/// Transactions in generation order, the coinbase first; inputs of type `I`.
pub(crate) struct Plan<I = CoinRef> {
    pub(crate) outputs: Outputs,
    /// The first transaction that is neither coinbase nor split.
    pub(crate) first_ordinary: u32,
    first_input: Vec<u32>,
    /// Inputs of all transactions, concatenated.
    pub(crate) inputs: Vec<I>,
}

impl<I> Plan<I> {
    /// A plan with a coinbase that pays `subsidy`. Flagged outputs will pay the key of `funding`.
    pub(crate) fn new(height: u32, subsidy: u64, kind: Kind, funding: KeyId) -> Self {
        let mut plan = Self {
            outputs: Outputs::new(height, funding),
            first_ordinary: 1,
            first_input: vec![0],
            inputs: Vec::new(),
        };
        plan.outputs.push(subsidy, kind);
        plan.end_tx();
        plan
    }

    pub(crate) fn input(&mut self, coin: I) {
        self.inputs.push(coin);
    }

    /// Ends the current transaction and returns its index.
    pub(crate) fn end_tx(&mut self) -> u32 {
        self.first_input.push(self.inputs.len() as u32);
        self.outputs.end_tx();
        self.len() - 1
    }

    /// Number of transactions, with the coinbase.
    pub(crate) fn len(&self) -> u32 {
        self.first_input.len() as u32 - 1
    }

    /// Indices of the inputs of a transaction among all.
    pub(crate) fn input_range(&self, tx: u32) -> Range<usize> {
        let tx = tx as usize;
        self.first_input[tx] as usize..self.first_input[tx + 1] as usize
    }

    pub(crate) fn inputs_of(&self, tx: u32) -> &[I] {
        &self.inputs[self.input_range(tx)]
    }
}

impl Plan {
    pub(crate) fn drop_last(&mut self) {
        self.first_input.pop();
        let inputs = *self.first_input.last().expect("the coinbase stays") as usize;
        self.inputs.truncate(inputs);
        self.outputs.drop_last();
    }

    /// Size bound of a transaction whose inputs are all from earlier blocks.
    pub(crate) fn bound(&self, coins: &Coins, tx: u32) -> Bound {
        let mut bound = Bound::default();
        for coin in self.inputs_of(tx) {
            bound.input(coins.block(coin.height).outputs.kind(coin.tx, coin.vout));
        }
        self.outputs.bound(tx, &mut bound);
        bound
    }
}
