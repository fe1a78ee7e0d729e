//! Finding the blocks of a chain in block files.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_consensus::header::check_header;
use assay_consensus::params::ChainParams;
use assay_consensus::script::opcode::{Instruction, Instructions, op};
use assay_store::{
    BlockFile, BlockFiles, BlockFilesError, BlockPlace, RecordRules, Search, StrayBytes, StrayKind,
};
use assay_wire::{Block, BlockHash, Header};

use crate::branch::{self, Choice, Entry};

/// First version whose coinbase tells the height (BIP34).
const VERSION_WITH_HEIGHT: i32 = 2;

/// Heights, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heights {
    /// The first one.
    pub first: u32,
    /// The last one.
    pub last: u32,
}

impl Heights {
    /// All there can be.
    pub const ALL: Self = Self { first: 0, last: u32::MAX };

    /// What both have in common, if anything.
    pub fn within(self, other: Self) -> Option<Self> {
        let both = Self { first: self.first.max(other.first), last: self.last.min(other.last) };
        (both.first <= both.last).then_some(both)
    }
}

/// Bytes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Where they begin.
    pub offset: u64,
    /// How many there are.
    pub bytes: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} bytes at {}", self.path.display(), self.bytes, self.offset)
    }
}

/// Bytes that belong to no block and are no padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    /// Where they lie.
    pub place: Place,
    /// What they look like.
    pub kind: StrayKind,
}

/// A block that is in no file, and one that builds on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingBlock {
    /// Its hash.
    pub hash: BlockHash,
    /// Its height, where the block above holds its own (BIP34).
    pub height: Option<u32>,
    /// The block above.
    pub child: BlockHash,
    /// Where that one lies.
    pub child_place: Place,
}

/// What there was besides the chosen branch.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Distinct blocks.
    pub blocks: usize,
    /// Blocks that are there again.
    pub duplicates: usize,
    /// Blocks on other branches.
    pub stale: usize,
    /// Blocks that do not connect to the chosen branch.
    pub unconnected: usize,
    /// Blocks that are in no file and that some of those build on, the first few.
    pub missing: Vec<MissingBlock>,
    /// Bytes that belong to no block: the first few places, how many there are, and padding.
    pub strays: Vec<Stray>,
    /// How many such places there are.
    pub stray_count: usize,
    /// Bytes that nodes reserved.
    pub padding_bytes: u64,
}

/// Why there is no chain.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The files cannot be read.
    #[error(transparent)]
    Files(#[from] BlockFilesError),
    /// They hold no block of the chain.
    #[error("{}: {files} files of {bytes} bytes hold no block of {chain}", path.display())]
    NoBlocks {
        /// Where they were looked for.
        path: PathBuf,
        /// The chain.
        chain: &'static str,
        /// How many files there are.
        files: usize,
        /// Their length.
        bytes: u64,
    },
    /// A file that was there is gone.
    #[error("{}: there is no {name} any more", path.display())]
    NoFile {
        /// Where it was looked for.
        path: PathBuf,
        /// Its name.
        name: String,
    },
    /// No block connects to genesis, and the first one does not hold its height.
    #[error(
        "no block connects to genesis, and the first of the longest piece, {hash} ({place}), does not hold its height"
    )]
    NoHeight {
        /// The block.
        hash: BlockHash,
        /// Where it lies.
        place: Place,
    },
}

/// Why a block of a known place could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error(transparent)]
    Files(#[from] BlockFilesError),
    /// The file has changed.
    #[error("{place}: block {hash} is not there any more")]
    Changed {
        /// Where it was.
        place: Place,
        /// The block.
        hash: BlockHash,
    },
}

/// The blocks of one chain, in files that are not changed.
#[derive(Debug)]
pub struct BlockSet {
    pub(crate) files: BlockFiles,
    pub(crate) params: Arc<ChainParams>,
    /// The chosen branch, from its lowest block.
    branch: Vec<(BlockHash, BlockPlace)>,
    first_height: u32,
    found: Found,
}

