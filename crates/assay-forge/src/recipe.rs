//! Recipes: what a chain is made of, as TOML.

use std::{fmt, ops::RangeInclusive};

use serde::Deserialize;
use thiserror::Error;

use crate::{
    kind::Kind,
    network::{BLOCK_WEIGHT_MAX, COINBASE_MATURITY, DUST, Network},
    phases::fan_out::{CHAIN_REST, SPLIT_FEE},
    widths::WidthsFile,
};

/// A checked recipe.
#[derive(Clone, Debug)]
pub struct Recipe {
    pub(crate) kind: RecipeKind,
    sha256: [u8; 32],
}

/// Recipes by what they make.
#[derive(Clone, Debug)]
pub(crate) enum RecipeKind {
    /// Fan-out, steady state, fan-in.
    Scaling(Box<RecipeFile>),
    /// Transactions of few to many inputs.
    Widths(Box<WidthsFile>),
}

impl Recipe {
    /// A recipe that comes with the program.
    ///
    /// # Errors
    ///
    /// [`RecipeError::Unknown`] if there is none of this name.
    pub fn builtin(name: &str) -> Result<Self, RecipeError> {
        match BUILTIN.iter().find(|(builtin, _)| *builtin == name) {
            Some((_, text)) => Self::from_toml(text),
            None => Err(RecipeError::Unknown { name: name.to_owned() }),
        }
    }

    /// Names of the recipes that come with the program.
    pub fn builtin_names() -> impl Iterator<Item = &'static str> {
        BUILTIN.iter().map(|(name, _)| *name)
    }

    /// The text of a recipe that comes with the program: a commented start for one's own.
    pub fn builtin_text(name: &str) -> Option<&'static str> {
        BUILTIN.iter().find(|(builtin, _)| *builtin == name).map(|(_, text)| *text)
    }

    /// Reads and checks a recipe.
    ///
    /// # Errors
    ///
    /// What is wrong, where, and what would be right.
    pub fn from_toml(text: &str) -> Result<Self, RecipeError> {
        let tables: toml::Table = toml::from_str(text).map_err(RecipeError::Syntax)?;
        let kind = if tables.contains_key("widths") {
            let file: WidthsFile = toml::from_str(text).map_err(RecipeError::Syntax)?;
            file.check()?;
            RecipeKind::Widths(Box::new(file))
        } else {
            let file: RecipeFile = toml::from_str(text).map_err(RecipeError::Syntax)?;
            file.check()?;
            RecipeKind::Scaling(Box::new(file))
        };
        Ok(Self { kind, sha256: assay_hash::sha256(text.as_bytes()) })
    }

    /// The recipe's own name.
    pub fn name(&self) -> &str {
        match &self.kind {
            RecipeKind::Scaling(file) => &file.name,
            RecipeKind::Widths(file) => &file.name,
        }
    }

    /// The chain it is for.
    pub fn network(&self) -> Network {
        match &self.kind {
            RecipeKind::Scaling(file) => file.chain,
            RecipeKind::Widths(file) => file.chain,
        }
    }

    /// SHA-256 of the recipe's text.
    pub fn sha256(&self) -> [u8; 32] {
        self.sha256
    }
}

