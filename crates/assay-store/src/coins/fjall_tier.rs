//! The coin tier on fjall, a log-structured merge tree in Rust. Rationale: `docs/adr/0002-coin-tier.md`.

use std::error::Error;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use fjall::config::{BlockSizePolicy, CompressionPolicy, PartitioningPolicy, PinningPolicy};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, Readable, Snapshot};

use crate::io::{RealIo, ignore_missing, sync_name};

use super::damage;
use super::tier::{CoinTier, TierBatch, TierError, TierSnapshot, Visit};

/// Coins in a fjall keyspace.
///
/// A batch is written as sorted and synced tables, which enter the tree atomically. Compared with journal and memtable this needs
/// half the time and a quarter of the memory, and is faster for small batches too, so the journal stays empty.
pub struct FjallTier {
    db: Database,
    coins: Keyspace,
    dir: PathBuf,
}

impl FjallTier {
    /// Opens or creates the database in `dir`, with `cache_bytes` for its block cache. The directory stays locked.
    pub fn open(dir: &Path, cache_bytes: usize) -> Result<Self, TierError> {
        clear_unfinished(dir).map_err(|e| TierError::new("clear an unfinished database", e))?;
        damage::check_folder(dir).map_err(|(path, what)| TierError {
            place: Some((path, 0)),
            ..TierError::new("open the database", what)
        })?;
        let db = Database::builder(dir)
            .cache_size(cache_bytes as u64)
            .worker_threads(2)
            .open()
            .map_err(|e| failed("open the database", dir, e))?;
        // Compression is off, since hashes do not compress. Filters and indexes are partitioned blocks in the cache, so the cache
        // keeps the ones in use: whole ones would take memory proportional to the number of coins, and pinned ones have no limit.
        let options = || {
            KeyspaceCreateOptions::default()
                .filter_block_partitioning_policy(PartitioningPolicy::all(true))
                .index_block_partitioning_policy(PartitioningPolicy::all(true))
                .filter_block_pinning_policy(PinningPolicy::disabled())
                .index_block_pinning_policy(PinningPolicy::disabled())
                .manual_journal_persist(true)
                .data_block_size_policy(BlockSizePolicy::all(BLOCK_BYTES))
                .data_block_compression_policy(CompressionPolicy::disabled())
                .index_block_compression_policy(CompressionPolicy::disabled())
        };
        let coins =
            db.keyspace("coins", options).map_err(|e| failed("open the keyspace", dir, e))?;
        // The engine syncs the contents of the keyspace folder, but not its directory entry.
        let keyspaces = dir.join("keyspaces");
        for path in [&keyspaces.join("0"), &keyspaces, dir] {
            sync_name(&RealIo, path).map_err(|e| TierError::new("sync the folders", e))?;
        }
        Ok(Self { db, coins, dir: dir.to_path_buf() })
    }

    fn failed(&self, operation: &'static str, error: fjall::Error) -> TierError {
        failed(operation, &self.dir, error)
    }
}

/// Removes the files of a database whose creation was interrupted, because the engine fails to open them: files without a version
/// marker, or with an empty one. Keyspaces are created after the marker, so nothing is removed if one exists.
fn clear_unfinished(dir: &Path) -> io::Result<()> {
    let (marker, journal) = (dir.join("version"), dir.join("0.jnl"));
    let is_marked = fs::metadata(&marker).is_ok_and(|marker| marker.len() > 0);
    if is_marked || !(marker.try_exists()? || journal.try_exists()?) {
        return Ok(());
    }
    let holds_keyspaces =
        fs::read_dir(dir.join("keyspaces")).is_ok_and(|mut entries| entries.next().is_some());
    // Another process may be creating the database; the engine reports that itself.
    let lock = fs::OpenOptions::new().write(true).open(dir.join("lock"));
    let is_free = lock.as_ref().is_ok_and(|lock| lock.try_lock().is_ok());
    if holds_keyspaces || !is_free {
        return Ok(());
    }
    for path in [journal, marker] {
        ignore_missing(fs::remove_file(path))?;
    }
    Ok(())
}

/// Maps an error of the engine. The engine does not report the position of damage, so this searches for it.
fn failed(operation: &'static str, dir: &Path, error: fjall::Error) -> TierError {
    let is_damage = match &error {
        fjall::Error::Io(e) | fjall::Error::Storage(fjall::LsmError::Io(e)) => {
            use ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
            matches!(e.kind(), InvalidData | InvalidInput | UnexpectedEof)
        }
        fjall::Error::Locked | fjall::Error::Poisoned => false,
        _ => true,
    };
    let place = match &error {
        fjall::Error::InvalidVersion(_) => Some((dir.join("version"), 0)),
        // A missing table has no position.
        _ => is_damage.then(|| damage::find(dir).unwrap_or_else(|| (dir.to_path_buf(), 0))),
    };
    TierError { place, ..TierError::new(operation, plain(error)) }
}

