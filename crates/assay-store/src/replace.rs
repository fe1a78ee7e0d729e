//! Atomic file replacement.

use std::io;
use std::path::{Path, PathBuf};

use crate::io::Io;

#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct ReplaceError {
    /// The file or its directory.
    pub path: PathBuf,
    pub source: io::Error,
}

/// Writes `chunks` to a new file next to `path` and renames it to `path`. After a crash at any time `path` has all of the old
/// bytes or all of the new ones; when this returns, the new ones. Returns their number.
///
/// # Errors
/// An I/O error; `path` has the old bytes then, or, if only the sync of the directory failed, the new ones.
pub fn replace_file(
    io: &dyn Io,
    path: &Path,
    chunks: impl Iterator<Item = Vec<u8>>,
) -> Result<u64, ReplaceError> {
    let mut name = path.as_os_str().to_owned();
    name.push(SUFFIX);
    let fresh = PathBuf::from(name);
    let failed = |source| ReplaceError { path: fresh.clone(), source };
    let file = io.open(&fresh, true).map_err(failed)?;
    // A crash may have left an earlier one.
    file.set_size(0).map_err(failed)?;
    let mut end = 0;
    for chunk in chunks {
        file.write_all_at(&chunk, end).map_err(failed)?;
        end += chunk.len() as u64;
    }
    file.sync_data().map_err(failed)?;
    io.rename(&fresh, path).map_err(failed)?;
    if let Some(dir) = path.parent() {
        io.sync_dir(dir).map_err(|source| ReplaceError { path: dir.to_path_buf(), source })?;
    }
    Ok(end)
}

/// The bytes of a file; `None` if it does not exist.
pub fn read_file(io: &dyn Io, path: &Path) -> Result<Option<Vec<u8>>, ReplaceError> {
    let failed = |source| ReplaceError { path: path.to_path_buf(), source };
    let file = match io.open(path, false) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let size = file.size().map_err(failed)?;
    let size = usize::try_from(size).map_err(|error| failed(io::Error::other(error)))?;
    let mut bytes = vec![0; size];
    file.read_exact_at(&mut bytes, 0).map_err(failed)?;
    Ok(Some(bytes))
}

/// Suffix of the incomplete new file, as in Bitcoin Core.
const SUFFIX: &str = ".new";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{Fault, Loss, SimIo};

    fn write(io: &SimIo, path: &Path, byte: u8) -> Result<u64, ReplaceError> {
        replace_file(io, path, (0..3).map(|_| vec![byte; 10]))
    }

    #[test]
    fn replacement_is_atomic_under_crashes() {
        let path = Path::new("dir/file");
        let io = SimIo::new();
        assert!(read_file(&io, path).unwrap().is_none());
        write(&io, path, 1).unwrap();
        let first = io.steps();
        write(&io, path, 2).unwrap();
        let steps = io.steps() - first;
        assert_eq!(read_file(&io, path).unwrap().unwrap(), [2; 30]);
        for fault in [Fault::Error, Fault::Crash] {
            for step in 0..=steps {
                let io = SimIo::new();
                write(&io, path, 1).unwrap();
                io.fail_at(first + step, fault);
                let written = write(&io, path, 2);
                assert_eq!(written.is_ok(), step == steps, "step {step}");
                for loss in [Loss::Nothing, Loss::Unsynced] {
                    let io = io.restart(loss);
                    let found = read_file(&io, path).unwrap().unwrap();
                    let is_old = found == [1; 30];
                    assert!(is_old || found == [2; 30], "step {step}: {found:?}");
                    assert!(!is_old || written.is_err());
                    // Remains of the crash do not get into the next file.
                    replace_file(&io, path, [vec![3]].into_iter()).unwrap();
                    assert_eq!(read_file(&io, path).unwrap().unwrap(), [3]);
                }
            }
        }
    }
}
