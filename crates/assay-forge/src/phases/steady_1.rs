//! Steady 1: each transaction spends all derivable outputs of one fan-out transaction and pays two. Fan-in: each block spends
//! a whole steady-1 block, many outputs into one.
//!
//! Block k of steady 1 uses the k-th part of the first half of every fan-out block. The intended chain alternates between the blocks; the
//! published generator uses the first block's transactions first, and the block is full before it reaches the later ones.

use super::{Source, View, Walk, pay_evenly, pay_halves};
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

pub(crate) struct FanIn {
    coins: std::vec::IntoIter<CoinRef>,
    kinds: Stream,
}

impl FanIn {
    pub(crate) fn new(view: View<'_>, block: u32) -> Self {
        let source = view.coins.block(view.shape.first_height(Phase::Steady1) + block);
        let ordinary = source.order.iter().filter(|tx| **tx >= source.first_ordinary);
        let coins: Vec<_> = ordinary
            .flat_map(|tx| (0..source.outputs.count(*tx)).map(move |vout| (*tx, vout)))
            .map(|(tx, vout)| CoinRef { height: source.outputs.height, tx, vout })
            .collect();
        let kinds = view.shape.stream(view.coins.next_height(), BLOCK_STREAM);
        Self { coins: coins.into_iter(), kinds }
    }
}

impl Source for FanIn {
    fn next(&mut self, view: View<'_>, plan: &mut Plan) -> bool {
        let inputs: Vec<_> =
            self.coins.by_ref().take(view.shape.recipe.fan_in.inputs as usize).collect();
        !inputs.is_empty() && pay_evenly(view, plan, &mut self.kinds, &inputs, 1, 0)
    }
}
