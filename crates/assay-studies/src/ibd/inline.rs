//! A cache of coins whose scripts live inline up to 28 or 36 bytes, and the one of our store.

use std::collections::HashMap;
use std::hash::BuildHasher;

use assay_bench::BenchError;
use assay_bench::harness::Alternative;
use assay_bench::random::Random;
use assay_bench::suite::{Benchmark, Extent, StudyTable};
use assay_store::{CoinRef, CoinStore, MemTier};
use assay_wire::{Coin, OutPoint, Txid};

use super::calls::{Scale, expect, store_error};
use super::modern::{self, Kind};
use super::names::{ASSAY, INLINE_28, INLINE_36};
use super::serial::InlineScript;
use super::siphash::{Key, salted};
use crate::heap::{HeapUse, heap_use};

/// Parts of coins whose script has 34 bytes (P2TR, P2WSH), percent: none, as in a block of today, and all but.
const SHARES: [u64; 3] = [0, 40, 90];

/// Coins in a cache.
fn count(extent: Extent) -> usize {
    if extent == Extent::Smoke { 500 } else { 50_000 }
}

/// Filling a cache and emptying it, over the share of long scripts.
pub(super) fn benchmarks<'a>(extent: Extent, scale: Scale) -> Vec<Benchmark<'a>> {
    SHARES
        .into_iter()
        .map(|share| {
            let name = name_of(share);
            let benchmark = name.clone();
            Benchmark {
                name,
                series: "inline-script".to_owned(),
                size: Some(share),
                unit: "percent of 34 bytes",
                bytes_per_op: None,
                baseline: None,
                make: Box::new(move || make(&benchmark, &coins(share, count(extent)), scale)),
            }
        })
        .collect()
}

pub(super) fn name_of(share: u64) -> String {
    format!("inline-script/{share}")
}

/// Coins with so many long scripts; the others are P2WPKH, P2SH and P2PKH, and one in fifty is longer than all of these.
fn coins(share: u64, count: usize) -> Vec<(OutPoint, Coin)> {
    let mut random = Random::new(share);
    let any = |_| {
        let outpoint = OutPoint { txid: Txid(random.bytes()), vout: random.below(3) as u32 };
        let kind = match random.below(100) {
            part if part < share => Kind::P2tr,
            _ => [Kind::P2wpkh, Kind::P2wpkh, Kind::P2sh, Kind::P2pkh][random.below(4) as usize],
        };
        let mut coin = modern::coin(kind, &mut random);
        if random.below(50) == 0 {
            // A bare multisignature script of two keys.
            let mut script = [0u8; 71];
            random.fill(&mut script);
            coin.script_pubkey = script.as_slice().into();
        }
        (outpoint, coin)
    };
    (0..count).map(any).collect()
}

/// What a map keeps of a coin, as Core's `CCoinsCacheEntry` does.
struct Entry<const N: usize> {
    value: i64,
    code: u32,
    flags: u8,
    script: InlineScript<N>,
}

type Map<const N: usize, S> = HashMap<Key, Entry<N>, S>;

fn fill<const N: usize, S: BuildHasher>(map: &mut Map<N, S>, coins: &[(OutPoint, Coin)]) {
    for (outpoint, coin) in coins {
        let code = coin.height << 1 | u32::from(coin.coinbase);
        let script = InlineScript::new(&coin.script_pubkey);
        map.insert(Key(*outpoint), Entry { value: coin.value, code, flags: 1, script });
    }
}

/// Takes every coin out again, one by one, as blocks that spend them do; the sum says that all were there.
fn empty<const N: usize, S: BuildHasher>(
    map: &mut Map<N, S>,
    coins: &[(OutPoint, Coin)],
) -> (i64, usize) {
    coins.iter().fold((0, 0), |(value, bytes), (outpoint, _)| {
        let entry = map.remove(&Key(*outpoint)).expect("it was put in");
        debug_assert!(entry.flags == 1 && entry.code > 0);
        (value + entry.value, bytes + entry.script.as_slice().len())
    })
}

fn in_map<const N: usize>(
    name: &str,
    benchmark: &str,
    coins: &[(OutPoint, Coin)],
    scale: Scale,
) -> Result<Alternative<'static>, BenchError> {
    let expected = coins.iter().fold((0, 0), |(value, bytes), (_, coin)| {
        (value + coin.value, bytes + coin.script_pubkey.len())
    });
    let coins = coins.to_vec();
    // Core's pool allocator keeps the memory of entries, so the map does, too; scripts come and go.
    let mut map: Map<N, _> = HashMap::with_capacity_and_hasher(coins.len(), salted());
    fill(&mut map, &coins);
    expect(empty(&mut map, &coins) == expected, benchmark, name, "other coins")?;
    scale.calls(name, coins.len() as u64, move || {
        fill(&mut map, &coins);
        assert_eq!(empty(&mut map, &coins), expected, "no coin is lost");
    })
}

