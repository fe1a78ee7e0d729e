//! Files and folders that are removed at the end of the process, also after a signal.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// All registered paths.
static ALL: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file or folder that is removed on drop.
#[derive(Debug)]
pub struct Temporary(PathBuf);

impl Temporary {
    /// Creates the file with `create`.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn file(
        path: PathBuf,
        create: impl FnOnce(&Path) -> io::Result<File>,
    ) -> io::Result<(Self, File)> {
        // No file is created once `remove_all` has the lock.
        let mut all = all();
        let file = create(&path)?;
        all.insert(path.clone());
        Ok((Self(path), file))
    }

    /// Registers an existing folder.
    pub fn folder(path: PathBuf) -> Self {
        all().insert(path.clone());
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        remove(&self.0);
        all().remove(&self.0);
    }
}

/// Removes all of them. The process must then exit, because other threads can no longer create or remove any.
pub fn remove_all() {
    let all = all();
    all.iter().for_each(|path| remove(path));
    std::mem::forget(all);
}

fn all() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Best effort.
fn remove(path: &Path) {
    let is_folder = path.is_dir();
    let _ = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}
