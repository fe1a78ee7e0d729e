//! The ledger: exact counts for a chain, as JSON lines.
//!
//! A chain directory holds `ledger.jsonl` (a chain line, one line per block, range lines of a history, a tip line), block files in
//! Bitcoin Core's framing under `blocks/`, and under `order/` one file per block with a record per transaction in generation
//! order. A ledger without a tip line is unfinished. The forge writes the format; forge, laboratory and command line read it.
//!
//! ```
//! use assay_ledger::{Ledger, LedgerError};
//! let missing = Ledger::read(std::path::Path::new("/nonexistent"));
//! assert!(matches!(missing, Err(LedgerError::Read { .. })));
//! ```
//!
//! Deliberately absent: making and validating chains.

mod phase;
pub mod scripts;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use crate::phase::{Age, Phase, Series, SpendOrder, UnknownPhase};

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

impl fmt::Display for ChainLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, scale {}, seed {}", self.recipe, self.scale, self.seed)
    }
}

/// Block files of a ledger for a chain that was not forged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesLine {
    /// Absolute path of their folder or of the single file. File names are relative to the folder.
    pub path: PathBuf,
    /// Obfuscation key in hex; absent if they are not obfuscated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xor_key: Option<String>,
    /// Genesis block in hex; the ledger does not list it. Absent in results.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub genesis: String,
    pub count: usize,
    pub bytes: u64,
    /// SHA-256 over their names, sizes and modification times. Absent in older results.
    #[serde(default)]
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
    pub signatures: u64,
    pub time: u32,
}

/// Totals of a range of heights, of a history. Older results lack some fields.
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
    #[serde(default)]
    pub taproot_txs: u64,
    /// Transactions with more than 50 inputs.
    pub many_input_txs: u64,
    /// Many-input transactions without a witness, with a signature-hash cost quadratic in the inputs.
    pub many_input_legacy_txs: u64,
    /// Transactions with five or more inputs and one output.
    #[serde(default)]
    pub consolidations: u64,
    /// Created outputs, by kind.
    #[serde(default)]
    pub made: BTreeMap<String, u64>,
    /// Spent outputs, by kind.
    #[serde(default)]
    pub spent: BTreeMap<String, u64>,
    /// Spent outputs by age in blocks: 0, 1, 2 to 3, 4 to 7 and so on.
    #[serde(default)]
    pub ages: Vec<u64>,
    /// Size of the UTXO set after the last block.
    pub coins: u64,
}

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
    /// Reads the ledger of a finished chain directory.
    ///
    /// # Errors
    /// If it is missing, malformed or inconsistent, or if the forge did not finish.
    pub fn read(dir: &Path) -> Result<Self, LedgerError> {
        let path = dir.join(LEDGER);
        let read_error = |source| LedgerError::Read { path: path.clone(), source };
        let file = match File::open(&path) {
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && dir.join(LEDGER_PART).exists() =>
            {
                return Err(LedgerError::Incomplete { path: dir.join(LEDGER_PART) });
            }
            other => other.map_err(read_error)?,
        };
        let (mut chain, mut blocks, mut ranges, mut tip) = (None, Vec::new(), Vec::new(), None);
        for (index, text) in BufReader::new(file).lines().enumerate() {
            let line = index + 1;
            let wrong = |what| LedgerError::Inconsistent { path: path.clone(), line, what };
            let parsed = serde_json::from_str(&text.map_err(read_error)?)
                .map_err(|source| LedgerError::Syntax { path: path.clone(), line, source })?;
            match parsed {
                _ if tip.is_some() => return Err(wrong("something follows the tip")),
                Line::Chain(_) if chain.is_some() => return Err(wrong("a second chain line")),
                Line::Chain(first) if first.format == FORMAT => chain = Some(first),
                Line::Chain(_) => return Err(wrong("only chain format 1 is known")),
                _ if chain.is_none() => return Err(wrong("no chain line before it")),
                Line::Block(block) => {
                    check_block(&block, blocks.len()).map_err(wrong)?;
                    blocks.push(block);
                }
                Line::Range(range) => {
                    check_range(&range, &ranges, blocks.len()).map_err(wrong)?;
                    ranges.push(range);
                }
                Line::Tip(last) => {
                    check_tip(&last, &blocks).map_err(wrong)?;
                    tip = Some(last);
                }
            }
        }
        match (chain, tip) {
            (Some(chain), Some(tip)) => Ok(Self { chain, blocks, ranges, tip }),
            _ => Err(LedgerError::Incomplete { path }),
        }
    }
}

fn check_block(block: &BlockLine, before: usize) -> Result<(), &'static str> {
    if block.height as usize != before + 1 {
        return Err("heights must rise by one from 1");
    }
    // Order files use 32-bit offsets; no block of the chain family is larger.
    if block.txs == 0 || block.bytes == 0 || block.bytes > u64::from(u32::MAX) {
        return Err("a block has a coinbase and at most 4 GiB");
    }
    let plain = |part| matches!(part, Component::Normal(_));
    if !Path::new(&block.file).components().all(plain) {
        return Err("a block file lies inside the directory");
    }
    Ok(())
}

fn check_range(range: &RangeLine, before: &[RangeLine], blocks: usize) -> Result<(), &'static str> {
    let first = before.last().map_or(1, |last| last.last + 1);
    if range.first == first && range.last >= first && range.last as usize == blocks {
        Ok(())
    } else {
        Err("a range begins behind the one before and ends with the block above its line")
    }
}

