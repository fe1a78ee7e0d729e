//! Folder of the coins of a loaded snapshot, and its recovery at start.
//!
//! Snapshot coins stay in a folder of their own, as in Bitcoin Core (`node/utxo_snapshot.h`), until the blocks up to the base
//! have been validated with the coins of the ordinary folder. Two files in the folder record the progress, each written
//! atomically:
//!
//! - `base_blockhash`: hash of the base block, 32 bytes. Without it the load is incomplete, and the folder is removed.
//! - `validated`: empty. The coins are correct and replace the ordinary ones at the next start.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use assay_wire::BlockHash;

use crate::coins::{CoinError, CoinStore, FjallTier};
use crate::io::{RealIo, ignore_missing, sync_name};
use crate::layout::{COINS_DIR, LayoutError};
use crate::replace::{ReplaceError, replace_file};

pub(crate) const ASSUMED_DIR: &str = "chainstate_snapshot";
/// Name of the folder after its coins failed validation.
pub(crate) const INVALID_DIR: &str = "chainstate_snapshot_INVALID";
const DISCARDED_DIR: &str = "chainstate_snapshot.discarded";
const BASE_FILE: &str = "base_blockhash";
const VALIDATED_FILE: &str = "validated";

#[derive(Debug, thiserror::Error)]
pub enum AssumedError {
    #[error(transparent)]
    Coins(#[from] CoinError),
    #[error(transparent)]
    Mark(#[from] ReplaceError),
    #[error("{}: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
}

/// Coins that are being loaded from a snapshot. They count as complete only after [`LoadingCoins::finish`].
pub struct LoadingCoins {
    pub coins: CoinStore,
    dir: PathBuf,
}

impl LoadingCoins {
    /// Starts with an empty folder in `dir`; removes an earlier one.
    pub fn begin(
        dir: &Path,
        tier_cache_bytes: usize,
        cache_bytes_max: usize,
    ) -> Result<Self, AssumedError> {
        discard(dir)?;
        let folder = dir.join(ASSUMED_DIR);
        let tier = FjallTier::open(&folder, tier_cache_bytes).map_err(CoinError::from)?;
        sync_name(&RealIo, &folder)
            .map_err(|source| AssumedError::Folder { path: folder.clone(), source })?;
        let coins = CoinStore::open(Box::new(tier), cache_bytes_max)?;
        Ok(Self { coins, dir: dir.to_owned() })
    }

    /// Marks the coins as complete, at the block `base`. They must have been flushed.
    pub fn finish(self, base: &BlockHash) -> Result<CoinStore, AssumedError> {
        let path = self.dir.join(ASSUMED_DIR).join(BASE_FILE);
        replace_file(&RealIo, &path, std::iter::once(base.0.to_vec()))?;
        Ok(self.coins)
    }

    /// Removes the coins.
    pub fn give_up(self) -> Result<(), AssumedError> {
        let Self { coins, dir } = self;
        // Close the database before its files are removed.
        drop(coins);
        discard(&dir)
    }
}

/// Marks the snapshot coins as validated: the next start uses them as the ordinary coins.
pub fn mark_validated(dir: &Path) -> Result<(), AssumedError> {
    let path = dir.join(ASSUMED_DIR).join(VALIDATED_FILE);
    replace_file(&RealIo, &path, std::iter::empty())?;
    Ok(())
}

/// Renames the folder of incorrect snapshot coins; returns its new path, for inspection. The ordinary coins are used next.
pub fn mark_invalid(dir: &Path) -> Result<PathBuf, AssumedError> {
    let (from, to) = (dir.join(ASSUMED_DIR), dir.join(INVALID_DIR));
    let rename = || {
        remove(&to)?;
        fs::rename(&from, &to)?;
        sync_name(&RealIo, &to)
    };
    rename().map_err(|source| AssumedError::Folder { path: from.clone(), source })?;
    Ok(to)
}

/// Removes the coins of a snapshot, if any.
pub(crate) fn discard(dir: &Path) -> Result<(), AssumedError> {
    let (folder, discarded) = (dir.join(ASSUMED_DIR), dir.join(DISCARDED_DIR));
    let discard = || {
        remove(&discarded)?;
        if folder.exists() {
            // A rename makes the partial database unusable at once; its files are removed after that.
            fs::rename(&folder, &discarded)?;
            sync_name(&RealIo, &folder)?;
            remove(&discarded)?;
        }
        Ok(())
    };
    discard().map_err(|source| AssumedError::Folder { path: folder.clone(), source })
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    /// Base of a snapshot that is not validated yet.
    pub(crate) base: Option<BlockHash>,
    /// Validated snapshot coins replaced the ordinary ones.
    pub(crate) is_promoted: bool,
    /// Incompletely loaded snapshot coins were removed.
    pub(crate) is_removed: bool,
}

/// Brings the folders into the state that the marks define. After a crash at any point, the next call completes the work.
pub(crate) fn settle(dir: &Path) -> Result<Settled, LayoutError> {
    let folder = dir.join(ASSUMED_DIR);
    let failed = |source| LayoutError::Assumed { path: folder.clone(), source };
    remove(&dir.join(DISCARDED_DIR)).map_err(failed)?;
    unmark(&dir.join(COINS_DIR)).map_err(failed)?;
    let mut settled = Settled::default();
    if !folder.exists() {
        return Ok(settled);
    }
    let base = match fs::read(folder.join(BASE_FILE)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            discard(dir).map_err(|error| failed(io::Error::other(error)))?;
            settled.is_removed = true;
            return Ok(settled);
        }
        Err(error) => return Err(failed(error)),
    };
    let base = <[u8; 32]>::try_from(base)
        .map_err(|_| failed(io::Error::other("base_blockhash does not hold a block hash")))?;
    if folder.join(VALIDATED_FILE).exists() {
        promote(dir).map_err(failed)?;
        settled.is_promoted = true;
        return Ok(settled);
    }
    settled.base = Some(BlockHash(base));
    Ok(settled)
}

/// Replaces the ordinary coins with the validated snapshot coins.
fn promote(dir: &Path) -> io::Result<()> {
    let (folder, coins) = (dir.join(ASSUMED_DIR), dir.join(COINS_DIR));
    let discarded = dir.join(DISCARDED_DIR);
    if coins.exists() {
        fs::rename(&coins, &discarded)?;
        sync_name(&RealIo, &coins)?;
        remove(&discarded)?;
    }
    fs::rename(&folder, &coins)?;
    sync_name(&RealIo, &coins)?;
    unmark(&coins)
}

fn unmark(folder: &Path) -> io::Result<()> {
    for name in [BASE_FILE, VALIDATED_FILE] {
        ignore_missing(fs::remove_file(folder.join(name)))?;
    }
    Ok(())
}

fn remove(folder: &Path) -> io::Result<()> {
    ignore_missing(fs::remove_dir_all(folder))
}

#[cfg(test)]
mod tests {
    use assay_wire::{OutPoint, Txid};

