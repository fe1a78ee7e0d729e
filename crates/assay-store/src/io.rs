//! File system interface of this crate.
//!
//! Block files, undo files and the block index do all their I/O through [`Io`], so that tests can fail any step or lose unsynced
//! data ([`SimIo`]). The coin tier has its own engine and durability rules.

mod sim;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

pub use sim::{Fault, Loss, SimIo};

/// The file system operations that this crate needs.
pub trait Io: Send + Sync {
    /// Creates a directory and its parents.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Opens a file for reading and writing; creates an empty one if `create`.
    ///
    /// # Errors
    /// `NotFound` if it does not exist and `create` is false; else as the operating system reports.
    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn IoFile>>;

    /// Names of the files directly in `dir`, in arbitrary order.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Renames `from` to `to` atomically; replaces an existing file.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes the name; open handles can still read the file.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes creations and renames in `dir` durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file with positioned reads and writes; methods may be called from several threads.
pub trait IoFile: Send + Sync {
    /// Current length in bytes.
    fn size(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends first.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Fills `buffer` from `offset` if the bytes are in the page cache; returns true if it did. Never waits for a disk. After
    /// false, [`IoFile::read_exact_at`] reads the bytes or reports the error.
    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> bool;

    /// Writes all of `data` at `offset`, extending the file if needed.
    ///
    /// # Errors
    /// As the operating system reports; part of the data may have been written.
    fn write_all_at(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts or extends (with zeros) to `size` bytes.
    fn set_size(&self, size: u64) -> io::Result<()>;

    /// Makes the contents and the length durable.
    fn sync_data(&self) -> io::Result<()>;
}

/// Syncs the folder that contains `path`, which makes its name durable.
///
/// # Errors
/// As the operating system reports; a folder without read permission cannot be synced and is skipped.
pub(crate) fn sync_name(io: &dyn Io, path: &Path) -> io::Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    match io.sync_dir(parent) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other,
    }
}

/// The result of a removal, where nothing to remove is no error.
pub(crate) fn ignore_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct RealIo;

impl Io for RealIo {
    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    fn open(&self, path: &Path, create: bool) -> io::Result<Arc<dyn IoFile>> {
        let file =
            OpenOptions::new().read(true).write(true).create(create).truncate(false).open(path)?;
        Ok(Arc::new(RealFile(file)))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(dir)? {
            // Names in this crate are UTF-8.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

struct RealFile(File);

impl IoFile for RealFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(&self.0, buffer, offset)
    }

    #[cfg(target_os = "linux")]
    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> bool {
        use rustix::io::{ReadWriteFlags, preadv2};
        let length = buffer.len();
        let buffers = &mut [io::IoSliceMut::new(buffer)];
        preadv2(&self.0, buffers, offset, ReadWriteFlags::NOWAIT) == Ok(length)
    }

    // Other systems do not report if a read would wait.
    #[cfg(not(target_os = "linux"))]
    fn read_cached_at(&self, _buffer: &mut [u8], _offset: u64) -> bool {
        false
    }

    fn write_all_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        FileExt::write_all_at(&self.0, data, offset)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.0.set_len(size)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_parts_equal_reads() {
        let folder = tempfile::tempdir().expect("a folder for a file");
        let real = RealIo.open(&folder.path().join("file"), true).expect("a file");
        let sim = SimIo::new();
        sim.set_cached(true);
        let simulated = sim.open(Path::new("file"), true).expect("a file in memory");
        let bytes: Vec<u8> = (0..10_000).map(|at| (at % 251) as u8).collect();
        for (file, must_be_cached) in [(real, false), (simulated, true)] {
            file.write_all_at(&bytes, 0).expect("the file takes it");
            for (offset, length) in [(0, 10), (4090, 20), (9_990, 10), (0, 10_000), (5, 0)] {
                let mut found = vec![0; length];
                let is_cached = file.read_cached_at(&mut found, offset as u64);
                assert!(is_cached || !must_be_cached);
                assert!(!is_cached || found == bytes[offset..offset + length]);
            }
            let mut beyond = [0; 11];
            assert!(!file.read_cached_at(&mut beyond, 9_990), "the file ends there");
        }
    }
}