fn check_tip(tip: &TipLine, blocks: &[BlockLine]) -> Result<(), &'static str> {
    let Some(last) = blocks.last() else { return Err("a tip without blocks") };
    if tip.height != last.height || tip.hash != last.hash {
        return Err("the tip is not the last block");
    }
    let sum = |count: fn(&BlockLine) -> u64| blocks.iter().map(count).sum::<u64>();
    let agrees = tip.txs == sum(|block| block.txs)
        && tip.inputs == sum(|block| block.inputs)
        && tip.outputs == sum(|block| block.outputs)
        && tip.bytes == sum(|block| block.bytes)
        && tip.signatures == sum(|block| block.signatures);
    if agrees { Ok(()) } else { Err("the totals are not the sums of the blocks") }
}

#[derive(Debug, Error)]
pub enum LedgerError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}, line {line}: not a ledger line", path.display())]
    Syntax { path: PathBuf, line: usize, source: serde_json::Error },
    #[error("{}, line {line}: {what}", path.display())]
    Inconsistent { path: PathBuf, line: usize, what: &'static str },
    #[error("{} has no tip line: the chain is unfinished; forge again", path.display())]
    Incomplete { path: PathBuf },
}

pub const LEDGER: &str = "ledger.jsonl";
pub const LEDGER_PART: &str = "ledger.jsonl.part";
pub const FORMAT: u32 = 1;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const HEADER: &str = r#"{"kind":"chain","format":1,"recipe":"r","chain":"regtest","seed":7,"scale":0.5,"variant":"intended","distinct_keys":false,"end_time":1,"magic":"fabfb5da","assay_version":"0.1.0","recipe_sha256":"00"}"#;
    const BLOCK: &str = r#"{"kind":"block","height":1,"hash":"aa","phase":"maturity","file":"blocks/blk00000.dat","offset":8,"bytes":5,"weight":20,"txs":2,"inputs":1,"outputs":3,"signatures":1,"time":1}"#;
    const RANGE: &str = r#"{"kind":"range","first":1,"last":1,"txs":1,"inputs":1,"outputs":2,"segwit_txs":1,"taproot_txs":0,"many_input_txs":0,"many_input_legacy_txs":0,"consolidations":0,"made":{"p2wpkh":2},"spent":{"p2wpkh":1},"ages":[1],"coins":3}"#;
    const TIP: &str = r#"{"kind":"tip","height":1,"hash":"aa","utxo_count":3,"utxo_amount":5,"utxo_muhash":"bb","txs":2,"inputs":1,"outputs":3,"bytes":5,"signatures":1}"#;

    fn directory(lines: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a temporary folder");
        fs::write(dir.path().join("ledger.jsonl"), lines.join("\n")).expect("writable");
        dir
    }

    fn rejected(lines: &[&str]) -> String {
        let dir = directory(lines);
        let error = Ledger::read(dir.path()).expect_err("must be rejected").to_string();
        error.replace(&dir.path().display().to_string(), "DIR")
    }

    #[test]
    fn ledgers() {
        let dir = directory(&[HEADER, BLOCK, TIP]);
        let ledger = Ledger::read(dir.path()).expect("a whole ledger");
        assert_eq!((ledger.blocks.len(), ledger.tip.utxo_count), (1, 3));
        let said = [
            rejected(&[]),
            rejected(&[HEADER, BLOCK]),
            rejected(&[BLOCK]),
            rejected(&["nonsense"]),
            rejected(&[HEADER, BLOCK, TIP, BLOCK]),
            rejected(&[HEADER, BLOCK, BLOCK]),
            rejected(&[HEADER, TIP]),
            rejected(&[&HEADER.replace("\"format\":1", "\"format\":2"), BLOCK, TIP]),
            rejected(&[HEADER, &BLOCK.replace("blocks/", "../"), TIP]),
            rejected(&[HEADER, &BLOCK.replace("\"txs\":2", "\"txs\":3"), TIP]),
            rejected(&[HEADER, BLOCK, &RANGE.replace("\"last\":1", "\"last\":2"), TIP]),
            rejected(&[HEADER, BLOCK, RANGE, RANGE, TIP]),
        ];
        insta::assert_snapshot!(said.join("\n"), @r#"
        DIR/ledger.jsonl has no tip line: the chain is unfinished; forge again
        DIR/ledger.jsonl has no tip line: the chain is unfinished; forge again
        DIR/ledger.jsonl, line 1: no chain line before it
        DIR/ledger.jsonl, line 1: not a ledger line
        DIR/ledger.jsonl, line 4: something follows the tip
        DIR/ledger.jsonl, line 3: heights must rise by one from 1
        DIR/ledger.jsonl, line 2: a tip without blocks
        DIR/ledger.jsonl, line 1: only chain format 1 is known
        DIR/ledger.jsonl, line 2: a block file lies inside the directory
        DIR/ledger.jsonl, line 3: the totals are not the sums of the blocks
        DIR/ledger.jsonl, line 3: a range begins behind the one before and ends with the block above its line
        DIR/ledger.jsonl, line 4: a range begins behind the one before and ends with the block above its line
        "#);
        let dir = directory(&[HEADER, BLOCK, RANGE, TIP]);
        let ledger = Ledger::read(dir.path()).expect("a whole ledger");
        assert_eq!((ledger.ranges.len(), ledger.ranges[0].coins), (1, 3));
    }
}
