//! The set of unspent coins: a cache in memory over a persistent tier.
//!
//! Changes stay in memory until [`CoinStore::flush`] writes all of them, and the marker that says up to which block they
//! count, as one atomic batch. A coin that is created and spent between two flushes never reaches the disk.

mod ahead;
mod arena;
mod damage;
mod fjall_tier;
mod flush;
mod hints;
mod mem_tier;
mod pages;
mod room;
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
pub use room::{CoinUsage, Room};
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
use room::{CACHE_BYTES_MAX, Pace};
use table::Table;
use tier::coin_key;

#[derive(Debug, thiserror::Error)]
pub enum CoinError {
    /// An unspent coin would be overwritten without leave.
    #[error("{outpoint} exists and is unspent")]
    Exists { outpoint: OutPoint },
    /// The script exceeds [`SCRIPT_BYTES_MAX`].
    #[error("the script of {outpoint} has {bytes} bytes")]
    ScriptTooLong { outpoint: OutPoint, bytes: usize },
    /// The height does not fit in 31 bits.
    #[error("the height {height} of {outpoint} is out of range")]
    Height { outpoint: OutPoint, height: u32 },
    /// The cache has reached the size it can address, 64 GiB.
    #[error("the coin cache is full with {bytes} bytes: flush it")]
    CacheFull { bytes: usize },
    /// The system has no memory for the cache.
    #[error(
        "the system has no memory for more than the {bytes} bytes of the coin cache: give it less"
    )]
    NoMemory { bytes: usize },
    #[error("cannot start a thread to read coins: {0}")]
    Thread(std::io::Error),
    #[error(transparent)]
    Tier(#[from] TierError),
    /// The disk holds a coin that is none.
    #[error("the coin of {outpoint} on disk is damaged: {source}")]
    Damaged { outpoint: OutPoint, source: CodecError },
    /// The disk holds an entry that is neither coin nor marker.
    #[error("an entry on disk with a key of {key_bytes} bytes is neither coin nor marker")]
    UnknownEntry { key_bytes: usize },
    /// The marker is of another version or damaged.
    #[error("the marker of the coins has {bytes} bytes and version {version}")]
    Marker {
        bytes: usize,
        /// Its first byte.
        version: u8,
    },
}

/// The block up to which the coins on disk count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    pub height: u32,
    pub hash: BlockHash,
}

/// What the cache knows of an outpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cached<'a> {
    Unspent(CoinRef<'a>),
    /// There is none any more.
    Spent,
    /// Only the disk can tell.
    Unknown,
}

/// An outpoint with its place in the cache's table worked out; valid for the store that made it, for as long as it lives.
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

/// The unspent coins; see the module.
///
/// Reads take `&self` and may run in parallel; changes take `&mut self`.
pub struct CoinStore {
    /// Threads that read ahead, once that was asked for. They hold the tier, so they end before it closes.
    readers: Option<Readers>,
    tier: Arc<dyn CoinTier>,
    /// Flushes since the store was opened.
    flushes: u64,
    marker: Option<Marker>,
    /// The block whose coins these are, once they have moved ([`CoinStore::move_to`]).
    at: Option<BlockHash>,
    table: Table,
    arena: Arena,
    /// Salt of the table's hash, so that nobody can prepare outpoints that collide.
    salt: (u64, u64),
    cache_bytes_max: usize,
    pace: Pace,
    /// Whether all coins are in the cache, so that the disk need not be asked.
    is_complete: bool,
    dirty: usize,
    unspent: usize,
}

