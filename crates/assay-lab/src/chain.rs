//! Reads the output of the forge: block files, generation order, ledger.
//!
//! A chain directory holds `ledger.jsonl` (a chain line, one line per block, a tip line), block files in Bitcoin Core's framing
//! under `blocks/`, and under `order/` one file per block with a 40-byte record per transaction in generation order. A ledger
//! without a tip line is unfinished.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::plan::Plan;

const FORMAT: u32 = 1;
/// Bytes of a record of an order file: txid, offset, length.
const ORDER_RECORD_BYTES: usize = 40;

/// A complete chain directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    pub dir: PathBuf,
    pub header: ChainHeader,
    /// One entry per block from height 1.
    pub blocks: Vec<BlockEntry>,
    /// Sums over height ranges, if the recipe has any.
    pub ranges: Vec<RangeEntry>,
    pub tip: TipEntry,
    /// Initial UTXO set of all nodes; `blocks`, `ranges` and the counts of `tip` then cover the blocks above it.
    pub snapshot: Option<ChainSnapshot>,
}

/// A UTXO snapshot as `dumptxoutset` writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainSnapshot {
    pub path: PathBuf,
    pub bytes: u64,
    pub height: u32,
    /// Block hash as RPC prints it.
    pub block: String,
    pub coins: u64,
    /// Hash over them (Bitcoin Core's `hash_serialized_3`) as RPC prints it.
    pub hash: String,
}

impl Chain {
    /// The chain above the block of a snapshot, in ten parts of equal length.
    #[must_use]
    pub fn above(mut self, snapshot: ChainSnapshot) -> Self {
        let base = snapshot.height;
        self.blocks.retain(|block| block.height > base);
        self.ranges.retain(|range| range.first > base);
        let step = (self.blocks.len() as u32).div_ceil(PARTS).max(1);
        let last = self.tip.height;
        for block in &mut self.blocks {
            let first = base + (block.height - base - 1) / step * step + 1;
            block.phase = format!("heights-{first}-{}", last.min(first + step - 1));
        }
        let sum = |of: fn(&BlockEntry) -> u64| self.blocks.iter().map(of).sum();
        self.tip.txs = sum(|block| block.txs);
        self.tip.inputs = sum(|block| block.inputs);
        self.tip.outputs = sum(|block| block.outputs);
        self.tip.bytes = sum(|block| block.bytes);
        self.snapshot = Some(snapshot);
        self
    }

    /// Height of the block below the first measured one.
    pub(crate) fn base(&self) -> u32 {
        self.snapshot.as_ref().map_or(0, |snapshot| snapshot.height)
    }

    /// `assumevalid` block of a sync, if the plan sets it: the highest block below which Bitcoin Core and Assay skip scripts.
    /// Both verify the last two weeks of work in any case (Core `validation.cpp`, `ConnectBlock`), so all targets verify the same
    /// scripts. `None` as well for a shorter chain.
    pub(crate) fn assumed_by(&self, plan: &Plan) -> Option<&str> {
        let place = self.blocks.len().checked_sub(TWO_WEEKS_BLOCKS + 2)?;
        plan.sync.assumevalid.then(|| self.blocks[place].hash.as_str())
    }
}

/// Parts of the blocks above a snapshot in reports.
const PARTS: u32 = 10;
/// Blocks of two weeks at one in ten minutes; regtest has a constant difficulty.
const TWO_WEEKS_BLOCKS: usize = 2_016;

/// First line of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChainHeader {
    pub format: u32,
    pub recipe: String,
    /// Chain parameters of the nodes: `regtest` or `bch-regtest`.
    pub chain: String,
    pub seed: u64,
    pub scale: f64,
    /// `intended` or `faithful`.
    pub variant: String,
    /// True if every output has a key of its own.
    pub distinct_keys: bool,
    /// Last height, if the forge stopped early on request.
    #[serde(default)]
    pub stop_height: Option<u32>,
    /// Of a history: factor on the transactions of its blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_scale: Option<f64>,
    /// Activation height of each soft fork, if listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub activation: BTreeMap<String, u32>,
    /// Version of the forge.
    pub assay_version: String,
    #[serde(default)]
    pub recipe_sha256: Option<String>,
    /// Network magic before each block, in hex.
    #[serde(default)]
    pub magic: String,
    /// Block files of another program, if the chain was not forged.
    #[serde(default)]
    pub files: Option<Box<ChainFiles>>,
}

