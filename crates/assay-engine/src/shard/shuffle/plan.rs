//! What a shuffle is of: the chain, its ranges of blocks, and where outpoints go. Layout: `docs/formats.md`.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_hash::sha256;
use assay_store::{BlockFiles, BlockPlace, fresh_name};
use assay_wire::BlockHash;

use super::super::plan::{ParamsOf, Part, Place, digest, is_prefix};
use super::super::planning::{absolute, cut_blocks, find_chain, list_files};
use super::super::{ShardError, io_failed, unusable};
use super::records::Placing;
use crate::validate::ValidateProgress;

/// What to shuffle.
#[derive(Clone, Debug)]
pub struct ShuffleConfig {
    /// Directory of block files, or one such file.
    pub blocks: PathBuf,
    /// The chain.
    pub params: Arc<ChainParams>,
    /// Last height.
    pub stop_height: Option<u32>,
    /// Ranges of blocks wanted.
    pub ranges: usize,
    /// Partitions; chosen by the size of the chain where it is `None`.
    pub partitions: Option<u32>,
    /// Memory of one unit of work, by which partitions are chosen.
    pub unit_bytes: u64,
    /// Random: where outpoints go must not be known to who makes blocks.
    pub key: [u8; 16],
    /// Threads that search files; at least 1.
    pub threads: usize,
}

/// Blocks with these heights, ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRange {
    /// The first.
    pub first: u32,
    /// The last.
    pub last: u32,
    /// Their bytes.
    pub bytes: u64,
}

/// A shuffle that was prepared.
#[derive(Debug)]
pub struct Shuffle {
    pub(super) dir: PathBuf,
    pub(super) params: ChainParams,
    pub(super) tip: BlockHash,
    pub(super) partitions: u32,
    pub(super) ranges: Vec<BlockRange>,
    pub(super) id: [u8; 32],
    text: Text,
}

/// Prepares a shuffle in a folder, which is made if it is missing.
///
/// # Errors
/// The files do not hold a whole chain.
pub fn prepare_shuffle(
    config: &ShuffleConfig,
    dir: &Path,
    progress: &dyn ValidateProgress,
) -> Result<(), ShardError> {
    let params = &*config.params;
    let files = BlockFiles::open(&config.blocks, params.disk_magic)?;
    let wanted = (config.threads, config.stop_height);
    let (_, blocks) = find_chain(params, &files, wanted, progress)?;
    fs::create_dir_all(dir).map_err(io_failed(dir))?;
    let mut table = Vec::with_capacity(blocks.len() * ENTRY_BYTES);
    for (hash, place) in &blocks {
        table.extend_from_slice(&hash.0);
        table.extend_from_slice(&place.file.to_le_bytes());
        table.extend_from_slice(&place.size.to_le_bytes());
        table.extend_from_slice(&place.offset.to_le_bytes());
    }
    let ranges = cut(&blocks, config.ranges);
    let bytes: u64 = ranges.iter().map(|range| range.bytes).sum();
    let partitions = config.partitions.unwrap_or_else(|| partitions(bytes, config.unit_bytes));
    let text = Text {
        chain: params.name.to_owned(),
        tip: (blocks.len() as u32, blocks.last().map_or(params.genesis_hash, |block| block.0)),
        largest: blocks.iter().map(|(_, place)| place.size).max().unwrap_or(0),
        blocks: absolute(&config.blocks)?,
        block_files: list_files(&files),
        key: config.key,
        partitions,
        ranges,
        table: sha256(&table),
    };
    // The text comes last: without it nothing is prepared.
    for (name, bytes) in [(TABLE_NAME, &table[..]), (TEXT_NAME, text.print().as_bytes())] {
        let path = dir.join(name);
        let fresh = fresh_name(&path);
        let written = fs::write(&fresh, bytes)
            .and_then(|()| File::open(&fresh)?.sync_all())
            .and_then(|()| fs::rename(&fresh, &path));
        written.map_err(io_failed(&path))?;
    }
    Ok(())
}

