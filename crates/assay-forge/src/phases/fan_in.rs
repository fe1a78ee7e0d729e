//! Fan-in: each block spends a whole steady-1 block, many outputs into one.

use super::{Source, View, pay_evenly};
use crate::{
    coins::CoinRef,
    ledger::Phase,
    plan::Plan,
    random::{BLOCK_STREAM, Stream},
};

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
