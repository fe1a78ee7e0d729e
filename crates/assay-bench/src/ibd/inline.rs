//! A cache of coins whose scripts live inline up to 28 or 36 bytes, and the one of our store.

use std::collections::HashMap;
use std::hash::BuildHasher;

use assay_store::{CoinRef, CoinStore, MemTier};
use assay_wire::{Coin, OutPoint, Txid};

use super::calls::{Random, Scale, expect, store_error};
use super::modern::{self, Kind};
use super::names::{ASSAY, INLINE_28, INLINE_36};
use super::serial::InlineScript;
use super::siphash::{Key, salted};
use crate::BenchError;
use crate::harness::Alternative;
use crate::suite::{Benchmark, Extent, StudyTable};

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

/// The share that today's blocks have, about.
pub(super) const SHARE_TODAY: u64 = SHARES[1];

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

/// Allocations and bytes for the same coins, counted rather than timed.
pub(super) fn memory(extent: Extent) -> Result<StudyTable, BenchError> {
    let count = count(extent);
    let mut rows = Vec::new();
    for share in SHARES {
        let coins = coins(share, count);
        let per_coin = |bytes: usize| format!("{:.1}", bytes as f64 / count as f64);
        for (name, capacity, entry) in [
            (INLINE_28, 28, size_of::<(Key, Entry<28>)>()),
            (INLINE_36, 36, size_of::<(Key, Entry<36>)>()),
        ] {
            let spilled = coins.iter().filter(|(_, coin)| coin.script_pubkey.len() > capacity);
            let (spills, heap) = spilled.fold((0, 0), |(spills, heap), (_, coin)| {
                (spills + 1, heap + allocated(coin.script_pubkey.len()))
            });
            let spills: usize = spills;
            rows.push(vec![
                format!("{share} %"),
                name.to_owned(),
                format!("{:.1}", spills as f64 * 100.0 / count as f64),
                per_coin(heap),
                per_coin(entry * count + heap),
            ]);
        }
        let store = filled(&coins)?;
        rows.push(vec![
            format!("{share} %"),
            ASSAY.to_owned(),
            "0.0".to_owned(),
            per_coin(0),
            per_coin(store.cache_bytes()),
        ]);
    }
    Ok(StudyTable {
        caption: format!("Memory for {count} coins, counted"),
        head: [
            "scripts of 34 bytes",
            "cache",
            "allocations per 100 coins",
            "heap bytes per coin",
            "bytes per coin",
        ]
        .map(str::to_owned)
        .to_vec(),
        word_columns: 2,
        rows,
    })
}

/// Bytes that the C library's allocator takes for so many: eight of its own, in steps of sixteen, 32 at least.
fn allocated(bytes: usize) -> usize {
    (bytes + 8).next_multiple_of(16).max(32)
}
