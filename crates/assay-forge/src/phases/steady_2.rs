//! Steady 2: one input, two outputs.
//!
//! According to the report these blocks spend outputs of the fan-in, fan-out and earlier steady blocks. The published generator's
//! loop over the second half of the fan-out blocks never runs, so its blocks spend one output per transaction of the two previous
//! blocks and have some 2,000 transactions. `Intended` fills the block as in the report, `Faithful` copies the program.

use super::{Source, View, Walk, pay_evenly};
use crate::{
    coins::{BlockCoins, CoinRef},
    ledger::Phase,
    network::DUST,
    options::Variant,
    plan::Plan,
    random::{BLOCK_STREAM, Stream},
};

pub(crate) struct Steady2 {
    /// Outputs of recent blocks.
    recent: std::vec::IntoIter<CoinRef>,
    /// Fan-out transactions of this block's part of the second halves; `None` for the faithful variant.
    walk: Option<Walk>,
    /// The current fan-out transaction and its next output.
    at: Option<(u32, u32, u32)>,
    turn: bool,
    kinds: Stream,
}

impl Steady2 {
    pub(crate) fn new(view: View<'_>, block: u32) -> Self {
        let (shape, coins) = (view.shape, view.coins);
        let height = coins.next_height();
        let fan_out = shape.first_height(Phase::FanOut);
        let first = shape.first_height(Phase::FanIn);
        let (recent, walk) = match shape.variant {
            Variant::Faithful => {
                let source = coins.block(height - shape.fan_in.max(1));
                let firsts = (source.first_ordinary..source.tx_count()).map(|tx| CoinRef {
                    height: source.outputs.height,
                    tx,
                    vout: 0,
                });
                (firsts.collect(), None)
            }
            Variant::Intended => {
                let mut recent: Vec<_> = (first..height)
                    .flat_map(|height| {
                        let block = coins.block(height);
                        unspent(block)
                            .filter(|coin| block.outputs.amount(coin.tx, coin.vout) >= 2 * DUST)
                    })
                    .collect();
                if block == 0 {
                    recent.extend((fan_out..fan_out + shape.fan_out).flat_map(|height| {
                        let block = coins.block(height);
                        unspent(block).filter(|coin| is_change(view, block, coin))
                    }));
                }
                let parts = shape.steady_2;
                let heights = fan_out..fan_out + shape.fan_out;
                (recent, Some(Walk::new(coins, heights, parts + block, 2 * parts, true)))
            }
        };
        let kinds = shape.stream(height, BLOCK_STREAM);
        Self { recent: recent.into_iter(), walk, at: None, turn: false, kinds }
    }

    /// The next output of the fan-out transactions.
    fn old(&mut self, view: View<'_>) -> Option<CoinRef> {
        let walk = self.walk.as_mut()?;
        let outputs = view.shape.recipe.fan_out.outputs;
        let (height, tx, vout) = match self.at.take() {
            Some(at) => at,
            None => walk.next(view.coins).map(|(height, tx)| (height, tx, 0))?,
        };
        if vout + 1 < outputs {
            self.at = Some((height, tx, vout + 1));
        }
        Some(CoinRef { height, tx, vout })
    }
}

/// All unspent outputs of ordinary transactions that pay keys of their own.
fn unspent(block: &BlockCoins) -> impl Iterator<Item = CoinRef> + '_ {
    (block.first_ordinary..block.tx_count())
        .flat_map(|tx| (0..block.outputs.count(tx)).map(move |vout| (tx, vout)))
        .filter(|(tx, vout)| !block.is_spent(*tx, *vout) && !block.outputs.is_funding(*tx, *vout))
        .map(|(tx, vout)| CoinRef { height: block.outputs.height, tx, vout })
}

/// True for the last change of a fan-out chain.
fn is_change(view: View<'_>, block: &BlockCoins, coin: &CoinRef) -> bool {
    coin.vout == view.shape.recipe.fan_out.outputs && block.outputs.count(coin.tx) == coin.vout + 1
}

impl Source for Steady2 {
    fn next(&mut self, view: View<'_>, plan: &mut Plan) -> bool {
        loop {
            // Recent and old outputs alternate while both are available.
            self.turn = !self.turn;
            let coin = if self.turn {
                self.recent.next().or_else(|| self.old(view))
            } else {
                self.old(view).or_else(|| self.recent.next())
            };
            let Some(coin) = coin else { return false };
            let amount = view.coins.block(coin.height).outputs.amount(coin.tx, coin.vout);
            // Most fan-out outputs are too small to split: skip them early.
            if amount >= 2 * DUST && pay_evenly(view, plan, &mut self.kinds, &[coin], 2, 0) {
                return true;
            }
        }
    }
}
