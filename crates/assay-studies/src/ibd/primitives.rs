//! Primitives of the operations, for comparisons of machines, each against the portable kernel if there is one.

use std::hint::black_box;

use assay_bench::BenchError;
use assay_bench::harness::Alternative;
use assay_bench::suite::{Benchmark, Extent};
use assay_hash::{
    Backend, MuHash3072, Sha256, SipHash, merkle_root, merkle_root_with, sha256, sha256d,
    sha256d_64_many, sha256d_64_many_with,
};
use assay_report::stats::random::SplitMix64;
use assay_store::{Cached, CoinRef, CoinStore, MemTier};
use assay_wire::{OutPoint, Txid};

use super::calls::{Scale, expect, store_error};
use super::{ASSAY, GENERAL, MANY, PORTABLE};

const LONG: u64 = 1 << 20;

/// Number of 64-byte messages, and of leaves of a tree, as in Core's benchmarks.
const MESSAGES: usize = 1_024;
const LEAVES: usize = 9_001;

pub(super) fn benchmarks<'a>(extent: Extent, scale: Scale) -> Vec<Benchmark<'a>> {
    type Make = fn(&str, Extent, Scale) -> Result<Vec<Alternative<'static>>, BenchError>;
    let all: [(&str, &str, Option<u64>, Make); 8] = [
        ("primitive/sha256-long", "messages", Some(LONG), sha256_long),
        ("primitive/sha256d64", "messages", Some(64), sha256d64),
        ("primitive/merkle-root", "leaves", Some(32), merkle),
        ("primitive/muhash-insert", "elements", None, muhash),
        ("primitive/siphash-2-4", "outpoints", None, siphash),
        ("primitive/coins-cache", "coins", None, coins_cache),
        ("primitive/coins-match", "coins", None, |name, _, scale| look_up(name, true, scale)),
        ("primitive/coins-mismatch", "coins", None, |name, _, scale| look_up(name, false, scale)),
    ];
    all.into_iter()
        .map(|(name, unit, bytes_per_op, make)| Benchmark {
            name: name.to_owned(),
            series: name.to_owned(),
            size: None,
            unit,
            bytes_per_op,
            baseline: None,
            make: Box::new(move || make(name, extent, scale)),
        })
        .collect()
}

fn sha256_long(
    name: &str,
    _extent: Extent,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    fn portable(message: &[u8]) -> [u8; 32] {
        let mut hasher = Sha256::with_backend(Backend::PORTABLE);
        hasher.update(message);
        hasher.finalize()
    }
    let empty = sha256(b"");
    expect(empty[..4] == [0xe3, 0xb0, 0xc4, 0x42], name, ASSAY, "not FIPS 180-4")?;
    let mut message = vec![0; LONG as usize];
    SplitMix64::new(LONG).fill(&mut message);
    expect(sha256(&message) == portable(&message), name, ASSAY, "another hash")?;
    let again = message.clone();
    Ok(vec![
        scale.calls(PORTABLE, 1, move || portable(black_box(&again)))?,
        scale.calls(ASSAY, 1, move || sha256(black_box(&message)))?,
    ])
}

fn sha256d64(
    name: &str,
    _extent: Extent,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let mut messages = vec![0; MESSAGES * 64];
    SplitMix64::new(64).fill(&mut messages);
    let mut digests = vec![0; MESSAGES * 32];
    sha256d_64_many(&messages, &mut digests);
    let mut singles = messages.chunks(64).zip(digests.chunks(32));
    let right = singles.all(|(message, digest)| sha256d(message) == digest);
    expect(right, name, ASSAY, "another hash")?;
    let (again, mut others) = (messages.clone(), digests.clone());
    Ok(vec![
        scale.calls(PORTABLE, MESSAGES as u64, move || {
            sha256d_64_many_with(Backend::PORTABLE, black_box(&again), &mut others);
        })?,
        scale.calls(ASSAY, MESSAGES as u64, move || {
            sha256d_64_many(black_box(&messages), &mut digests);
        })?,
    ])
}

fn merkle(
    name: &str,
    _extent: Extent,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let mut random = SplitMix64::new(9);
    let leaves: Vec<[u8; 32]> = (0..LEAVES).map(|_| random.bytes()).collect();
    let expected = merkle_root_with(Backend::PORTABLE, leaves.clone());
    expect(merkle_root(leaves.clone()) == expected, name, ASSAY, "another root")?;
    let again = leaves.clone();
    Ok(vec![
        scale.calls(PORTABLE, LEAVES as u64, move || {
            merkle_root_with(Backend::PORTABLE, black_box(&again).clone())
        })?,
        scale.calls(ASSAY, LEAVES as u64, move || merkle_root(black_box(&leaves).clone()))?,
    ])
}

