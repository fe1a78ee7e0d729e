//! Matching the inputs of a partition with its outputs.

use std::cmp::Ordering as Order;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_store::{StreamReader, StreamsFile, StreamsWriter};
use assay_wire::{BlockHash, OutPoint};

use super::super::{ShardError, io_failed, unusable};
use super::plan::{BlockRange, Shuffle};
use super::records::{
    self, OUTPOINT_BYTES, OUTPUT_BYTES_MAX, OUTPUT_HEAD_BYTES, SPEND_BYTES, Spend, place_of, word,
};
use super::scatter::{outputs_of, spends_of};

/// What came of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// Every input has its coin.
    Matched {
        /// Inputs.
        spent: u64,
        /// Coins that nobody spends.
        left: u64,
        /// How often the partition was read.
        passes: u32,
    },
    /// An input spends what is not there: the chain is not valid.
    Missing(MissingCoin),
}

/// A coin that a block spends and that is not there: it was never created, or spent before, or is created later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingCoin {
    /// The coin.
    pub outpoint: OutPoint,
    /// Height of the block that spends it.
    pub height: u32,
    /// Its hash.
    pub hash: BlockHash,
}

/// Joins a partition: writes its file. All ranges must have been scattered.
///
/// # Errors
/// Files of ranges cannot be read, or the file cannot be written.
pub fn join_partition(
    shuffle: &Shuffle,
    partition: u32,
    unit_bytes: u64,
    stop: &AtomicBool,
) -> Result<Joined, ShardError> {
    if partition >= shuffle.partitions {
        let (part, count) = (partition as usize, shuffle.partitions as usize);
        return Err(ShardError::NoPart { part, count });
    }
    let sources = sources(shuffle, partition)?;
    let total: u64 = sources.iter().map(Source::memory_bytes).sum();
    // As passes take by a hash, some take a little more than others.
    let mut passes = (total * 9 / 8).div_ceil(unit_bytes.max(1)).max(1);
    loop {
        let count = u32::try_from(passes).ok().filter(|count| *count <= PASSES_MAX);
        let Some(count) = count else {
            let least_bytes = unit_bytes.saturating_mul(2);
            return Err(ShardError::Memory { limit_bytes: unit_bytes, least_bytes, units: 1 });
        };
        let mut join = Join::new(shuffle, partition, (count, unit_bytes))?;
        if let Some(joined) = join.run(&sources, stop)? {
            if matches!(joined, Joined::Matched { .. }) {
                join.finish()?;
            }
            return Ok(joined);
        }
        passes *= 2;
    }
}

/// The partition in the file of a range.
struct Source {
    path: PathBuf,
    file: StreamsFile,
    partition: u32,
    outputs_bytes: u64,
    spends_bytes: u64,
}

fn sources(shuffle: &Shuffle, partition: u32) -> Result<Vec<Source>, ShardError> {
    let open = |range: usize| {
        let path = shuffle.scattered(range);
        if !path.exists() {
            let what = "is missing: scatter all ranges before any partition is joined";
            return Err(unusable(&path, what));
        }
        let file = StreamsFile::open(&path, shuffle.id).map_err(io_failed(&path))?;
        if file.streams() != super::scatter::streams(shuffle.partitions) {
            return Err(io_failed(&path)(records::no_record()));
        }
        let mut source = Source { path, file, partition, outputs_bytes: 0, spends_bytes: 0 };
        source.outputs_bytes = source.stream(outputs_of(partition))?.bytes_left();
        source.spends_bytes = source.stream(spends_of(partition))?.bytes_left();
        Ok(source)
    };
    (0..shuffle.ranges.len()).map(open).collect()
}

impl Source {
    fn stream(&self, stream: u32) -> Result<StreamReader, ShardError> {
        self.file.stream(stream).map_err(io_failed(&self.path))
    }

    /// At most, as if every output were of the shortest.
    fn memory_bytes(&self) -> u64 {
        let outputs = self.outputs_bytes / records::OUTPUT_BYTES_MIN as u64;
        let spends = self.spends_bytes / SPEND_BYTES as u64;
        self.outputs_bytes
            + self.spends_bytes
            + outputs * size_of::<Output>() as u64
            + outputs.min(spends) * size_of::<Match>() as u64
    }
}

/// What an output is sorted by: the first bytes of its outpoint, and where its record is.
#[derive(Clone, Copy)]
struct Output {
    prefix: u64,
    start: u32,
}

/// A coin and the input that spends it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Match {
    place: (u32, u32),
    start: u32,
}

struct Join<'a> {
    shuffle: &'a Shuffle,
    path: PathBuf,
    writer: StreamsWriter,
    passes: u32,
    bytes_max: u64,
    records: Vec<u8>,
    outputs: Vec<Output>,
    spends: Vec<Spend>,
    matches: Vec<Match>,
    piece: Vec<u8>,
    left: u64,
}

