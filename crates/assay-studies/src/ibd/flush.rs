//! Flushing a cache of coins to disk: as one write batch, as in the report's last step for a cache
//! of up to 64 MiB, and by our store.
//!
//! A write batch goes through the database's journal into its memtable, in the order of the cache's hash table and
//! without a sync of its own, as Core writes to `LevelDB`; the journal is synced once at the end. Our store ingests
//! sorted tables into the tree atomically (`assay_store::FjallTier`), so it has no batch size.

use assay_bench::BenchError;
use assay_bench::harness::{Alternative, Sample};
use assay_bench::suite::{Benchmark, Extent};
use assay_hash::sha256;
use assay_report::stats::random::SplitMix64;
use assay_store::{CoinTier, FjallTier};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use tempfile::TempDir;

use super::{ASSAY, LAST_STEP, expect, folder, store_error};

/// Size of the tier's block cache.
const TIER_CACHE_BYTES: usize = 16 << 20;

type Pair = ([u8; 36], [u8; 28]);

/// Rows by size of the cache in coins.
pub(super) fn benchmarks<'a>(counts: &[u64], extent: Extent) -> Vec<Benchmark<'a>> {
    let counts = if extent == Extent::Smoke { &[1_000][..] } else { counts };
    let benchmark = |&count: &u64| {
        Benchmark::of_size("flush-batch", count, "coins", move |name| make(name, count as usize))
    };
    counts.iter().map(benchmark).collect()
}

/// The database of our store, on the real disk, with batches through its journal.
struct Batches {
    db: Database,
    coins: Keyspace,
    _dir: TempDir,
}

impl Batches {
    fn new() -> Result<Self, BenchError> {
        let dir = folder()?;
        let db = Database::builder(dir.path())
            .cache_size(TIER_CACHE_BYTES as u64)
            .worker_threads(2)
            .open()
            .map_err(store_error)?;
        let options = || KeyspaceCreateOptions::default().manual_journal_persist(true);
        let coins = db.keyspace("coins", options).map_err(store_error)?;
        Ok(Self { db, coins, _dir: dir })
    }

    /// Writes everything in one durable batch.
    fn write(&self, pairs: &[Pair]) -> Result<(), BenchError> {
        let mut batch = self.db.batch();
        for (key, value) in pairs {
            batch.insert(&self.coins, &key[..], &value[..]);
        }
        batch.commit().map_err(store_error)?;
        self.db.persist(PersistMode::SyncAll).map_err(store_error)
    }

    fn holds(&self, pairs: &[Pair]) -> Result<bool, BenchError> {
        for (key, value) in pairs {
            let found = self.coins.get(key).map_err(store_error)?;
            if found.is_none_or(|found| *found != value[..]) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The tier of our store, on the real disk.
struct Tier {
    tier: FjallTier,
    _dir: TempDir,
}

impl Tier {
    fn new() -> Result<Self, BenchError> {
        let dir = folder()?;
        let tier = FjallTier::open(dir.path(), TIER_CACHE_BYTES).map_err(store_error)?;
        Ok(Self { tier, _dir: dir })
    }

    /// Sorts everything and writes it as one durable and atomic change.
    fn write(&self, pairs: &[Pair]) -> Result<(), BenchError> {
        let mut sorted: Vec<&Pair> = pairs.iter().collect();
        sorted.sort_unstable_by_key(|pair| &pair.0);
        let mut batch = self.tier.batch(sorted.len()).map_err(store_error)?;
        for (key, value) in sorted {
            batch.put(key, value).map_err(store_error)?;
        }
        batch.commit().map_err(store_error)
    }

    fn holds(&self, pairs: &[Pair]) -> Result<bool, BenchError> {
        for (key, value) in pairs {
            let mut is_same = false;
            self.tier.get(key, &mut |found| is_same = found == value).map_err(store_error)?;
            if !is_same {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Key-value pairs in the order of a hash table.
fn pairs(count: usize) -> Vec<Pair> {
    let mut random = SplitMix64::new(count as u64);
    let any = |n: usize| {
        let mut key = [0; 36];
        key[..32].copy_from_slice(&sha256(&n.to_le_bytes()));
        (key, random.bytes())
    };
    (0..count).map(any).collect()
}

/// An alternative that writes all coins once into a new database.
fn once<T: 'static>(
    name: &str,
    pairs: Vec<Pair>,
    open: fn() -> Result<T, BenchError>,
    write: fn(&T, &[Pair]) -> Result<(), BenchError>,
) -> Alternative<'static> {
    Alternative::fallible(name, move || {
        let database = open()?;
        let mut outcome = Ok(());
        let sample = Sample::of(pairs.len() as u64, || outcome = write(&database, &pairs));
        outcome.map(|()| sample)
    })
}

fn make(name: &str, count: usize) -> Result<Vec<Alternative<'static>>, BenchError> {
    let pairs = pairs(count);
    let some = &pairs[..count.min(1_000)];
    let batches = Batches::new()?;
    batches.write(some)?;
    expect(batches.holds(some)?, name, LAST_STEP, "a coin is lost")?;
    let tier = Tier::new()?;
    tier.write(some)?;
    expect(tier.holds(some)?, name, ASSAY, "a coin is lost")?;
    Ok(vec![
        once(LAST_STEP, pairs.clone(), Batches::new, Batches::write),
        once(ASSAY, pairs, Tier::new, Tier::write),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The timed write batch passes through the journal; our timed flush does not.
    #[test]
    fn write_batches_go_through_the_journal_and_our_tables_do_not() {
        let pairs = pairs(2_000);
        let batches = Batches::new().expect("a database");
        batches.write(&pairs).expect("written");
        assert!(batches.holds(&pairs).expect("readable"));
        assert_eq!(batches.coins.table_count(), 0, "still in journal and memtable");
        let dir = folder().expect("a folder");
        let keyspaces = dir.path().join("keyspaces");
        let tier = FjallTier::open(dir.path(), TIER_CACHE_BYTES).expect("a database");
        let tier = Tier { tier, _dir: dir };
        tier.write(&pairs).expect("written");
        assert!(tier.holds(&pairs).expect("readable"));
        let tables = |folder: &std::path::Path| {
            let bytes = |entry: std::fs::DirEntry| entry.metadata().map_or(0, |meta| meta.len());
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(bytes).sum::<u64>()
        };
        let folders = std::fs::read_dir(&keyspaces).expect("keyspaces").flatten();
        let written: u64 = folders.map(|folder| tables(&folder.path().join("tables"))).sum();
        assert!(written > 2_000 * 64, "{written} bytes of tables");
    }
}
