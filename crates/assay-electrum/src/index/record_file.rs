//! A file of fixed-length records, each of which ends with a CRC-32 of its fields and of its own number.

use std::path::PathBuf;
use std::sync::Arc;

use assay_store::io::{Io, IoFile};

use super::types::QueryError;

pub(crate) struct RecordFile {
    pub(super) path: PathBuf,
    pub(super) handle: Arc<dyn IoFile>,
}

impl RecordFile {
    pub(crate) fn open(io: &dyn Io, path: PathBuf) -> Result<Self, QueryError> {
        match io.open(&path, true) {
            Ok(handle) => Ok(Self { path, handle }),
            Err(source) => Err(QueryError::Io { path, source }),
        }
    }

    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), QueryError> {
        self.handle.write_all_at(bytes, offset).map_err(|source| self.failed(source))
    }

    pub(crate) fn read(&self, offset: u64, length: usize) -> Result<Vec<u8>, QueryError> {
        let mut bytes = vec![0; length];
        let read = self.handle.read_exact_at(&mut bytes, offset);
        read.map_err(|source| QueryError::of_read(source, &self.path, offset))?;
        Ok(bytes)
    }

    /// Reads records of `length` bytes, checksums included, and verifies these.
    pub(crate) fn records(
        &self,
        start: u64,
        count: u64,
        length: usize,
    ) -> Result<Vec<u8>, QueryError> {
        let bytes = self.read(start * length as u64, count as usize * length)?;
        for (number, record) in (start..).zip(bytes.chunks_exact(length)) {
            self.check(record, number)?;
        }
        Ok(bytes)
    }

    /// Verifies the checksum of a record.
    pub(super) fn check(&self, record: &[u8], number: u64) -> Result<(), QueryError> {
        let (fields, sum) = record.split_at(record.len() - SUM_BYTES);
        if record_sum(fields, number) == *sum {
            Ok(())
        } else {
            let offset = number * record.len() as u64;
            Err(self.damaged(offset, "a record does not have its checksum"))
        }
    }

    /// Syncs the contents to disk, but not the file name.
    pub(crate) fn sync(&self) -> Result<(), QueryError> {
        self.handle.sync_data().map_err(|source| self.failed(source))
    }

    fn failed(&self, source: std::io::Error) -> QueryError {
        QueryError::Io { path: self.path.clone(), source }
    }

    pub(crate) fn damaged(&self, offset: u64, what: &'static str) -> QueryError {
        QueryError::Damaged { path: self.path.clone(), offset, what }
    }
}

/// The end of a record.
pub(crate) fn record_sum(fields: &[u8], number: u64) -> [u8; SUM_BYTES] {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(fields);
    hasher.update(&number.to_le_bytes());
    hasher.finalize().to_le_bytes()
}

pub(crate) const SUM_BYTES: usize = 4;
