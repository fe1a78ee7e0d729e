//! Compact blocks (BIP152): a block as its header and short transaction ids, and the exchange of missing transactions.

use assay_hash::{SipHash24, sha256};

use super::items::{Item, Items};
use crate::Encoding;
use crate::encode::compact_size;
use crate::error::{ParseError, ParseErrorKind};
use crate::header::Header;
use crate::id::{BlockHash, Wtxid};
use crate::layout::{Offsets, TX_BYTES_MIN, parse_tx};
use crate::reader::Reader;

/// Six bytes of a keyed hash of a transaction's wtxid (its txid on Bitcoin Cash).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShortId(u64);

/// Key of the short ids: different in every compact block.
#[derive(Clone, Copy, Debug)]
pub struct ShortIdKey(SipHash24);

/// A full transaction in a compact block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefilled<'a> {
    /// Index in the block.
    pub index: u32,
    /// The serialised transaction.
    pub raw: &'a [u8],
}

/// `cmpctblock`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompactBlock<'a> {
    /// The block's header.
    pub header: Header,
    /// Randomises the short ids.
    pub nonce: u64,
    /// Short ids of the other transactions, in block order.
    pub short_ids: Items<'a, ShortId>,
    /// Full transactions, in index order.
    pub prefilled: Vec<Prefilled<'a>>,
}

/// `getblocktxn`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTxsRequest {
    /// Hash of the block.
    pub block: BlockHash,
    /// Indexes of the requested transactions, ascending.
    pub indexes: Vec<u32>,
}

/// `blocktxn`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTxs<'a> {
    /// Hash of the block.
    pub block: BlockHash,
    /// The serialised transactions, in the order of the request.
    pub txs: Vec<&'a [u8]>,
}

impl ShortIdKey {
    /// The key of a block's compact form.
    pub fn new(header: &Header, nonce: u64) -> Self {
        let mut data = header.to_bytes().to_vec();
        data.extend_from_slice(&nonce.to_le_bytes());
        let hash = sha256(&data);
        let (words, _) = hash.as_chunks::<8>();
        Self(SipHash24::new(u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])))
    }

    /// The short id of a transaction.
    #[inline]
    pub fn short_id(&self, wtxid: &Wtxid) -> ShortId {
        ShortId(self.0.hash(&wtxid.0) & 0xffff_ffff_ffff)
    }
}

impl Item for ShortId {
    const SIZE: usize = 6;

    fn read(bytes: &[u8]) -> Self {
        let mut word = [0; 8];
        word[..6].copy_from_slice(&bytes[..6]);
        Self(u64::from_le_bytes(word))
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_le_bytes()[..6]);
    }
}

impl<'a> CompactBlock<'a> {
    /// Parses a payload with at most `txs_max` transactions, short ids and prefilled together.
    ///
    /// # Errors
    /// When the payload is malformed. Indexes may still be outside the block: see [`CompactBlock::is_whole`].
    pub fn parse(
        payload: &'a [u8],
        encoding: Encoding,
        txs_max: usize,
    ) -> Result<Self, ParseError> {
        let mut reader = Reader::new(payload, 0);
        let header = Header::parse(reader.take::<{ Header::SIZE }>()?);
        let nonce = u64::from_le_bytes(*reader.take()?);
        let short_ids: Items<'a, ShortId> = Items::parse(&mut reader, txs_max)?;
        let at = reader.position();
        let count = reader.count(1 + TX_BYTES_MIN)?;
        let count_all = short_ids.len() + count;
        if count_all > txs_max {
            let kind = ParseErrorKind::TooMany { count: count_all };
            return Err(ParseError { offset: at, kind });
        }
        let mut prefilled = Vec::with_capacity(count);
        let mut next = 0;
        for _ in 0..count {
            let index = differential(&mut reader, &mut next, u64::from(u32::MAX))?;
            prefilled.push(Prefilled { index, raw: raw_tx(&mut reader, payload, encoding)? });
        }
        Ok(Self { header, nonce, short_ids, prefilled })
    }

    /// Number of transactions.
    pub fn tx_count(&self) -> usize {
        self.short_ids.len() + self.prefilled.len()
    }

    /// True if there are transactions, and every index up to the last has a short id or a transaction.
    pub fn is_whole(&self) -> bool {
        let names = self.short_ids.len();
        let has_room = |(before, tx): (usize, &Prefilled<'_>)| tx.index as usize <= names + before;
        self.tx_count() > 0 && self.prefilled.iter().enumerate().all(has_room)
    }

    /// Appends the encoded payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.header.to_bytes());
        out.extend_from_slice(&self.nonce.to_le_bytes());
        self.short_ids.encode(out);
        compact_size(out, self.prefilled.len() as u64);
        let mut next = 0;
        for Prefilled { index, raw } in &self.prefilled {
            compact_size(out, u64::from(*index) - next);
            next = u64::from(*index) + 1;
            out.extend_from_slice(raw);
        }
    }
}

