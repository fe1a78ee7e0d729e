//! Fixed-length records, one per block of the active chain, and the records of disconnected blocks.
//!
//! Storage of an index that holds one fact per block. `heights.dat` has the records of the active chain. `stale.dat` has the
//! records of blocks that a reorg disconnected, in the order of disconnection, looked up by hash. `data.dat` has the
//! variable-length data, referenced by offset from the records. The manifest holds the valid length of each file; bytes beyond it
//! were not committed and are rebuilt. Layout: `docs/formats.md`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_store::defect::Whole;
use assay_store::io::Io;
use assay_store::{ReplaceError, read_file, replace_file};
use assay_wire::BlockHash;
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use crate::chain::Tip;
use crate::index::{QueryError, RecordFile, SUM_BYTES, record_sum};

#[derive(Debug, thiserror::Error)]
pub enum RecordsError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    #[error("{} is damaged ({what}); remove the folder, and the index is built anew", path.display())]
    Damaged { path: PathBuf, what: &'static str },
    #[error("{} is an index of another chain, kind or version; remove the folder, and the index is built anew", path.display())]
    Other { path: PathBuf },
    #[error("block {hash} does not follow the tip of the index")]
    NotNext { hash: BlockHash },
    #[error("block {hash}: {what}")]
    Block { hash: BlockHash, what: &'static str },
}

impl From<QueryError> for RecordsError {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Damaged { path, what, .. } => Self::Damaged { path, what },
            QueryError::Io { path, source } => Self::Io { path, source },
            // Of queries; record files have no other errors.
            other => Self::Io { path: PathBuf::new(), source: std::io::Error::other(other) },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) hash: BlockHash,
    pub(crate) fields: Vec<u8>,
}

/// The files and their state. Thread-safe.
pub(crate) struct HeightIndex {
    dir: PathBuf,
    /// Name and version of the field layout.
    kind: &'static str,
    genesis: BlockHash,
    fields_bytes: usize,
    io: Arc<dyn Io>,
    heights: RecordFile,
    stale: RecordFile,
    data: RecordFile,
    state: RwLock<State>,
}

struct State {
    tip: Option<Tip>,
    data_bytes: u64,
    /// Record numbers of disconnected blocks.
    stale: HashMap<BlockHash, u64>,
    stale_count: u64,
    /// Tip in the manifest on disk.
    committed: Option<Tip>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: u32,
    kind: String,
    genesis: String,
    tip: Option<(u32, String)>,
    data_bytes: u64,
    stale_count: u64,
}

impl HeightIndex {
    /// Opens or creates a folder whose records have `fields_bytes` bytes of fields.
    pub(crate) fn open(
        dir: &Path,
        kind: &'static str,
        genesis: BlockHash,
        fields_bytes: usize,
        io: Arc<dyn Io>,
    ) -> Result<Self, RecordsError> {
        io.create_dir_all(dir)
            .map_err(|source| RecordsError::Io { path: dir.to_path_buf(), source })?;
        let file = |name: &str| RecordFile::open(&*io, dir.join(name));
        let records = Self {
            kind,
            genesis,
            fields_bytes,
            heights: file("heights.dat")?,
            stale: file("stale.dat")?,
            data: file("data.dat")?,
            state: RwLock::new(State {
                tip: None,
                data_bytes: 0,
                stale: HashMap::new(),
                stale_count: 0,
                committed: None,
            }),
            dir: dir.to_path_buf(),
            io,
        };
        records.load()?;
        Ok(records)
    }

    fn load(&self) -> Result<(), RecordsError> {
        let path = self.dir.join(MANIFEST);
        let Some(bytes) = read_file(&*self.io, &path)? else { return Ok(()) };
        let manifest: Manifest = serde_json::from_slice(&bytes)
            .map_err(|_| RecordsError::Damaged { path: path.clone(), what: "it does not read" })?;
        if (manifest.format, &*manifest.kind) != (FORMAT, self.kind)
            || manifest.genesis != self.genesis.to_string()
        {
            return Err(RecordsError::Other { path: self.dir.clone() });
        }
        let mut state = self.state.write();
        if let Some((height, hash)) = manifest.tip {
            let record = self.record(&self.heights, u64::from(height))?;
            if record.hash.to_string() != hash {
                let what = "the last record is not that of the tip";
                return Err(self.heights.damaged(0, what).into());
            }
            state.tip = Some(Tip { height, hash: record.hash });
        }
        for number in 0..manifest.stale_count {
            let record = self.record(&self.stale, number)?;
            state.stale.insert(record.hash, number);
        }
        state.stale_count = manifest.stale_count;
        state.data_bytes = manifest.data_bytes;
        state.committed = state.tip;
        Ok(())
    }

