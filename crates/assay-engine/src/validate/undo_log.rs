//! Undo data of connected blocks that a better branch may make stale, in one file next to the coins.
//!
//! The file grows until none of its data can be needed, and is then truncated. A truncated or damaged record ends the log: later
//! records are ignored. Layout: `docs/formats.md`.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use assay_hash::Sha256;
use assay_wire::BlockHash;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UndoRecord {
    /// Spent coins, encoded as for an undo file.
    pub(super) undo: Vec<u8>,
    /// True if its scripts were assumed to be valid.
    pub(super) is_assumed: bool,
}

pub(super) struct UndoLog {
    path: PathBuf,
    file: File,
    end: u64,
    /// Position and length of the undo data per block.
    places: HashMap<BlockHash, (u64, u32)>,
    is_dirty: bool,
}

/// Length of the undo data (4), 1 if scripts were assumed (1), block hash (32).
const HEAD_BYTES: usize = 37;
/// SHA-256d of everything before.
const CHECKSUM_BYTES: usize = 32;

impl UndoLog {
    /// Opens or creates the log at `path`.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let size = file.metadata()?.len();
        let (mut places, mut end) = (HashMap::new(), 0);
        let mut reader = BufReader::with_capacity(1 << 20, &file);
        while let Some((head, _)) = read_record(&mut reader, size - end)? {
            places.insert(head.hash, (end, head.length));
            end += head.record_bytes();
        }
        file.set_len(end)?;
        Ok(Self { path: path.to_path_buf(), file, end, places, is_dirty: false })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Appends the undo data of a block, unless present.
    pub(super) fn append(
        &mut self,
        hash: &BlockHash,
        undo: &[u8],
        is_assumed: bool,
    ) -> io::Result<()> {
        if self.places.contains_key(hash)
            && self.get(hash)?.is_some_and(|old| old.is_assumed == is_assumed)
        {
            return Ok(());
        }
        let length = u32::try_from(undo.len()).map_err(io::Error::other)?;
        let head = Head { length, is_assumed, hash: *hash };
        let mut record = head.to_bytes().to_vec();
        record.extend_from_slice(undo);
        let checksum = checksum(&record);
        record.extend_from_slice(&checksum);
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&record)?;
        self.places.insert(*hash, (self.end, length));
        self.end += record.len() as u64;
        self.is_dirty = true;
        Ok(())
    }

    /// The undo data of a block; `None` if missing or damaged.
    pub(super) fn get(&mut self, hash: &BlockHash) -> io::Result<Option<UndoRecord>> {
        let Some((offset, length)) = self.places.get(hash).copied() else { return Ok(None) };
        self.file.seek(SeekFrom::Start(offset))?;
        let bytes = (HEAD_BYTES + CHECKSUM_BYTES) as u64 + u64::from(length);
        let found = read_record(&mut (&self.file).take(bytes), bytes)?;
        let found = found.filter(|(head, _)| head.hash == *hash);
        Ok(found.map(|(head, undo)| UndoRecord { undo, is_assumed: head.is_assumed }))
    }

    /// Makes all records survive a power cut.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_dirty) {
            self.file.sync_data()?;
        }
        Ok(())
    }

    pub(super) fn clear(&mut self) -> io::Result<()> {
        self.places.clear();
        self.end = 0;
        self.file.set_len(0)
    }
}

struct Head {
    length: u32,
    is_assumed: bool,
    hash: BlockHash,
}

impl Head {
    fn to_bytes(&self) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4] = u8::from(self.is_assumed);
        bytes[5..].copy_from_slice(&self.hash.0);
        bytes
    }

    fn parse(bytes: &[u8; HEAD_BYTES]) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(&bytes[5..]);
        let length = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Self { length, is_assumed: bytes[4] != 0, hash: BlockHash(hash) }
    }

    fn record_bytes(&self) -> u64 {
        (HEAD_BYTES + CHECKSUM_BYTES) as u64 + u64::from(self.length)
    }
}

/// The next record, if it is complete and within `left` bytes.
fn read_record(reader: &mut impl Read, left: u64) -> io::Result<Option<(Head, Vec<u8>)>> {
    if left < HEAD_BYTES as u64 {
        return Ok(None);
    }
    let mut head_bytes = [0; HEAD_BYTES];
    reader.read_exact(&mut head_bytes)?;
    let head = Head::parse(&head_bytes);
    if head.record_bytes() > left {
        return Ok(None);
    }
    let mut record = head_bytes.to_vec();
    record.resize(HEAD_BYTES + head.length as usize, 0);
    reader.read_exact(&mut record[HEAD_BYTES..])?;
    let mut found = [0; CHECKSUM_BYTES];
    reader.read_exact(&mut found)?;
    if checksum(&record) != found {
        return Ok(None);
    }
    record.drain(..HEAD_BYTES);
    Ok(Some((head, record)))
}

fn checksum(record: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = Sha256::new();
    hasher.update(record);
    hasher.finalize_double()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(number: u8) -> UndoRecord {
        UndoRecord { undo: vec![number; number as usize * 7], is_assumed: number % 2 == 1 }
    }

    fn append(log: &mut UndoLog, number: u8) {
        let UndoRecord { undo, is_assumed } = record(number);
        log.append(&BlockHash([number; 32]), &undo, is_assumed).unwrap();
    }

    /// Number of leading records present; none may follow a missing one.
    fn whole(log: &mut UndoLog) -> usize {
        let found: Vec<_> = (0..5u8).map(|n| (n, log.get(&BlockHash([n; 32])).unwrap())).collect();
        let count = found.iter().take_while(|(_, found)| found.is_some()).count();
        for (number, found) in found {
            assert_eq!(found, ((number as usize) < count).then(|| record(number)));
        }
        count
    }

    #[test]
    fn records_come_back_and_every_cut_and_flip_ends_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("undo.log");
        let mut log = UndoLog::open(&path).unwrap();
        (0..5).for_each(|number| append(&mut log, number));
        append(&mut log, 3);
        log.sync().unwrap();
        assert_eq!(whole(&mut log), 5);
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes.len(), 5 * 69 + 70, "a record that is there is not written again");
        for at in 0..bytes.len() {
            let ends =
                |at: usize| [69, 145, 228, 318, 415].iter().filter(|end| **end <= at).count();
            std::fs::write(&path, &bytes[..at]).unwrap();
            let mut cut = UndoLog::open(&path).unwrap();
            assert_eq!(whole(&mut cut), ends(at));
            append(&mut cut, 4);
            assert_eq!(cut.get(&BlockHash([4; 32])).unwrap(), Some(record(4)));
            let mut flipped = bytes.clone();
            flipped[at] ^= 4;
            std::fs::write(&path, &flipped).unwrap();
            assert_eq!(whole(&mut UndoLog::open(&path).unwrap()), ends(at));
        }
        log.clear().unwrap();
        assert!(log.is_empty() && whole(&mut log) == 0);
        append(&mut log, 0);
        assert_eq!(whole(&mut log), 1);
    }
}