    use super::*;
    use crate::{CoinRef, Store, StoreConfig, commit};

    const BASE: BlockHash = BlockHash([7; 32]);
    const BELOW: BlockHash = BlockHash([1; 32]);
    const OUTPOINT: OutPoint = OutPoint { txid: Txid([3; 32]), vout: 1 };

    fn config(dir: &Path) -> StoreConfig {
        StoreConfig { known_bases: vec![BASE], ..StoreConfig::new(dir, [1, 2, 3, 4]) }
    }

    /// A store at height 1, and a snapshot of height 9 next to it.
    fn load(dir: &Path) -> LoadingCoins {
        let mut store = Store::open(&config(dir)).unwrap();
        commit(&mut store.coins, &store.blocks, &store.index, 1, &BELOW).unwrap();
        let mut loading = LoadingCoins::begin(dir, 1 << 20, 1 << 20).unwrap();
        let coin = CoinRef { value: 5, height: 4, coinbase: false, script_pubkey: &[0x51] };
        loading.coins.add(OUTPOINT, coin, false).unwrap();
        loading.coins.flush(9, &BASE).unwrap();
        loading
    }

    fn heights(dir: &Path) -> (Option<u32>, Option<u32>) {
        let store = Store::open(&config(dir)).unwrap();
        let height = |coins: &CoinStore| coins.tip().map(|marker| marker.height);
        (height(&store.coins), store.historical.as_ref().and_then(height))
    }

    #[test]
    fn removes_an_incomplete_snapshot_and_opens_a_complete_one() {
        let dir = tempfile::tempdir().unwrap();
        drop(load(dir.path()));
        assert_eq!(heights(dir.path()), (Some(1), None));
        assert!(!dir.path().join(ASSUMED_DIR).exists());
        load(dir.path()).give_up().unwrap();
        assert!(!dir.path().join(ASSUMED_DIR).exists());
        drop(load(dir.path()).finish(&BASE).unwrap());
        for _ in 0..2 {
            assert_eq!(heights(dir.path()), (Some(9), Some(1)));
        }
        let store = Store::open(&config(dir.path())).unwrap();
        assert_eq!(store.base, Some(BASE));
        assert_eq!(store.coins.get(&OUTPOINT).unwrap().map(|coin| coin.value), Some(5));
    }

    #[test]
    fn validated_coins_replace_the_ordinary_ones_also_after_a_crash() {
        let dir = tempfile::tempdir().unwrap();
        drop(load(dir.path()).finish(&BASE).unwrap());
        mark_validated(dir.path()).unwrap();
        // Killed after the rename of the ordinary coins, and after the rename of the snapshot coins.
        let (coins, assumed) = (dir.path().join(COINS_DIR), dir.path().join(ASSUMED_DIR));
        fs::rename(&coins, dir.path().join(DISCARDED_DIR)).unwrap();
        assert_eq!(heights(dir.path()), (Some(9), None));
        fs::write(coins.join(BASE_FILE), BASE.0).unwrap();
        fs::write(coins.join(VALIDATED_FILE), []).unwrap();
        assert_eq!(heights(dir.path()), (Some(9), None));
        assert!(!assumed.exists() && !coins.join(BASE_FILE).exists());
        assert!(!coins.join(VALIDATED_FILE).exists());
    }

    #[test]
    fn wrong_snapshot_coins_are_moved_aside() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            drop(load(dir.path()).finish(&BASE).unwrap());
            let kept = mark_invalid(dir.path()).unwrap();
            assert!(kept.join(BASE_FILE).exists());
            assert_eq!(heights(dir.path()), (Some(1), None));
        }
    }

    #[test]
    fn rebuilding_the_coins_removes_both() {
        let dir = tempfile::tempdir().unwrap();
        drop(load(dir.path()).finish(&BASE).unwrap());
        let config = StoreConfig { discard_coins: true, ..config(dir.path()) };
        let store = Store::open(&config).unwrap();
        assert!(store.coins.tip().is_none() && store.historical.is_none());
    }
}
