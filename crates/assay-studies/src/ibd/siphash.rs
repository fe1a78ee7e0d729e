//! The salted hash of outpoints, alone and in a set of coins: with the key's constants worked out at every call, and once.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher};
use std::hint::black_box;

use assay_bench::BenchError;
use assay_bench::harness::Alternative;
use assay_bench::random::Random;
use assay_bench::suite::Benchmark;
use assay_hash::SipHash;
use assay_store::{Cached, CoinRef, CoinStore, MemTier};
use assay_wire::{OutPoint, Txid};

use super::calls::{Scale, expect, store_error};
use super::names::{ASSAY, CACHED, GENERAL, OUT_AND_IN, SPECIAL};

const KEY: (u64, u64) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);

/// Outpoints that are hashed one after the other, and of which sets consist; the report has 1,000.
const OUTPOINTS: usize = 1_000;

/// The hash with 2-4 and 1-3 rounds, and the three operations on sets.
pub(super) fn benchmarks<'a>(scale: Scale) -> Vec<Benchmark<'a>> {
    type Make = fn(&str, Scale) -> Result<Vec<Alternative<'static>>, BenchError>;
    let all: [(&str, Make); 5] = [
        ("siphash/2-4", hash::<2, 4>),
        ("siphash/1-3", hash::<1, 3>),
        ("coin-set/create", create),
        ("coin-set/match", |name, scale| look_up(name, true, scale)),
        ("coin-set/mismatch", |name, scale| look_up(name, false, scale)),
    ];
    all.into_iter()
        .map(|(name, make)| Benchmark {
            name: name.to_owned(),
            series: name.to_owned(),
            size: None,
            unit: "outpoints",
            bytes_per_op: None,
            baseline: None,
            make: Box::new(move || make(name, scale)),
        })
        .collect()
}

fn outpoints(seed: u64, count: usize) -> Vec<OutPoint> {
    let mut random = Random::new(seed);
    let any = |_| OutPoint { txid: Txid(random.bytes()), vout: random.below(1 << 32) as u32 };
    (0..count).map(any).collect()
}

/// SipHash of an outpoint whose first state was worked out when the key was set (the report's `Uint256ExtraSipHasher`).
#[derive(Clone, Copy, Debug)]
struct CachedState<const C: usize, const D: usize>([u64; 4]);

impl<const C: usize, const D: usize> CachedState<C, D> {
    fn new((k0, k1): (u64, u64)) -> Self {
        Self([
            k0 ^ 0x736f_6d65_7073_6575,
            k1 ^ 0x646f_7261_6e64_6f6d,
            k0 ^ 0x6c79_6765_6e65_7261,
            k1 ^ 0x7465_6462_7974_6573,
        ])
    }

    #[inline]
    fn hash(&self, outpoint: &OutPoint) -> u64 {
        let mut state = self.0;
        for word in outpoint.txid.0.as_chunks::<8>().0 {
            absorb::<C>(&mut state, u64::from_le_bytes(*word));
        }
        absorb::<C>(&mut state, 36 << 56 | u64::from(outpoint.vout));
        state[2] ^= 0xff;
        for _ in 0..D {
            round(&mut state);
        }
        state[0] ^ state[1] ^ state[2] ^ state[3]
    }
}

#[inline(always)]
fn absorb<const C: usize>(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    for _ in 0..C {
        round(state);
    }
    state[0] ^= word;
}

#[inline(always)]
fn round(state: &mut [u64; 4]) {
    let [mut a, mut b, mut c, mut d] = *state;
    a = a.wrapping_add(b);
    c = c.wrapping_add(d);
    b = b.rotate_left(13) ^ a;
    d = d.rotate_left(16) ^ c;
    a = a.rotate_left(32).wrapping_add(d);
    c = c.wrapping_add(b);
    d = d.rotate_left(21) ^ a;
    b = b.rotate_left(17) ^ c;
    *state = [a, b, c.rotate_left(32), d];
}

/// A salt that hashes outpoints.
trait Salt: Copy {
    fn hash(&self, outpoint: &OutPoint) -> u64;
}

impl<const C: usize, const D: usize> Salt for SipHash<C, D> {
    #[inline]
    fn hash(&self, outpoint: &OutPoint) -> u64 {
        self.hash_outpoint(&outpoint.txid.0, outpoint.vout)
    }
}

impl<const C: usize, const D: usize> Salt for CachedState<C, D> {
    #[inline]
    fn hash(&self, outpoint: &OutPoint) -> u64 {
        CachedState::hash(self, outpoint)
    }
}

type Made = Result<Alternative<'static>, BenchError>;

/// Hashes all outpoints, one after the other.
fn all(name: &str, scale: Scale, hash: impl Fn(&OutPoint) -> u64 + 'static) -> Made {
    let outpoints = outpoints(2, OUTPOINTS);
    scale.calls(name, OUTPOINTS as u64, move || {
        outpoints.iter().fold(0u64, |sum, outpoint| sum ^ hash(outpoint))
    })
}

fn hash<const C: usize, const D: usize>(
    name: &str,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let plain = SipHash::<C, D>::new(KEY.0, KEY.1);
    let cached = CachedState::<C, D>::new(KEY);
    for outpoint in outpoints(1, 100) {
        let expected = plain.hash(&outpoint.to_bytes());
        expect(Salt::hash(&plain, &outpoint) == expected, name, SPECIAL, "another hash")?;
        expect(cached.hash(&outpoint) == expected, name, CACHED, "another hash")?;
    }
    // The salt is read anew for every outpoint, as it is where it belongs to a map.
    Ok(vec![
        all(GENERAL, scale, move |outpoint| black_box(&plain).hash(&outpoint.to_bytes()))?,
        all(SPECIAL, scale, move |outpoint| Salt::hash(black_box(&plain), outpoint))?,
        all(CACHED, scale, move |outpoint| black_box(&cached).hash(outpoint))?,
    ])
}