fn muhash(
    name: &str,
    extent: Extent,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let count = if extent == Extent::Smoke { 32 } else { 256 };
    let mut random = SplitMix64::new(3);
    let elements: Vec<[u8; 90]> = (0..count).map(|_| random.bytes()).collect();
    let one_by_one = |mut hash: MuHash3072, elements: &[[u8; 90]]| {
        for element in elements {
            hash.insert(element);
        }
        hash
    };
    let at_once = |elements: &[[u8; 90]]| {
        let mut hash = MuHash3072::new();
        hash.insert_many(&elements.iter().map(<[u8; 90]>::as_slice).collect::<Vec<_>>());
        hash
    };
    let portable = || MuHash3072::with_backend(Backend::PORTABLE);
    let expected = one_by_one(portable(), &elements).finalize();
    let ours = one_by_one(MuHash3072::new(), &elements).finalize();
    expect(ours == expected, name, ASSAY, "another hash")?;
    expect(at_once(&elements).finalize() == expected, name, MANY, "another hash")?;
    let [one, two, three] = [(); 3].map(|()| elements.clone());
    Ok(vec![
        scale.calls(PORTABLE, count, move || one_by_one(portable(), black_box(&one)))?,
        scale.calls(ASSAY, count, move || one_by_one(MuHash3072::new(), black_box(&two)))?,
        scale.calls(MANY, count, move || at_once(black_box(&three)))?,
    ])
}

fn outpoints(seed: u64, count: usize) -> Vec<OutPoint> {
    let mut random = SplitMix64::new(seed);
    let any = |_| OutPoint { txid: Txid(random.bytes()), vout: random.below(1 << 32) as u32 };
    (0..count).map(any).collect()
}

/// Number of hashed outpoints, and of coins in a cache; 1,000 in the report.
const OUTPOINTS: usize = 1_000;

/// SipHash on messages and on outpoints.
fn siphash(
    name: &str,
    _extent: Extent,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let salt = SipHash::<2, 4>::new(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
    let of_outpoint = |salt: &SipHash<2, 4>, outpoint: &OutPoint| {
        salt.hash_outpoint(&outpoint.txid.0, outpoint.vout)
    };
    let all = outpoints(2, OUTPOINTS);
    let mut each = all.iter();
    let right =
        each.all(|outpoint| of_outpoint(&salt, outpoint) == salt.hash(&outpoint.to_bytes()));
    expect(right, name, ASSAY, "another hash")?;
    let (again, ops) = (all.clone(), OUTPOINTS as u64);
    // The salt is loaded for every outpoint, as from the hasher of a map.
    Ok(vec![
        scale.calls(GENERAL, ops, move || {
            again.iter().fold(0, |sum, outpoint| sum ^ black_box(&salt).hash(&outpoint.to_bytes()))
        })?,
        scale.calls(ASSAY, ops, move || {
            all.iter().fold(0, |sum, outpoint| sum ^ of_outpoint(black_box(&salt), outpoint))
        })?,
    ])
}

fn cache_of(outpoints: &[OutPoint]) -> Result<CoinStore, BenchError> {
    let mut store = CoinStore::open(Box::new(MemTier::new()), 1 << 30).map_err(store_error)?;
    for outpoint in outpoints {
        let coin = CoinRef { value: 5, height: 9, coinbase: false, script_pubkey: &[7; 22] };
        store.add(*outpoint, coin, false).map_err(store_error)?;
    }
    Ok(store)
}

/// Looks up coins that are in the cache, or are not.
fn look_up(
    name: &str,
    is_there: bool,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let inside = outpoints(4, OUTPOINTS);
    let store = cache_of(&inside)?;
    let asked = if is_there { inside } else { outpoints(5, OUTPOINTS) };
    let count = move |store: &CoinStore| {
        let has = |outpoint: &&OutPoint| matches!(store.get_cached(outpoint), Cached::Unspent(_));
        asked.iter().filter(has).count()
    };
    let expected = if is_there { OUTPOINTS } else { 0 };
    expect(count(&store) == expected, name, ASSAY, "another count")?;
    Ok(vec![scale.calls(ASSAY, OUTPOINTS as u64, move || count(black_box(&store)))?])
}

fn coins_cache(
    name: &str,
    extent: Extent,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let count = if extent == Extent::Smoke { 100 } else { 100_000 };
    let outpoints = outpoints(8, count);
    let mut store = cache_of(&outpoints)?;
    expect(store.cached_coins() == outpoints.len(), name, ASSAY, "a coin is lost")?;
    let mut next = 0;
    // Each coin is found in a large table, removed and inserted again.
    let work = move || {
        let outpoint = &outpoints[next];
        next = (next + 1) % outpoints.len();
        let coin = store.spend(outpoint).expect("the tier is in memory").expect("it is there");
        store.add(*outpoint, CoinRef::from(&coin), false).expect("there is room");
    };
    Ok(vec![scale.calls(ASSAY, 1, work)?])
}
