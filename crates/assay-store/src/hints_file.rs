//! Hints files: the unspent outputs of each block at a height (BIP 456, draft of August 2026).
//!
//! A block has a list of ascending indices in the encoding of Elias and Fano: some low bits of each index, and the rest in unary,
//! as steps from the previous index. An index counts the spendable outputs of the block; the caller knows which these are.
//! Layout and sources: `docs/formats.md`.
//!
//! The reader accepts a single encoding of each list, so files that differ have different contents, or are invalid.

use std::io::{self, Read, Write};

use assay_wire::encode::compact_size;

/// Damage with its offset in the file: the start of the hints of that height, or of the bytes after the last ones.
#[derive(Debug, thiserror::Error)]
pub enum HintsError {
    #[error("is no hints file (BIP 456): it does not begin with the bytes `UTXO`")]
    Magic,
    #[error("is a hints file of version {version}; version 0 is supported")]
    Version { version: u8 },
    #[error(
        "ends at offset {offset}, within the hints of height {height} or before them: it is cut off, or has no entry for the \
         genesis block, as drafts of BIP 456 had it; copy it or make it again"
    )]
    Cut { height: u32, offset: u64 },
    #[error(
        "offset {offset}: the hints of height {height} are damaged: {what}; copy or make the file again"
    )]
    Format { height: u32, offset: u64, what: &'static str },
    #[error(
        "offset {offset}: bytes follow the hints of height {height}, which are the last ones; copy or make the file again"
    )]
    Trailing { height: u32, offset: u64 },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Encoded indices of the unspent outputs of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockHints {
    count: u32,
    /// The greatest index; 0 if there is none.
    max: u32,
    /// Low bits of all indices; those of an index begin with the least significant bit.
    low: Vec<u8>,
    /// For each index one zero per step of its high part above the previous one, then a one.
    high: Vec<u8>,
}

impl BlockHints {
    /// Encodes indices.
    ///
    /// # Panics
    /// They do not ascend, or one is above [`BlockHints::INDEX_MAX`].
    pub fn new(indices: &[u32]) -> Self {
        assert!(indices.is_sorted_by(|a, b| a < b), "indices ascend");
        let Some(&max) = indices.last() else { return Self::default() };
        assert!(max <= Self::INDEX_MAX, "no block has that many outputs");
        let count = indices.len() as u32;
        let lengths = Lengths::of(count, max);
        let (mut low, mut high) = (vec![0; lengths.low], vec![0; lengths.high]);
        for (at, index) in indices.iter().enumerate() {
            for bit in 0..lengths.low_bits {
                if index >> bit & 1 == 1 {
                    set(&mut low, at * lengths.low_bits + bit);
                }
            }
            set(&mut high, (index >> lengths.low_bits) as usize + at);
        }
        Self { count, max, low, high }
    }

    pub fn len(&self) -> usize {
        self.count as usize
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The indices, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let low_bits = if self.count == 0 { 0 } else { Lengths::of(self.count, self.max).low_bits };
        let mut next = 0;
        (0..self.len()).map_while(move |at| {
            let one = next_one(&self.high, next)?;
            next = one + 1;
            let low = (0..low_bits)
                .filter(|bit| is_set(&self.low, at * low_bits + bit))
                .fold(0, |low, bit| low | 1 << bit);
            Some(((one - at) as u32) << low_bits | low)
        })
    }

    pub fn write(&self, out: &mut Vec<u8>) {
        compact_size(out, self.count.into());
        if self.count > 0 {
            compact_size(out, self.max.into());
            out.extend_from_slice(&self.low);
            out.extend_from_slice(&self.high);
        }
    }

    /// Checks that these bytes are the unique encoding of ascending indices; the error describes the fault.
    fn check(&self) -> Result<(), &'static str> {
        let ones: u32 = self.high.iter().map(|byte| byte.count_ones()).sum();
        if ones != self.count {
            return Err("not as many indices as it says");
        }
        let mut before = None;
        for index in self.iter() {
            if before.is_some_and(|before| before >= index) {
                return Err("indices do not ascend");
            }
            before = Some(index);
        }
        if before != Some(self.max) {
            return Err("the greatest index is another one than it says");
        }
        let used = self.len() * Lengths::of(self.count, self.max).low_bits;
        if (used..self.low.len() * 8).any(|bit| is_set(&self.low, bit)) {
            return Err("bits behind the last index are set");
        }
        Ok(())
    }

    /// Largest index that is read or written. A block with that number of outputs has 300 MB; the limit bounds memory.
    pub const INDEX_MAX: u32 = (1 << 25) - 1;
}

