//! Names of a store's folders. They are those of Bitcoin Core, which its tools and tests expect; earlier versions had other
//! names.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::io::{Io, RealIo, ignore_missing, sync_name};
use crate::replace::{ReplaceError, read_file, replace_file};
use crate::xor::XorKey;

pub(crate) const COINS_DIR: &str = "chainstate";
pub(crate) const BLOCKS_DIR: &str = "blocks";
pub(crate) const INDEX_DIR: &str = "blocks/index";

const DISCARDED_DIR: &str = "chainstate.discarded";

/// Marker: index, coins and undo data must be removed, then the block files scanned.
const REINDEX_BEGUN: &str = "blocks/reindex.begun";
/// Marker: they have been removed; the scan of the block files is incomplete.
const REINDEXING: &str = "blocks/reindexing";

/// Earlier names and their replacements.
const RENAMED: [(&str, &str); 2] = [("coins", COINS_DIR), ("index", INDEX_DIR)];

/// Obfuscation of block and undo files (Core `node/blockstorage.cpp`, `InitBlocksdirXorKey`). An existing key takes precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Obfuscation {
    /// Use the existing key; without one, none.
    #[default]
    AsFound,
    /// Key of new folders, which should be random.
    New(XorKey),
    /// None: an existing key other than zeros is an error.
    Forbidden,
}

/// The layout of a directory is invalid or cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum LayoutError {
    #[error("cannot rename {} to {}: {source}", from.display(), to.display())]
    Rename { from: PathBuf, to: PathBuf, source: io::Error },
    /// Obfuscation is forbidden, but a key exists.
    #[error(
        "The blocksdir XOR-key can not be disabled when a random key was already stored! Stored key: '{key}', stored path: \
         '{}'.",
        path.display()
    )]
    Obfuscated { path: PathBuf, key: XorKey },
    #[error("{} is {bytes} bytes long; a key has 8", path.display())]
    KeyLength { path: PathBuf, bytes: u64 },
    #[error("{}: {source}", path.display())]
    Key { path: PathBuf, source: io::Error },
    #[error("cannot remove the coins ({}): {source}", path.display())]
    Discard { path: PathBuf, source: io::Error },
    #[error("cannot begin to index the block files again ({}): {source}", path.display())]
    Reindex { path: PathBuf, source: io::Error },
    #[error("the coins of a snapshot in {} cannot be used: {source}", path.display())]
    Assumed { path: PathBuf, source: io::Error },
    #[error(
        "{} is a LevelDB database, as Bitcoin Core keeps it: give another data directory",
        path.display()
    )]
    Foreign { path: PathBuf },
}

/// Prepares `dir` for opening: replaces earlier names, and rejects databases of Bitcoin Core.
pub(crate) fn prepare(dir: &Path) -> Result<(), LayoutError> {
    for (from, to) in RENAMED {
        refuse_foreign(&dir.join(to))?;
        rename_folder(dir, from, to)?;
    }
    Ok(())
}

/// Renames the folder `from` in `dir` to `to`, unless that exists. Atomic: after a crash the next call continues.
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

/// Creates the folder of block files with its XOR key file, which programs that read Core's block files expect (Core
/// `node/blockstorage.cpp`, `InitBlocksdirXorKey`).
pub(crate) fn claim_blocks(
    io: &dyn Io,
    dir: &Path,
    obfuscation: Obfuscation,
) -> Result<XorKey, LayoutError> {
    let path = dir.join("xor.dat");
    let failed = |source| LayoutError::Key { path: path.clone(), source };
    let failed_file = |ReplaceError { path, source }| LayoutError::Key { path, source };
    io.create_dir_all(dir).map_err(failed)?;
    // As in Core: the lock file may exist already.
    let is_new = io.list(dir).map_err(failed)?.iter().all(|name| name.starts_with('.'));
    let stored = read_file(io, &path).map_err(failed_file)?;
    let mut bytes = [0; KEY_BYTES];
    match (&stored, obfuscation) {
        (None, Obfuscation::New(key)) if is_new => bytes = key.bytes(),
        (None, _) => {}
        (Some(stored), _) if stored.len() == KEY_BYTES => bytes.copy_from_slice(stored),
        // Truncated by a crash of an earlier version, whose key was always zero.
        (Some(stored), _) if stored.len() < KEY_BYTES && stored.iter().all(|byte| *byte == 0) => {}
        (Some(stored), _) => {
            return Err(LayoutError::KeyLength { path, bytes: stored.len() as u64 });
        }
    }
    let key = XorKey::new(bytes);
    if stored.as_deref() != Some(&bytes[..]) {
        // Atomically: with half of it no block could be read again.
        replace_file(io, &path, std::iter::once(bytes.to_vec())).map_err(failed_file)?;
    }
    if obfuscation == Obfuscation::Forbidden && key != XorKey::NONE {
        return Err(LayoutError::Obfuscated { path, key });
    }
    Ok(key)
}

