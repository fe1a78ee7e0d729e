//! Padded messages as whole blocks.

/// A message split into blocks and padded, FIPS 180-4 section 5.1.1.
pub(crate) struct Padded<'a> {
    /// The blocks without padding.
    whole: &'a [[u8; 64]],
    /// The last bytes and the padding, in the first block or in both.
    tail: [[u8; 64]; 2],
    blocks: usize,
}

impl<'a> Padded<'a> {
    /// An empty slot.
    pub(crate) const NONE: Self = Self { whole: &[], tail: [[0; 64]; 2], blocks: 0 };

    #[inline]
    pub(crate) fn new(message: &'a [u8]) -> Self {
        let (whole, rest) = message.as_chunks::<64>();
        let mut tail = [[0; 64]; 2];
        tail[0][..rest.len()].copy_from_slice(rest);
        tail[0][rest.len()] = 0x80;
        let last = usize::from(rest.len() >= 56);
        tail[last][56..].copy_from_slice(&(message.len() as u64).wrapping_mul(8).to_be_bytes());
        Self { whole, tail, blocks: whole.len() + 1 + last }
    }

    /// Blocks of a message of `length` bytes.
    #[inline]
    pub(crate) fn count(length: usize) -> usize {
        // One byte of 0x80 and eight of length must fit after the message.
        length / 64 + 1 + usize::from(length % 64 >= 56)
    }

    /// At least one.
    #[inline]
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// Block `index`; past the end an arbitrary block, for finished lanes.
    #[inline]
    pub(crate) fn block(&self, index: usize) -> &[u8; 64] {
        match self.whole.get(index) {
            Some(block) => block,
            None => &self.tail[(index - self.whole.len()).min(1)],
        }
    }
}