/// An outpoint that is hashed as one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(pub(super) OutPoint);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0.to_bytes());
    }
}

/// The hasher of a set with a salt.
#[derive(Clone, Copy, Debug)]
struct Salted<S>(S);

impl<S: Salt> BuildHasher for Salted<S> {
    type Hasher = SaltedHasher<S>;

    #[inline]
    fn build_hasher(&self) -> SaltedHasher<S> {
        SaltedHasher { salt: self.0, hash: 0 }
    }
}

struct SaltedHasher<S> {
    salt: S,
    hash: u64,
}

impl<S: Salt> Hasher for SaltedHasher<S> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let outpoint = bytes.try_into().expect("an outpoint has 36 bytes");
        self.hash = self.salt.hash(&OutPoint::from_bytes(outpoint));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }
}

/// The salt of the coin cache in `HashMap`s of other benchmarks.
pub(super) fn salted() -> impl BuildHasher + Copy {
    Salted(SipHash::<1, 3>::new(KEY.0, KEY.1))
}

/// The rounds that Core had at the time.
type Plain = SipHash<2, 4>;
type CachedPlain = CachedState<2, 4>;

fn set_of<S: Salt>(salt: S, outpoints: &[OutPoint]) -> HashSet<Key, Salted<S>> {
    let mut set = HashSet::with_capacity_and_hasher(outpoints.len(), Salted(salt));
    set.extend(outpoints.iter().map(|outpoint| Key(*outpoint)));
    set
}

fn cache_of(outpoints: &[OutPoint]) -> Result<CoinStore, BenchError> {
    let mut store = CoinStore::open(Box::new(MemTier::new()), 64 << 20).map_err(store_error)?;
    for outpoint in outpoints {
        store.add(*outpoint, COIN, false).map_err(store_error)?;
    }
    Ok(store)
}

const COIN: CoinRef<'static> =
    CoinRef { value: 1, height: 1, coinbase: false, script_pubkey: &[0x51; 22] };

/// Sets of 1,000, made and thrown away.
fn create(name: &str, scale: Scale) -> Result<Vec<Alternative<'static>>, BenchError> {
    fn sets<S: Salt + 'static>(
        name: &str,
        scale: Scale,
        salt: S,
    ) -> Result<Alternative<'static>, BenchError> {
        let outpoints = outpoints(3, OUTPOINTS);
        scale.calls(name, OUTPOINTS as u64, move || set_of(*black_box(&salt), &outpoints).len())
    }
    let outpoints = outpoints(3, OUTPOINTS);
    let cached = CachedPlain::new(KEY);
    expect(set_of(cached, &outpoints).len() == OUTPOINTS, name, CACHED, "another size")?;
    let store = cache_of(&outpoints)?;
    expect(store.cached_coins() == OUTPOINTS, name, OUT_AND_IN, "another size")?;
    let mut store = store;
    Ok(vec![
        sets(SPECIAL, scale, Plain::new(KEY.0, KEY.1))?,
        sets(CACHED, scale, cached)?,
        // A cache is not made for a thousand coins: what is measured is to put them in and take them out.
        scale.calls(OUT_AND_IN, OUTPOINTS as u64, move || {
            for outpoint in &outpoints {
                store.spend(outpoint).expect("the tier is in memory");
            }
            for outpoint in &outpoints {
                store.add(*outpoint, COIN, false).expect("the tier is in memory");
            }
        })?,
    ])
}

fn count(asked: &[OutPoint], has: impl Fn(&OutPoint) -> bool) -> usize {
    asked.iter().filter(|outpoint| has(outpoint)).count()
}

fn has_coin(store: &CoinStore, outpoint: &OutPoint) -> bool {
    matches!(store.get_cached(outpoint), Cached::Unspent(_))
}

fn look_up(
    name: &str,
    is_there: bool,
    scale: Scale,
) -> Result<Vec<Alternative<'static>>, BenchError> {
    let inside = outpoints(4, OUTPOINTS);
    let asked = if is_there { inside.clone() } else { outpoints(5, OUTPOINTS) };
    let (plain, cached) =
        (set_of(Plain::new(KEY.0, KEY.1), &inside), set_of(CachedPlain::new(KEY), &inside));
    let store = cache_of(&inside)?;
    let expected = if is_there { OUTPOINTS } else { 0 };
    let found = count(&asked, |outpoint| plain.contains(&Key(*outpoint)));
    expect(found == expected, name, SPECIAL, "another count")?;
    let found = count(&asked, |outpoint| has_coin(&store, outpoint));
    expect(found == expected, name, ASSAY, "another count")?;
    let [one, two, three] = [(); 3].map(|()| asked.clone());
    let ops = OUTPOINTS as u64;
    Ok(vec![
        scale.calls(SPECIAL, ops, move || {
            count(&one, |outpoint| black_box(&plain).contains(&Key(*outpoint)))
        })?,
        scale.calls(CACHED, ops, move || {
            count(&two, |outpoint| black_box(&cached).contains(&Key(*outpoint)))
        })?,
        scale.calls(ASSAY, ops, move || {
            count(&three, |outpoint| has_coin(black_box(&store), outpoint))
        })?,
    ])
}
