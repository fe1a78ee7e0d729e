//! Writing a cache of coins to the disk: as write batches of a fixed size, growing with the cache, and all in one (the report's
//! subject), and as our store does it.
//!
//! A write batch goes through the database's journal into its memtable, in the order of the cache's hash table and without a
//! sync of its own, as Core writes to `LevelDB`; the journal is synced once, at the end. Our store writes sorted tables that
//! enter the tree all at once (`assay_store::FjallTier`), so it has no batches to size.

use assay_bench::BenchError;
use assay_bench::harness::Alternative;
use assay_bench::random::Random;
use assay_bench::suite::{Benchmark, Extent};
use assay_hash::sha256;
use assay_store::{CoinTier, FjallTier};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use tempfile::TempDir;

use super::calls::{Scale, expect, file_error, store_error};
use super::names::{ASSAY, EIGHTH_BATCH, FIXED_BATCH, ONE_BATCH};

/// Coins of the fixed batch: what Core's batches of 16 MiB are to its cache of 5 GiB, these are to ours of 1.3 million coins.
const FIXED: usize = 4_000;

/// Bytes of the tier's block cache.
const TIER_CACHE_BYTES: usize = 16 << 20;

type Pair = ([u8; 36], [u8; 28]);

/// Over sizes of the cache, coins.
pub(super) fn benchmarks<'a>(counts: &[u64], extent: Extent, scale: Scale) -> Vec<Benchmark<'a>> {
    let counts = if extent == Extent::Smoke { &[1_000][..] } else { counts };
    counts
        .iter()
        .map(|&count| {
            let name = format!("{SERIES}/{count}");
            let benchmark = name.clone();
            Benchmark {
                name,
                series: SERIES.to_owned(),
                size: Some(count),
                unit: "coins",
                bytes_per_op: None,
                baseline: None,
                make: Box::new(move || make(&benchmark, count as usize, extent, scale)),
            }
        })
        .collect()
}

pub(super) const SERIES: &str = "flush-batch";

/// The engine that our store has, on the real disk, with batches through its journal.
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

    /// Writes everything in batches of `size`; all of it survives a power cut when this returns.
    fn write(&self, pairs: &[Pair], size: usize) -> Result<(), BenchError> {
        for part in pairs.chunks(size) {
            let mut batch = self.db.batch();
            for (key, value) in part {
                batch.insert(&self.coins, &key[..], &value[..]);
            }
            batch.commit().map_err(store_error)?;
        }
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

/// Our store's tier on the real disk.
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

    /// Sorts everything and writes it as one atomic change, which survives a power cut when this returns.
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

fn folder() -> Result<TempDir, BenchError> {
    tempfile::tempdir().map_err(file_error(&std::env::temp_dir()))
}

/// Keys in the order of a hash table.
fn pairs(count: usize) -> Vec<Pair> {
    let mut random = Random::new(count as u64);
    let any = |n: usize| {
        let mut key = [0; 36];
        key[..32].copy_from_slice(&sha256(&n.to_le_bytes()));
        (key, random.bytes())
    };
    (0..count).map(any).collect()
}

fn make(
    name: &str,
    count: usize,
    extent: Extent,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let fixed = if extent == Extent::Smoke { count / 16 } else { FIXED.min(count) };
    let sizes = [(FIXED_BATCH, fixed), (EIGHTH_BATCH, count.div_ceil(8)), (ONE_BATCH, count)];
    let mut alternatives = Vec::new();
    for (alternative, size) in sizes {
        let pairs = pairs(count);
        let batches = Batches::new()?;
        let some = &pairs[..count.min(1_000)];
        batches.write(some, size.min(some.len()).div_ceil(2))?;
        expect(batches.holds(some)?, name, alternative, "a coin is lost")?;
        drop(batches);
        alternatives.push(scale.at_most(1).prepared(
            alternative,
            count as u64,
            Batches::new,
            move |batches: &mut Batches| batches.write(&pairs, size),
        )?);
    }
    let pairs = pairs(count);
    let tier = Tier::new()?;
    let some = &pairs[..count.min(1_000)];
    tier.write(some)?;
    expect(tier.holds(some)?, name, ASSAY, "a coin is lost")?;
    drop(tier);
    alternatives.push(scale.at_most(1).prepared(
        ASSAY,
        count as u64,
        Tier::new,
        move |tier: &mut Tier| tier.write(&pairs),
    )?);
    Ok(alternatives)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is timed as a write batch went through the journal; what is timed as ours did not.
    #[test]
    fn write_batches_go_through_the_journal_and_our_tables_do_not() {
        let pairs = pairs(2_000);
        let batches = Batches::new().expect("a database");
        batches.write(&pairs, 300).expect("written");
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
