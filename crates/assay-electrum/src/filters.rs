//! The index of basic block filters (BIP157, BIP158; Core `index/blockfilterindex.cpp`): one record for each block.
//!
//! `heights.dat` has the records of the active chain. `stale.dat` has the records of blocks that a reorg disconnected, in the
//! order of disconnection, looked up by hash. `data.dat` has the filters, referenced by offset from the records. The manifest
//! holds the valid length of each file; bytes beyond it were not committed and are rebuilt. Layout: `docs/formats.md`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_store::defect::Whole;
use assay_store::io::Io;
use assay_store::{ReplaceError, UndoReader, read_file, replace_file};
use assay_wire::filter::{basic, filter_hash, filter_header};
use assay_wire::{Block, BlockHash};
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

/// Filter index on disk. Thread-safe.
pub struct FilterIndex {
    dir: PathBuf,
    genesis: BlockHash,
    io: Arc<dyn Io>,
    heights: RecordFile,
    stale: RecordFile,
    data: RecordFile,
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    tip: Option<Tip>,
    data_bytes: u64,
    /// Record numbers of disconnected blocks.
    stale: HashMap<BlockHash, u64>,
    stale_count: u64,
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterEntry {
    pub block: BlockHash,
    pub filter_hash: [u8; 32],
    /// Filter header: commits to this filter and to all before it.
    pub header: [u8; 32],
    offset: u64,
    length: u32,
}

impl FilterEntry {
    fn parse(record: &[u8; RECORD_BYTES]) -> Self {
        let array = |at: usize| {
            let mut out = [0; 32];
            out.copy_from_slice(&record[at..at + 32]);
            out
        };
        let (offset, rest) = record[96..].split_first_chunk().expect("the offset follows");
        let (length, _) = rest.split_first_chunk().expect("the length follows");
        Self {
            block: BlockHash(array(0)),
            filter_hash: array(32),
            header: array(64),
            offset: u64::from_le_bytes(*offset),
            length: u32::from_le_bytes(*length),
        }
    }

    fn write(&self, file: &RecordFile, number: u64) -> Result<(), QueryError> {
        let (offset, length) = (self.offset.to_le_bytes(), self.length.to_le_bytes());
        let fields =
            [&self.block.0[..], &self.filter_hash, &self.header, &offset, &length].concat();
        let record = [&fields[..], &record_sum(&fields, number)].concat();
        file.write(&record, number * RECORD_BYTES as u64)
    }

    fn read(file: &RecordFile, number: u64) -> Result<Self, QueryError> {
        let bytes = file.records(number, 1, RECORD_BYTES)?;
        Ok(Self::parse(bytes.as_array().expect("one record was read")))
    }
}

/// The filter of a block, not yet chained to its predecessors.
pub struct MadeFilter {
    block: BlockHash,
    previous: BlockHash,
    filter: Vec<u8>,
}

impl MadeFilter {
    pub(crate) fn new(block: &Block, undo: Option<&[u8]>) -> Result<Self, RecordsError> {
        let hash = block.hash();
        let broken = |_| RecordsError::Block { hash, what: "its undo data does not read" };
        let mut spent = Vec::new();
        if let Some(undo) = undo {
            for coin in UndoReader::new(undo).map_err(broken)? {
                spent.push(coin.map_err(broken)?.script_pubkey);
            }
        }
        let filter = basic(block, spent.iter().map(|script| &script[..]));
        Ok(Self { block: hash, previous: block.header().prev_block, filter })
    }
}

impl FilterIndex {
    /// Opens or creates the index in a folder.
    pub fn open(dir: &Path, genesis: BlockHash, io: Arc<dyn Io>) -> Result<Self, RecordsError> {
        io.create_dir_all(dir)
            .map_err(|source| RecordsError::Io { path: dir.to_path_buf(), source })?;
        let file = |name: &str| RecordFile::open(&*io, dir.join(name));
        let index = Self {
            genesis,
            heights: file("heights.dat")?,
            stale: file("stale.dat")?,
            data: file("data.dat")?,
            state: RwLock::default(),
            dir: dir.to_path_buf(),
            io,
        };
        index.load()?;
        Ok(index)
    }

