//! The primitives for which the report has figures: hashes of outpoints, and coins in the cache.

use std::hint::black_box;

use anyhow::Result;
use assay_bench::harness::Alternative;
use assay_bench::suite::Benchmark;
use assay_hash::SipHash;
use assay_report::stats::random::SplitMix64;
use assay_store::{Cached, CoinRef, CoinStore, MemTier};
use assay_wire::{OutPoint, Txid};

use super::{ASSAY, GENERAL, expect};

pub(super) fn benchmarks<'a>() -> Vec<Benchmark<'a>> {
    let coins = |part: &str, is_there| {
        let name = format!("primitive/coins-{part}");
        Benchmark::new(name, "coins", move |name| look_up(name, is_there))
    };
    vec![
        Benchmark::new("primitive/siphash-2-4".to_owned(), "outpoints", siphash),
        coins("match", true),
        coins("mismatch", false),
    ]
}

fn outpoints(seed: u64) -> Vec<OutPoint> {
    let mut random = SplitMix64::new(seed);
    let any = |_| OutPoint { txid: Txid(random.bytes()), vout: random.below(1 << 32) as u32 };
    (0..OUTPOINTS).map(any).collect()
}

/// Number of hashed outpoints, and of coins in a cache, as in the report.
const OUTPOINTS: usize = 1_000;

fn siphash<'a>(name: &str) -> Result<Vec<Alternative<'a>>> {
    let salt = SipHash::<2, 4>::new(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
    let of_outpoint = |salt: &SipHash<2, 4>, outpoint: &OutPoint| {
        salt.hash_outpoint(&outpoint.txid.0, outpoint.vout)
    };
    let all = outpoints(2);
    let mut each = all.iter();
    let right =
        each.all(|outpoint| of_outpoint(&salt, outpoint) == salt.hash(&outpoint.to_bytes()));
    expect(right, name, ASSAY, "another hash")?;
    let (again, ops) = (all.clone(), OUTPOINTS as u64);
    // The salt is loaded for every outpoint, as from the hasher of a map.
    Ok(vec![
        Alternative::calls_of(GENERAL, ops, move || {
            again.iter().fold(0, |sum, outpoint| sum ^ black_box(&salt).hash(&outpoint.to_bytes()))
        }),
        Alternative::calls_of(ASSAY, ops, move || {
            all.iter().fold(0, |sum, outpoint| sum ^ of_outpoint(black_box(&salt), outpoint))
        }),
    ])
}

fn look_up<'a>(name: &str, is_there: bool) -> Result<Vec<Alternative<'a>>> {
    let inside = outpoints(4);
    let mut store = CoinStore::open(Box::new(MemTier::new()), 1 << 30)?;
    for outpoint in &inside {
        let coin = CoinRef { value: 5, height: 9, coinbase: false, script_pubkey: &[7; 22] };
        store.add(*outpoint, coin, false)?;
    }
    let asked = if is_there { inside } else { outpoints(5) };
    let count = move |store: &CoinStore| {
        let has = |outpoint: &&OutPoint| matches!(store.get_cached(outpoint), Cached::Unspent(_));
        asked.iter().filter(has).count()
    };
    let expected = if is_there { OUTPOINTS } else { 0 };
    expect(count(&store) == expected, name, ASSAY, "another count")?;
    Ok(vec![Alternative::calls_of(ASSAY, OUTPOINTS as u64, move || count(black_box(&store)))])
}
