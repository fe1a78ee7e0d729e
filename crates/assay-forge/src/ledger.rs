//! The ledger: exact counts for a forged chain, as JSON lines.

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use crate::kind::Kind;

/// A phase of a chain, by name in ledgers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Coinbases only.
    Maturity,
    /// Blocks of main-chain size, before the large ones: one input, two outputs, in chains.
    Baseline,
    /// One input, many outputs; in chains on the scaling chains.
    FanOut,
    /// All blocks of [`Phase::Placed`], which is the phase of the blocks themselves.
    Placement,
    /// Many inputs, two outputs, classified by the spent outputs.
    Placed {
        /// Age of the spent outputs.
        age: Age,
        /// Placement of the spent outputs.
        order: SpendOrder,
    },
    /// Many inputs, two outputs.
    Steady1,
    /// Many inputs, one output.
    FanIn,
    /// One input, two outputs.
    Steady2,
    /// Two inputs, two outputs.
    Steady3,
    /// An era of a history.
    Era {
        /// From 1.
        number: u8,
    },
    /// A range of heights of a chain from block files.
    Heights { first: u32, last: u32 },
    /// Transactions with a fixed number of inputs of one kind, and one output.
    Width {
        /// Kind of the spent outputs.
        series: Series,
        /// Inputs per transaction.
        inputs: u32,
    },
}

/// Age of the outputs that a block spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Age {
    /// From the earlier half of the fan-out blocks.
    Old,
    /// From the later half.
    Recent,
}

impl Age {
    pub const ALL: [Self; 2] = [Self::Old, Self::Recent];

    /// Name in ledgers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::Recent => "recent",
        }
    }
}

/// Placement of the outputs that a block spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpendOrder {
    /// Adjacent: all outputs of a transaction, and of transactions with consecutive ids.
    Clustered,
    /// Uniformly random.
    Scattered,
}

impl SpendOrder {
    pub const ALL: [Self; 2] = [Self::Clustered, Self::Scattered];

    /// Name in ledgers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clustered => "clustered",
            Self::Scattered => "scattered",
        }
    }
}

/// Kind of the spent outputs, by signature hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Series {
    /// P2PKH: the original signature hash, over the whole transaction for every input.
    Legacy,
    /// P2WPKH: BIP143, with hashes that all inputs share.
    Segwit,
    /// P2TR by the key path: BIP341, with hashes that all inputs share.
    Taproot,
}

impl Series {
    pub const ALL: [Self; 3] = [Self::Legacy, Self::Segwit, Self::Taproot];

    /// Name in recipes and ledgers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Segwit => "segwit",
            Self::Taproot => "taproot",
        }
    }

    pub fn kind(self) -> Kind {
        match self {
            Self::Legacy => Kind::P2pkh,
            Self::Segwit => Kind::P2wpkh,
            Self::Taproot => Kind::P2trKey,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Width { series, inputs } => write!(f, "{}-{inputs}", series.name()),
            Self::Era { number } => write!(f, "era-{number}"),
            Self::Heights { first, last } => write!(f, "heights-{first}-{last}"),
            Self::Placed { age, order } => write!(f, "{}-{}", age.name(), order.name()),
            _ => match FIXED.iter().find(|(phase, _)| phase == self) {
                Some((_, name)) => f.write_str(name),
                None => Err(fmt::Error),
            },
        }
    }
}

impl FromStr for Phase {
    type Err = UnknownPhase;

