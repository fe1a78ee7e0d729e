//! The witness of one input: a stack of byte strings (BIP141).

use crate::reader::checked_compact_size;

/// The witness stack of one input.
#[derive(Clone, Copy, Debug)]
pub struct Witness<'a> {
    /// From the item count on; extends past the end of this witness.
    bytes: &'a [u8],
}

impl<'a> Witness<'a> {
    /// No items.
    pub const EMPTY: Witness<'static> = Witness { bytes: &[0] };

    #[inline]
    pub(crate) fn at(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Number of stack items.
    #[inline]
    pub fn len(&self) -> usize {
        checked_compact_size(self.bytes).0
    }

    /// True if the stack is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items, bottom of the stack first.
    #[inline]
    pub fn iter(&self) -> WitnessItems<'a> {
        let (left, used) = checked_compact_size(self.bytes);
        WitnessItems { rest: &self.bytes[used..], left }
    }

    /// Length of the serialised witness: count, lengths and items.
    pub fn serialized_size(&self) -> usize {
        let mut items = self.iter();
        for _ in items.by_ref() {}
        self.bytes.len() - items.rest.len()
    }
}

impl<'a> IntoIterator for Witness<'a> {
    type Item = &'a [u8];
    type IntoIter = WitnessItems<'a>;
    #[inline]
    fn into_iter(self) -> WitnessItems<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Witness<'a> {
    type Item = &'a [u8];
    type IntoIter = WitnessItems<'a>;
    #[inline]
    fn into_iter(self) -> WitnessItems<'a> {
        self.iter()
    }
}

/// Iterates over the items of a [`Witness`].
#[derive(Clone, Debug)]
pub struct WitnessItems<'a> {
    rest: &'a [u8],
    left: usize,
}

impl<'a> Iterator for WitnessItems<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let (length, used) = checked_compact_size(self.rest);
        let item = &self.rest[used..used + length];
        self.rest = &self.rest[used + length..];
        Some(item)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for WitnessItems<'_> {}
