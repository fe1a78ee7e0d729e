//! Making a plan: the chain in block files, the coins its blocks spend, and the cuts.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_consensus::chain::{Ancestors, HeaderFacts};
use assay_consensus::params::ChainParams;
use assay_store::{BlockFiles, BlockPlace, KeyForms, SnapshotError, SnapshotReader};
use assay_wire::{Block, BlockHash};

use super::hints::cut_hints;
use super::plan::{Part, Place, Plan, Sources, Unspent, median_times, name_of};
use super::spent::SpentSource;
use super::{ShardError, io_failed};
use crate::clock::unix_time_s;
use crate::files::{Branches, Links, read_copies, search};
use crate::validate::{ValidateError, ValidateProgress};

#[derive(Clone, Debug)]
pub struct PlanConfig {
    /// Directory of block files, or one such file.
    pub blocks: PathBuf,
    pub params: Arc<ChainParams>,
    /// Heights of soft forks on test chains, `NAME@HEIGHT`, as the parameters have them.
    pub activation: Vec<String>,
    /// Folder of spent coins: the output of `validate`, or Bitcoin Core's undo files.
    pub spent: PathBuf,
    /// `true` for undo files.
    pub is_core_undo: bool,
    /// The coins left over; planning finds the lengths.
    pub unspent: Unspent,
    pub stop_height: Option<u32>,
    /// Parts wanted; there are fewer if there are fewer blocks.
    pub parts: usize,
    /// Threads that search files; at least 1.
    pub threads: usize,
    /// Conversion of keys in files of Bitcoin Core.
    pub keys: KeyForms,
}

/// Makes a plan and writes it into a folder.
///
/// # Errors
/// The files do not hold a whole chain, or not its coins.
pub fn plan_shards(
    config: &PlanConfig,
    out: &Path,
    progress: &dyn ValidateProgress,
) -> Result<Plan, ShardError> {
    let params = &*config.params;
    let files = BlockFiles::open(&config.blocks, params.disk_magic)?;
    let spent = SpentSource::open(&config.spent, config.is_core_undo, params.disk_magic)?;
    let (threads, stop_height) = (config.threads, config.stop_height);
    let (headers, blocks) = find_chain(params, &files, (threads, stop_height), progress)?;
    let found = spent.find(&files, &blocks, params.genesis_hash)?;
    let places: Vec<Place> = blocks
        .iter()
        .zip(&found)
        .map(|((_, block), (spent, _))| Place { block: *block, spent: *spent })
        .collect();
    let inputs: Vec<u64> = found.iter().map(|(_, coins)| *coins).collect();
    let mut parts = cut_blocks(&places, &inputs, config.parts);
    let (mut unspent, mut hints) = (config.unspent.clone(), Vec::new());
    match &mut unspent {
        Unspent::Coins { path, bytes } => {
            let wanted = (parts.len() / BLOCK_PARTS_PER_COIN_PART).max(1);
            let tip = headers[blocks.len()].hash;
            let (pieces, length) = cut_coins(path, (config.keys, tip, wanted))?;
            parts.extend(pieces);
            *bytes = length;
        }
        Unspent::Hints { path, bytes } => {
            (hints, *bytes) = cut_hints(path, &parts, blocks.len() as u32)?;
        }
        Unspent::MuHash(_) => {}
    }
    let block_files = files.files().iter().map(|file| (name_of(&file.path), file.bytes)).collect();
    let mut plan = Plan {
        params: Arc::clone(&config.params),
        activation: config.activation.clone(),
        sources: Sources {
            blocks: absolute(&config.blocks)?,
            block_files,
            spent: absolute(&config.spent)?,
            is_core: config.is_core_undo,
            spent_files: spent.files().to_vec(),
        },
        unspent,
        parts,
        hints,
        median_times: median_times(&headers),
        headers,
        places,
        id: [0; 32],
    };
    plan.id = plan.write(out)?;
    Ok(plan)
}

/// Headers of a chain from the genesis block on, and the places of its blocks.
type FoundChain = (Vec<HeaderFacts>, Vec<(BlockHash, BlockPlace)>);

