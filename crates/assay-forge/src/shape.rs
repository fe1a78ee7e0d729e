//! Concrete parameters of a scaling chain, from its recipe and the options.

use assay_consensus::params::MAX_BLOCK_SIGOPS_COST;

use crate::{
    kind::Bound,
    ledger::Phase,
    network::{BLOCK_OVERHEAD_WEIGHT, Network, SPLIT_FEE},
    options::{ForgeOptions, OptionsError, Params, Variant, check_stop},
    random::Stream,
    recipe::ScalingFile,
    summary::Estimate,
};

/// Recipe and options as concrete numbers.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) recipe: ScalingFile,
    pub(crate) params: Params,
    pub(crate) variant: Variant,
    /// Blocks of each phase of [`PHASES`].
    blocks: [u32; PHASES.len()],
    pub(crate) weight_max: u64,
    pub(crate) sigops_max: u64,
    pub(crate) stop_height: u32,
}

impl Shape {
    pub(crate) fn new(file: &ScalingFile, options: &ForgeOptions) -> Result<Self, OptionsError> {
        let file = file.clone();
        let network = file.chain;
        let full = match network {
            Network::BchRegtest => 4 * file.block_bytes_max.expect("checked with the recipe"),
            Network::Regtest => file.block_weight_max.expect("checked with the recipe"),
        };
        let max = if network.segwit() { BITCOIN_SCALE_MAX } else { 1.0 };
        let min = scale_min(&file, full);
        let scale = options.scale;
        if !(min..=max).contains(&scale) {
            return Err(OptionsError::Scale { scale, chain: network.name(), min, max });
        }
        let times = |blocks: u32| (f64::from(blocks) * scale.max(1.0)).round() as u32;
        let mut shape = Self {
            params: Params::new(options, network, (file.end_time, file.block_interval_s))?,
            variant: options.variant,
            blocks: [
                file.maturity.blocks,
                file.baseline.map_or(0, |baseline| baseline.blocks),
                times(file.fan_out.blocks),
                PLACED_KINDS * file.placement.map_or(0, |placement| placement.rounds),
                times(file.steady_1.blocks),
                times(file.fan_in.blocks),
                times(file.steady_2.blocks),
                times(file.steady_3.blocks),
            ],
            weight_max: (full as f64 * scale.min(1.0)) as u64,
            sigops_max: if network.segwit() { MAX_BLOCK_SIGOPS_COST } else { u64::MAX },
            stop_height: 0,
            recipe: file,
        };
        shape.check(options.stop_height)?;
        Ok(shape)
    }

    fn check(&mut self, stop_height: Option<u32>) -> Result<(), OptionsError> {
        let coinbases = self.steady_3_coinbase(0) - 1 + self.blocks(Phase::Steady3);
        let available = self.coinbases_that_pay();
        if coinbases > available {
            let scale = self.params.scale;
            return Err(OptionsError::Coinbases { scale, coinbases, available });
        }
        let last: u32 = PHASES.iter().map(|phase| self.blocks(*phase)).sum();
        self.stop_height = check_stop(stop_height, last)?;
        self.params = self.params.clone().ending_at(last)?;
        Ok(())
    }

    /// Height of the last coinbase that can fund a block's chains and the outputs of a steady-3 block.
    fn coinbases_that_pay(&self) -> u32 {
        let halving = self.network().params().subsidy_halving_interval;
        let Some(depth) = self.recipe.fan_out.chain_depth else { return halving - 1 };
        let outputs = u64::from(self.recipe.steady_3.coinbase_outputs) + 1;
        let need = self.recipe.split_max(self.weight_max, depth.into()).max(outputs * OUTPUT_PAID);
        let periods = (0..64).take_while(|&n| self.network().subsidy(n * halving) >= need).count();
        (periods as u32 * halving).saturating_sub(1)
    }

    pub(crate) fn blocks(&self, phase: Phase) -> u32 {
        PHASES.iter().position(|other| *other == phase).map_or(0, |at| self.blocks[at])
    }

    /// Blocks of a phase up to the stop height.
    pub(crate) fn blocks_made(&self, phase: Phase) -> u32 {
        let made = (self.stop_height + 1).saturating_sub(self.first_height(phase));
        self.blocks(phase).min(made)
    }

    pub(crate) fn first_height(&self, phase: Phase) -> u32 {
        let before = PHASES.iter().take_while(|other| **other != phase);
        1 + before.map(|other| self.blocks(*other)).sum::<u32>()
    }

    pub(crate) fn network(&self) -> Network {
        self.recipe.chain
    }

    /// The random stream of one chain of a block, or of the block itself.
    pub(crate) fn stream(&self, height: u32, chain: u32) -> Stream {
        Stream::new(self.params.seed, self.recipe.scripts, height, chain)
    }

    pub(crate) fn fee(&self, bound: &Bound) -> u64 {
        (bound.vsize() * self.recipe.fee_sat_per_kb).div_ceil(1_000)
    }

    /// Height of the coinbase that a fan-out block splits; the baseline used those before.
    pub(crate) fn fan_out_coinbase(&self, block: u32) -> u32 {
        self.blocks(Phase::Baseline) + 1 + block
    }

    /// Height of the coinbase that a steady-3 block splits; the fan-out phase used those before.
    pub(crate) fn steady_3_coinbase(&self, block: u32) -> u32 {
        self.fan_out_coinbase(0) + self.blocks(Phase::FanOut) + 1 + block
    }

    pub(crate) fn baseline_weight_max(&self) -> u64 {
        let bytes = self.recipe.baseline.map_or(0, |baseline| baseline.block_bytes);
        self.weight_max.min(4 * bytes)
    }

