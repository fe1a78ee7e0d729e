//! How much is on disk, and what the page cache holds of it.

use std::path::Path;
use std::{fs, io};

/// Bytes of all files below a folder, as their lengths say; zero when there is none.
pub(crate) fn folder_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => folder_bytes(&entry.path()),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |metadata| metadata.len()),
        _ => 0,
    };
    entries.map(bytes).sum()
}

/// Takes a file out of the page cache, so that the next reader finds it on the disk.
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

/// Elsewhere there is no call for it.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub(crate) fn forget_file(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
