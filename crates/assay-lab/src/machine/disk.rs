//! Disk usage and the page cache.

use std::path::Path;
use std::{fs, io};

use anyhow::Context as _;
use assay_report::atomic_file;
use serde::{Deserialize, Serialize};

/// Total length of all files below a folder; zero if it does not exist.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => folder_bytes(&entry.path()),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |metadata| metadata.len()),
        _ => 0,
    };
    entries.map(bytes).sum()
}

/// Removes a folder with its contents, if it exists.
pub(crate) fn remove_folder(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Removes and recreates a folder.
pub(crate) fn renew_folder(folder: &Path) -> anyhow::Result<()> {
    remove_folder(folder)?;
    Ok(atomic_file::create_folder(folder)?)
}

/// Evicts a file from the page cache, so that the next read goes to disk.
///
/// # Errors
/// When the system does not allow it.
#[cfg(target_os = "linux")]
pub(crate) fn forget_file(path: &Path) -> io::Result<()> {
    use rustix::fs::{Advice, fadvise, fsync};
    let file = fs::File::open(path)?;
    // Only clean pages can be dropped.
    fsync(&file)?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    Ok(())
}

/// Unsupported on other systems.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub(crate) fn forget_file(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Bytes read from and written to disk, past the page cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUse {
    pub read_bytes: u64,
    /// Counted when a page becomes dirty.
    pub written_bytes: u64,
}

impl DiskUse {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            read_bytes: self.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
        }
    }
}

impl std::iter::Sum for DiskUse {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            read_bytes: sum.read_bytes + one.read_bytes,
            written_bytes: sum.written_bytes + one.written_bytes,
        })
    }
}

/// Disk usage of a process so far; `None` if the system does not report it.
pub(crate) fn of_process(pid: u32) -> Option<DiskUse> {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let (read_bytes, written_bytes) = (number(&io, "read_bytes:")?, number(&io, "write_bytes:")?);
    Some(DiskUse { read_bytes, written_bytes })
}

/// Number after `key` in a file under `/proc`.
pub(crate) fn number(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disk_use_adds_up_and_never_runs_backwards() {
        let use_of = |read_bytes, written_bytes| DiskUse { read_bytes, written_bytes };
        let steps = [use_of(1, 10), use_of(4, 10), use_of(4, 70)];
        let parts = steps.windows(2).map(|pair| pair[1].since(pair[0]));
        assert_eq!(parts.sum::<DiskUse>(), steps[2].since(steps[0]));
        assert_eq!(use_of(0, 5).since(use_of(3, 9)), DiskUse::default());
    }
}
