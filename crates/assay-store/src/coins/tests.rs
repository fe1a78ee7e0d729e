//! Compares the store with a plain map, on any tier.

use std::collections::BTreeMap;

use assay_wire::Txid;
use proptest::prelude::*;

use super::*;

/// One change or query; outpoints are numbered.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Adds outpoint .0 at height .1, without `overwrite`.
    Add(u8, u8),
    Overwrite(u8, u8),
    Spend(u8),
    Get(u8),
    Load(u8),
    /// Starts to read outpoints up to .0 on other threads.
    ReadAhead(u8),
    /// Keeps the results of the oldest of these requests.
    Settle,
    Flush,
    MakeRoom,
    Snapshot,
    Reopen,
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let n = 0u8..40;
    prop_oneof![
        8 => (n.clone(), 0u8..8).prop_map(|(n, height)| Step::Add(n, height)),
        2 => (n.clone(), 0u8..8).prop_map(|(n, height)| Step::Overwrite(n, height)),
        8 => n.clone().prop_map(Step::Spend),
        4 => n.clone().prop_map(Step::Get),
        1 => n.clone().prop_map(Step::Load),
        2 => n.prop_map(Step::ReadAhead),
        2 => Just(Step::Settle),
        2 => Just(Step::Flush),
        1 => Just(Step::MakeRoom),
        1 => Just(Step::Snapshot),
        1 => Just(Step::Reopen),
    ]
}

/// Eight txids with five outputs each. Each txid shares its first 12 bytes with three others.
fn outpoint(n: u8) -> OutPoint {
    let mut txid = [n / 20 * 77; 32];
    txid[31] = 9 - n / 5;
    OutPoint { txid: Txid(txid), vout: u32::from(n % 5) * 100 }
}

fn coin(n: u8, height: u8, script: &[u8]) -> CoinRef<'_> {
    let value = i64::from(n) * 1_000_000 + i64::from(height);
    CoinRef { value, height: height.into(), coinbase: n.is_multiple_of(3), script_pubkey: script }
}

type Model = BTreeMap<OutPoint, Coin>;

/// Runs `steps` on a map and on a store, which `open` reopens several times.
pub(crate) fn check_against_model(
    steps: &[Step],
    cache_bytes_max: usize,
    open: impl Fn() -> Box<dyn CoinTier>,
) {
    let open = || CoinStore::open(open(), cache_bytes_max).expect("the store opens");
    let mut store = open();
    let (mut now, mut on_disk) = (Model::new(), Model::new());
    let mut marker = None;
    let mut expected = VecDeque::new();
    for (i, &step) in steps.iter().enumerate() {
        match step {
            Step::Add(n, height) => {
                let (outpoint, script) = (outpoint(n), vec![n; usize::from(n) + i % 40]);
                let cached = store.get_cached(&outpoint);
                if matches!(cached, Cached::Unknown) && now.contains_key(&outpoint) {
                    continue; // the caller's promise would be broken
                }
                let added = store.add(outpoint, coin(n, height, &script), false);
                assert_eq!(added.is_ok(), !now.contains_key(&outpoint));
                now.entry(outpoint).or_insert_with(|| coin(n, height, &script).to_coin());
            }
            Step::Overwrite(n, height) => {
                let script = vec![n; i % 40];
                store.add(outpoint(n), coin(n, height, &script), true).expect("it may overwrite");
                now.insert(outpoint(n), coin(n, height, &script).to_coin());
            }
            Step::Spend(n) => {
                let at = store.locate(&outpoint(n));
                store.warm(&at);
                let spent = store.spend_with(&at, |coin| coin.to_coin()).expect("no I/O error");
                assert_eq!(spent, now.remove(&outpoint(n)));
            }
            Step::Get(n) => {
                let outpoint = outpoint(n);
                assert_eq!(
                    store.get(&outpoint).expect("no I/O error"),
                    now.get(&outpoint).cloned()
                );
                assert_eq!(
                    store.have(&outpoint).expect("no I/O error"),
                    now.contains_key(&outpoint)
                );
            }
            Step::Load(n) => {
                let outpoints: Vec<OutPoint> = (0..=n).map(outpoint).collect();
                store.load(outpoints.iter().copied(), 2).expect("no I/O error");
                for outpoint in outpoints {
                    let cached = matches!(store.get_cached(&outpoint), Cached::Unspent(_));
                    assert_eq!(cached, now.contains_key(&outpoint));
                }
            }
            Step::ReadAhead(n) => {
                expected.extend(store.read_ahead((0..=n).map(outpoint), |_| true, 2));
            }
            Step::Settle => {
                if let Some(expected) = expected.pop_front() {
                    let before = store.cached_coins();
                    let settled = store.settle(expected).expect("no I/O error");
                    assert_eq!(store.cached_coins(), before + settled);
                }
                for outpoint in (0..40).map(outpoint) {
                    let coin = store.get(&outpoint).expect("no I/O error");
                    assert_eq!(coin.as_ref(), now.get(&outpoint));
                }
            }
            Step::Flush => {
                let hash = BlockHash([i as u8; 32]);
                let stats = store.flush(i as u32, &hash).expect("the flush succeeds");
                assert_eq!(stats.kept, store.cached_coins() as u64);
                assert_eq!(store.usage().dirty, 0);
                marker = Some(Marker { height: i as u32, hash });
                on_disk.clone_from(&now);
            }
            Step::MakeRoom => {
                let dirty = store.usage().dirty;
                let room = store.make_room();
                let usage = store.usage();
                assert!(
                    room == Room::FlushDue || usage.bytes + usage.flush_bytes <= usage.bytes_max
                );
                assert_eq!(store.usage().dirty, dirty, "changes are never evicted");
            }
            Step::Snapshot => check_snapshot(&mut store, &now),
            Step::Reopen => {
                // Only one store can have a tier open.
                drop(store);
                store = open();
                now.clone_from(&on_disk);
            }
        }
        assert_eq!(store.tip(), marker);
    }
    check_snapshot(&mut store, &now);
}

