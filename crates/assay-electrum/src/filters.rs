//! The index of basic block filters (BIP157, BIP158; Core `index/blockfilterindex.cpp`).

use std::path::Path;
use std::sync::Arc;

use assay_store::UndoReader;
use assay_store::io::Io;
use assay_wire::filter::{basic, filter_hash, filter_header};
use assay_wire::{Block, BlockHash, Txid};

use crate::chain::Tip;
use crate::follow::{FollowError, Follows};
use crate::height_index::{HeightIndex, Record, RecordsError};

/// Filter index on disk. Thread-safe.
pub struct FilterIndex {
    records: HeightIndex,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterEntry {
    pub block: BlockHash,
    pub filter_hash: [u8; 32],
    /// Filter header: commits to this filter and to all before it.
    pub header: [u8; 32],
    offset: u64,
    length: u32,
}

impl FilterEntry {
    fn read(record: &Record) -> Self {
        let array = |at: usize| {
            let mut out = [0; 32];
            out.copy_from_slice(&record.fields[at..at + 32]);
            out
        };
        let (offset, length) = record.fields[64..].split_at(8);
        Self {
            block: record.hash,
            filter_hash: array(0),
            header: array(32),
            offset: u64::from_le_bytes(offset.try_into().expect("eight bytes")),
            length: u32::from_le_bytes(length.try_into().expect("four bytes")),
        }
    }
}

/// The filter of a block, not yet chained to its predecessors.
pub struct MadeFilter {
    block: BlockHash,
    previous: BlockHash,
    filter: Vec<u8>,
}

impl FilterIndex {
    /// Opens or creates the index in a folder.
    pub fn open(dir: &Path, genesis: BlockHash, io: Arc<dyn Io>) -> Result<Self, RecordsError> {
        HeightIndex::open(dir, KIND, genesis, FIELDS_BYTES, io).map(|records| Self { records })
    }

    /// Highest block that survives a crash. Blocks above it must stay in the archive.
    pub fn committed(&self) -> Option<Tip> {
        self.records.committed()
    }

    /// The record of a block at `height`, active or disconnected.
    pub fn entry(
        &self,
        hash: &BlockHash,
        height: u32,
    ) -> Result<Option<FilterEntry>, RecordsError> {
        Ok(self.records.of(hash, height)?.as_ref().map(FilterEntry::read))
    }

    pub fn filter(&self, entry: &FilterEntry) -> Result<Vec<u8>, RecordsError> {
        let bytes = self.records.data(entry.offset, entry.length as usize)?;
        if filter_hash(&bytes) != entry.filter_hash {
            let what = "its filter does not have its hash";
            return Err(RecordsError::Block { hash: entry.block, what });
        }
        Ok(bytes)
    }
}

impl Follows for FilterIndex {
    type Made = MadeFilter;

    fn name(&self) -> &'static str {
        NAME
    }

    fn needs_undo(&self) -> bool {
        true
    }

    fn tip(&self) -> Option<Tip> {
        self.records.tip()
    }

    fn hash_at(&self, height: u32) -> Result<Option<BlockHash>, FollowError> {
        Ok(self.records.at(height)?.map(|record| record.hash))
    }

    fn make(
        &self,
        block: &Block,
        _txids: &[Txid],
        undo: Option<&[u8]>,
    ) -> Result<MadeFilter, FollowError> {
        let hash = block.hash();
        let broken = |_| RecordsError::Block { hash, what: "its undo data does not read" };
        let mut spent = Vec::new();
        if let Some(undo) = undo {
            for coin in UndoReader::new(undo).map_err(broken)? {
                spent.push(coin.map_err(broken)?.script_pubkey);
            }
        }
        let filter = basic(block, spent.iter().map(|script| &script[..]));
        Ok(MadeFilter { block: hash, previous: block.header().prev_block, filter })
    }

    fn connect(&self, made: MadeFilter) -> Result<(), FollowError> {
        let previous = match self.records.tip() {
            None => [0; 32],
            Some(tip) => match self.records.at(tip.height)? {
                Some(record) => FilterEntry::read(&record).header,
                None => return Err(RecordsError::NotNext { hash: made.block }.into()),
            },
        };
        let hash = filter_hash(&made.filter);
        let header = filter_header(&hash, &previous);
        self.records.append((made.block, made.previous), &made.filter, |offset| {
            let length = (made.filter.len() as u32).to_le_bytes();
            [&hash[..], &header, &offset.to_le_bytes(), &length].concat()
        })?;
        Ok(())
    }

    fn rewind(&self, height: u32) -> Result<(), FollowError> {
        Ok(self.records.rewind(height)?)
    }

    fn commit(&self) -> Result<(), FollowError> {
        Ok(self.records.commit()?)
    }
}

/// Core's name of the index (`index/blockfilterindex.cpp`), shown by `getindexinfo`.
pub const NAME: &str = "basic block filter index";
const KIND: &str = "basic block filters";
const FIELDS_BYTES: usize = 32 + 32 + 8 + 4;