impl CoinStore {
    /// Opens the coins in `tier` with a cache of `cache_bytes_max` bytes, for which 32 GiB is the limit. Between blocks
    /// [`make_room`](Self::make_room) keeps it within that; a block may add its own outputs to it before.
    ///
    /// # Errors
    /// A failure of the tier, or a marker that is not ours.
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
            // Without a marker nothing was ever written.
            is_complete: marker.is_none(),
            dirty: 0,
            unspent: 0,
        })
    }

    /// The block up to which the coins on disk count; `None` before the first flush.
    pub fn tip(&self) -> Option<Marker> {
        self.marker
    }

    /// Notes that all coins of a block have moved: from those of block `from` to those of its neighbour `to`. From then on
    /// [`flush`](Self::flush) writes them under `to` alone.
    ///
    /// # Panics
    /// When these are not the coins of `from`: a defect, and writing them would lose the coins.
    pub fn move_to(&mut self, from: &BlockHash, to: &BlockHash) {
        let at = self.at.or(self.marker.map(|marker| marker.hash));
        assert!(
            at.is_none_or(|at| at == *from),
            "the coins of block {} move from block {from}",
            at.unwrap_or(BlockHash::ZERO)
        );
        self.at = Some(*to);
    }

    /// Works out where `outpoint` belongs and asks the CPU to load that place. For many outpoints, locate some
    /// (about 16) ahead of using them, and [`warm`](Self::warm) them half-way.
    #[inline]
    pub fn locate(&self, outpoint: &OutPoint) -> Located {
        let hash = self.hash(outpoint);
        prefetch(self.table.home_slot(hash));
        Located { outpoint: *outpoint, hash }
    }

    /// Asks the CPU to load the coin itself, if it is cached.
    #[inline]
    pub fn warm(&self, at: &Located) {
        if let Some(locator) = self.table.first_candidate(at.hash) {
            prefetch(self.arena.start(locator));
            // A record is 80 bytes on average, so it mostly lies in two lines.
            prefetch(self.arena.end_of_head(locator));
        }
    }

    /// What the cache knows; never touches the disk.
    #[inline]
    pub fn get_cached(&self, outpoint: &OutPoint) -> Cached<'_> {
        let at = Located { outpoint: *outpoint, hash: self.hash(outpoint) };
        let Some((_, locator)) = self.find(&at) else { return Cached::Unknown };
        let record = self.arena.record(locator);
        if record.flags() & SPENT != 0 { Cached::Spent } else { Cached::Unspent(record.coin()) }
    }

    /// The coin, from the cache or the disk. Does not change the cache.
    ///
    /// # Errors
    /// A failure of the tier, or damage.
    pub fn get(&self, outpoint: &OutPoint) -> Result<Option<Coin>, CoinError> {
        match self.get_cached(outpoint) {
            Cached::Unspent(coin) => Ok(Some(coin.to_coin())),
            Cached::Spent => Ok(None),
            Cached::Unknown => self.read(outpoint),
        }
    }

    /// Whether there is such an unspent coin.
    ///
    /// # Errors
    /// A failure of the tier.
    pub fn have(&self, outpoint: &OutPoint) -> Result<bool, CoinError> {
        match self.get_cached(outpoint) {
            Cached::Unspent(_) => Ok(true),
            Cached::Spent => Ok(false),
            Cached::Unknown if self.is_complete => Ok(false),
            Cached::Unknown => Ok(self.tier.get(&coin_key(outpoint), &mut |_| ())?),
        }
    }

    /// Takes a coin out; `None` if there is none.
    ///
    /// # Errors
    /// A failure of the tier, or damage; then nothing changed.
    #[inline]
    pub fn spend(&mut self, outpoint: &OutPoint) -> Result<Option<Coin>, CoinError> {
        self.spend_at(&Located { outpoint: *outpoint, hash: self.hash(outpoint) })
    }

    /// [`CoinStore::spend`] for a located outpoint.
    ///
    /// # Errors
    /// As [`CoinStore::spend`].
    #[inline]
    pub fn spend_at(&mut self, at: &Located) -> Result<Option<Coin>, CoinError> {
        self.spend_with(at, |coin| coin.to_coin())
    }

    /// [`CoinStore::spend`] for a located outpoint: gives what `take` makes of the coin where it lies.
    ///
    /// # Errors
    /// As [`CoinStore::spend`].
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

    /// Puts a coin in.
    ///
    /// Without `overwrite` the caller promises that the disk has no unspent coin with this outpoint (BIP30; it is not
    /// looked up here). With it an unspent coin is replaced, as coinbases before BIP34 may do, and as restoring a
    /// coin while disconnecting a block needs.
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
    ///
    /// # Errors
    /// As [`CoinStore::add`].
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
        // A spent coin in the cache is one that the disk has, so its successor is not fresh.
        let new_flags = DIRTY | flags & FRESH;
        let new = self.arena.add(&outpoint, coin, new_flags).ok_or_else(|| self.full())?;
        self.arena.free(locator);
        self.table.set_locator(slot, at.hash, new);
        self.dirty += usize::from(flags & DIRTY == 0);
        self.unspent += usize::from(flags & SPENT != 0);
        Ok(())
    }

    /// Those of `outpoints` of which only the disk can tell; none if all coins are in the cache.
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

    /// Reads those of `outpoints` that are not cached from the disk, with up to `threads` threads at once, and keeps them.
    /// Call it once per block before spending, when coins are likely not in the cache. Returns how many it loaded.
    ///
    /// # Errors
    /// A failure of the tier, or damage; coins may have been loaded.
    pub fn load(
        &mut self,
        outpoints: impl IntoIterator<Item = OutPoint>,
        threads: usize,
    ) -> Result<usize, CoinError> {
        let mut wanted = self.unknown(outpoints);
        // Neighbours on disk are read together.
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

    /// Sets the limit of the cache, which [`make_room`](Self::make_room) keeps to from the next call on.
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

    /// Changes that the next flush writes.
    pub fn dirty_coins(&self) -> usize {
        self.dirty
    }

    /// Whether all coins are in the cache, so that nothing is ever read from the disk.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Bytes of the coins on disk.
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

/// Reads that are worth a thread.
const LOAD_SHARE_MIN: usize = 64;

/// Outpoints that are located ahead of use.
const LOCATE_AHEAD: usize = 16;

#[cfg(test)]
pub(crate) mod tests;
