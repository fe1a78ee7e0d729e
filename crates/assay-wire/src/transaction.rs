//! Transactions: owned, and as a view shared with blocks.

use assay_hash::{Sha256, sha256d};

use crate::error::{ParseError, ParseErrorKind};
use crate::id::{OutPoint, Txid, Wtxid};
use crate::layout::{Offsets, TxLayout, check_length, parse_tx};
use crate::reader::{Reader, checked_compact_size};
use crate::witness::Witness;
use crate::{Encoding, Script};

/// One transaction that owns its bytes.
#[derive(Clone, Debug)]
pub struct Transaction {
    bytes: Box<[u8]>,
    layout: TxLayout,
    offsets: Offsets,
}

impl Transaction {
    /// Parses exactly one transaction.
    ///
    /// # Errors
    /// When the bytes are not exactly one transaction.
    pub fn parse(bytes: impl Into<Box<[u8]>>, encoding: Encoding) -> Result<Self, ParseError> {
        let bytes = bytes.into();
        check_length(&bytes)?;
        let mut reader = Reader::new(&bytes, 0);
        let mut offsets = Offsets::default();
        let layout = parse_tx(&mut reader, encoding, &mut offsets)?;
        if reader.remaining() != 0 {
            return reader.fail(ParseErrorKind::TrailingBytes);
        }
        Ok(Self { bytes, layout, offsets })
    }

    /// Parses and copies the transaction at the start of `bytes`; [`Tx::total_size`] is its length.
    ///
    /// # Errors
    /// When the bytes do not begin with a whole transaction.
    pub fn parse_first(bytes: &[u8], encoding: Encoding) -> Result<Self, ParseError> {
        // Offsets are 32 bits wide; no transaction is nearly as long.
        let bytes = &bytes[..bytes.len().min(u32::MAX as usize)];
        let mut reader = Reader::new(bytes, 0);
        let mut offsets = Offsets::default();
        let layout = parse_tx(&mut reader, encoding, &mut offsets)?;
        Ok(Self { bytes: bytes[..reader.position()].into(), layout, offsets })
    }

    /// The view for reading the transaction.
    #[inline]
    pub fn view(&self) -> Tx<'_> {
        Tx::new(&self.bytes, &self.layout, &self.offsets)
    }

    /// The serialised transaction.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// A view of a serialised transaction.
#[derive(Clone, Copy, Debug)]
pub struct Tx<'a> {
    bytes: &'a [u8],
    layout: &'a TxLayout,
    inputs: &'a [u32],
    outputs: &'a [u32],
    witnesses: &'a [u32],
}

/// A decoded input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxIn<'a> {
    /// The spent output.
    pub prevout: OutPoint,
    /// The unlocking script.
    pub script_sig: &'a [u8],
    /// Sequence number (BIP68, and finality of the lock time).
    pub sequence: u32,
}

/// A decoded output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxOut<'a> {
    /// In satoshi; unchecked, may be negative or out of range.
    pub value: i64,
    /// The locking script.
    pub script_pubkey: &'a [u8],
}

impl TxOut<'_> {
    /// An owned copy of the locking script.
    pub fn to_script(&self) -> Script {
        Script::from(self.script_pubkey)
    }
}