const KEY_BYTES: usize = 8;

/// A `LevelDB` database has a file `CURRENT` that names its manifest.
fn refuse_foreign(path: &Path) -> Result<(), LayoutError> {
    let current = fs::read(path.join("CURRENT")).unwrap_or_default();
    if current.starts_with(b"MANIFEST-") {
        return Err(LayoutError::Foreign { path: path.to_owned() });
    }
    Ok(())
}

/// If requested, removes everything except the block files. Returns true if the block files are still to be scanned.
///
/// A crash leaves one of two markers: the removal starts again, or is complete. So no incomplete index is ever used.
pub(crate) fn begin_reindex(
    (dir, blocks): (&Path, &Path),
    is_wanted: bool,
    removes_gapped: bool,
) -> Result<bool, LayoutError> {
    let (begun, going) = (dir.join(REINDEX_BEGUN), dir.join(REINDEXING));
    let marks = dir.join(BLOCKS_DIR);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| LayoutError::Reindex { path, source }
    };
    if is_wanted && !begun.exists() {
        fs::create_dir_all(&marks).map_err(failed(&marks))?;
        fs::write(&begun, []).map_err(failed(&begun))?;
        sync_name(&RealIo, &begun).map_err(failed(&begun))?;
    }
    if begun.exists() {
        let index = dir.join(INDEX_DIR);
        ignore_missing(fs::remove_dir_all(&index)).map_err(failed(&index))?;
        discard_coins(dir, true)?;
        fs::create_dir_all(blocks).map_err(failed(blocks))?;
        for entry in fs::read_dir(blocks).map_err(failed(blocks))? {
            let path = entry.map_err(failed(blocks))?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.strip_prefix("rev").and_then(|rest| rest.strip_suffix(".dat")).is_some() {
                ignore_missing(fs::remove_file(&path)).map_err(failed(&path))?;
            }
        }
        if removes_gapped {
            remove_gapped(blocks)?;
        }
        // Both names are in one folder; the sync in between keeps their order on disk.
        sync_name(&RealIo, &begun).map_err(failed(&begun))?;
        fs::rename(&begun, &going).map_err(failed(&begun))?;
        sync_name(&RealIo, &going).map_err(failed(&going))?;
    }
    Ok(going.exists())
}

/// Removes the block files after the first gap in their numbers.
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
            ignore_missing(fs::remove_file(&path))
                .map_err(|source| LayoutError::Reindex { path, source })?;
        }
    }
    Ok(())
}

/// Removes the marker after the scan of the block files. Its results must be synced.
pub(crate) fn end_reindex(dir: &Path) -> Result<(), LayoutError> {
    let path = dir.join(REINDEXING);
    ignore_missing(fs::remove_file(&path))
        .and_then(|()| sync_name(&RealIo, &path))
        .map_err(|source| LayoutError::Reindex { path, source })
}

