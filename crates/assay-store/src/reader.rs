//! Reads any file in Bitcoin Core's block framing sequentially.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::blocks::{BlockFileError, FRAME_BYTES};

/// The blocks of one `blk*.dat`, in the order of the file: a forged chain, or another node's files.
///
/// Stops at the end of the file, at the zeros that Core preallocates, or at a truncated record.
#[derive(Debug)]
pub struct BlockFileReader {
    file: BufReader<File>,
    path: PathBuf,
    magic: [u8; 4],
    offset: u64,
    size: u64,
}

impl BlockFileReader {
    /// Reads from the first record.
    pub fn open(path: &Path, magic: [u8; 4]) -> Result<Self, BlockFileError> {
        let failed = |source| BlockFileError::Io { path: path.to_path_buf(), source };
        let file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let file = BufReader::with_capacity(1 << 16, file);
        Ok(Self { file, path: path.to_path_buf(), magic, offset: 0, size })
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Seeks to the record whose framing starts at `offset`.
    pub fn seek(&mut self, offset: u64) -> Result<(), BlockFileError> {
        self.file.seek(SeekFrom::Start(offset)).map_err(|source| self.io_error(source))?;
        self.offset = offset;
        Ok(())
    }

    /// The next raw block.
    ///
    /// # Errors
    /// [`BlockFileError::Framing`] if something other than a record or padding follows; an I/O error.
    pub fn next_block(&mut self) -> Result<Option<Vec<u8>>, BlockFileError> {
        let data_offset = self.offset + FRAME_BYTES as u64;
        if data_offset > self.size {
            return Ok(None);
        }
        let mut frame = [0u8; FRAME_BYTES];
        self.file.read_exact(&mut frame).map_err(|source| self.io_error(source))?;
        if frame == [0; FRAME_BYTES] {
            self.size = 0;
            return Ok(None);
        }
        let size = u32::from_le_bytes([frame[4], frame[5], frame[6], frame[7]]);
        if frame[..4] != self.magic {
            let path = self.path.clone();
            self.size = 0;
            return Err(BlockFileError::Framing { path, offset: data_offset, size });
        }
        let end = data_offset + u64::from(size);
        if end > self.size {
            self.size = 0;
            return Ok(None);
        }
        let mut raw = vec![0u8; size as usize];
        self.file.read_exact(&mut raw).map_err(|source| self.io_error(source))?;
        self.offset = end;
        Ok(Some(raw))
    }

    fn io_error(&self, source: io::Error) -> BlockFileError {
        BlockFileError::Io { path: self.path.clone(), source }
    }
}

impl Iterator for BlockFileReader {
    type Item = Result<Vec<u8>, BlockFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_block().transpose()
    }
}