impl Shuffle {
    /// Whether a folder holds one.
    pub fn is_prepared(dir: &Path) -> bool {
        dir.join(TEXT_NAME).exists()
    }

    /// Reads what [`prepare_shuffle`] wrote.
    ///
    /// # Errors
    /// It is none, is damaged, or of an unknown chain.
    pub fn open(dir: &Path, params_of: &ParamsOf<'_>) -> Result<Self, ShardError> {
        let path = dir.join(TEXT_NAME);
        let printed = fs::read_to_string(&path).map_err(io_failed(&path))?;
        let again = "begin again in an empty folder";
        let text = Text::parse(&printed).map_err(|line| {
            unusable(&path, format!("line {line} is not one of a shuffle; {again}"))
        })?;
        text.check().map_err(|what| unusable(&path, format!("{what}; {again}")))?;
        let params = params_of(&text.chain, &[]).map_err(|what| unusable(&path, what))?;
        let table = dir.join(TABLE_NAME);
        let is_whole = fs::metadata(&table).map_err(io_failed(&table))?.len()
            == u64::from(text.tip.0) * ENTRY_BYTES as u64;
        let is_right = is_whole && sha256_of_file(&table).map_err(io_failed(&table))? == text.table;
        if !is_right {
            return Err(unusable(&table, format!("does not belong to the shuffle; {again}")));
        }
        Ok(Self {
            dir: dir.to_path_buf(),
            params,
            tip: text.tip.1,
            partitions: text.partitions,
            ranges: text.ranges.clone(),
            id: sha256(printed.as_bytes()),
            text,
        })
    }

    /// Name of the chain.
    pub fn chain(&self) -> &str {
        self.params.name
    }

    /// Height and hash of the last block.
    pub fn tip(&self) -> (u32, BlockHash) {
        self.text.tip
    }

    /// SHA-256 of what was prepared: files of another shuffle do not belong to it.
    pub fn id(&self) -> [u8; 32] {
        self.id
    }

    /// The ranges of blocks.
    pub fn ranges(&self) -> &[BlockRange] {
        &self.ranges
    }

    /// Number of partitions.
    pub fn partitions(&self) -> u32 {
        self.partitions
    }

    /// Bytes of the largest block.
    pub fn largest_block_bytes(&self) -> u32 {
        self.text.largest
    }

    /// Whether the blocks of a range have been scattered.
    pub fn is_scattered(&self, range: usize) -> bool {
        self.scattered(range).exists()
    }

    /// Whether a partition has been joined.
    pub fn is_joined(&self, partition: u32) -> bool {
        self.joined(partition).exists()
    }

    pub(super) fn scattered(&self, range: usize) -> PathBuf {
        self.dir.join(format!("scatter-{range:05}.bin"))
    }

    pub(super) fn joined(&self, partition: u32) -> PathBuf {
        self.dir.join(format!("join-{partition:05}.bin"))
    }

    pub(super) fn placing(&self) -> Placing {
        Placing::new(&self.text.key)
    }

    pub(super) fn range(&self, range: usize) -> Result<BlockRange, ShardError> {
        let count = self.ranges.len();
        self.ranges.get(range).copied().ok_or(ShardError::NoPart { part: range, count })
    }

    /// The block files, which must be those that the shuffle was prepared from; `moved` says where they are now.
    pub(super) fn open_files(&self, moved: Option<&Path>) -> Result<BlockFiles, ShardError> {
        let path = moved.unwrap_or(&self.text.blocks);
        let files = BlockFiles::open(path, self.params.disk_magic)?;
        if !is_prefix(&self.text.block_files, list_files(&files).into_iter()) {
            return Err(unusable(path, "holds other block files than those of the shuffle"));
        }
        Ok(files)
    }

