//! Finding the blocks of a chain in block files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use assay_consensus::params::ChainParams;
use assay_engine::{
    FilePlace, FoundChain, InvalidBlock, PlacedBlock, WholeBlock, find_blocks, read_copies,
};
use assay_store::{BlockFile, BlockFiles, BlockFilesError, BlockPlace};
use assay_wire::{BlockHash, Header};

/// A range of heights, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heights {
    pub first: u32,
    pub last: u32,
}

impl Heights {
    pub const ALL: Self = Self { first: 0, last: u32::MAX };

    /// Intersection of both ranges; `None` if empty.
    pub fn within(self, other: Self) -> Option<Self> {
        let both = Self { first: self.first.max(other.first), last: self.last.min(other.last) };
        (both.first <= both.last).then_some(both)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Files(#[from] BlockFilesError),
    #[error(
        "{}: {files} files of {bytes} bytes hold no block of {chain}: are they of another chain, or is xor.dat of other files?",
        path.display()
    )]
    NoBlocks { path: PathBuf, chain: &'static str, files: usize, bytes: u64 },
    #[error("{}: there is no {name} any more", path.display())]
    NoFile { path: PathBuf, name: String },
    #[error(
        "no block connects to genesis, and the first of the longest piece, {hash} ({place}), does not hold its height"
    )]
    NoHeight { hash: BlockHash, place: FilePlace },
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Files(#[from] BlockFilesError),
    /// Another block is at the position by now.
    #[error("{place}: block {hash} is not there any more")]
    Changed { place: FilePlace, hash: BlockHash },
}

/// The blocks of one chain in read-only files.
#[derive(Debug)]
pub struct BlockSet {
    pub(crate) files: BlockFiles,
    pub(crate) params: Arc<ChainParams>,
    first_height: u32,
    found: FoundChain,
}

impl BlockSet {
    /// Finds the blocks at `path`, a directory with `blk*.dat` in it or in its `blocks`, or one
    /// file of blocks, and chooses the branch with the most work, as validation does. `on_bytes`
    /// receives the searched and the total number of bytes, from several threads.
    ///
    /// A pruned node's files, which do not reach down to genesis, are accepted if their first block commits to its height.
    ///
    /// # Errors
    /// If the files cannot be read, or hold no chain.
    pub fn open(
        path: &Path,
        params: Arc<ChainParams>,
        threads: usize,
        on_bytes: &(dyn Fn(u64, u64) + Sync),
    ) -> Result<Self, OpenError> {
        let files = BlockFiles::open(path, params.disk_magic)?;
        let found = find_blocks(&params, &files, threads, on_bytes)?;
        let Some(lowest) = found.chain.first() else {
            let (files, bytes) = (files.files().len(), files.bytes());
            return Err(OpenError::NoBlocks {
                path: path.into(),
                chain: params.name,
                files,
                bytes,
            });
        };
        let (hash, place) = (lowest.hash, FilePlace::new(&files, &lowest.place));
        let first_height = found.first_height.ok_or(OpenError::NoHeight { hash, place })?;
        Ok(Self { files, params, first_height, found })
    }

    /// A chain with known hash, file name and offset of each block from height 1. Files are not searched; reads detect changes.
    ///
    /// # Errors
    /// If there are no files, or a listed one is missing.
    pub fn known<'n>(
        path: &Path,
        params: Arc<ChainParams>,
        blocks: impl Iterator<Item = (BlockHash, &'n str, u64, u32)>,
    ) -> Result<Self, OpenError> {
        let files = BlockFiles::open(path, params.disk_magic)?;
        let name_of = |file: &BlockFile| file.path.file_name()?.to_str().map(str::to_owned);
        let numbers: HashMap<String, u32> =
            (0..).zip(files.files()).filter_map(|(at, file)| Some((name_of(file)?, at))).collect();
        let mut found = FoundChain::default();
        for (hash, name, offset, size) in blocks {
            let Some(file) = numbers.get(name).copied() else {
                return Err(OpenError::NoFile { path: path.into(), name: name.to_owned() });
            };
            let place = BlockPlace { file, offset, size };
            found.chain.push(PlacedBlock { hash, place, others: Box::default() });
        }
        Ok(Self { files, params, first_height: 1, found })
    }

