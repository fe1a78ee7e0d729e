//! Storage of the cached coins. Records are appended to large chunks; freed records are reused for records of the same size.
//!
//! A record is 52 bytes and the script, rounded up to 8. A locator addresses it: its offset in units of 8 bytes. The records of a
//! chunk can be iterated in order.

use assay_wire::{OutPoint, Txid};

use crate::codec::CoinRef;

use super::pages::Pages;
use super::table::LOCATOR_BITS;

const CHUNK_LOG2: u32 = 25;

/// Bytes per chunk; only touched pages are resident.
const CHUNK_BYTES: usize = 1 << CHUNK_LOG2;

const UNIT: usize = 8;

/// Addressable size of the locators.
pub(super) const ARENA_BYTES_MAX: usize = UNIT << LOCATOR_BITS;

/// Bytes populated ahead by another thread; from the second chunk on, so that they stay a small part of the total.
const AHEAD_BYTES: usize = 4 << 20;

const AHEAD_STEP_BYTES: usize = 2 << 20;

/// Bytes released at a time while records move elsewhere; a huge page.
const RELEASE_BYTES: usize = 2 << 20;

// Layout of a record: txid, vout, height * 2 + coinbase, value, script length | flags, script.
const AT_VOUT: usize = 32;
const AT_CODE: usize = 36;
const AT_VALUE: usize = 40;
const AT_META: usize = 48;
const HEAD_BYTES: usize = 52;

/// Differs from the disk.
pub(super) const DIRTY: u32 = 1 << 31;
/// The disk has no coin with this outpoint.
pub(super) const FRESH: u32 = 1 << 30;
/// The disk has the coin, but it is spent.
pub(super) const SPENT: u32 = 1 << 29;
const FREE: u32 = 1 << 28;
/// Was read from the disk since the last eviction.
pub(super) const LOADED: u32 = 1 << 27;
const LENGTH_MASK: u32 = LOADED - 1;

/// Longest script that can be stored, 16 MiB; consensus makes outputs with scripts over 10,000 bytes unspendable.
pub const SCRIPT_BYTES_MAX: usize = 1 << 24;

/// Sizes (in units) whose freed records are reused; larger ones stay unused until the next rebuild.
const CLASSES: usize = 128;

pub(super) struct Arena {
    chunks: Vec<Chunk>,
    /// The next chunk, allocated when the last one is nearly full.
    next: Option<Pages<u8>>,
    /// First free record per size, linked through the value field; 0 ends.
    free: [u64; CLASSES],
    live_bytes: usize,
}

struct Chunk {
    bytes: Pages<u8>,
    used: usize,
    /// Position that triggers the next populate request.
    ask_at: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    head: &'a [u8; HEAD_BYTES],
    script: &'a [u8],
}

impl<'a> Record<'a> {
    #[inline]
    pub(super) fn is(&self, outpoint: &OutPoint) -> bool {
        // Compare the index first: the outputs of one transaction share the txid.
        self.u32_at(AT_VOUT) == outpoint.vout && self.head[..AT_VOUT] == outpoint.txid.0
    }

    #[inline]
    pub(super) fn outpoint(&self) -> OutPoint {
        let mut txid = [0u8; 32];
        txid.copy_from_slice(&self.head[..AT_VOUT]);
        OutPoint { txid: Txid(txid), vout: self.u32_at(AT_VOUT) }
    }

    #[inline]
    pub(super) fn coin(&self) -> CoinRef<'a> {
        let code = self.u32_at(AT_CODE);
        CoinRef {
            value: self.value() as i64,
            height: code >> 1,
            coinbase: code & 1 == 1,
            script_pubkey: self.script,
        }
    }

    #[inline]
    pub(super) fn height(&self) -> u32 {
        self.u32_at(AT_CODE) >> 1
    }

    #[inline]
    pub(super) fn flags(&self) -> u32 {
        self.u32_at(AT_META) & (DIRTY | FRESH | SPENT | LOADED)
    }

    fn is_free(&self) -> bool {
        self.u32_at(AT_META) & FREE != 0
    }

    #[inline]
    fn value(&self) -> u64 {
        u64::from(self.u32_at(AT_VALUE)) | u64::from(self.u32_at(AT_VALUE + 4)) << 32
    }

    #[inline]
    fn u32_at(&self, at: usize) -> u32 {
        let bytes = self.head;
        u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
    }

    pub(super) fn bytes(&self) -> usize {
        record_bytes(self.script.len())
    }
}