    /// Hashes and places of the blocks of a range.
    pub(super) fn blocks(
        &self,
        range: &BlockRange,
    ) -> Result<Vec<(BlockHash, BlockPlace)>, ShardError> {
        let path = self.dir.join(TABLE_NAME);
        let mut entries = vec![0; (range.last - range.first + 1) as usize * ENTRY_BYTES];
        let read = File::open(&path).and_then(|mut file| {
            let first = u64::from(range.first - 1) * ENTRY_BYTES as u64;
            file.seek(SeekFrom::Start(first))?;
            file.read_exact(&mut entries)
        });
        read.map_err(io_failed(&path))?;
        let of = |entry: &[u8; ENTRY_BYTES]| {
            let mut hash = BlockHash::ZERO;
            hash.0.copy_from_slice(&entry[..32]);
            let word =
                |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().expect("four bytes"));
            let offset = u64::from_le_bytes(entry[40..].try_into().expect("eight bytes"));
            (hash, BlockPlace { file: word(32), offset, size: word(36) })
        };
        Ok(entries.as_chunks().0.iter().map(of).collect())
    }
}

/// Ranges of about as many bytes.
fn cut(blocks: &[(BlockHash, BlockPlace)], ranges: usize) -> Vec<BlockRange> {
    let spent = assay_store::SpentPlace { file: 0, offset: 0, bytes: 0 };
    let places: Vec<Place> = blocks.iter().map(|&(_, block)| Place { block, spent }).collect();
    let parts = cut_blocks(&places, &vec![0; places.len()], ranges);
    let range = |part: &Part| match *part {
        Part::Blocks { first, last, bytes, .. } => BlockRange { first, last, bytes },
        Part::Coins { .. } => unreachable!("blocks are cut into parts of blocks"),
    };
    parts.iter().map(range).collect()
}

/// So many that each fits into the memory of one unit: a byte of a block leaves 1.5 bytes of outputs and inputs at most, about.
fn partitions(bytes: u64, unit_bytes: u64) -> u32 {
    let wanted = (bytes * 2).div_ceil(unit_bytes.max(1));
    wanted.clamp(PARTITIONS_MIN, PARTITIONS_MAX.into()) as u32
}