/// Takes a snapshot, changes the store, and compares the snapshot with `expected`, whole and in shards.
fn check_snapshot(store: &mut CoinStore, expected: &Model) {
    let snapshot = store.snapshot().expect("no I/O error");
    let absent = OutPoint { txid: Txid([0xee; 32]), vout: 7 };
    store.add(absent, coin(1, 1, &[1]), false).expect("it is absent");
    for of in [1, 3, 256, 65_536] {
        let mut seen = Vec::new();
        for shard in (0..of).filter(|shard| of < 1000 || shard % 0x4d == 0 || *shard == 0x4d4d) {
            let visit =
                |outpoint: &OutPoint, coin: CoinRef<'_>| seen.push((*outpoint, coin.to_coin()));
            snapshot.for_each_in_shard(shard, of, visit).expect("no I/O error");
        }
        let expected: Vec<_> = expected.iter().map(|(o, c)| (*o, c.clone())).collect();
        assert_eq!(seen, expected);
    }
    assert!(store.spend(&absent).expect("no I/O error").is_some());
    check_scratch(snapshot, expected);
}

/// A store over the snapshot starts with its coins, and its changes appear in a snapshot of its own.
fn check_scratch(snapshot: CoinSnapshot, expected: &Model) {
    let mut expected = expected.clone();
    let mut scratch = snapshot.into_scratch(1 << 20).expect("there is memory");
    for n in (0..40).map(outpoint) {
        let found = scratch.get(&n).expect("no I/O error");
        assert_eq!(found.as_ref(), expected.get(&n));
    }
    let added = OutPoint { txid: Txid([0x77; 32]), vout: 1 };
    scratch.add(added, coin(2, 3, &[1]), false).expect("it is absent");
    expected.insert(added, coin(2, 3, &[1]).to_coin());
    if let Some(first) = expected.keys().next().copied() {
        assert_eq!(scratch.spend(&first).expect("no I/O error"), expected.remove(&first));
    }
    let mut seen = Vec::new();
    let after = scratch.snapshot().expect("no I/O error");
    let visit = |outpoint: &OutPoint, coin: CoinRef<'_>| seen.push((*outpoint, coin.to_coin()));
    after.for_each(visit).expect("no I/O error");
    assert!(seen.into_iter().eq(expected));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn agrees_with_a_map(
        steps in proptest::collection::vec(step(), 1..200),
        cache_bytes_max in prop_oneof![Just(0), Just(40_000), Just(1 << 30)],
    ) {
        let tier = MemTier::new();
        check_against_model(&steps, cache_bytes_max, || Box::new(tier.clone()));
    }
}