    /// Raw header of the block at a height; `None` outside the chain.
    ///
    /// # Errors
    /// If the file cannot be read, or holds another block at the position.
    pub fn header(&self, height: u32) -> Option<Result<[u8; Header::SIZE], ReadError>> {
        let PlacedBlock { hash, place, .. } = self.at(height)?;
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
        let PlacedBlock { hash, place, .. } = self.at(height)?;
        Some(self.files.read_into(place, buffer).map_err(Into::into).and_then(|()| {
            let header = buffer.first_chunk().map(Header::parse);
            match header {
                Some(header) if header.hash() == *hash => Ok(()),
                _ => Err(ReadError::Changed { place: self.place(place), hash: *hash }),
            }
        }))
    }

    /// The same with checks: the first copy whose transactions and witnesses match the header, without trailing bytes.
    ///
    /// # Errors
    /// If no copy is complete.
    pub fn read_checked(
        &self,
        height: u32,
        buffer: &mut Vec<u8>,
    ) -> Option<Result<(), Box<InvalidBlock>>> {
        let whole = self.read_whole((height, self.at(height)?), std::mem::take(buffer));
        Some(whole.map(|whole| *buffer = whole.block.into_bytes()))
    }

    /// Position of the first copy of the block at a height; `None` outside the chain.
    pub fn place_at(&self, height: u32) -> Option<FilePlace> {
        self.at(height).map(|block| self.place(&block.place))
    }

    pub fn params(&self) -> &ChainParams {
        &self.params
    }

    pub fn heights(&self) -> Heights {
        let first = self.first_height;
        Heights { first, last: first + (self.found.chain.len() - 1) as u32 }
    }

    pub fn tip(&self) -> BlockHash {
        self.found.chain.last().map(|block| block.hash).unwrap_or_default()
    }

    /// Hash of the block at a height; `None` outside the chain.
    pub fn hash(&self, height: u32) -> Option<BlockHash> {
        self.at(height).map(|block| block.hash)
    }

    /// Length of the first copy of the block at a height; `None` outside the chain.
    pub fn size(&self, height: u32) -> Option<u32> {
        self.at(height).map(|block| block.place.size)
    }

    pub fn bytes(&self, heights: Heights) -> u64 {
        let Some(Heights { first, last }) = self.heights().within(heights) else { return 0 };
        (first..=last).filter_map(|height| self.size(height)).map(u64::from).sum()
    }

    /// Number of files and their total length.
    pub fn files(&self) -> (usize, u64) {
        (self.files.files().len(), self.files.bytes())
    }

    pub fn folder(&self) -> &Path {
        let first = self.files.files().first().and_then(|file| file.path.parent());
        first.unwrap_or(Path::new(""))
    }

    /// Obfuscation key of the files; zero if they are plain.
    pub fn key(&self) -> [u8; 8] {
        self.files.key()
    }

    pub fn is_obfuscated(&self) -> bool {
        self.files.is_obfuscated()
    }

    /// Everything found outside the chosen branch.
    pub fn found(&self) -> &FoundChain {
        &self.found
    }

    /// Reads the first complete copy of the block at a height; `buffer` is for the raw block.
    pub(crate) fn read_whole(
        &self,
        (height, block): (u32, &PlacedBlock),
        buffer: Vec<u8>,
    ) -> Result<WholeBlock, Box<InvalidBlock>> {
        let of = (&block.hash, Some(height));
        read_copies(&self.params, &self.files, of, block.copies(), buffer)
    }

    /// Header of a record at a position; `None` beyond the end of the file.
    pub(crate) fn header_at(&self, record: &FilePlace) -> Option<[u8; Header::SIZE]> {
        const FRAME_BYTES: u64 = 8;
        let file = self.files.files().iter().position(|file| file.path == record.path)?;
        let offset = record.offset + FRAME_BYTES;
        let place = BlockPlace { file: file as u32, offset, size: Header::SIZE as u32 };
        self.files.read(&place).ok()?.try_into().ok()
    }

    pub(crate) fn at(&self, height: u32) -> Option<&PlacedBlock> {
        self.found.chain.get(height.checked_sub(self.first_height)? as usize)
    }

    /// Position with the name of its file.
    pub fn place(&self, place: &BlockPlace) -> FilePlace {
        FilePlace::new(&self.files, place)
    }
}

/// The chain whose magic bytes the files at `path` begin with. Of chains with the same magic, as
/// the two regression test networks have, the first of [`ChainParams::NAMES`] is returned.
///
/// # Errors
/// If the files cannot be read.
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