impl<'a> Join<'a> {
    fn new(
        shuffle: &'a Shuffle,
        partition: u32,
        (passes, bytes_max): (u32, u64),
    ) -> Result<Self, ShardError> {
        let path = shuffle.joined(partition);
        let streams = streams(shuffle.ranges.len(), passes)
            .ok_or_else(|| unusable(&path, "would have too many pieces: give more memory"))?;
        let writer = StreamsWriter::create(&path, shuffle.id, streams).map_err(io_failed(&path))?;
        // Untouched memory takes none.
        let room = |each: usize| (bytes_max as usize) / each;
        Ok(Self {
            shuffle,
            path,
            writer,
            passes,
            bytes_max,
            records: Vec::with_capacity(room(1).min(u32::MAX as usize)),
            outputs: Vec::with_capacity(room(size_of::<Output>() + records::OUTPUT_BYTES_MIN)),
            spends: Vec::with_capacity(room(SPEND_BYTES)),
            matches: Vec::new(),
            piece: Vec::with_capacity(PIECE_BYTES + OUTPUT_BYTES_MAX),
            left: 0,
        })
    }

    /// Joins all passes; `None` where one does not fit.
    fn run(&mut self, sources: &[Source], stop: &AtomicBool) -> Result<Option<Joined>, ShardError> {
        let (mut spent, mut missing) = (0, None::<(u32, OutPoint)>);
        for pass in 0..self.passes {
            for source in sources {
                if stop.load(Ordering::Relaxed) {
                    return Err(ShardError::Interrupted);
                }
                if !self.load(source, pass).map_err(io_failed(&source.path))? {
                    return Ok(None);
                }
            }
            self.sort();
            let lowest = self.sweep(pass).map_err(io_failed(&self.path))?;
            missing = missing.into_iter().chain(lowest).min_by_key(|(height, _)| *height);
            spent += self.matches.len() as u64;
            self.write_matches(pass).map_err(io_failed(&self.path))?;
        }
        let Some((height, outpoint)) = missing else {
            return Ok(Some(Joined::Matched { spent, left: self.left, passes: self.passes }));
        };
        let is_in = |range: &&BlockRange| (range.first..=range.last).contains(&height);
        let range = self.shuffle.ranges.iter().find(is_in);
        let range = range.ok_or_else(|| io_failed(&self.path)(records::no_record()))?;
        let (hash, _) = self.shuffle.blocks(range)?[(height - range.first) as usize];
        Ok(Some(Joined::Missing(MissingCoin { outpoint, height, hash })))
    }

