//! Recipe of a history chain: eras of the main chain as data.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::{RecipeError, check_head, ranges};
use crate::{kind::Kind, network::Network};

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryFile {
    format: u64,
    pub(crate) name: String,
    pub(crate) chain: Network,
    pub(crate) end_time: u32,
    pub(crate) block_interval_s: u32,
    pub(crate) fee_sat_per_kb: u64,
    pub(crate) history: Size,
    pub(crate) shapes: Shapes,
    pub(crate) age: Vec<AgeBand>,
    pub(crate) era: Vec<EraFile>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Size {
    /// Number of blocks at scale 1.
    pub(crate) blocks: u32,
    /// Transactions per block, relative to the main chain.
    pub(crate) bytes: f64,
    /// Number of height ranges summed up in the ledger.
    pub(crate) ranges: u32,
}

/// Minimum and maximum inputs or outputs of the special transactions.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Shapes {
    pub(crate) consolidation_inputs: [u32; 2],
    pub(crate) many_inputs: [u32; 2],
    pub(crate) batch_outputs: [u32; 2],
}

/// Share of spends of outputs up to an age, in heights of the main chain.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgeBand {
    pub(crate) until: u32,
    pub(crate) share: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EraFile {
    pub(crate) title: String,
    /// Last height on the main chain.
    pub(crate) until: u32,
    /// Soft fork activated by the first block.
    pub(crate) fork: Option<Fork>,
    /// Transactions per block, without the coinbase.
    pub(crate) txs: f64,
    /// Mean inputs per transaction.
    pub(crate) inputs: f64,
    /// Size of the UTXO set at the end.
    pub(crate) coins: u64,
    /// Mean block size of the main chain in bytes; unused.
    #[serde(rename = "block_bytes")]
    _block_bytes: u64,
    pub(crate) consolidations: f64,
    pub(crate) many_input: f64,
    pub(crate) batches: f64,
    coinbase: String,
    outputs: BTreeMap<String, f64>,
}

/// Soft forks with a configurable height on test chains (Bitcoin Core, `-testactivationheight`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Fork {
    Bip34,
    Dersig,
    Cltv,
    Csv,
    Segwit,
}

impl Fork {
    /// Name in the `-testactivationheight` option.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bip34 => "bip34",
            Self::Dersig => "dersig",
            Self::Cltv => "cltv",
            Self::Csv => "csv",
            Self::Segwit => "segwit",
        }
    }
}

impl EraFile {
    /// Script kind of coinbase outputs. The recipe must be checked.
    pub(crate) fn coinbase(&self) -> Kind {
        kind(&self.coinbase).expect("checked with the recipe")
    }

    /// Shares of the outputs in the order of [`Kind::ALL`]. The recipe must be checked.
    pub(crate) fn mix(&self) -> [f64; Kind::ALL.len()] {
        Kind::ALL.map(|kind| self.outputs.get(kind.name()).copied().unwrap_or(0.0))
    }

    fn wrong(&self, key: &'static str, value: &impl ToString, rule: &'static str) -> RecipeError {
        RecipeError::Era { era: self.title.clone(), key, value: value.to_string(), rule }
    }

    fn check(&self, is_segwit: bool) -> Result<(), RecipeError> {
        let title = !self.title.is_empty() && self.title.len() <= 80;
        if !title || self.title.chars().any(char::is_control) {
            return Err(self.wrong("title", &self.title, "use 1 to 80 characters of one line"));
        }
        if !(self.txs > 0.0 && self.txs <= 10_000.0) {
            return Err(self.wrong("txs", &self.txs, "choose more than 0, at most 10000"));
        }
        if !(1.0..=20.0).contains(&self.inputs) {
            return Err(self.wrong("inputs", &self.inputs, "choose 1 to 20 for a transaction"));
        }
        for (key, share) in [
            ("consolidations", self.consolidations),
            ("many_input", self.many_input),
            ("batches", self.batches),
        ] {
            if !(0.0..=0.3).contains(&share) {
                return Err(self.wrong(key, &share, "a share of the transactions is 0 to 0.3"));
            }
        }
        self.check_kinds(is_segwit)
    }

    fn check_kinds(&self, is_segwit: bool) -> Result<(), RecipeError> {
        let pays = [(self.coinbase.as_str(), "coinbase")];
        let outputs = self.outputs.keys().map(|name| (name.as_str(), "outputs"));
        for (name, key) in pays.into_iter().chain(outputs) {
            let Some(kind) = kind(name) else {
                let rule = "the kinds are p2pk, p2pkh, p2sh_2of3, multisig_1of2, p2sh_p2wpkh, p2wpkh, p2wsh_2of3, p2tr_key, p2tr_script and op_return";
                return Err(self.wrong(key, &name, rule));
            };
            if kind.has_witness() && !is_segwit {
                let rule = "it needs SegWit, which an era activates with fork = \"segwit\"";
                return Err(self.wrong(key, &name, rule));
            }
            if key == "coinbase" && kind == Kind::OpReturn {
                return Err(self.wrong(key, &name, "coinbases pay to something that can be spent"));
            }
        }
        let shares: Vec<_> = self.outputs.values().copied().collect();
        if !are_shares(&shares) || self.mix()[Kind::OpReturn as usize] > 0.5 {
            let sum: f64 = shares.iter().sum();
            let rule = "shares are not negative and add up to 1, op_return at most 0.5";
            return Err(self.wrong("outputs (sum)", &sum, rule));
        }
        Ok(())
    }
}

