//! The phases: each plans the transactions of its blocks; signing and writing are common.

pub(crate) mod fan_out;
pub(crate) mod placement;
pub(crate) mod steady;

use crate::{
    coins::{CoinRef, Coins},
    kind::Bound,
    network::DUST,
    plan::Plan,
    random::Stream,
    shape::Shape,
};

#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) coins: &'a Coins,
}

/// Adds a transaction that spends `inputs` and pays the amount less the fee in equal shares, the remainder to the first. False,
/// with `plan` unchanged, if a share would be dust.
pub(crate) fn pay_evenly(
    view: View<'_>,
    plan: &mut Plan,
    kinds: &mut Stream,
    inputs: &[CoinRef],
    shares: u32,
) -> bool {
    let mut bound = Bound::default();
    let mut total = 0;
    for coin in inputs {
        let block = view.coins.block(coin.height);
        bound.input(block.outputs.kind(coin.tx, coin.vout));
        total += block.outputs.amount(coin.tx, coin.vout);
    }
    let paid: Vec<_> = (0..shares).map(|_| kinds.kind()).collect();
    bound.outputs(&paid);
    let Some(left) = total.checked_sub(view.shape.fee(&bound)) else {
        return false;
    };
    let share = left / u64::from(shares);
    if share < DUST {
        return false;
    }
    for coin in inputs {
        plan.input(*coin);
    }
    let remainder = left - share * u64::from(shares);
    for (i, kind) in paid.into_iter().enumerate() {
        plan.outputs.push(if i == 0 { share + remainder } else { share }, kind);
    }
    plan.end_tx();
    true
}

/// Adds a transaction that spends `inputs` and pays half to its first output, and the other half less the fee to its second.
pub(crate) fn pay_halves(
    view: View<'_>,
    plan: &mut Plan,
    kinds: &mut Stream,
    inputs: impl IntoIterator<Item = CoinRef>,
) {
    let mut bound = Bound::default();
    let mut total = 0;
    for coin in inputs {
        let outputs = &view.coins.block(coin.height).outputs;
        plan.input(coin);
        bound.input(outputs.kind(coin.tx, coin.vout));
        total += outputs.amount(coin.tx, coin.vout);
    }
    let kinds = [kinds.kind(), kinds.kind()];
    bound.outputs(&kinds);
    let half = total / 2;
    plan.outputs.push(half, kinds[0]);
    // The recipe check guarantees more than dust here.
    plan.outputs.push(total - half - view.shape.fee(&bound), kinds[1]);
    plan.end_tx();
}