    pub(crate) fn estimate(&self) -> Estimate {
        let recipe = &self.recipe;
        let segwit = self.network().segwit();
        // Mean virtual bytes of an input and an output, measured on the built-in recipes, and signatures of an input.
        let (input, output, signatures) =
            if segwit { (84.0, 36.0, 1.05) } else { (147.5, 34.0, 1.0) };
        let block = self.weight_max as f64 / 4.0;
        let tx = |inputs: f64, outputs: f64| 10.0 + input * inputs + output * outputs;
        let outputs = f64::from(recipe.fan_out.outputs);
        let fan_out_tx = tx(1.0, outputs + 1.0);
        let mean = recipe.fan_out.amount_min as f64 + f64::from(recipe.fan_out.amount_span) / 2.0;
        let funded =
            self.network().subsidy(1) as f64 * self.params.scale / (outputs * mean + fan_out_tx);
        let fan_out = (block / fan_out_tx).min(if segwit { f64::MAX } else { funded });
        let all_fan_out = fan_out * f64::from(self.blocks(Phase::FanOut));
        let share = match self.blocks(Phase::Steady1) {
            0 => 0.0,
            blocks => all_fan_out / f64::from(2 * blocks),
        };
        let steady_1 = (block / tx(outputs, 2.0)).min(share);
        let fan_in = 2.0 * steady_1 / f64::from(recipe.fan_in.inputs);
        let steady_2 = match self.variant {
            Variant::Intended => block / tx(1.0, 2.0),
            Variant::Faithful => fan_in,
        };
        let steady_3 = block / tx(2.0, 2.0);
        let fan_in_inputs = f64::from(recipe.fan_in.inputs);
        let baseline = self.baseline_weight_max() as f64 / 4.0 / tx(1.0, 2.0);
        let rounds = f64::from(self.blocks(Phase::Placement) / PLACED_KINDS).max(1.0);
        let placed = (block / tx(outputs, 2.0)).min(all_fan_out / (4.0 * rounds));
        let phases = [
            (Phase::Placement, placed, outputs, 2.0),
            (Phase::Baseline, baseline, 1.0, 2.0),
            (Phase::FanOut, fan_out, 1.0, outputs + 1.0),
            (Phase::Steady1, steady_1, outputs, 2.0),
            (Phase::FanIn, fan_in, fan_in_inputs, 1.0),
            (Phase::Steady2, steady_2, 1.0, 2.0),
            (Phase::Steady3, steady_3, 2.0, 2.0),
        ];
        let (mut signed, mut bytes) = (0.0, 0.0);
        for (phase, txs, inputs, outputs) in phases {
            let blocks = self.blocks_made(phase);
            signed += f64::from(blocks) * txs * inputs * signatures;
            bytes += f64::from(blocks) * txs * tx(inputs, outputs);
        }
        // Witness bytes count a quarter in virtual bytes.
        let bytes = if segwit { bytes * 1.5 } else { bytes };
        Estimate { blocks: self.stop_height, signatures: signed as u64, bytes: bytes as u64 }
    }
}

/// Kinds of blocks in a placement: two ages, two orders.
const PLACED_KINDS: u32 = 4;

pub(crate) const PHASES: [Phase; 8] = [
    Phase::Maturity,
    Phase::Baseline,
    Phase::FanOut,
    Phase::Placement,
    Phase::Steady1,
    Phase::FanIn,
    Phase::Steady2,
    Phase::Steady3,
];

/// The smallest scale at which a block can hold one transaction of each phase and a chain can pay its first.
fn scale_min(recipe: &ScalingFile, full: u64) -> f64 {
    let outputs = u64::from(recipe.fan_out.outputs);
    let chains = u64::from(recipe.fan_out.chains.unwrap_or(1));
    let fan_out = (170 + 43 * chains) + chains * (160 + 43 * (outputs + 1));
    let baseline =
        recipe.baseline.map_or(0, |b| 170 + 43 * u64::from(b.chains) + 246 * u64::from(b.chains));
    let steady_1 = 100 + 149 * outputs;
    let fan_in = 60 + 149 * u64::from(recipe.fan_in.inputs);
    let steady_3 = 170 + 43 * u64::from(recipe.steady_3.coinbase_outputs);
    // Steady blocks use equal parts of the fan-out blocks: each part must have a transaction.
    let parts = 2 * u64::from(recipe.steady_1.blocks.max(recipe.steady_2.blocks)).max(1) - 1;
    // A placement round uses four transactions of the fan-out, of two ages.
    let rounds = u64::from(recipe.placement.map_or(0, |placement| placement.rounds));
    let parts = parts.max((4 * rounds).div_ceil(u64::from(recipe.fan_out.blocks)) + 1);
    let shared = parts * (57 + 36 * (outputs + 1));
    let largest = fan_out.max(baseline).max(shared).max(steady_1).max(fan_in).max(steady_3);
    let weight = BLOCK_OVERHEAD_WEIGHT + 4 * largest;
    let funds = match recipe.fan_out.chains {
        None => 0.0,
        Some(chains) => {
            let start = recipe.chain.subsidy(1) / u64::from(chains) - SPLIT_FEE;
            let txs = parts.div_ceil(u64::from(chains));
            (txs * recipe.fan_out_tx_max() + 1) as f64 / start as f64
        }
    };
    let least = (weight as f64 / full as f64).max(funds);
    (least * SCALE_STEPS).ceil() / SCALE_STEPS
}

/// The smallest scale is rounded up to a multiple of one hundred-thousandth.
const SCALE_STEPS: f64 = 100_000.0;
/// A chain of 1.6 GiB. The coinbases would suffice for a little more.
const BITCOIN_SCALE_MAX: f64 = 40.0;
/// Minimum amount of an output of a coinbase split, with its share of the fee, in satoshi.
const OUTPUT_PAID: u64 = 10_000;