/// Recipe, scale and seed.
impl fmt::Display for ChainHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, scale {}, seed {}", self.recipe, self.scale, self.seed)
    }
}

/// Read-only block files of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainFiles {
    /// Their folder, or the single file.
    pub path: PathBuf,
    /// Obfuscation key in hex; absent without obfuscation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xor_key: Option<String>,
    /// Genesis block in hex; absent in results.
    #[serde(default, skip_serializing)]
    pub genesis: String,
    pub count: usize,
    pub bytes: u64,
    /// SHA-256 over the 80-byte headers from height 0 to the tip.
    pub headers_sha256: String,
    /// Height of the branch with the most work, which may extend beyond the tip.
    pub best_height: u32,
    /// Hash of its last block.
    pub best_hash: String,
    /// Blocks on other branches.
    pub stale: usize,
}

/// A block line of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockEntry {
    pub height: u32,
    /// Block hash as RPC prints it.
    pub hash: String,
    pub phase: String,
    /// Block file, relative to the directory.
    pub file: PathBuf,
    /// Offset of the raw block in that file.
    pub offset: u64,
    pub bytes: u64,
    /// Transactions, including the coinbase.
    pub txs: u64,
    /// Inputs, without the coinbase's.
    pub inputs: u64,
    pub outputs: u64,
    /// Number of valid signatures.
    pub signatures: u64,
}

/// A range line of the ledger: sums over heights, without coinbases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeEntry {
    pub first: u32,
    /// Last height, inclusive.
    pub last: u32,
    pub txs: u64,
    pub inputs: u64,
    pub outputs: u64,
    pub segwit_txs: u64,
    /// Transactions with more than 50 inputs.
    pub many_input_txs: u64,
    /// Transactions of these without a witness.
    pub many_input_legacy_txs: u64,
    /// Size of the UTXO set after the last height.
    pub coins: u64,
}

/// Last line of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TipEntry {
    pub height: u32,
    /// Block hash as RPC prints it.
    pub hash: String,
    pub utxo_count: u64,
    /// Their sum in satoshi.
    pub utxo_amount: u64,
    /// Their `MuHash` as `gettxoutsetinfo` prints it. Empty for chains that were not forged.
    pub utxo_muhash: String,
    /// Transactions, including coinbases.
    pub txs: u64,
    /// Inputs, without those of coinbases.
    pub inputs: u64,
    pub outputs: u64,
    pub bytes: u64,
    /// Number of valid signatures.
    pub signatures: u64,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Line {
    Chain(ChainHeader),
    Block(BlockEntry),
    Range(RangeEntry),
    Tip(TipEntry),
}

/// One transaction in generation order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderEntry {
    /// Txid in internal byte order.
    pub txid: [u8; 32],
    /// Offset in the raw block.
    pub offset: u32,
    pub length: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}, line {line}: not a ledger line", path.display())]
    Line {
        path: PathBuf,
        /// Line number from 1.
        line: usize,
        source: serde_json::Error,
    },
    /// The ledger contradicts itself or has another format.
    #[error("{}, line {line}: {what}", path.display())]
    Ledger {
        path: PathBuf,
        /// Line number from 1.
        line: usize,
        what: &'static str,
    },
    #[error("{} has no tip line: the chain is unfinished", path.display())]
    Unfinished { path: PathBuf },
    /// A file is shorter than the ledger states, or has broken records.
    #[error("{}: block {height} {what}", path.display())]
    Contents { path: PathBuf, height: u32, what: &'static str },
}

