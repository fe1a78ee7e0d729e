//! Txids of all blocks in a file, 32 bytes each, so that memory holds only the coins.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
};

use crate::output::{OutputError, TXIDS};

/// The file, and a cache of the latest blocks: most spent coins are young.
pub(crate) struct Txids {
    path: PathBuf,
    file: File,
    /// Start index of each block's txids, plus the end of the last one's.
    first: Vec<u64>,
    recent: VecDeque<Vec<[u8; 32]>>,
}

impl Txids {
    pub(crate) fn create(dir: &Path) -> Result<Self, OutputError> {
        let path = dir.join(TXIDS);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path);
        let file = file.map_err(OutputError::at(&path))?;
        Ok(Self { path, file, first: vec![0], recent: VecDeque::new() })
    }

    pub(crate) fn push(&mut self, txids: Vec<[u8; 32]>) -> Result<(), OutputError> {
        let write = |file: &mut File| {
            file.seek(SeekFrom::End(0))?;
            file.write_all(txids.as_flattened())
        };
        write(&mut self.file).map_err(OutputError::at(&self.path))?;
        let end = self.first.last().expect("it begins with 0") + txids.len() as u64;
        self.first.push(end);
        self.recent.push_back(txids);
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        Ok(())
    }

    /// The txid of a transaction of an earlier block.
    pub(crate) fn get(&mut self, height: u32, tx: u32) -> Result<[u8; 32], OutputError> {
        let blocks = self.first.len() - 1;
        let (at, kept) = (height as usize - 1, self.recent.len());
        if at + kept >= blocks {
            return Ok(self.recent[at + kept - blocks][tx as usize]);
        }
        let mut id = [0; 32];
        self.read(self.first[at] + u64::from(tx), &mut id)?;
        Ok(id)
    }

    pub(crate) fn block(&mut self, height: u32) -> Result<Vec<[u8; 32]>, OutputError> {
        let at = height as usize - 1;
        let mut ids = vec![[0; 32]; (self.first[at + 1] - self.first[at]) as usize];
        self.read(self.first[at], ids.as_flattened_mut())?;
        Ok(ids)
    }

    fn read(&mut self, first: u64, ids: &mut [u8]) -> Result<(), OutputError> {
        let mut read = || {
            self.file.seek(SeekFrom::Start(32 * first))?;
            self.file.read_exact(ids)
        };
        read().map_err(OutputError::at(&self.path))
    }

    /// Deletes the temporary file.
    pub(crate) fn remove(self) -> Result<(), OutputError> {
        drop(self.file);
        fs::remove_file(&self.path).map_err(OutputError::at(&self.path))
    }
}

/// Blocks whose txids are cached.
const RECENT: usize = 256;