impl BlockTxsRequest {
    /// Parses a payload with indexes below `txs_max`.
    ///
    /// # Errors
    /// When the payload is malformed.
    pub fn parse(payload: &[u8], txs_max: usize) -> Result<Self, ParseError> {
        let mut reader = Reader::new(payload, 0);
        let block = BlockHash(*reader.take()?);
        let count = reader.count(1)?;
        let mut next = 0;
        let index = |_| differential(&mut reader, &mut next, txs_max as u64);
        let indexes = (0..count).map(index).collect::<Result<_, _>>()?;
        Ok(Self { block, indexes })
    }

    /// Appends the encoded payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.block.0);
        compact_size(out, self.indexes.len() as u64);
        let mut next = 0;
        for index in &self.indexes {
            compact_size(out, u64::from(*index) - next);
            next = u64::from(*index) + 1;
        }
    }
}

impl<'a> BlockTxs<'a> {
    /// Parses a payload.
    ///
    /// # Errors
    /// When the payload is malformed.
    pub fn parse(payload: &'a [u8], encoding: Encoding) -> Result<Self, ParseError> {
        let mut reader = Reader::new(payload, 0);
        let block = BlockHash(*reader.take()?);
        let count = reader.count(TX_BYTES_MIN)?;
        let tx = |_| raw_tx(&mut reader, payload, encoding);
        let txs = (0..count).map(tx).collect::<Result<_, _>>()?;
        Ok(Self { block, txs })
    }

    /// Appends the encoded payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.block.0);
        compact_size(out, self.txs.len() as u64);
        self.txs.iter().for_each(|raw| out.extend_from_slice(raw));
    }
}

/// An index, encoded as the difference from the previous one plus one (Core `blockencodings.h`, `DifferenceFormatter`); at most
/// `max`.
fn differential(reader: &mut Reader<'_>, next: &mut u64, max: u64) -> Result<u32, ParseError> {
    let offset = reader.position();
    let index = *next + reader.compact_size()?;
    *next = index + 1;
    let count = usize::try_from(index).unwrap_or(usize::MAX);
    let too_many = ParseError { offset, kind: ParseErrorKind::TooMany { count } };
    u32::try_from(index).ok().filter(|index| u64::from(*index) <= max).ok_or(too_many)
}

fn raw_tx<'a>(
    reader: &mut Reader<'a>,
    payload: &'a [u8],
    encoding: Encoding,
) -> Result<&'a [u8], ParseError> {
    let start = reader.position();
    parse_tx(reader, encoding, &mut Offsets::default())?;
    Ok(&payload[start..reader.position()])
}

/// Maximum transactions of a block in compact form on chains with a weight limit (Core `blockencodings.h`: indexes have 16 bits).
pub const COMPACT_TXS_MAX: usize = u16::MAX as usize;

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header {
        version: 1,
        prev_block: BlockHash([7; 32]),
        merkle_root: [8; 32],
        time: 9,
        bits: 10,
        nonce: 11,
    };
    /// No inputs and no outputs.
    const TX: [u8; 10] = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0];

    fn block<'a>(ids: &'a [ShortId], places: &[u32]) -> CompactBlock<'a> {
        let prefilled = places.iter().map(|index| Prefilled { index: *index, raw: &TX }).collect();
        CompactBlock { header: HEADER, nonce: 12, short_ids: ids.into(), prefilled }
    }

    #[test]
    fn written_filters_parse() {
        let key = ShortIdKey::new(&HEADER, 12);
        let ids = [1, 2, 3].map(|byte| key.short_id(&Wtxid([byte; 32])));
        let written = block(&ids, &[0, 2, 4]);
        let mut payload = Vec::new();
        written.encode(&mut payload);
        let read = CompactBlock::parse(&payload, Encoding::Segwit, COMPACT_TXS_MAX).unwrap();
        assert_eq!(read, written);
        assert!(read.is_whole() && read.tx_count() == 6);
        assert!(CompactBlock::parse(&payload, Encoding::Segwit, 5).is_err());
        for length in 0..payload.len() {
            let part = &payload[..length];
            assert!(CompactBlock::parse(part, Encoding::Segwit, COMPACT_TXS_MAX).is_err());
        }

        let request =
            BlockTxsRequest { block: BlockHash([3; 32]), indexes: vec![0, 1, 300, 65_535] };
        payload.clear();
        request.encode(&mut payload);
        assert_eq!(BlockTxsRequest::parse(&payload, COMPACT_TXS_MAX).unwrap(), request);
        assert!(BlockTxsRequest::parse(&payload, 65_534).is_err());

        let txs = BlockTxs { block: BlockHash([3; 32]), txs: vec![&TX, &TX] };
        payload.clear();
        txs.encode(&mut payload);
        assert_eq!(BlockTxs::parse(&payload, Encoding::Segwit).unwrap(), txs);
    }

    #[test]
    fn rejects_indexes_outside_the_block() {
        let ids = [ShortId(1), ShortId(2)];
        assert!(block(&ids, &[2]).is_whole());
        assert!(block(&ids, &[0, 3]).is_whole());
        assert!(!block(&ids, &[3]).is_whole());
        assert!(!block(&[], &[1]).is_whole());
        assert!(!block(&[], &[]).is_whole());
    }
}
