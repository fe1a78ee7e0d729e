//! Compact block filters (BIP158): the scripts that a block touches, as a Golomb-coded set.
//!
//! A filter is a count and the differences of the sorted element hashes in Golomb-Rice code. A query decodes the filter once and
//! merges it with the scripts; the false positive rate is one in 784,931.
//!
//! ```
//! use assay_wire::{BlockHash, filter};
//! let block = BlockHash([7; 32]);
//! let bytes = filter::encode(&block, vec![b"one", b"two", b"one"]);
//! let filter = filter::Filter::parse(&bytes)?;
//! assert_eq!(filter.count(), 2);
//! assert!(filter.matches_any(&block, [b"two"]));
//! assert!(!filter.matches_any(&block, [b"six"]));
//! # Ok::<(), filter::FilterError>(())
//! ```

use assay_hash::{SipHash24, sha256d};

use crate::block::Block;
use crate::encode::compact_size;
use crate::error::ParseError;
use crate::id::BlockHash;
use crate::reader::Reader;

/// Remainder bits in basic filters (Core `blockfilter.h`, `BASIC_FILTER_P`).
pub const BASIC_P: u32 = 19;
/// Inverse false positive rate of basic filters (Core `blockfilter.h`, `BASIC_FILTER_M`).
pub const BASIC_M: u64 = 784_931;

/// The bytes are not a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// The count is malformed.
    #[error(transparent)]
    Count(#[from] ParseError),
    /// More elements than a filter may have.
    #[error("N must be <2^32")]
    TooMany,
    /// The bits end before the last element.
    #[error("the filter ends early")]
    Truncated,
    /// Bytes follow the last element.
    #[error("encoded_filter contains excess data")]
    Excess,
}

/// A validated filter; all its elements are present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter<'a> {
    count: u32,
    bits: &'a [u8],
}

impl<'a> Filter<'a> {
    /// Parses and validates a filter, as Core does with received ones (`blockfilter.cpp`, `GCSFilter`).
    ///
    /// # Errors
    /// When the count is malformed, or the bytes are too short or too long.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FilterError> {
        let mut reader = Reader::new(bytes, 0);
        let count = u32::try_from(reader.compact_size()?).map_err(|_| FilterError::TooMany)?;
        let bits = &bytes[reader.position()..];
        let mut values = Values { bits: BitReader::new(bits), left: count, last: 0 };
        for _ in 0..count {
            values.next().ok_or(FilterError::Truncated)?;
        }
        if values.bits.position.div_ceil(8) != bits.len() as u64 {
            return Err(FilterError::Excess);
        }
        Ok(Self { count, bits })
    }

    /// Number of elements.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The element hashes in ascending order.
    pub fn values(&self) -> impl Iterator<Item = u64> + use<'a> {
        Values { bits: BitReader::new(self.bits), left: self.count, last: 0 }
    }

    /// True if the filter, which is of block `hash`, matches one of the elements; may be a false positive.
    pub fn matches_any<E: AsRef<[u8]>>(
        &self,
        hash: &BlockHash,
        elements: impl IntoIterator<Item = E>,
    ) -> bool {
        let key = key(hash);
        let hashed = |element: E| hash_into_range(&key, element.as_ref(), self.count);
        let mut wanted: Vec<u64> = elements.into_iter().map(hashed).collect();
        wanted.sort_unstable();
        let mut wanted = wanted.into_iter().peekable();
        self.values().any(|value| {
            while wanted.next_if(|&other| other < value).is_some() {}
            wanted.peek() == Some(&value)
        })
    }
}

/// Iterator over the values of a filter; ends early if the bits end.
struct Values<'a> {
    bits: BitReader<'a>,
    left: u32,
    last: u64,
}

impl Iterator for Values<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.left = self.left.checked_sub(1)?;
        let difference = self.bits.golomb_rice()?;
        // Core adds in the same way, and wraps on malformed data only.
        self.last = self.last.wrapping_add(difference);
        Some(self.last)
    }
}

/// Builds the filter of a block from its elements; duplicates are allowed.
///
/// # Panics
/// With 2^32 elements or more, which no block has.
pub fn encode<E: AsRef<[u8]> + Ord>(hash: &BlockHash, mut elements: Vec<E>) -> Vec<u8> {
    elements.sort_unstable();
    elements.dedup();
    let count = u32::try_from(elements.len()).expect("a block has fewer than 2^32 scripts");
    let key = key(hash);
    let hashed = |element: &E| hash_into_range(&key, element.as_ref(), count);
    let mut values: Vec<u64> = elements.iter().map(hashed).collect();
    values.sort_unstable();
    let mut out = Vec::with_capacity(5 + values.len() * 3);
    compact_size(&mut out, u64::from(count));
    let mut bits = BitWriter { out, filled: 0, last: 0 };
    let mut last = 0;
    for value in values {
        bits.golomb_rice(value - last);
        last = value;
    }
    bits.finish()
}