/// Why a recipe cannot be followed.
#[derive(Debug, Error)]
pub enum RecipeError {
    /// There is no such recipe in the program.
    #[error(
        "there is no built-in recipe {name:?}; there are bch-scaling, bitcoin-scaling and sighash-scaling, or give the path of a TOML file"
    )]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// Not TOML, an unknown or missing key, or a value of the wrong type.
    #[error("the recipe does not read: {0}")]
    Syntax(#[source] toml::de::Error),
    /// A number outside of what can be forged.
    #[error("{key} = {value} is impossible: {reason}; choose {min} to {max}")]
    Range {
        /// Where: the key with its table.
        key: &'static str,
        /// What was given.
        value: u64,
        /// Smallest possible value.
        min: u64,
        /// Largest possible value.
        max: u64,
        /// What the bound protects.
        reason: &'static str,
    },
    /// A key that this chain needs is absent.
    #[error("{key} is missing: a recipe for {chain} needs it; add it")]
    Missing {
        /// The key with its table.
        key: &'static str,
        /// Name of the chain.
        chain: &'static str,
    },
    /// A key that means nothing on this chain.
    #[error("{key} means nothing on {chain}: {reason}; remove it")]
    NotForChain {
        /// The key with its table.
        key: &'static str,
        /// Name of the chain.
        chain: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// Numbers that are possible alone but not together.
    #[error("{keys} do not go together: {have} {unit}, but {need} {unit} are needed {reason}")]
    Together {
        /// The keys concerned.
        keys: &'static str,
        /// What they give.
        have: u64,
        /// What is needed.
        need: u64,
        /// Unit of both numbers.
        unit: &'static str,
        /// For what, and what to change.
        reason: &'static str,
    },
    /// A list that cannot be followed.
    #[error("{key} = {value} is impossible: {rule}")]
    List {
        /// The key with its table.
        key: &'static str,
        /// What was given.
        value: String,
        /// The rule it breaks.
        rule: &'static str,
    },
    /// A name that cannot stand in a ledger.
    #[error("name = {name:?} is impossible: use 1 to 64 letters, digits, dots and hyphens")]
    Name {
        /// The name given.
        name: String,
    },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecipeFile {
    format: u64,
    pub(crate) name: String,
    pub(crate) chain: Network,
    pub(crate) end_time: u32,
    pub(crate) block_interval_s: u32,
    pub(crate) block_bytes_max: Option<u64>,
    pub(crate) block_weight_max: Option<u64>,
    pub(crate) fee_sat_per_kb: u64,
    pub(crate) maturity: Blocks,
    pub(crate) fan_out: FanOut,
    pub(crate) steady_1: Blocks,
    pub(crate) fan_in: FanIn,
    pub(crate) steady_2: Blocks,
    pub(crate) steady_3: Steady3,
    pub(crate) scripts: Option<Scripts>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Blocks {
    pub(crate) blocks: u32,
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
    /// Weights in the order of [`Kind::ALL`].
    pub(crate) fn weights(&self) -> [u32; Kind::ALL.len()] {
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

impl RecipeFile {
    fn check(&self) -> Result<(), RecipeError> {
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
        // One steady-1 transaction of P2PKH inputs, the dearest: its two outputs must not be dust.
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

    fn check_bitcoin(&self) -> Result<(), RecipeError> {
        let chain = self.chain.name();
        let weight =
            self.block_weight_max.ok_or(RecipeError::Missing { key: "block_weight_max", chain })?;
        range(
            "block_weight_max",
            weight,
            100_000..=BLOCK_WEIGHT_MAX,
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
        if self.fan_out.chains.is_some() {
            return not("fan_out.chains", "the block is filled with as many chains as fit");
        }
        let total: u64 = scripts.weights().iter().map(|weight| u64::from(*weight)).sum();
        range("the sum of [scripts]", total, 1..=1_000_000, "the weights share out the outputs")?;
        self.check_split(weight, depth.into())
    }

    /// One standard transaction must be able to split a coinbase for all chains of a block.
    fn check_split(&self, weight: u64, depth: u64) -> Result<(), RecipeError> {
        // The lightest fan-out transaction: a taproot input, P2WPKH outputs.
        let lightest = 4 * (57 + 31 * (u64::from(self.fan_out.outputs) + 1));
        let depth_min = weight.div_ceil(lightest * SPLIT_OUTPUTS_MAX);
        range(
            "fan_out.chain_depth",
            depth,
            depth_min..=24,
            "one standard transaction funds all chains of a block, and a mempool takes 25 unconfirmed ancestors at most",
        )?;
        let txs = weight / lightest + 1;
        let need = txs * self.fan_out_tx_max() + (txs / depth + 1) * CHAIN_REST;
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

    /// The most that a fan-out transaction spends beside its change: every amount at its largest, and the fee on P2PKH.
    pub(crate) fn fan_out_tx_max(&self) -> u64 {
        let outputs = u64::from(self.fan_out.outputs);
        let amount = self.fan_out.amount_min + u64::from(self.fan_out.amount_span);
        outputs * amount + ((200 + 43 * (outputs + 1)) * self.fee_sat_per_kb).div_ceil(1_000)
    }
}

/// What every recipe begins with.
pub(crate) fn check_head(
    format: u64,
    name: &str,
    block_interval_s: u32,
    fee_sat_per_kb: u64,
) -> Result<(), RecipeError> {
    range("format", format, 1..=1, "this program reads format 1")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if name.is_empty() || name.len() > 64 || !name.chars().all(plain) {
        return Err(RecipeError::Name { name: name.to_owned() });
    }
    range(
        "block_interval_s",
        block_interval_s.into(),
        1..=86_400,
        "each block must be later than the one before",
    )?;
    range(
        "fee_sat_per_kb",
        fee_sat_per_kb,
        1_000..=20_000,
        "nodes relay from 1 satoshi per byte on, and the outputs are small",
    )
}

pub(crate) fn range(
    key: &'static str,
    value: u64,
    allowed: RangeInclusive<u64>,
    reason: &'static str,
) -> Result<(), RecipeError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    Err(RecipeError::Range { key, value, min: *allowed.start(), max: *allowed.end(), reason })
}

impl fmt::Display for Recipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.name(), self.network().name())
    }
}

/// Outputs of the largest split: a standard transaction has 100,000 virtual bytes.
const SPLIT_OUTPUTS_MAX: u64 = 2_000;
const BUILTIN: [(&str, &str); 3] = [
    ("bch-scaling", include_str!("../recipes/bch-scaling.toml")),
    ("bitcoin-scaling", include_str!("../recipes/bitcoin-scaling.toml")),
    ("sighash-scaling", include_str!("../recipes/sighash-scaling.toml")),
];
