//! Reads the index's files for one question.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::Arc;

use assay_store::io::IoFile;

use super::cache::{Cache, PartKey};
use super::types::QueryError;

/// How far a question may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// It waits for the disk.
    Any,
    /// It takes what is in memory, within [`READS_MAX`] and [`ROWS_MAX`], and ends with [`QueryError::NotAtOnce`] otherwise.
    AtOnce,
}

/// Reads for one question, through the cache.
pub(crate) struct Reader<'a> {
    cache: &'a Cache,
    reads: Reads,
    /// Reads that the question has left.
    reads_left: Cell<u32>,
    /// Parts that it may still put into the cache: a long history must not displace everything else.
    parts_left: Cell<u32>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(cache: &'a Cache, reads: Reads) -> Self {
        let reads_left = if reads == Reads::AtOnce { READS_MAX } else { u32::MAX };
        Self {
            cache,
            reads,
            reads_left: Cell::new(reads_left),
            parts_left: Cell::new(KEPT_PARTS_MAX),
        }
    }

    /// Rows that the question may visit.
    pub(crate) fn rows_max(&self) -> usize {
        if self.reads == Reads::AtOnce { ROWS_MAX } else { usize::MAX }
    }

    /// Fills `buffer`; [`io::ErrorKind::WouldBlock`] where that takes too long ([`QueryError::of_read`]).
    pub(crate) fn fill(&self, file: &dyn IoFile, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if self.reads == Reads::Any {
            return file.read_exact_at(buffer, offset);
        }
        let left = self.reads_left.get();
        if left == 0 || !file.read_cached_at(buffer, offset) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.reads_left.set(left - 1);
        Ok(())
    }

    /// A part that was read before.
    pub(crate) fn cached(&self, key: &PartKey) -> Option<Arc<[u8]>> {
        self.cache.get(key)
    }

    /// Keeps a part that has been checked for later questions.
    pub(crate) fn keep(&self, key: PartKey, bytes: impl Into<Arc<[u8]>>) {
        if let Some(left) = self.parts_left.get().checked_sub(1) {
            self.parts_left.set(left);
            self.cache.insert(key, bytes.into());
        }
    }
}

impl QueryError {
    /// What a failed [`Reader::fill`] says of the file at `path`.
    pub(crate) fn of_read(source: io::Error, path: &Path, offset: u64) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::WouldBlock => Self::NotAtOnce,
            io::ErrorKind::UnexpectedEof => {
                Self::Damaged { path, offset, what: "the file ends too early" }
            }
            _ => Self::Io { path, source },
        }
    }
}

/// Reads from the system's cache at once: about a tenth of a millisecond.
const READS_MAX: u32 = 128;
/// Rows at once: some ten microseconds.
const ROWS_MAX: usize = 2048;
/// Four mebibytes.
const KEPT_PARTS_MAX: u32 = 1024;
