//! Reads a block from the first of its copies that is undamaged.

use assay_consensus::block::{self, BlockError};
use assay_consensus::params::ChainParams;
use assay_store::{BlockFiles, BlockFilesError, BlockPlace};
use assay_wire::{Block, BlockHash, ParseError, Txid, Wtxid};

use super::{FilePlace, InvalidBlock};
use crate::error::EngineError;
use crate::prepared::Prepared;

/// A block of the chain cannot be connected.
#[derive(Debug)]
pub(crate) enum Fault {
    Read(BlockFilesError),
    /// The bytes do not start with a block.
    Parse(ParseError),
    /// The block differs from the one at the time of the scan.
    Changed {
        found: BlockHash,
    },
    Rule(BlockError),
    /// Coins could not be moved, without a fault of the block.
    Engine(EngineError),
}

impl Fault {
    /// True if other bytes with the same header may be valid.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Read(_) | Self::Parse(_) | Self::Changed { .. } => true,
            Self::Rule(error) => error.is_mutation(),
            Self::Engine(_) => false,
        }
    }

    /// The fault of a copy that breaks a rule. The solution of a signet block is checked before its merkle root, as in Core: if
    /// the root is wrong too, the copy is damaged.
    pub(crate) fn judged(params: &ChainParams, prepared: &Prepared, error: BlockError) -> Self {
        let is_open = !error.is_mutation() && params.signet_challenge.is_some();
        let (header, txids) = (prepared.block.header(), &prepared.txids);
        let damage = if is_open { block::check_merkle_root(header, txids).err() } else { None };
        Self::Rule(damage.unwrap_or(error))
    }

    /// Reject reason and details; `bytes` is the length of the record.
    fn describe(&self, bytes: u32) -> (String, String) {
        let unreadable = |debug: String| ("unreadable-block".to_owned(), debug);
        match self {
            Self::Read(error) => unreadable(error.to_string()),
            Self::Engine(error) => unreadable(error.to_string()),
            Self::Rule(error) => rule(error),
            Self::Parse(error) => {
                unreadable(format!("its record of {bytes} bytes does not hold a block: {error}"))
            }
            Self::Changed { found } => {
                unreadable(format!("the file has changed: block {found} is there now"))
            }
        }
    }
}

pub(crate) fn rule(error: &BlockError) -> (String, String) {
    let (reason, debug) = (error.reject_reason(), error.debug_message());
    // Core's text is for comparison; ours has the details.
    let debug = if debug.is_empty() { error.to_string() } else { format!("{debug}: {error}") };
    (reason.into_owned(), debug)
}

/// A block that cannot be connected.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) fault: Fault,
    /// The invalid copy, or the first of several damaged ones.
    pub(crate) place: BlockPlace,
    pub(crate) damaged: usize,
}

impl Refused {
    pub(crate) fn report(
        &self,
        files: &BlockFiles,
        (hash, height): (BlockHash, u32),
    ) -> InvalidBlock {
        let (reason, mut debug) = self.fault.describe(self.place.size);
        if let Some(others @ 1..) = self.damaged.checked_sub(1) {
            debug = format!("{debug}; {others} other copies are damaged too");
        }
        let (place, is_damaged) = (FilePlace::new(files, &self.place), self.fault.is_damage());
        InvalidBlock { hash, height, reason, debug, place, is_damaged }
    }
}

/// Applies `take` to the copies until one is undamaged. A copy that does not match the commitments in its header does not decide
/// about the block, as in Core (`BLOCK_MUTATED`); an undamaged one that breaks a rule does.
pub(crate) fn first_whole<T>(
    copies: impl Iterator<Item = BlockPlace>,
    mut read: impl FnMut(BlockPlace) -> Result<T, Fault>,
) -> Result<T, Refused> {
    let mut first: Option<Refused> = None;
    for place in copies {
        let fault = match read(place) {
            Ok(whole) => return Ok(whole),
            Err(fault) => fault,
        };
        let damaged = first.as_ref().map_or(0, |first| first.damaged) + 1;
        if !fault.is_damage() {
            return Err(Refused { fault, place, damaged: 0 });
        }
        match &mut first {
            // An unreadable file is no verdict on a block.
            Some(first) if matches!(fault, Fault::Read(_)) => first.fault = fault,
            Some(first) => first.damaged = damaged,
            None => first = Some(Refused { fault, place, damaged }),
        }
    }
    Err(first.expect("a block of the chain has a copy at least"))
}

