//! Names of a store's folders. They are Bitcoin Core's, whose tools and tests look for them; earlier versions had others.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::io::{Io, RealIo, sync_name};

/// Folder of the coins.
pub(crate) const COINS_DIR: &str = "chainstate";
/// Folder of block and undo files.
pub(crate) const BLOCKS_DIR: &str = "blocks";
/// Folder of the block index.
pub(crate) const INDEX_DIR: &str = "blocks/index";

/// Coins that are being removed.
const DISCARDED_DIR: &str = "chainstate.discarded";

/// Says that index, coins and undo data are to be removed, and then which blocks the files hold is to be found out.
const REINDEX_BEGUN: &str = "blocks/reindex.begun";
/// Says that they have been removed, and the files are not read to their end yet.
const REINDEXING: &str = "blocks/reindexing";

/// Earlier names, and what replaced them.
const RENAMED: [(&str, &str); 2] = [("coins", COINS_DIR), ("index", INDEX_DIR)];

/// Why a directory is none of ours, or cannot become one.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    /// A folder cannot be given its present name.
    #[error("cannot rename {} to {}: {source}", from.display(), to.display())]
    Rename {
        /// The earlier name.
        from: PathBuf,
        /// The present name.
        to: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Bytes of the block files are combined with a key, which ours are not.
    #[error(
        "{} holds a key other than zeros: these block files are obfuscated, as Bitcoin Core writes them; validate them into \
         another data directory (assay validate --blocks)",
        path.display()
    )]
    Obfuscated {
        /// The file with the key.
        path: PathBuf,
    },
    /// The file with the key cannot be read or written.
    #[error("{}: {source}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Coins that are to be built again cannot be removed.
    #[error("cannot remove the coins ({}): {source}", path.display())]
    Discard {
        /// The folder that they are moved to.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What is to be built again from the block files cannot be removed.
    #[error("cannot begin to index the block files again ({}): {source}", path.display())]
    Reindex {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another program's database is where ours would be.
    #[error(
        "{} is a LevelDB database, as Bitcoin Core keeps it: give another data directory",
        path.display()
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
}

/// Makes `dir` one that can be opened: earlier names are replaced, and databases of Bitcoin Core left alone.
pub(crate) fn prepare(dir: &Path) -> Result<(), LayoutError> {
    for (from, to) in RENAMED {
        refuse_foreign(&dir.join(to))?;
        rename_folder(dir, from, to)?;
    }
    Ok(())
}

/// Gives the folder `from` in `dir` the name `to`, unless there is one of that name already. One step: after a crash the
/// folder has one name or the other, and the next call goes on from there.
///
/// # Errors
/// The system does not rename it.
pub fn rename_folder(dir: &Path, from: &str, to: &str) -> Result<(), LayoutError> {
    let (from, to) = (dir.join(from), dir.join(to));
    if to.exists() || !from.is_dir() {
        return Ok(());
    }
    let rename = || {
        fs::create_dir_all(to.parent().unwrap_or(dir))?;
        fs::rename(&from, &to)?;
        sync_name(&RealIo, &to)?;
        RealIo.sync_dir(dir)
    };
    rename().map_err(|source| LayoutError::Rename { from: from.clone(), to: to.clone(), source })
}

/// Makes the folder of block files in `dir`, with the key of zeros by which programs that read Core's block files see that
/// ours are not obfuscated (Core `node/blockstorage.cpp`, `InitBlocksdirXorKey`).
pub(crate) fn claim_blocks(io: &dyn Io, dir: &Path) -> Result<(), LayoutError> {
    let dir = dir.join(BLOCKS_DIR);
    let path = dir.join("xor.dat");
    let read_or_write = || {
        io.create_dir_all(&dir)?;
        let file = io.open(&path, true)?;
        let size = file.size()?;
        let mut key = [0; KEY_BYTES];
        let read = (size as usize).min(KEY_BYTES);
        file.read_exact_at(&mut key[..read], 0)?;
        if key != [0; KEY_BYTES] || size > KEY_BYTES as u64 {
            return Ok(false);
        }
        if read < KEY_BYTES {
            file.write_all_at(&key, 0)?;
            file.sync_data()?;
        }
        Ok(true)
    };
    match read_or_write() {
        Ok(true) => Ok(()),
        Ok(false) => Err(LayoutError::Obfuscated { path }),
        Err(source) => Err(LayoutError::Key { path, source }),
    }
}

const KEY_BYTES: usize = 8;

/// A database of `LevelDB` has a file `CURRENT` that names its manifest; ours have none.
fn refuse_foreign(path: &Path) -> Result<(), LayoutError> {
    let current = fs::read(path.join("CURRENT")).unwrap_or_default();
    if current.starts_with(b"MANIFEST-") {
        return Err(LayoutError::Foreign { path: path.to_owned() });
    }
    Ok(())
}

/// Removes all but the block files where that is wanted, and gives whether these are still to be read.
///
/// A crash leaves one of two marks: with the first everything is removed again, with the second it has been. So half an index
/// is never taken for a whole one.
pub(crate) fn begin_reindex(
    dir: &Path,
    is_wanted: bool,
    removes_gapped: bool,
) -> Result<bool, LayoutError> {
    let (begun, going) = (dir.join(REINDEX_BEGUN), dir.join(REINDEXING));
    let blocks = dir.join(BLOCKS_DIR);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| LayoutError::Reindex { path, source }
    };
    if is_wanted && !begun.exists() {
        fs::create_dir_all(&blocks).map_err(failed(&blocks))?;
        fs::write(&begun, []).map_err(failed(&begun))?;
        sync_name(&RealIo, &begun).map_err(failed(&begun))?;
    }
    if begun.exists() {
        remove_if_there(&dir.join(INDEX_DIR), |path| fs::remove_dir_all(path))?;
        discard_coins(dir, true)?;
        for entry in fs::read_dir(&blocks).map_err(failed(&blocks))? {
            let path = entry.map_err(failed(&blocks))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.strip_prefix("rev").and_then(|rest| rest.strip_suffix(".dat")).is_some() {
                remove_if_there(&path, |path| fs::remove_file(path))?;
            }
        }
        if removes_gapped {
            remove_gapped(&blocks)?;
        }
        // Both names are in one folder, so their order on disk is kept by syncing it in between.
        sync_name(&RealIo, &begun).map_err(failed(&begun))?;
        fs::rename(&begun, &going).map_err(failed(&begun))?;
        sync_name(&RealIo, &going).map_err(failed(&going))?;
    }
    Ok(going.exists())
}

