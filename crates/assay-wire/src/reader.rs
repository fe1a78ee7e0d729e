//! A bounds-checked cursor over bytes.

use crate::error::{ParseError, ParseErrorKind};

/// Maximum count or length (Core `serialize.h`, `MAX_SIZE`).
pub(crate) const COMPACT_SIZE_MAX: u64 = 0x0200_0000;

/// Reads the integers, byte strings and counts of the wire format.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    /// A reader of `bytes` from `position` on, which is at most their length.
    pub fn new(bytes: &'a [u8], position: usize) -> Self {
        Self { bytes, position }
    }

    /// Number of bytes before the next one.
    pub fn position(&self) -> usize {
        self.position
    }

    /// Number of unread bytes.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    pub(crate) fn fail<T>(&self, kind: ParseErrorKind) -> Result<T, ParseError> {
        Err(ParseError { offset: self.position, kind })
    }

    #[inline]
    pub(crate) fn skip(&mut self, count: usize) -> Result<(), ParseError> {
        if count > self.remaining() {
            return self.fail(ParseErrorKind::Truncated);
        }
        self.position += count;
        Ok(())
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// Fewer remain.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], ParseError> {
        let start = self.position;
        self.skip(count)?;
        Ok(&self.bytes[start..self.position])
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// Fewer remain.
    #[inline]
    pub fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], ParseError> {
        match self.bytes[self.position..].first_chunk::<N>() {
            Some(chunk) => {
                self.position += N;
                Ok(chunk)
            }
            None => self.fail(ParseErrorKind::Truncated),
        }
    }

    /// A compact size.
    ///
    /// # Errors
    /// It is cut off, not in its shortest form, or above 32 MiB.
    #[inline]
    pub fn compact_size(&mut self) -> Result<u64, ParseError> {
        let first = self.take::<1>()?[0];
        if first < 253 {
            return Ok(u64::from(first));
        }
        self.long_compact_size(first)
    }

    fn long_compact_size(&mut self, first: u8) -> Result<u64, ParseError> {
        let start = self.position - 1;
        let value = self.long_number(first)?;
        if value > COMPACT_SIZE_MAX {
            return Err(ParseError { offset: start, kind: ParseErrorKind::OversizedCount });
        }
        Ok(value)
    }

    /// A number in compact size form that is not a count, so any value is valid.
    pub(crate) fn number(&mut self) -> Result<u64, ParseError> {
        let first = self.take::<1>()?[0];
        if first < 253 { Ok(u64::from(first)) } else { self.long_number(first) }
    }

    fn long_number(&mut self, first: u8) -> Result<u64, ParseError> {
        let start = self.position - 1;
        let (value, least) = match first {
            253 => (u64::from(u16::from_le_bytes(*self.take()?)), 253),
            254 => (u64::from(u32::from_le_bytes(*self.take()?)), 0x1_0000),
            _ => (u64::from_le_bytes(*self.take()?), 0x1_0000_0000),
        };
        if value < least {
            return Err(ParseError { offset: start, kind: ParseErrorKind::NonCanonicalSize });
        }
        Ok(value)
    }

    /// Skips a compact size and that number of bytes.
    #[inline]
    pub(crate) fn skip_var_bytes(&mut self) -> Result<(), ParseError> {
        let length = self.compact_size()?;
        self.skip(length as usize)
    }

    /// A count of items with at least `item_bytes_min` bytes each. A count that cannot fit into the remaining bytes is rejected,
    /// so that memory reservations are bounded by the size of the data.
    ///
    /// # Errors
    /// As [`Reader::compact_size`], or the items cannot follow.
    #[inline]
    pub fn count(&mut self, item_bytes_min: usize) -> Result<usize, ParseError> {
        let start = self.position;
        let count = self.compact_size()? as usize;
        if count.saturating_mul(item_bytes_min) > self.remaining() {
            return Err(ParseError { offset: start, kind: ParseErrorKind::Truncated });
        }
        Ok(count)
    }
}

/// Decodes a compact size already checked by the layout pass: (value, encoded length).
#[inline]
pub(crate) fn checked_compact_size(bytes: &[u8]) -> (usize, usize) {
    let first = bytes[0];
    if first < 253 { (usize::from(first), 1) } else { checked_long_compact_size(bytes) }
}

/// Out of line, so that the common case is inlined.
#[cold]
fn checked_long_compact_size(bytes: &[u8]) -> (usize, usize) {
    match bytes[0] {
        253 => (usize::from(u16::from_le_bytes([bytes[1], bytes[2]])), 3),
        254 => (u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]) as usize, 5),
        _ => {
            let mut wide = [0u8; 8];
            wide.copy_from_slice(&bytes[1..9]);
            (u64::from_le_bytes(wide) as usize, 9)
        }
    }
}
