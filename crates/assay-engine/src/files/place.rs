//! Positions in block files, and their uniform reports.

use std::fmt;
use std::path::PathBuf;

use assay_store::{BlockFiles, BlockPlace, StrayBytes, StrayKind};
use assay_wire::BlockHash;

/// Position in the block files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePlace {
    pub path: PathBuf,
    /// Offset of the raw block or of the bytes.
    pub offset: u64,
    pub bytes: u64,
}

/// Bytes of a block file that belong to no block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stray {
    pub place: FilePlace,
    pub kind: StrayKind,
}

/// A block that is in no file, with a child that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingBlock {
    pub hash: BlockHash,
    /// Height, if the coinbase of the child has its own (BIP34).
    pub height: Option<u32>,
    pub child: BlockHash,
    pub child_place: FilePlace,
}

/// A block that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidBlock {
    pub hash: BlockHash,
    pub height: u32,
    /// The reference node's reject reason, or `unreadable-block` for changed bytes.
    pub reason: String,
    pub debug: String,
    pub place: FilePlace,
    /// True if no copy matches the commitments in the header: the block itself may be valid.
    pub is_damaged: bool,
}

impl FilePlace {
    /// The position of a record among the files.
    ///
    /// # Panics
    /// `place` belongs to other files.
    pub fn new(files: &BlockFiles, place: &BlockPlace) -> Self {
        let path = files.path_of(place).to_path_buf();
        Self { path, offset: place.offset, bytes: u64::from(place.size) }
    }
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "file {} offset {}", self.path.display(), self.offset)
    }
}

impl std::error::Error for InvalidBlock {}

impl Stray {
    pub(crate) fn new(files: &BlockFiles, stray: &StrayBytes) -> Self {
        let StrayBytes { file, offset, bytes, kind } = *stray;
        let path = files.files()[file as usize].path.clone();
        Self { place: FilePlace { path, offset, bytes }, kind }
    }
}

impl fmt::Display for Stray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} bytes of {}", self.place, self.place.bytes, self.kind.describe())
    }
}

impl fmt::Display for MissingBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "missing block {}", self.hash)?;
        if let Some(height) = self.height {
            write!(f, " at height {height}")?;
        }
        write!(
            f,
            ", the parent of {} ({}); add the file that holds it",
            self.child, self.child_place
        )
    }
}

impl fmt::Display for InvalidBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hash, height, reason, debug, place, is_damaged } = self;
        let what = if *is_damaged { "damaged" } else { "invalid" };
        write!(f, "{what} block {hash} at height {height}: {reason}: {debug} ({place})")?;
        if *is_damaged {
            f.write_str("; copy that file again, or have its node download the block again")
        } else {
            Ok(())
        }
    }
}