#[test]
fn short_lived_coins_are_never_written() {
    let tier = MemTier::new();
    let mut store = CoinStore::open(Box::new(tier.clone()), 0).expect("the store opens");
    store.add(outpoint(1), coin(1, 1, &[1]), false).expect("it is absent");
    store.add(outpoint(2), coin(2, 1, &[2]), false).expect("it is absent");
    assert!(store.spend(&outpoint(1)).expect("no I/O error").is_some());
    assert_eq!((store.cached_coins(), store.usage().dirty), (1, 1));
    let stats = store.flush(1, &BlockHash([1; 32])).expect("the flush succeeds");
    assert_eq!((stats.added, stats.deleted, stats.evicted), (1, 0, 1));
    assert!(store.spend(&outpoint(2)).expect("no I/O error").is_some());
    let stats = store.flush(2, &BlockHash([2; 32])).expect("the flush succeeds");
    assert_eq!((stats.added, stats.deleted), (0, 1));
    assert_eq!(tier.disk_bytes(), 38, "only the marker is left");
}

fn numbered(n: u32) -> OutPoint {
    OutPoint { txid: Txid(assay_hash::sha256(&n.to_le_bytes())), vout: n }
}

fn add_numbered(store: &mut CoinStore, numbers: std::ops::Range<u32>) {
    for n in numbers {
        let coin = CoinRef { value: 1, height: n / 100, coinbase: false, script_pubkey: &[0; 25] };
        store.add(numbered(n), coin, false).expect("it is absent");
    }
}

#[test]
fn a_full_cache_keeps_the_youngest() {
    let mut store = CoinStore::open(Box::new(MemTier::new()), 2 << 20).expect("the store opens");
    add_numbered(&mut store, 0..20_000);
    assert_eq!(store.make_room(), Room::FlushDue);
    let stats = store.flush(200, &BlockHash([1; 32])).expect("the flush succeeds");
    assert_eq!((stats.added, stats.kept + stats.evicted), (20_000, 20_000));
    assert!(stats.kept > 8_000 && store.cache_bytes() <= 1 << 20, "{stats:?}");
    let youngest = 20_000 - stats.kept as u32;
    // Of a few heights in between, some coins stay and some are evicted.
    for n in [0u32, youngest - 400, youngest + 400, 19_999] {
        assert_eq!(store.get_cached(&numbered(n)) == Cached::Unknown, n < youngest);
        assert_eq!(store.get(&numbered(n)).expect("no I/O error").map(|c| c.height), Some(n / 100));
    }
}

#[test]
fn clean_coins_go_before_a_flush_is_due() {
    let mut store = CoinStore::open(Box::new(MemTier::new()), 2 << 20).expect("the store opens");
    let (mut flushes, mut evictions) = (0, 0);
    for block in 0..100u32 {
        add_numbered(&mut store, block * 1000..(block + 1) * 1000);
        let dirty = store.usage().dirty;
        match store.make_room() {
            Room::Enough => {}
            Room::Evicted(coins) => {
                evictions += 1;
                assert!(coins > 0 && store.usage().dirty == dirty);
            }
            Room::FlushDue => {
                flushes += 1;
                assert!(dirty > 11_000, "a batch is worth it: {dirty}");
                store.flush(block * 10, &BlockHash([1; 32])).expect("the flush succeeds");
            }
        }
        let usage = store.usage();
        assert!(usage.bytes + usage.flush_bytes <= usage.bytes_max, "{usage:?}");
    }
    assert!(flushes > 3 && evictions > 3, "{flushes} flushes, {evictions} evictions");
    for n in 0..100_000 {
        assert!(store.spend(&numbered(n)).expect("no I/O error").is_some());
    }
}

#[test]
fn recently_loaded_coins_are_spared_once() {
    let mut store = CoinStore::open(Box::new(MemTier::new()), 2 << 20).expect("the store opens");
    let old = || (0..100).map(numbered);
    let cached = |store: &CoinStore| {
        old().filter(|outpoint| store.get_cached(outpoint) != Cached::Unknown).count()
    };
    // Number of old coins left after each eviction; they are loaded again when none is left.
    let (mut left, mut loads) = (Vec::new(), 0);
    for block in 0..150 {
        add_numbered(&mut store, block * 1000..(block + 1) * 1000);
        let evicted = match store.make_room() {
            Room::Enough => 0,
            Room::Evicted(coins) => coins,
            Room::FlushDue => {
                let stats = store.flush(block, &BlockHash([1; 32])).expect("the flush succeeds");
                stats.evicted
            }
        };
        if evicted > 0 {
            left.push(cached(&store));
        }
        if cached(&store) == 0 {
            assert!(store.has_room_to_load(100) && !store.has_room_to_load(1 << 20));
            assert_eq!(store.load(old(), 2).expect("no I/O error"), 100);
            loads += 1;
        }
    }
    assert!(loads > 3 && left.starts_with(&[0, 100, 0, 100, 0]), "{loads} {left:?}");
}

