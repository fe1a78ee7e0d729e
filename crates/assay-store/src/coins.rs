//! The set of unspent coins: a cache in memory over a persistent tier.
//!
//! Changes stay in memory until [`CoinStore::flush`] writes all of them and the marker of their block as one atomic batch. A coin
//! that is created and spent between two flushes never reaches the disk.

mod ahead;
mod arena;
mod damage;
mod fjall_tier;
mod flush;
mod hints;
mod mem_tier;
mod memory_budget;
mod pages;
mod sim_tier;
mod snapshot;
mod table;
mod tier;

use std::collections::VecDeque;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use assay_hash::hash_outpoint;
use assay_wire::{BlockHash, Coin, OutPoint};

pub use ahead::Expected;
pub use arena::SCRIPT_BYTES_MAX;
pub use fjall_tier::FjallTier;
pub use flush::FlushStats;
pub use hints::prefetch_bytes;
pub use mem_tier::MemTier;
pub use memory_budget::{CoinUsage, Room};
pub use sim_tier::SimTier;
pub use snapshot::CoinSnapshot;
pub use tier::{
    CoinKey, CoinTier, KEY_BYTES, MARKER_KEY, TierBatch, TierError, TierSnapshot, Visit,
};

use crate::codec::{self, CodecError, CoinRef, TEMPLATE_MAX};
use crate::defect::{Point, point};
use ahead::Readers;
use arena::{Arena, DIRTY, FRESH, LOADED, SPENT};
use hints::prefetch;
use memory_budget::{CACHE_BYTES_MAX, Pace};
use table::Table;
use tier::coin_key;

#[derive(Debug, thiserror::Error)]
pub enum CoinError {
    /// The call would overwrite an unspent coin without `overwrite`.
    #[error("{outpoint} exists and is unspent")]
    Exists { outpoint: OutPoint },
    /// The script exceeds [`SCRIPT_BYTES_MAX`].
    #[error("the script of {outpoint} has {bytes} bytes")]
    ScriptTooLong { outpoint: OutPoint, bytes: usize },
    /// The height does not fit in 31 bits.
    #[error("the height {height} of {outpoint} is out of range")]
    Height { outpoint: OutPoint, height: u32 },
    /// The cache has reached its addressable size, 64 GiB.
    #[error("the coin cache is full with {bytes} bytes: flush it")]
    CacheFull { bytes: usize },
    #[error(
        "the system has no memory for more than the {bytes} bytes of the coin cache: give it less"
    )]
    NoMemory { bytes: usize },
    #[error("cannot start a thread to read coins: {0}")]
    Thread(std::io::Error),
    #[error(transparent)]
    Tier(#[from] TierError),
    #[error("the coin of {outpoint} on disk is damaged: {source}")]
    Damaged { outpoint: OutPoint, source: CodecError },
    #[error("an entry on disk with a key of {key_bytes} bytes is neither coin nor marker")]
    UnknownEntry { key_bytes: usize },
    #[error("the marker of the coins has {bytes} bytes and version {version}")]
    Marker { bytes: usize, version: u8 },
}

/// The block of the coins on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    pub height: u32,
    pub hash: BlockHash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached<'a> {
    Unspent(CoinRef<'a>),
    /// Spent since the last flush.
    Spent,
    /// Not cached: read the disk.
    Unknown,
}

/// An outpoint with its precomputed table position; valid for the lifetime of its store.
#[derive(Clone, Copy, Debug)]
pub struct Located {
    outpoint: OutPoint,
    hash: u64,
}

impl Located {
    #[inline]
    pub fn outpoint(&self) -> &OutPoint {
        &self.outpoint
    }
}

/// The set of unspent coins; see the module.
///
/// Reads take `&self` and may run in parallel; changes take `&mut self`.
pub struct CoinStore {
    /// Threads that read ahead, started at the first request. They hold the tier, so they end before it closes.
    readers: Option<Readers>,
    tier: Arc<dyn CoinTier>,
    /// Flushes since the store was opened.
    flushes: u64,
    marker: Option<Marker>,
    /// Block of the current coins, after the first [`CoinStore::move_to`].
    at: Option<BlockHash>,
    table: Table,
    arena: Arena,
    /// Salt of the table hash, against prepared collisions.
    salt: (u64, u64),
    cache_bytes_max: usize,
    pace: Pace,
    /// True if all coins are in the cache, so that no disk read is necessary.
    is_complete: bool,
    dirty: usize,
    unspent: usize,
}

