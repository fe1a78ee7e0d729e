//! Fan-out: chains of transactions with one input and many outputs, starting from a split coinbase.
//!
//! On the BCH chain the split is in the same block, and a chain continues until its coin (at scale 1), or the scale's share of
//! it, is spent. On Bitcoin the split is confirmed one block earlier and chains are short, because mempools limit unconfirmed
//! descendants; the number of chains is limited by the block size.
//!
//! The blocks of the baseline are such chains too, with two outputs and main-chain block size.

use crate::{
    coins::CoinRef,
    keys::KeyId,
    kind::{Bound, Kind},
    ledger::Phase,
    network::{BLOCK_OVERHEAD_WEIGHT, CHAIN_REST, DUST, Network, SPLIT_FEE},
    plan::Plan,
    random::{BLOCK_STREAM, Stream},
    shape::Shape,
};

pub(crate) struct Draw {
    /// In satoshi, at the start.
    start: u64,
    start_kind: Kind,
    /// `outputs` per transaction.
    amounts: Vec<u32>,
    /// Kinds of its outputs and of its change.
    kinds: Vec<Kind>,
    fees: Vec<u64>,
}

impl Draw {
    fn new(start: u64, start_kind: Kind) -> Self {
        Self { start, start_kind, amounts: Vec::new(), kinds: Vec::new(), fees: Vec::new() }
    }
}

/// Remaining capacity of a block of short chains.
#[derive(Clone, Copy)]
struct Capacity {
    weight: u64,
    sigops: u64,
}

impl Capacity {
    fn take(&mut self, bound: &Bound) -> bool {
        if bound.weight() > self.weight || bound.sigops_cost() > self.sigops {
            return false;
        }
        self.weight -= bound.weight();
        self.sigops -= bound.sigops_cost();
        true
    }
}

/// A planned fan-out block: its transaction chains are lists of transactions, one per chain.
pub(crate) struct FanOutPlan {
    pub(crate) plan: Plan,
    pub(crate) tx_chains: Vec<Vec<u32>>,
}

/// Height of fan-out block `block`, counted from 0.
fn height(shape: &Shape, block: u32) -> u32 {
    shape.first_height(Phase::FanOut) + block
}

/// Outputs per transaction of chains, without change.
pub(crate) fn chain_outputs(shape: &Shape, phase: Phase) -> u32 {
    if phase == Phase::Baseline { 1 } else { shape.recipe.fan_out.outputs }
}

/// Plans a block of chains that start from a coinbase split in the block itself: of the baseline, or of fan-out on the BCH chain.
pub(crate) fn plan_chains(shape: &Shape, phase: Phase, block: u32) -> FanOutPlan {
    let (coinbase, chains, weight_max, share) = if phase == Phase::Baseline {
        let baseline = shape.recipe.baseline.expect("there are such blocks");
        (1 + block, baseline.chains, shape.baseline_weight_max(), 1.0)
    } else {
        let chains = shape.recipe.fan_out.chains.expect("checked with the recipe");
        (shape.fan_out_coinbase(block), chains, shape.weight_max, shape.params.scale)
    };
    let (network, height) = (shape.network(), shape.first_height(phase) + block);
    let outputs = chain_outputs(shape, phase);
    let subsidy = network.subsidy(coinbase);
    let start = subsidy / u64::from(chains) - SPLIT_FEE;
    let funding = KeyId::published(coinbase, subsidy);
    let mut plan = Plan::new(height, network.subsidy(height), Kind::P2pkh, funding);
    plan.input(CoinRef { height: coinbase, tx: 0, vout: 0 });
    (0..chains).for_each(|_| plan.outputs.push_funding(start, Kind::P2pkh));
    let split = plan.end_tx();
    plan.first_ordinary = split + 1;
    let starts: Vec<_> = (0..chains).map(|vout| CoinRef { height, tx: split, vout }).collect();
    let weight = (weight_max - BLOCK_OVERHEAD_WEIGHT - split_weight(chains)) / u64::from(chains);
    let draw = |chain| {
        let mut stream = shape.stream(height, chain);
        draw_long(shape, (outputs, share), &mut stream, (start, weight))
    };
    let draws: Vec<_> = (0..chains).map(draw).collect();
    let tx_chains = interleave(outputs, &mut plan, &starts, &draws, true);
    FanOutPlan { plan, tx_chains }
}

