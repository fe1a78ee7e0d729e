//! The sources of the coins that blocks spend.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use assay_store::{
    BlockFiles, BlockPlace, CoreUndoFiles, KeyForms, SpentFiles, SpentFilesError, SpentPlace,
    decode_undo,
};
use assay_wire::{BlockHash, Coin};

use super::ShardError;

#[derive(Debug)]
pub(crate) enum SpentSource {
    /// The files of `validate --write-spent`.
    Own(SpentFiles),
    /// Bitcoin Core's undo files.
    Core(CoreUndoFiles),
}

/// The reason the coins of a block are unavailable.
pub(crate) enum SpentFault {
    /// The file cannot be read.
    Cannot(SpentFilesError),
    /// The contents do not define the coins.
    Wrong(String),
}

/// Place of the coins of a block, and their approximate number.
pub(crate) type Found = (SpentPlace, u64);

impl SpentSource {
    pub(crate) fn open(dir: &Path, is_core: bool, magic: [u8; 4]) -> Result<Self, ShardError> {
        Ok(if is_core {
            Self::Core(CoreUndoFiles::open(dir, magic)?)
        } else {
            Self::Own(SpentFiles::open(dir, magic)?)
        })
    }

    pub(crate) fn files(&self) -> &[(u32, u64)] {
        match self {
            Self::Own(files) => files.files(),
            Self::Core(files) => files.files(),
        }
    }

    /// Finds the coins of all blocks, given in the order of their heights from 1 on with their hashes; `genesis` comes before.
    pub(crate) fn find(
        &self,
        files: &BlockFiles,
        blocks: &[(BlockHash, BlockPlace)],
        genesis: BlockHash,
    ) -> Result<Vec<Found>, ShardError> {
        let missing = |at: usize| ShardError::NoSpent { height: at as u32 + 1, hash: blocks[at].0 };
        match self {
            Self::Own(own) => {
                let mut records: HashMap<BlockHash, Found> = HashMap::new();
                own.for_each(|entry| {
                    records.insert(entry.block, (entry.place, entry.coins));
                })?;
                let found = blocks
                    .iter()
                    .enumerate()
                    .map(|(at, (hash, _))| records.get(hash).copied().ok_or_else(|| missing(at)));
                found.collect()
            }
            Self::Core(core) => {
                let mut found: Vec<Option<Found>> = vec![None; blocks.len()];
                let mut of_file: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
                for (at, (_, place)) in blocks.iter().enumerate() {
                    let number = files.number_of(place).ok_or_else(|| missing(at))?;
                    of_file.entry(number).or_default().push(at);
                }
                let known: Vec<u32> = core.files().iter().map(|(number, _)| *number).collect();
                for (number, heights) in of_file.iter().filter(|(number, _)| known.contains(number))
                {
                    find_in_file(core, *number, heights, (blocks, genesis), &mut found)?;
                }
                found
                    .iter()
                    .enumerate()
                    .map(|(at, found)| found.ok_or_else(|| missing(at)))
                    .collect()
            }
        }
    }

    /// The coins of a block.
    pub(crate) fn read(
        &self,
        place: &SpentPlace,
        (hash, parent): (&BlockHash, &BlockHash),
        keys: KeyForms,
    ) -> Result<Vec<Coin>, SpentFault> {
        match self {
            Self::Own(files) => {
                let undo = files.read(place, hash).map_err(SpentFault::Cannot)?;
                decode_undo(&undo).map_err(|error| SpentFault::Wrong(error.to_string()))
            }
            Self::Core(files) => files.read(place, parent, keys).map_err(SpentFault::Cannot),
        }
    }
}

/// Finds the records of the blocks of one file, whose indices ascend. Records lie in the order in which blocks were connected,
/// which is that of heights but for reorganisations: the checksum decides.
fn find_in_file(
    core: &CoreUndoFiles,
    number: u32,
    blocks_of_file: &[usize],
    (blocks, genesis): (&[(BlockHash, BlockPlace)], BlockHash),
    found: &mut [Option<Found>],
) -> Result<(), ShardError> {
    let parent = |at: usize| if at == 0 { genesis } else { blocks[at - 1].0 };
    let mut next = 0;
    for record in core.records(number)? {
        // The next block; for a record of a block that was disconnected, none. Others are further on if records are missing.
        for (skipped, &at) in blocks_of_file[next..].iter().enumerate().take(LOOK_AHEAD) {
            if core.is_of(&record, &parent(at))? {
                found[at] = Some((record, u64::from(record.bytes) / COIN_BYTES));
                next += skipped + 1;
                break;
            }
        }
    }
    Ok(())
}

/// Blocks of a file that are tried for a record.
const LOOK_AHEAD: usize = 300;
/// Approximate size of a spent coin in an undo file: only proportions matter.
const COIN_BYTES: u64 = 32;