    pub(crate) fn tip(&self) -> Option<Tip> {
        self.state.read().tip
    }

    /// Highest block that survives a crash.
    pub(crate) fn committed(&self) -> Option<Tip> {
        self.state.read().committed
    }

    /// Appends the block after `previous`, which must be the tip, and its data. `fields` is called with the offset of the data.
    pub(crate) fn append(
        &self,
        (hash, previous): (BlockHash, BlockHash),
        data: &[u8],
        fields: impl FnOnce(u64) -> Vec<u8>,
    ) -> Result<Tip, RecordsError> {
        let _whole = Whole::begin("an index");
        let mut state = self.state.write();
        let height = match state.tip {
            None if hash == self.genesis => 0,
            Some(tip) if tip.hash == previous => tip.height + 1,
            _ => return Err(RecordsError::NotNext { hash }),
        };
        let record = Record { hash, fields: fields(state.data_bytes) };
        assert_eq!(record.fields.len(), self.fields_bytes, "records have one length");
        self.data.write(data, state.data_bytes)?;
        put(&self.heights, u64::from(height), &record)?;
        state.data_bytes += data.len() as u64;
        let tip = Tip { height, hash };
        state.tip = Some(tip);
        Ok(tip)
    }

    pub(crate) fn at(&self, height: u32) -> Result<Option<Record>, RecordsError> {
        let state = self.state.read();
        if state.tip.is_none_or(|tip| tip.height < height) {
            return Ok(None);
        }
        self.record(&self.heights, u64::from(height)).map(Some)
    }

    /// The record of a block at `height`, active or disconnected.
    pub(crate) fn of(&self, hash: &BlockHash, height: u32) -> Result<Option<Record>, RecordsError> {
        if let Some(record) = self.at(height)?
            && record.hash == *hash
        {
            return Ok(Some(record));
        }
        let state = self.state.read();
        let Some(number) = state.stale.get(hash) else { return Ok(None) };
        self.record(&self.stale, *number).map(Some)
    }

    /// `length` bytes of `data.dat` from `offset` on.
    pub(crate) fn data(&self, offset: u64, length: usize) -> Result<Vec<u8>, RecordsError> {
        Ok(self.data.read(offset, length)?)
    }

    /// Disconnects all blocks above `height`; their records stay available by hash.
    pub(crate) fn rewind(&self, height: u32) -> Result<(), RecordsError> {
        let _whole = Whole::begin("an index");
        let mut state = self.state.write();
        let Some(tip) = state.tip else { return Ok(()) };
        for height in (height + 1..=tip.height).rev() {
            let record = self.record(&self.heights, u64::from(height))?;
            if state.stale.contains_key(&record.hash) {
                continue;
            }
            let number = state.stale_count;
            put(&self.stale, number, &record)?;
            state.stale.insert(record.hash, number);
            state.stale_count += 1;
        }
        let hash = self.record(&self.heights, u64::from(height))?.hash;
        state.tip = Some(Tip { height, hash });
        // Records are overwritten next, so the manifest on disk must exclude them first.
        self.write_out(&mut state)
    }

    /// Commits all changes; on return they survive a power cut.
    pub(crate) fn commit(&self) -> Result<(), RecordsError> {
        let mut state = self.state.write();
        if state.tip == state.committed { Ok(()) } else { self.write_out(&mut state) }
    }

    fn write_out(&self, state: &mut State) -> Result<(), RecordsError> {
        for file in [&self.data, &self.heights, &self.stale] {
            file.sync()?;
        }
        let manifest = Manifest {
            format: FORMAT,
            kind: self.kind.to_owned(),
            genesis: self.genesis.to_string(),
            tip: state.tip.map(|tip| (tip.height, tip.hash.to_string())),
            data_bytes: state.data_bytes,
            stale_count: state.stale_count,
        };
        let json = serde_json::to_vec(&manifest).expect("a manifest has nothing that JSON lacks");
        replace_file(&*self.io, &self.dir.join(MANIFEST), std::iter::once(json))?;
        state.committed = state.tip;
        Ok(())
    }
}

fn put(file: &RecordFile, number: u64, record: &Record) -> Result<(), RecordsError> {
    let mut bytes = [&record.hash.0[..], &record.fields].concat();
    let sum = record_sum(&bytes, number);
    bytes.extend_from_slice(&sum);
    Ok(file.write(&bytes, number * bytes.len() as u64)?)
}

