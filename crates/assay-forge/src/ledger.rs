//! The ledger: exact counts of everything in a forged chain, as JSON lines.

use std::{
    collections::BTreeMap,
    fmt, fs, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use crate::kind::Kind;

/// A phase of a chain. Ledgers hold its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Coinbases only.
    Maturity,
    /// Blocks of main-chain size, before the large ones: one input, two outputs, in chains.
    Baseline,
    /// One input, many outputs; of the scaling chains, in chains.
    FanOut,
    /// All blocks of [`Phase::Placed`]; blocks themselves have that one.
    Placement,
    /// Many inputs, two outputs, by which outputs are spent.
    Placed {
        /// How old they are.
        age: Age,
        /// Where they lie.
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
    /// An era of a history, from 1.
    Era {
        /// Its number.
        number: u8,
    },
    /// Some heights of a chain from block files.
    Heights {
        /// The first one.
        first: u32,
        /// The last one.
        last: u32,
    },
    /// Transactions of one width: so many inputs of one kind, one output.
    Width {
        /// What the inputs spend.
        series: Series,
        /// Inputs of a transaction.
        inputs: u32,
    },
}

/// How old the outputs are that a block spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Age {
    /// Of the earlier half of the fan-out blocks.
    Old,
    /// Of the later half.
    Recent,
}

impl Age {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Old, Self::Recent];

    /// The name as ledgers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Old => "old",
            Self::Recent => "recent",
        }
    }
}

/// Where the outputs lie that a block spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpendOrder {
    /// Neighbours: all outputs of a transaction, and of transactions whose ids follow each other.
    Clustered,
    /// Drawn from everywhere.
    Scattered,
}

impl SpendOrder {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Clustered, Self::Scattered];

    /// The name as ledgers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Clustered => "clustered",
            Self::Scattered => "scattered",
        }
    }
}

/// What the inputs of a transaction spend, by the signature hash that this takes.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Legacy, Self::Segwit, Self::Taproot];

    /// The name as recipes and ledgers write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Segwit => "segwit",
            Self::Taproot => "taproot",
        }
    }

    /// How the outputs are locked.
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
            // One spelling for each: no signs, no leading zeros.
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

/// A name that no phase has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no phase {name:?}")]
pub struct UnknownPhase {
    /// The name.
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

/// The phases that have one name each.
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

/// First line: what was forged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainLine {
    /// Version of this format: 1.
    pub format: u32,
    /// Name of the recipe.
    pub recipe: String,
    /// Name of the chain.
    pub chain: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Scale asked for.
    pub scale: f64,
    /// `intended` or `faithful`.
    pub variant: String,
    /// Whether no key repeats.
    pub distinct_keys: bool,
    /// The last height, where the forge was told to stop early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_height: Option<u32>,
    /// Of a history: the factor on the transactions of its blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_scale: Option<f64>,
    /// Height from which each soft fork is active, where the recipe chooses it: what programs of the Bitcoin Core family take as
    /// `-testactivationheight=NAME@HEIGHT`. The blocks are also valid where these forks are active from the start.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub activation: BTreeMap<String, u32>,
    /// Time of the last block of the whole recipe.
    pub end_time: u32,
    /// The four bytes in front of each block, in hex.
    pub magic: String,
    /// Version of the forge.
    pub assay_version: String,
    /// SHA-256 of the recipe's text; empty where nothing was forged.
    pub recipe_sha256: String,
    /// The block files of another program, where the chain is theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Box<FilesLine>>,
}

/// Block files that a ledger was made of: blocks lie there, and nothing was forged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesLine {
    /// Their folder, or the one file, absolute. Names of files are relative to the folder.
    pub path: PathBuf,
    /// The key that they are obfuscated with, in hex; absent where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xor_key: Option<String>,
    /// The first block of the chain, which the ledger does not list, in hex.
    pub genesis: String,
    /// How many there are.
    pub count: usize,
    /// Their length.
    pub bytes: u64,
    /// SHA-256 over their names, lengths and times of change.
    pub listing_sha256: String,
    /// SHA-256 over the 80-byte headers from height 0 to the last block of the ledger.
    pub headers_sha256: String,
    /// Height of the branch with the most work in them.
    pub best_height: u32,
    /// Its last block.
    pub best_hash: String,
    /// Blocks on other branches.
    pub stale: usize,
}