/// Removes the block files above the first number that is missing.
fn remove_gapped(blocks: &Path) -> Result<(), LayoutError> {
    let failed = |source| LayoutError::Reindex { path: blocks.to_owned(), source };
    let mut numbers = BTreeSet::new();
    for entry in fs::read_dir(blocks).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let digits = name.to_str().and_then(|name| name.strip_prefix("blk")?.strip_suffix(".dat"));
        numbers.extend(digits.and_then(|digits| digits.parse::<u32>().ok()));
    }
    for (expected, number) in (0..).zip(&numbers) {
        if expected != *number {
            let path = blocks.join(format!("blk{number:05}.dat"));
            remove_if_there(&path, |path| fs::remove_file(path))?;
        }
    }
    Ok(())
}

/// Notes that the block files have been read; what they hold must be synced.
pub(crate) fn end_reindex(dir: &Path) -> Result<(), LayoutError> {
    let path = dir.join(REINDEXING);
    remove_if_there(&path, |path| fs::remove_file(path))?;
    sync_name(&RealIo, &path).map_err(|source| LayoutError::Reindex { path, source })
}

fn remove_if_there(
    path: &Path,
    remove: impl Fn(&Path) -> io::Result<()>,
) -> Result<(), LayoutError> {
    match remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|source| LayoutError::Reindex { path: path.to_owned(), source }),
    }
}