/// The best chain in block files up to a height: headers from 0 on, blocks from 1 on.
fn find_chain(
    params: &ChainParams,
    files: &BlockFiles,
    (threads, stop_height): (usize, Option<u32>),
    progress: &dyn ValidateProgress,
) -> Result<FoundChain, ShardError> {
    let found = search(params, files, threads, &|done, total| progress.scanning(done, total))?;
    let genesis = Block::parse(params.genesis_block(), params.encoding)
        .expect("the genesis block of known parameters parses");
    let links = Links::new(&found.entries, genesis.header(), params.genesis_hash);
    let mut branches = Branches::new(params, *genesis.header(), &links, unix_time_s() as i64);
    let chain = branches.best();
    let height = stop_height.unwrap_or(chain.height());
    if chain.height() == 0 {
        let (files, bytes) = (files.files().len(), files.bytes());
        return Err(ValidateError::NoBlocks { chain: params.name, files, bytes }.into());
    }
    if height > chain.height() {
        return Err(ShardError::Short { height: chain.height(), stop_height: height });
    }
    let view = chain.up_to(height);
    let headers = (0..=height).map(|height| view.header_at(height)).collect();
    let place = |height| {
        let (hash, mut copies) =
            (chain.hash(height), chain.copies(height).map(|entry| entry.place));
        let first = chain.entry(height).place;
        if copies.nth(1).is_none() {
            return (hash, first);
        }
        // If no copy is undamaged, the part that has the block names the first.
        let copies = chain.copies(height).map(|entry| entry.place);
        let whole = read_copies(params, files, (&hash, Some(height)), copies, Vec::new());
        (hash, whole.map_or(first, |whole| whole.place))
    };
    Ok((headers, (1..=height).map(place).collect()))
}

/// Ranges of about equal work.
fn cut_blocks(places: &[Place], inputs: &[u64], parts: usize) -> Vec<Part> {
    let work = |at: usize| {
        inputs[at].saturating_mul(INPUT_NS) + u64::from(places[at].block.size) * BYTE_NS + BLOCK_NS
    };
    let total: u128 = (0..places.len()).map(|at| u128::from(work(at))).sum();
    let parts = parts.clamp(1, places.len());
    let mut cuts = Vec::with_capacity(parts);
    let (mut done, mut first) = (0u128, 0);
    for at in 0..places.len() {
        done += u128::from(work(at));
        let (made, left) = (cuts.len() as u128, places.len() - 1 - at);
        let is_full = done * parts as u128 >= total * (made + 1);
        // Every part has at least one block.
        let must = left < parts - cuts.len();
        if at + 1 == places.len() || cuts.len() + 1 < parts && (is_full || must) {
            cuts.push(Part::Blocks {
                first: first as u32 + 1,
                last: at as u32 + 1,
                inputs: inputs[first..=at].iter().sum(),
                bytes: places[first..=at].iter().map(|place| u64::from(place.block.size)).sum(),
            });
            first = at + 1;
        }
    }
    cuts
}

/// Pieces of a snapshot with about as many coins each, and its length. None splits a transaction.
fn cut_coins(
    path: &Path,
    (keys, tip, pieces): (KeyForms, BlockHash, usize),
) -> Result<(Vec<Part>, u64), ShardError> {
    let file = File::open(path).map_err(io_failed(path))?;
    let bytes = file.metadata().map_err(io_failed(path))?.len();
    let failed = |source| ShardError::Coins { path: path.to_path_buf(), source };
    let mut reader =
        SnapshotReader::new(BufReader::with_capacity(1 << 20, file), keys).map_err(failed)?;
    let header = *reader.header();
    if header.base != tip {
        let (found, expected) = (header.base, tip);
        return Err(ShardError::OtherCoins { path: path.to_path_buf(), found, expected });
    }
    let each = header.coins.div_ceil(pieces as u64).max(1);
    let (mut parts, mut start, mut before) = (Vec::new(), reader.offset(), 0);
    while next(&mut reader).map_err(failed)? {
        let count = reader.coins_read() - before;
        if reader.is_between_txs() && (count >= each || reader.coins_read() == header.coins) {
            let offset = reader.offset();
            parts.push(Part::Coins { offset: start, bytes: offset - start, coins: count });
            (start, before) = (offset, reader.coins_read());
        }
    }
    Ok((parts, bytes))
}

fn next<R: Read>(reader: &mut SnapshotReader<R>) -> Result<bool, SnapshotError> {
    reader.next_coin().map(|coin| coin.is_some())
}

fn absolute(path: &Path) -> Result<PathBuf, ShardError> {
    path.canonicalize().map_err(io_failed(path))
}

/// Costs of an input, a byte and a block, nanoseconds: only their proportions matter.
const INPUT_NS: u64 = 10_000;
const BYTE_NS: u64 = 1;
const BLOCK_NS: u64 = 50_000;
/// A coin that is left over costs a small part of the cost of an input, and there are fewer of them.
const BLOCK_PARTS_PER_COIN_PART: usize = 8;
