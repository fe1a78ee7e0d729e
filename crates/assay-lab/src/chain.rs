//! Reads the output of the forge ([`assay_ledger`]): block files, and records of 40 bytes per transaction in generation order.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use assay_ledger::{BlockLine, ChainLine, Ledger, LedgerError, Phase, RangeLine, TipLine};
use serde::{Deserialize, Serialize};

use crate::plan::Plan;

/// Bytes of a record of an order file: txid, offset, length.
const ORDER_RECORD_BYTES: usize = 40;

/// A complete chain directory.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    pub dir: PathBuf,
    pub header: ChainLine,
    /// One entry per block from height 1.
    pub blocks: Vec<BlockLine>,
    /// Sums over height ranges, if the recipe has any.
    pub ranges: Vec<RangeLine>,
    pub tip: TipLine,
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
            block.phase = Phase::Heights { first, last: last.min(first + step - 1) };
        }
        let sum = |of: fn(&BlockLine) -> u64| self.blocks.iter().map(of).sum();
        self.tip.txs = sum(|block| block.txs);
        self.tip.inputs = sum(|block| block.inputs);
        self.tip.outputs = sum(|block| block.outputs);
        self.tip.bytes = sum(|block| block.bytes);
        self.snapshot = Some(snapshot);
        self
    }

    /// Its size in words.
    pub(crate) fn summary(&self) -> String {
        let (tip, mib) = (&self.tip, self.tip.bytes as f64 / 1_048_576.0);
        let (height, txs, signatures) = (tip.height, tip.txs, tip.signatures);
        if self.header.files.is_some() {
            let name = &self.header.chain;
            return format!("{height} blocks of {name}, {txs} transactions, {mib:.1} MiB");
        }
        format!("{height} blocks, {txs} transactions, {signatures} signatures, {mib:.1} MiB")
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
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
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
        let Ledger { chain: header, blocks, ranges, tip } = Ledger::read(dir)?;
        Ok(Self { dir: dir.to_owned(), header, blocks, ranges, tip, snapshot: None })
    }

    /// Replaces `out` with the order file of a block.
    pub(crate) fn read_order(
        &self,
        block: &BlockLine,
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
    fn path_of(&self, block: &BlockLine) -> PathBuf {
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
    pub(crate) fn read_header(&self, block: &BlockLine) -> Result<[u8; 80], ChainError> {
        let mut header = [0; 80];
        self.read_at(block, 0, &mut header).map(|()| header)
    }

    /// Reads a part of a block.
    pub(crate) fn read_at(
        &self,
        block: &BlockLine,
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
        block: &BlockLine,
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

    const HEADER: &str = r#"{"kind":"chain","format":1,"recipe":"r","chain":"regtest","seed":7,"scale":0.5,"variant":"intended","distinct_keys":false,"end_time":1,"magic":"fabfb5da","assay_version":"0.1.0","recipe_sha256":"00"}"#;
    const BLOCK: &str = r#"{"kind":"block","height":1,"hash":"aa","phase":"maturity","file":"blocks/blk00000.dat","offset":8,"bytes":5,"weight":20,"txs":2,"inputs":1,"outputs":3,"signatures":1,"time":1}"#;
    const TIP: &str = r#"{"kind":"tip","height":1,"hash":"aa","utxo_count":3,"utxo_amount":5,"utxo_muhash":"bb","txs":2,"inputs":1,"outputs":3,"bytes":5,"signatures":1}"#;

    fn directory(lines: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a temporary folder");
        fs::write(dir.path().join("ledger.jsonl"), lines.join("\n")).expect("writable");
        fs::create_dir_all(dir.path().join("blocks")).expect("writable");
        fs::create_dir_all(dir.path().join("order")).expect("writable");
        dir
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
