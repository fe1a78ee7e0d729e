//! Plans the blocks of a history sequentially: the coins that each transaction spends, and its outputs.
//!
//! A plan depends only on the recipe, the seed and the previous plans, not on signatures. An interrupted forge therefore plans
//! the existing blocks again, which takes a hundredth of the time, and continues.

use assay_consensus::params::{MAX_BLOCK_SIGOPS_COST, MAX_BLOCK_WEIGHT};

use super::{
    eras::{Age, HistoryShape},
    shapes::{EraShapes, Shares, TxShape},
    wallet::{Coin, CoinChoice, Wallet, take_from},
};
use crate::{
    keys::KeyId,
    kind::{Bound, Kind},
    network::{BLOCK_OVERHEAD_WEIGHT, DUST},
    plan::Plan,
    random::{BLOCK_STREAM, Stream},
};

/// An unsigned block; inputs are coins with their heights.
pub(crate) struct Planned {
    pub(crate) plan: Plan<(u32, Coin)>,
    /// First transaction of the second wave, which may spend outputs of earlier transactions in the same block.
    pub(crate) second_wave: u32,
}

pub(crate) struct Planner<'a> {
    shape: &'a HistoryShape,
    pub(crate) wallet: Wallet,
    ages: Shares,
    era: u8,
    shapes: EraShapes,
    kinds: Shares,
}

struct Draft {
    height: u32,
    stream: Stream,
    plan: Plan<(u32, Coin)>,
    /// Outputs of this block that it may spend itself, and the others.
    fresh: Vec<Coin>,
    late: Vec<Coin>,
    fees: u64,
    weight: u64,
    sigops: u64,
}

impl<'a> Planner<'a> {
    pub(crate) fn new(shape: &'a HistoryShape) -> Self {
        let era = &shape.eras[0];
        let shares: Vec<_> = shape.ages.iter().map(|age| age.share).collect();
        Self {
            shape,
            wallet: Wallet::default(),
            ages: Shares::new(&shares),
            era: era.number,
            shapes: EraShapes::new(era),
            kinds: Shares::new(&era.mix),
        }
    }

    pub(crate) fn block(&mut self, height: u32) -> Planned {
        let shape = self.shape;
        let era = shape.era(height);
        if era.number != self.era {
            self.era = era.number;
            self.shapes = EraShapes::new(era);
            self.kinds = Shares::new(&era.mix);
        }
        let mut draft = Draft::new(shape, height, era.coinbase);
        let mut txs = if self.wallet.spendable() == 0 {
            Vec::new()
        } else {
            self.shapes.block(era, &shape.shapes, &mut draft.stream)
        };
        self.fit(&mut txs);
        let outputs: u32 = txs.iter().map(|tx| tx.outputs).sum();
        let mut kinds = self.kinds.shuffled(outputs as usize, &mut draft.stream);
        let second = first_of_second_wave(txs.len());
        let ages = self.ages(&txs, second, &mut draft.stream);
        let (mut ages, mut kinds) = (ages.as_slice(), kinds.as_mut_slice());
        let mut second_wave = u32::MAX;
        for (number, tx) in txs.iter().enumerate() {
            if number == second {
                second_wave = draft.plan.len();
            }
            let (mine, rest) = ages.split_at(tx.inputs as usize);
            ages = rest;
            spendable_first(kinds);
            let (paid, rest) = kinds.split_at_mut(tx.outputs as usize);
            kinds = rest;
            if !draft.has_room(*tx) {
                continue;
            }
            let spent = self.inputs(&mut draft, *tx, mine);
            draft.finish_tx(shape, &spent, paid, number < second);
        }
        let second_wave = second_wave.min(draft.plan.len());
        Planned { plan: self.close(draft, era.coinbase), second_wave }
    }

    /// Omits transactions for which there are not enough coins.
    fn fit(&self, txs: &mut Vec<TxShape>) {
        let mut left = self.wallet.spendable();
        txs.retain(|tx| {
            let fits = u64::from(tx.inputs) <= left;
            left -= if fits { u64::from(tx.inputs) } else { 0 };
            fits
        });
    }

    /// Age band of every input; only transactions of the second wave may have the first band if that is the same block.
    fn ages(&mut self, txs: &[TxShape], second: usize, stream: &mut Stream) -> Vec<u8> {
        let inputs = |txs: &[TxShape]| txs.iter().map(|tx| tx.inputs).sum::<u32>();
        let (all, early) = (inputs(txs), inputs(&txs[..second]));
        let mut bands = self.ages.shuffled(all as usize, stream);
        if self.shape.ages[0].until != 0 {
            return bands;
        }
        // Inputs of the first wave swap bands with inputs of the second.
        let (first, rest) = bands.split_at_mut(early as usize);
        let mut at = 0;
        for band in first.iter_mut().filter(|band| **band == 0) {
            while at < rest.len() && rest[at] == 0 {
                at += 1;
            }
            match rest.get_mut(at) {
                Some(other) => std::mem::swap(band, other),
                // No input of the second wave is left: use the block before.
                None => *band = 1.min(self.shape.ages.len() as u8 - 1),
            }
        }
        stream.shuffle(rest);
        bands
    }

    fn inputs(&mut self, draft: &mut Draft, tx: TxShape, bands: &[u8]) -> Vec<(u32, Coin)> {
        let mut spent: Vec<(u32, Coin)> = Vec::with_capacity(bands.len());
        for band in bands {
            let choice = match spent.first() {
                Some((_, coin)) => CoinChoice::Like(coin.kind),
                None if tx.outputs >= tx.inputs => CoinChoice::Rich,
                None => CoinChoice::Poor,
            };
            let band = &self.shape.ages[usize::from(*band)];
            spent.extend(self.coin(draft, band, choice));
        }
        spent
    }

