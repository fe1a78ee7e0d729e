//! Files of spent coins per block (`spent-00000.dat` …), to validate parts of a chain from.
//!
//! The hash of the block identifies a record. Records are in any order; the last one of a block is valid. The data are not
//! trusted: callers verify them by other means. Layout: `docs/formats.md`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use assay_wire::BlockHash;

use crate::block_files::{BlockFile, BlockFilesError, numbered};
use crate::codec;

#[derive(Debug, thiserror::Error)]
pub enum SpentFilesError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: is no file of spent coins of this chain", path.display())]
    Foreign { path: PathBuf },
    #[error("{}: holds no spent-*.dat; `assay validate --write-spent` writes them", path.display())]
    Empty { path: PathBuf },
    #[error(
        "{}: holds no rev*.dat; without undo data, validate these blocks by `assay validate` (with --write-spent, it writes \
         the coins that they spend)",
        path.display()
    )]
    NoUndo { path: PathBuf },
    #[error(
        "{} offset {offset}: was written by a version of Bitcoin Core before 0.15, which did not keep the heights of all coins; \
         run it with -reindex, or `assay validate --write-spent`",
        path.display()
    )]
    OldUndo { path: PathBuf, offset: u64 },
    #[error(transparent)]
    Files(#[from] BlockFilesError),
    /// A record does not match its checksum.
    #[error("{} offset {offset}: the record of spent coins is damaged", path.display())]
    Damaged { path: PathBuf, offset: u64 },
}

/// Position of the record of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpentPlace {
    pub file: u32,
    /// Offset of the spent coins, encoded as undo data.
    pub offset: u64,
    pub bytes: u32,
}

/// Search result for one record.
#[derive(Clone, Copy, Debug)]
pub struct SpentEntry {
    pub block: BlockHash,
    pub place: SpentPlace,
    /// Number of coins according to the record.
    pub coins: u64,
}

#[derive(Debug)]
pub struct SpentWriter {
    dir: PathBuf,
    magic: [u8; 4],
    number: u32,
    file: BufWriter<File>,
    end: u64,
    file_bytes_max: u64,
}

impl SpentWriter {
    /// Continues after the records in `dir`, which is created if missing; drops a truncated record.
    pub fn open(dir: &Path, magic: [u8; 4]) -> Result<Self, SpentFilesError> {
        Self::with_file_bytes(dir, magic, FILE_BYTES_MAX)
    }

    fn with_file_bytes(
        dir: &Path,
        magic: [u8; 4],
        file_bytes_max: u64,
    ) -> Result<Self, SpentFilesError> {
        let failed = |source| SpentFilesError::Io { path: dir.to_path_buf(), source };
        fs::create_dir_all(dir).map_err(failed)?;
        let number = numbered(dir, PREFIX)?.last().map_or(0, |(number, _)| *number);
        let (file, end) = open_at_end(&path_of(dir, number), magic)?;
        Ok(Self { dir: dir.to_path_buf(), magic, number, file, end, file_bytes_max })
    }

    /// Adds the coins that a block spent, encoded as undo data.
    pub fn push(&mut self, block: &BlockHash, undo: &[u8]) -> Result<(), SpentFilesError> {
        let bytes = (HEAD_BYTES + undo.len() + CHECKSUM_BYTES) as u64;
        if self.end > FILE_HEAD_BYTES && self.end + bytes > self.file_bytes_max {
            self.sync()?;
            let path = path_of(&self.dir, self.number + 1);
            (self.file, self.end) = open_at_end(&path, self.magic)?;
            self.number += 1;
        }
        write_record(&mut self.file, block, undo).map_err(|source| self.failed(source))?;
        self.end += bytes;
        Ok(())
    }

    /// Makes all records survive a power cut.
    pub fn sync(&mut self) -> Result<(), SpentFilesError> {
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_data());
        synced.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> SpentFilesError {
        SpentFilesError::Io { path: path_of(&self.dir, self.number), source }
    }
}

#[derive(Debug)]
pub struct SpentFiles {
    dir: PathBuf,
    magic: [u8; 4],
    files: Vec<(u32, u64)>,
}

impl SpentFiles {
    /// Finds the files in `dir`.
    pub fn open(dir: &Path, magic: [u8; 4]) -> Result<Self, SpentFilesError> {
        let files = lengths(&numbered(dir, PREFIX)?);
        if files.is_empty() {
            return Err(SpentFilesError::Empty { path: dir.to_path_buf() });
        }
        Ok(Self { dir: dir.to_path_buf(), magic, files })
    }

    pub fn files(&self) -> &[(u32, u64)] {
        &self.files
    }

    pub fn path_of(&self, number: u32) -> PathBuf {
        path_of(&self.dir, number)
    }

