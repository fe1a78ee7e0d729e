//! Searches block files for headers.

use assay_consensus::header::check_header;
use assay_consensus::params::ChainParams;
use assay_consensus::script::opcode::{Instruction, Instructions, op};
use assay_store::{BlockFiles, BlockFilesError, BlockPlace, RecordRules, Search};
use assay_wire::{Block, Header};

use super::copies::read_copies;
use super::links::Entry;
use super::links::Gap;
use super::{FilePlace, MissingBlock};

/// Calls `with` with the record rules of a chain: a header needs valid proof of work.
pub(crate) fn record_rules<T>(params: &ChainParams, with: impl FnOnce(&RecordRules<'_>) -> T) -> T {
    with(&RecordRules {
        bytes_max: u32::try_from(params.block_bytes_max()).unwrap_or(u32::MAX),
        is_header: &|bytes| {
            let header = Header::parse(bytes);
            check_header(params, &header, &header.hash()).is_ok()
        },
    })
}

/// Searches all files in parallel. `on_bytes` receives the bytes searched and the total, from several threads.
pub(crate) fn search(
    params: &ChainParams,
    files: &BlockFiles,
    threads: usize,
    on_bytes: &(dyn Fn(u64, u64) + Sync),
) -> Result<Search<Entry>, BlockFilesError> {
    let to_entry = |place, bytes: &[u8; Header::SIZE]| {
        let header = Header::parse(bytes);
        Entry::new(&header, header.hash(), place)
    };
    record_rules(params, |rules| files.search(threads, rules, &to_entry, on_bytes))
}

/// The missing blocks below `gaps`, with their heights if the children's coinbases have theirs.
pub(crate) fn missing_blocks(
    params: &ChainParams,
    files: &BlockFiles,
    gaps: &[Gap<'_>],
) -> Vec<MissingBlock> {
    let missing = |gap: &Gap<'_>| {
        let child = height_of(params, files, gap.child, &gap.places);
        MissingBlock {
            hash: gap.hash,
            height: child.and_then(|height| height.checked_sub(1)),
            child: gap.child.hash,
            child_place: FilePlace::new(files, &gap.child.place),
        }
    };
    gaps.iter().map(missing).collect()
}

/// The height in the coinbase of a block (BIP34), from its first undamaged copy.
pub(super) fn height_of(
    params: &ChainParams,
    files: &BlockFiles,
    entry: &Entry,
    places: &[BlockPlace],
) -> Option<u32> {
    let copies = places.iter().copied();
    let whole = read_copies(params, files, (&entry.hash, None), copies, Vec::new()).ok()?;
    height_in_coinbase(&whole.block)
}

fn height_in_coinbase(block: &Block) -> Option<u32> {
    if block.header().version < VERSION_WITH_HEIGHT || block.tx_count() == 0 {
        return None;
    }
    let coinbase = block.tx(0);
    if coinbase.input_count() == 0 {
        return None;
    }
    let first = Instructions::new(coinbase.input(0).script_sig).next().flatten();
    first.and_then(small_height)
}

/// The number that an instruction pushes, if it is a possible height.
fn small_height(instruction: Instruction<'_>) -> Option<u32> {
    match instruction {
        Instruction { opcode: opcode @ op::PUSH1..=op::PUSH16, .. } => {
            Some(u32::from(opcode - op::PUSH1) + 1)
        }
        Instruction { data: data @ ([_] | [_, _] | [_, _, _] | [_, _, _, _]), .. } => {
            let mut bytes = [0; 4];
            bytes[..data.len()].copy_from_slice(data);
            // The highest bit of the last byte is the sign.
            (data[data.len() - 1] < 0x80).then(|| u32::from_le_bytes(bytes))
        }
        _ => None,
    }
}

/// First version with the height in the coinbase (BIP34).
const VERSION_WITH_HEIGHT: i32 = 2;