    fn load(&self) -> Result<(), RecordsError> {
        let path = self.dir.join(MANIFEST);
        let Some(bytes) = read_file(&*self.io, &path)? else { return Ok(()) };
        let manifest: Manifest = serde_json::from_slice(&bytes)
            .map_err(|_| RecordsError::Damaged { path: path.clone(), what: "it does not read" })?;
        if (manifest.format, &*manifest.kind) != (FORMAT, KIND)
            || manifest.genesis != self.genesis.to_string()
        {
            return Err(RecordsError::Other { path: self.dir.clone() });
        }
        let mut state = self.state.write();
        if let Some((height, hash)) = manifest.tip {
            let entry = FilterEntry::read(&self.heights, u64::from(height))?;
            if entry.block.to_string() != hash {
                let what = "the last record is not that of the tip";
                return Err(self.heights.damaged(0, what).into());
            }
            state.tip = Some(Tip { height, hash: entry.block });
        }
        for number in 0..manifest.stale_count {
            let entry = FilterEntry::read(&self.stale, number)?;
            state.stale.insert(entry.block, number);
        }
        state.stale_count = manifest.stale_count;
        state.data_bytes = manifest.data_bytes;
        state.committed = state.tip;
        Ok(())
    }

    pub(crate) fn tip(&self) -> Option<Tip> {
        self.state.read().tip
    }

    /// Highest block that survives a crash. Blocks above it must stay in the archive.
    pub fn committed(&self) -> Option<Tip> {
        self.state.read().committed
    }

    /// Appends the block after the tip.
    pub(crate) fn connect(&self, made: &MadeFilter) -> Result<(), RecordsError> {
        let _whole = Whole::begin("an index");
        let mut state = self.state.write();
        let hash = made.block;
        let (height, previous) = match state.tip {
            None if hash == self.genesis => (0, [0; 32]),
            Some(tip) if tip.hash == made.previous => {
                (tip.height + 1, FilterEntry::read(&self.heights, u64::from(tip.height))?.header)
            }
            _ => return Err(RecordsError::NotNext { hash }),
        };
        let filter_hash = filter_hash(&made.filter);
        let entry = FilterEntry {
            block: hash,
            filter_hash,
            header: filter_header(&filter_hash, &previous),
            offset: state.data_bytes,
            length: made.filter.len() as u32,
        };
        self.data.write(&made.filter, state.data_bytes)?;
        entry.write(&self.heights, u64::from(height))?;
        state.data_bytes += u64::from(entry.length);
        state.tip = Some(Tip { height, hash });
        Ok(())
    }

    /// The record of the active block at `height`.
    pub(crate) fn at(&self, height: u32) -> Result<Option<FilterEntry>, RecordsError> {
        let state = self.state.read();
        if state.tip.is_none_or(|tip| tip.height < height) {
            return Ok(None);
        }
        Ok(Some(FilterEntry::read(&self.heights, u64::from(height))?))
    }

    /// The record of a block at `height`, active or disconnected.
    pub fn entry(
        &self,
        hash: &BlockHash,
        height: u32,
    ) -> Result<Option<FilterEntry>, RecordsError> {
        if let Some(entry) = self.at(height)?
            && entry.block == *hash
        {
            return Ok(Some(entry));
        }
        let state = self.state.read();
        let Some(number) = state.stale.get(hash) else { return Ok(None) };
        Ok(Some(FilterEntry::read(&self.stale, *number)?))
    }

    pub fn filter(&self, entry: &FilterEntry) -> Result<Vec<u8>, RecordsError> {
        let bytes = self.data.read(entry.offset, entry.length as usize)?;
        if filter_hash(&bytes) != entry.filter_hash {
            let what = "its filter does not have its hash";
            return Err(RecordsError::Block { hash: entry.block, what });
        }
        Ok(bytes)
    }