    /// Visits every record. A truncated record ends its file; contents are not checked.
    pub fn for_each(&self, mut visit: impl FnMut(SpentEntry)) -> Result<(), SpentFilesError> {
        for (number, _) in &self.files {
            let path = self.path_of(*number);
            let (mut reader, size) = open_to_read(&path, self.magic)?;
            let mut at = FILE_HEAD_BYTES;
            let failed = |source| SpentFilesError::Io { path: path.clone(), source };
            while let Some(head) = Head::read(&mut reader, size - at).map_err(failed)? {
                let offset = at + HEAD_BYTES as u64;
                let mut count = [0; COUNT_BYTES];
                let seen = (head.bytes as usize).min(COUNT_BYTES);
                reader.read_exact(&mut count[..seen]).map_err(failed)?;
                let coins = codec::read_varint(&mut &count[..seen]).unwrap_or(0);
                let place = SpentPlace { file: *number, offset, bytes: head.bytes };
                visit(SpentEntry { block: head.block, place, coins });
                at += head.record_bytes();
                let rest = i64::from(head.bytes) - seen as i64 + CHECKSUM_BYTES as i64;
                reader.seek_relative(rest).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Reads the coins that a block spent, encoded as undo data.
    pub fn read(&self, place: &SpentPlace, block: &BlockHash) -> Result<Vec<u8>, SpentFilesError> {
        let path = self.path_of(place.file);
        let (undo, found) = read_record::<CHECKSUM_BYTES>(&path, place, HEAD_BYTES as u64)?;
        if checksum(block, &undo) != found {
            let offset = place.offset.saturating_sub(HEAD_BYTES as u64);
            return Err(SpentFilesError::Damaged { path, offset });
        }
        Ok(undo)
    }
}

/// Header of a record, before its coins.
struct Head {
    bytes: u32,
    block: BlockHash,
}

impl Head {
    /// The header of the next record, if it is complete and within `left` bytes.
    fn read(reader: &mut impl Read, left: u64) -> io::Result<Option<Self>> {
        if left < HEAD_BYTES as u64 {
            return Ok(None);
        }
        let mut length = [0; 4];
        let mut block = BlockHash::ZERO;
        reader.read_exact(&mut length)?;
        reader.read_exact(&mut block.0)?;
        let head = Self { bytes: u32::from_le_bytes(length), block };
        Ok((head.record_bytes() <= left).then_some(head))
    }

    fn record_bytes(&self) -> u64 {
        (HEAD_BYTES + CHECKSUM_BYTES) as u64 + u64::from(self.bytes)
    }
}

fn write_record(file: &mut impl Write, block: &BlockHash, undo: &[u8]) -> io::Result<()> {
    let length = u32::try_from(undo.len()).map_err(io::Error::other)?;
    file.write_all(&length.to_le_bytes())?;
    file.write_all(&block.0)?;
    file.write_all(undo)?;
    file.write_all(&checksum(block, undo))
}

/// Numbers and lengths of files.
pub(crate) fn lengths(files: &[(u32, BlockFile)]) -> Vec<(u32, u64)> {
    files.iter().map(|(number, file)| (*number, file.bytes)).collect()
}

fn path_of(dir: &Path, number: u32) -> PathBuf {
    dir.join(format!("{PREFIX}{number:05}.dat"))
}

/// The coins at a position, and the checksum of `N` bytes after them. The record starts `head_bytes` before.
pub(crate) fn read_record<const N: usize>(
    path: &Path,
    place: &SpentPlace,
    head_bytes: u64,
) -> Result<(Vec<u8>, [u8; N]), SpentFilesError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::UnexpectedEof => {
            let offset = place.offset.saturating_sub(head_bytes);
            SpentFilesError::Damaged { path: path.to_path_buf(), offset }
        }
        _ => SpentFilesError::Io { path: path.to_path_buf(), source },
    };
    let mut file = File::open(path).map_err(failed)?;
    file.seek(SeekFrom::Start(place.offset)).map_err(failed)?;
    let (mut undo, mut checksum) = (vec![0; place.bytes as usize], [0; N]);
    file.read_exact(&mut undo).map_err(failed)?;
    file.read_exact(&mut checksum).map_err(failed)?;
    Ok((undo, checksum))
}

/// Opens or creates a file to append to, and finds the end of its last complete record.
fn open_at_end(path: &Path, magic: [u8; 4]) -> Result<(BufWriter<File>, u64), SpentFilesError> {
    let failed = |source| SpentFilesError::Io { path: path.to_path_buf(), source };
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let mut file = options.map_err(failed)?;
    let mut end = FILE_HEAD_BYTES;
    if file.metadata().map_err(failed)?.len() < FILE_HEAD_BYTES {
        file.set_len(0).map_err(failed)?;
        file.write_all(&file_head(magic)).map_err(failed)?;
    } else {
        let (mut reader, size) = open_to_read(path, magic)?;
        while let Some(head) = Head::read(&mut reader, size - end).map_err(failed)? {
            end += head.record_bytes();
            reader
                .seek_relative((head.record_bytes() - HEAD_BYTES as u64) as i64)
                .map_err(failed)?;
        }
        file.set_len(end).map_err(failed)?;
    }
    file.seek(SeekFrom::Start(end)).map_err(failed)?;
    Ok((BufWriter::with_capacity(1 << 20, file), end))
}

fn open_to_read(path: &Path, magic: [u8; 4]) -> Result<(BufReader<File>, u64), SpentFilesError> {
    let failed = |source| SpentFilesError::Io { path: path.to_path_buf(), source };
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let mut reader = BufReader::with_capacity(HEADS_BYTES, file);
    let mut head = [0; FILE_HEAD_BYTES as usize];
    let is_ours = reader.read_exact(&mut head).is_ok() && head == file_head(magic);
    if is_ours { Ok((reader, size)) } else { Err(SpentFilesError::Foreign { path: path.into() }) }
}

fn file_head(magic: [u8; 4]) -> [u8; FILE_HEAD_BYTES as usize] {
    let mut head = *b"assay spent 1\n\0\0\0\0\0\0";
    head[16..].copy_from_slice(&magic);
    head
}

fn checksum(block: &BlockHash, undo: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&block.0);
    hasher.update(undo);
    hasher.finalize().to_le_bytes()
}

