//! Steady 1: each transaction spends all derivable outputs of one fan-out transaction and pays two.
//!
//! Block k uses the k-th part of the first half of every fan-out block. The intended chain alternates between the blocks; the
//! published generator uses the first block's transactions first, and the block is full before it reaches the later ones.

use super::{Source, View, Walk, pay_halves};
use crate::{
    coins::CoinRef,
    ledger::Phase,
    options::Variant,
    plan::Plan,
    random::{BLOCK_STREAM, Stream},
};

pub(crate) struct Steady1 {
    walk: Walk,
    kinds: Stream,
}

impl Steady1 {
    pub(crate) fn new(view: View<'_>, block: u32) -> Self {
        let shape = view.shape;
        let first = shape.first_height(Phase::FanOut);
        let heights = first..first + shape.fan_out;
        let evenly = shape.variant == Variant::Intended;
        let walk = Walk::new(view.coins, heights, block, 2 * shape.steady_1, evenly);
        Self { walk, kinds: shape.stream(view.coins.next_height(), BLOCK_STREAM) }
    }
}

impl Source for Steady1 {
    fn next(&mut self, view: View<'_>, plan: &mut Plan) -> bool {
        let Some((height, tx)) = self.walk.next(view.coins) else { return false };
        let vouts = 0..view.shape.recipe.fan_out.outputs;
        let inputs = vouts.map(|vout| CoinRef { height, tx, vout });
        pay_halves(view, plan, &mut self.kinds, inputs);
        true
    }
}