/// Builds the basic filter of a block; `spent` are the scripts of its spent outputs (Core `blockfilter.cpp`,
/// `BasicFilterElements`). Elements are output scripts that are not empty and do not begin with `OP_RETURN`, and spent scripts
/// that are not empty.
pub fn basic<'a>(block: &'a Block, spent: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let outputs =
        block.txs().flat_map(super::transaction::Tx::outputs).map(|output| output.script_pubkey);
    let outputs = outputs.filter(|script| script.first() != Some(&OP_RETURN));
    let elements: Vec<&[u8]> = outputs.chain(spent).filter(|script| !script.is_empty()).collect();
    encode(&block.hash(), elements)
}

/// The hash of a filter's bytes, as in `cfheaders`.
pub fn filter_hash(filter: &[u8]) -> [u8; 32] {
    sha256d(filter)
}

/// The filter header (BIP157): it commits to the filter and all before it. The header before the first is all zeros.
pub fn filter_header(filter_hash: &[u8; 32], previous: &[u8; 32]) -> [u8; 32] {
    let mut bytes = [0; 64];
    bytes[..32].copy_from_slice(filter_hash);
    bytes[32..].copy_from_slice(previous);
    sha256d(&bytes)
}

/// The first 16 bytes of the block hash (BIP158).
fn key(hash: &BlockHash) -> SipHash24 {
    let half = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&hash.0[at..at + 8]);
        u64::from_le_bytes(word)
    };
    SipHash24::new(half(0), half(8))
}

/// Maps an element to a number from 0 to `count * M`, by multiplication instead of a remainder (BIP158).
fn hash_into_range(key: &SipHash24, element: &[u8], count: u32) -> u64 {
    let range = u64::from(count) * BASIC_M;
    ((u128::from(key.hash(element)) * u128::from(range)) >> 64) as u64
}

/// Reads bits, most significant first.
struct BitReader<'a> {
    bytes: &'a [u8],
    /// In bits.
    position: u64,
}

impl<'a> BitReader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// The next 64 bits, with zeros after the end, and the number of valid ones: at least 57, except near the end.
    fn window(&self) -> (u64, u64) {
        let at = (self.position / 8) as usize;
        let rest = &self.bytes[at.min(self.bytes.len())..];
        let word = if let Some(word) = rest.first_chunk() {
            u64::from_be_bytes(*word)
        } else {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(word)
        };
        let skipped = self.position % 8;
        let bits = (rest.len() as u64 * 8).min(64).saturating_sub(skipped);
        (word << skipped, bits)
    }

    /// Reads ones up to a zero, then [`BASIC_P`] bits; `None` if the bits end first.
    fn golomb_rice(&mut self) -> Option<u64> {
        let mut quotient = 0u64;
        loop {
            let (word, bits) = self.window();
            let ones = u64::from(word.leading_ones()).min(bits);
            if bits == 0 {
                return None;
            }
            quotient += ones;
            self.position += ones;
            if ones < bits {
                self.position += 1;
                break;
            }
        }
        let (word, bits) = self.window();
        if bits < u64::from(BASIC_P) {
            return None;
        }
        self.position += u64::from(BASIC_P);
        Some((quotient << BASIC_P).wrapping_add(word >> (64 - BASIC_P)))
    }
}

struct BitWriter {
    out: Vec<u8>,
    /// Bits of `last` in use.
    filled: u32,
    last: u8,
}

impl BitWriter {
    fn golomb_rice(&mut self, value: u64) {
        let mut ones = value >> BASIC_P;
        while ones > 0 {
            let count = ones.min(32) as u32;
            self.write(u64::MAX, count);
            ones -= u64::from(count);
        }
        self.write(0, 1);
        self.write(value, BASIC_P);
    }

    /// Appends the `count` lowest bits.
    fn write(&mut self, bits: u64, count: u32) {
        let mut left = count;
        while left > 0 {
            let now = left.min(8 - self.filled);
            let part = (bits >> (left - now)) as u32 & ((1 << now) - 1);
            self.last |= (part << (8 - self.filled - now)) as u8;
            self.filled += now;
            left -= now;
            if self.filled == 8 {
                self.out.push(self.last);
                (self.filled, self.last) = (0, 0);
            }
        }
    }

    fn finish(mut self) -> Vec<u8> {
        if self.filled > 0 {
            self.out.push(self.last);
        }
        self.out
    }
}

const OP_RETURN: u8 = 0x6a;