/// Bytes of a record with a script of this length.
#[inline]
pub(super) fn record_bytes(script_bytes: usize) -> usize {
    (HEAD_BYTES + script_bytes).next_multiple_of(UNIT)
}

impl Arena {
    pub(super) fn new() -> Self {
        Self { chunks: Vec::new(), next: None, free: [0; CLASSES], live_bytes: 0 }
    }

    /// Bytes allocated from the chunks so far, freed records included.
    pub(super) fn used_bytes(&self) -> usize {
        let full = self.chunks.len().saturating_sub(1) * CHUNK_BYTES;
        full + self.chunks.last().map_or(0, |chunk| chunk.used)
    }

    /// Bytes of all records in use.
    pub(super) fn live_bytes(&self) -> usize {
        self.live_bytes
    }

    /// Stores a record and returns its locator; `None` if the arena has reached its addressable size.
    ///
    /// The caller has checked that the script is at most [`SCRIPT_BYTES_MAX`] long.
    #[inline]
    pub(super) fn add(
        &mut self,
        outpoint: &OutPoint,
        coin: CoinRef<'_>,
        flags: u32,
    ) -> Option<u64> {
        let length = record_bytes(coin.script_pubkey.len());
        let locator = self.allocate(length)?;
        let record = self.slice_mut(locator);
        let (head, script) = record.split_first_chunk_mut::<HEAD_BYTES>()?;
        head[..AT_VOUT].copy_from_slice(&outpoint.txid.0);
        head[AT_VOUT..AT_CODE].copy_from_slice(&outpoint.vout.to_le_bytes());
        let code = coin.height << 1 | u32::from(coin.coinbase);
        head[AT_CODE..AT_VALUE].copy_from_slice(&code.to_le_bytes());
        head[AT_VALUE..AT_META].copy_from_slice(&coin.value.to_le_bytes());
        let meta = coin.script_pubkey.len() as u32 | flags;
        head[AT_META..].copy_from_slice(&meta.to_le_bytes());
        script[..coin.script_pubkey.len()].copy_from_slice(coin.script_pubkey);
        self.live_bytes += length;
        Some(locator)
    }

    #[inline]
    fn allocate(&mut self, length: usize) -> Option<u64> {
        if let Some(&locator) = self.free.get(length / UNIT)
            && locator != 0
        {
            self.free[length / UNIT] = self.record(locator).value();
            return Some(locator);
        }
        match self.chunks.last() {
            Some(chunk) if chunk.used + length <= CHUNK_BYTES => {}
            _ => self.add_chunk(length)?,
        }
        let index = self.chunks.len() - 1;
        let chunk = &mut self.chunks[index];
        let offset = index << CHUNK_LOG2 | chunk.used;
        chunk.used += length;
        if chunk.used >= chunk.ask_at {
            self.expect_more();
        }
        Some((offset / UNIT) as u64)
    }

    /// Populates memory for the next records: in the last chunk, or near its end in the next one.
    #[cold]
    fn expect_more(&mut self) {
        let Some(chunk) = self.chunks.last_mut() else { return };
        let end = chunk.ask_at + AHEAD_BYTES;
        let start = end - AHEAD_STEP_BYTES;
        chunk.ask_at += AHEAD_STEP_BYTES;
        if end <= CHUNK_BYTES {
            return chunk.bytes.expect(start..end);
        }
        if self.next.is_none() {
            self.next = Pages::zeroed(CHUNK_BYTES);
        }
        if let Some(next) = &self.next {
            next.expect(start - CHUNK_BYTES..end - CHUNK_BYTES);
        }
    }

