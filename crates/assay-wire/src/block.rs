//! A block that owns its bytes, with the offsets of its parts.

use std::ops::Range;

use assay_hash::{Backend, sha256d_many_with};

use crate::Encoding;
use crate::error::{ParseError, ParseErrorKind};
use crate::header::Header;
use crate::id::{BlockHash, Txid, Wtxid};
use crate::layout::{Offsets, TX_BYTES_MIN, TxLayout, check_length, parse_tx};
use crate::reader::Reader;
use crate::transaction::Tx;

/// A parsed block.
#[derive(Clone, Debug)]
pub struct Block {
    bytes: Vec<u8>,
    header: Header,
    txs: Vec<TxLayout>,
    offsets: Offsets,
}

impl Block {
    /// Parses exactly one block.
    ///
    /// # Errors
    /// When the bytes are not exactly one block.
    pub fn parse(bytes: Vec<u8>, encoding: Encoding) -> Result<Self, ParseError> {
        let length = bytes.len();
        let block = Self::parse_prefix(bytes, encoding)?;
        if block.bytes.len() < length {
            let offset = block.bytes.len();
            return Err(ParseError { offset, kind: ParseErrorKind::TrailingBytes });
        }
        Ok(block)
    }

    /// Parses the block at the start of `bytes` and drops the rest, as Core does with blocks submitted by users (`core_io.cpp`,
    /// `DecodeHexBlk`).
    ///
    /// # Errors
    /// When the bytes do not start with a block.
    pub fn parse_prefix(mut bytes: Vec<u8>, encoding: Encoding) -> Result<Self, ParseError> {
        check_length(&bytes)?;
        let mut reader = Reader::new(&bytes, 0);
        let header = Header::parse(reader.take::<80>()?);
        let count = reader.count(TX_BYTES_MIN)?;
        let mut txs = Vec::with_capacity(count);
        let mut offsets = Offsets::for_block(reader.remaining());
        for _ in 0..count {
            txs.push(parse_tx(&mut reader, encoding, &mut offsets)?);
        }
        let end = reader.position();
        bytes.truncate(end);
        Ok(Self { bytes, header, txs, offsets })
    }

    /// The header.
    #[inline]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The hash of the header; computed on every call.
    pub fn hash(&self) -> BlockHash {
        self.header.hash()
    }

    /// Number of transactions, coinbase included.
    #[inline]
    pub fn tx_count(&self) -> usize {
        self.txs.len()
    }

    /// The transaction at `index`; 0 is the coinbase.
    ///
    /// # Panics
    /// When `index` is out of range.
    #[inline]
    pub fn tx(&self, index: usize) -> Tx<'_> {
        Tx::new(&self.bytes, &self.txs[index], &self.offsets)
    }

    /// All transactions in block order.
    #[inline]
    pub fn txs(&self) -> impl ExactSizeIterator<Item = Tx<'_>> + Clone {
        (0..self.txs.len()).map(move |index| self.tx(index))
    }

    /// Number of inputs of all transactions, the coinbase's included.
    #[inline]
    pub fn input_count(&self) -> usize {
        self.offsets.inputs.len()
    }

    /// Number of outputs of all transactions.
    #[inline]
    pub fn output_count(&self) -> usize {
        self.offsets.outputs.len()
    }

    /// Index, among all inputs of the block, of the first input of the transaction at `tx_index`.
    #[inline]
    pub fn first_input_of(&self, tx_index: usize) -> usize {
        self.txs[tx_index].first_input as usize
    }

    /// Length without witnesses, as the size rule of BIP141 counts it.
    #[inline]
    pub fn stripped_size(&self) -> usize {
        let witness_bytes: usize = self.txs().map(|tx| tx.total_size() - tx.stripped_size()).sum();
        self.bytes.len() - witness_bytes
    }

    /// BIP141 weight.
    #[inline]
    pub fn weight(&self) -> usize {
        self.stripped_size() * 3 + self.bytes.len()
    }

    /// The txids of the transactions in `range`; computed on every call, in batches.
    ///
    /// # Panics
    /// When the range exceeds the block.
    pub fn txids(&self, range: Range<usize>) -> Vec<Txid> {
        let mut txids = Vec::with_capacity(range.len());
        let mut stripped = Vec::new();
        for start in range.clone().step_by(HASHED_AT_ONCE) {
            let part = start..range.end.min(start + HASHED_AT_ONCE);
            stripped.clear();
            for tx in part.clone().map(|index| self.tx(index)).filter(|tx| !tx.is_stripped()) {
                tx.stripped_parts().iter().for_each(|part| stripped.extend_from_slice(part));
            }
            let mut rest = &stripped[..];
            let message = |index| {
                let tx = self.tx(index);
                if tx.is_stripped() {
                    return tx.raw();
                }
                rest.split_off(..tx.stripped_size()).unwrap_or_default()
            };
            let messages: Vec<&[u8]> = part.map(message).collect();
            hash_into(&messages, &mut txids, Txid);
        }
        txids
    }

    /// The wtxids of the transactions in `range`, from their txids: without a witness the two are equal. Computed on every call,
    /// in batches.
    ///
    /// # Panics
    /// When the range exceeds the block, or the length of `txids` differs from it.
    pub fn wtxids(&self, range: Range<usize>, txids: &[Txid]) -> Vec<Wtxid> {
        assert_eq!(range.len(), txids.len(), "one txid per transaction");
        let mut wtxids: Vec<Wtxid> = txids.iter().map(|txid| Wtxid(txid.0)).collect();
        let first = range.start;
        let with_witness: Vec<usize> =
            range.filter(|index| self.txs[*index].has_witness()).collect();
        let mut hashed = Vec::new();
        for part in with_witness.chunks(HASHED_AT_ONCE) {
            let messages: Vec<&[u8]> = part.iter().map(|index| self.tx(*index).raw()).collect();
            hashed.clear();
            hash_into(&messages, &mut hashed, Wtxid);
            for (index, wtxid) in part.iter().zip(&hashed) {
                wtxids[index - first] = *wtxid;
            }
        }
        wtxids
    }

    /// The serialised block.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the serialised block.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// Transactions hashed per batch: enough for groups of equal length, and few enough for the cache.
const HASHED_AT_ONCE: usize = 1024;

fn hash_into<T>(messages: &[&[u8]], ids: &mut Vec<T>, id: fn([u8; 32]) -> T) {
    let mut digests = vec![[0; 32]; messages.len()];
    sha256d_many_with(Backend::detect(), messages, &mut digests);
    ids.extend(digests.into_iter().map(id));
}

/// The txid of the first transaction of a serialised block, which may be truncated; `None` if that transaction is incomplete.
pub fn first_tx(prefix: &[u8], encoding: Encoding) -> Option<Txid> {
    let mut reader = Reader::new(prefix, 0);
    reader.skip(Header::SIZE).ok()?;
    reader.compact_size().ok()?;
    let mut offsets = Offsets::default();
    let layout = parse_tx(&mut reader, encoding, &mut offsets).ok()?;
    Some(Tx::new(prefix, &layout, &offsets).txid())
}