/// Sizes of the parts of an encoding.
struct Lengths {
    low_bits: usize,
    /// Bytes of the low bits.
    low: usize,
    /// Bytes of the high parts.
    high: usize,
}

impl Lengths {
    /// For `count` indices, from 1 to `max` + 1 of them, the largest of which is `max`.
    fn of(count: u32, max: u32) -> Self {
        let low_bits = ((u64::from(max) + 1) / u64::from(count)).ilog2() as usize;
        let low = (count as usize * low_bits).div_ceil(8);
        let high = (count as usize + (max >> low_bits) as usize).div_ceil(8);
        Self { low_bits, low, high }
    }
}

/// Bit 0 of a byte is the most significant one.
fn set(bytes: &mut [u8], bit: usize) {
    bytes[bit / 8] |= 0x80 >> (bit % 8);
}

fn is_set(bytes: &[u8], bit: usize) -> bool {
    bytes[bit / 8] & 0x80 >> (bit % 8) != 0
}

/// Position of the first set bit from `from` on.
fn next_one(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from / 8;
    let mut byte = bytes.get(at)? & 0xff >> (from % 8);
    while byte == 0 {
        at += 1;
        byte = *bytes.get(at)?;
    }
    Some(at * 8 + byte.leading_zeros() as usize)
}

/// Writes a hints file, block after block from the genesis block on.
#[derive(Debug)]
pub struct HintsWriter<W> {
    out: W,
    height: u32,
    blocks: u64,
    bytes: Vec<u8>,
}

impl<W: Write> HintsWriter<W> {
    /// Starts a file of the outputs unspent at `height`.
    pub fn new(mut out: W, height: u32) -> io::Result<Self> {
        out.write_all(&MAGIC)?;
        out.write_all(&[VERSION])?;
        out.write_all(&height.to_le_bytes())?;
        Ok(Self { out, height, blocks: 0, bytes: Vec::new() })
    }

    /// Adds the next block: the ascending indices of its unspent outputs, counted among the spendable ones.
    ///
    /// # Panics
    /// As [`BlockHints::new`].
    pub fn push(&mut self, indices: &[u32]) -> io::Result<()> {
        self.bytes.clear();
        BlockHints::new(indices).write(&mut self.bytes);
        self.blocks += 1;
        self.out.write_all(&self.bytes)
    }

    /// Completes and flushes the file.
    ///
    /// # Panics
    /// The number of blocks is not `height` + 1.
    pub fn finish(mut self) -> io::Result<W> {
        assert_eq!(self.blocks, u64::from(self.height) + 1, "a list for each block");
        self.out.flush()?;
        Ok(self.out)
    }
}

/// Reads a hints file block by block; memory holds the hints of one block.
#[derive(Debug)]
pub struct HintsReader<R> {
    input: R,
    offset: u64,
    /// Height of the next hints; `last` + 1 at the end.
    next: u64,
    last: u32,
}

impl<R: Read> HintsReader<R> {
    /// Bytes before the hints of the first block.
    pub const HEAD_BYTES: u64 = 9;

    /// Reads the header.
    pub fn new(mut input: R) -> Result<Self, HintsError> {
        let mut head = Vec::new();
        input.by_ref().take(Self::HEAD_BYTES).read_to_end(&mut head)?;
        let (magic, rest) = head.split_first_chunk::<4>().ok_or(HintsError::Magic)?;
        if *magic != MAGIC {
            return Err(HintsError::Magic);
        }
        let offset = head.len() as u64;
        let cut = HintsError::Cut { height: 0, offset };
        let Some((&version, height)) = rest.split_first() else { return Err(cut) };
        if version != VERSION {
            return Err(HintsError::Version { version });
        }
        let Ok(height) = height.try_into() else { return Err(cut) };
        Ok(Self { input, offset, next: 0, last: u32::from_le_bytes(height) })
    }

    /// Continues with a piece of a file that starts at `offset` and has the hints of these heights, both included.
    pub fn of_piece(input: R, offset: u64, (first, last): (u32, u32)) -> Self {
        Self { input, offset, next: first.into(), last }
    }

    /// Last height with hints, at which the outputs are unspent.
    pub fn height(&self) -> u32 {
        self.last
    }

