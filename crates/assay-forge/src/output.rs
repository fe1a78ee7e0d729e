//! The chain directory: block files, generation orders and the ledger.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Seek as _, SeekFrom, Write},
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::ledger::{BlockLine, ChainLine, LEDGER, LEDGER_PART, Line};

#[derive(Debug, Error)]
pub enum OutputError {
    #[error("{} already holds a forged chain; choose another directory or remove this one", path.display())]
    Finished { path: PathBuf },
    /// The directory contains files that are not from a forge.
    #[error("{} holds files that no forge wrote, such as {}; choose an empty directory", path.display(), entry.display())]
    Foreign { path: PathBuf, entry: PathBuf },
    #[error("the disk is full: cannot write {}; free space or choose another directory, then forge again", path.display())]
    DiskFull { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl OutputError {
    /// The error of a write to `path`.
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let path = path.to_owned();
            match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    Self::DiskFull { path, source }
                }
                _ => Self::Write { path, source },
            }
        }
    }
}

/// A chain directory being written.
pub(crate) struct Output {
    dir: PathBuf,
    magic: [u8; 4],
    ledger: Sink,
    blocks: Option<Sink>,
    block_files: u32,
}

impl Output {
    /// True if the directory contains an interrupted forge. Creates the directory if missing.
    ///
    /// # Errors
    /// If it contains a finished chain or foreign files.
    pub(crate) fn is_interrupted(dir: &Path) -> Result<bool, OutputError> {
        fs::create_dir_all(dir).map_err(OutputError::at(dir))?;
        if dir.join(LEDGER).exists() {
            return Err(OutputError::Finished { path: dir.to_owned() });
        }
        let interrupted = dir.join(LEDGER_PART).exists();
        for entry in fs::read_dir(dir).map_err(OutputError::at(dir))? {
            let name = entry.map_err(OutputError::at(dir))?.file_name();
            let ours = [LEDGER_PART, BLOCKS, ORDER, TXIDS].iter().any(|own| name == *own);
            if !ours || !interrupted {
                return Err(OutputError::Foreign { path: dir.to_owned(), entry: name.into() });
            }
        }
        Ok(interrupted)
    }

    /// Starts a chain directory by the first line of its ledger; removes the files of an interrupted forge.
    pub(crate) fn create(
        dir: &Path,
        magic: [u8; 4],
        chain: &ChainLine,
    ) -> Result<Self, OutputError> {
        Self::is_interrupted(dir)?;
        for sub in [BLOCKS, ORDER] {
            let sub = dir.join(sub);
            if sub.exists() {
                fs::remove_dir_all(&sub).map_err(OutputError::at(&sub))?;
            }
        }
        let txids = dir.join(TXIDS);
        if txids.exists() {
            fs::remove_file(&txids).map_err(OutputError::at(&txids))?;
        }
        // The ledger comes first: it marks the directory as a forge's.
        let ledger = Sink::create(dir.join(LEDGER_PART))?;
        for sub in [BLOCKS, ORDER] {
            let sub = dir.join(sub);
            fs::create_dir(&sub).map_err(OutputError::at(&sub))?;
        }
        let mut output = Self { dir: dir.to_owned(), magic, ledger, blocks: None, block_files: 0 };
        output.line(&Line::Chain(chain.clone()))?;
        Ok(output)
    }

    /// Resumes after the block `last`, whose ledger line ends at `ledger_end`; truncates the rest.
    pub(crate) fn resume(
        dir: &Path,
        magic: [u8; 4],
        last: &BlockLine,
        ledger_end: u64,
    ) -> Result<Self, OutputError> {
        let ledger = Sink::reopen(dir.join(LEDGER_PART), ledger_end)?;
        let blocks = Sink::reopen(dir.join(&last.file), last.offset + last.bytes)?;
        let name = |number: u32| format!("{BLOCKS}/{}", block_file_name(number));
        let mut block_files = 0;
        while name(block_files) != last.file {
            block_files += 1;
        }
        block_files += 1;
        for later in block_files.. {
            let path = dir.join(name(later));
            if !path.exists() {
                break;
            }
            fs::remove_file(&path).map_err(OutputError::at(&path))?;
        }
        Ok(Self { dir: dir.to_owned(), magic, ledger, blocks: Some(blocks), block_files })
    }