impl HistoryFile {
    pub(super) fn check(&self) -> Result<(), RecipeError> {
        check_head(self.format, &self.name, self.block_interval_s, self.fee_sat_per_kb)?;
        if self.chain != Network::Regtest {
            return Err(RecipeError::NotForChain {
                key: "history",
                chain: self.chain.name(),
                reason: "its soft forks are Bitcoin's",
            });
        }
        let (blocks, parts) = (u64::from(self.history.blocks), u64::from(self.history.ranges));
        ranges([
            ("history.blocks", blocks, 1_000..=1_000_000, "each era has blocks"),
            ("history.ranges", parts, 1..=10_000, "each is a line of the ledger"),
        ])?;
        let bytes = self.history.bytes;
        if !(bytes > 0.0 && bytes <= 1.0) {
            let rule = "it is a share of the main chain's blocks, above 0 and at most 1";
            return Err(list("history.bytes", &bytes, rule));
        }
        self.check_shapes()?;
        self.check_ages()?;
        self.check_eras()
    }

    fn check_shapes(&self) -> Result<(), RecipeError> {
        let shapes = self.shapes;
        for (key, [least, most], max) in [
            ("shapes.consolidation_inputs", shapes.consolidation_inputs, 1_000),
            ("shapes.many_inputs", shapes.many_inputs, 1_000),
            ("shapes.batch_outputs", shapes.batch_outputs, 250),
        ] {
            if !(2..=most).contains(&least) || most > max {
                let rule = "give the least, from 2 on, and the most: 1000 inputs, 250 outputs";
                return Err(list(key, &format!("[{least}, {most}]"), rule));
            }
        }
        Ok(())
    }

    fn check_ages(&self) -> Result<(), RecipeError> {
        let until: Vec<_> = self.age.iter().map(|band| band.until).collect();
        let rises = until.windows(2).all(|pair| pair[0] < pair[1]);
        if !(1..=64).contains(&until.len()) || !rises || until.last() == Some(&0) {
            let rule = "give 1 to 64 ages, each larger than the one before, the last above 0";
            return Err(list("age.until", &format!("{until:?}"), rule));
        }
        let shares: Vec<_> = self.age.iter().map(|band| band.share).collect();
        if !are_shares(&shares) {
            let rule = "shares are not negative and add up to 1";
            return Err(list("age.share (sum)", &shares.iter().sum::<f64>(), rule));
        }
        Ok(())
    }

    fn check_eras(&self) -> Result<(), RecipeError> {
        if !(1..=99).contains(&self.era.len()) {
            return Err(list("era", &self.era.len(), "a history has 1 to 99 eras"));
        }
        let (mut until, mut forks) = (0, BTreeSet::new());
        let mut coins = 0;
        for era in &self.era {
            if let Some(fork) = era.fork
                && (forks.iter().any(|other| *other >= fork) || until == 0)
            {
                let rule = "forks are bip34, dersig, cltv, csv and segwit, in this order, each once, and none in the first era";
                return Err(era.wrong("fork", &fork.name(), rule));
            }
            forks.extend(era.fork);
            if era.until <= until || era.until > HEIGHT_MAX {
                let rule = "heights rise from era to era, to 10000000 at most";
                return Err(era.wrong("until", &era.until, rule));
            }
            era.check(forks.contains(&Fork::Segwit))?;
            let outputs = outputs_of_tx(era, era.until - until, coins);
            if !(1.0..=100.0).contains(&outputs) {
                let rule = "with `inputs`, `txs` and the era before, it gives the outputs of a transaction, which must be 1 to 100";
                return Err(era.wrong("coins", &era.coins, rule));
            }
            (until, coins) = (era.until, era.coins);
        }
        Ok(())
    }
}

/// Outputs per transaction, unspendable ones included, by which the UTXO set grows over `heights` from `coins` to its size at the
/// end of the era. Every coinbase adds one.
pub(crate) fn outputs_of_tx(era: &EraFile, heights: u32, coins: u64) -> f64 {
    let growth = (era.coins as f64 - coins as f64) / f64::from(heights) - 1.0;
    (era.inputs + growth / era.txs) / (1.0 - era.mix()[Kind::OpReturn as usize])
}

fn kind(name: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.name() == name)
}

fn are_shares(shares: &[f64]) -> bool {
    shares.iter().all(|share| *share >= 0.0) && (shares.iter().sum::<f64>() - 1.0).abs() < 1e-6
}

fn list(key: &'static str, value: &impl ToString, rule: &'static str) -> RecipeError {
    RecipeError::List { key, value: value.to_string(), rule }
}

/// A thousand times the weekly growth of the main chain: heights stay far from the limits of their type.
const HEIGHT_MAX: u32 = 10_000_000;