fn make(
    name: &str,
    coins: &[(OutPoint, Coin)],
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let ours = coins.to_vec();
    let mut store = filled(coins)?;
    expect(store.cached_coins() == coins.len(), name, ASSAY, "not all coins")?;
    for (outpoint, coin) in coins {
        let spent = store.spend(outpoint).map_err(store_error)?;
        expect(spent.as_ref() == Some(coin), name, ASSAY, "another coin")?;
    }
    Ok(vec![
        in_map::<28>(INLINE_28, name, coins, scale)?,
        in_map::<36>(INLINE_36, name, coins, scale)?,
        scale.calls(ASSAY, coins.len() as u64, move || {
            for (outpoint, coin) in &ours {
                store.add(*outpoint, CoinRef::from(coin), false).expect("there is room");
            }
            for (outpoint, _) in &ours {
                store.spend(outpoint).expect("the tier is in memory").expect("it was added");
            }
        })?,
    ])
}

fn filled(coins: &[(OutPoint, Coin)]) -> Result<CoinStore, BenchError> {
    let mut store = CoinStore::open(Box::new(MemTier::new()), 1 << 30).map_err(store_error)?;
    for (outpoint, coin) in coins {
        store.add(*outpoint, CoinRef::from(coin), false).map_err(store_error)?;
    }
    Ok(store)
}

/// Coins whose memory is counted: as many as fill a hash table of a power of two places to its limit of seven eighths, so that
/// places kept free are as few as they can be.
fn counted_coins(extent: Extent) -> usize {
    let places = if extent == Extent::Smoke { 512 } else { 65_536 };
    places / 8 * 7
}

/// What a map with its coins takes from the allocator: its table alone, then everything.
fn map_heap<const N: usize>(coins: &[(OutPoint, Coin)]) -> [HeapUse; 2] {
    let new = || -> Map<N, _> { HashMap::with_capacity_and_hasher(coins.len(), salted()) };
    let filled = || {
        let mut map = new();
        fill(&mut map, coins);
        map
    };
    let (_empty, table) = heap_use(new);
    let (_filled, all) = heap_use(filled);
    [table, all]
}

/// Allocations and bytes for the same coins, counted by the allocator while caches are filled.
pub(super) fn memory(extent: Extent) -> Result<StudyTable, BenchError> {
    let count = counted_coins(extent);
    let per_coin = |bytes: i64| format!("{:.1}", bytes as f64 / count as f64);
    let mut rows = Vec::new();
    for share in SHARES {
        let coins = coins(share, count);
        let mut row = |name: &str, table: HeapUse, all: HeapUse, mapped: Option<usize>| {
            let allocations = (all.allocations - table.allocations) as f64;
            rows.push(vec![
                format!("{share} %"),
                name.to_owned(),
                format!("{:.1}", allocations * 100.0 / count as f64),
                per_coin(all.kept_bytes - table.kept_bytes),
                per_coin(all.kept_bytes),
                mapped.map_or_else(|| "-".to_owned(), |bytes| per_coin(bytes as i64)),
            ]);
        };
        let [table, all] = map_heap::<28>(&coins);
        row(INLINE_28, table, all, None);
        let [table, all] = map_heap::<36>(&coins);
        row(INLINE_36, table, all, None);
        let (empty, opening) = heap_use(|| filled(&[]));
        drop(empty?);
        let (store, all) = heap_use(|| filled(&coins));
        row(ASSAY, opening, all, Some(store?.cache_bytes()));
    }
    Ok(StudyTable {
        caption: format!("Memory for {count} coins, counted by the allocator"),
        head: [
            "scripts of 34 bytes",
            "cache",
            "allocations per 100 coins",
            "heap bytes of scripts per coin",
            "heap bytes per coin, table included",
            "mapped bytes per coin",
        ]
        .map(str::to_owned)
        .to_vec(),
        word_columns: 2,
        rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The count against the rule that it once was replaced by: an allocation for each script that does not fit.
    #[test]
    fn the_allocator_counts_the_scripts_that_do_not_fit() {
        let coins = coins(40, counted_coins(Extent::Smoke));
        let too_long = |capacity: usize| {
            coins
                .iter()
                .map(|(_, coin)| coin.script_pubkey.len())
                .filter(|len| *len > capacity)
                .fold((0, 0), |(count, bytes), len| (count + 1, bytes + len as i64))
        };
        for ([table, all], expected) in
            [(map_heap::<28>(&coins), too_long(28)), (map_heap::<36>(&coins), too_long(36))]
        {
            let allocations = all.allocations - table.allocations;
            assert_eq!((allocations, all.kept_bytes - table.kept_bytes), expected);
            assert!(table.kept_bytes > 0, "{table:?}");
        }
    }
}