impl CoinStore {
    /// Opens the coins in `tier` with a cache of at most `cache_bytes_max` bytes, up to 32 GiB. Between blocks
    /// [`make_room`](Self::make_room) enforces the limit; one block may add its outputs before that.
    pub fn open(tier: Box<dyn CoinTier>, cache_bytes_max: usize) -> Result<Self, CoinError> {
        let marker = flush::read_marker(&*tier)?;
        let word = || RandomState::new().build_hasher().finish();
        let table = Table::new().map_err(|_| CoinError::NoMemory { bytes: 0 })?;
        Ok(Self {
            readers: None,
            tier: Arc::from(tier),
            flushes: 0,
            marker,
            at: None,
            table,
            arena: Arena::new(),
            salt: (word(), word()),
            cache_bytes_max: cache_bytes_max.min(CACHE_BYTES_MAX),
            pace: Pace::default(),
            // Without a marker the disk has no coins.
            is_complete: marker.is_none(),
            dirty: 0,
            unspent: 0,
        })
    }

    /// The block of the coins on disk; `None` before the first flush.
    pub fn tip(&self) -> Option<Marker> {
        self.marker
    }

    /// Records that all changes of one block are complete: the coins moved from block `from` to its neighbour `to`. After that
    /// [`flush`](Self::flush) writes them only as the coins of `to`.
    ///
    /// # Panics
    /// The coins are not those of `from`. This is a defect, and a flush would lose the coins.
    pub fn move_to(&mut self, from: &BlockHash, to: &BlockHash) {
        let at = self.at.or(self.marker.map(|marker| marker.hash));
        assert!(
            at.is_none_or(|at| at == *from),
            "the coins of block {} move from block {from}",
            at.unwrap_or(BlockHash::ZERO)
        );
        self.at = Some(*to);
    }

    /// Locates `outpoint` in the table and prefetches it: about 16 ahead of use; [`warm`](Self::warm) half-way.
    #[inline]
    pub fn locate(&self, outpoint: &OutPoint) -> Located {
        let hash = self.hash(outpoint);
        prefetch(self.table.home_slot(hash));
        Located { outpoint: *outpoint, hash }
    }

    /// Prefetches the coin itself, if it is cached.
    #[inline]
    pub fn warm(&self, at: &Located) {
        if let Some(locator) = self.table.first_candidate(at.hash) {
            prefetch(self.arena.start(locator));
            // A record is 80 bytes on average, so most records span two cache lines.
            prefetch(self.arena.end_of_head(locator));
        }
    }