/// Removes the coins if requested now, or if an earlier removal was interrupted.
pub(crate) fn discard_coins(dir: &Path, is_wanted: bool) -> Result<(), LayoutError> {
    let (coins, discarded) = (dir.join(COINS_DIR), dir.join(DISCARDED_DIR));
    let failed = |source| LayoutError::Discard { path: discarded.clone(), source };
    if discarded.exists() {
        fs::remove_dir_all(&discarded).map_err(failed)?;
    }
    if is_wanted && coins.exists() {
        // A rename makes the partial database unusable at once; its files are removed after that.
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
    fn the_current_name_takes_precedence() {
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
    fn an_existing_key_is_used_and_without_one_files_are_plain() {
        let dir = tempfile::tempdir().unwrap();
        let mut config = StoreConfig::new(dir.path(), [1, 2, 3, 4]);
        let path = dir.path().join("blocks/xor.dat");
        let open = |config: &StoreConfig| Store::open(config).map(drop);
        open(&config).unwrap();
        assert_eq!(fs::read(&path).unwrap(), [0; 8]);
        fs::write(&path, [0; 3]).unwrap();
        // The folder is no longer new.
        config.obfuscation = Obfuscation::New(XorKey::new([1; 8]));
        open(&config).unwrap();
        assert_eq!(fs::read(&path).unwrap(), [0; 8], "a crash had cut it");
        for key in [&[1][..], &[0; 9]] {
            fs::write(&path, key).unwrap();
            let opened = open(&config);
            assert!(matches!(opened, Err(OpenError::Layout(LayoutError::KeyLength { .. }))));
            assert_eq!(fs::read(&path).unwrap(), key);
        }
    }

    #[test]
    fn blocks_and_undo_data_are_obfuscated_with_a_new_key() {
        const KEY: [u8; 8] = [9, 8, 7, 6, 5, 4, 3, 2];
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let mut config = StoreConfig::new(dir.path(), [1, 2, 3, 4]);
        config.blocks_dir = Some(elsewhere.path().to_path_buf());
        fs::write(elsewhere.path().join(".lock"), []).unwrap();
        config.obfuscation = Obfuscation::New(XorKey::new(KEY));
        let store = Store::open(&config).unwrap();
        let (block, undo) = ([7; 100], [5; 50]);
        let pos = store.blocks.append_block(&block).unwrap();
        let undo_pos = store.blocks.append_undo(0, &HASH, &undo).unwrap();
        for again in 0..2 {
            assert_eq!(store.blocks.read_block(pos).unwrap(), block, "{again}");
            assert_eq!(store.blocks.read_block_part(pos, 3, 9).unwrap(), [7; 9]);
            let cached = store.blocks.cached_block_part(pos, 3, 9);
            assert!(cached.is_none_or(|part| part == [7; 9]));
            assert_eq!(store.blocks.read_undo(undo_pos, &HASH).unwrap(), undo);
        }
        drop(store);
        assert!(!dir.path().join("blocks/blk00000.dat").exists());
        let mut plain = fs::read(elsewhere.path().join("blk00000.dat")).unwrap();
        assert_ne!(plain[8..], block);
        XorKey::new(KEY).apply(&mut plain, 0);
        assert_eq!((&plain[..4], &plain[8..]), (&[1, 2, 3, 4][..], &block[..]));
        // Any setting except `Forbidden` finds the key again.
        config.obfuscation = Obfuscation::AsFound;
        let store = Store::open(&config).unwrap();
        assert_eq!(store.recovery.unindexed.len(), 1);
        drop(store);
        config.obfuscation = Obfuscation::Forbidden;
        let error = Store::open(&config).map(drop).unwrap_err().to_string();
        assert!(error.contains("Stored key: '0908070605040302'"), "{error}");
    }

    #[test]
    fn detects_a_moved_file_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&StoreConfig::new(dir.path(), [1, 2, 3, 4])).unwrap();
        let pos = store.blocks.append_block(&[7; 100]).unwrap();
        let (path, moved) = (dir.path().join("blocks/blk00000.dat"), dir.path().join("moved"));
        fs::rename(&path, &moved).unwrap();
        assert!(store.blocks.read_block(pos).unwrap_err().is_damage());
        fs::rename(&moved, &path).unwrap();
        assert_eq!(store.blocks.read_block(pos).unwrap(), [7; 100]);
    }

    #[test]
    fn databases_of_bitcoin_core_are_not_changed() {
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