    fn from_str(name: &str) -> Result<Self, UnknownPhase> {
        if let Some((phase, _)) = FIXED.iter().find(|(_, fixed)| *fixed == name) {
            return Ok(*phase);
        }
        let width = || {
            let (series, inputs) = name.rsplit_once('-')?;
            let series = Series::ALL.into_iter().find(|known| known.name() == series)?;
            let inputs = inputs.parse().ok()?;
            let phase = Self::Width { series, inputs };
            // One canonical spelling: no signs, no leading zeros.
            (phase.to_string() == name).then_some(phase)
        };
        let era = || {
            let number = name.strip_prefix("era-")?.parse().ok()?;
            let phase = Self::Era { number };
            (phase.to_string() == name).then_some(phase)
        };
        let heights = || {
            let (first, last) = name.strip_prefix("heights-")?.split_once('-')?;
            let phase = Self::Heights { first: first.parse().ok()?, last: last.parse().ok()? };
            (phase.to_string() == name).then_some(phase)
        };
        let placed = || {
            let all = Age::ALL
                .into_iter()
                .flat_map(|age| SpendOrder::ALL.map(|order| Self::Placed { age, order }));
            all.into_iter().find(|phase| phase.to_string() == name)
        };
        let known = era().or_else(heights).or_else(width).or_else(placed);
        known.ok_or_else(|| UnknownPhase { name: name.to_owned() })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no phase {name:?}")]
pub struct UnknownPhase {
    pub name: String,
}

impl Serialize for Phase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Phase {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(de::Error::custom)
    }
}

/// Phases with a fixed name.
const FIXED: [(Phase, &str); 8] = [
    (Phase::Maturity, "maturity"),
    (Phase::Baseline, "baseline"),
    (Phase::FanOut, "fan-out"),
    (Phase::Placement, "placement"),
    (Phase::Steady1, "steady-1"),
    (Phase::FanIn, "fan-in"),
    (Phase::Steady2, "steady-2"),
    (Phase::Steady3, "steady-3"),
];

/// First line: parameters of the chain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainLine {
    /// Format version: 1.
    pub format: u32,
    pub recipe: String,
    pub chain: String,
    pub seed: u64,
    pub scale: f64,
    /// `intended` or `faithful`.
    pub variant: String,
    /// True if no key repeats.
    pub distinct_keys: bool,
    /// Last height, if the forge was set to stop early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_height: Option<u32>,
    /// For a history: factor on the number of transactions per block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_scale: Option<f64>,
    /// Activation height of each soft fork, if the recipe sets it: `-testactivationheight=NAME@HEIGHT` for programs of the
    /// Bitcoin Core family. The blocks are also valid if these forks are active from the start.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub activation: BTreeMap<String, u32>,
    /// Time of the last block of the whole recipe.
    pub end_time: u32,
    /// The four bytes before each block, in hex.
    pub magic: String,
    pub assay_version: String,
    /// SHA-256 of the recipe's text; empty for a chain from block files.
    pub recipe_sha256: String,
    /// Block files of another program, for a chain that was not forged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Box<FilesLine>>,
}

/// Block files of a ledger for a chain that was not forged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesLine {
    /// Absolute path of their folder or of the single file. File names are relative to the folder.
    pub path: PathBuf,
    /// Obfuscation key in hex; absent if they are not obfuscated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xor_key: Option<String>,
    /// Genesis block in hex; the ledger does not list it.
    pub genesis: String,
    pub count: usize,
    pub bytes: u64,
    /// SHA-256 over their names, sizes and modification times.
    pub listing_sha256: String,
    /// SHA-256 over the 80-byte headers from height 0 to the last block of the ledger.
    pub headers_sha256: String,
    /// Height of the branch with the most work.
    pub best_height: u32,
    /// Tip of that branch.
    pub best_hash: String,
    /// Number of blocks on other branches.
    pub stale: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockLine {
    /// Genesis, height 0, is not listed.
    pub height: u32,
    /// Hash in display order.
    pub hash: String,
    pub phase: Phase,
    /// Block file, relative to the ledger.
    pub file: String,
    /// Offset of the raw block in that file.
    pub offset: u64,
    pub bytes: u64,
    /// Four times the size on chains without witnesses.
    pub weight: u64,
    /// Number of transactions, with the coinbase.
    pub txs: u64,
    /// Number of inputs, without the coinbase's.
    pub inputs: u64,
    /// Number of outputs, with the coinbase's (and its witness commitment if any).
    pub outputs: u64,
    /// Number of valid signatures to verify.
    pub signatures: u64,
    pub time: u32,
}

/// Totals of a range of heights, of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeLine {
    pub first: u32,
    pub last: u32,
    /// Number of transactions, here and below without coinbases.
    pub txs: u64,
    pub inputs: u64,
    pub outputs: u64,
    /// Transactions with a witness.
    pub segwit_txs: u64,
    /// Transactions that spend a taproot output.
    pub taproot_txs: u64,
    /// Transactions with more than 50 inputs.
    pub many_input_txs: u64,
    /// Many-input transactions without a witness, with a signature-hash cost quadratic in the inputs.
    pub many_input_legacy_txs: u64,
    /// Transactions with five or more inputs and one output.
    pub consolidations: u64,
    /// Created outputs, by kind.
    pub made: BTreeMap<String, u64>,
    /// Spent outputs, by kind.
    pub spent: BTreeMap<String, u64>,
    /// Spent outputs by age in blocks: 0, 1, 2 to 3, 4 to 7 and so on.
    pub ages: Vec<u64>,
    /// Size of the UTXO set after the last block.
    pub coins: u64,
}