impl BlockSet {
    /// Finds the blocks at `path`, a directory with `blk*.dat` in it or in its `blocks`, or one file of blocks, and chooses
    /// the branch with the most work. `on_bytes` learns how many bytes are searched, of how many, from several threads.
    ///
    /// A pruned node's files, which do not reach down to genesis, are taken too when their first block tells its height.
    ///
    /// # Errors
    /// When the files cannot be read, or hold no chain.
    pub fn open(
        path: &Path,
        params: Arc<ChainParams>,
        threads: usize,
        on_bytes: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Self, OpenError> {
        let files = BlockFiles::open(path, params.disk_magic)?;
        let all = search(&files, &params, threads, on_bytes)?;
        let choice = branch::choose(&all.entries, &params.genesis_hash);
        let Choice { blocks, duplicates, stale, unconnected, loose, .. } = choice;
        let mut missing = Vec::with_capacity(loose.len());
        for index in loose {
            let child = &all.entries[index as usize];
            let height = height_in_coinbase(&files, &params, &child.place)?;
            missing.push(MissingBlock {
                hash: child.prev,
                height: height.and_then(|height| height.checked_sub(1)),
                child: child.hash,
                child_place: place_of(&files, &child.place),
            });
        }
        let branch: Vec<(BlockHash, BlockPlace)> = choice
            .branch
            .iter()
            .map(|index| &all.entries[*index as usize])
            .map(|entry| (entry.hash, entry.place))
            .collect();
        let Some((hash, place)) = branch.first().copied() else {
            let (files, bytes) = (files.files().len(), files.bytes());
            return Err(OpenError::NoBlocks {
                path: path.into(),
                chain: params.name,
                files,
                bytes,
            });
        };
        let first_height = match choice.first_height {
            Some(height) => height,
            None => height_in_coinbase(&files, &params, &place)?
                .ok_or_else(|| OpenError::NoHeight { hash, place: place_of(&files, &place) })?,
        };
        let Search { strays, stray_count, padding_bytes, .. } = all;
        let stray = |stray: StrayBytes| {
            let StrayBytes { file, offset, bytes, kind } = stray;
            let path = files.files()[file as usize].path.clone();
            Stray { place: Place { path, offset, bytes }, kind }
        };
        let found = Found {
            blocks,
            duplicates,
            stale,
            unconnected,
            missing,
            strays: strays.into_iter().map(stray).collect(),
            stray_count,
            padding_bytes,
        };
        Ok(Self { files, params, branch, first_height, found })
    }

    /// The blocks of a chain whose places are known: of each from height 1 on its hash, the name of its file, and where in it it
    /// lies. Nothing is searched; reading a block shows whether it is still there.
    ///
    /// # Errors
    /// When there are no files, or one of those named is not there.
    pub fn known<'n>(
        path: &Path,
        params: Arc<ChainParams>,
        blocks: impl Iterator<Item = (BlockHash, &'n str, u64, u32)>,
    ) -> Result<Self, OpenError> {
        let files = BlockFiles::open(path, params.disk_magic)?;
        let name_of = |file: &BlockFile| file.path.file_name()?.to_str().map(str::to_owned);
        let numbers: HashMap<String, u32> =
            (0..).zip(files.files()).filter_map(|(at, file)| Some((name_of(file)?, at))).collect();
        let mut branch = Vec::new();
        for (hash, name, offset, size) in blocks {
            let Some(file) = numbers.get(name).copied() else {
                return Err(OpenError::NoFile { path: path.into(), name: name.to_owned() });
            };
            branch.push((hash, BlockPlace { file, offset, size }));
        }
        Ok(Self { files, params, branch, first_height: 1, found: Found::default() })
    }

    /// The header of the block at a height, as it lies in the file; `None` outside the chain.
    ///
    /// # Errors
    /// When the file cannot be read, or another block lies there by now.
    pub fn header(&self, height: u32) -> Option<Result<[u8; Header::SIZE], ReadError>> {
        let (hash, place) = self.at(height)?;
        Some(self.files.read_part(place, Header::SIZE as u32).map_err(Into::into).and_then(
            |bytes| match bytes.first_chunk() {
                Some(header) if Header::parse(header).hash() == *hash => Ok(*header),
                _ => Err(ReadError::Changed { place: self.place(place), hash: *hash }),
            },
        ))
    }

    /// Reads the raw block at a height into a buffer; `None` outside the chain.
    ///
    /// # Errors
    /// As [`BlockSet::header`].
    pub fn read_into(&self, height: u32, buffer: &mut Vec<u8>) -> Option<Result<(), ReadError>> {
        let (hash, place) = self.at(height)?;
        Some(self.files.read_into(place, buffer).map_err(Into::into).and_then(|()| {
            let header = buffer.first_chunk().map(Header::parse);
            match header {
                Some(header) if header.hash() == *hash => Ok(()),
                _ => Err(ReadError::Changed { place: self.place(place), hash: *hash }),
            }
        }))
    }

    /// Where the block at a height lies; `None` outside the chain.
    pub fn place_at(&self, height: u32) -> Option<Place> {
        self.at(height).map(|(_, place)| self.place(place))
    }

    /// The chain.
    pub fn params(&self) -> &ChainParams {
        &self.params
    }

    /// First and last height.
    pub fn heights(&self) -> Heights {
        let first = self.first_height;
        Heights { first, last: first + (self.branch.len() - 1) as u32 }
    }

    /// Hash of the last block.
    pub fn tip(&self) -> BlockHash {
        self.branch.last().map(|(hash, _)| *hash).unwrap_or_default()
    }

    /// Hash of the block at a height; `None` outside the chain.
    pub fn hash(&self, height: u32) -> Option<BlockHash> {
        self.at(height).map(|(hash, _)| *hash)
    }

    /// Length of the block at a height; `None` outside the chain.
    pub fn size(&self, height: u32) -> Option<u32> {
        self.at(height).map(|(_, place)| place.size)
    }

    /// Bytes of the blocks at these heights.
    pub fn bytes(&self, heights: Heights) -> u64 {
        let Some(Heights { first, last }) = self.heights().within(heights) else { return 0 };
        (first..=last).filter_map(|height| self.size(height)).map(u64::from).sum()
    }

    /// Number of files and their length.
    pub fn files(&self) -> (usize, u64) {
        (self.files.files().len(), self.files.bytes())
    }

    /// The folder of the files.
    pub fn folder(&self) -> &Path {
        let first = self.files.files().first().and_then(|file| file.path.parent());
        first.unwrap_or(Path::new(""))
    }

    /// The key that the files are obfuscated with; zeros where they are not.
    pub fn key(&self) -> [u8; 8] {
        self.files.key()
    }

    /// Whether the files are obfuscated.
    pub fn is_obfuscated(&self) -> bool {
        self.files.is_obfuscated()
    }

    /// What there was besides the chosen branch.
    pub fn found(&self) -> &Found {
        &self.found
    }

    pub(crate) fn at(&self, height: u32) -> Option<&(BlockHash, BlockPlace)> {
        self.branch.get(height.checked_sub(self.first_height)? as usize)
    }

    pub(crate) fn place(&self, place: &BlockPlace) -> Place {
        place_of(&self.files, place)
    }
}

/// The chain whose magic the files at `path` begin with. Chains that share one, as the two regression test networks do,
/// cannot be told apart: the first of [`ChainParams::NAMES`] is taken.
///
/// # Errors
/// When the files cannot be read.
pub fn detect_chain(path: &Path) -> Result<Option<&'static str>, BlockFilesError> {
    let files = BlockFiles::open(path, [0; 4])?;
    let known: Vec<ChainParams> =
        ChainParams::NAMES.iter().filter_map(|name| ChainParams::by_name(name)).collect();
    for (index, file) in files.files().iter().enumerate() {
        if file.bytes < 4 {
            continue;
        }
        let magic = files.read(&BlockPlace { file: index as u32, offset: 0, size: 4 })?;
        if let Some(params) = known.iter().find(|params| params.disk_magic[..] == magic) {
            return Ok(Some(params.name));
        }
    }
    Ok(None)
}