impl<'a> Tx<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8], layout: &'a TxLayout, offsets: &'a Offsets) -> Self {
        let range = |first: u32, count: u32| first as usize..first as usize + count as usize;
        let witnesses = if layout.has_witness() {
            &offsets.witnesses[range(layout.first_witness, layout.input_count)]
        } else {
            &[]
        };
        Self {
            bytes,
            layout,
            inputs: &offsets.inputs[range(layout.first_input, layout.input_count)],
            outputs: &offsets.outputs[range(layout.first_output, layout.output_count)],
            witnesses,
        }
    }

    #[inline]
    fn i32_at(&self, position: u32) -> i32 {
        let at = position as usize;
        i32::from_le_bytes([
            self.bytes[at],
            self.bytes[at + 1],
            self.bytes[at + 2],
            self.bytes[at + 3],
        ])
    }

    /// The version as a signed number, as consensus rules compare it.
    #[inline]
    pub fn version(&self) -> i32 {
        self.i32_at(self.layout.start)
    }

    /// The lock time: a height below 500,000,000, otherwise a time.
    #[inline]
    pub fn lock_time(&self) -> u32 {
        self.i32_at(self.layout.end - 4) as u32
    }

    /// Number of inputs.
    #[inline]
    pub fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// Number of outputs.
    #[inline]
    pub fn output_count(&self) -> usize {
        self.outputs.len()
    }

    /// The input at `index`.
    ///
    /// # Panics
    /// When `index` is out of range.
    #[inline]
    pub fn input(&self, index: usize) -> TxIn<'a> {
        let at = self.inputs[index] as usize;
        let rest = &self.bytes[at..];
        let (script_length, size_bytes) = checked_compact_size(&rest[36..]);
        let script = 36 + size_bytes;
        let after = script + script_length;
        let mut outpoint = [0u8; 36];
        outpoint.copy_from_slice(&rest[..36]);
        TxIn {
            prevout: OutPoint::from_bytes(&outpoint),
            script_sig: &rest[script..after],
            sequence: u32::from_le_bytes([
                rest[after],
                rest[after + 1],
                rest[after + 2],
                rest[after + 3],
            ]),
        }
    }

    /// The output at `index`.
    ///
    /// # Panics
    /// When `index` is out of range.
    #[inline]
    pub fn output(&self, index: usize) -> TxOut<'a> {
        let at = self.outputs[index] as usize;
        let rest = &self.bytes[at..];
        let (script_length, size_bytes) = checked_compact_size(&rest[8..]);
        let mut value = [0u8; 8];
        value.copy_from_slice(&rest[..8]);
        let script = 8 + size_bytes;
        TxOut {
            value: i64::from_le_bytes(value),
            script_pubkey: &rest[script..script + script_length],
        }
    }

    /// All inputs in order.
    #[inline]
    pub fn inputs(self) -> impl ExactSizeIterator<Item = TxIn<'a>> + Clone {
        (0..self.inputs.len()).map(move |index| self.input(index))
    }

    /// All outputs in order.
    #[inline]
    pub fn outputs(self) -> impl ExactSizeIterator<Item = TxOut<'a>> + Clone {
        (0..self.outputs.len()).map(move |index| self.output(index))
    }

    /// The witness of the input at `index`; empty if the transaction has none.
    #[inline]
    pub fn witness(&self, index: usize) -> Witness<'a> {
        match self.witnesses.get(index) {
            Some(at) => Witness::at(&self.bytes[*at as usize..]),
            None => Witness::EMPTY,
        }
    }

    /// True if the serialisation includes witnesses.
    #[inline]
    pub fn has_witness(&self) -> bool {
        self.layout.has_witness()
    }

    /// The whole serialisation, witnesses included.
    #[inline]
    pub fn raw(&self) -> &'a [u8] {
        &self.bytes[self.layout.start as usize..self.layout.end as usize]
    }

    /// Offset of the transaction in the parsed bytes.
    #[inline]
    pub fn offset(&self) -> usize {
        self.layout.start as usize
    }

    /// Length of the whole serialisation.
    #[inline]
    pub fn total_size(&self) -> usize {
        (self.layout.end - self.layout.start) as usize
    }

    /// Length of the serialisation without marker, flag and witnesses.
    #[inline]
    pub fn stripped_size(&self) -> usize {
        (self.layout.body_end - self.layout.body) as usize + 8
    }

    /// BIP141 weight.
    #[inline]
    pub fn weight(&self) -> usize {
        self.stripped_size() * 3 + self.total_size()
    }

    /// Three slices whose concatenation is the serialisation without witnesses.
    #[inline]
    pub fn stripped_parts(&self) -> [&'a [u8]; 3] {
        let layout = self.layout;
        [
            &self.bytes[layout.start as usize..layout.start as usize + 4],
            &self.bytes[layout.body as usize..layout.body_end as usize],
            &self.bytes[layout.end as usize - 4..layout.end as usize],
        ]
    }

    /// The serialised outputs without their count: the data of `hashOutputs` (BIP143).
    #[inline]
    pub fn outputs_raw(&self) -> &'a [u8] {
        match self.outputs.first() {
            Some(first) => &self.bytes[*first as usize..self.layout.body_end as usize],
            None => &[],
        }
    }

    /// The serialised outputs with their count, as in legacy signature hashes.
    #[inline]
    pub fn outputs_with_count_raw(&self) -> &'a [u8] {
        &self.bytes[self.layout.output_count_at as usize..self.layout.body_end as usize]
    }

    /// True if the serialisation has no witnesses.
    #[inline]
    pub(crate) fn is_stripped(&self) -> bool {
        !self.has_witness() && self.layout.body == self.layout.start + 4
    }

    /// Hash without witnesses; computed on every call. [`Block::txids`](crate::Block::txids) is faster for many.
    pub fn txid(&self) -> Txid {
        if self.is_stripped() {
            return Txid(sha256d(self.raw()));
        }
        let mut hasher = Sha256::new();
        for part in self.stripped_parts() {
            hasher.update(part);
        }
        Txid(hasher.finalize_double())
    }

    /// Hash with witnesses; computed on every call.
    pub fn wtxid(&self) -> Wtxid {
        if self.has_witness() { Wtxid(sha256d(self.raw())) } else { Wtxid(self.txid().0) }
    }

    /// True for a coinbase: a single input with a null prevout.
    #[inline]
    pub fn is_coinbase(&self) -> bool {
        self.inputs.len() == 1 && self.input(0).prevout.is_null()
    }

    /// An owned copy.
    pub fn to_owned_transaction(&self) -> Transaction {
        let start = self.layout.start;
        let shift = |offsets: &[u32]| offsets.iter().map(|at| at - start).collect();
        let layout = TxLayout {
            start: 0,
            end: self.layout.end - start,
            body: self.layout.body - start,
            output_count_at: self.layout.output_count_at - start,
            body_end: self.layout.body_end - start,
            first_input: 0,
            first_output: 0,
            first_witness: 0,
            ..*self.layout
        };
        Transaction {
            bytes: self.raw().into(),
            layout,
            offsets: Offsets {
                inputs: shift(self.inputs),
                outputs: shift(self.outputs),
                witnesses: shift(self.witnesses),
            },
        }
    }
}
