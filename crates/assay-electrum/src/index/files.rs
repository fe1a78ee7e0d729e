//! Two files of fixed-length records: heights and transactions.
//!
//! `heights.dat` has 96 bytes for each height: the header (80), the number of its first transaction (8), the block's length
//! (4). `txs.dat` has 40 bytes for each transaction: the txid (32), its offset in the block (4). Each record ends with a
//! CRC-32 of the rest and of its own number (4). Integers are little endian.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_store::io::{Io, IoFile};
use assay_wire::{Header, Txid};
use parking_lot::RwLock;

use super::cache::{Cache, FileKey, PART_BYTES_MAX, PartKey, Reader};
use super::row::TxNumber;
use super::types::QueryError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeightRecord {
    pub(crate) header: [u8; HEADER_BYTES],
    pub(crate) first_tx: TxNumber,
    pub(crate) block_bytes: u32,
}

impl HeightRecord {
    pub(crate) fn hash(&self) -> assay_wire::BlockHash {
        Header::parse(&self.header).hash()
    }

    fn parse(record: &[u8; HEIGHT_BYTES]) -> Self {
        let (header, rest) = record.split_first_chunk().expect("a record is longer than a header");
        let (first_tx, rest) = rest.split_first_chunk().expect("the number follows");
        let (block_bytes, _) = rest.split_first_chunk().expect("the length follows");
        Self {
            header: *header,
            first_tx: u64::from_le_bytes(*first_tx),
            block_bytes: u32::from_le_bytes(*block_bytes),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TxRecord {
    pub(crate) txid: Txid,
    /// Offset of the first byte in the serialised block.
    pub(crate) offset: u32,
}

impl TxRecord {
    fn parse(record: &[u8; TX_BYTES]) -> Self {
        let (txid, rest) = record.split_first_chunk().expect("a record is longer than a txid");
        let (offset, _) = rest.split_first_chunk().expect("the offset follows");
        Self { txid: Txid(*txid), offset: u32::from_le_bytes(*offset) }
    }
}

/// The two files. Records are appended and, in a reorg, overwritten: a concurrent reader must check for a reorg afterwards.
pub(crate) struct Files {
    heights: RecordFile,
    txs: RecordFile,
    first_txs: RwLock<Vec<TxNumber>>,
    /// Shared with the runs.
    pub(crate) cache: Cache,
}

impl Files {
    /// Opens the files and checks the first `heights` records and their `txs` transactions.
    pub(crate) fn open(
        io: &dyn Io,
        dir: &Path,
        cache: Cache,
        (heights, txs): (u32, TxNumber),
    ) -> Result<Self, QueryError> {
        let files = Self {
            cache,
            heights: RecordFile::open(io, dir.join("heights.dat"))?,
            txs: RecordFile::open(io, dir.join("txs.dat"))?,
            first_txs: RwLock::default(),
        };
        let mut first_txs = Vec::with_capacity(heights as usize);
        while (first_txs.len() as u32) < heights {
            let start = first_txs.len() as u32;
            for record in files.heights(start, (heights - start).min(4096))? {
                first_txs.push(record.first_tx);
            }
        }
        let is_sorted = first_txs.is_sorted() && first_txs.last().is_none_or(|&last| last < txs);
        if !is_sorted {
            return Err(files.heights.damaged(0, "transaction numbers do not ascend"));
        }
        if let Some(last) = txs.checked_sub(1) {
            // Only existence is checked here; each record is checked when it is read.
            files.txs(last, 1)?;
        }
        *files.first_txs.write() = first_txs;
        Ok(files)
    }

    /// Appends a block after `height - 1`, whose transactions begin with number `first_tx`.
    pub(crate) fn append(
        &self,
        height: u32,
        record: &HeightRecord,
        txs: &[TxRecord],
    ) -> Result<(), QueryError> {
        let mut bytes = Vec::with_capacity(txs.len() * TX_BYTES);
        for (index, tx) in txs.iter().enumerate() {
            let start = bytes.len();
            bytes.extend_from_slice(&tx.txid.0);
            bytes.extend_from_slice(&tx.offset.to_le_bytes());
            let sum = record_sum(&bytes[start..], record.first_tx + index as u64);
            bytes.extend_from_slice(&sum);
        }
        self.txs.write(&bytes, record.first_tx * TX_BYTES as u64)?;
        let mut bytes = record.header.to_vec();
        bytes.extend_from_slice(&record.first_tx.to_le_bytes());
        bytes.extend_from_slice(&record.block_bytes.to_le_bytes());
        let sum = record_sum(&bytes, u64::from(height));
        bytes.extend_from_slice(&sum);
        self.heights.write(&bytes, u64::from(height) * HEIGHT_BYTES as u64)?;
        let mut first_txs = self.first_txs.write();
        first_txs.truncate(height as usize);
        first_txs.push(record.first_tx);
        Ok(())
    }

    /// Removes all heights from `heights` on; their records are overwritten later.
    pub(crate) fn truncate(&self, heights: u32) {
        self.first_txs.write().truncate(heights as usize);
    }

    /// Syncs all appended records to disk, but not the file names.
    pub(crate) fn sync(&self) -> Result<(), QueryError> {
        self.txs.sync()?;
        self.heights.sync()
    }

    pub(crate) fn first_tx(&self, height: u32) -> Option<TxNumber> {
        self.first_txs.read().get(height as usize).copied()
    }

    /// The height of a transaction, and the first transaction number of the next height, if any.
    pub(crate) fn height_of(&self, tx: TxNumber) -> (u32, TxNumber) {
        let first_txs = self.first_txs.read();
        let above = first_txs.partition_point(|&first| first <= tx);
        let end = first_txs.get(above).copied().unwrap_or(TxNumber::MAX);
        (above.saturating_sub(1) as u32, end)
    }

    pub(crate) fn heights(&self, start: u32, count: u32) -> Result<Vec<HeightRecord>, QueryError> {
        let records = self.heights.records(u64::from(start), u64::from(count), HEIGHT_BYTES)?;
        Ok(records.as_chunks().0.iter().map(HeightRecord::parse).collect())
    }

    /// A reader of transaction records for one query.
    pub(crate) fn tx_reader<'a>(&'a self, reader: &'a Reader<'a>, view: Extent) -> TxReader<'a> {
        TxReader { file: &self.txs, reader, view, part: None }
    }

    /// The record of a height within the view.
    pub(crate) fn height(
        &self,
        reader: &Reader<'_>,
        view: Extent,
        height: u32,
    ) -> Result<HeightRecord, QueryError> {
        let number = u64::from(height);
        let key = FileKey::Heights(view.epoch);
        let part = self.heights.part::<HEIGHT_BYTES>(reader, key, (number, view.heights))?;
        Ok(HeightRecord::parse(self.heights.record(&part, number)?))
    }

    pub(crate) fn txs(&self, start: TxNumber, count: u64) -> Result<Vec<TxRecord>, QueryError> {
        let records = self.txs.records(start, count, TX_BYTES)?;
        Ok(records.as_chunks().0.iter().map(TxRecord::parse).collect())
    }
}

/// The part of the files that a view covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Number of reorgs before it: the records it covers are constant until the next one.
    pub(crate) epoch: u64,
    pub(crate) heights: u64,
    pub(crate) txs: TxNumber,
}