    /// Appends a block of `bytes` bytes, passed in pieces; returns its file and its offset there.
    pub(crate) fn block<'a>(
        &mut self,
        bytes: u64,
        pieces: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(String, u64), OutputError> {
        let full =
            self.blocks.as_ref().is_none_or(|file| file.written + 8 + bytes > BLOCK_FILE_MAX);
        if full {
            if let Some(file) = self.blocks.take() {
                file.close()?;
            }
            let path = self.dir.join(BLOCKS).join(block_file_name(self.block_files));
            self.blocks = Some(Sink::create(path)?);
            self.block_files += 1;
        }
        let file = self.blocks.as_mut().expect("opened above");
        file.write(&self.magic)?;
        file.write(&(bytes as u32).to_le_bytes())?;
        let offset = file.written;
        for piece in pieces {
            file.write(piece)?;
        }
        assert_eq!(file.written - offset, bytes, "the pieces are the block");
        let name = block_file_name(self.block_files - 1);
        Ok((format!("{BLOCKS}/{name}"), offset))
    }

    pub(crate) fn order(&self, height: u32, records: &[u8]) -> Result<(), OutputError> {
        let path = order_path(&self.dir, height);
        fs::write(&path, records).map_err(OutputError::at(&path))
    }

    pub(crate) fn line(&mut self, line: &Line) -> Result<(), OutputError> {
        let mut text =
            serde_json::to_vec(line).expect("ledger lines have string keys and finite numbers");
        text.push(b'\n');
        self.ledger.write(&text)
    }

    /// Flushes the buffers: blocks first, so that the ledger lists only written blocks.
    pub(crate) fn flush(&mut self) -> Result<(), OutputError> {
        if let Some(file) = &mut self.blocks {
            file.flush()?;
        }
        self.ledger.flush()
    }

    /// Syncs everything to disk and gives the ledger its final name.
    pub(crate) fn finish(mut self) -> Result<(), OutputError> {
        if let Some(file) = self.blocks.take() {
            file.close()?;
        }
        self.ledger.close()?;
        let (from, to) = (self.dir.join(LEDGER_PART), self.dir.join(LEDGER));
        fs::rename(&from, &to).map_err(OutputError::at(&to))
    }
}

struct Sink {
    path: PathBuf,
    file: BufWriter<File>,
    written: u64,
}

impl Sink {
    fn create(path: PathBuf) -> Result<Self, OutputError> {
        let file = File::create(&path).map_err(OutputError::at(&path))?;
        Ok(Self { path, file: BufWriter::with_capacity(1 << 20, file), written: 0 })
    }

    /// Opens an existing file and truncates it to `len` bytes.
    fn reopen(path: PathBuf, len: u64) -> Result<Self, OutputError> {
        let open = || {
            let mut file = OpenOptions::new().write(true).open(&path)?;
            file.set_len(len)?;
            file.seek(SeekFrom::Start(len))?;
            Ok(file)
        };
        let file = open().map_err(OutputError::at(&path))?;
        Ok(Self { path, file: BufWriter::with_capacity(1 << 20, file), written: len })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), OutputError> {
        self.file.write_all(bytes).map_err(OutputError::at(&self.path))?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), OutputError> {
        self.file.flush().map_err(OutputError::at(&self.path))
    }

    fn close(mut self) -> Result<(), OutputError> {
        let done = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        done.map_err(OutputError::at(&self.path))
    }
}

/// Path of the generation order of a block.
pub(crate) fn order_path(dir: &Path, height: u32) -> PathBuf {
    dir.join(ORDER).join(format!("{height:06}.bin"))
}

fn block_file_name(number: u32) -> String {
    format!("blk{number:05}.dat")
}

const BLOCKS: &str = "blocks";
const ORDER: &str = "order";
/// Temporary file of a history with the txids of all blocks.
pub(crate) const TXIDS: &str = "txids.part";
/// Bitcoin Core starts a new block file at this size (`MAX_BLOCKFILE_SIZE`).
const BLOCK_FILE_MAX: u64 = 128 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named() {
        if !Path::new("/dev/full").exists() {
            println!("skipped: no /dev/full");
            return;
        }
        let mut sink = Sink::create(PathBuf::from("/dev/full")).unwrap();
        let error = sink.write(&vec![0; 2 << 20]).and_then(|()| sink.close()).unwrap_err();
        assert!(matches!(&error, OutputError::DiskFull { .. }), "{error}");
        assert!(error.to_string().contains("/dev/full"), "{error}");
    }
}
