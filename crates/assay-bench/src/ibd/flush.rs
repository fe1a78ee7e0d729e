//! Writing a cache of coins to the disk in batches: of a fixed size, growing with the cache, and all in one.

use assay_hash::sha256;
use assay_store::{CoinTier, FjallTier};
use tempfile::TempDir;

use super::calls::{Random, Scale, expect, file_error, store_error};
use super::names::{EIGHTH_BATCH, FIXED_BATCH, ONE_BATCH};
use crate::BenchError;
use crate::harness::Alternative;
use crate::suite::{Benchmark, Extent};

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

/// A tier on the real disk.
struct Folder {
    tier: FjallTier,
    _dir: TempDir,
}

impl Folder {
    fn new() -> Result<Self, BenchError> {
        let dir = tempfile::tempdir().map_err(file_error(&std::env::temp_dir()))?;
        let tier = FjallTier::open(dir.path(), TIER_CACHE_BYTES).map_err(store_error)?;
        Ok(Self { tier, _dir: dir })
    }

    /// Writes everything in batches of `size`, each sorted by itself; each survives a power cut when it returns.
    fn write(&self, pairs: &[Pair], size: usize) -> Result<(), BenchError> {
        for part in pairs.chunks(size) {
            let mut sorted: Vec<&Pair> = part.iter().collect();
            sorted.sort_unstable_by_key(|pair| &pair.0);
            let mut batch = self.tier.batch(sorted.len()).map_err(store_error)?;
            for (key, value) in sorted {
                batch.put(key, value).map_err(store_error)?;
            }
            batch.commit().map_err(store_error)?;
        }
        Ok(())
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
        let folder = Folder::new()?;
        let some = &pairs[..count.min(1_000)];
        folder.write(some, size.min(some.len()).div_ceil(2))?;
        expect(folder.holds(some)?, name, alternative, "a coin is lost")?;
        drop(folder);
        alternatives.push(scale.at_most(1).prepared(
            alternative,
            count as u64,
            Folder::new,
            move |folder: &mut Folder| folder.write(&pairs, size),
        )?);
    }
    Ok(alternatives)
}