impl Chain {
    /// Reads the ledger of a complete chain directory.
    ///
    /// # Errors
    /// When the ledger is missing, malformed, inconsistent or unfinished.
    pub fn open(dir: &Path) -> Result<Self, ChainError> {
        let path = dir.join("ledger.jsonl");
        let read_error = |source| ChainError::Read { path: path.clone(), source };
        let file = File::open(&path).map_err(read_error)?;
        let (mut header, mut blocks, mut tip) = (None, Vec::new(), None);
        let mut ranges = Vec::new();
        for (index, line) in BufReader::new(file).lines().enumerate() {
            let text = line.map_err(read_error)?;
            let line = index + 1;
            let wrong = |what| ChainError::Ledger { path: path.clone(), line, what };
            let parsed = serde_json::from_str(&text).map_err(|source| ChainError::Line {
                path: path.clone(),
                line,
                source,
            })?;
            match parsed {
                _ if tip.is_some() => return Err(wrong("something follows the tip")),
                Line::Chain(first) if header.is_none() => {
                    check_header(&first).map_err(wrong)?;
                    header = Some(first);
                }
                Line::Chain(_) => return Err(wrong("a second chain line")),
                Line::Block(_) | Line::Range(_) | Line::Tip(_) if header.is_none() => {
                    return Err(wrong("no chain line before it"));
                }
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
        match (header, tip) {
            (Some(header), Some(tip)) => {
                Ok(Self { dir: dir.to_owned(), header, blocks, ranges, tip, snapshot: None })
            }
            _ => Err(ChainError::Unfinished { path }),
        }
    }

    /// Replaces `out` with the order file of a block.
    ///
    /// # Errors
    /// When the file cannot be read or does not match the block.
    pub fn read_order(
        &self,
        block: &BlockEntry,
        out: &mut Vec<OrderEntry>,
    ) -> Result<(), ChainError> {
        let path = self.dir.join("order").join(format!("{:06}.bin", block.height));
        let bytes =
            fs::read(&path).map_err(|source| ChainError::Read { path: path.clone(), source })?;
        let wrong = |what| ChainError::Contents { path: path.clone(), height: block.height, what };
        let (records, rest) = bytes.as_chunks::<ORDER_RECORD_BYTES>();
        if !rest.is_empty() || records.len() as u64 + 1 != block.txs {
            return Err(wrong("has another number of transactions"));
        }
        out.clear();
        out.extend(records.iter().map(OrderEntry::from_record));
        let inside = |entry: &OrderEntry| {
            u64::from(entry.offset) + u64::from(entry.length) <= block.bytes && entry.length > 0
        };
        if out.iter().all(inside) { Ok(()) } else { Err(wrong("does not hold a transaction")) }
    }

    /// Folder of the block files, or the single file.
    pub(crate) fn blocks_path(&self) -> PathBuf {
        let forged = || self.dir.join("blocks");
        self.header.files.as_ref().map_or_else(forged, |files| files.path.clone())
    }

    /// Last height to read from block files that hold more.
    pub(crate) fn stops_at(&self) -> Option<u32> {
        let files = self.header.files.as_ref()?;
        (files.best_height > self.tip.height).then_some(self.tip.height)
    }

    /// Path of the file that holds a block.
    pub(crate) fn path_of(&self, block: &BlockEntry) -> PathBuf {
        match &self.header.files {
            None => self.dir.join(&block.file),
            Some(files) if files.path.is_file() => files.path.clone(),
            Some(files) => files.path.join(&block.file),
        }
    }

    /// Removes the obfuscation from bytes at `offset` of a block file (Bitcoin Core `util/obfuscation.h`).
    fn reveal(&self, bytes: &mut [u8], offset: u64) {
        let Some(key) = self.header.files.as_ref().and_then(|files| files.xor_key.as_ref()) else {
            return;
        };
        let mut raw = [0; 8];
        if faster_hex::hex_decode(key.as_bytes(), &mut raw).is_ok() {
            let key = raw.iter().cycle().skip((offset % 8) as usize);
            bytes.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        }
    }

    /// Reads the header of a block.
    ///
    /// # Errors
    /// When the file cannot be read or ends too early.
    pub(crate) fn read_header(&self, block: &BlockEntry) -> Result<[u8; 80], ChainError> {
        let mut header = [0; 80];
        self.read_at(block, 0, &mut header).map(|()| header)
    }

    /// Reads a part of a block.
    ///
    /// # Errors
    /// When the file cannot be read or ends too early.
    pub(crate) fn read_at(
        &self,
        block: &BlockEntry,
        offset: u64,
        out: &mut [u8],
    ) -> Result<(), ChainError> {
        let path = self.path_of(block);
        let read = File::open(&path).and_then(|mut file| {
            file.seek(SeekFrom::Start(block.offset + offset))?;
            file.read_exact(out)
        });
        self.reveal(out, block.offset + offset);
        read.map_err(|source| ChainError::Read { path, source })
    }

    /// Reads a block in pieces and passes them to `each` in order.
    ///
    /// # Errors
    /// When the file cannot be read or ends too early.
    pub fn read_block(
        &self,
        block: &BlockEntry,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), ChainError> {
        let path = self.path_of(block);
        let read_error = |source| ChainError::Read { path: path.clone(), source };
        let mut file = File::open(&path).map_err(read_error)?;
        file.seek(SeekFrom::Start(block.offset)).map_err(read_error)?;
        let mut file = file.take(block.bytes);
        let mut piece = vec![0_u8; (1 << 20).min(block.bytes as usize)];
        let mut left = block.bytes as usize;
        while left > 0 {
            let length = file.read(&mut piece).map_err(read_error)?;
            if length == 0 {
                let what = "ends too early";
                return Err(ChainError::Contents {
                    path: path.clone(),
                    height: block.height,
                    what,
                });
            }
            self.reveal(&mut piece[..length], block.offset + block.bytes - left as u64);
            each(&piece[..length]);
            left -= length;
        }
        Ok(())
    }
}

impl OrderEntry {
    fn from_record(record: &[u8; ORDER_RECORD_BYTES]) -> Self {
        let word = |at: usize| {
            u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
        };
        let mut txid = [0; 32];
        txid.copy_from_slice(&record[..32]);
        Self { txid, offset: word(32), length: word(36) }
    }
}

fn check_header(header: &ChainHeader) -> Result<(), &'static str> {
    if header.format == FORMAT { Ok(()) } else { Err("only chain format 1 is known") }
}

fn check_block(block: &BlockEntry, before: usize) -> Result<(), &'static str> {
    if block.height as usize != before + 1 {
        return Err("heights must rise by one from 1");
    }
    // Order files use 32-bit offsets; no block of the chain family is larger.
    if block.txs == 0 || block.bytes == 0 || block.bytes > u64::from(u32::MAX) {
        return Err("a block has a coinbase and at most 4 GiB");
    }
    let plain = |part| matches!(part, Component::Normal(_));
    if !block.file.components().all(plain) {
        return Err("a block file lies inside the directory");
    }
    Ok(())
}

