//! The steady phases and fan-in.
//!
//! Steady 1: each transaction spends all derivable outputs of one fan-out transaction and pays two. Fan-in: each block spends
//! a whole steady-1 block, many outputs into one.
//!
//! Block k of steady 1 uses the k-th part of the first half of every fan-out block. The intended chain alternates between the blocks; the
//! published generator uses the first block's transactions first, and the block is full before it reaches the later ones.
//!
//! Steady 2: one input, two outputs.
//!
//! According to the report these blocks spend outputs of the fan-in, fan-out and earlier steady blocks. The published generator's
//! loop over the second half of the fan-out blocks never runs, so its blocks spend one output per transaction of the two previous
//! blocks and have some 2,000 transactions. `Intended` fills the block as in the report, `Faithful` copies the program.
//!
//! Steady 3: two inputs, two outputs, drawn from the whole chain, plus one coinbase per block split into many outputs.
//!
//! The pool contains every unspent output of the earlier phases that pays a key of its own, in the published order: last byte of
//! the txid (as printed) plus index times amount. This spreads each block's inputs over the whole UTXO set.

use std::{ops::Range, vec};

use rayon::{ThreadPool, slice::ParallelSliceMut as _};

use super::{View, pay_evenly, pay_halves};
use crate::{
    coins::{BlockCoins, CoinRef, Coins},
    kind::Bound,
    ledger::Phase,
    network::DUST,
    options::Variant,
    plan::Plan,
    random::Stream,
};

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
        heights: Range<u32>,
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

/// Fan-out transactions whose outputs steady-1 block `block` spends.
pub(crate) fn steady_1_sources(view: View<'_>, block: u32) -> Walk {
    let shape = view.shape;
    let first = shape.first_height(Phase::FanOut);
    let heights = first..first + shape.blocks(Phase::FanOut);
    let evenly = shape.variant == Variant::Intended;
    Walk::new(view.coins, heights, block, 2 * shape.blocks(Phase::Steady1), evenly)
}

pub(crate) fn steady_1_next(
    walk: &mut Walk,
    view: View<'_>,
    plan: &mut Plan,
    kinds: &mut Stream,
) -> bool {
    let Some((height, tx)) = walk.next(view.coins) else { return false };
    let vouts = 0..view.shape.recipe.fan_out.outputs;
    pay_halves(view, plan, kinds, vouts.map(|vout| CoinRef { height, tx, vout }));
    true
}

/// Outputs that fan-in block `block` spends.
pub(crate) fn fan_in_sources(view: View<'_>, block: u32) -> vec::IntoIter<CoinRef> {
    let source = view.coins.block(view.shape.first_height(Phase::Steady1) + block);
    let ordinary = source.order.iter().filter(|tx| **tx >= source.first_ordinary);
    let coins: Vec<_> = ordinary
        .flat_map(|tx| (0..source.outputs.count(*tx)).map(move |vout| (*tx, vout)))
        .map(|(tx, vout)| CoinRef { height: source.outputs.height, tx, vout })
        .collect();
    coins.into_iter()
}

pub(crate) fn fan_in_next(
    coins: &mut vec::IntoIter<CoinRef>,
    view: View<'_>,
    plan: &mut Plan,
    kinds: &mut Stream,
) -> bool {
    let inputs: Vec<_> = coins.take(view.shape.recipe.fan_in.inputs as usize).collect();
    !inputs.is_empty() && pay_evenly(view, plan, kinds, &inputs, 1)
}

pub(crate) struct Steady2 {
    /// Outputs of recent blocks.
    recent: vec::IntoIter<CoinRef>,
    /// Fan-out transactions of this block's part of the second halves; `None` for the faithful variant.
    walk: Option<Walk>,
    /// The current fan-out transaction and its next output.
    at: Option<(u32, u32, u32)>,
    turn: bool,
}

impl Steady2 {
    pub(crate) fn new(view: View<'_>, block: u32) -> Self {
        let (shape, coins) = (view.shape, view.coins);
        let height = coins.next_height();
        let fan_out = shape.first_height(Phase::FanOut);
        let fan_out = fan_out..fan_out + shape.blocks(Phase::FanOut);
        let first = shape.first_height(Phase::FanIn);
        let (recent, walk) = match shape.variant {
            Variant::Faithful => {
                let source = coins.block(height - shape.blocks(Phase::FanIn).max(1));
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
                    recent.extend(fan_out.clone().flat_map(|height| {
                        let block = coins.block(height);
                        unspent(block).filter(|coin| is_change(view, block, coin))
                    }));
                }
                let parts = shape.blocks(Phase::Steady2);
                (recent, Some(Walk::new(coins, fan_out, parts + block, 2 * parts, true)))
            }
        };
        Self { recent: recent.into_iter(), walk, at: None, turn: false }
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

