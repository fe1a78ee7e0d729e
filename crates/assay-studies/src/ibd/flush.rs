//! Flushing a cache of coins to disk: as one write batch, as in the report's last step for a cache
//! of up to 64 MiB, and by our store.
//!
//! A write batch goes through the database's journal into its memtable, in the order of the cache's hash table and
//! without a sync of its own, as Core writes to `LevelDB`; the journal is synced once at the end. Our store ingests
//! sorted tables into the tree atomically (`assay_store::FjallTier`), so it has no batch size.

use std::path::Path;

use anyhow::Result;
use assay_bench::harness::{Alternative, Sample};
use assay_bench::suite::{Benchmark, Extent};
use assay_hash::sha256;
use assay_report::stats::random::SplitMix64;
use assay_store::{CoinTier, FjallTier};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use super::{ASSAY, InFolder, LAST_STEP, expect};

const TIER_CACHE_BYTES: usize = 16 << 20;

type Pair = ([u8; 36], [u8; 28]);

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
}

impl Batches {
    fn open(dir: &Path) -> Result<Self> {
        let db =
            Database::builder(dir).cache_size(TIER_CACHE_BYTES as u64).worker_threads(2).open()?;
        let options = || KeyspaceCreateOptions::default().manual_journal_persist(true);
        let coins = db.keyspace("coins", options)?;
        Ok(Self { db, coins })
    }

    /// Writes everything in one durable batch.
    fn write(&self, pairs: &[Pair]) -> Result<()> {
        let mut batch = self.db.batch();
        for (key, value) in pairs {
            batch.insert(&self.coins, &key[..], &value[..]);
        }
        batch.commit()?;
        Ok(self.db.persist(PersistMode::SyncAll)?)
    }

    fn holds(&self, pairs: &[Pair]) -> Result<bool> {
        for (key, value) in pairs {
            if self.coins.get(key)?.is_none_or(|found| *found != value[..]) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The tier of our store, on the real disk.
fn tier(dir: &Path) -> Result<FjallTier> {
    Ok(FjallTier::open(dir, TIER_CACHE_BYTES)?)
}

/// Sorts everything and writes it as one durable and atomic change.
fn write(tier: &FjallTier, pairs: &[Pair]) -> Result<()> {
    let mut sorted: Vec<&Pair> = pairs.iter().collect();
    sorted.sort_unstable_by_key(|pair| &pair.0);
    let mut batch = tier.batch(sorted.len())?;
    for (key, value) in sorted {
        batch.put(key, value)?;
    }
    Ok(batch.commit()?)
}

fn holds(tier: &FjallTier, pairs: &[Pair]) -> Result<bool> {
    for (key, value) in pairs {
        let mut is_same = false;
        tier.get(key, &mut |found| is_same = found == value)?;
        if !is_same {
            return Ok(false);
        }
    }
    Ok(true)
}

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
    open: fn(&Path) -> Result<T>,
    write: fn(&T, &[Pair]) -> Result<()>,
) -> Alternative<'static> {
    Alternative::fallible(name, move || {
        let database = InFolder::open(open)?;
        let mut outcome = Ok(());
        let sample = Sample::of(pairs.len() as u64, || outcome = write(&database, &pairs));
        outcome.map(|()| sample)
    })
}

fn make(name: &str, count: usize) -> Result<Vec<Alternative<'static>>> {
    let pairs = pairs(count);
    let some = &pairs[..count.min(1_000)];
    let batches = InFolder::open(Batches::open)?;
    batches.write(some)?;
    expect(batches.holds(some)?, name, LAST_STEP, "a coin is lost")?;
    let own = InFolder::open(tier)?;
    write(&own, some)?;
    expect(holds(&own, some)?, name, ASSAY, "a coin is lost")?;
    Ok(vec![
        once(LAST_STEP, pairs.clone(), Batches::open, Batches::write),
        once(ASSAY, pairs, tier, write),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::temporary_folder;

    /// The timed write batch passes through the journal; our timed flush does not.
    #[test]
    fn write_batches_go_through_the_journal_and_our_tables_do_not() {
        let pairs = pairs(2_000);
        let batches = InFolder::open(Batches::open).expect("a database");
        batches.write(&pairs).expect("written");
        assert!(batches.holds(&pairs).expect("readable"));
        assert_eq!(batches.coins.table_count(), 0, "still in journal and memtable");
        let dir = temporary_folder().expect("a folder");
        let keyspaces = dir.path().join("keyspaces");
        let tier = tier(dir.path()).expect("a database");
        write(&tier, &pairs).expect("written");
        assert!(holds(&tier, &pairs).expect("readable"));
        let tables = |folder: &Path| {
            let bytes = |entry: std::fs::DirEntry| entry.metadata().map_or(0, |meta| meta.len());
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(bytes).sum::<u64>()
        };
        let folders = std::fs::read_dir(&keyspaces).expect("keyspaces").flatten();
        let written: u64 = folders.map(|folder| tables(&folder.path().join("tables"))).sum();
        assert!(written > 2_000 * 64, "{written} bytes of tables");
    }
}