#[test]
fn rejects_out_of_range_coins_without_changes() {
    let mut store = CoinStore::open(Box::new(MemTier::new()), 0).expect("the store opens");
    let long = vec![0u8; SCRIPT_BYTES_MAX + 1];
    let too_long = store.add(outpoint(1), coin(1, 1, &long), false);
    assert!(matches!(too_long, Err(CoinError::ScriptTooLong { .. })));
    let too_high = CoinRef { height: 1 << 31, ..coin(1, 1, &[]) };
    let too_high = store.add(outpoint(1), too_high, false);
    assert!(matches!(too_high, Err(CoinError::Height { height: 0x8000_0000, .. })));
    assert_eq!(store.get_cached(&outpoint(1)), Cached::Unknown);
    store.add(outpoint(1), coin(1, 1, &[]), false).expect("it is absent");
    let twice = store.add(outpoint(1), coin(2, 2, &[]), false);
    assert!(matches!(twice, Err(CoinError::Exists { .. })));
    assert_eq!(store.get_cached(&outpoint(1)), Cached::Unspent(coin(1, 1, &[])));
}

#[test]
fn foreign_entries_on_disk_are_reported() {
    let put = |key: &[u8], value: &[u8]| {
        let tier = MemTier::new();
        let mut batch = tier.batch(2).expect("memory does not fail");
        if key != MARKER_KEY {
            batch.put(MARKER_KEY, &[&[1][..], &[7; 36]].concat()).expect("memory does not fail");
        }
        batch.put(key, value).expect("memory does not fail");
        batch.commit().expect("memory does not fail");
        tier
    };
    let open = |tier: MemTier| CoinStore::open(Box::new(tier), 0);
    let marker = open(put(MARKER_KEY, &[2; 37]));
    assert!(matches!(marker, Err(CoinError::Marker { bytes: 37, version: 2 })));
    let key = coin_key(&outpoint(1));
    let mut store = open(put(&key, &[0xff])).expect("the marker is ours");
    assert!(matches!(store.get(&outpoint(1)), Err(CoinError::Damaged { .. })));
    assert!(matches!(store.spend(&outpoint(1)), Err(CoinError::Damaged { .. })));
    let store = open(put(&[1, 2, 3], &[])).expect("the marker is ours");
    let snapshot = store.snapshot().expect("no I/O error");
    let unknown = snapshot.for_each(|_, _| ());
    assert!(matches!(unknown, Err(CoinError::UnknownEntry { key_bytes: 3 })));
}

#[test]
fn a_spent_coin_is_not_restored_from_read_ahead() {
    let flushes: [&[u32]; 3] = [&[], &[3], &[3, 4]];
    for later_flushes in flushes {
        let mut store = CoinStore::open(Box::new(MemTier::new()), 0).expect("the store opens");
        for n in 0..4 {
            store.add(outpoint(n), coin(n, 1, &[n]), false).expect("it is absent");
        }
        store.flush(1, &BlockHash([1; 32])).expect("the flush succeeds");
        assert_eq!(store.cached_coins(), 0, "the cache may hold nothing");
        let expected =
            store.read_ahead((0..4).map(outpoint), |_| true, 1).expect("the disk has them");
        assert!(store.spend(&outpoint(1)).expect("no I/O error").is_some());
        store.add(outpoint(2), coin(2, 2, &[7]), true).expect("it may overwrite");
        for &height in later_flushes {
            store.flush(height, &BlockHash([height as u8; 32])).expect("the flush succeeds");
        }
        let settled = store.settle(expected).expect("no I/O error");
        assert_eq!(settled, if later_flushes.is_empty() { 2 } else { 0 });
        let found = |n| store.get(&outpoint(n)).expect("no I/O error");
        assert_eq!(found(0), Some(coin(0, 1, &[0]).to_coin()));
        assert_eq!(found(1), None);
        assert_eq!(found(2), Some(coin(2, 2, &[7]).to_coin()));
        assert_eq!(found(3), Some(coin(3, 1, &[3]).to_coin()));
    }
}