/// The engine's error without the debug text of its `Display`.
fn plain(error: fjall::Error) -> Box<dyn Error + Send + Sync> {
    use fjall::{Error, LsmError};
    match error {
        Error::Io(source) | Error::Storage(LsmError::Io(source)) => source.into(),
        Error::Locked => "another process has it open".into(),
        Error::Poisoned => "an earlier write failed".into(),
        Error::KeyspaceDeleted => "the keyspace was deleted".into(),
        Error::InvalidVersion(_) | Error::Storage(LsmError::InvalidVersion(_)) => {
            "its format version is not known".into()
        }
        Error::Decompress(_) | Error::Storage(LsmError::Decompress(_)) => {
            "a block of it cannot be decompressed".into()
        }
        Error::Storage(LsmError::ChecksumMismatch { .. }) => "a checksum does not match".into(),
        Error::JournalRecovery(_) => "its journal is damaged".into(),
        _ => "it is damaged".into(),
    }
}

impl CoinTier for FjallTier {
    fn get(&self, key: &[u8], found: &mut dyn FnMut(&[u8])) -> Result<bool, TierError> {
        let value = self.coins.get(key).map_err(|e| self.failed("read", e))?;
        Ok(value.map(|value| found(&value)).is_some())
    }

    fn batch(&self, _changes: usize) -> Result<Box<dyn TierBatch + '_>, TierError> {
        let tables = Tables::start(&self.coins, &self.dir);
        Ok(Box::new(tables.map_err(|e| self.failed("start a batch", e))?))
    }

    fn snapshot(&self) -> Result<Box<dyn TierSnapshot>, TierError> {
        let (view, coins, dir) = (self.db.snapshot(), self.coins.clone(), self.dir.clone());
        Ok(Box::new(FjallSnapshot { view, coins, dir }))
    }

    fn find_damage(&self) -> Option<(PathBuf, u64)> {
        damage::find(&self.dir)
    }

    fn disk_bytes(&self) -> u64 {
        // Without the journal, which preallocates 64 MiB.
        self.coins.disk_space()
    }

    fn coins_estimate(&self) -> u64 {
        // Includes deletions and replaced values until compaction.
        self.coins.approximate_len() as u64
    }
}

/// A batch as sorted tables. The engine's type for them has no public name, hence the closure.
struct Tables<'t> {
    apply: Box<dyn FnMut(Step<'_>) -> fjall::Result<()> + 't>,
    dir: &'t Path,
}

enum Step<'s> {
    Put(&'s [u8], &'s [u8]),
    Delete(&'s [u8]),
    Finish,
}

impl<'t> Tables<'t> {
    fn start(coins: &'t Keyspace, dir: &'t Path) -> fjall::Result<Self> {
        let mut ingestion = Some(coins.start_ingestion()?);
        let apply = Box::new(move |step: Step<'_>| match (step, &mut ingestion) {
            (Step::Put(key, value), Some(ingestion)) => ingestion.write(key, value),
            (Step::Delete(key), Some(ingestion)) => ingestion.write_tombstone(key),
            (Step::Finish, ingestion) => match ingestion.take() {
                Some(ingestion) => ingestion.finish(),
                None => Ok(()),
            },
            (_, None) => Ok(()),
        });
        Ok(Self { apply, dir })
    }
}

impl TierBatch for Tables<'_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), TierError> {
        (self.apply)(Step::Put(key, value)).map_err(|e| failed("write", self.dir, e))
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), TierError> {
        (self.apply)(Step::Delete(key)).map_err(|e| failed("delete", self.dir, e))
    }

    fn commit(mut self: Box<Self>) -> Result<(), TierError> {
        (self.apply)(Step::Finish).map_err(|e| failed("commit", self.dir, e))
    }
}

struct FjallSnapshot {
    view: Snapshot,
    coins: Keyspace,
    dir: PathBuf,
}

impl TierSnapshot for FjallSnapshot {
    fn scan(&self, from: &[u8], to: Option<&[u8]>, visit: &mut Visit<'_>) -> Result<(), TierError> {
        let entries = match to {
            Some(to) => self.view.range(&self.coins, from..to),
            None => self.view.range(&self.coins, from..),
        };
        for entry in entries {
            let (key, value) = entry.into_inner().map_err(|e| failed("scan", &self.dir, e))?;
            if visit(&key, &value).is_break() {
                break;
            }
        }
        Ok(())
    }
}