fn split_weight(chains: u32) -> u64 {
    let mut bound = Bound::default();
    bound.input(Kind::P2pkh);
    (0..chains).for_each(|_| bound.output(Kind::P2pkh));
    bound.weight()
}

/// A chain that ends when its share of its coin is spent, or before its change would be dust.
fn draw_long(
    shape: &Shape,
    (outputs, share): (u32, f64),
    stream: &mut Stream,
    (start, mut weight): (u64, u64),
) -> Draw {
    let mut bound = Bound::default();
    bound.input(Kind::P2pkh);
    (0..=outputs).for_each(|_| bound.output(Kind::P2pkh));
    let fee = shape.fee(&bound);
    let target = ((start as f64 * share) as u64).min(start - DUST);
    let mut draw = Draw::new(start, Kind::P2pkh);
    let mut spent = 0;
    while bound.weight() <= weight {
        let before = draw.amounts.len();
        draw.amounts.extend((0..outputs).map(|_| amount(shape, stream)));
        spent += draw.amounts[before..].iter().copied().map(u64::from).sum::<u64>() + fee;
        if spent > target {
            draw.amounts.truncate(before);
            break;
        }
        draw.kinds.extend((0..=outputs).map(|_| Kind::P2pkh));
        draw.fees.push(fee);
        weight -= bound.weight();
    }
    draw
}

fn amount(shape: &Shape, stream: &mut Stream) -> u32 {
    let fan_out = &shape.recipe.fan_out;
    fan_out.amount_min as u32 + stream.below(fan_out.amount_span)
}

/// Plans all fan-out blocks of a Bitcoin chain, and before them the block that confirms the first split.
pub(crate) fn plan_short_chains(shape: &Shape) -> Vec<FanOutPlan> {
    let mut plans = Vec::new();
    let mut splits: Option<Vec<Draw>> = None;
    // A block contains the split for the next one, whose size follows from the next one's chains: plan from last to first.
    for block in (0..shape.blocks(Phase::FanOut)).rev() {
        let split = splits.map(|draws| (block + 1, draws));
        let (plan, draws) = plan_short_block(shape, Some(block), split.as_ref());
        plans.push(plan);
        splits = Some(draws);
    }
    let first = splits.map(|draws| (0, draws));
    plans.push(plan_short_block(shape, None, first.as_ref()).0);
    plans.reverse();
    plans
}

/// One block: the split for the next block and the chains of fan-out block `block`, if they exist.
fn plan_short_block(
    shape: &Shape,
    block: Option<u32>,
    split: Option<&(u32, Vec<Draw>)>,
) -> (FanOutPlan, Vec<Draw>) {
    let height = block.map_or(shape.blocks(Phase::Maturity), |block| height(shape, block));
    let subsidy = shape.network().subsidy(height);
    let mut plan = Plan::new(height, subsidy, Kind::P2pkh, KeyId::published(height, subsidy));
    let mut left = Capacity {
        weight: shape.weight_max - BLOCK_OVERHEAD_WEIGHT,
        sigops: shape.sigops_max - Kind::P2pkh.output_sigops_cost(),
    };
    if let Some((next, draws)) = split {
        let bound = plan_split(shape, &mut plan, *next, draws);
        assert!(left.take(&bound), "a split is a few per cent of a block");
        plan.first_ordinary = 2;
    }
    let Some(block) = block else {
        return (FanOutPlan { plan, tx_chains: Vec::new() }, Vec::new());
    };
    let mut draws = Vec::new();
    loop {
        let mut stream = shape.stream(height, draws.len() as u32);
        let (draw, full) = draw_short(shape, &mut stream, &mut left);
        if !draw.fees.is_empty() {
            draws.push(draw);
        }
        if full {
            break;
        }
    }
    let split_height = shape.blocks(Phase::Maturity) + block;
    let starts: Vec<_> =
        (0..draws.len() as u32).map(|vout| CoinRef { height: split_height, tx: 1, vout }).collect();
    let tx_chains = interleave(shape.recipe.fan_out.outputs, &mut plan, &starts, &draws, false);
    (FanOutPlan { plan, tx_chains }, draws)
}

