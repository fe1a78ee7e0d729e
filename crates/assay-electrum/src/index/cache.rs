//! Cache of verified parts of the index files, and the reader of one query.
//!
//! The system's page cache holds the files too, but each read costs a system call, a copy and a checksum, and the txids of a
//! history are scattered. Slots hold immutable parts of files, so no invalidation is needed: a run never changes, and the records
//! of a flat file are constant until the next reorg, whose number is part of their key.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use assay_store::io::IoFile;
use parking_lot::Mutex;

use super::types::QueryError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartKey {
    pub(crate) file: FileKey,
    pub(crate) offset: u64,
}

/// A file in an immutable state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKey {
    /// A run, by its number from [`Cache::number`].
    Run(u64),
    /// `txs.dat`, and the number of reorgs so far.
    Txs(u64),
    /// `heights.dat`, and the number of reorgs so far.
    Heights(u64),
}

/// A set-associative cache of parts of at most [`PART_BYTES_MAX`] bytes. A full set evicts by the clock algorithm.
pub(crate) struct Cache {
    sets: Vec<Mutex<Set>>,
    /// 64 minus the binary logarithm of the number of sets.
    shift: u32,
    numbers: AtomicU64,
}

#[derive(Default)]
struct Set {
    places: [Option<Place>; PLACES],
    /// Clock hand: start of the search for an evictable slot.
    hand: usize,
}

struct Place {
    key: PartKey,
    bytes: Arc<[u8]>,
    /// Used since the hand last passed.
    is_used: bool,
}

impl Cache {
    /// A cache of at most `bytes_max` bytes of parts, but at least one set.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let sets = (bytes_max / (PLACES * PART_BYTES_MAX)).max(1);
        let log = sets.ilog2();
        let sets = (0..1usize << log).map(|_| Mutex::default()).collect();
        Self { sets, shift: 64 - log, numbers: AtomicU64::new(0) }
    }

    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn get(&self, key: &PartKey) -> Option<Arc<[u8]>> {
        let mut set = self.set(key).lock();
        let place = set.places.iter_mut().flatten().find(|place| place.key == *key)?;
        place.is_used = true;
        Some(Arc::clone(&place.bytes))
    }

    pub(crate) fn insert(&self, key: PartKey, bytes: Arc<[u8]>) {
        debug_assert!(bytes.len() <= PART_BYTES_MAX);
        let mut set = self.set(&key).lock();
        // Another thread may have read the same part.
        if set.places.iter().flatten().any(|place| place.key == key) {
            return;
        }
        let at = set.free();
        set.places[at] = Some(Place { key, bytes, is_used: false });
    }

    fn set(&self, key: &PartKey) -> &Mutex<Set> {
        let (kind, number) = match key.file {
            FileKey::Run(number) => (0, number),
            FileKey::Txs(number) => (1, number),
            FileKey::Heights(number) => (2, number),
        };
        // Multiplying by an odd number spreads neighbours over the upper bits (Knuth 6.4).
        let mixed = (key.offset / 512 + (number << 2 | kind) * 0x51_7c_c1).wrapping_mul(SPREAD);
        &self.sets[mixed.checked_shr(self.shift).unwrap_or(0) as usize]
    }
}

impl Set {
    /// An empty or evictable slot.
    fn free(&mut self) -> usize {
        if let Some(empty) = self.places.iter().position(Option::is_none) {
            return empty;
        }
        loop {
            let at = self.hand;
            self.hand = (at + 1) % PLACES;
            match &mut self.places[at] {
                Some(place) if place.is_used => place.is_used = false,
                _ => return at,
            }
        }
    }
}

/// Longest part: a page of a run.
pub(crate) const PART_BYTES_MAX: usize = super::page::PAGE_BYTES;
const PLACES: usize = 8;
/// 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    Any,
    /// Only reads from memory, within [`READS_MAX`] and [`ROWS_MAX`]; otherwise [`QueryError::NotAtOnce`].
    AtOnce,
}

