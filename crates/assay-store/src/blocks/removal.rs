//! Removes whole files.
//!
//! The records in the index are removed first. A file left without records by a crash in between is removed when the store is
//! opened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use super::{BlockFileError, BlockStore, FileId, KnownEnds};
use crate::io::ignore_missing;

/// Lengths of files in bytes, by file number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileLengths {
    pub blocks: BTreeMap<u32, u64>,
    pub undo: BTreeMap<u32, u64>,
}

impl BlockStore {
    /// Bytes of all block and undo files.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Files that may be removed: all except the ones being appended to.
    pub fn full_files(&self) -> FileLengths {
        let writer = self.writer.lock();
        let mut lengths = FileLengths::default();
        for (id, bytes) in &writer.lengths {
            match *id {
                FileId::Block(number) if number < writer.file => {
                    lengths.blocks.insert(number, *bytes);
                }
                FileId::Undo(number) if number < writer.undo_file => {
                    lengths.undo.insert(number, *bytes);
                }
                FileId::Block(_) | FileId::Undo(_) => {}
            }
        }
        lengths
    }

    /// Removes block and undo files by number. Records that refer to them must be removed from the index and synced before. A
    /// reader with an open handle can still read the file; a position in a removed file is [`BlockFileError::is_damage`]. Skips
    /// files that are being appended to and missing files.
    ///
    /// # Errors
    /// An I/O error; the remaining files are removed at the next start.
    pub fn remove_files(&self, blocks: &[u32], undo: &[u32]) -> Result<(), BlockFileError> {
        let blocks = blocks.iter().map(|number| FileId::Block(*number));
        for id in blocks.chain(undo.iter().map(|number| FileId::Undo(*number))) {
            self.remove_file(id)?;
        }
        let failed = |source| BlockFileError::Io { path: self.dir.clone(), source };
        self.io.sync_dir(&self.dir).map_err(failed)
    }

    fn remove_file(&self, id: FileId) -> Result<(), BlockFileError> {
        let mut writer = self.writer.lock();
        if id == FileId::Block(writer.file) || id == FileId::Undo(writer.undo_file) {
            return Ok(());
        }
        {
            // Hold the lock, so that no reader reopens the file and keeps it allocated.
            let mut handles = self.handles.lock();
            handles.remove(&id);
            ignore_missing(self.io.remove(&self.path(id)))
                .map_err(|source| self.io_error(id, source))?;
        }
        writer.dirty.remove(&id);
        if let Some(bytes) = writer.lengths.remove(&id) {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Removes files without records, in a store from which blocks were removed. Files above the last one with records stay,
    /// because they may hold blocks with lost records.
    pub(super) fn remove_leftovers(
        &self,
        found: &mut BTreeSet<FileId>,
        known: &KnownEnds,
    ) -> Result<(), BlockFileError> {
        let is_leftover = |id: &FileId| match id {
            FileId::Block(number) => is_gap(&known.blocks, *number),
            FileId::Undo(number) => is_gap(&known.undo, *number),
        };
        for id in found.extract_if(.., is_leftover) {
            ignore_missing(self.io.remove(&self.path(id)))
                .map_err(|source| self.io_error(id, source))?;
        }
        Ok(())
    }
}

fn is_gap(known: &BTreeMap<u32, u64>, number: u32) -> bool {
    !known.contains_key(&number) && known.last_key_value().is_some_and(|(last, _)| *last > number)
}
