//! Atomic file writes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::Temporary;

#[derive(Debug, thiserror::Error)]
#[error("cannot write {}", path.display())]
pub struct WriteError {
    pub path: PathBuf,
    pub source: io::Error,
}

impl WriteError {
    /// The error of writing this file.
    pub fn at(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self { path: path.clone(), source }
    }
}

/// Writes `bytes` to a temporary file next to `path`, syncs it, and renames it.
///
/// On a full disk the previous contents of `path` remain, without leftovers.
///
/// # Errors
/// When the file cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    let fail = WriteError::at(path);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let create = |path: &Path| File::create(path);
    let (part, mut file) = Temporary::file(path.with_file_name(name), create).map_err(&fail)?;
    file.write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(part.path(), path))
        .map_err(fail)
}

/// Creates a folder with its parents.
///
/// # Errors
/// When it cannot be created.
pub fn create_folder(path: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(path).map_err(WriteError::at(path))
}

/// Writes a value as indented JSON.
///
/// # Errors
/// When it cannot be written.
pub fn write_json(path: &Path, value: &impl Serialize) -> Result<(), WriteError> {
    let json = serde_json::to_vec_pretty(value)
        .map_err(|error| WriteError { path: path.to_owned(), source: error.into() })?;
    write(path, &json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_whole_files() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("a.json");
        write(&path, b"one").expect("writable");
        write(&path, b"two").expect("writable");
        assert_eq!(fs::read(&path).expect("readable"), b"two");
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
    }

    #[test]
    fn full_disk_names_the_path() {
        // A device that is always full simulates a full disk, if available.
        let full = Path::new("/dev/full");
        if !full.exists() {
            eprintln!("skipped: no /dev/full");
            return;
        }
        let error = File::options().write(true).open(full).and_then(|mut file| {
            file.write_all(b"x")?;
            file.sync_all()
        });
        assert!(error.is_err());
        let error = write(Path::new("/dev/full/report.md"), b"x").expect_err("not a folder");
        assert!(error.to_string().contains("/dev/full/report.md"));
    }
}
