//! The coins of a range in the order of its inputs, and the coins left over in the order of their outpoints.

use std::cmp::{Ordering as Order, Reverse};
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use assay_store::{
    CoinRef, KeyForms, SnapshotHeader, SnapshotWriter, SpentFileWriter, StreamReader, StreamsFile,
    UndoWriter, decode_coin_bytes, fresh_name,
};

use super::super::{ShardError, io_failed, unusable};
use super::join::{claims_stream, compare, left_stream, passes_of};
use super::memory::reader_bytes;
use super::plan::Shuffle;
use super::records::{self, CLAIM_HEAD_BYTES, OUTPUT_HEAD_BYTES, word};
use super::scatter;

/// Whether the file of spent coins of a range is in a folder.
pub fn has_gathered_range(out: &Path, range: usize) -> bool {
    u32::try_from(range).is_ok_and(|number| SpentFileWriter::exists(out, number))
}

/// Whether the coins left over are in a folder.
pub fn has_gathered_left(out: &Path) -> bool {
    out.join(LEFT_OVER).exists()
}

/// Gathers a range: writes its file of spent coins into `out`. All partitions must have been joined. Gives their number.
///
/// # Errors
/// Files of the shuffle cannot be read, or the file cannot be written.
pub fn gather_range(
    shuffle: &Shuffle,
    range: usize,
    out: &Path,
    unit_bytes: u64,
    stop: &AtomicBool,
) -> Result<u64, ShardError> {
    let heights = shuffle.range(range)?;
    let number = u32::try_from(range).map_err(|error| unusable(out, error.to_string()))?;
    let mut readers = Vec::new();
    let path = shuffle.scattered(range);
    let file = StreamsFile::open(&path, shuffle.id).map_err(io_failed(&path))?;
    readers.push(file.stream(scatter::CLAIMS).map_err(io_failed(&path))?);
    for_each_joined(shuffle, |path, file, passes| {
        for pass in 0..passes {
            let stream = file.stream(claims_stream(number, (pass, passes)));
            readers.push(stream.map_err(io_failed(path))?);
        }
        Ok(())
    })?;
    let mut merge = Merge::new(readers, CLAIM_HEAD_BYTES, unit_bytes, |a, b| {
        (word(a, 0), word(a, 4)).cmp(&(word(b, 0), word(b, 4)))
    })?;
    let mut writer = SpentFileWriter::create(out, number, shuffle.params.disk_magic)?;
    let mut coins = 0;
    let mut record = merge.next()?;
    for ((hash, _), height) in shuffle.blocks(&heights)?.iter().zip(heights.first..) {
        if stop.load(Ordering::Relaxed) {
            return Err(ShardError::Interrupted);
        }
        let mut undo = UndoWriter::new();
        while let Some(claim) = record.take_if(|claim| word(claim, 0) == height) {
            if u64::from(word(&claim, 4)) != undo.len() {
                return Err(merge.inconsistent(&format!("input {} of block {hash}", undo.len())));
            }
            undo.push_encoded(&claim[CLAIM_HEAD_BYTES..]);
            coins += 1;
            record = merge.next()?;
        }
        writer.push(hash, &undo.finish())?;
    }
    if record.is_some() {
        return Err(merge.inconsistent("the end of the range"));
    }
    writer.finish()?;
    Ok(coins)
}

/// Gathers the coins that are left over: writes `utxo.dat` into `out`. All partitions must have been joined. Gives their
/// number.
///
/// # Errors
/// As [`gather_range`].
pub fn gather_left(
    shuffle: &Shuffle,
    out: &Path,
    keys: KeyForms,
    unit_bytes: u64,
    stop: &AtomicBool,
) -> Result<u64, ShardError> {
    let (mut readers, mut count) = (Vec::new(), 0);
    for_each_joined(shuffle, |path, file, passes| {
        for pass in 0..passes {
            let stream = file.stream(left_stream(shuffle.ranges.len(), (pass, passes)));
            readers.push(stream.map_err(io_failed(path))?);
        }
        let mut number = [0; 8];
        let read = file
            .stream(file.streams() - 1)
            .and_then(|mut stream| io::Read::read_exact(&mut stream, &mut number));
        read.map_err(io_failed(path))?;
        count += u64::from_le_bytes(number);
        Ok(())
    })?;
    fs::create_dir_all(out).map_err(io_failed(out))?;
    let mut merge = Merge::new(readers, OUTPUT_HEAD_BYTES, unit_bytes, compare)?;
    let path = out.join(LEFT_OVER);
    let failed = io_failed(&path);
    let fresh = Fresh(fresh_name(&path));
    let file = BufWriter::with_capacity(1 << 20, File::create(&fresh.0).map_err(&failed)?);
    let (magic, base) = (shuffle.params.magic, shuffle.tip);
    let header = SnapshotHeader { magic, base, coins: count };
    let mut writer = SnapshotWriter::new(file, &header, keys).map_err(&failed)?;
    let mut written = 0u64;
    while let Some(record) = merge.next()? {
        if written.is_multiple_of(1 << 16) && stop.load(Ordering::Relaxed) {
            return Err(ShardError::Interrupted);
        }
        let coin = decode_coin_bytes(&record[OUTPUT_HEAD_BYTES..]);
        let coin = coin.map_err(|error| merge.inconsistent(&error.to_string()))?;
        let outpoint = records::outpoint_of(&record);
        writer.push(&outpoint, CoinRef::from(&coin)).map_err(&failed)?;
        written += 1;
    }
    if written != count {
        return Err(merge.inconsistent("the number of coins left over"));
    }
    let (_, file) = writer.finish().map_err(&failed)?;
    let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().and_then(|()| fs::rename(&fresh.0, &path)).map_err(failed)?;
    Ok(written)
}