    #[cold]
    fn add_chunk(&mut self, length: usize) -> Option<()> {
        debug_assert!(length < CHUNK_BYTES);
        if self.chunks.len() + 1 > ARENA_BYTES_MAX >> CHUNK_LOG2 {
            return None;
        }
        let used = first_offset(self.chunks.len());
        let bytes = self.next.take().or_else(|| Pages::zeroed(CHUNK_BYTES))?;
        let ask_at = if self.chunks.is_empty() {
            CHUNK_BYTES - AHEAD_BYTES
        } else {
            // The previous chunk requested only the first step.
            bytes.expect(AHEAD_STEP_BYTES..AHEAD_BYTES);
            AHEAD_STEP_BYTES
        };
        self.chunks.push(Chunk { bytes, used, ask_at });
        Some(())
    }

    /// The record at a locator from [`Arena::add`] that is not freed.
    #[inline]
    pub(super) fn record(&self, locator: u64) -> Record<'_> {
        let offset = locator as usize * UNIT;
        let bytes = &self.chunks[offset >> CHUNK_LOG2].bytes[offset & (CHUNK_BYTES - 1)..];
        split(bytes)
    }

    /// Start of a record, for a prefetch.
    #[inline]
    pub(super) fn start(&self, locator: u64) -> &u8 {
        let offset = locator as usize * UNIT;
        &self.chunks[offset >> CHUNK_LOG2].bytes[offset & (CHUNK_BYTES - 1)]
    }

    /// Last byte of a record's fixed part, for a prefetch.
    #[inline]
    pub(super) fn end_of_head(&self, locator: u64) -> &u8 {
        let offset = locator as usize * UNIT;
        &self.chunks[offset >> CHUNK_LOG2].bytes[(offset & (CHUNK_BYTES - 1)) + HEAD_BYTES - 1]
    }

    #[inline]
    fn slice_mut(&mut self, locator: u64) -> &mut [u8] {
        let offset = locator as usize * UNIT;
        &mut self.chunks[offset >> CHUNK_LOG2].bytes[offset & (CHUNK_BYTES - 1)..]
    }

    #[inline]
    pub(super) fn set_flags(&mut self, locator: u64, flags: u32) {
        let meta = self.record(locator).u32_at(AT_META) & LENGTH_MASK | flags;
        self.slice_mut(locator)[AT_META..HEAD_BYTES].copy_from_slice(&meta.to_le_bytes());
    }

    /// Frees a record for reuse by later records of its size.
    #[inline]
    pub(super) fn free(&mut self, locator: u64) {
        let length = self.record(locator).bytes();
        self.live_bytes -= length;
        self.set_flags(locator, FREE);
        if let Some(&next) = self.free.get(length / UNIT) {
            self.slice_mut(locator)[AT_VALUE..AT_META].copy_from_slice(&next.to_le_bytes());
            self.free[length / UNIT] = locator;
        }
    }

    /// All records with their locators, in storage order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, Record<'_>)> {
        self.chunks.iter().enumerate().flat_map(|(index, chunk)| chunk.iter(index))
    }

    /// Advances to the next record after `cursor` that is not free; records may be freed and changed between the calls.
    pub(super) fn next(&self, cursor: &mut Cursor) -> Option<u64> {
        while let Some(chunk) = self.chunks.get(cursor.chunk) {
            if let Some(at) = chunk.next(cursor.chunk, &mut cursor.at) {
                return Some(locator(cursor.chunk, at));
            }
            *cursor = Cursor { chunk: cursor.chunk + 1, at: 0 };
        }
        None
    }

    /// Visits all records in storage order and releases their memory on the way, so that a move never needs the memory twice.
    pub(super) fn drain(self, mut visit: impl FnMut(Record<'_>)) {
        for (index, mut chunk) in self.chunks.into_iter().enumerate() {
            let (mut at, mut released) = (0, 0);
            while let Some(start) = chunk.next(index, &mut at) {
                visit(split(&chunk.bytes[start..]));
                // Whole huge pages: a partial release would keep the page allocated.
                let done = at / RELEASE_BYTES * RELEASE_BYTES;
                if done > released {
                    chunk.bytes.release(released..done);
                    released = done;
                }
            }
        }
    }
}

