//! Reads block files of another program in place: Bitcoin Core's `blocks` directory, obfuscated or not, a forged chain, or one
//! file of blocks.
//!
//! Blocks may be in any order. Files are neither copied nor changed. A file is a sequence of records: four bytes of network
//! magic, the length, the raw block. Anything else may lie between records.

mod scan;
mod search;

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::xor::XorKey;
pub use scan::{Finding, RecordRules, StrayKind};
pub use search::{Search, StrayBytes};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockPlace {
    /// Index of the file in [`BlockFiles::files`].
    pub file: u32,
    /// Offset of the raw block, after magic and length.
    pub offset: u64,
    pub size: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockFile {
    pub path: PathBuf,
    /// Length when the file was found.
    pub bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum BlockFilesError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("cannot start a thread to search block files: {0}")]
    Thread(io::Error),
    #[error("{}: holds no blk*.dat", path.display())]
    Empty { path: PathBuf },
    #[error("{} is {bytes} bytes long; a key has 8", path.display())]
    Key { path: PathBuf, bytes: usize },
    #[error("{}: ends before the {size} bytes at {offset}", path.display())]
    Short { path: PathBuf, offset: u64, size: u32 },
}

/// Set of block files. Methods may be called from several threads.
#[derive(Debug)]
pub struct BlockFiles {
    files: Vec<BlockFile>,
    key: XorKey,
    magic: [u8; 4],
    handles: Mutex<Vec<(u32, Arc<File>)>>,
}

impl BlockFiles {
    /// Finds the block files at `path`: a directory with `blk*.dat` in it or in its `blocks`, or one file.
    ///
    /// `xor.dat` next to such files holds their obfuscation key (Bitcoin Core since 28); other names are not obfuscated.
    pub fn open(path: &Path, magic: [u8; 4]) -> Result<Self, BlockFilesError> {
        let failed = |path: &Path, source| BlockFilesError::Io { path: path.into(), source };
        let metadata = fs::metadata(path).map_err(|source| failed(path, source))?;
        let (files, dir) = if metadata.is_dir() {
            let (files, dir) = numbered_below(path, PREFIX)?;
            (files.into_iter().map(|(_, file)| file).collect(), dir)
        } else {
            let file = BlockFile { path: path.to_path_buf(), bytes: metadata.len() };
            let dir = path.parent().unwrap_or(Path::new("")).to_path_buf();
            (vec![file], dir)
        };
        let Some(first) = files.first() else {
            return Err(BlockFilesError::Empty { path: path.to_path_buf() });
        };
        let key = if number(&first.path, PREFIX).is_some() {
            read_key(&dir.join("xor.dat"))?
        } else {
            XorKey::NONE
        };
        Ok(Self { files, key, magic, handles: Mutex::default() })
    }

    pub fn files(&self) -> &[BlockFile] {
        &self.files
    }

    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// True if a nonzero key obfuscates the files.
    pub fn is_obfuscated(&self) -> bool {
        self.key != XorKey::NONE
    }

    /// Obfuscation key; zeros without obfuscation.
    pub fn key(&self) -> [u8; 8] {
        self.key.bytes()
    }

    /// Path of the file that contains `place`.
    ///
    /// # Panics
    /// `place` does not belong to these files.
    pub fn path_of(&self, place: &BlockPlace) -> &Path {
        &self.files[place.file as usize].path
    }

    /// Number in the name of that file; `None` for a file of another name.
    ///
    /// # Panics
    /// `place` does not belong to these files.
    pub fn number_of(&self, place: &BlockPlace) -> Option<u32> {
        number(self.path_of(place), PREFIX)
    }

    /// Reads a raw block.
    pub fn read(&self, place: &BlockPlace) -> Result<Vec<u8>, BlockFilesError> {
        let size = place.size as usize;
        let mut raw = Vec::with_capacity(size);
        let handle = self.handle(place.file)?;
        let outcome = read_appending(&handle, &mut raw, size, place.offset);
        outcome.map_err(|source| self.failed(place.file, place.offset, place.size, source))?;
        self.key.apply(&mut raw, place.offset);
        Ok(raw)
    }

    /// Reads a raw block into `buffer` and replaces its contents. Reuse of one buffer for many large blocks avoids allocations of
    /// fresh memory, which take about a third of the time.
    pub fn read_into(
        &self,
        place: &BlockPlace,
        buffer: &mut Vec<u8>,
    ) -> Result<(), BlockFilesError> {
        let size = place.size as usize;
        if buffer.capacity() < size {
            // Zeroed pages from the system cost less than growing the buffer, which copies old bytes.
            *buffer = vec![0; size];
        } else {
            buffer.resize(size, 0);
        }
        self.read_at(place.file, place.offset, buffer)
    }

