//! Files and folders that are removed at the end of the process, also after a signal.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Attempts to remove a path, with pauses between them: 200 ms in all.
const ATTEMPTS_MAX: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

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

    /// Creates a folder with `create`, which returns its path.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn folder(create: impl FnOnce() -> io::Result<PathBuf>) -> io::Result<Self> {
        let mut all = all();
        let path = create()?;
        all.insert(path.clone());
        Ok(Self(path))
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

/// Best effort. A folder into which another thread writes meanwhile is not empty at its turn, so it is tried again.
fn remove(path: &Path) {
    for _ in 0..ATTEMPTS_MAX {
        let result = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        match result {
            Err(error) if error.kind() != io::ErrorKind::NotFound => thread::sleep(PAUSE),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_folder_is_removed_while_another_thread_writes_into_it() {
        let parent = tempfile::tempdir().expect("a folder");
        let path = parent.path().join("scratch");
        let scratch = Temporary::folder(|| fs::create_dir(&path).map(|()| path.clone()));
        let stops = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0u64.. {
                    // Fails once the folder is gone.
                    let _ = fs::write(path.join(number.to_string()), "");
                    if stops.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            while fs::read_dir(&path).expect("a folder").count() < 100 {}
            drop(scratch.expect("writable"));
            stops.store(true, Ordering::Relaxed);
        });
        assert!(!path.exists());
    }
}