/// One block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockLine {
    /// Height; genesis, height 0, is not listed.
    pub height: u32,
    /// Hash, as nodes print it.
    pub hash: String,
    /// Phase it belongs to.
    pub phase: Phase,
    /// Block file, relative to the ledger.
    pub file: String,
    /// Where the raw block begins in that file.
    pub offset: u64,
    /// Its length.
    pub bytes: u64,
    /// Its weight; four times the length where there are no witnesses.
    pub weight: u64,
    /// Transactions, with the coinbase.
    pub txs: u64,
    /// Inputs, without the coinbase's.
    pub inputs: u64,
    /// Outputs, with the coinbase's (and its witness commitment where there is one).
    pub outputs: u64,
    /// Valid signatures to verify.
    pub signatures: u64,
    /// Time in the header.
    pub time: u32,
}

/// What a range of heights has, of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeLine {
    /// Its first height.
    pub first: u32,
    /// Its last height.
    pub last: u32,
    /// Transactions, coinbases left out, as everywhere below.
    pub txs: u64,
    /// Their inputs.
    pub inputs: u64,
    /// Their outputs.
    pub outputs: u64,
    /// Transactions that have a witness.
    pub segwit_txs: u64,
    /// Transactions that spend a taproot output.
    pub taproot_txs: u64,
    /// Transactions of more than 50 inputs.
    pub many_input_txs: u64,
    /// Those of them without a witness, whose signature hashes grow with the square of the inputs.
    pub many_input_legacy_txs: u64,
    /// Transactions of five or more inputs and one output.
    pub consolidations: u64,
    /// Outputs made, by kind.
    pub made: BTreeMap<String, u64>,
    /// Outputs spent, by kind.
    pub spent: BTreeMap<String, u64>,
    /// Outputs spent by age in blocks: of the same block, of 1, of 2 to 3, of 4 to 7 and so on.
    pub ages: Vec<u64>,
    /// Coins in the set after its last block.
    pub coins: u64,
}

/// Last line: where the chain ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TipLine {
    /// Height of the last block.
    pub height: u32,
    /// Its hash, as nodes print it.
    pub hash: String,
    /// Unspent outputs (unspendable ones and genesis' not counted). Of block files nobody has counted them: 0, as the next.
    pub utxo_count: u64,
    /// Their sum in satoshi.
    pub utxo_amount: u64,
    /// Their MuHash, as `gettxoutsetinfo muhash` prints it; empty where nobody has counted them.
    pub utxo_muhash: String,
    /// Sum of the blocks' `txs`.
    pub txs: u64,
    /// Sum of the blocks' `inputs`.
    pub inputs: u64,
    /// Sum of the blocks' `outputs`.
    pub outputs: u64,
    /// Sum of the blocks' `bytes`.
    pub bytes: u64,
    /// Sum of the blocks' `signatures`.
    pub signatures: u64,
}

/// A line of `ledger.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Line {
    /// First line.
    Chain(ChainLine),
    /// One for each block.
    Block(BlockLine),
    /// One behind the last block of each range.
    Range(RangeLine),
    /// Last line.
    Tip(TipLine),
}

/// A whole ledger.
#[derive(Clone, Debug, PartialEq)]
pub struct Ledger {
    /// What was forged.
    pub chain: ChainLine,
    /// The blocks from height 1 on.
    pub blocks: Vec<BlockLine>,
    /// What ranges of heights have; empty but for a history.
    pub ranges: Vec<RangeLine>,
    /// Where the chain ends.
    pub tip: TipLine,
}

impl Ledger {
    /// Reads the ledger of a chain directory.
    ///
    /// # Errors
    ///
    /// If there is none, if it does not read, or if the forge did not finish.
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

/// Why a ledger cannot be used.
#[derive(Debug, Error)]
pub enum LedgerError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The ledger.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is not one of a ledger.
    #[error("{} line {line} is not a ledger line", path.display())]
    Syntax {
        /// The ledger.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// Why.
        source: serde_json::Error,
    },
    /// The forge was interrupted.
    #[error("{} has no tip line: the forge did not finish; forge again", path.display())]
    Incomplete {
        /// The ledger.
        path: PathBuf,
    },
}

/// File name of a finished ledger.
pub const LEDGER: &str = "ledger.jsonl";
/// File name of a ledger while the forge is at work.
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