    /// Offset of the next hints in the file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The hints of the next block; `None` after the last one.
    pub fn next_block(&mut self) -> Result<Option<BlockHints>, HintsError> {
        let offset = self.offset;
        let Some(height) = u32::try_from(self.next).ok().filter(|next| *next <= self.last) else {
            let mut more = Vec::new();
            self.input.by_ref().take(1).read_to_end(&mut more)?;
            let trailing = HintsError::Trailing { height: self.last, offset };
            return if more.is_empty() { Ok(None) } else { Err(trailing) };
        };
        let damaged = |what| HintsError::Format { height, offset, what };
        let count = self.number(height)?;
        let mut hints = BlockHints { count, ..BlockHints::default() };
        if count > 0 {
            hints.max = self.number(height)?;
            if hints.max > BlockHints::INDEX_MAX {
                return Err(damaged("no block has that many outputs"));
            }
            if count > hints.max + 1 {
                return Err(damaged("more indices than there are below the greatest"));
            }
            let lengths = Lengths::of(count, hints.max);
            hints.low = self.bytes(height, lengths.low)?;
            hints.high = self.bytes(height, lengths.high)?;
            hints.check().map_err(damaged)?;
        }
        self.next += 1;
        Ok(Some(hints))
    }

    /// A compact size of at most 32 bits in its shortest form.
    fn number(&mut self, height: u32) -> Result<u32, HintsError> {
        let offset = self.offset;
        let damaged = |what| HintsError::Format { height, offset, what };
        let first = self.bytes(height, 1)?[0];
        let length = match first {
            0..253 => return Ok(first.into()),
            253 => 2,
            254 => 4,
            255 => return Err(damaged("a number has more than 32 bits")),
        };
        let bytes = self.bytes(height, length)?;
        let number = bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
        if number < if length == 2 { 253 } else { 1 << 16 } {
            return Err(damaged("a number is not in its shortest form"));
        }
        Ok(number)
    }

    /// Reads `count` bytes. Memory grows with the bytes read, because a damaged count may be arbitrarily large.
    fn bytes(&mut self, height: u32, count: usize) -> Result<Vec<u8>, HintsError> {
        let mut bytes = Vec::new();
        self.input.by_ref().take(count as u64).read_to_end(&mut bytes)?;
        self.offset += bytes.len() as u64;
        if bytes.len() < count {
            return Err(HintsError::Cut { height, offset: self.offset });
        }
        Ok(bytes)
    }
}