    /// A coin with an age in the band, or near it.
    fn coin(&mut self, draft: &mut Draft, band: &Age, choice: CoinChoice) -> Option<(u32, Coin)> {
        let Draft { height, stream, fresh, .. } = draft;
        if band.until == 0
            && let Some(coin) = take_from(fresh, choice, stream)
        {
            return Some((*height, coin));
        }
        let least = f64::from(band.above) + 1.0;
        let heights = stream.log_uniform(least, f64::from(band.until.max(1)) + 1.0);
        let age = band.blocks(heights.floor()).clamp(1, (*height - 1).max(1));
        self.wallet.take(height.saturating_sub(age).max(1), choice, stream)
    }

    /// Sets the coinbase amount, and moves the block's outputs to the wallet.
    fn close(&mut self, draft: Draft, coinbase: Kind) -> Plan<(u32, Coin)> {
        let Draft { height, mut plan, mut fresh, late, fees, .. } = draft;
        let amount = self.shape.params.network.subsidy(height) + fees;
        plan.outputs.set_amount(0, 0, amount);
        fresh.extend(late);
        self.wallet.add(height, Coin { amount, tx: 0, vout: 0, kind: coinbase }, fresh);
        plan
    }
}

impl Draft {
    fn new(shape: &HistoryShape, height: u32, coinbase: Kind) -> Self {
        Self {
            height,
            stream: Stream::plain(shape.params.seed, height, BLOCK_STREAM),
            plan: Plan::new(height, 0, coinbase, KeyId::published(height, 0)),
            fresh: Vec::new(),
            late: Vec::new(),
            fees: 0,
            weight: BLOCK_OVERHEAD_WEIGHT,
            sigops: coinbase.output_sigops_cost(),
        }
    }

    /// True if a transaction fits for any choice of inputs and outputs. The options keep the mean block below the limits, so a
    /// transaction is omitted only if many large ones fall into one block by chance.
    fn has_room(&self, tx: TxShape) -> bool {
        let mut bound = Bound::default();
        (0..tx.inputs).for_each(|_| bound.input(Kind::P2shMulti));
        (0..tx.outputs).for_each(|_| bound.output(Kind::Multi));
        // Legacy inputs have the highest weight, so a witness adds only a few units each.
        let witness = 2 + u64::from(tx.inputs);
        self.weight + bound.weight() + witness <= MAX_BLOCK_WEIGHT
            && self.sigops + bound.sigops_cost() <= MAX_BLOCK_SIGOPS_COST
    }

    /// Adds a transaction that spends `spent` and distributes the amount among outputs of `kinds`.
    fn finish_tx(
        &mut self,
        shape: &HistoryShape,
        spent: &[(u32, Coin)],
        kinds: &[u8],
        spendable_here: bool,
    ) {
        let mut bound = Bound::default();
        for (_, coin) in spent {
            bound.input(coin.kind);
        }
        let kinds: Vec<_> = kinds.iter().map(|kind| Kind::ALL[usize::from(*kind)]).collect();
        bound.outputs(&kinds);
        self.weight += bound.weight();
        self.sigops += bound.sigops_cost();
        assert!(self.weight <= MAX_BLOCK_WEIGHT && self.sigops <= MAX_BLOCK_SIGOPS_COST);
        let total: u64 = spent.iter().map(|(_, coin)| coin.amount).sum();
        let fee = shape.fee(&bound);
        let is_rich = total >= fee + DUST * kinds.len() as u64;
        let left = if is_rich { total - fee } else { total };
        let tx = self.plan.len();
        let mut paid = 0;
        for (vout, (kind, amount)) in kinds.iter().zip(self.amounts(&kinds, left)).enumerate() {
            self.plan.outputs.push(amount, *kind);
            paid += amount;
            if *kind != Kind::OpReturn {
                let coin = Coin { amount, tx, vout: vout as u16, kind: *kind };
                if spendable_here { self.fresh.push(coin) } else { self.late.push(coin) }
            }
        }
        self.fees += total - paid;
        self.plan.inputs.extend_from_slice(spent);
        self.plan.end_tx();
    }

    /// Random shares of `left` for the spendable outputs; the rounding remainder goes to the first.
    fn amounts(&mut self, kinds: &[Kind], left: u64) -> Vec<u64> {
        let mut weight = |kind: &Kind| match kind {
            Kind::OpReturn => 0,
            _ => 64 + u64::from(self.stream.below(192)),
        };
        let weights: Vec<_> = kinds.iter().map(&mut weight).collect();
        let sum: u64 = weights.iter().sum::<u64>().max(1);
        let part = |weight: &u64| (u128::from(left) * u128::from(*weight) / u128::from(sum)) as u64;
        let mut amounts: Vec<_> = weights.iter().map(part).collect();
        if weights.first().is_some_and(|weight| *weight > 0) {
            amounts[0] += left - amounts.iter().sum::<u64>();
        }
        amounts
    }
}

/// Moves a spendable kind to the front, if there is one: every transaction needs a spendable output.
fn spendable_first(kinds: &mut [u8]) {
    let never = Kind::OpReturn as u8;
    if kinds.first() == Some(&never)
        && let Some(at) = kinds.iter().position(|kind| *kind != never)
    {
        kinds.swap(0, at);
    }
}

/// Two thirds of the transactions form the first wave; the others may spend their outputs.
fn first_of_second_wave(txs: usize) -> usize {
    (2 * txs).div_ceil(3)
}