fn sha256_of_file(path: &Path) -> std::io::Result<[u8; 32]> {
    let mut file = File::open(path)?;
    let mut hasher = assay_hash::Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

/// The lines of a shuffle.
#[derive(Debug)]
struct Text {
    chain: String,
    tip: (u32, BlockHash),
    /// Bytes of the largest block.
    largest: u32,
    blocks: PathBuf,
    block_files: Vec<(String, u64)>,
    key: [u8; 16],
    partitions: u32,
    ranges: Vec<BlockRange>,
    table: [u8; 32],
}

impl Text {
    fn print(&self) -> String {
        let (height, hash) = self.tip;
        let mut lines = vec![
            TITLE.to_owned(),
            format!("chain {}", self.chain),
            format!("tip {height} {hash}"),
            format!("largest {}", self.largest),
            format!("blocks {}", self.blocks.display()),
        ];
        let file = |(name, bytes): &(String, u64)| format!("block-file {bytes} {name}");
        lines.extend(self.block_files.iter().map(file));
        lines.push(format!("key {}", faster_hex::hex_string(&self.key)));
        lines.push(format!("partitions {}", self.partitions));
        let range =
            |range: &BlockRange| format!("range {} {} {}", range.first, range.last, range.bytes);
        lines.extend(self.ranges.iter().map(range));
        lines.push(format!("table {}", BlockHash(self.table)));
        lines.push(String::new());
        lines.join("\n")
    }

    /// Reads lines; gives the number of the first that is not one of a shuffle.
    fn parse(text: &str) -> Result<Self, usize> {
        let mut read = Self {
            chain: String::new(),
            tip: (0, BlockHash::ZERO),
            largest: 0,
            blocks: PathBuf::new(),
            block_files: Vec::new(),
            key: [0; 16],
            partitions: 0,
            ranges: Vec::new(),
            table: [0; 32],
        };
        let mut is_whole = false;
        for (number, line) in text.lines().enumerate() {
            let known = if number == 0 { line == TITLE } else { read.take(line).is_some() };
            if !known || is_whole {
                return Err(number + 1);
            }
            is_whole = line.starts_with("table ");
        }
        if is_whole { Ok(read) } else { Err(text.lines().count()) }
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let (key, value) = line.split_once(' ')?;
        let pair = || value.split_once(' ');
        match key {
            "chain" => value.clone_into(&mut self.chain),
            "tip" => {
                let (height, hash) = pair()?;
                self.tip = (height.parse().ok()?, hash.parse().ok()?);
            }
            "largest" => self.largest = value.parse().ok()?,
            "blocks" => self.blocks = value.into(),
            "block-file" => {
                let (bytes, name) = pair()?;
                self.block_files.push((name.to_owned(), bytes.parse().ok()?));
            }
            "key" => {
                (value.len() == 32).then_some(())?;
                faster_hex::hex_decode(value.as_bytes(), &mut self.key).ok()?;
            }
            "partitions" => self.partitions = value.parse().ok()?,
            "range" => {
                let (first, rest) = pair()?;
                let (last, bytes) = rest.split_once(' ')?;
                let (first, last) = (first.parse().ok()?, last.parse().ok()?);
                self.ranges.push(BlockRange { first, last, bytes: bytes.parse().ok()? });
            }
            "table" => self.table = digest(value)?,
            _ => return None,
        }
        Some(())
    }

    /// Ranges tile the heights from 1 to the last.
    fn check(&self) -> Result<(), String> {
        if !(1..=PARTITIONS_MAX).contains(&self.partitions) {
            return Err(format!("{} partitions", self.partitions));
        }
        let mut next = 1;
        for range in &self.ranges {
            if u64::from(range.first) != next || range.last < range.first || range.last > self.tip.0
            {
                return Err(format!("no range begins at height {next}"));
            }
            next = u64::from(range.last) + 1;
        }
        if next == u64::from(self.tip.0) + 1 {
            Ok(())
        } else {
            Err("ranges are missing".to_owned())
        }
    }
}

const TITLE: &str = "assay shuffle 1";
const TEXT_NAME: &str = "shuffle.txt";
const TABLE_NAME: &str = "blocks.bin";
/// Hash (32), file and size of the block (4 each), offset (8).
const ENTRY_BYTES: usize = 48;
/// As many at least are joined at a time, and again after an interruption.
const PARTITIONS_MIN: u64 = 16;
/// Every one is a file, and is read by every range at the end.
const PARTITIONS_MAX: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_comes_back_and_another_one_does_not() {
        let text = Text {
            chain: "regtest".to_owned(),
            tip: (9, BlockHash([4; 32])),
            largest: 77,
            blocks: "/some where".into(),
            block_files: vec![("blk 0.dat".to_owned(), 5)],
            key: [9; 16],
            partitions: 3,
            ranges: vec![
                BlockRange { first: 1, last: 5, bytes: 3 },
                BlockRange { first: 6, last: 9, bytes: 2 },
            ],
            table: [1; 32],
        };
        let printed = text.print();
        let read = Text::parse(&printed).unwrap();
        assert_eq!(read.print(), printed);
        read.check().unwrap();
        for (wrong, what) in [
            (printed.replace("range 6 9", "range 7 9"), "no range begins at height 6"),
            (printed.replace("range 6 9", "range 6 8"), "ranges are missing"),
            (printed.replace("range 6 9", "range 6 4294967295"), "no range begins at height 6"),
            (printed.replace("partitions 3", "partitions 0"), "0 partitions"),
        ] {
            assert_eq!(Text::parse(&wrong).unwrap().check(), Err(what.to_owned()));
        }
        for cut in 0..printed.len() - 1 {
            let read = Text::parse(&printed[..cut]);
            assert!(read.is_err() || read.unwrap().table != text.table, "cut at {cut}");
        }
    }
}