/// A file that goes away unless it is renamed.
struct Fresh(PathBuf);

impl Drop for Fresh {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Visits the files of all partitions, with the passes of each.
fn for_each_joined(
    shuffle: &Shuffle,
    mut visit: impl FnMut(&Path, &StreamsFile, u32) -> Result<(), ShardError>,
) -> Result<(), ShardError> {
    for partition in 0..shuffle.partitions {
        let path = shuffle.joined(partition);
        if !path.exists() {
            let what = "is missing: join all partitions before anything is gathered";
            return Err(unusable(&path, what));
        }
        let file = StreamsFile::open(&path, shuffle.id).map_err(io_failed(&path))?;
        let passes = passes_of(file.streams(), shuffle.ranges.len());
        let passes = passes.ok_or_else(|| io_failed(&path)(records::no_record()))?;
        visit(&path, &file, passes)?;
    }
    Ok(())
}

/// Merges sorted streams of records.
struct Merge<F> {
    dir: PathBuf,
    readers: Vec<BufReader<StreamReader>>,
    head: usize,
    heap: BinaryHeap<Reverse<Entry<F>>>,
    last: Option<Vec<u8>>,
}

/// The next record of a stream.
struct Entry<F> {
    record: Vec<u8>,
    reader: usize,
    compare: F,
}

impl<F: Fn(&[u8], &[u8]) -> Order + Copy> Merge<F> {
    fn new(
        readers: Vec<StreamReader>,
        head: usize,
        unit_bytes: u64,
        compare: F,
    ) -> Result<Self, ShardError> {
        let dir = readers.first().and_then(|reader| reader.path().parent()).map(Path::to_path_buf);
        let full: Vec<StreamReader> =
            readers.into_iter().filter(|reader| reader.bytes_left() > 0).collect();
        let bytes = reader_bytes(unit_bytes, full.len())?;
        let readers: Vec<_> =
            full.into_iter().map(|reader| BufReader::with_capacity(bytes, reader)).collect();
        let heap = BinaryHeap::with_capacity(readers.len());
        let mut merge = Self { dir: dir.unwrap_or_default(), readers, head, heap, last: None };
        for reader in 0..merge.readers.len() {
            let record = Vec::new();
            merge.refill(Entry { record, reader, compare })?;
        }
        Ok(merge)
    }

    /// The next record in order.
    fn next(&mut self) -> Result<Option<Vec<u8>>, ShardError> {
        let Some(Reverse(mut entry)) = self.heap.pop() else { return Ok(None) };
        let record = std::mem::take(&mut entry.record);
        let compare = entry.compare;
        let is_sorted = self.last.as_ref().is_none_or(|last| compare(last, &record) == Order::Less);
        self.refill(entry)?;
        if !is_sorted {
            return Err(self.inconsistent("the order of records"));
        }
        self.last = Some(record[..self.head].to_vec());
        Ok(Some(record))
    }

    fn refill(&mut self, mut entry: Entry<F>) -> Result<(), ShardError> {
        let reader = &mut self.readers[entry.reader];
        entry.record.clear();
        let read = records::read_sized(reader, self.head, &mut entry.record);
        let is_more = read.map_err(|error| io_failed(reader.get_ref().path())(error))?;
        if is_more {
            self.heap.push(Reverse(entry));
        }
        Ok(())
    }

    fn inconsistent(&self, what: &str) -> ShardError {
        unusable(
            &self.dir,
            format!(
                "the files of the shuffle do not belong together ({what}): begin again in an empty folder"
            ),
        )
    }
}

impl<F: Fn(&[u8], &[u8]) -> Order> PartialEq for Entry<F> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Order::Equal
    }
}

impl<F: Fn(&[u8], &[u8]) -> Order> Eq for Entry<F> {}

impl<F: Fn(&[u8], &[u8]) -> Order> PartialOrd for Entry<F> {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl<F: Fn(&[u8], &[u8]) -> Order> Ord for Entry<F> {
    fn cmp(&self, other: &Self) -> Order {
        (self.compare)(&self.record, &other.record)
    }
}

/// The name that `validate --write-spent` gives.
const LEFT_OVER: &str = "utxo.dat";
