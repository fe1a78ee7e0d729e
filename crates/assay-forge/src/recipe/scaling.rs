//! Recipe of a scaling chain: fan-out, steady state, fan-in.

use assay_consensus::params::{COINBASE_MATURITY, MAX_BLOCK_WEIGHT};
use serde::Deserialize;

use super::{Blocks, MATURITY, RecipeError, amount_rules, check_head, enough, range, ranges};
use crate::network::{CHAIN_REST, DUST, Network, SPLIT_FEE};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScalingFile {
    format: u64,
    pub(crate) name: String,
    pub(crate) chain: Network,
    pub(crate) end_time: u32,
    pub(crate) block_interval_s: u32,
    pub(crate) block_bytes_max: Option<u64>,
    pub(crate) block_weight_max: Option<u64>,
    pub(crate) fee_sat_per_kb: u64,
    pub(crate) maturity: Blocks,
    pub(crate) baseline: Option<Baseline>,
    pub(crate) fan_out: FanOut,
    pub(crate) placement: Option<Rounds>,
    pub(crate) steady_1: Blocks,
    pub(crate) fan_in: FanIn,
    pub(crate) steady_2: Blocks,
    pub(crate) steady_3: Steady3,
    pub(crate) scripts: Option<Scripts>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Baseline {
    pub(crate) blocks: u32,
    pub(crate) block_bytes: u64,
    pub(crate) chains: u32,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rounds {
    pub(crate) rounds: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FanOut {
    pub(crate) blocks: u32,
    pub(crate) chains: Option<u32>,
    pub(crate) chain_depth: Option<u32>,
    pub(crate) outputs: u32,
    pub(crate) amount_min: u64,
    pub(crate) amount_span: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FanIn {
    pub(crate) blocks: u32,
    pub(crate) inputs: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Steady3 {
    pub(crate) blocks: u32,
    pub(crate) coinbase_outputs: u32,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scripts {
    #[serde(default)]
    p2pkh: u32,
    #[serde(default)]
    p2sh_p2wpkh: u32,
    #[serde(default)]
    p2wpkh: u32,
    #[serde(default)]
    p2wsh_2of3: u32,
    #[serde(default)]
    p2tr_key: u32,
    #[serde(default)]
    p2tr_script: u32,
}

impl Scripts {
    /// Weights of the first kinds of [`Kind::ALL`]; these chains use no others.
    pub(crate) fn weights(&self) -> [u32; 6] {
        [
            self.p2pkh,
            self.p2sh_p2wpkh,
            self.p2wpkh,
            self.p2wsh_2of3,
            self.p2tr_key,
            self.p2tr_script,
        ]
    }
}

impl ScalingFile {
    pub(super) fn check(&self) -> Result<(), RecipeError> {
        check_head(self.format, &self.name, self.block_interval_s, self.fee_sat_per_kb)?;
        self.check_blocks()?;
        self.check_fan_out()?;
        match self.chain {
            Network::BchRegtest => self.check_bch(),
            Network::Regtest => self.check_bitcoin(),
        }
    }

    fn check_blocks(&self) -> Result<(), RecipeError> {
        let mature = u64::from(COINBASE_MATURITY) + u64::from(self.chain == Network::Regtest);
        ranges([
            ("maturity.blocks", self.maturity.blocks.into(), mature..=140, MATURITY),
            ("fan_out.blocks", self.fan_out.blocks.into(), 1..=100, COINBASE_EACH),
        ])?;
        if let Some(placement) = self.placement {
            self.check_placement(placement)?;
        }
        let (steady_1, steady_2) = (self.steady_1.blocks.into(), self.steady_2.blocks.into());
        let (fan_in, steady_3) = (&self.fan_in, &self.steady_3);
        let outputs = u64::from(steady_3.coinbase_outputs);
        ranges([
            ("steady_1.blocks", steady_1, 0..=1_000, "0 leaves the phase out"),
            ("fan_in.blocks", fan_in.blocks.into(), 0..=steady_1, "each spends one steady-1 block"),
            ("fan_in.inputs", fan_in.inputs.into(), 2..=600, STANDARD),
            ("steady_2.blocks", steady_2, 0..=1_000, "0 leaves the phase out"),
            ("steady_3.blocks", steady_3.blocks.into(), 0..=100, COINBASE_EACH),
            ("steady_3.coinbase_outputs", outputs, 1..=2_000, STANDARD),
        ])?;
        let between =
            self.maturity.blocks + self.steady_1.blocks + self.fan_in.blocks + self.steady_2.blocks;
        let need = if steady_3.blocks > 0 { u64::from(COINBASE_MATURITY) + 1 } else { 0 };
        enough(
            "maturity.blocks, steady_1.blocks, fan_in.blocks and steady_2.blocks",
            (between.into(), need),
            "blocks",
            "before steady-3 can spend its coinbases; add maturity blocks",
        )
    }

    /// The placement uses the coins of the first two steady phases.
    fn check_placement(&self, placement: Rounds) -> Result<(), RecipeError> {
        let fan_out = self.fan_out.blocks.into();
        let halves = "the placement has an earlier and a later half";
        let same = "the placement spends the same outputs";
        ranges([
            ("placement.rounds", placement.rounds.into(), 1..=100, "each has four blocks"),
            ("fan_out.blocks", fan_out, 2..=100, halves),
            ("steady_1.blocks", self.steady_1.blocks.into(), 0..=0, same),
            ("steady_2.blocks", self.steady_2.blocks.into(), 0..=0, same),
        ])
    }

    fn check_fan_out(&self) -> Result<(), RecipeError> {
        let fan_out = &self.fan_out;
        let outputs = u64::from(fan_out.outputs);
        let outputs_rule = "larger counts change the layout of a transaction";
        range(("fan_out.outputs", outputs, 1..=250, outputs_rule))?;
        ranges(amount_rules(fan_out.amount_min, fan_out.amount_span))?;
        // A steady-1 transaction of P2PKH inputs, the largest kind: its two outputs must not be dust.
        let fee = ((outputs * 149 + 90) * self.fee_sat_per_kb).div_ceil(1_000);
        enough(
            "fan_out.outputs, fan_out.amount_min and fee_sat_per_kb",
            (outputs * fan_out.amount_min, fee + 2 * DUST),
            "satoshi",
            "for two outputs and the fee of a steady-1 transaction; raise the outputs or their amount",
        )
    }

    /// The value of a key that this chain needs.
    fn needed<T: Copy>(&self, key: &'static str, value: Option<T>) -> Result<T, RecipeError> {
        value.ok_or(RecipeError::Missing { key, chain: self.chain.name() })
    }

    /// Rejects a key that means nothing on this chain.
    fn absent(
        &self,
        key: &'static str,
        is_absent: bool,
        reason: &'static str,
    ) -> Result<(), RecipeError> {
        let chain = self.chain.name();
        if is_absent { Ok(()) } else { Err(RecipeError::NotForChain { key, chain, reason }) }
    }

    fn check_bch(&self) -> Result<(), RecipeError> {
        let bytes = self.needed("block_bytes_max", self.block_bytes_max)?;
        let bytes_rule = "block files hold 32-bit lengths";
        range(("block_bytes_max", bytes, 1_000_000..=2_000_000_000, bytes_rule))?;
        let chains = u64::from(self.needed("fan_out.chains", self.fan_out.chains)?);
        range(("fan_out.chains", chains, 1..=200, "one coinbase funds them all"))?;
        self.check_baseline(bytes)?;
        let weight = self.block_weight_max.is_none();
        self.absent("block_weight_max", weight, "blocks are limited in bytes")?;
        let depth = self.fan_out.chain_depth.is_none();
        self.absent("fan_out.chain_depth", depth, "chains run until the coin is spent")?;
        self.absent("scripts", self.scripts.is_none(), "every output is P2PKH")?;
        // The first transaction of each chain at scale 1; smaller scales are checked with the options.
        enough(
            "fan_out.chains, fan_out.outputs, fan_out.amount_min and fan_out.amount_span",
            (self.chain.subsidy(1) / chains - SPLIT_FEE, self.fan_out_tx_max() + DUST),
            "satoshi",
            "for the first transaction of a chain; lower the amounts or the chains",
        )
    }

    fn check_baseline(&self, block_bytes_max: u64) -> Result<(), RecipeError> {
        let Some(baseline) = self.baseline else { return Ok(()) };
        let max = block_bytes_max.min(4_000_000);
        let chains_rule = "one coinbase funds them all, and the smallest block holds them";
        ranges([
            ("baseline.blocks", baseline.blocks.into(), 0..=20, COINBASE_EACH),
            (
                "baseline.block_bytes",
                baseline.block_bytes,
                100_000..=max,
                "blocks of main-chain size",
            ),
            ("baseline.chains", baseline.chains.into(), 1..=20, chains_rule),
        ])
    }

    fn check_bitcoin(&self) -> Result<(), RecipeError> {
        let weight = self.needed("block_weight_max", self.block_weight_max)?;
        let weight_rule = "BIP141 allows 4,000,000 weight units";
        range(("block_weight_max", weight, 100_000..=MAX_BLOCK_WEIGHT, weight_rule))?;
        let depth = u64::from(self.needed("fan_out.chain_depth", self.fan_out.chain_depth)?);
        let depth_rule = "a mempool takes 25 unconfirmed ancestors at most";
        range(("fan_out.chain_depth", depth, 1..=24, depth_rule))?;
        let scripts = self.needed("scripts", self.scripts)?;
        let bytes = self.block_bytes_max.is_none();
        self.absent("block_bytes_max", bytes, "blocks are limited in weight")?;
        self.absent("baseline", self.baseline.is_none(), "all blocks are of main-chain size")?;
        let chains_rule = "the block is filled with as many chains as fit";
        self.absent("fan_out.chains", self.fan_out.chains.is_none(), chains_rule)?;
        let total: u64 = scripts.weights().iter().map(|weight| u64::from(*weight)).sum();
        range(("the sum of [scripts]", total, 1..=1_000_000, "the weights share out the outputs"))?;
        self.check_split(weight, depth)
    }

    /// One standard transaction must be able to split a coinbase for all chains of a block.
    fn check_split(&self, weight: u64, depth: u64) -> Result<(), RecipeError> {
        let depth_min = weight.div_ceil(self.fan_out_lightest() * SPLIT_OUTPUTS_MAX);
        let depth_rule = "one standard transaction funds all chains of a block, and a mempool takes 25 unconfirmed ancestors at most";
        range(("fan_out.chain_depth", depth, depth_min..=24, depth_rule))?;
        enough(
            "fan_out.amount_min, fan_out.amount_span and block_weight_max",
            (self.chain.subsidy(1), self.split_max(weight, depth)),
            "satoshi",
            "for the outputs of one fan-out block, which one coinbase pays; lower the amounts",
        )
    }

    /// Weight of the smallest fan-out transaction: a taproot input, P2WPKH outputs.
    fn fan_out_lightest(&self) -> u64 {
        4 * (57 + 31 * (u64::from(self.fan_out.outputs) + 1))
    }

    /// Maximum amount that all chains of a fan-out block of this weight spend, in satoshi.
    pub(crate) fn split_max(&self, weight: u64, depth: u64) -> u64 {
        let txs = weight / self.fan_out_lightest() + 1;
        txs * self.fan_out_tx_max() + (txs / depth + 1) * CHAIN_REST
    }

    /// Maximum amount that a fan-out transaction spends, without its change: every amount at its maximum, and the fee on P2PKH.
    pub(crate) fn fan_out_tx_max(&self) -> u64 {
        let outputs = u64::from(self.fan_out.outputs);
        let amount = self.fan_out.amount_min + u64::from(self.fan_out.amount_span);
        outputs * amount + ((200 + 43 * (outputs + 1)) * self.fee_sat_per_kb).div_ceil(1_000)
    }
}

const COINBASE_EACH: &str = "each spends a coinbase from before the first halving";
const STANDARD: &str = "larger transactions are not standard";
/// Outputs of the largest split: a standard transaction has 100,000 virtual bytes.
const SPLIT_OUTPUTS_MAX: u64 = 2_000;
