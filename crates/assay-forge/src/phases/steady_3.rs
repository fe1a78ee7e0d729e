//! Steady 3: two inputs, two outputs, drawn from the whole chain, plus one coinbase per block split into many outputs.
//!
//! The pool contains every unspent output of the earlier phases that pays a key of its own, in the published order: last byte of
//! the txid (as printed) plus index times amount. This spreads each block's inputs over the whole UTXO set.

use rayon::{ThreadPool, slice::ParallelSliceMut as _};

use super::{Source, View, pay_evenly};
use crate::{
    coins::{BlockCoins, CoinRef},
    kind::Bound,
    ledger::Phase,
    network::DUST,
    plan::Plan,
    random::{BLOCK_STREAM, Stream},
};

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
    kinds: Stream,
    /// Height of the coinbase to split; `None` once done.
    coinbase: Option<u32>,
}

impl<'a> Steady3<'a> {
    pub(crate) fn new(view: View<'_>, block: u32, pool: &'a mut Pool) -> Self {
        let kinds = view.shape.stream(view.coins.next_height(), BLOCK_STREAM);
        Self { pool, kinds, coinbase: Some(view.shape.steady_3_coinbase(block)) }
    }
}

impl Source for Steady3<'_> {
    fn next(&mut self, view: View<'_>, plan: &mut Plan) -> bool {
        if let Some(height) = self.coinbase.take() {
            let coin = CoinRef { height, tx: 0, vout: 0 };
            let shares = view.shape.recipe.steady_3.coinbase_outputs;
            let paid = pay_evenly(view, plan, &mut self.kinds, &[coin], shares, 0);
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
            if half >= DUST + FEE_SHARE
                && pay_pair(view, plan, &mut self.kinds, [first, second], half)
            {
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