/// Consecutive records of a file.
struct Part {
    first: u64,
    bytes: Arc<[u8]>,
}

impl Part {
    fn has<const BYTES: usize>(&self, number: u64) -> bool {
        let end = self.first + (self.bytes.len() / BYTES) as u64;
        (self.first..end).contains(&number)
    }
}

/// Reads transaction records for one query.
pub(crate) struct TxReader<'a> {
    file: &'a RecordFile,
    reader: &'a Reader<'a>,
    view: Extent,
    /// The part of the last record read.
    part: Option<Part>,
}

impl TxReader<'_> {
    /// The record of a transaction within the view.
    pub(crate) fn record(&mut self, tx: TxNumber) -> Result<TxRecord, QueryError> {
        let last = self.part.take().filter(|part| part.has::<TX_BYTES>(tx));
        let part = last.map_or_else(|| self.part_of(tx), Ok)?;
        let part = self.part.insert(part);
        Ok(TxRecord::parse(self.file.record(part, tx)?))
    }

    fn part_of(&self, tx: TxNumber) -> Result<Part, QueryError> {
        let key = FileKey::Txs(self.view.epoch);
        self.file.part::<TX_BYTES>(self.reader, key, (tx, self.view.txs))
    }

    /// The txid of a transaction within the view.
    pub(crate) fn txid(&mut self, tx: TxNumber) -> Result<Txid, QueryError> {
        Ok(self.record(tx)?.txid)
    }
}