    /// The cached state; never reads the disk.
    #[inline]
    pub fn get_cached(&self, outpoint: &OutPoint) -> Cached<'_> {
        let at = Located { outpoint: *outpoint, hash: self.hash(outpoint) };
        let Some((_, locator)) = self.find(&at) else { return Cached::Unknown };
        let record = self.arena.record(locator);
        if record.flags() & SPENT != 0 { Cached::Spent } else { Cached::Unspent(record.coin()) }
    }

    /// The coin, from the cache or the disk. Does not change the cache.
    pub fn get(&self, outpoint: &OutPoint) -> Result<Option<Coin>, CoinError> {
        match self.get_cached(outpoint) {
            Cached::Unspent(coin) => Ok(Some(coin.to_coin())),
            Cached::Spent => Ok(None),
            Cached::Unknown => self.read(outpoint),
        }
    }

    /// True if the unspent coin exists.
    pub fn have(&self, outpoint: &OutPoint) -> Result<bool, CoinError> {
        match self.get_cached(outpoint) {
            Cached::Unspent(_) => Ok(true),
            Cached::Spent => Ok(false),
            Cached::Unknown if self.is_complete => Ok(false),
            Cached::Unknown => Ok(self.tier.get(&coin_key(outpoint), &mut |_| ())?),
        }
    }

    /// Removes and returns a coin; `None` if it does not exist.
    ///
    /// # Errors
    /// A failure of the tier, or damage; then nothing changed.
    #[inline]
    pub fn spend(&mut self, outpoint: &OutPoint) -> Result<Option<Coin>, CoinError> {
        let at = Located { outpoint: *outpoint, hash: self.hash(outpoint) };
        self.spend_with(&at, |coin| coin.to_coin())
    }

    /// [`CoinStore::spend`] for a located outpoint. Returns the result of `take` on the coin in place.
    #[inline]
    pub fn spend_with<T>(
        &mut self,
        at: &Located,
        take: impl FnOnce(CoinRef<'_>) -> T,
    ) -> Result<Option<T>, CoinError> {
        let Some((slot, locator)) = self.find(at) else {
            return Ok(self.spend_on_disk(at)?.map(|coin| take(CoinRef::from(&coin))));
        };
        let record = self.arena.record(locator);
        let flags = record.flags();
        if flags & SPENT != 0 {
            return Ok(None);
        }
        let taken = take(record.coin());
        self.unspent -= 1;
        if flags & FRESH != 0 {
            self.dirty -= 1;
            self.table.remove(slot);
            self.arena.free(locator);
        } else {
            self.dirty += usize::from(flags & DIRTY == 0);
            self.arena.set_flags(locator, DIRTY | SPENT);
        }
        Ok(Some(taken))
    }

    #[cold]
    fn spend_on_disk(&mut self, at: &Located) -> Result<Option<Coin>, CoinError> {
        let Some(coin) = self.read(&at.outpoint)? else { return Ok(None) };
        let grave = CoinRef { script_pubkey: &[], ..CoinRef::from(&coin) };
        self.enter(at, grave, DIRTY | SPENT)?;
        self.dirty += 1;
        Ok(Some(coin))
    }

    /// Adds a coin.
    ///
    /// Without `overwrite` the caller guarantees that the disk has no unspent coin with this outpoint (BIP30; there is no lookup
    /// here). With it an unspent coin is replaced, as for coinbases before BIP34 and for coins restored while a block is
    /// disconnected.
    ///
    /// # Errors
    /// [`CoinError::Exists`] without `overwrite`, if the cache has such an unspent coin; a script or height out of
    /// range; [`CoinError::CacheFull`]. Then nothing changed.
    #[inline]
    pub fn add(
        &mut self,
        outpoint: OutPoint,
        coin: CoinRef<'_>,
        overwrite: bool,
    ) -> Result<(), CoinError> {
        self.add_at(&Located { hash: self.hash(&outpoint), outpoint }, coin, overwrite)
    }

    /// [`CoinStore::add`] for a located outpoint.
    #[inline]
    pub fn add_at(
        &mut self,
        at: &Located,
        coin: CoinRef<'_>,
        overwrite: bool,
    ) -> Result<(), CoinError> {
        let outpoint = at.outpoint;
        if coin.script_pubkey.len() > SCRIPT_BYTES_MAX {
            let bytes = coin.script_pubkey.len();
            return Err(CoinError::ScriptTooLong { outpoint, bytes });
        }
        if coin.height > i32::MAX as u32 {
            return Err(CoinError::Height { outpoint, height: coin.height });
        }
        let Some((slot, locator)) = self.find(at) else {
            let fresh = if overwrite { 0 } else { FRESH };
            self.enter(at, coin, DIRTY | fresh)?;
            self.dirty += 1;
            self.unspent += 1;
            return Ok(());
        };
        let flags = self.arena.record(locator).flags();
        if flags & SPENT == 0 && !overwrite {
            return Err(CoinError::Exists { outpoint });
        }
        // A spent coin in the cache exists on disk, so the new coin is not fresh.
        let new_flags = DIRTY | flags & FRESH;
        let new = self.arena.add(&outpoint, coin, new_flags).ok_or_else(|| self.full())?;
        self.arena.free(locator);
        self.table.set_locator(slot, at.hash, new);
        self.dirty += usize::from(flags & DIRTY == 0);
        self.unspent += usize::from(flags & SPENT != 0);
        Ok(())
    }

    /// The `outpoints` that only a disk read can answer; none if all coins are in the cache.
    pub fn unknown(&self, outpoints: impl IntoIterator<Item = OutPoint>) -> Vec<OutPoint> {
        let mut unknown = Vec::new();
        if self.is_complete {
            return unknown;
        }
        let mut outpoints = outpoints.into_iter();
        let mut ahead: VecDeque<Located> = VecDeque::with_capacity(LOCATE_AHEAD);
        loop {
            while ahead.len() < LOCATE_AHEAD
                && let Some(outpoint) = outpoints.next()
            {
                ahead.push_back(self.locate(&outpoint));
            }
            if let Some(soon) = ahead.get(LOCATE_AHEAD / 2) {
                self.warm(soon);
            }
            let Some(at) = ahead.pop_front() else { return unknown };
            if self.find(&at).is_none() {
                unknown.push(at.outpoint);
            }
        }
    }

    /// Reads the uncached `outpoints` from the disk with up to `threads` threads, and caches them. Call it once per block before
    /// spending, when cache misses are likely. Returns the number of loaded coins.
    ///
    /// # Errors
    /// A failure of the tier, or damage; some coins may have been loaded.
    pub fn load(
        &mut self,
        outpoints: impl IntoIterator<Item = OutPoint>,
        threads: usize,
    ) -> Result<usize, CoinError> {
        let mut wanted = self.unknown(outpoints);
        // Sort, so that neighbours on disk are read together.
        wanted.sort_unstable();
        wanted.dedup();
        let share = wanted.len().div_ceil(threads.max(1)).max(LOAD_SHARE_MIN);
        let this = &*self;
        let read_all = |part: &[OutPoint]| -> Result<Vec<Option<Coin>>, CoinError> {
            part.iter().map(|outpoint| this.read(outpoint)).collect()
        };
        let mut coins = Vec::with_capacity(wanted.len());
        std::thread::scope(|scope| {
            let mut parts = wanted.chunks(share);
            let first = parts.next().unwrap_or_default();
            let spawn = |part| {
                let reader = std::thread::Builder::new().name("read-coins".to_owned());
                reader.spawn_scoped(scope, move || read_all(part)).map_err(CoinError::Thread)
            };
            let others: Vec<_> = parts.map(spawn).collect::<Result<_, _>>()?;
            coins.extend(read_all(first)?);
            for other in others {
                coins.extend(other.join().unwrap_or_else(|p| std::panic::resume_unwind(p))?);
            }
            Ok::<(), CoinError>(())
        })?;
        let mut loaded = 0;
        for (outpoint, coin) in wanted.into_iter().zip(coins) {
            if let Some(coin) = coin {
                let at = Located { hash: self.hash(&outpoint), outpoint };
                self.enter(&at, CoinRef::from(&coin), LOADED)?;
                self.unspent += 1;
                loaded += 1;
            }
        }
        Ok(loaded)
    }

    /// Sets the cache limit. [`make_room`](Self::make_room) enforces it at the next call.
    pub fn set_cache_bytes_max(&mut self, cache_bytes_max: usize) {
        self.cache_bytes_max = cache_bytes_max.min(CACHE_BYTES_MAX);
    }

    /// Bytes of the cache: records and table.
    pub fn cache_bytes(&self) -> usize {
        self.arena.used_bytes() + self.table.bytes()
    }

    pub fn cached_coins(&self) -> usize {
        self.unspent
    }

    /// True if all coins are in the cache, so that no disk read is necessary.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub fn disk_bytes(&self) -> u64 {
        self.tier.disk_bytes()
    }

    #[inline]
    fn hash(&self, outpoint: &OutPoint) -> u64 {
        hash_outpoint(self.salt.0, self.salt.1, &outpoint.txid.0, outpoint.vout)
    }

    #[inline]
    fn find(&self, at: &Located) -> Option<(usize, u64)> {
        self.table.find(at.hash, |locator| self.arena.record(locator).is(&at.outpoint))
    }

    #[inline]
    fn enter(&mut self, at: &Located, coin: CoinRef<'_>, flags: u32) -> Result<(), CoinError> {
        let locator = self.arena.add(&at.outpoint, coin, flags).ok_or_else(|| self.full())?;
        if self.table.insert(at.hash, locator).is_err() {
            self.arena.free(locator);
            return Err(CoinError::NoMemory { bytes: self.cache_bytes() });
        }
        Ok(())
    }

    fn read(&self, outpoint: &OutPoint) -> Result<Option<Coin>, CoinError> {
        if self.is_complete { Ok(None) } else { read_coin(&*self.tier, outpoint) }
    }
}

fn read_coin(tier: &dyn CoinTier, outpoint: &OutPoint) -> Result<Option<Coin>, CoinError> {
    point(Point::CoinRead);
    let mut coin = Ok(None);
    tier.get(&coin_key(outpoint), &mut |value| {
        let mut scratch = [0; TEMPLATE_MAX];
        coin = codec::decode_coin(value, &mut scratch).map(|coin| Some(coin.to_coin()));
    })?;
    coin.map_err(|source| CoinError::Damaged { outpoint: *outpoint, source })
}

const LOAD_SHARE_MIN: usize = 64;

/// Number of outpoints located ahead of use.
const LOCATE_AHEAD: usize = 16;

#[cfg(test)]
pub(crate) mod tests;
