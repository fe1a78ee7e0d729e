//! Placement: the same transactions as in steady 1, the same number in each block, but blocks differ in the outputs that they
//! spend: old or recent, clustered or scattered.
//!
//! Fan-out transactions are sorted by id, as in coin databases (Core `txdb.cpp`, the key of a coin). Clustered blocks spend all
//! outputs of consecutive transactions in the first half; scattered blocks spend a seeded shuffle of all outputs of the second
//! half. So no block spends another one's outputs. A round has one block of each kind, in reverse order in every other round, so
//! that trends along the chain affect all kinds equally.

use super::{View, pay_halves};
use crate::{
    coins::CoinRef,
    kind::Bound,
    ledger::{Age, Phase, SpendOrder},
    network::BLOCK_OVERHEAD_WEIGHT,
    plan::Plan,
    random::Stream,
};

/// Available outputs, by age.
pub(crate) struct Pools {
    by_age: [Pool; 2],
    /// Transactions per block.
    txs: u32,
}

struct Pool {
    /// Transactions whose outputs are spent together.
    clustered: std::vec::IntoIter<(u32, u32)>,
    scattered: std::vec::IntoIter<CoinRef>,
}

pub(crate) struct Placed<'a> {
    pool: &'a mut Pool,
    order: SpendOrder,
    left: u32,
}

impl Pools {
    pub(crate) fn new(view: View<'_>) -> Self {
        let by_age = Age::ALL.map(|age| Pool::new(view, age));
        let rounds = view.shape.blocks(Phase::Placement) / KINDS.len() as u32;
        let outputs = view.shape.recipe.fan_out.outputs;
        let enough = |pool: &Pool| {
            pool.clustered.len().min(pool.scattered.len() / outputs as usize) as u32 / rounds
        };
        let fits =
            ((view.shape.weight_max - BLOCK_OVERHEAD_WEIGHT) / weight_max(view, &by_age)) as u32;
        let txs = by_age.iter().map(enough).fold(fits, u32::min);
        Self { by_age, txs }
    }

    pub(crate) fn block(&mut self, block: u32) -> (Phase, Placed<'_>) {
        let (round, at) = (block as usize / KINDS.len(), block as usize % KINDS.len());
        let at = if round % 2 == 0 { at } else { KINDS.len() - 1 - at };
        let (age, order) = KINDS[at];
        let pool = &mut self.by_age[usize::from(age == Age::Recent)];
        (Phase::Placed { age, order }, Placed { pool, order, left: self.txs })
    }
}

impl Pool {
    fn new(view: View<'_>, age: Age) -> Self {
        let shape = view.shape;
        let (first, blocks) = (shape.first_height(Phase::FanOut), shape.blocks(Phase::FanOut));
        let middle = first + blocks / 2;
        let heights = match age {
            Age::Old => first..middle,
            Age::Recent => middle..first + blocks,
        };
        let mut txs: Vec<(u32, u32)> = heights
            .clone()
            .flat_map(|height| {
                let block = view.coins.block(height);
                (block.first_ordinary..block.tx_count()).map(move |tx| (height, tx))
            })
            .collect();
        txs.sort_unstable_by_key(|(height, tx)| &view.coins.block(*height).txids[*tx as usize]);
        let scattered = txs.split_off(txs.len() / 2).into_iter();
        let outputs = view.shape.recipe.fan_out.outputs;
        let mut scattered: Vec<CoinRef> = scattered
            .flat_map(|(height, tx)| (0..outputs).map(move |vout| CoinRef { height, tx, vout }))
            .collect();
        Stream::plain(view.shape.params.seed, SHUFFLE, heights.start).shuffle(&mut scattered);
        Self { clustered: txs.into_iter(), scattered: scattered.into_iter() }
    }

    /// Inputs of the next transaction; empty if too little is left.
    fn inputs(&mut self, view: View<'_>, order: SpendOrder) -> Vec<CoinRef> {
        let outputs = view.shape.recipe.fan_out.outputs;
        match order {
            SpendOrder::Clustered => {
                let tx = self.clustered.next().into_iter();
                tx.flat_map(|(height, tx)| {
                    (0..outputs).map(move |vout| CoinRef { height, tx, vout })
                })
                .collect()
            }
            SpendOrder::Scattered => self.scattered.by_ref().take(outputs as usize).collect(),
        }
    }
}

impl Placed<'_> {
    pub(crate) fn next(&mut self, view: View<'_>, plan: &mut Plan, kinds: &mut Stream) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        pay_halves(view, plan, kinds, self.pool.inputs(view, self.order));
        true
    }
}

/// The largest weight of a transaction with inputs and outputs of the kinds in these pools.
fn weight_max(view: View<'_>, pools: &[Pool; 2]) -> u64 {
    let coins = pools.iter().flat_map(|pool| pool.scattered.as_slice());
    let kinds = coins.map(|coin| view.coins.block(coin.height).outputs.kind(coin.tx, coin.vout));
    let weight = |kind| {
        let mut bound = Bound::default();
        (0..view.shape.recipe.fan_out.outputs).for_each(|_| bound.input(kind));
        (0..2).for_each(|_| bound.output(kind));
        bound.weight()
    };
    kinds.map(weight).max().unwrap_or(1)
}

/// The blocks of a round.
const KINDS: [(Age, SpendOrder); 4] = [
    (Age::Old, SpendOrder::Clustered),
    (Age::Old, SpendOrder::Scattered),
    (Age::Recent, SpendOrder::Scattered),
    (Age::Recent, SpendOrder::Clustered),
];
/// Stream number in place of a height; no block has it.
const SHUFFLE: u32 = u32::MAX;