/// Read size for the headers of records, which are far apart.
pub(crate) const HEADS_BYTES: usize = 4096;
const PREFIX: &str = "spent-";
/// Name and version of the format, and the magic bytes of the chain.
const FILE_HEAD_BYTES: u64 = 20;
/// Length of the coins (4), hash of the block.
const HEAD_BYTES: usize = 36;
/// CRC-32 of hash and coins.
const CHECKSUM_BYTES: usize = 4;
/// Most bytes of the number of coins.
const COUNT_BYTES: usize = 10;
/// A new file starts when the next record would exceed this length.
const FILE_BYTES_MAX: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: [u8; 4] = [1, 2, 3, 4];

    fn undo(number: u8) -> Vec<u8> {
        [vec![number], vec![0xee; usize::from(number) * 9]].concat()
    }

    fn push(writer: &mut SpentWriter, number: u8) {
        writer.push(&BlockHash([number; 32]), &undo(number)).unwrap();
    }

    fn entries(dir: &Path) -> Vec<SpentEntry> {
        let mut found = Vec::new();
        SpentFiles::open(dir, MAGIC).unwrap().for_each(|entry| found.push(entry)).unwrap();
        found
    }

    #[test]
    fn records_come_back_from_several_files_and_after_every_cut() {
        let dir = tempfile::tempdir().unwrap();
        let open = || SpentWriter::with_file_bytes(dir.path(), MAGIC, 200).unwrap();
        let mut writer = open();
        (0..5).for_each(|number| push(&mut writer, number));
        writer.sync().unwrap();
        let mut writer = open();
        (5..9).for_each(|number| push(&mut writer, number));
        writer.sync().unwrap();
        let files = SpentFiles::open(dir.path(), MAGIC).unwrap();
        assert!(files.files().len() > 3);
        let found = entries(dir.path());
        assert_eq!(found.len(), 9);
        for (number, entry) in found.iter().enumerate() {
            let number = number as u8;
            assert_eq!((entry.block, entry.coins), (BlockHash([number; 32]), number.into()));
            assert_eq!(files.read(&entry.place, &entry.block).unwrap(), undo(number));
            let other = BlockHash([99; 32]);
            let error = files.read(&entry.place, &other).unwrap_err();
            assert!(matches!(error, SpentFilesError::Damaged { .. }), "{error}");
        }
        let (last, size) = *files.files().last().unwrap();
        let path = files.path_of(last);
        let before = found.iter().filter(|entry| entry.place.file < last).count();
        for cut in 0..size {
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..cut as usize]).unwrap();
            let mut writer = open();
            push(&mut writer, 77);
            writer.sync().unwrap();
            let now = entries(dir.path());
            assert!(now.len() > before && now.last().unwrap().block == BlockHash([77; 32]));
            fs::remove_file(path_of(dir.path(), last + 1)).unwrap_or_default();
            fs::write(&path, &bytes).unwrap();
        }
    }

    #[test]
    fn rejects_other_files() {
        let dir = tempfile::tempdir().unwrap();
        let error = SpentFiles::open(dir.path(), MAGIC).unwrap_err();
        assert!(error.to_string().contains("--write-spent"), "{error}");
        let mut writer = SpentWriter::open(dir.path(), MAGIC).unwrap();
        push(&mut writer, 1);
        writer.sync().unwrap();
        let error = SpentWriter::open(dir.path(), [9; 4]).unwrap_err();
        assert!(matches!(error, SpentFilesError::Foreign { .. }), "{error}");
        let files = SpentFiles::open(dir.path(), [9; 4]).unwrap();
        assert!(matches!(files.for_each(|_| {}), Err(SpentFilesError::Foreign { .. })));
    }
}