/// Reads one copy of a block. Ignores bytes after the block in its record, as Core does (`validation.cpp`,
/// `LoadExternalBlockFile`; `node/blockstorage.cpp`, `ReadBlock`).
pub(crate) fn read_block(
    params: &ChainParams,
    files: &BlockFiles,
    (place, expected): (&BlockPlace, &BlockHash),
) -> Result<Prepared, Fault> {
    read_plain_block(params, files, (place, expected)).map(|block| Prepared::new(block, *expected))
}

/// Reads and parses a block and checks its hash; its transactions are not checked.
pub(crate) fn read_plain_block(
    params: &ChainParams,
    files: &BlockFiles,
    (place, expected): (&BlockPlace, &BlockHash),
) -> Result<Block, Fault> {
    let raw = files.read(place).map_err(Fault::Read)?;
    let record_bytes = raw.len();
    let mut block = Block::parse_prefix(raw, params.encoding).map_err(Fault::Parse)?;
    if block.bytes().len() < record_bytes {
        // Do not keep the bytes after the block in memory.
        let bytes = block.bytes().to_vec();
        block = Block::parse(bytes, params.encoding).map_err(Fault::Parse)?;
    }
    expect(block, expected)
}

fn expect(block: Block, expected: &BlockHash) -> Result<Block, Fault> {
    let found = block.hash();
    if found == *expected { Ok(block) } else { Err(Fault::Changed { found }) }
}

/// A block with at least one transaction, whose transactions and witnesses match the commitments in its header. No other rule is
/// checked.
#[derive(Debug)]
pub struct WholeBlock {
    pub block: Block,
    pub txids: Vec<Txid>,
    /// Position of the copy read; its record may be longer than the block.
    pub place: BlockPlace,
}

/// Reads the first undamaged copy of the block with this hash. Without the height the witnesses are not checked. `buffer` holds
/// the raw block afterwards.
///
/// # Errors
/// No copy is undamaged, or the block has no transaction.
///
/// # Panics
/// There are no copies.
pub fn read_copies(
    params: &ChainParams,
    files: &BlockFiles,
    (hash, height): (&BlockHash, Option<u32>),
    copies: impl Iterator<Item = BlockPlace>,
    mut buffer: Vec<u8>,
) -> Result<WholeBlock, Box<InvalidBlock>> {
    let read = |place: BlockPlace| {
        let mut raw = std::mem::take(&mut buffer);
        files.read_into(&place, &mut raw).map_err(Fault::Read)?;
        let block = Block::parse_prefix(raw, params.encoding).map_err(Fault::Parse)?;
        let block = expect(block, hash)?;
        let txids = block.txids(0..block.tx_count());
        check_commitments(params, height, &block, &txids).map_err(Fault::Rule)?;
        if txids.is_empty() {
            // The header commits to no transaction, so no copy has any.
            block::check_shape(params, &block).map_err(Fault::Rule)?;
        }
        Ok(WholeBlock { block, txids, place })
    };
    first_whole(copies, read)
        .map_err(|refused| Box::new(refused.report(files, (*hash, height.unwrap_or_default()))))
}

/// Checks the bytes of a block against the commitments in its header.
fn check_commitments(
    params: &ChainParams,
    height: Option<u32>,
    block: &Block,
    txids: &[Txid],
) -> Result<(), BlockError> {
    block::check_merkle_root(block.header(), txids)?;
    // Without a coinbase the block breaks a rule, regardless of its witnesses.
    let Some(height) = height.filter(|_| block.txs().next().is_some_and(|tx| tx.is_coinbase()))
    else {
        return Ok(());
    };
    let has_witness = block.txs().any(|tx| tx.has_witness());
    let wtxids: Vec<Wtxid> =
        if has_witness { block.wtxids(0..block.tx_count(), txids) } else { Vec::new() };
    block::check_witnesses(params.segwit_active(height), block, &wtxids)
}
