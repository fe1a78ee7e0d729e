//! Recipe of a scaling chain: fan-out, steady state, fan-in.

use assay_consensus::params::{COINBASE_MATURITY, MAX_BLOCK_WEIGHT};
use serde::Deserialize;

use super::{Blocks, RecipeError, check_head, range};
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
        range(
            "maturity.blocks",
            self.maturity.blocks.into(),
            mature..=140,
            "a coinbase can be spent after 100 blocks, and those spent are from before the first halving",
        )?;
        range(
            "fan_out.blocks",
            self.fan_out.blocks.into(),
            1..=100,
            "each spends a coinbase from before the first halving",
        )?;
        if let Some(placement) = self.placement {
            self.check_placement(placement)?;
        }
        range("steady_1.blocks", self.steady_1.blocks.into(), 0..=1_000, "0 leaves the phase out")?;
        range(
            "fan_in.blocks",
            self.fan_in.blocks.into(),
            0..=self.steady_1.blocks.into(),
            "each spends one steady-1 block",
        )?;
        range(
            "fan_in.inputs",
            self.fan_in.inputs.into(),
            2..=600,
            "larger transactions are not standard",
        )?;
        range("steady_2.blocks", self.steady_2.blocks.into(), 0..=1_000, "0 leaves the phase out")?;
        range(
            "steady_3.blocks",
            self.steady_3.blocks.into(),
            0..=100,
            "each spends a coinbase from before the first halving",
        )?;
        range(
            "steady_3.coinbase_outputs",
            self.steady_3.coinbase_outputs.into(),
            1..=2_000,
            "larger transactions are not standard",
        )?;
        let between =
            self.maturity.blocks + self.steady_1.blocks + self.fan_in.blocks + self.steady_2.blocks;
        if self.steady_3.blocks > 0 && between <= COINBASE_MATURITY {
            return Err(RecipeError::Together {
                keys: "maturity.blocks, steady_1.blocks, fan_in.blocks and steady_2.blocks",
                have: between.into(),
                need: u64::from(COINBASE_MATURITY) + 1,
                unit: "blocks",
                reason: "before steady-3 can spend its coinbases; add maturity blocks",
            });
        }
        Ok(())
    }

    /// The placement uses the coins of the first two steady phases.
    fn check_placement(&self, placement: Rounds) -> Result<(), RecipeError> {
        range("placement.rounds", placement.rounds.into(), 1..=100, "each has four blocks")?;
        range(
            "fan_out.blocks",
            self.fan_out.blocks.into(),
            2..=100,
            "the placement has an earlier and a later half",
        )?;
        for (key, blocks) in
            [("steady_1.blocks", self.steady_1.blocks), ("steady_2.blocks", self.steady_2.blocks)]
        {
            range(key, blocks.into(), 0..=0, "the placement spends the same outputs")?;
        }
        Ok(())
    }

    fn check_fan_out(&self) -> Result<(), RecipeError> {
        let fan_out = &self.fan_out;
        range(
            "fan_out.outputs",
            fan_out.outputs.into(),
            1..=250,
            "larger counts change the layout of a transaction",
        )?;
        range("fan_out.amount_min", fan_out.amount_min, DUST..=1_000_000, "less is dust")?;
        range(
            "fan_out.amount_span",
            fan_out.amount_span.into(),
            1..=1_000_000,
            "the span of amounts starts at one value",
        )?;
        // A steady-1 transaction of P2PKH inputs, the largest kind: its two outputs must not be dust.
        let outputs = u64::from(fan_out.outputs);
        let fee = ((outputs * 149 + 90) * self.fee_sat_per_kb).div_ceil(1_000);
        let (have, need) = (outputs * fan_out.amount_min, fee + 2 * DUST);
        if have < need {
            return Err(RecipeError::Together {
                keys: "fan_out.outputs, fan_out.amount_min and fee_sat_per_kb",
                have,
                need,
                unit: "satoshi",
                reason: "for two outputs and the fee of a steady-1 transaction; raise the outputs or their amount",
            });
        }
        Ok(())
    }

    fn check_bch(&self) -> Result<(), RecipeError> {
        let chain = self.chain.name();
        let bytes =
            self.block_bytes_max.ok_or(RecipeError::Missing { key: "block_bytes_max", chain })?;
        range(
            "block_bytes_max",
            bytes,
            1_000_000..=2_000_000_000,
            "block files hold 32-bit lengths",
        )?;
        let chains =
            self.fan_out.chains.ok_or(RecipeError::Missing { key: "fan_out.chains", chain })?;
        range("fan_out.chains", chains.into(), 1..=200, "one coinbase funds them all")?;
        self.check_baseline(bytes)?;
        let not = |key, reason| Err(RecipeError::NotForChain { key, chain, reason });
        if self.block_weight_max.is_some() {
            return not("block_weight_max", "blocks are limited in bytes");
        }
        if self.fan_out.chain_depth.is_some() {
            return not("fan_out.chain_depth", "chains run until the coin is spent");
        }
        if self.scripts.is_some() {
            return not("scripts", "every output is P2PKH");
        }
        // The first transaction of each chain at scale 1; smaller scales are checked with the options.
        let start = self.chain.subsidy(1) / u64::from(chains) - SPLIT_FEE;
        let need = self.fan_out_tx_max() + DUST;
        if start < need {
            return Err(RecipeError::Together {
                keys: "fan_out.chains, fan_out.outputs, fan_out.amount_min and fan_out.amount_span",
                have: start,
                need,
                unit: "satoshi",
                reason: "for the first transaction of a chain; lower the amounts or the chains",
            });
        }
        Ok(())
    }

    fn check_baseline(&self, block_bytes_max: u64) -> Result<(), RecipeError> {
        let Some(baseline) = self.baseline else { return Ok(()) };
        range(
            "baseline.blocks",
            baseline.blocks.into(),
            0..=20,
            "each spends a coinbase from before the first halving",
        )?;
        range(
            "baseline.block_bytes",
            baseline.block_bytes,
            100_000..=block_bytes_max.min(4_000_000),
            "blocks of main-chain size",
        )?;
        range(
            "baseline.chains",
            baseline.chains.into(),
            1..=20,
            "one coinbase funds them all, and the smallest block holds them",
        )
    }

    fn check_bitcoin(&self) -> Result<(), RecipeError> {
        let chain = self.chain.name();
        let weight =
            self.block_weight_max.ok_or(RecipeError::Missing { key: "block_weight_max", chain })?;
        range(
            "block_weight_max",
            weight,
            100_000..=MAX_BLOCK_WEIGHT,
            "BIP141 allows 4,000,000 weight units",
        )?;
        let depth = self
            .fan_out
            .chain_depth
            .ok_or(RecipeError::Missing { key: "fan_out.chain_depth", chain })?;
        range(
            "fan_out.chain_depth",
            depth.into(),
            1..=24,
            "a mempool takes 25 unconfirmed ancestors at most",
        )?;
        let scripts = self.scripts.ok_or(RecipeError::Missing { key: "scripts", chain })?;
        let not = |key, reason| Err(RecipeError::NotForChain { key, chain, reason });
        if self.block_bytes_max.is_some() {
            return not("block_bytes_max", "blocks are limited in weight");
        }
        if self.baseline.is_some() {
            return not("baseline", "all blocks are of main-chain size");
        }
        if self.fan_out.chains.is_some() {
            return not("fan_out.chains", "the block is filled with as many chains as fit");
        }
        let total: u64 = scripts.weights().iter().map(|weight| u64::from(*weight)).sum();
        range("the sum of [scripts]", total, 1..=1_000_000, "the weights share out the outputs")?;
        self.check_split(weight, depth.into())
    }

    /// One standard transaction must be able to split a coinbase for all chains of a block.
    fn check_split(&self, weight: u64, depth: u64) -> Result<(), RecipeError> {
        let lightest = self.fan_out_lightest();
        let depth_min = weight.div_ceil(lightest * SPLIT_OUTPUTS_MAX);
        range(
            "fan_out.chain_depth",
            depth,
            depth_min..=24,
            "one standard transaction funds all chains of a block, and a mempool takes 25 unconfirmed ancestors at most",
        )?;
        let need = self.split_max(weight, depth);
        let have = self.chain.subsidy(1);
        if have < need {
            return Err(RecipeError::Together {
                keys: "fan_out.amount_min, fan_out.amount_span and block_weight_max",
                have,
                need,
                unit: "satoshi",
                reason: "for the outputs of one fan-out block, which one coinbase pays; lower the amounts",
            });
        }
        Ok(())
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

/// Outputs of the largest split: a standard transaction has 100,000 virtual bytes.
const SPLIT_OUTPUTS_MAX: u64 = 2_000;
