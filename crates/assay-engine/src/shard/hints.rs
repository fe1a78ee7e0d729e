//! The hints of a plan: the outputs of each block that are left over.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use assay_hash::Sha256;
use assay_store::{BlockHints, HintsError, HintsReader};

use super::plan::{HintsPiece, Part};
use super::{ShardError, io_failed, unusable};

/// Reads a hints file of the block at `height`, and cuts it like the parts of blocks, which tile the heights from 1 on. Gives
/// its length too.
pub(super) fn cut_hints(
    path: &Path,
    parts: &[Part],
    height: u32,
) -> Result<(Vec<HintsPiece>, u64), ShardError> {
    let file = File::open(path).map_err(io_failed(path))?;
    let failed = |source| ShardError::Hints { path: path.to_path_buf(), source };
    let mut reader = HintsReader::new(BufReader::with_capacity(1 << 20, file)).map_err(failed)?;
    if reader.height() != height {
        let (found, expected) = (reader.height(), height);
        return Err(ShardError::OtherHints { path: path.to_path_buf(), found, expected });
    }
    let genesis = reader.next_block().map_err(failed)?.unwrap_or_default();
    if !genesis.is_empty() {
        let what = "says that an output of the genesis block is unspent, which no set has; make the hints again";
        return Err(unusable(path, what));
    }
    let mut pieces = Vec::with_capacity(parts.len());
    for part in parts {
        let Part::Blocks { first, last, .. } = *part else { continue };
        let offset = reader.offset();
        for _ in first..=last {
            reader.next_block().map_err(failed)?;
        }
        pieces.push(HintsPiece { offset, bytes: reader.offset() - offset, sha256: [0; 32] });
    }
    // Nothing may follow.
    reader.next_block().map_err(failed)?;
    for piece in &mut pieces {
        piece.sha256 = digest(path, piece).map_err(io_failed(path))?;
    }
    Ok((pieces, reader.offset()))
}

#[derive(Debug)]
pub(crate) struct PartHints {
    path: PathBuf,
    first: u32,
    /// The start of the hints of each block in the file.
    offsets: Vec<u64>,
    end: u64,
}

impl PartHints {
    /// Finds the hints of these heights in a file, which must be that of the plan.
    pub(crate) fn open(
        path: &Path,
        piece: &HintsPiece,
        (first, last): (u32, u32),
    ) -> Result<Self, ShardError> {
        let found = digest(path, piece).map_err(io_failed(path))?;
        if found != piece.sha256 {
            let what = "holds other hints than those of the plan; give the file of the plan, or make the plan again";
            return Err(unusable(path, what));
        }
        let failed = |source| ShardError::Hints { path: path.to_path_buf(), source };
        let input = slice(path, piece.offset, piece.bytes).map_err(io_failed(path))?;
        let input = BufReader::with_capacity(1 << 16, input);
        let mut reader = HintsReader::of_piece(input, piece.offset, (first, last));
        let mut offsets = Vec::new();
        loop {
            let offset = reader.offset();
            if reader.next_block().map_err(failed)?.is_none() {
                let end = piece.offset.saturating_add(piece.bytes);
                return Ok(Self { path: path.to_path_buf(), first, offsets, end });
            }
            offsets.push(offset);
        }
    }

    pub(crate) fn of_block(&self, height: u32) -> Result<BlockHints, ShardError> {
        let path = &self.path;
        let at = (height - self.first) as usize;
        let offset = self.offsets[at];
        let end = self.offsets.get(at + 1).copied().unwrap_or(self.end);
        let input = slice(path, offset, end - offset).map_err(io_failed(path))?;
        // A few kilobytes: one read takes them all.
        let input = BufReader::with_capacity((end - offset).clamp(1, 1 << 20) as usize, input);
        let read = HintsReader::of_piece(input, offset, (height, height)).next_block();
        let failed = |source: HintsError| ShardError::Hints { path: path.clone(), source };
        Ok(read.map_err(failed)?.unwrap_or_default())
    }
}

fn slice(path: &Path, offset: u64, bytes: u64) -> io::Result<io::Take<File>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(file.take(bytes))
}

/// SHA-256 of a piece, or of the bytes that exist of it.
fn digest(path: &Path, piece: &HintsPiece) -> io::Result<[u8; 32]> {
    let mut input = slice(path, piece.offset, piece.bytes)?;
    let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        let read = input.read(&mut buffer)?;
        if read == 0 {
            return Ok(hasher.finalize());
        }
        hasher.update(&buffer[..read]);
    }
}