fn check_range(
    range: &RangeEntry,
    before: &[RangeEntry],
    blocks: usize,
) -> Result<(), &'static str> {
    let first = before.last().map_or(1, |last| last.last + 1);
    if range.first == first && range.last >= first && range.last as usize == blocks {
        Ok(())
    } else {
        Err("a range begins behind the one before and ends with the block above its line")
    }
}

fn check_tip(tip: &TipEntry, blocks: &[BlockEntry]) -> Result<(), &'static str> {
    let Some(last) = blocks.last() else { return Err("a tip without blocks") };
    if tip.height != last.height || tip.hash != last.hash {
        return Err("the tip is not the last block");
    }
    let sum = |count: fn(&BlockEntry) -> u64| blocks.iter().map(count).sum::<u64>();
    let agrees = tip.txs == sum(|block| block.txs)
        && tip.inputs == sum(|block| block.inputs)
        && tip.outputs == sum(|block| block.outputs)
        && tip.bytes == sum(|block| block.bytes)
        && tip.signatures == sum(|block| block.signatures);
    if agrees { Ok(()) } else { Err("the totals are not the sums of the blocks") }
}

/// Block files in a folder, sorted.
pub(crate) fn block_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if folder.is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let number = name.strip_prefix("blk").and_then(|rest| rest.strip_suffix(".dat"));
        if number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit())) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const HEADER: &str = r#"{"kind":"chain","format":1,"recipe":"r","chain":"regtest","seed":7,"scale":0.5,"variant":"intended","distinct_keys":false,"magic":"fabfb5da","assay_version":"0.1.0","recipe_sha256":"00"}"#;
    const BLOCK: &str = r#"{"kind":"block","height":1,"hash":"aa","phase":"maturity","file":"blocks/blk00000.dat","offset":8,"bytes":5,"weight":20,"txs":2,"inputs":1,"outputs":3,"signatures":1,"time":1}"#;
    const RANGE: &str = r#"{"kind":"range","first":1,"last":1,"txs":1,"inputs":1,"outputs":2,"segwit_txs":1,"taproot_txs":0,"many_input_txs":0,"many_input_legacy_txs":0,"consolidations":0,"made":{"p2wpkh":2},"spent":{"p2wpkh":1},"ages":[1],"coins":3}"#;
    const TIP: &str = r#"{"kind":"tip","height":1,"hash":"aa","utxo_count":3,"utxo_amount":5,"utxo_muhash":"bb","txs":2,"inputs":1,"outputs":3,"bytes":5,"signatures":1}"#;

    fn directory(lines: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a temporary folder");
        fs::write(dir.path().join("ledger.jsonl"), lines.join("\n")).expect("writable");
        fs::create_dir_all(dir.path().join("blocks")).expect("writable");
        fs::create_dir_all(dir.path().join("order")).expect("writable");
        dir
    }

    fn refuse(lines: &[&str]) -> String {
        let dir = directory(lines);
        let error = Chain::open(dir.path()).expect_err("must be rejected").to_string();
        error.replace(&dir.path().display().to_string(), "DIR")
    }

    #[test]
    fn ledgers() {
        let dir = directory(&[HEADER, BLOCK, TIP]);
        let chain = Chain::open(dir.path()).expect("a whole ledger");
        assert_eq!((chain.blocks.len(), chain.tip.utxo_count), (1, 3));
        let said = [
            refuse(&[]),
            refuse(&[HEADER, BLOCK]),
            refuse(&[BLOCK]),
            refuse(&["nonsense"]),
            refuse(&[HEADER, BLOCK, TIP, BLOCK]),
            refuse(&[HEADER, BLOCK, BLOCK]),
            refuse(&[HEADER, TIP]),
            refuse(&[&HEADER.replace("\"format\":1", "\"format\":2"), BLOCK, TIP]),
            refuse(&[HEADER, &BLOCK.replace("blocks/", "../"), TIP]),
            refuse(&[HEADER, &BLOCK.replace("\"txs\":2", "\"txs\":3"), TIP]),
            refuse(&[HEADER, BLOCK, &RANGE.replace("\"last\":1", "\"last\":2"), TIP]),
            refuse(&[HEADER, BLOCK, RANGE, RANGE, TIP]),
        ];
        insta::assert_snapshot!(said.join("\n"), @r#"
        DIR/ledger.jsonl has no tip line: the chain is unfinished
        DIR/ledger.jsonl has no tip line: the chain is unfinished
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
        let chain = Chain::open(dir.path()).expect("a whole ledger");
        assert_eq!((chain.ranges.len(), chain.ranges[0].coins), (1, 3));
    }

    #[test]
    fn blocks_and_orders() {
        let dir = directory(&[HEADER, BLOCK, TIP]);
        let chain = Chain::open(dir.path()).expect("a whole ledger");
        let mut order = Vec::new();
        assert!(chain.read_order(&chain.blocks[0], &mut order).is_err(), "no file yet");
        let mut record = vec![9_u8; 32];
        record.extend([1, 0, 0, 0, 4, 0, 0, 0]);
        fs::write(dir.path().join("order/000001.bin"), &record).expect("writable");
        chain.read_order(&chain.blocks[0], &mut order).expect("one record");
        assert_eq!(order, [OrderEntry { txid: [9; 32], offset: 1, length: 4 }]);
        record[36] = 5;
        fs::write(dir.path().join("order/000001.bin"), &record).expect("writable");
        assert!(chain.read_order(&chain.blocks[0], &mut order).is_err(), "out of the block");

        let file = dir.path().join("blocks/blk00000.dat");
        fs::write(&file, b"magcsize12345tail").expect("writable");
        let mut bytes = Vec::new();
        chain
            .read_block(&chain.blocks[0], |piece| bytes.extend_from_slice(piece))
            .expect("long enough");
        assert_eq!(bytes, b"12345");
        fs::write(&file, b"magcsize1234").expect("writable");
        let error = chain.read_block(&chain.blocks[0], |_| ()).expect_err("too short");
        assert!(error.to_string().ends_with("block 1 ends too early"), "{error}");
    }
}