impl HeightIndex {
    fn record(&self, file: &RecordFile, number: u64) -> Result<Record, RecordsError> {
        let length = HASH_BYTES + self.fields_bytes + SUM_BYTES;
        let bytes = file.records(number, 1, length)?;
        let (hash, rest) = bytes.split_first_chunk().expect("a record is longer than a hash");
        Ok(Record { hash: BlockHash(*hash), fields: rest[..self.fields_bytes].to_vec() })
    }
}

const MANIFEST: &str = "manifest.json";
const FORMAT: u32 = 1;
const HASH_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use assay_store::io::SimIo;

    use super::*;

    fn hash(branch: u8, height: u32) -> BlockHash {
        let mut hash = [0; 32];
        hash[0] = if height < 3 { 0 } else { branch };
        hash[1..5].copy_from_slice(&height.to_le_bytes());
        BlockHash(hash)
    }

    fn open(io: &SimIo) -> HeightIndex {
        HeightIndex::open(Path::new("/index"), "test", hash(0, 0), 9, Arc::new(io.clone())).unwrap()
    }

    /// Fields are the branch and the data offset; the data length equals the height.
    fn extend(records: &HeightIndex, branch: u8, to: u32) {
        while records.tip().is_none_or(|tip| tip.height < to) {
            let height = records.tip().map_or(0, |tip| tip.height + 1);
            let previous = hash(branch, height.wrapping_sub(1));
            let data = vec![branch ^ height as u8; height as usize];
            let fields = |offset: u64| [&[branch][..], &offset.to_le_bytes()].concat();
            records.append((hash(branch, height), previous), &data, fields).unwrap();
        }
    }

    fn check(records: &HeightIndex, branch: u8, height: u32) {
        let record = records.of(&hash(branch, height), height).unwrap().expect("a record");
        let offset = u64::from_le_bytes(record.fields[1..].try_into().unwrap());
        let data = records.data(offset, height as usize).unwrap();
        // The first branch wrote the blocks that both share.
        let branch = if height < 3 { 1 } else { branch };
        assert_eq!(data, vec![branch ^ height as u8; height as usize]);
    }

    #[test]
    fn disconnected_blocks_are_found_by_hash_after_a_crash() {
        let io = SimIo::new();
        let records = open(&io);
        extend(&records, 1, 9);
        records.rewind(2).unwrap();
        extend(&records, 2, 12);
        for height in 0..=9 {
            check(&records, 1, height);
        }
        for height in 0..=12 {
            check(&records, 2, height);
        }
        assert_eq!(records.tip().unwrap().hash, hash(2, 12));
        assert_eq!(records.at(13).unwrap(), None);
        assert_eq!(records.of(&hash(3, 5), 5).unwrap(), None);
        // Uncommitted records are gone; records of disconnected blocks remain.
        drop(records);
        let records = open(&io);
        assert_eq!(records.tip().unwrap().hash, hash(0, 2));
        for height in 0..=9 {
            check(&records, 1, height);
        }
        assert_eq!(records.of(&hash(2, 5), 5).unwrap(), None);
        extend(&records, 2, 5);
        records.commit().unwrap();
        assert_eq!(records.committed(), records.tip());
        drop(records);
        let records = open(&io);
        check(&records, 2, 5);
        // Back to the first branch and again to the second: no record is stored twice.
        records.rewind(2).unwrap();
        extend(&records, 1, 9);
        records.rewind(2).unwrap();
        assert_eq!(records.state.read().stale_count, 7 + 3);
    }

    #[test]
    fn rejects_mismatched_parts() {
        let io = SimIo::new();
        let records = open(&io);
        let one = records.append((hash(1, 1), hash(1, 0)), &[], |_| vec![0; 9]);
        assert!(matches!(one, Err(RecordsError::NotNext { .. })));
        extend(&records, 1, 4);
        records.commit().unwrap();
        let other = |kind, genesis| {
            HeightIndex::open(Path::new("/index"), kind, genesis, 9, Arc::new(io.clone()))
        };
        assert!(matches!(other("else", hash(0, 0)), Err(RecordsError::Other { .. })));
        assert!(matches!(other("test", hash(0, 1)), Err(RecordsError::Other { .. })));
        let file = io.open(Path::new("/index/heights.dat"), false).unwrap();
        file.write_all_at(&[77], 4 * 45 + 33).unwrap();
        assert!(matches!(other("test", hash(0, 0)), Err(RecordsError::Damaged { .. })));
    }
}
