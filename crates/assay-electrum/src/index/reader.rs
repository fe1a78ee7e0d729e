//! Reads index files for one query.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::Arc;

use assay_store::io::IoFile;

use super::cache::{Cache, PartKey};
use super::types::QueryError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Disk reads are allowed.
    Any,
    /// Only reads from memory, within [`READS_MAX`] and [`ROWS_MAX`]; otherwise [`QueryError::NotAtOnce`].
    AtOnce,
}

/// Cached reads for one query.
pub(crate) struct Reader<'a> {
    cache: &'a Cache,
    reads: Reads,
    reads_left: Cell<u32>,
    /// Parts that the query may still add to the cache: a long history must not evict everything else.
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

    /// Maximum rows that the query may visit.
    pub(crate) fn rows_max(&self) -> usize {
        if self.reads == Reads::AtOnce { ROWS_MAX } else { usize::MAX }
    }

    /// Fills `buffer`. [`io::ErrorKind::WouldBlock`] if that would exceed the limits ([`QueryError::of_read`]).
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

    pub(crate) fn cached(&self, key: &PartKey) -> Option<Arc<[u8]>> {
        self.cache.get(key)
    }

    /// Caches a verified part.
    pub(crate) fn keep(&self, key: PartKey, bytes: impl Into<Arc<[u8]>>) {
        if let Some(left) = self.parts_left.get().checked_sub(1) {
            self.parts_left.set(left);
            self.cache.insert(key, bytes.into());
        }
    }
}

impl QueryError {
    /// Maps an error of [`Reader::fill`] on the file at `path`.
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

/// Reads from the page cache per non-blocking query: about a tenth of a millisecond.
const READS_MAX: u32 = 128;
/// Rows per non-blocking query: some ten microseconds.
const ROWS_MAX: usize = 2048;
/// Four MiB.
const KEPT_PARTS_MAX: u32 = 1024;
