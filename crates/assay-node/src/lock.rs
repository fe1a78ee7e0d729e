//! Folder lock: one node per folder (Core `util/fs_helpers.cpp`, `LockDirectory`).

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use crate::error::NodeError;

const FILE: &str = ".lock";

/// Lock of a folder until dropped.
#[derive(Debug)]
pub(crate) struct FolderLock(File);

impl FolderLock {
    pub(crate) fn make(dir: &Path) -> Result<Self, NodeError> {
        let failed = |source| NodeError::Folder { path: dir.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
        Self::take(dir)
    }

    fn take(dir: &Path) -> Result<Self, NodeError> {
        let path = dir.join(FILE);
        let failed = |source| NodeError::Marker { path: path.clone(), source };
        let file = OpenOptions::new().create(true).write(true).truncate(false).open(&path);
        let file = file.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => {
                Err(NodeError::AlreadyRunning { path: dir.to_owned() })
            }
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }
}

impl Drop for FolderLock {
    /// Closing the file is not enough: a child between fork and exec has a copy of the descriptor and so the lock (flock(2)).
    fn drop(&mut self) {
        if let Err(error) = self.0.unlock() {
            tracing::warn!("Cannot unlock a folder: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlocks_despite_copies_of_the_descriptor() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("regtest");
        let lock = FolderLock::make(&path).unwrap();
        // Simulates the effect of a fork.
        let copy = lock.0.try_clone().unwrap();
        let busy = FolderLock::make(&path).unwrap_err();
        assert!(matches!(busy, NodeError::AlreadyRunning { path: at } if at == path));
        drop(lock);
        FolderLock::make(&path).unwrap();
        drop(copy);
    }
}