/// Last line: the tip and totals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TipLine {
    pub height: u32,
    /// Hash in display order.
    pub hash: String,
    /// UTXO set size without unspendable outputs and genesis'. For block files this and the amount are not computed: 0.
    pub utxo_count: u64,
    /// Sum of the unspent amounts in satoshi.
    pub utxo_amount: u64,
    /// MuHash of the UTXO set, as in `gettxoutsetinfo muhash`; empty if not computed.
    pub utxo_muhash: String,
    pub txs: u64,
    pub inputs: u64,
    pub outputs: u64,
    pub bytes: u64,
    pub signatures: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Line {
    Chain(ChainLine),
    /// One per block.
    Block(BlockLine),
    /// One after the last block of each range.
    Range(RangeLine),
    Tip(TipLine),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    pub chain: ChainLine,
    /// From height 1 on.
    pub blocks: Vec<BlockLine>,
    /// Empty except for a history.
    pub ranges: Vec<RangeLine>,
    pub tip: TipLine,
}

impl Ledger {
    /// Reads the ledger of a chain directory.
    ///
    /// # Errors
    ///
    /// If it is missing or malformed, or if the forge did not finish.
    pub fn read(dir: &Path) -> Result<Self, LedgerError> {
        let path = dir.join(LEDGER);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && dir.join(LEDGER_PART).exists() =>
            {
                return Err(LedgerError::Incomplete { path: dir.join(LEDGER_PART) });
            }
            Err(source) => return Err(LedgerError::Read { path, source }),
        };
        let (mut chain, mut tip) = (None, None);
        let (mut blocks, mut ranges) = (Vec::new(), Vec::new());
        for (number, line) in text.lines().enumerate() {
            let syntax =
                |source| LedgerError::Syntax { path: path.clone(), line: number + 1, source };
            match serde_json::from_str(line).map_err(syntax)? {
                Line::Chain(line) => chain = Some(line),
                Line::Block(line) => blocks.push(line),
                Line::Range(line) => ranges.push(line),
                Line::Tip(line) => tip = Some(line),
            }
        }
        match (chain, tip) {
            (Some(chain), Some(tip)) => Ok(Self { chain, blocks, ranges, tip }),
            _ => Err(LedgerError::Incomplete { path }),
        }
    }
}

#[derive(Debug, Error)]
pub enum LedgerError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} line {line} is not a ledger line", path.display())]
    Syntax {
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        source: serde_json::Error,
    },
    #[error("{} has no tip line: the forge did not finish; forge again", path.display())]
    Incomplete { path: PathBuf },
}

/// File name of a finished ledger.
pub const LEDGER: &str = "ledger.jsonl";
/// File name of an unfinished ledger.
pub const LEDGER_PART: &str = "ledger.jsonl.part";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_have_one_spelling() {
        let widths = Series::ALL.map(|series| Phase::Width { series, inputs: 1000 });
        let eras = [1, 14, 99].map(|number| Phase::Era { number });
        let heights = [Phase::Heights { first: 1, last: 90 }];
        let all =
            FIXED.map(|(phase, _)| phase).into_iter().chain(widths).chain(eras).chain(heights);
        for phase in all {
            assert_eq!(phase.to_string().parse(), Ok(phase));
        }
        assert_eq!("segwit-25".parse(), Ok(Phase::Width { series: Series::Segwit, inputs: 25 }));
        for name in [
            "",
            "steady-4",
            "legacy",
            "legacy-",
            "legacy-01",
            "legacy-+1",
            "legacy--1",
            "era-",
            "era-01",
            "era-256",
            "heights-1",
            "heights-01-5",
        ] {
            let unknown = name.parse::<Phase>().expect_err("no phase");
            assert_eq!(unknown.name, name);
        }
    }
}