/// Removes the coins, where they are to be removed now or were by a process that did not get to the end.
pub(crate) fn discard_coins(dir: &Path, is_wanted: bool) -> Result<(), LayoutError> {
    let (coins, discarded) = (dir.join(COINS_DIR), dir.join(DISCARDED_DIR));
    let failed = |source| LayoutError::Discard { path: discarded.clone(), source };
    if discarded.exists() {
        fs::remove_dir_all(&discarded).map_err(failed)?;
    }
    if is_wanted && coins.exists() {
        // Half a database is not one: it goes at once, and then piece by piece.
        fs::rename(&coins, &discarded).map_err(failed)?;
        fs::remove_dir_all(&discarded).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use assay_wire::BlockHash;

    use super::*;
    use crate::{OpenError, Store, StoreConfig, commit};

    const HASH: BlockHash = BlockHash([1; 32]);

    fn check(config: &StoreConfig) {
        let store = Store::open(config).unwrap();
        assert_eq!(store.coins.tip().map(|marker| marker.hash), Some(HASH));
        assert!(config.dir.join("blocks/index/index.log").is_file());
        assert!(config.dir.join("chainstate").is_dir());
        assert!(!config.dir.join("coins").exists() && !config.dir.join("index").exists());
    }

    #[test]
    fn earlier_names_are_replaced_also_after_a_crash() {
        let both = &[("chainstate", "coins"), ("blocks/index", "index")][..];
        for renamed_back in [&[][..], &both[..1], &both[1..], both] {
            let dir = tempfile::tempdir().unwrap();
            let config = StoreConfig::new(dir.path(), [1, 2, 3, 4]);
            let mut store = Store::open(&config).unwrap();
            commit(&mut store.coins, &store.blocks, &store.index, 1, &HASH).unwrap();
            drop(store);
            for (present, earlier) in renamed_back {
                fs::rename(dir.path().join(present), dir.path().join(earlier)).unwrap();
            }
            check(&config);
            check(&config);
        }
    }

    #[test]
    fn a_folder_with_the_present_name_is_the_right_one() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("old/x")).unwrap();
        fs::create_dir(dir.path().join("new")).unwrap();
        rename_folder(dir.path(), "old", "new").unwrap();
        assert!(dir.path().join("old/x").is_dir());
        rename_folder(dir.path(), "none", "some").unwrap();
        assert!(!dir.path().join("some").exists());
        rename_folder(dir.path(), "old", "a/b").unwrap();
        assert!(dir.path().join("a/b/x").is_dir());
    }

    #[test]
    fn a_key_of_zeros_is_written_and_others_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let config = StoreConfig::new(dir.path(), [1, 2, 3, 4]);
        let path = dir.path().join("blocks/xor.dat");
        let open = || Store::open(&config).map(drop);
        open().unwrap();
        assert_eq!(fs::read(&path).unwrap(), [0; 8]);
        fs::write(&path, [0; 3]).unwrap();
        open().unwrap();
        assert_eq!(fs::read(&path).unwrap(), [0; 8], "a crash had cut it");
        for key in [&[0, 0, 0, 0, 0, 0, 0, 1][..], &[1], &[0; 9]] {
            fs::write(&path, key).unwrap();
            let opened = open();
            assert!(matches!(opened, Err(OpenError::Layout(LayoutError::Obfuscated { .. }))));
            assert_eq!(fs::read(&path).unwrap(), key);
        }
    }

    #[test]
    fn databases_of_bitcoin_core_are_left_alone() {
        for path in ["chainstate", "blocks/index"] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join(path);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("CURRENT"), "MANIFEST-000004\n").unwrap();
            let opened = Store::open(&StoreConfig::new(dir.path(), [1, 2, 3, 4]));
            assert!(matches!(opened, Err(OpenError::Layout(LayoutError::Foreign { .. }))));
            assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
        }
    }
}