const MAGIC: [u8; 4] = *b"UTXO";
const VERSION: u8 = 0;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(indices: &[u32]) -> Vec<u8> {
        let mut out = Vec::new();
        BlockHints::new(indices).write(&mut out);
        out
    }

    fn decoded(bytes: &[u8]) -> Result<Vec<u32>, HintsError> {
        let mut reader = HintsReader::of_piece(bytes, 0, (7, 7));
        let hints = reader.next_block()?.expect("a list");
        assert!(reader.next_block()?.is_none());
        assert_eq!(hints.len(), hints.iter().count());
        Ok(hints.iter().collect())
    }

    fn file(lists: &[Vec<u32>]) -> Vec<u8> {
        let mut writer = HintsWriter::new(Vec::new(), lists.len() as u32 - 1).unwrap();
        for list in lists {
            writer.push(list).unwrap();
        }
        writer.finish().unwrap()
    }

    fn lists(bytes: &[u8]) -> Result<Vec<Vec<u32>>, HintsError> {
        let mut reader = HintsReader::new(bytes)?;
        let mut found = Vec::new();
        while let Some(hints) = reader.next_block()? {
            found.push(hints.iter().collect());
        }
        assert_eq!(reader.offset(), bytes.len() as u64);
        Ok(found)
    }

    /// The formulas of the BIP, on text.
    fn oracle(indices: &[u32]) -> Vec<u8> {
        let Some(max) = indices.last() else { return vec![0] };
        let count = indices.len() as u64;
        let low_bits = (0..32).rfind(|bits| count << bits <= u64::from(*max) + 1).unwrap();
        let (mut low, mut high, mut before) = (String::new(), String::new(), 0);
        for index in indices {
            let text = format!("{index:032b}");
            low.extend(text.chars().rev().take(low_bits));
            let part = index >> low_bits;
            high.extend((before..part).map(|_| '0'));
            high.push('1');
            before = part;
        }
        let pack = |bits: &str| -> Vec<u8> {
            let byte = |bits: &[u8]| {
                let text = format!("{:0<8}", std::str::from_utf8(bits).unwrap());
                u8::from_str_radix(&text, 2).unwrap()
            };
            bits.as_bytes().chunks(8).map(byte).collect()
        };
        let number = |number: u64| match number {
            0..253 => vec![number as u8],
            253..0x1_0000 => [&[253][..], &(number as u16).to_le_bytes()].concat(),
            _ => [&[254][..], &(number as u32).to_le_bytes()].concat(),
        };
        [number(count), number(u64::from(*max)), pack(&low), pack(&high)].concat()
    }

    /// bip-0456/test_vectors/elias_fano.json: arithmetic progressions, by first index, step and number.
    #[test]
    fn published_vectors() {
        let vectors = [
            ((13, 3, 10), "0a288d8d8016ad50"),
            ((5, 7, 17), "11758d8d8d8d804a4949292524"),
            ((17, 3, 50), "32a4aaaaaaaaaaaa800094a5294a5294a5294a5294a5294a5290"),
        ];
        for ((first, step, count), hex) in vectors {
            let indices: Vec<u32> = (0..count).map(|at| first + at * step).collect();
            let bytes: Vec<u8> = (0..hex.len() / 2)
                .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
                .collect();
            assert_eq!(encoded(&indices), bytes);
            assert_eq!(decoded(&bytes).unwrap(), indices);
        }
        // The worked example of the text: the numbers, then 111100 and 101001, each filled up to a byte.
        assert_eq!(encoded(&[3, 7, 12]), [3, 12, 0b1111_0000, 0b1010_0100]);
        assert_eq!(encoded(&[]), [0]);
        assert_eq!(file(&[vec![], vec![0]]), b"UTXO\0\x01\0\0\0\0\x01\0\x80");
    }

    #[test]
    fn other_encodings_are_rejected() {
        let cases: [(&[u8], &str); 9] = [
            (&[255, 1, 0, 0, 0, 0, 0, 0, 0], "32 bits"),
            (&[253, 1, 0, 0, 0x80], "shortest form"),
            (&[254, 255, 0, 0, 0, 0], "shortest form"),
            (&[2, 0, 0xc0], "more indices"),
            (&[1, 254, 0, 0, 0, 2], "that many outputs"),
            (&[2, 1, 0x80], "as many indices"),
            (&[2, 2, 0xa0], "greatest index"),
            // 5 and 4 with two low bits, 16 the greatest.
            (&[3, 16, 0b1000_0000, 0b0110_0010], "ascend"),
            (&[3, 12, 0b1111_0001, 0b1010_0100], "bits behind"),
        ];
        for (bytes, words) in cases {
            let error = decoded(bytes).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("height 7"), "{bytes:?}: {error}");
        }
        let error = |bytes: &[u8]| lists(bytes).unwrap_err().to_string();
        assert!(error(b"UTXP\0\0\0\0\0\0").contains("`UTXO`"));
        assert!(error(b"UTXO\x01\0\0\0\0\0").contains("version 1"));
        assert!(error(b"UTXO\0\0\0\0\0\0\0").contains("offset 10: bytes follow"));
        // A greatest height, of which nothing is there.
        assert!(error(b"UTXO\0\xff\xff\xff\xff").contains("ends at offset 9"));
    }

    fn indices() -> impl Strategy<Value = Vec<u32>> {
        let steps = prop_oneof![
            proptest::collection::vec(1..4u32, 0..80),
            proptest::collection::vec(1..3000u32, 0..40),
            proptest::collection::vec(1..500_000u32, 0..8),
        ];
        steps.prop_map(|steps| {
            let sum = |sum: &mut u32, step| {
                *sum += step;
                Some(*sum - 1)
            };
            steps.into_iter().scan(0, sum).collect()
        })
    }

    proptest! {
        #[test]
        fn round_trip_as_the_oracle_has_it(indices in indices()) {
            let bytes = encoded(&indices);
            prop_assert_eq!(&bytes, &oracle(&indices));
            prop_assert_eq!(decoded(&bytes).unwrap(), indices);
        }

        #[test]
        fn cuts_and_turned_bits_are_noticed_or_say_something_else(
            all in proptest::collection::vec(indices(), 1..5)
        ) {
            let bytes = file(&all);
            prop_assert_eq!(&lists(&bytes).unwrap(), &all);
            for cut in 0..bytes.len() {
                prop_assert!(lists(&bytes[..cut]).is_err());
            }
            for bit in 0..bytes.len() * 8 {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                if let Ok(found) = lists(&changed) {
                    prop_assert!(found != all);
                    prop_assert_eq!(file(&found), changed);
                }
            }
        }
    }
}