    /// Reads the first `bytes` bytes of a raw block, or all of it when it is shorter.
    pub fn read_part(&self, place: &BlockPlace, bytes: u32) -> Result<Vec<u8>, BlockFilesError> {
        let mut raw = vec![0; bytes.min(place.size) as usize];
        self.read_at(place.file, place.offset, &mut raw)?;
        Ok(raw)
    }

    /// Fills `buffer` from `offset` of a file and removes the obfuscation.
    fn read_at(&self, file: u32, offset: u64, buffer: &mut [u8]) -> Result<(), BlockFilesError> {
        let handle = self.handle(file)?;
        let outcome = handle.read_exact_at(buffer, offset);
        outcome.map_err(|source| self.failed(file, offset, buffer.len() as u32, source))?;
        self.key.apply(buffer, offset);
        Ok(())
    }

    fn failed(&self, file: u32, offset: u64, size: u32, source: io::Error) -> BlockFilesError {
        let path = self.files[file as usize].path.clone();
        match source.kind() {
            io::ErrorKind::UnexpectedEof => BlockFilesError::Short { path, offset, size },
            _ => BlockFilesError::Io { path, source },
        }
    }

    /// Returns an open handle. The most recently used handles stay open, since a chain has thousands of files.
    fn handle(&self, file: u32) -> Result<Arc<File>, BlockFilesError> {
        let mut handles = self.handles.lock();
        if let Some(found) = handles.iter().position(|(number, _)| *number == file) {
            let entry = handles.remove(found);
            let handle = Arc::clone(&entry.1);
            handles.push(entry);
            return Ok(handle);
        }
        drop(handles);
        let path = &self.files[file as usize].path;
        let opened = File::open(path)
            .map_err(|source| BlockFilesError::Io { path: path.clone(), source })?;
        let handle = Arc::new(opened);
        let mut handles = self.handles.lock();
        if handles.len() >= HANDLES_MAX {
            handles.remove(0);
        }
        handles.push((file, Arc::clone(&handle)));
        Ok(handle)
    }
}

/// [`numbered`] files in `dir`, or in its `blocks` if there are none; and their folder.
pub(crate) fn numbered_below(
    dir: &Path,
    prefix: &str,
) -> Result<(Vec<(u32, BlockFile)>, PathBuf), BlockFilesError> {
    let (own, below) = (numbered(dir, prefix)?, dir.join("blocks"));
    if own.is_empty() && below.is_dir() {
        Ok((numbered(&below, prefix)?, below))
    } else {
        Ok((own, dir.to_path_buf()))
    }
}

/// Files directly in `dir` named as `blk00000.dat` is, with another prefix; sorted by number.
pub(crate) fn numbered(dir: &Path, prefix: &str) -> Result<Vec<(u32, BlockFile)>, BlockFilesError> {
    let failed = |path: &Path, source| BlockFilesError::Io { path: path.into(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(|source| failed(dir, source))? {
        let path = entry.map_err(|source| failed(dir, source))?.path();
        if let Some(number) = number(&path, prefix) {
            let metadata = fs::metadata(&path).map_err(|source| failed(&path, source))?;
            if metadata.is_file() {
                files.push((number, BlockFile { path, bytes: metadata.len() }));
            }
        }
    }
    files.sort_by(|(a, left), (b, right)| (a, &left.path).cmp(&(b, &right.path)));
    Ok(files)
}

/// Number in such a name.
fn number(path: &Path, prefix: &str) -> Option<u32> {
    let digits = path.file_name()?.to_str()?.strip_prefix(prefix)?.strip_suffix(".dat")?;
    digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Key in a `xor.dat`; the zero key if the file does not exist.
pub(crate) fn read_key(path: &Path) -> Result<XorKey, BlockFilesError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(XorKey::NONE),
        Err(source) => return Err(BlockFilesError::Io { path: path.to_path_buf(), source }),
    };
    match <[u8; 8]>::try_from(bytes.as_slice()) {
        Ok(key) => Ok(XorKey::new(key)),
        Err(_) => Err(BlockFilesError::Key { path: path.to_path_buf(), bytes: bytes.len() }),
    }
}

/// Appends `size` bytes from `offset` of a file to an empty buffer, without zeroing it first.
#[cfg(target_os = "linux")]
fn read_appending(file: &File, buffer: &mut Vec<u8>, size: usize, offset: u64) -> io::Result<()> {
    use rustix::buffer::spare_capacity;
    use rustix::io::{Errno, pread};
    buffer.reserve_exact(size);
    while buffer.len() < size {
        let at = offset + buffer.len() as u64;
        match pread(file, spare_capacity(buffer), at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The allocator may have returned more than requested.
    buffer.truncate(size);
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn read_appending(file: &File, buffer: &mut Vec<u8>, size: usize, offset: u64) -> io::Result<()> {
    buffer.resize(size, 0);
    file.read_exact_at(buffer, offset)
}

const PREFIX: &str = "blk";
/// Open files kept.
const HANDLES_MAX: usize = 64;

#[cfg(test)]
mod tests;