const BLOCK_BYTES: u32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coins::tests::{Step, check_against_model, step};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn agrees_with_a_map(steps in proptest::collection::vec(step(), 1..160)) {
            let dir = tempfile::tempdir().expect("a temporary directory");
            check_against_model(&steps, 1 << 20, || {
                Box::new(FjallTier::open(dir.path(), 1 << 20).expect("the tier opens"))
            });
        }
    }

    #[test]
    fn an_interrupted_creation_starts_again() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let dir = root.path().join("coins");
        let leave = |files: &[&str]| {
            fs::create_dir_all(dir.join("keyspaces")).expect("it can be made");
            for name in files {
                fs::write(dir.join(name), []).expect("it can be written");
            }
        };
        // In the order in which the engine creates them.
        for files in [&["lock"][..], &["lock", "0.jnl"], &["lock", "0.jnl", "version"]] {
            leave(files);
            drop(FjallTier::open(&dir, 1 << 20).expect("the tier opens"));
            drop(FjallTier::open(&dir, 1 << 20).expect("the tier opens again"));
            // With coins in the database a lost marker is damage, and nothing is removed.
            fs::remove_file(dir.join("version")).expect("it was there");
            assert!(FjallTier::open(&dir, 1 << 20).is_err());
            assert!(dir.join("0.jnl").exists());
            fs::remove_dir_all(&dir).expect("it can be removed");
        }
        // Another process holds the lock.
        leave(&["lock", "0.jnl"]);
        let lock = fs::OpenOptions::new().write(true).open(dir.join("lock")).expect("it is there");
        lock.lock().expect("nobody has it");
        assert!(FjallTier::open(&dir, 1 << 20).is_err());
        assert!(dir.join("0.jnl").exists());
    }

    type Change = fn(&Path) -> io::Result<()>;

    #[test]
    fn reports_missing_or_foreign_files_and_removes_nothing() {
        let root = tempfile::tempdir().expect("a temporary directory");
        let whole = root.path().join("whole");
        let tier = FjallTier::open(&whole, 1 << 20).expect("the tier opens");
        let mut batch = tier.batch(1).expect("a batch");
        batch.put(b"key", b"value").expect("it is written");
        batch.commit().expect("it is committed");
        drop(tier);
        let tables = fs::read_dir(whole.join("keyspaces/1/tables")).expect("coins are there");
        let table = tables.flatten().next().expect("a table").path();
        let table = table.strip_prefix(&whole).expect("it is below").to_owned();
        let (remove, folder): (Change, Change) =
            (|path| fs::remove_file(path), |path| fs::create_dir(path));
        let copy: Change = |path| fs::copy(path.with_file_name("0.jnl"), path).map(|_| ());
        let changes = [
            ("0.jnl", remove, "this file is missing"),
            ("version", remove, "this file is missing"),
            ("keyspaces/0/current", remove, "this file is missing"),
            ("keyspaces/1/current", remove, "this file is missing"),
            ("keyspaces/1.bak", folder, "this is no folder of it"),
            ("keyspaces/1/tables/9999", folder, "this is no table of it"),
            ("1.jnl", folder, "this is no journal of it"),
            ("old.jnl", copy, "this is no journal of it"),
        ];
        for (name, change, text) in changes {
            let dir = root.path().join("changed");
            copy_folder(&whole, &dir).expect("it is copied");
            change(&dir.join(name)).expect("it is changed");
            let error = FjallTier::open(&dir, 1 << 20).err().expect(name).to_string();
            assert!(error.contains(text) && error.contains(name), "{name}: {error}");
            assert!(dir.join(&table).exists(), "{name}");
            fs::remove_dir_all(&dir).expect("it can be removed");
        }
    }

    fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?.path();
            let target = to.join(entry.file_name().unwrap_or_default());
            if entry.is_dir() {
                copy_folder(&entry, &target)?;
            } else {
                fs::copy(entry, target)?;
            }
        }
        Ok(())
    }

    #[test]
    fn many_small_batches_and_reopenings_lose_nothing() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let mut steps = Vec::new();
        for round in 0..12 {
            steps.extend((0..40).map(|n| Step::Add(n, round)));
            steps.push(Step::Flush);
            steps.push(Step::Spend(round));
            steps.push(Step::Flush);
            steps.push(Step::Reopen);
            steps.extend((0..20).map(|n| Step::Spend(n * 2)));
            steps.push(Step::Flush);
        }
        check_against_model(&steps, 0, || {
            Box::new(FjallTier::open(dir.path(), 1 << 20).expect("the tier opens"))
        });
    }

    #[test]
    fn rejects_a_directory_in_use() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let _first = FjallTier::open(dir.path(), 1 << 20).expect("the tier opens");
        let error = FjallTier::open(dir.path(), 1 << 20).err().expect("the directory is locked");
        let text = "coin tier: cannot open the database: another process has it open";
        assert_eq!(error.to_string(), text);
    }

    #[test]
    fn errors_have_no_debug_text() {
        use fjall::{Error, LsmError};
        let full = || io::Error::from_raw_os_error(24);
        let errors = [
            (Error::Storage(LsmError::Io(full())), "Too many open files (os error 24)"),
            (Error::Io(full()), "Too many open files (os error 24)"),
            (Error::Storage(LsmError::Unrecoverable), "it is damaged"),
            (Error::InvalidVersion(None), "its format version is not known"),
            (Error::Poisoned, "an earlier write failed"),
        ];
        for (error, text) in errors {
            assert_eq!(plain(error).to_string(), text);
        }
    }
}