/// A file of fixed-length records, each of which ends with a CRC-32 of its fields and of its own number.
pub(crate) struct RecordFile {
    path: PathBuf,
    handle: Arc<dyn IoFile>,
}

impl RecordFile {
    pub(crate) fn open(io: &dyn Io, path: PathBuf) -> Result<Self, QueryError> {
        match io.open(&path, true) {
            Ok(handle) => Ok(Self { path, handle }),
            Err(source) => Err(QueryError::Io { path, source }),
        }
    }

    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), QueryError> {
        self.handle.write_all_at(bytes, offset).map_err(|source| self.failed(source))
    }

    pub(crate) fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, QueryError> {
        let mut bytes = vec![0; length];
        let read = self.handle.read_exact_at(&mut bytes, offset);
        read.map_err(|source| QueryError::of_read(source, &self.path, offset))?;
        Ok(bytes)
    }

    /// Reads records of `length` bytes, checksums included, and verifies these.
    pub(crate) fn records(
        &self,
        start: u64,
        count: u64,
        length: usize,
    ) -> Result<Vec<u8>, QueryError> {
        let bytes = self.read(start * length as u64, count as usize * length)?;
        for (number, record) in (start..).zip(bytes.chunks_exact(length)) {
            self.check(record, number)?;
        }
        Ok(bytes)
    }

    fn check(&self, record: &[u8], number: u64) -> Result<(), QueryError> {
        let (fields, sum) = record.split_at(record.len() - SUM_BYTES);
        if record_sum(fields, number) == *sum {
            Ok(())
        } else {
            let offset = number * record.len() as u64;
            Err(self.damaged(offset, "a record does not have its checksum"))
        }
    }

    /// Syncs the contents to disk, but not the file name.
    pub(crate) fn sync(&self) -> Result<(), QueryError> {
        self.handle.sync_data().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: std::io::Error) -> QueryError {
        QueryError::Io { path: self.path.clone(), source }
    }

    pub(crate) fn damaged(&self, offset: u64, what: &'static str) -> QueryError {
        QueryError::Damaged { path: self.path.clone(), offset, what }
    }

    /// The part that contains record `number`; the view covers records before `end`. Cached if it covers all of the part.
    fn part<const BYTES: usize>(
        &self,
        reader: &Reader<'_>,
        file: FileKey,
        (number, end): (u64, u64),
    ) -> Result<Part, QueryError> {
        let of_part = const { (PART_BYTES_MAX / BYTES) as u64 };
        let first = number - number % of_part;
        let count = of_part.min(end.saturating_sub(first));
        let offset = first * BYTES as u64;
        let key = PartKey { file, offset };
        let is_whole = count == of_part;
        if is_whole && let Some(bytes) = reader.cached(&key) {
            return Ok(Part { first, bytes });
        }
        let mut buffer = [0; PART_BYTES_MAX];
        let buffer = &mut buffer[..count as usize * BYTES];
        let read = reader.fill(&*self.handle, buffer, offset);
        read.map_err(|source| QueryError::of_read(source, &self.path, offset))?;
        let bytes: Arc<[u8]> = Arc::from(&*buffer);
        if is_whole {
            reader.keep(key, Arc::clone(&bytes));
        }
        Ok(Part { first, bytes })
    }

    /// A record of a part, with its checksum verified here: most records of a part are never read.
    fn record<'p, const BYTES: usize>(
        &self,
        part: &'p Part,
        number: u64,
    ) -> Result<&'p [u8; BYTES], QueryError> {
        let records = part.bytes.as_chunks::<BYTES>().0;
        let record = number.checked_sub(part.first).and_then(|at| records.get(at as usize));
        let offset = number * BYTES as u64;
        let record = record.ok_or_else(|| self.damaged(offset, "the file ends too early"))?;
        self.check(record, number)?;
        Ok(record)
    }
}

pub(crate) fn record_sum(fields: &[u8], number: u64) -> [u8; SUM_BYTES] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(fields);
    hasher.update(&number.to_le_bytes());
    hasher.finalize().to_le_bytes()
}

pub(crate) const SUM_BYTES: usize = 4;
const HEADER_BYTES: usize = 80;
const HEIGHT_BYTES: usize = HEADER_BYTES + 8 + 4 + SUM_BYTES;
const TX_BYTES: usize = 32 + 4 + SUM_BYTES;