/// Plans the transaction that splits a coinbase for the chains of fan-out block `block`; the rest is change.
fn plan_split(shape: &Shape, plan: &mut Plan, block: u32, draws: &[Draw]) -> Bound {
    let coinbase = block + 1;
    plan.input(CoinRef { height: coinbase, tx: 0, vout: 0 });
    let change_kind = shape.stream(plan.outputs.height, BLOCK_STREAM).kind();
    let mut bound = Bound::default();
    bound.input(Kind::P2pkh);
    let mut total = 0;
    for draw in draws {
        plan.outputs.push(draw.start, draw.start_kind);
        bound.output(draw.start_kind);
        total += draw.start;
    }
    bound.output(change_kind);
    let subsidy = shape.network().subsidy(coinbase);
    let change = subsidy
        .checked_sub(total + shape.fee(&bound))
        .expect("a block of chains spends less than half a coin");
    plan.outputs.push(change, change_kind);
    plan.end_tx();
    bound
}

/// A chain of the recipe's depth, or a shorter one if the block is full (second value true).
fn draw_short(shape: &Shape, stream: &mut Stream, left: &mut Capacity) -> (Draw, bool) {
    let fan_out = &shape.recipe.fan_out;
    let mut spent_kind = stream.kind();
    let mut draw = Draw::new(CHAIN_REST, spent_kind);
    for _ in 0..fan_out.chain_depth.expect("checked with the recipe") {
        let mut bound = Bound::default();
        bound.input(spent_kind);
        let kinds: Vec<_> = (0..=fan_out.outputs).map(|_| stream.kind()).collect();
        bound.outputs(&kinds);
        if !left.take(&bound) {
            return (draw, true);
        }
        spent_kind = *kinds.last().expect("the change is always there");
        let before = draw.amounts.len();
        draw.amounts.extend((0..fan_out.outputs).map(|_| amount(shape, stream)));
        let fee = shape.fee(&bound);
        draw.start += draw.amounts[before..].iter().copied().map(u64::from).sum::<u64>() + fee;
        draw.kinds.extend(kinds);
        draw.fees.push(fee);
    }
    (draw, false)
}

/// Adds the transactions of all chains to the plan, round robin.
fn interleave(
    outputs: u32,
    plan: &mut Plan,
    starts: &[CoinRef],
    draws: &[Draw],
    change_to_funding: bool,
) -> Vec<Vec<u32>> {
    let outputs = outputs as usize;
    let mut tx_chains: Vec<Vec<u32>> =
        draws.iter().map(|draw| Vec::with_capacity(draw.fees.len())).collect();
    let mut change: Vec<u64> = draws.iter().map(|draw| draw.start).collect();
    let depth = draws.iter().map(|draw| draw.fees.len()).max().unwrap_or(0);
    for at in 0..depth {
        for (chain, draw) in draws.iter().enumerate() {
            let Some(fee) = draw.fees.get(at) else { continue };
            plan.input(match tx_chains[chain].last() {
                None => starts[chain],
                Some(tx) => CoinRef { height: plan.outputs.height, tx: *tx, vout: outputs as u32 },
            });
            let amounts = &draw.amounts[at * outputs..(at + 1) * outputs];
            let kinds = &draw.kinds[at * (outputs + 1)..(at + 1) * (outputs + 1)];
            for (amount, kind) in amounts.iter().zip(kinds) {
                plan.outputs.push(u64::from(*amount), *kind);
            }
            change[chain] -= amounts.iter().copied().map(u64::from).sum::<u64>() + fee;
            if change_to_funding {
                plan.outputs.push_funding(change[chain], kinds[outputs]);
            } else {
                plan.outputs.push(change[chain], kinds[outputs]);
            }
            tx_chains[chain].push(plan.end_tx());
        }
    }
    tx_chains
}

/// True if chains are short and their splits confirmed earlier.
pub(crate) fn short_chains(network: Network) -> bool {
    network == Network::Regtest
}