    pub(crate) fn next(&mut self, view: View<'_>, plan: &mut Plan, kinds: &mut Stream) -> bool {
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
            if amount >= 2 * DUST && pay_evenly(view, plan, kinds, &[coin], 2) {
                return true;
            }
        }
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

/// Unspent outputs in spending order.
pub(crate) struct Pool {
    coins: Vec<PoolCoin>,
    next: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PoolCoin {
    /// The published sort key above the first bytes of the txid, so that equal keys are spread too.
    key: u64,
    tx: u32,
    height: u16,
    vout: u16,
}

impl Pool {
    pub(crate) fn new(view: View<'_>, threads: &ThreadPool) -> Self {
        let first = view.shape.first_height(Phase::FanOut);
        let end = view.coins.next_height();
        let unspent: u64 = view.coins.blocks().iter().map(BlockCoins::unspent_count).sum();
        let mut coins = Vec::with_capacity(unspent as usize);
        for height in first..end {
            let block = view.coins.block(height);
            for tx in block.first_ordinary..block.tx_count() {
                let txid = block.txids[tx as usize];
                let tie = u32::from_le_bytes(txid[1..5].try_into().expect("four bytes"));
                for vout in 0..block.outputs.count(tx) {
                    if block.is_spent(tx, vout) || block.outputs.is_funding(tx, vout) {
                        continue;
                    }
                    let sort =
                        u64::from(txid[0]) + u64::from(vout) * block.outputs.amount(tx, vout);
                    let key = sort.min(u64::from(u32::MAX)) << 32 | u64::from(tie);
                    coins.push(PoolCoin { key, tx, height: height as u16, vout: vout as u16 });
                }
            }
        }
        threads.install(|| coins.par_sort_unstable());
        Self { coins, next: 0 }
    }

    fn next(&mut self) -> Option<CoinRef> {
        let coin = self.coins.get(self.next)?;
        self.next += 1;
        Some(CoinRef { height: coin.height.into(), tx: coin.tx, vout: coin.vout.into() })
    }
}

pub(crate) struct Steady3<'a> {
    pool: &'a mut Pool,
    /// Height of the coinbase to split; `None` once done.
    coinbase: Option<u32>,
}

impl<'a> Steady3<'a> {
    pub(crate) fn new(view: View<'_>, block: u32, pool: &'a mut Pool) -> Self {
        Self { pool, coinbase: Some(view.shape.steady_3_coinbase(block)) }
    }

    pub(crate) fn next(&mut self, view: View<'_>, plan: &mut Plan, kinds: &mut Stream) -> bool {
        if let Some(height) = self.coinbase.take() {
            let coin = CoinRef { height, tx: 0, vout: 0 };
            let shares = view.shape.recipe.steady_3.coinbase_outputs;
            let paid = pay_evenly(view, plan, kinds, &[coin], shares);
            assert!(paid, "a coinbase pays thousands of outputs");
            return true;
        }
        let amount =
            |coin: CoinRef| view.coins.block(coin.height).outputs.amount(coin.tx, coin.vout);
        let mut held = None;
        loop {
            let Some(first) = held.take().or_else(|| self.pool.next()) else { return false };
            let Some(second) = self.pool.next() else { return false };
            let half = amount(first).midpoint(amount(second));
            if half >= DUST + FEE_SHARE && pay_pair(view, plan, kinds, [first, second], half) {
                return true;
            }
            // Keep the larger one for a better partner; the smaller one stays unspent.
            held = Some(if amount(first) >= amount(second) { first } else { second });
        }
    }
}

/// Half of the sum less 220 satoshi per output, as published, or less if the fee is higher.
fn pay_pair(
    view: View<'_>,
    plan: &mut Plan,
    kinds: &mut Stream,
    pair: [CoinRef; 2],
    half: u64,
) -> bool {
    let mut bound = Bound::default();
    for coin in pair {
        bound.input(view.coins.block(coin.height).outputs.kind(coin.tx, coin.vout));
    }
    let kinds = [kinds.kind(), kinds.kind()];
    bound.outputs(&kinds);
    let share = half - FEE_SHARE.max(view.shape.fee(&bound).div_ceil(2)).min(half);
    if share < DUST {
        return false;
    }
    for coin in pair {
        plan.input(coin);
    }
    for kind in kinds {
        plan.outputs.push(share, kind);
    }
    plan.end_tx();
    true
}

/// Fee contribution of each of the two outputs.
const FEE_SHARE: u64 = 220;