    /// Disconnects all blocks above `height`; their records stay available by hash.
    pub(crate) fn rewind(&self, height: u32) -> Result<(), RecordsError> {
        let _whole = Whole::begin("an index");
        let mut state = self.state.write();
        let Some(tip) = state.tip else { return Ok(()) };
        for height in (height + 1..=tip.height).rev() {
            let entry = FilterEntry::read(&self.heights, u64::from(height))?;
            if state.stale.contains_key(&entry.block) {
                continue;
            }
            let number = state.stale_count;
            entry.write(&self.stale, number)?;
            state.stale.insert(entry.block, number);
            state.stale_count += 1;
        }
        let hash = FilterEntry::read(&self.heights, u64::from(height))?.block;
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
            kind: KIND.to_owned(),
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

/// Core's name of the index (`index/blockfilterindex.cpp`), shown by `getindexinfo`.
pub const NAME: &str = "basic block filter index";
const KIND: &str = "basic block filters";
const MANIFEST: &str = "manifest.json";
const FORMAT: u32 = 1;
/// Block hash, hash of the filter, filter header, offset and length of the filter, checksum.
const RECORD_BYTES: usize = 32 + 32 + 32 + 8 + 4 + SUM_BYTES;

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

    fn open(io: &SimIo) -> FilterIndex {
        FilterIndex::open(Path::new("/index"), hash(0, 0), Arc::new(io.clone())).unwrap()
    }

    /// The length of a filter equals the height.
    fn filter(branch: u8, height: u32) -> Vec<u8> {
        vec![branch ^ height as u8; height as usize]
    }

    fn extend(index: &FilterIndex, branch: u8, to: u32) {
        while index.tip().is_none_or(|tip| tip.height < to) {
            let height = index.tip().map_or(0, |tip| tip.height + 1);
            let previous = hash(branch, height.wrapping_sub(1));
            let filter = filter(branch, height);
            let made = MadeFilter { block: hash(branch, height), previous, filter };
            index.connect(&made).unwrap();
        }
    }

    fn check(index: &FilterIndex, branch: u8, height: u32) {
        let entry = index.entry(&hash(branch, height), height).unwrap().expect("a record");
        // The first branch wrote the blocks that both share.
        let written = |height| filter(if height < 3 { 1 } else { branch }, height);
        assert_eq!(index.filter(&entry).unwrap(), written(height));
        let header = (0..=height).fold([0; 32], |previous, height| {
            filter_header(&filter_hash(&written(height)), &previous)
        });
        assert_eq!(entry.header, header);
    }

    #[test]
    fn disconnected_blocks_are_found_by_hash_after_a_crash() {
        let io = SimIo::new();
        let index = open(&io);
        extend(&index, 1, 9);
        index.rewind(2).unwrap();
        extend(&index, 2, 12);
        for height in 0..=9 {
            check(&index, 1, height);
        }
        for height in 0..=12 {
            check(&index, 2, height);
        }
        assert_eq!(index.tip().unwrap().hash, hash(2, 12));
        assert_eq!(index.at(13).unwrap(), None);
        assert_eq!(index.entry(&hash(3, 5), 5).unwrap(), None);
        // Uncommitted records are gone; records of disconnected blocks remain.
        drop(index);
        let index = open(&io);
        assert_eq!(index.tip().unwrap().hash, hash(0, 2));
        for height in 0..=9 {
            check(&index, 1, height);
        }
        assert_eq!(index.entry(&hash(2, 5), 5).unwrap(), None);
        extend(&index, 2, 5);
        index.commit().unwrap();
        assert_eq!(index.committed(), index.tip());
        drop(index);
        let index = open(&io);
        check(&index, 2, 5);
        // Back to the first branch and again to the second: no record is stored twice.
        index.rewind(2).unwrap();
        extend(&index, 1, 9);
        index.rewind(2).unwrap();
        assert_eq!(index.state.read().stale_count, 7 + 3);
    }

    #[test]
    fn rejects_mismatched_parts() {
        let io = SimIo::new();
        let index = open(&io);
        let made = MadeFilter { block: hash(1, 1), previous: hash(1, 0), filter: Vec::new() };
        assert!(matches!(index.connect(&made), Err(RecordsError::NotNext { .. })));
        extend(&index, 1, 4);
        index.commit().unwrap();
        let other =
            |genesis| FilterIndex::open(Path::new("/index"), genesis, Arc::new(io.clone())).err();
        assert!(matches!(other(hash(0, 1)), Some(RecordsError::Other { .. })));
        let path = Path::new("/index/manifest.json");
        let manifest = read_file(&io, path).unwrap().unwrap();
        let of_else = String::from_utf8(manifest.clone()).unwrap().replace(KIND, "else");
        replace_file(&io, path, std::iter::once(of_else.into_bytes())).unwrap();
        assert!(matches!(other(hash(0, 0)), Some(RecordsError::Other { .. })));
        replace_file(&io, path, std::iter::once(manifest)).unwrap();
        let file = io.open(Path::new("/index/heights.dat"), false).unwrap();
        file.write_all_at(&[77], 4 * RECORD_BYTES as u64 + 33).unwrap();
        assert!(matches!(other(hash(0, 0)), Some(RecordsError::Damaged { .. })));
    }
}
