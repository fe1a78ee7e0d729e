//! Messages of compact block filters (BIP157).

use super::items::Items;
use crate::encode::var_bytes;
use crate::error::ParseError;
use crate::id::BlockHash;
use crate::reader::Reader;

/// Maximum filters per request (Core `net_processing.cpp`, `MAX_GETCFILTERS_SIZE`).
pub const FILTERS_MAX: u32 = 1000;
/// Maximum filter hashes per message (Core `net_processing.cpp`, `MAX_GETCFHEADERS_SIZE`).
pub const FILTER_HASHES_MAX: u32 = 2000;
/// Distance of the filter headers in `cfcheckpt`, in blocks (Core `index/blockfilterindex.h`, `CFCHECKPT_INTERVAL`).
pub const FILTER_CHECKPOINT_INTERVAL: u32 = 1000;

/// Filter type (BIP158).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterKind(pub u8);

impl FilterKind {
    /// The only filter type defined.
    pub const BASIC: Self = Self(0);
}

/// A request for filters, or for their hashes, on a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterRange {
    /// Filter type.
    pub kind: FilterKind,
    /// Height of the first block.
    pub start_height: u32,
    /// Hash of the last block.
    pub stop: BlockHash,
}

/// The filter of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockFilter<'a> {
    /// Filter type.
    pub kind: FilterKind,
    /// Hash of the block.
    pub block: BlockHash,
    /// The filter: see [`Filter::parse`](crate::filter::Filter::parse).
    pub filter: &'a [u8],
}

/// Filter hashes, from which the filter headers follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterHashes<'a> {
    /// Filter type.
    pub kind: FilterKind,
    /// Hash of the last block.
    pub stop: BlockHash,
    /// The filter header before the first.
    pub previous: [u8; 32],
    /// One per block.
    pub hashes: Items<'a, [u8; 32]>,
}

/// Every thousandth filter header of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterCheckpoints<'a> {
    /// Filter type.
    pub kind: FilterKind,
    /// Hash of the last block of the branch.
    pub stop: BlockHash,
    /// From height 1000 on.
    pub headers: Items<'a, [u8; 32]>,
}

impl FilterKind {
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self(reader.take::<1>()?[0]))
    }
}

impl FilterRange {
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            kind: FilterKind::parse(reader)?,
            start_height: u32::from_le_bytes(*reader.take()?),
            stop: BlockHash(*reader.take()?),
        })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind.0);
        out.extend_from_slice(&self.start_height.to_le_bytes());
        out.extend_from_slice(&self.stop.0);
    }
}

impl<'a> BlockFilter<'a> {
    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        let kind = FilterKind::parse(reader)?;
        let block = BlockHash(*reader.take()?);
        let length = reader.count(1)?;
        Ok(Self { kind, block, filter: reader.bytes(length)? })
    }

    /// Appends the encoded payload, which REST responses use too.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind.0);
        out.extend_from_slice(&self.block.0);
        var_bytes(out, self.filter);
    }
}

impl<'a> FilterHashes<'a> {
    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        Ok(Self {
            kind: FilterKind::parse(reader)?,
            stop: BlockHash(*reader.take()?),
            previous: *reader.take()?,
            hashes: Items::parse(reader, FILTER_HASHES_MAX as usize)?,
        })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind.0);
        out.extend_from_slice(&self.stop.0);
        out.extend_from_slice(&self.previous);
        self.hashes.encode(out);
    }
}

impl<'a> FilterCheckpoints<'a> {
    pub(super) fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        Ok(Self {
            kind: FilterKind::parse(reader)?,
            stop: BlockHash(*reader.take()?),
            headers: Items::parse(reader, usize::MAX)?,
        })
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind.0);
        out.extend_from_slice(&self.stop.0);
        self.headers.encode(out);
    }
}
