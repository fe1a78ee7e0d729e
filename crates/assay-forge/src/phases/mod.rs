//! The phases: each plans the transactions of its blocks; signing and writing are common.

pub(crate) mod fan_out;
pub(crate) mod placement;
pub(crate) mod steady_1;
pub(crate) mod steady_2;
pub(crate) mod steady_3;

use crate::{
    coins::{CoinRef, Coins},
    kind::Bound,
    network::DUST,
    plan::Plan,
    random::Stream,
    shape::Shape,
};

/// Read-only context of planning.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) coins: &'a Coins,
}

/// Plans the transactions of one block up to its capacity.
pub(crate) trait Source {
    /// Appends one transaction to `plan`; false if nothing is left to spend.
    fn next(&mut self, view: View<'_>, plan: &mut Plan) -> bool;
}

/// Adds a transaction that spends `inputs` and pays the amount less the fee in equal shares, the remainder to the first. False,
/// with `plan` unchanged, if a share would be less than `least`.
pub(crate) fn pay_evenly(
    view: View<'_>,
    plan: &mut Plan,
    kinds: &mut Stream,
    inputs: &[CoinRef],
    shares: u32,
    least: u64,
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
    if share < least.max(DUST) {
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

/// Transactions of some blocks in block order, of a part of each: first and last position as fractions of the transaction count.
pub(crate) struct Walk {
    parts: Vec<Part>,
    next: usize,
    evenly: bool,
}

struct Part {
    height: u32,
    position: u32,
    end: u32,
}

impl Walk {
    /// Part `part` of `parts` equal parts of each of `heights`; either round robin over the blocks (`evenly`), or block by block.
    pub(crate) fn new(
        coins: &Coins,
        heights: std::ops::Range<u32>,
        part: u32,
        parts: u32,
        evenly: bool,
    ) -> Self {
        let parts = heights
            .map(|height| {
                let block = coins.block(height);
                // The published ranges refer to the whole block; a leading split is in none.
                let split = block.order[1..].iter().take_while(|tx| **tx < block.first_ordinary);
                let base = split.count() as u64;
                let count = u64::from(block.tx_count()) - base;
                let at = |part: u32| {
                    let at = (1 + u64::from(part) * count / u64::from(parts)).min(count);
                    (base + at) as u32
                };
                Part { height, position: at(part), end: at(part + 1) }
            })
            .collect();
        Self { parts, next: 0, evenly }
    }

    /// Height and index of the next ordinary transaction.
    pub(crate) fn next(&mut self, coins: &Coins) -> Option<(u32, u32)> {
        let mut exhausted = 0;
        while exhausted < self.parts.len() {
            let part = &mut self.parts[self.next];
            let block = coins.block(part.height);
            let mut found = None;
            while part.position < part.end && found.is_none() {
                let tx = block.order[part.position as usize];
                part.position += 1;
                found = (tx >= block.first_ordinary).then_some((part.height, tx));
            }
            if self.evenly || found.is_none() {
                self.next = (self.next + 1) % self.parts.len();
            }
            if found.is_some() {
                return found;
            }
            exhausted += 1;
        }
        None
    }
}