/// Searches all files, `threads` at a time.
fn search(
    files: &BlockFiles,
    params: &ChainParams,
    threads: usize,
    on_bytes: &(dyn Fn(u64, u64) + Sync),
) -> Result<Search<Entry>, BlockFilesError> {
    let rules = RecordRules {
        bytes_max: u32::try_from(params.block_bytes_max()).unwrap_or(u32::MAX),
        is_header: &|bytes| {
            let header = Header::parse(bytes);
            check_header(params, &header, &header.hash()).is_ok()
        },
    };
    let to_entry = |place, bytes: &[u8; Header::SIZE]| {
        let header = Header::parse(bytes);
        Entry { hash: header.hash(), prev: header.prev_block, bits: header.bits, place }
    };
    files.search(threads, &rules, &to_entry, on_bytes)
}

fn place_of(files: &BlockFiles, place: &BlockPlace) -> Place {
    let path = files.path_of(place).to_path_buf();
    Place { path, offset: place.offset, bytes: u64::from(place.size) }
}

/// The height that the coinbase of a block tells (BIP34).
fn height_in_coinbase(
    files: &BlockFiles,
    params: &ChainParams,
    place: &BlockPlace,
) -> Result<Option<u32>, BlockFilesError> {
    let Ok(block) = Block::parse_prefix(files.read(place)?, params.encoding) else {
        return Ok(None);
    };
    if block.header().version < VERSION_WITH_HEIGHT || block.tx_count() == 0 {
        return Ok(None);
    }
    let coinbase = block.tx(0);
    if coinbase.input_count() == 0 {
        return Ok(None);
    }
    let first = Instructions::new(coinbase.input(0).script_sig).next().flatten();
    Ok(first.and_then(small_height))
}

/// The number that an instruction pushes, if it can be a height.
fn small_height(instruction: Instruction<'_>) -> Option<u32> {
    match instruction {
        Instruction { opcode: opcode @ op::PUSH1..=op::PUSH16, .. } => {
            Some(u32::from(opcode - op::PUSH1) + 1)
        }
        Instruction { data: data @ ([_] | [_, _] | [_, _, _] | [_, _, _, _]), .. } => {
            let mut bytes = [0; 4];
            bytes[..data.len()].copy_from_slice(data);
            // The highest bit of the last byte is a sign.
            (data[data.len() - 1] < 0x80).then(|| u32::from_le_bytes(bytes))
        }
        _ => None,
    }
}