/// Position of an iteration over the arena.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cursor {
    chunk: usize,
    at: usize,
}

fn locator(chunk: usize, at: usize) -> u64 {
    ((chunk << CHUNK_LOG2 | at) / UNIT) as u64
}

impl Chunk {
    fn iter(&self, index: usize) -> impl Iterator<Item = (u64, Record<'_>)> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = self.next(index, &mut at)?;
            Some((locator(index, start), split(&self.bytes[start..])))
        })
    }

    /// Start of the next record from `at` on that is not free; moves `at` past it.
    #[inline]
    fn next(&self, index: usize, at: &mut usize) -> Option<usize> {
        if *at == 0 {
            *at = first_offset(index);
        }
        while *at < self.used {
            let record = split(&self.bytes[*at..]);
            let start = *at;
            *at += record.bytes();
            if !record.is_free() {
                return Some(start);
            }
        }
        None
    }
}

/// Locator 0 means "none", so the first record of all does not start at 0.
fn first_offset(chunk: usize) -> usize {
    if chunk == 0 { UNIT } else { 0 }
}

#[inline]
fn split(bytes: &[u8]) -> Record<'_> {
    let (head, rest) =
        bytes.split_first_chunk::<HEAD_BYTES>().expect("a record never crosses the chunk's end");
    let mut record = Record { head, script: &[] };
    record.script = &rest[..(record.u32_at(AT_META) & LENGTH_MASK) as usize];
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outpoint(n: u32) -> OutPoint {
        OutPoint { txid: Txid([n as u8; 32]), vout: n }
    }

    #[test]
    fn records_keep_their_coin_and_freed_places_are_reused() {
        let mut arena = Arena::new();
        let script = [9u8; 25];
        let coin = |value| CoinRef { value, height: 7, coinbase: true, script_pubkey: &script[..] };
        let locators: Vec<u64> = (0..1000)
            .map(|n| arena.add(&outpoint(n), coin(n.into()), DIRTY).expect("there is room"))
            .collect();
        let used = arena.used_bytes();
        for &locator in locators.iter().step_by(2) {
            arena.free(locator);
        }
        assert_eq!(arena.live_bytes(), 500 * record_bytes(25));
        assert_eq!(arena.iter().count(), 500);
        for n in 1000..1500 {
            arena.add(&outpoint(n), coin(n.into()), DIRTY | FRESH).expect("there is room");
        }
        assert_eq!(arena.used_bytes(), used);
        assert_eq!(arena.iter().count(), 1000);
        for (locator, record) in arena.iter() {
            let outpoint = record.outpoint();
            assert!(record.is(&outpoint));
            assert_eq!(record.coin(), coin(outpoint.vout.into()));
            assert_eq!(arena.record(locator).outpoint(), outpoint);
            assert_eq!(record.flags() & FRESH != 0, outpoint.vout >= 1000);
        }
    }

    #[test]
    fn records_never_cross_chunks() {
        let mut arena = Arena::new();
        let script = vec![3u8; SCRIPT_BYTES_MAX];
        for n in 0..5 {
            let coin = CoinRef { value: 1, height: 1, coinbase: false, script_pubkey: &script };
            let locator = arena.add(&outpoint(n), coin, 0).expect("there is room");
            assert_eq!(arena.record(locator).coin(), coin);
        }
        let mut seen = 0;
        arena.drain(|record| {
            assert_eq!(record.coin().script_pubkey.len(), SCRIPT_BYTES_MAX);
            seen += 1;
        });
        assert_eq!(seen, 5);
    }
}