    /// Takes what a pass takes of a range; false where it does not fit.
    fn load(&mut self, source: &Source, pass: u32) -> io::Result<bool> {
        let placing = self.shuffle.placing();
        let open = |stream| {
            Ok::<_, io::Error>(BufReader::with_capacity(READ_BYTES, source.file.stream(stream)?))
        };
        let mut outputs = open(outputs_of(source.partition))?;
        loop {
            let start = self.records.len();
            if !records::read_sized(&mut outputs, OUTPUT_HEAD_BYTES, &mut self.records)? {
                break;
            }
            let outpoint = &self.records[start..start + OUTPOINT_BYTES];
            if placing.pass(outpoint, self.passes) != pass {
                self.records.truncate(start);
                continue;
            }
            let prefix = u64::from_be_bytes(outpoint[..8].try_into().expect("eight bytes"));
            self.outputs.push(Output { prefix, start: start as u32 });
            if !self.fits() {
                return Ok(false);
            }
        }
        let mut spends = open(spends_of(source.partition))?;
        while let Some(spend) = records::read_spend(&mut spends)? {
            if placing.pass(&spend[..OUTPOINT_BYTES], self.passes) == pass {
                self.spends.push(spend);
                if !self.fits() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether memory holds what is there and another record.
    fn fits(&self) -> bool {
        let matches = self.outputs.len().min(self.spends.len()) * size_of::<Match>();
        let bytes = self.records.len()
            + size_of_val(&self.outputs[..])
            + size_of_val(&self.spends[..])
            + matches
            + OUTPUT_BYTES_MAX
            + 2 * READ_BYTES
            + self.piece.capacity();
        bytes as u64 <= self.bytes_max.max(FIXED_BYTES_MAX)
            && u32::try_from(self.records.len() + OUTPUT_BYTES_MAX).is_ok()
    }

    /// By outpoint, then by height.
    fn sort(&mut self) {
        let records = &self.records;
        let key = |output: &Output| {
            let record = &records[output.start as usize..];
            (&record[..32], word(record, 32), word(record, OUTPOINT_BYTES))
        };
        self.outputs
            .sort_unstable_by(|a, b| a.prefix.cmp(&b.prefix).then_with(|| key(a).cmp(&key(b))));
        self.spends
            .sort_unstable_by(|a, b| compare(a, b).then_with(|| place_of(a).cmp(&place_of(b))));
    }

    /// Goes through outputs and inputs side by side: matches, and coins that are left over. Gives the lowest input, by height,
    /// that finds no coin.
    fn sweep(&mut self, pass: u32) -> io::Result<Option<(u32, OutPoint)>> {
        let (mut spend, mut lowest) = (0, None::<(u32, OutPoint)>);
        self.matches = Vec::with_capacity(self.outputs.len().min(self.spends.len()));
        let stream = left_stream(self.shuffle.ranges.len(), (pass, self.passes));
        let mut miss = |spend: &Spend| {
            let (height, _) = place_of(spend);
            let found = (height, records::outpoint_of(spend));
            lowest = lowest.into_iter().chain([found]).min_by_key(|(height, _)| *height);
        };
        for at in 0..self.outputs.len() {
            let start = self.outputs[at].start as usize;
            let record = &self.records[start..];
            let height = word(record, OUTPOINT_BYTES);
            // An output of the same outpoint that comes later overwrites this one.
            let next = self.outputs.get(at + 1).map(|next| &self.records[next.start as usize..]);
            let next = next.filter(|next| next[..OUTPOINT_BYTES] == record[..OUTPOINT_BYTES]);
            let end_height = next.map_or(u32::MAX, |next| word(next, OUTPOINT_BYTES));
            let mut is_spent = false;
            while let Some(candidate) = self.spends.get(spend) {
                let order = compare(candidate, record);
                let (spend_height, _) = place_of(candidate);
                if order == Order::Greater || order == Order::Equal && spend_height >= end_height {
                    break;
                }
                if order == Order::Less || spend_height < height || is_spent {
                    miss(candidate);
                } else {
                    is_spent = true;
                    self.matches.push(Match { place: place_of(candidate), start: start as u32 });
                }
                spend += 1;
            }
            if !is_spent && next.is_none() {
                let length = word(record, OUTPUT_HEAD_BYTES - 4) >> 16;
                self.left += 1;
                self.piece.extend_from_slice(&record[..OUTPUT_HEAD_BYTES + length as usize]);
                if self.piece.len() >= PIECE_BYTES {
                    self.writer.append(stream, [&self.piece[..]])?;
                    self.piece.clear();
                }
            }
        }
        self.spends[spend..].iter().for_each(miss);
        self.writer.append(stream, [&self.piece[..]])?;
        self.piece.clear();
        Ok(lowest)
    }

    /// Writes the coins of each range in the order of its inputs, and forgets everything.
    fn write_matches(&mut self, pass: u32) -> io::Result<()> {
        self.matches.sort_unstable();
        let mut rest = &self.matches[..];
        for (range, number) in self.shuffle.ranges.iter().zip(0..) {
            let (here, others) =
                rest.split_at(rest.partition_point(|found| found.place.0 <= range.last));
            rest = others;
            let stream = claims_stream(number, (pass, self.passes));
            for found in here {
                let record = &self.records[found.start as usize..];
                let length = (word(record, OUTPUT_HEAD_BYTES - 4) >> 16) as usize;
                let coin = &record[OUTPUT_HEAD_BYTES..OUTPUT_HEAD_BYTES + length];
                records::write_claim(&mut self.piece, found.place, coin);
                if self.piece.len() >= PIECE_BYTES {
                    self.writer.append(stream, [&self.piece[..]])?;
                    self.piece.clear();
                }
            }
            self.writer.append(stream, [&self.piece[..]])?;
            self.piece.clear();
        }
        self.matches = Vec::new();
        self.records.clear();
        self.outputs.clear();
        self.spends.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), ShardError> {
        let stream =
            streams(self.shuffle.ranges.len(), self.passes).expect("as at the beginning") - 1;
        let count = self.left.to_le_bytes();
        self.writer.append(stream, [&count[..]]).map_err(io_failed(&self.path))?;
        self.writer.finish().map_err(io_failed(&self.path))
    }
}

/// Compares outpoints as Bitcoin Core orders them in its database, but for indices, which come in the order of numbers.
pub(super) fn compare(a: &[u8], b: &[u8]) -> Order {
    a[..32].cmp(&b[..32]).then_with(|| word(a, 32).cmp(&word(b, 32)))
}

/// Streams of the file of a partition: for each range the coins that it spends, by pass; the coins left over, by pass; and
/// their number.
fn streams(ranges: usize, passes: u32) -> Option<u32> {
    u32::try_from(ranges as u64 + 1).ok()?.checked_mul(passes)?.checked_add(1)
}

/// Passes, by the number of streams.
pub(super) fn passes_of(streams: u32, ranges: usize) -> Option<u32> {
    let by_range = streams.checked_sub(1)?;
    let ranges = u32::try_from(ranges + 1).ok()?;
    (by_range > 0 && by_range.is_multiple_of(ranges)).then(|| by_range / ranges)
}

pub(super) fn claims_stream(range: u32, (pass, passes): (u32, u32)) -> u32 {
    range * passes + pass
}

pub(super) fn left_stream(ranges: usize, (pass, passes): (u32, u32)) -> u32 {
    ranges as u32 * passes + pass
}

/// What is written at a time.
const PIECE_BYTES: usize = 128 << 10;
/// What is read at a time of outputs, and of inputs.
const READ_BYTES: usize = 64 << 10;
/// Room for a record, and what is read and written at a time.
const FIXED_BYTES_MAX: u64 = 512 << 10;
/// More than any machine has records for.
const PASSES_MAX: u32 = 1 << 16;