/// Cached reads for one query.
pub(crate) struct Reader<'a> {
    cache: &'a Cache,
    reads: Reads,
    reads_left: Cell<u32>,
    /// Parts that the query may still add to the cache: a long history must not evict everything else.
    parts_left: Cell<u32>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(cache: &'a Cache, reads: Reads) -> Self {
        let reads_left = if reads == Reads::AtOnce { READS_MAX } else { u32::MAX };
        Self {
            cache,
            reads,
            reads_left: Cell::new(reads_left),
            parts_left: Cell::new(KEPT_PARTS_MAX),
        }
    }

    /// Maximum rows that the query may visit.
    pub(crate) fn rows_max(&self) -> usize {
        if self.reads == Reads::AtOnce { ROWS_MAX } else { usize::MAX }
    }

    /// Fills `buffer`. [`io::ErrorKind::WouldBlock`] if that would exceed the limits ([`QueryError::of_read`]).
    pub(crate) fn fill(&self, file: &dyn IoFile, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if self.reads == Reads::Any {
            return file.read_exact_at(buffer, offset);
        }
        let left = self.reads_left.get();
        if left == 0 || !file.read_cached_at(buffer, offset) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.reads_left.set(left - 1);
        Ok(())
    }

    pub(crate) fn cached(&self, key: &PartKey) -> Option<Arc<[u8]>> {
        self.cache.get(key)
    }

    pub(crate) fn keep(&self, key: PartKey, bytes: impl Into<Arc<[u8]>>) {
        if let Some(left) = self.parts_left.get().checked_sub(1) {
            self.parts_left.set(left);
            self.cache.insert(key, bytes.into());
        }
    }
}

impl QueryError {
    /// Maps an error of [`Reader::fill`] on the file at `path`.
    pub(crate) fn of_read(source: io::Error, path: &Path, offset: u64) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::WouldBlock => Self::NotAtOnce,
            io::ErrorKind::UnexpectedEof => {
                Self::Damaged { path, offset, what: "the file ends too early" }
            }
            _ => Self::Io { path, source },
        }
    }
}

/// Reads from the page cache per non-blocking query: about a tenth of a millisecond.
const READS_MAX: u32 = 128;
/// Rows per non-blocking query: some ten microseconds.
const ROWS_MAX: usize = 2048;
/// Four MiB.
const KEPT_PARTS_MAX: u32 = 1024;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::index::fixture::Random;

    #[test]
    fn finds_stored_parts() {
        let mut random = Random(7);
        for bytes_max in [0, 100_000, 1 << 20] {
            let cache = Cache::new(bytes_max);
            let mut known: HashMap<(u8, u64, u64), u8> = HashMap::new();
            let mut found = 0;
            for step in 0..20_000 {
                let number = random.below(3) as u64;
                let kind = random.below(3) as u8;
                let offset = 4096 * random.below(60) as u64;
                let file = [FileKey::Run(number), FileKey::Txs(number), FileKey::Heights(number)]
                    [usize::from(kind)];
                let key = PartKey { file, offset };
                if let Some(bytes) = cache.get(&key) {
                    found += 1;
                    assert_eq!(bytes[0], known[&(kind, number, offset)]);
                } else {
                    let byte = *known.entry((kind, number, offset)).or_insert(step as u8);
                    cache.insert(key, Arc::from(&[byte; 5][..]));
                }
                let held: usize = cache.sets.iter().map(|set| set.lock().held()).sum();
                assert!(held <= (bytes_max / PART_BYTES_MAX).max(PLACES));
            }
            assert!(found > 100, "{found} found with {bytes_max} bytes");
        }
    }

    #[test]
    fn used_entries_stay_cached() {
        let cache = Cache::new(0);
        let key = |offset| PartKey { file: FileKey::Run(0), offset };
        let bytes: Arc<[u8]> = Arc::from(&[1][..]);
        cache.insert(key(0), Arc::clone(&bytes));
        for offset in 1..100 {
            assert!(cache.get(&key(0)).is_some(), "after {offset} others");
            cache.insert(key(offset), Arc::clone(&bytes));
        }
    }

    impl Set {
        fn held(&self) -> usize {
            self.places.iter().flatten().count()
        }
    }
}
